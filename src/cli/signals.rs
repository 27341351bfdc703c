//! Signals that ask a run to stop, and the one for files that grow too large.

use std::fs::File;
use std::io::Read as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

#[cfg(unix)]
use signal_hook::consts::{SIGHUP, SIGXFSZ};
use signal_hook::consts::{SIGINT, SIGTERM};

use super::exit::Status;
use crate::mailbox::{Stop, field_of_stat};

pub(super) struct Signals {
    pub(super) stop: Stop,
    which: Arc<AtomicUsize>,
}

impl Signals {
    /// A run stops between two messages, so that it leaves no lock and no temporary file.
    pub(super) fn watch() -> Self {
        let flag = Arc::new(AtomicBool::new(false));
        let which = Arc::new(AtomicUsize::new(0));
        for signal in heeded() {
            // Without the handler the signal ends the program at once, which loses no mail either.
            let number = usize::try_from(signal).unwrap_or(0);
            let _ = signal_hook::flag::register_usize(signal, Arc::clone(&which), number);
            let _ = signal_hook::flag::register(signal, Arc::clone(&flag));
        }
        Self {
            stop: Stop::over(flag),
            which,
        }
    }

    pub(super) fn status(&self) -> Status {
        u8::try_from(self.which.load(Ordering::SeqCst)).map_or(Status::Trouble, Status::Stopped)
    }
}

#[cfg(unix)]
const ASKING: &[i32] = &[SIGINT, SIGTERM, SIGHUP];
#[cfg(not(unix))]
const ASKING: &[i32] = &[SIGINT, SIGTERM];

/// Signals that our caller ignores stay ignored: nohup and shells keep jobs in the background alive like this.
pub(super) fn heeded() -> impl Iterator<Item = i32> {
    let ignored = ignored("/proc/self/stat");
    let asking = ASKING.iter().copied();
    asking.filter(move |signal| ignored & 1 << (signal - 1) == 0)
}

/// A bit each. Where the system does not say, only SIGHUP is taken for ignored, which then does what it does without
/// us. `/proc/self/status` names the field, but takes the system twice as long to write.
fn ignored(stat: &str) -> u64 {
    const HANGUP: u64 = 1;
    let mut text = [0; 2048];
    let read = File::open(stat).and_then(|mut file| file.read(&mut text));
    field_of_stat(text.get(..read.unwrap_or(0)).unwrap_or_default(), 33)
        .and_then(|digits| digits.parse().ok())
        .unwrap_or(HANGUP)
}

/// The default action of SIGXFSZ would end the process without a message.
pub(super) fn limits_on_files_are_failed_writes() {
    #[cfg(unix)]
    let _ = signal_hook::flag::register(SIGXFSZ, Arc::default());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hangup_is_left_alone_where_the_system_does_not_say_what_is_ignored() {
        assert_eq!(ignored("/nonexistent"), 1 << (SIGHUP - 1));
        assert_eq!(ignored("/dev/null"), 1 << (SIGHUP - 1));
    }
}
