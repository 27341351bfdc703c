//! Reads the files with keywords of an archive before its messages. They can be anywhere in the archive, and the messages are
//! read in one pass.

use std::io;
#[cfg(feature = "archives")]
use std::io::Read as _;
use std::sync::Arc;

use super::entries::EntryMaker;
#[cfg(feature = "archives")]
use super::entries::MOST_KEYWORDS;
#[cfg(feature = "archives")]
use super::opened::opened;
#[cfg(feature = "archives")]
use crate::mailbox::compressed::CompressionDamage;
use crate::mailbox::file::PackedFile;
use crate::mailbox::flag_losses::FlagLosses;

/// Whether the files with keywords in an archive can be read before its messages.
pub(super) enum LookAhead {
    /// The archive is a file. It is read a second time when its first message may need the keywords. Bytes of the second time
    /// do not count as progress.
    Possible {
        packed: Arc<PackedFile>,
        most: u64,
    },
    Done,
    /// The archive is a stream, so keywords are only known for the messages after them.
    Stream,
}

impl LookAhead {
    /// `most` is the limit of the decompressed size, in bytes.
    pub(super) fn of(packed: &PackedFile, most: u64) -> Self {
        Self::Possible {
            packed: PackedFile::new(&packed.file, &packed.stop),
            most,
        }
    }

    /// Reads the files with keywords, unless this was done before. `above` is the path of the archive. Damage is ignored here,
    /// because the pass over the messages reports it.
    pub(super) fn run(
        &mut self,
        above: &str,
        entries: &mut dyn EntryMaker,
        lost: &mut FlagLosses,
    ) -> io::Result<()> {
        if matches!(self, Self::Stream) {
            return Ok(());
        }
        let Self::Possible { packed, most } = std::mem::replace(self, Self::Done) else {
            return Ok(());
        };
        #[cfg(feature = "archives")]
        if let Err(error) = keywords((&packed, most), above, entries, lost) {
            error.downcast::<CompressionDamage>()?;
        }
        #[cfg(not(feature = "archives"))]
        let _ = (packed, most, above, entries, lost);
        Ok(())
    }
}

#[cfg(feature = "archives")]
fn keywords(
    (packed, most): (&Arc<PackedFile>, u64),
    above: &str,
    entries: &mut dyn EntryMaker,
    lost: &mut FlagLosses,
) -> io::Result<()> {
    let (mut members, _) = opened(packed, most)?;
    while let Some(member) = members.next()? {
        let name = joined_name(above, &member.name);
        if member.closed.is_some() || !entries.is_keyword_file(&name) {
            continue;
        }
        let mut content = Vec::new();
        let limited = &mut (&mut members).take(MOST_KEYWORDS + 1);
        let read = limited.read_to_end(&mut content);
        if let Err(error) = read {
            let damage: CompressionDamage = error.downcast()?;
            if !damage.goes_on {
                return Err(damage.into());
            }
            continue;
        }
        entries.add_keyword_file(&name, &content, lost);
    }
    Ok(())
}

/// Maximum length of the path of a member that is used, in bytes. It is the limit of most systems.
const LONGEST_PATH: usize = 4096;

/// Returns the path of a member in all archives around it. Of a longer path, only the end is kept, which contains the name of the
/// file.
pub(super) fn joined_name(above: &str, name: &[u8]) -> String {
    let end = name.len().saturating_sub(LONGEST_PATH);
    let mut name = String::from_utf8_lossy(name.get(end..).unwrap_or_default());
    // Some programs for Windows write backslashes.
    if !name.contains('/') && name.contains('\\') {
        name = name.replace('\\', "/").into();
    }
    match (above.is_empty(), name.is_empty()) {
        (true, _) => name.into_owned(),
        (false, true) => above.to_owned(),
        (false, false) => format!("{above}/{name}"),
    }
}
