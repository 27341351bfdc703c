//! Limits the bytes that are read, and collects the damage that was found.

/// Reason why something cannot be read, as a sentence for the user without a full stop, such as "the list of data blocks
/// is damaged".
pub type Fault = String;

/// Budget for reading: the number of bytes that may still be read, and the damage found so far.
#[derive(Debug)]
pub(in crate::engine::outlook) struct ReadAllowance {
    pub room: u64,
    pub damage: Vec<String>,
}

impl ReadAllowance {
    pub(in crate::engine::outlook) fn new(room: u64) -> Self {
        Self {
            room,
            damage: Vec::new(),
        }
    }

    pub(in crate::engine::outlook) fn tell(&mut self, what: String) {
        // A hostile file can have thousands of faults, so the list is limited.
        const MOST: usize = 20;
        if self.damage.len() < MOST && !self.damage.contains(&what) {
            self.damage.push(what);
        }
    }

    pub(super) fn take(&mut self, bytes: usize) -> Result<(), Fault> {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        self.room = self.room.checked_sub(bytes).ok_or(TOO_LARGE)?;
        Ok(())
    }
}

/// Error for content beyond the byte limit of the caller.
pub const TOO_LARGE: &str = "the content has more bytes than the limit";
