use crate::mailbox::encoding::{ByteOrder, UnicodeEncoding};
use crate::span::{front, rest_or_empty};
use std::ffi::OsStr;
use std::path::Path;

pub(crate) const MAGIC: usize = 15;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Method {
    Gzip,
    Zstd,
    Bzip2,
    Xz,
    /// Dovecot's own lz4 format. The `lz4` program cannot read it.
    DovecotLz4,
    /// Mail as UTF-16 text. It is decoded like compressed mail, but embody never writes it.
    Utf16(ByteOrder),
}

/// End-of-stream magic number of bzip2, without the checksum. In an empty stream, it directly follows the digit of the
/// compression level.
pub(super) const EMPTY_BZIP2: &[u8; 6] = b"\x17\x72\x45\x38\x50\x90";

pub(super) const DOVECOT_LZ4: &[u8] = b"Dovecot-LZ4\x0d\x2a\x9b\xc5";

impl Method {
    /// The compressions.
    const ALL: [Self; 5] = [
        Self::Gzip,
        Self::Zstd,
        Self::Bzip2,
        Self::Xz,
        Self::DovecotLz4,
    ];

    /// Recognises the compression by the magic number. A `start` that is shorter than [`MAGIC`] is the whole file, so a
    /// prefix of the magic number is enough: the file counts as compressed and truncated. Otherwise it would be read as
    /// mail.
    pub(crate) fn of_start(start: &[u8]) -> Option<Self> {
        let is = |method: &Self| {
            let magic = method.magic();
            let length = magic.len().min(start.len());
            length >= magic.len().min(3)
                && start.get(..length) == magic.get(..length)
                && (length == magic.len() || start.len() < MAGIC)
        };
        if is_skippable(start) {
            return Some(Self::Zstd);
        }
        let method = Self::ALL.into_iter().find(is)?;
        if method != Self::Bzip2 {
            return Some(method);
        }
        // A text can also start with "BZh", so the level and the magic number after it are checked too.
        let is_level = |level| (b'1'..=b'9').contains(level);
        let may_be_level = start.get(3).is_none_or(is_level);
        let behind = rest_or_empty(front(start, 10), 4);
        let starts = |magic: &&[u8; 6]| magic.starts_with(behind);
        let block = [b"1AY&SY", EMPTY_BZIP2].iter().any(starts);
        (may_be_level && block).then_some(method)
    }

    /// Returns the UTF-16 method if the first bytes of a file are mail in UTF-16.
    pub(crate) fn of_text(start: &[u8]) -> Option<Self> {
        match UnicodeEncoding::of_mail(start) {
            Some(UnicodeEncoding::Utf16(order)) => Some(Self::Utf16(order)),
            _ => None,
        }
    }

    pub(crate) fn is_utf16(self) -> bool {
        matches!(self, Self::Utf16(_))
    }

    /// Returns the name of the method, its magic number, and the suffix of an output file that selects the method.
    fn row(self) -> (&'static str, &'static [u8], Option<&'static str>) {
        match self {
            Self::Gzip => ("gzip", b"\x1f\x8b", Some("gz")),
            Self::Zstd => ("zstd", b"\x28\xb5\x2f\xfd", Some("zst")),
            Self::Bzip2 => ("bzip2", b"BZh", Some("bz2")),
            Self::Xz => ("xz", b"\xfd7zXZ\0", Some("xz")),
            Self::DovecotLz4 => ("Dovecot's lz4", DOVECOT_LZ4, None),
            Self::Utf16(_) => ("UTF-16", b"", None),
        }
    }

    pub(crate) fn name(self) -> &'static str {
        self.row().0
    }

    pub(super) fn magic(self) -> &'static [u8] {
        self.row().1
    }

    /// Returns the compression method that the suffix of a file name selects. `.gz` alone is a hidden file without a
    /// suffix.
    pub(crate) fn of_name(path: &Path) -> Option<Self> {
        let suffix = path.extension().and_then(OsStr::to_str)?;
        let asks = |method: &Self| {
            let wanted = method.row().2;
            wanted.is_some_and(|wanted| suffix.eq_ignore_ascii_case(wanted))
        };
        Self::ALL.into_iter().find(asks)
    }

    /// Returns the compression of the result. The suffix `.lz4` alone does not select Dovecot's lz4 format; the source
    /// must have this format too.
    pub(crate) fn of_result(path: &Path, source: Option<Self>) -> Option<Self> {
        let is_lz4 = path.extension().is_some_and(|suffix| suffix == "lz4");
        Self::of_name(path).or(source.filter(|&method| method == Self::DovecotLz4 && is_lz4))
    }
}

pub(crate) fn plain_suffix(path: &Path) -> Option<&OsStr> {
    let name = match Method::of_name(path) {
        Some(_) => Path::new(path.file_stem()?),
        None => path,
    };
    name.extension()
}

/// Returns whether `start` begins with a skippable zstd frame. Such a frame contains no data, but pzstd writes one at
/// the start of its files, so the file counts as compressed with zstd.
pub(super) fn is_skippable(start: &[u8]) -> bool {
    matches!(start, [low, 0x2a, 0x4d, 0x18, ..] if low & 0xf0 == 0x50)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn magic_tells_the_method_and_text_is_none() {
        for (start, method) in [
            (
                b"\x1f\x8b\x08\0\0\0\0\0\0\0\0\0\0\0\0".as_slice(),
                Some(Method::Gzip),
            ),
            (b"\x1f\x8b", Some(Method::Gzip)),
            (
                b"\x28\xb5\x2f\xfd\x04\0\0\0\0\0\0\0\0\0\0",
                Some(Method::Zstd),
            ),
            (b"\x28\xb5\x2f", Some(Method::Zstd)),
            (b"\x50\x2a\x4d\x18\x04\0\0\0", Some(Method::Zstd)),
            (b"\xfd7zXZ\0", Some(Method::Xz)),
            (b"BZh91AY&SY", Some(Method::Bzip2)),
            (b"BZh9\x17\x72\x45\x38\x50\x90", Some(Method::Bzip2)),
            (b"BZh9", Some(Method::Bzip2)),
            (DOVECOT_LZ4, Some(Method::DovecotLz4)),
            (b"BZh: is a header", None),
            (b"BZh91AY&SX......", None),
            (b"From a@b Thu Jan", None),
            (b"Dovecot-LZ4: no\n", None),
            (b"\x1f", None),
            (b"\x28\xb5\x2fxxxxxxxxxxxx", None),
            (b"", None),
        ] {
            assert_eq!(Method::of_start(start), method, "{}", start.escape_ascii());
        }
    }

    #[test]
    fn the_suffix_of_a_result_asks_for_a_method() {
        let of = |name: &str| Method::of_name(Path::new(name));
        assert_eq!(of("a/list.mbox.gz"), Some(Method::Gzip));
        assert_eq!(of("LIST.GZ"), Some(Method::Gzip));
        assert_eq!(of("x.zst"), Some(Method::Zstd));
        assert_eq!(of("x.bz2"), Some(Method::Bzip2));
        assert_eq!(of("x.xz"), Some(Method::Xz));
        assert_eq!((of("x.mbox"), of(".gz"), of("x.lz4")), (None, None, None));
        let lz4 = Some(Method::DovecotLz4);
        assert_eq!(Method::of_result(Path::new("x.lz4"), lz4), lz4);
        assert_eq!(Method::of_result(Path::new("x"), lz4), None);
        assert_eq!(
            Method::of_result(Path::new("x.lz4"), Some(Method::Gzip)),
            None
        );
    }
}
