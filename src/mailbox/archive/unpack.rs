//! Opens an archive or a compressed file as one stream of mail.

#[cfg(feature = "cli")]
use std::fs::File;
use std::io::{self, Read};
use std::sync::{Arc, Mutex};

use super::ahead::LookAhead;
use super::joined::{ArchiveLimits, ArchiveReader, MemberRules};
#[cfg(feature = "cli")]
use super::names::any_name;
use super::skipped::SkippedMember;
use super::tar::{ForwardSkip, Tar};
use super::zip::Zip;
use crate::mailbox::Stop;
use crate::mailbox::compressed::{CompressionDamage, Method, RATIO, UNJUDGED, decompressed};
use crate::mailbox::file::{PackedFile, PackedReader, octets_at};
use crate::mailbox::forms::archive::{BLOCK, is_tar, is_zip};

impl ForwardSkip for PackedReader {
    fn pass(&mut self, length: u64) -> io::Result<u64> {
        let left = (self.packed.file.metadata()?.len()).saturating_sub(self.at);
        let passed = length.min(left);
        self.at += passed;
        self.packed.passed(passed);
        Ok(passed)
    }
}

/// Returns a reader for the mail in an archive or a compressed file. Returns `None` if the file is neither an archive
/// nor compressed. `most` is the limit of the decompressed size, in bytes.
pub(crate) fn unpacked(
    packed: &Arc<PackedFile>,
    most: u64,
    rules: MemberRules,
    skipped: &Arc<Mutex<SkippedMember>>,
) -> io::Result<Option<Box<dyn Read + Send>>> {
    let start = octets_at(&packed.file, 0, BLOCK)?;
    let (whole, ahead) = (PackedReader::new(packed), LookAhead::of(packed, most));
    let limits = ArchiveLimits {
        expanded: expanded_of(packed, most)?,
        stop: packed.stop.clone(),
    };
    Ok(if is_zip(&start) {
        let zip = Zip::new(packed, most);
        Some(Box::new(ArchiveReader::new(
            zip,
            rules,
            skipped,
            (limits, ahead),
        )))
    } else if is_tar(&start) {
        let tar = Tar::new(whole);
        Some(Box::new(ArchiveReader::new(
            tar,
            rules,
            skipped,
            (limits, ahead),
        )))
    } else if Method::of_start(&start).is_some() {
        Some(untarred_within(
            whole,
            (most, limits, ahead),
            rules,
            skipped,
        )?)
    } else {
        None
    })
}

/// Returns whether an archive contains a `.pst` file, which is an Outlook mailbox with several folders. Always returns
/// false for a compressed archive, because listing its members takes as long as reading it.
#[cfg(feature = "cli")]
pub(crate) fn names_psts(file: File, most: u64, stop: &Stop) -> io::Result<bool> {
    let is_pst = |name: &[u8]| name.to_ascii_lowercase().ends_with(b".pst");
    let packed = PackedFile::new(&Arc::new(file), stop);
    let start = octets_at(&packed.file, 0, BLOCK)?;
    if is_zip(&start) {
        any_name(Zip::new(&packed, most), is_pst)
    } else if is_tar(&start) {
        any_name(Tar::new(PackedReader::new(&packed)), is_pst)
    } else {
        Ok(false)
    }
}

/// Returns the limit of the decompressed size of nested archives, in bytes. Nested archives are copied to the disk, and
/// a small file must not be able to fill it, so the limit is not only `most`, but also a multiple of the size of the
/// file (at least [`UNJUDGED`]).
fn expanded_of(packed: &PackedFile, most: u64) -> io::Result<u64> {
    let length = packed.file.metadata()?.len();
    Ok(most.min(length.saturating_mul(RATIO).max(UNJUDGED)))
}

/// Returns a reader for the mail in a stream, which may be compressed or a tar archive. `most` is the limit of the decompressed
/// size, in bytes.
pub(crate) fn untarred<R: Read + Send + 'static>(
    reader: R,
    most: u64,
    rules: MemberRules,
    skipped: &Arc<Mutex<SkippedMember>>,
    stop: &Stop,
) -> io::Result<Box<dyn Read + Send>> {
    let limits = ArchiveLimits {
        expanded: most,
        stop: stop.clone(),
    };
    untarred_within(reader, (most, limits, LookAhead::Stream), rules, skipped)
}

fn untarred_within<R: Read + Send + 'static>(
    reader: R,
    (most, limits, ahead): (u64, ArchiveLimits, LookAhead),
    rules: MemberRules,
    skipped: &Arc<Mutex<SkippedMember>>,
) -> io::Result<Box<dyn Read + Send>> {
    let mut reader = decompressed(reader, most)?;
    let mut start = Vec::with_capacity(BLOCK);
    let read = (&mut reader).take(BLOCK as u64).read_to_end(&mut start);
    // Damage can be ignored here: the bytes before it are used, and the next read returns the error again.
    if let Err(error) = read {
        error.downcast::<CompressionDamage>()?;
    }
    let is_archive = is_tar(&start);
    let all = io::Cursor::new(start).chain(reader);
    Ok(if is_archive {
        Box::new(ArchiveReader::new(
            Tar::new(all),
            rules,
            skipped,
            (limits, ahead),
        ))
    } else {
        Box::new(all)
    })
}

impl<R: Read> ForwardSkip for io::Chain<io::Cursor<Vec<u8>>, R> {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mailbox::Stop;
    use crate::platform::FileExt as _;

    #[test]
    fn packed_file_is_skipped_without_reading_and_a_stop_ends_reading() {
        let file = tempfile::tempfile().unwrap();
        let hole = 1 << 38;
        file.write_all_at(b"behind", hole).unwrap();
        let (file, stop) = (Arc::new(file), Stop::default());
        let mut reader = PackedReader::new(&PackedFile::new(&file, &stop.of_part()));
        assert_eq!(reader.pass(hole + 1).unwrap(), hole + 1);
        let mut rest = [0; 9];
        assert_eq!(reader.read(&mut rest).unwrap(), 5);
        assert_eq!(&rest[..5], b"ehind");
        assert_eq!(reader.pass(3).unwrap(), 0);
        stop.request();
        assert!(reader.read(&mut rest).is_err());
    }
}
