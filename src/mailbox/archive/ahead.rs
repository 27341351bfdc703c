//! Reads the keyword files of an archive (such as `dovecot-keywords`) before its messages. In the archive, they can
//! come after the messages, which are read in a single pass.

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

/// State of the extra pass that reads the keyword files of an archive before its messages.
pub(super) enum LookAhead {
    /// The archive is a file, so it can be read twice. The extra pass starts when a message may have keywords; its
    /// bytes are not counted as progress.
    Possible {
        packed: Arc<PackedFile>,
        most: u64,
    },
    Done,
    /// The archive is a stream, so a second pass is impossible. Messages only get the keywords of keyword files that
    /// come before them.
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

    /// Reads the keyword files, unless this was done before. `above` is the path of the archive. Damage is ignored
    /// here, because the pass over the messages reports it.
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

/// Maximum length of a member's path, in bytes: `PATH_MAX` of most systems.
const LONGEST_PATH: usize = 4096;

/// Returns the path of a member, with the paths of the archives around it in front. If the path is too long, only its
/// end is kept, because the end contains the file name.
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
