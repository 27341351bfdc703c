//! Reads tar archives (POSIX.1-2024 pax, ustar and GNU tar) from start to end.
//!
//! The tar crate parses the headers. Extension headers are read here, because the crate would read extensions of any
//! length into memory. Sparse files are not supported. A member of an unknown type is read as a file (as POSIX
//! requires).

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, Read};

use tar::{Header, PaxExtensions};

use super::members::{Member, Members};
use crate::mailbox::compressed::CompressionDamage;
use crate::mailbox::file::{filled_by, uninterrupted};
use crate::mailbox::forms::archive::{BLOCK, is_right};

const EXTENSION: u64 = 1 << 20;

pub(super) trait ForwardSkip: Read {
    fn pass(&mut self, length: u64) -> io::Result<u64>
    where
        Self: Sized,
    {
        io::copy(&mut self.by_ref().take(length), &mut io::sink())
    }
}

pub(super) struct Tar<R> {
    reader: R,
    left: u64,
    padding: u64,
    is_over: bool,
    /// Hashes of the paths of all files before this one.
    names: HashSet<u64>,
}

#[derive(Default)]
struct ExtendedHeader {
    name: Option<Vec<u8>>,
    /// Path of the file to which a link leads.
    target: Option<Vec<u8>>,
    size: Option<u64>,
    is_sparse: bool,
    is_continued: bool,
}

fn hash(path: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    path.strip_prefix(b"./").unwrap_or(path).hash(&mut hasher);
    hasher.finish()
}

fn damaged(why: &str, whole: bool) -> io::Error {
    CompressionDamage::of_archive(why, whole).into()
}

fn cut_off() -> io::Error {
    let why = "the end of the tar archive is missing, or the file is one of several volumes (join them with tar -M)";
    CompressionDamage::of_cut_archive(why.to_owned()).into()
}

impl<R: ForwardSkip> Tar<R> {
    pub(super) fn new(reader: R) -> Self {
        Self {
            reader,
            left: 0,
            padding: 0,
            is_over: false,
            names: HashSet::new(),
        }
    }

    fn remember(&mut self, path: &[u8]) {
        if self.names.len() < MOST_NAMES {
            self.names.insert(hash(path));
        }
    }

    /// Returns whether a file with this path comes before the current member, as far as paths are remembered.
    fn has(&self, path: &[u8]) -> bool {
        self.names.len() >= MOST_NAMES || self.names.contains(&hash(path))
    }

    fn block(&mut self) -> io::Result<Option<[u8; BLOCK]>> {
        let mut block = [0; BLOCK];
        match filled_by(&mut block, |rest, _| self.reader.read(rest))? {
            BLOCK => Ok(Some(block)),
            0 => Ok(None),
            _ => Err(cut_off()),
        }
    }

    fn pass(&mut self) -> io::Result<()> {
        let rest = self.left.saturating_add(self.padding);
        let passed = self.reader.pass(rest)?;
        (self.left, self.padding) = (0, 0);
        if passed == rest {
            Ok(())
        } else {
            Err(cut_off())
        }
    }

    fn extension(&mut self) -> io::Result<Vec<u8>> {
        if self.left > EXTENSION {
            let why = "a header in the tar archive is too large";
            return Err(damaged(why, false));
        }
        let mut extension = Vec::new();
        let reader = &mut self.reader;
        reader.take(self.left).read_to_end(&mut extension)?;
        self.left -= extension.len() as u64;
        self.pass()?;
        Ok(extension)
    }

    /// Skips the sparse map, which lists the data areas of a sparse file. The old format of GNU tar stores it in blocks
    /// after the header, which are not part of the content.
    fn pass_map(&mut self, header: &[u8; BLOCK]) -> io::Result<()> {
        let mut goes_on = header[482] != 0;
        while goes_on {
            goes_on = self.block()?.ok_or_else(cut_off)?[504] != 0;
        }
        Ok(())
    }

    /// Checks that only zero bytes follow the end-of-archive mark. tar writes zeros as padding; other data could be
    /// mail, so it is reported.
    fn finish(&mut self) -> io::Result<()> {
        self.is_over = true;
        while let Some(block) = self.block()? {
            if block != [0; BLOCK] {
                return Err(damaged(
                    "the file contains other data after the tar archive",
                    true,
                ));
            }
        }
        Ok(())
    }
}

impl ExtendedHeader {
    fn add_pax(&mut self, records: &[u8]) {
        for record in PaxExtensions::new(records).flatten() {
            match record.key_bytes() {
                b"path" => self.name = Some(record.value_bytes().to_vec()),
                b"linkpath" => self.target = Some(record.value_bytes().to_vec()),
                b"size" => self.size = record.value().ok().and_then(|size| size.parse().ok()),
                b"GNU.volume.offset" => self.is_continued |= record.value_bytes() != b"0",
                key => self.is_sparse |= key.starts_with(b"GNU.sparse."),
            }
        }
    }
}

/// Returns whether a member is not a file, but a directory, or a list or label of GNU tar.
fn is_no_file(kind: u8) -> bool {
    matches!(kind, b'5' | b'D' | b'V')
}

const SYMBOLIC_LINK: &str = "a symbolic link in an archive";
const HARD_LINK: &str = "a second name of another file in the archive, with the same content";
const MISSING_LINK: &str =
    "a hard link to a file that is not in the archive; unpack the archive next to that file";
const SPECIAL: &str = "a device or a pipe";

/// Maximum number of member names that are remembered to resolve hard links.
const MOST_NAMES: usize = 1 << 18;

impl<R: ForwardSkip> Members for Tar<R> {
    fn next(&mut self) -> io::Result<Option<Member>> {
        if self.is_over {
            return Ok(None);
        }
        self.pass()?;
        let mut extended = ExtendedHeader::default();
        loop {
            let Some(block) = self.block()? else {
                self.is_over = true;
                let why = "the tar archive has no end mark, so files at the end may be missing";
                return Err(damaged(why, true));
            };
            if block == [0; BLOCK] {
                self.finish()?;
                return Ok(None);
            }
            let header = Header::from_byte_slice(&block);
            let size = extended.size.map_or_else(|| header.entry_size(), Ok);
            let (true, Ok(size)) = (is_right(&block), size) else {
                return Err(damaged("the tar archive is damaged", false));
            };
            (self.left, self.padding) = (size, size.wrapping_neg() % BLOCK as u64);
            let kind = header.entry_type();
            if kind.is_gnu_longname() {
                let name = self.extension()?;
                extended.name = Some(name.strip_suffix(b"\0").unwrap_or(&name).to_vec());
            } else if kind.is_pax_local_extensions() || kind.as_byte() == b'X' {
                extended.add_pax(&self.extension()?);
            } else if kind.is_pax_global_extensions() && size <= EXTENSION {
                // A global extended header applies to all following members. A path or size in it is ignored, because
                // these cannot be the same for all members.
                let mut global = ExtendedHeader::default();
                global.add_pax(&self.extension()?);
                extended.is_continued |= global.is_continued;
            } else if kind.is_gnu_longlink() {
                let target = self.extension()?;
                extended.target = Some(target.strip_suffix(b"\0").unwrap_or(&target).to_vec());
            } else if kind.is_pax_global_extensions() {
                self.pass()?;
            } else if is_no_file(kind.as_byte()) {
                self.pass()?;
                extended = ExtendedHeader::default();
            } else {
                let name = extended
                    .name
                    .unwrap_or_else(|| header.path_bytes().into_owned());
                // Some archives store the content with a hard link. Such a member is read as a file.
                let is_hard_link = kind.as_byte() == b'1' && size == 0;
                let without_mail = match kind.as_byte() {
                    _ if is_hard_link => Some(HARD_LINK),
                    b'2' => Some(SYMBOLIC_LINK),
                    b'3' | b'4' | b'6' => Some(SPECIAL),
                    _ => None,
                };
                if let Some(what) = without_mail {
                    self.pass()?;
                    let target = extended
                        .target
                        .or_else(|| Some(header.link_name_bytes()?.into_owned()))
                        .unwrap_or_default();
                    let is_missing = is_hard_link && !target.is_empty() && !self.has(&target);
                    if !is_missing {
                        self.remember(&name);
                    }
                    return Ok(Some(Member {
                        name,
                        closed: is_missing.then_some(MISSING_LINK),
                        without_mail: Some(what),
                    }));
                }
                self.remember(&name);
                if kind.is_gnu_sparse() {
                    self.pass_map(&block)?;
                }
                let closed = match extended.is_sparse || kind.is_gnu_sparse() {
                    _ if extended.is_continued || kind.as_byte() == b'M' => Some(
                        "the file is continued from another volume; join the volumes with tar -M",
                    ),
                    true => Some("a sparse file"),
                    false => None,
                };
                return Ok(Some(Member {
                    name,
                    closed,
                    without_mail: None,
                }));
            }
        }
    }
}

impl<R: ForwardSkip> Read for Tar<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = uninterrupted(|| self.reader.by_ref().take(self.left).read(into))?;
        if read == 0 && self.left > 0 && !into.is_empty() {
            return Err(cut_off());
        }
        self.left -= read as u64;
        Ok(read)
    }
}
