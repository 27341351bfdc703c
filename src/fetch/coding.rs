//! Content codings of HTTP responses (RFC 9110 §8.4), for servers and for captures in WARC files alike.
//!
//! * `gzip` and `deflate` are decoded. `deflate` means zlib; many servers send the bare deflate stream instead.
//! * Registered codings that were not requested (`br`, `zstd`, `compress` ...) are refused: their bytes are unreadable.
//! * Other values (`utf-8`, `none`, `aws-chunked`) are mistakes in the configuration of a server. The bytes are used as
//!   they are (Fetch §2.2.4, "handle content codings"), but only if they prove what they are: such a value may also name
//!   a coding that is not known here.

use std::io::{self, Read};

use flate2::read::MultiGzDecoder;
use flate2::{Decompress, FlushDecompress, Status};

use crate::mime::picture::is_recognised;

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Coding {
    Identity,
    Gzip,
    Deflate,
    /// The value is not a list of content codings. The bytes are as the server sent them.
    Unknown(String),
}

/// Content codings of the registry of IANA that browsers or other clients know and this program does not.
const NOT_DECODED: [&str; 9] = [
    "aes128gcm",
    "br",
    "compress",
    "dcb",
    "dcz",
    "exi",
    "pack200-gzip",
    "x-compress",
    "zstd",
];

impl Coding {
    /// Reads the values of all Content-Encoding fields, which are one list. Empty members and `identity` mean nothing.
    ///
    /// # Errors
    /// Why the content cannot be decoded.
    pub(crate) fn of<'v>(values: impl Iterator<Item = &'v [u8]>) -> Result<Self, String> {
        let values: Vec<_> = values.map(String::from_utf8_lossy).collect();
        let list = values.join(", ").to_ascii_lowercase();
        let is_meant = |name: &&str| !matches!(*name, "" | "identity");
        let names: Vec<&str> = list.split(',').map(str::trim).filter(is_meant).collect();
        if let Some(name) = names.iter().find(|name| NOT_DECODED.contains(name)) {
            return Err(format!("content coding {name}, which was not requested"));
        }
        match names.as_slice() {
            [] => Ok(Self::Identity),
            ["gzip" | "x-gzip"] => Ok(Self::Gzip),
            ["deflate"] => Ok(Self::Deflate),
            several if several.iter().all(is_decoded) => {
                Err("more than one content coding".to_owned())
            }
            _ => Ok(Self::Unknown(list)),
        }
    }

    pub(crate) fn is_compressed(&self) -> bool {
        matches!(self, Self::Gzip | Self::Deflate)
    }

    pub(crate) fn decoder<'r>(&self, source: impl Read + 'r) -> Box<dyn Read + 'r> {
        match self {
            Self::Identity | Self::Unknown(_) => Box::new(source),
            Self::Gzip => Box::new(MultiGzDecoder::new(source)),
            Self::Deflate => Box::new(Inflater::new(source)),
        }
    }

    /// Checks content that came out of the [decoder](Self::decoder).
    ///
    /// # Errors
    /// Why it may not be what the server meant.
    pub(crate) fn check(&self, content: &[u8]) -> Result<(), String> {
        match self {
            Self::Unknown(value) if !is_recognised(content) => Err(format!(
                "Content-Encoding is {value}, which is not a content coding, and the bytes do not show what they are"
            )),
            _ => Ok(()),
        }
    }
}

fn is_decoded(name: &&str) -> bool {
    matches!(*name, "gzip" | "x-gzip" | "deflate")
}

/// Decodes zlib (RFC 1950) or a bare deflate stream (RFC 1951). The decoders of flate2 end quietly where their input is
/// cut off; this one returns [`io::ErrorKind::UnexpectedEof`].
struct Inflater<R> {
    source: R,
    state: Option<Decompress>,
    input: Box<[u8]>,
    /// Bytes of `input` that were read and not used yet.
    start: usize,
    end: usize,
    is_over: bool,
}

impl<R: Read> Inflater<R> {
    fn new(source: R) -> Self {
        Self {
            source,
            state: None,
            input: vec![0; 16 << 10].into(),
            start: 0,
            end: 0,
            is_over: false,
        }
    }

    /// Returns false at the end of the source.
    fn fill(&mut self) -> io::Result<bool> {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
        let room = self.input.get_mut(self.end..).unwrap_or_default();
        let read = self.source.read(room)?;
        self.end += read;
        Ok(read > 0)
    }
}

impl<R: Read> Read for Inflater<R> {
    fn read(&mut self, output: &mut [u8]) -> io::Result<usize> {
        while !self.is_over && !output.is_empty() {
            let has_more = match self.end - self.start {
                // The first two bytes show whether there is a header of zlib.
                0 => self.fill()?,
                1 if self.state.is_none() => self.fill()?,
                _ => true,
            };
            let input = self.input.get(self.start..self.end).unwrap_or_default();
            if self.state.is_none() && input.len() < 2 && has_more {
                continue;
            }
            let state = self
                .state
                .get_or_insert_with(|| Decompress::new(has_zlib_header(input)));
            let (taken, given) = (state.total_in(), state.total_out());
            let status = state.decompress(input, output, FlushDecompress::None);
            let status = status.map_err(|why| io::Error::new(io::ErrorKind::InvalidData, why))?;
            let step = |now: u64, before: u64| usize::try_from(now - before).unwrap_or(0);
            self.start += step(state.total_in(), taken);
            let written = step(state.total_out(), given);
            self.is_over = status == Status::StreamEnd;
            if written > 0 {
                return Ok(written);
            }
            if !self.is_over && !has_more {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(0)
    }
}

/// RFC 1950 §2.2.
fn has_zlib_header(input: &[u8]) -> bool {
    matches!(input, [method, flags, ..]
        if method & 0x0f == 8 && method >> 4 <= 7 && u16::from_be_bytes([*method, *flags]) % 31 == 0)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::{DeflateEncoder, ZlibEncoder};

    use super::*;

    const TEXT: &[u8] = b"of the month of May, of the month of May, of the month of May";

    /// Gives one byte at a time.
    struct Slow<'a>(&'a [u8]);

    impl Read for Slow<'_> {
        fn read(&mut self, output: &mut [u8]) -> io::Result<usize> {
            let most = output.len().min(1);
            self.0.read(output.get_mut(..most).unwrap_or_default())
        }
    }

    fn deflated() -> [Vec<u8>; 4] {
        let stored = Compression::none();
        let of = |level| {
            let mut zlib = ZlibEncoder::new(Vec::new(), level);
            zlib.write_all(TEXT).unwrap();
            let mut bare = DeflateEncoder::new(Vec::new(), level);
            bare.write_all(TEXT).unwrap();
            [zlib.finish().unwrap(), bare.finish().unwrap()]
        };
        let [[one, two], [three, four]] = [of(Compression::best()), of(stored)];
        [one, two, three, four]
    }

    fn decoded(coding: &Coding, source: impl Read) -> io::Result<Vec<u8>> {
        let mut content = Vec::new();
        coding.decoder(source).read_to_end(&mut content)?;
        Ok(content)
    }

    #[test]
    fn coding_with_one_field_value_is_what_the_registry_says() {
        let rows: [(&[&str], Result<Coding, ()>); 26] = [
            (&[], Ok(Coding::Identity)),
            (&[""], Ok(Coding::Identity)),
            (&[" Identity "], Ok(Coding::Identity)),
            (&["gzip"], Ok(Coding::Gzip)),
            (&["X-GZIP"], Ok(Coding::Gzip)),
            (&["gzip,"], Ok(Coding::Gzip)),
            (&["", "gzip"], Ok(Coding::Gzip)),
            (&["identity, gzip"], Ok(Coding::Gzip)),
            (&["deflate"], Ok(Coding::Deflate)),
            (&["br"], Err(())),
            (&["zstd"], Err(())),
            (&["Compress"], Err(())),
            (&["utf-8, br"], Err(())),
            (&["br", "utf-8"], Err(())),
            (&["gzip, gzip"], Err(())),
            (&["gzip", "deflate"], Err(())),
            (&["UTF-8"], Ok(Coding::Unknown("utf-8".into()))),
            (&["none"], Ok(Coding::Unknown("none".into()))),
            (&["binary"], Ok(Coding::Unknown("binary".into()))),
            (&["8bit"], Ok(Coding::Unknown("8bit".into()))),
            (&["base64"], Ok(Coding::Unknown("base64".into()))),
            (&["aws-chunked"], Ok(Coding::Unknown("aws-chunked".into()))),
            (&["image/png"], Ok(Coding::Unknown("image/png".into()))),
            (
                &["aws-chunked,gzip"],
                Ok(Coding::Unknown("aws-chunked,gzip".into())),
            ),
            (
                &["utf-8", "gzip"],
                Ok(Coding::Unknown("utf-8, gzip".into())),
            ),
            (&["\u{e9}"], Ok(Coding::Unknown("\u{e9}".into()))),
        ];
        for (values, expected) in rows {
            let found = Coding::of(values.iter().map(|value| value.as_bytes()));
            assert_eq!(found.map_err(|_| ()), expected, "{values:?}");
        }
    }

    #[test]
    fn deflate_with_and_without_a_zlib_header_is_decoded() {
        for packed in deflated() {
            assert_eq!(decoded(&Coding::Deflate, &*packed).unwrap(), TEXT);
            assert_eq!(decoded(&Coding::Deflate, Slow(&packed)).unwrap(), TEXT);
            let more = [&packed[..], b"more"].concat();
            assert_eq!(decoded(&Coding::Deflate, &*more).unwrap(), TEXT);
        }
    }

    #[test]
    fn deflate_that_is_cut_off_anywhere_is_an_error() {
        for packed in deflated() {
            for end in 0..packed.len() {
                let cut = packed.get(..end).unwrap();
                assert!(decoded(&Coding::Deflate, cut).is_err(), "{end}");
                assert!(decoded(&Coding::Deflate, Slow(cut)).is_err(), "{end}");
            }
        }
        assert!(decoded(&Coding::Deflate, &b"of the month of May"[..]).is_err());
    }

    #[test]
    fn unknown_coding_needs_bytes_that_show_their_type() {
        let coding = Coding::Unknown("utf-8".into());
        assert_eq!(coding.check(b"GIF89a\x01\0\x01\0\0\0\0;"), Ok(()));
        for text in [&b"hello"[..], b"", b"\x1b\x03\x00"] {
            assert!(coding.check(text).is_err());
        }
    }
}
