//! A source whose format is recognised.

use std::fs::File;
use std::path::Path;

/// Source whose format is to be recognised. Its first bytes are passed separately. This value has its name, and its content
/// if that can be read now.
#[derive(Clone, Copy)]
pub(crate) enum FormatCandidate<'f> {
    /// A file on a disk. It is not compressed.
    File(&'f Path, &'f File),
    /// The name and the content of a file in memory. The file is not compressed.
    Memory(&'f Path, &'f [u8]),
    /// The name of a compressed file or of a member of an archive. Its whole content would have to be decompressed to check its
    /// structure.
    Packed(&'f Path),
    /// A stream, with its name in reports. Its structure is checked when it has been read.
    #[cfg_attr(not(feature = "cli"), allow(dead_code))]
    Stream(&'f Path),
}

impl<'f> FormatCandidate<'f> {
    pub(crate) fn name(self) -> &'f Path {
        match self {
            Self::File(name, _)
            | Self::Memory(name, _)
            | Self::Packed(name)
            | Self::Stream(name) => name,
        }
    }

    /// Returns whether the source is a file that is not compressed, so that other files can belong to it.
    pub(crate) fn is_plain_file(self) -> bool {
        matches!(self, Self::File(..) | Self::Memory(..))
    }
}
