//! Signatures (first bytes) of the formats, and the checks of the data after a signature.

use std::sync::LazyLock;

use aho_corasick::AhoCorasick;

use super::found::AppendedData;
use super::lzw;
use super::plain::mbox_at_start;
use crate::mailbox::compressed::{MAGIC, Method};
use crate::mailbox::encoding::UnicodeEncoding;
use crate::mailbox::forms::archive::{BLOCK, is_tar};
use crate::mailbox::forms::emlx;
use crate::mailbox::forms::refused::{binary_magics, is_dbox};
#[cfg(any(unix, windows))]
use crate::mailbox::not_mail::ContentVerdict;
#[cfg(not(any(unix, windows)))]
use crate::mailbox::not_mail::NotMail;
use crate::mailbox::not_mail::starts_like_document;
use crate::mailbox::start::kind_of_start;
use crate::prologue::starts_mail;
use crate::span::{Span, front, rest_or_empty, split_while};

/// Maximum number of places in a message at which data are decompressed or parsed. At any further place, the signature alone
/// decides, so that no mail is passed over.
const MOST_LOOKS: usize = 16;

/// Maximum number of bytes that are searched for the rest of a signature.
const NEAR: usize = 4096;

/// A format whose data contain `needle`.
struct Signature {
    needle: &'static [u8],
    /// Returns what is at `at`, the offset of the needle in the message.
    judge: fn(&mut SignatureSearch<'_>, usize) -> SignatureHit,
}

/// Result of checking the bytes at which a signature was found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum SignatureHit {
    /// Other bytes that contain the needle.
    Nothing,
    /// Data without mail, which end at this offset.
    NoMail(usize),
    Mail(AppendedData),
}

const fn mail(at: usize, format: &'static str) -> SignatureHit {
    SignatureHit::Mail(AppendedData::of(at, format))
}

const SIGNATURES: &[Signature] = &[
    Signature {
        needle: b"\x1f\x8b\x08",
        judge: |search, at| search.gzip(at),
    },
    Signature {
        needle: b"1AY&SY",
        judge: |search, at| search.bzip2(at),
    },
    Signature {
        needle: lzw::MAGIC,
        judge: |search, at| search.compress(at),
    },
    Signature {
        needle: b"\x28\xb5\x2f\xfd",
        judge: |search, at| search.packed(at, Method::Zstd, "compressed data (zstd)"),
    },
    Signature {
        needle: b"\xfd7zXZ\0",
        judge: |search, at| search.packed(at, Method::Xz, "compressed data (xz)"),
    },
    Signature {
        needle: b"Dovecot-LZ4\x0d\x2a\x9b\xc5",
        judge: |search, at| {
            search.packed(at, Method::DovecotLz4, "compressed data (lz4 of Dovecot)")
        },
    },
    Signature {
        needle: b"\x04\x22\x4d\x18",
        judge: |search, at| match search.from(at) {
            // The version is 1, and the reserved bits are 0.
            [_, _, _, _, flags, size, ..] if flags & 0xc2 == 0x40 && size & 0x8f == 0 => {
                mail(at, "compressed data (lz4)")
            }
            _ => SignatureHit::Nothing,
        },
    },
    Signature {
        needle: b"PK\x03\x04",
        judge: |search, at| search.zip(at),
    },
    Signature {
        needle: b"ustar",
        judge: |search, at| match at.checked_sub(TAR_MAGIC) {
            Some(start) if is_tar(front(search.from(start), BLOCK)) => mail(start, "a tar archive"),
            _ => SignatureHit::Nothing,
        },
    },
    Signature {
        needle: b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
        judge: |search, at| search.msg(at),
    },
    Signature {
        needle: b"\x78\x9f\x3e\x22",
        judge: |search, at| search.with_zeros(at, 16, "an Outlook message (TNEF)"),
    },
    Signature {
        needle: b"!BDN",
        judge: |search, at| search.with_zeros(at, 32, "an Outlook mailbox"),
    },
    Signature {
        needle: b"*mbx*",
        judge: |search, at| match search.from(at) {
            [_, _, _, _, _, b'\r' | b'\n', ..] => search.with_zeros(at, NEAR, "an MBX mailbox"),
            _ => SignatureHit::Nothing,
        },
    },
    Signature {
        needle: b"BABYL OPTIONS:",
        judge: |search, at| {
            let near = front(search.from(at), NEAR);
            match memchr::memchr(0x1f, near) {
                Some(_) => mail(at, "a Babyl mailbox"),
                None => SignatureHit::Nothing,
            }
        },
    },
    // After a crash of the system, NUL bytes can be between two messages. DOS programs end a file with 0x1A.
    Signature {
        needle: b"\0From ",
        judge: |search, at| search.mbox(at + 1),
    },
    Signature {
        needle: b"\x1aFrom ",
        judge: |search, at| search.mbox(at + 1),
    },
    Signature {
        needle: b"\x01\x01\x01\x01",
        judge: |search, at| search.mmdf(at),
    },
    Signature {
        needle: b"\x01\x02N ",
        judge: |search, at| {
            // The line before the first message contains the version of the format and the size of its headers (`2 M1e`). It
            // can follow a text without a final line ending.
            let before = front(search.message, at);
            let line_end = before.len().saturating_sub(1);
            let line = memchr::memrchr(b'\n', front(before, line_end)).map_or(0, |end| end + 1);
            let size = memchr::memmem::rfind(rest_or_empty(before, line), b" M");
            let start = size.and_then(|size| (line + size).checked_sub(1));
            match start {
                Some(start) if is_dbox(rest_or_empty(before, start)) => {
                    mail(start, "a dbox file of Dovecot")
                }
                _ => SignatureHit::Nothing,
            }
        },
    },
];

/// Offset of the magic bytes of a tar archive.
const TAR_MAGIC: usize = 257;

/// Searcher for the needles of [`SIGNATURES`], followed by the magic numbers of other formats. The list contains the names of
/// these formats, in the same order. A magic number that is also in `SIGNATURES` is left out.
static NEEDLES: LazyLock<(Option<AhoCorasick>, Vec<&'static str>)> = LazyLock::new(|| {
    let own = SIGNATURES.iter().map(|it| it.needle);
    let is_own = |magic: &[u8]| own.clone().any(|needle| needle == magic);
    let (others, names): (Vec<&[u8]>, Vec<&str>) =
        binary_magics().filter(|(magic, _)| !is_own(magic)).unzip();
    (AhoCorasick::new(own.clone().chain(others)).ok(), names)
});

/// A search for data of other formats in one message.
pub(super) struct SignatureSearch<'m> {
    message: &'m [u8],
    looks: usize,
}

impl<'m> SignatureSearch<'m> {
    pub(super) fn new(message: &'m [u8]) -> Self {
        Self { message, looks: 0 }
    }

    /// Returns the first data in `spans` that may contain mail.
    pub(super) fn first(&mut self, spans: &[Span]) -> Option<AppendedData> {
        let by_signature = self.by_signature(spans);
        let others = [self.wide_text(spans), self.ebcdic(spans), self.emlx(spans)];
        others
            .into_iter()
            .chain([by_signature])
            .flatten()
            .min_by_key(|data| data.at)
    }

    fn by_signature(&mut self, spans: &[Span]) -> Option<AppendedData> {
        let (needles, names) = &*NEEDLES;
        let needles = needles.as_ref()?;
        let mut from = 0;
        for span in spans {
            let text = span.of(self.message);
            for found in needles.find_overlapping_iter(text) {
                let at = span.start + found.start();
                if at < from {
                    continue;
                }
                let index = found.pattern().as_usize();
                let hit = match SIGNATURES.get(index) {
                    Some(signature) => (signature.judge)(self, at),
                    None => {
                        let name = names.get(index - SIGNATURES.len());
                        name.map_or(SignatureHit::Nothing, |name| mail(at, name))
                    }
                };
                match hit {
                    SignatureHit::Nothing => {}
                    SignatureHit::NoMail(end) => from = end,
                    SignatureHit::Mail(data) => return Some(data),
                }
            }
        }
        None
    }

    fn from(&self, at: usize) -> &'m [u8] {
        rest_or_empty(self.message, at)
    }

    /// Counts an exact look at data. Returns false if there were too many.
    fn may_look(&mut self) -> bool {
        self.looks += 1;
        self.looks <= MOST_LOOKS
    }

    /// Judges data by a NUL in their first bytes. Text that mentions the signature contains none.
    fn with_zeros(&self, at: usize, near: usize, format: &'static str) -> SignatureHit {
        match memchr::memchr(0, front(self.from(at), near)) {
            Some(_) => mail(at, format),
            None => SignatureHit::Nothing,
        }
    }

    fn gzip(&mut self, at: usize) -> SignatureHit {
        match self.from(at) {
            // The reserved flags are 0, and the level of compression and the operating system are known.
            [_, _, _, flags, _, _, _, _, 0 | 2 | 4, 0..=13 | 255, ..] if flags & 0xe0 == 0 => {
                self.packed(at, Method::Gzip, "compressed data (gzip)")
            }
            _ => SignatureHit::Nothing,
        }
    }

    /// Judges data of compress(1). Their magic number has only two bytes, so their start must be data that can be decompressed.
    fn compress(&mut self, at: usize) -> SignatureHit {
        const SHORTEST: usize = 32;
        const LOOKED_AT: usize = 64 << 10;
        let data = self.from(at);
        let is_long = |content: &Vec<u8>| content.len() >= SHORTEST;
        if !lzw::start_of_content(data, SHORTEST)
            .as_ref()
            .is_some_and(is_long)
        {
            return SignatureHit::Nothing;
        }
        let content = if self.may_look() {
            lzw::start_of_content(data, LOOKED_AT)
        } else {
            Some(Vec::new())
        };
        match content {
            Some(content) if content.is_empty() || !is_other_content(&content) => {
                mail(at, "compressed data (compress)")
            }
            _ => SignatureHit::Nothing,
        }
    }

    fn bzip2(&mut self, at: usize) -> SignatureHit {
        let Some(start) = at.checked_sub(4) else {
            return SignatureHit::Nothing;
        };
        let [b'B', b'Z', b'h', b'1'..=b'9', rest @ ..] = self.from(start) else {
            return SignatureHit::Nothing;
        };
        // A checksum follows. Text that mentions the format contains no such bytes.
        let is_text = |byte: &u8| byte.is_ascii_graphic() || byte.is_ascii_whitespace();
        if front(rest_or_empty(rest, 6), 24).iter().all(is_text) {
            return SignatureHit::Nothing;
        }
        self.packed(start, Method::Bzip2, "compressed data (bzip2)")
    }

    /// Judges compressed data by the start of their content. Data that cannot be decompressed may contain mail.
    fn packed(&mut self, at: usize, method: Method, format: &'static str) -> SignatureHit {
        if self.may_look() && is_without_mail(method, self.from(at)) {
            SignatureHit::NoMail(at + 1)
        } else {
            mail(at, format)
        }
    }

    fn zip(&self, at: usize) -> SignatureHit {
        let start = self.from(at);
        let [_, _, _, _, 0..=63, 0..=3, _, _, method, high, ..] = start else {
            return SignatureHit::Nothing;
        };
        let is_method = *high == 0 && (*method <= 20 || (93..=99).contains(method));
        let length = start
            .get(26..28)
            .map(|it| usize::from(it[0]) | usize::from(it[1]) << 8);
        let name = length.and_then(|length| start.get(30..30 + length));
        let is_name = |name: &[u8]| !name.is_empty() && !name.iter().any(u8::is_ascii_control);
        if !is_method || !name.is_some_and(is_name) {
            return SignatureHit::Nothing;
        }
        if !starts_like_document(start) {
            return mail(at, "a zip archive");
        }
        // Each member starts like an archive, so the search goes on after the end of the document.
        const END: &[u8] = b"PK\x05\x06";
        let end = memchr::memmem::find(start, END).map_or(start.len(), |end| end + END.len());
        SignatureHit::NoMail(at + end)
    }

    fn msg(&mut self, at: usize) -> SignatureHit {
        if self.may_look() && is_document(self.from(at)) {
            SignatureHit::NoMail(at + 1)
        } else {
            mail(at, "an Outlook message (.msg)")
        }
    }

    /// Judges a separator that is not at the start of a line, so that the reader of the mbox does not find it.
    fn mbox(&mut self, at: usize) -> SignatureHit {
        if self.may_look() && mbox_at_start(self.from(at)).is_none() {
            SignatureHit::Nothing
        } else {
            mail(
                at,
                "an mbox whose first \"From \" line follows other bytes on the same line",
            )
        }
    }

    /// Judges a line of four Control-A characters. It begins a mailbox only if a mail without a separator follows. After a
    /// separator, the mail is read or found as that of an mbox.
    fn mmdf(&self, at: usize) -> SignatureHit {
        let behind = rest_or_empty(self.from(at), 4);
        let text = behind.strip_prefix(b"\r").unwrap_or(behind);
        let Some(text) = text.strip_prefix(b"\n") else {
            return SignatureHit::Nothing;
        };
        if !text.starts_with(b"From ") && starts_mail(front(text, NEAR)) {
            mail(at, "an MMDF mailbox")
        } else {
            SignatureHit::Nothing
        }
    }

    /// Returns the first mail in UTF-16 or UTF-32, or the first tar archive without magic bytes. Both contain NULs in their
    /// first bytes, and only the first NUL of several is looked at.
    fn wide_text(&self, spans: &[Span]) -> Option<AppendedData> {
        let mut looks = 0;
        for span in spans {
            let mut last = None;
            for found in memchr::memchr_iter(0, span.of(self.message)) {
                let at = span.start + found;
                let is_first = last.is_none_or(|last| at - last > 4);
                last = Some(at);
                if !is_first {
                    continue;
                }
                looks += 1;
                if looks > MOST_LOOKS {
                    break;
                }
                if let Some(data) = self.at_zero(at) {
                    return Some(data);
                }
            }
        }
        None
    }

    fn at_zero(&self, zero: usize) -> Option<AppendedData> {
        let marked = |back: usize, mark: &[u8]| {
            let start = zero.checked_sub(back)?;
            self.from(start).starts_with(mark).then_some(start)
        };
        let starts = [
            marked(3, b"\xff\xfe"),
            marked(2, b"\xff\xfe\0\0"),
            marked(2, b"\xfe\xff\0"),
            Some(zero),
            zero.checked_sub(1),
        ];
        for start in starts.into_iter().flatten() {
            let format = match UnicodeEncoding::of_mail(self.from(start)) {
                Some(UnicodeEncoding::Utf16(_)) => "mail in UTF-16",
                Some(UnicodeEncoding::Utf32) => "mail in UTF-32",
                _ => continue,
            };
            return Some(AppendedData::of(start, format));
        }
        let before = front(self.message, zero);
        let line = memchr::memrchr(b'\n', before).map_or(0, |end| end + 1);
        let tar = AppendedData::of(line, "a tar archive");
        is_tar(front(self.from(line), BLOCK)).then_some(tar)
    }

    /// Returns mail in EBCDIC at the end of the message. It contains no line feed, so it is in the last line.
    fn ebcdic(&self, spans: &[Span]) -> Option<AppendedData> {
        let line = last_line(self.message);
        let rest = self.from(line);
        let starts = (0..rest.len()).filter(|&at| {
            let is_ascii = |at: usize| rest.get(at).is_some_and(u8::is_ascii);
            !is_ascii(at) && at.checked_sub(1).is_none_or(is_ascii)
        });
        let is_mail = |at: &usize| {
            let is_undeclared = spans.iter().any(|span| (span.start..span.end).contains(at));
            let encoding = UnicodeEncoding::of_mail(self.from(*at));
            is_undeclared && encoding == Some(UnicodeEncoding::Ebcdic)
        };
        let starts = starts.map(|at| line + at);
        let at = starts.take(MOST_LOOKS).find(is_mail)?;
        Some(AppendedData::of(at, "mail in EBCDIC"))
    }

    /// Returns the first message of Apple Mail: a line with the size of the message, the message, and a property list.
    fn emlx(&self, spans: &[Span]) -> Option<AppendedData> {
        let is_blank = |byte: &u8| matches!(byte, b' ' | b'\r');
        let mut looks = 0;
        for span in spans {
            let text = span.of(self.message);
            let mut line_start = 0;
            for end in memchr::memchr_iter(b'\n', text) {
                let line = text.get(line_start..end).unwrap_or_default();
                line_start = end + 1;
                let blanks = line.iter().rev().take_while(|byte| is_blank(byte)).count();
                let number = front(line, line.len() - blanks);
                let digits = number
                    .iter()
                    .rev()
                    .take_while(|byte| byte.is_ascii_digit())
                    .count();
                let (first, _) = split_while(rest_or_empty(text, end + 1), |&byte| byte != b':');
                if digits == 0 || first.is_empty() || first.len() > 64 {
                    continue;
                }
                looks += 1;
                if looks > MOST_LOOKS {
                    return None;
                }
                let number_end = span.start + end - blanks;
                for width in (1..=digits.min(12)).rev() {
                    let start = number_end - width;
                    let file = self.from(start);
                    let header = emlx::behind_count(file);
                    let is_mail = header.is_some_and(|header| starts_mail(front(header, NEAR)));
                    if is_mail && emlx::has_list(file) {
                        let format = "a message of Apple Mail (.emlx)";
                        return Some(AppendedData::of(start, format));
                    }
                }
            }
        }
        None
    }
}

/// Returns whether compressed data certainly contain no mail, by the start of their content.
#[cfg(all(feature = "archives", any(unix, windows)))]
fn is_without_mail(method: Method, data: &[u8]) -> bool {
    use std::io::Read as _;

    use crate::mailbox::compressed::Decoder;

    const LOOKED_AT: u64 = 64 << 10;
    let mut plain = Vec::new();
    let decoder = Decoder::new(method, data, u64::MAX);
    let read = decoder.take(LOOKED_AT).read_to_end(&mut plain);
    if plain.is_empty() {
        return read.is_ok();
    }
    is_other_content(&plain)
}

/// Returns the offset of the line in which a message ends.
fn last_line(message: &[u8]) -> usize {
    let text = message.trim_ascii_end();
    memchr::memrchr(b'\n', text).map_or(0, |end| end + 1)
}

/// Returns whether content is certainly no mail, by its start.
fn is_other_content(plain: &[u8]) -> bool {
    let is_packed = Method::of_start(front(plain, MAGIC)).is_some();
    let is_mail = match kind_of_start(plain) {
        Ok(_) => true,
        #[cfg(any(unix, windows))]
        Err(other) => other.verdict() == ContentVerdict::NotRead,
        #[cfg(not(any(unix, windows)))]
        Err(other) => !matches!(other, NotMail::Text | NotMail::Binary),
    };
    !is_packed && !is_mail
}

/// In a build without decompression, all compressed data may contain mail.
#[cfg(not(all(feature = "archives", any(unix, windows))))]
fn is_without_mail(_method: Method, _data: &[u8]) -> bool {
    false
}

/// Returns whether data that start like an Outlook message are another document.
#[cfg(feature = "outlook")]
fn is_document(data: &[u8]) -> bool {
    use crate::engine::outlook::msg::is_message;

    !is_message(std::io::Cursor::new(data))
}

#[cfg(not(feature = "outlook"))]
fn is_document(_data: &[u8]) -> bool {
    false
}
