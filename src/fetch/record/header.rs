//! The header of a record (ISO 28500:2017 §4 to §6): a list of fields. The order is kept.

use std::fmt;
use std::io::{self, BufRead};
use std::time::SystemTime;

use crate::engine::report::rfc3339;

/// The first line of a WARC record: the version of the format.
const VERSION: &str = "WARC/1.1";

/// Maximum length of a header in bytes, both read and written. It is large, because a header contains a URL, which may be long.
pub(super) const LONGEST: u64 = 1 << 20;

/// Names of header fields.
pub(crate) mod names {
    pub(crate) const TYPE: &str = "WARC-Type";
    pub(crate) const ID: &str = "WARC-Record-ID";
    pub(crate) const DATE: &str = "WARC-Date";
    pub(crate) const URI: &str = "WARC-Target-URI";
    pub(crate) const ADDRESS: &str = "WARC-IP-Address";
    pub(crate) const CONCURRENT: &str = "WARC-Concurrent-To";
    pub(crate) const BLOCK: &str = "WARC-Block-Digest";
    pub(crate) const PAYLOAD: &str = "WARC-Payload-Digest";
    pub(crate) const TRUNCATED: &str = "WARC-Truncated";
    pub(crate) const PROFILE: &str = "WARC-Profile";
    pub(crate) const REFERS_TO: &str = "WARC-Refers-To";
    pub(crate) const REFERS_TO_URI: &str = "WARC-Refers-To-Target-URI";
    pub(crate) const REFERS_TO_DATE: &str = "WARC-Refers-To-Date";
    pub(crate) const INFO_ID: &str = "WARC-Warcinfo-ID";
    pub(crate) const FILE_NAME: &str = "WARC-Filename";
    pub(crate) const MEDIA_TYPE: &str = "Content-Type";
    pub(crate) const LENGTH: &str = "Content-Length";
}

/// The type of a WARC record (ISO 28500:2017 §6).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RecordType {
    Warcinfo,
    Request,
    Response,
    Resource,
    Revisit,
    Metadata,
}

impl RecordType {
    const ALL: [Self; 6] = [
        Self::Warcinfo,
        Self::Request,
        Self::Response,
        Self::Resource,
        Self::Revisit,
        Self::Metadata,
    ];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Warcinfo => "warcinfo",
            Self::Request => "request",
            Self::Response => "response",
            Self::Resource => "resource",
            Self::Revisit => "revisit",
            Self::Metadata => "metadata",
        }
    }
}

/// The header of a record. Names of fields are compared case-insensitively.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct RecordHeader {
    fields: Vec<(String, String)>,
}

impl RecordHeader {
    /// Creates a header with a type, an id and a time. The id consists of `urn:uuid:` and 36 characters.
    pub(crate) fn new(kind: RecordType, id: &str, at: SystemTime) -> Self {
        let mut header = Self { fields: Vec::new() };
        header.add(names::TYPE, kind.as_str());
        header.add(names::ID, &format!("<{id}>"));
        header.add(names::DATE, &rfc3339(at));
        header
    }

    /// Adds a field. Control characters are replaced with spaces, so that the value cannot begin a new line.
    pub(crate) fn add(&mut self, name: &str, value: &str) {
        let value = value.replace(|letter: char| letter.is_control(), " ");
        self.fields.push((name.to_owned(), value));
    }

    /// Returns the value of the first field with this name.
    pub(crate) fn value(&self, name: &str) -> Option<&str> {
        let mut fields = self.fields.iter();
        let field = fields.find(|(known, _)| known.eq_ignore_ascii_case(name));
        field.map(|(_, value)| value.as_str())
    }

    /// Returns the type of the record, or `None` for an unknown type.
    pub(crate) fn kind(&self) -> Option<RecordType> {
        let name = self.value(names::TYPE)?;
        let mut all = RecordType::ALL.into_iter();
        all.find(|kind| kind.as_str().eq_ignore_ascii_case(name))
    }

    /// Returns the id of the record without angle brackets.
    pub(crate) fn id(&self) -> Option<&str> {
        self.value(names::ID).map(unbracketed)
    }

    /// Returns the URL of the record. Files in the format WARC/1.0 may have it in angle brackets, which are removed.
    pub(crate) fn uri(&self) -> Option<&str> {
        self.value(names::URI).map(unbracketed)
    }

    /// Returns the length of the block in bytes.
    pub(crate) fn length(&self) -> Option<u64> {
        self.value(names::LENGTH)?.parse().ok()
    }

    /// Reads the header of a record and the empty line after it. Returns `None` at the end of the input.
    ///
    /// # Errors
    /// Errors of the source, [`io::ErrorKind::UnexpectedEof`] if the header is truncated, and
    /// [`io::ErrorKind::InvalidData`] if the input is not a header.
    pub(crate) fn read(source: &mut impl BufRead) -> io::Result<Option<Self>> {
        let invalid = || io::Error::from(io::ErrorKind::InvalidData);
        let mut source = io::Read::take(source, LONGEST);
        let mut line = |is_first: bool| -> io::Result<Option<String>> {
            let mut octets = Vec::new();
            if source.read_until(b'\n', &mut octets)? == 0 && is_first {
                return Ok(None);
            }
            let line = octets
                .strip_suffix(b"\n")
                .ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof))?;
            let text = line.strip_suffix(b"\r").unwrap_or(line);
            Ok(Some(String::from_utf8_lossy(text).into_owned()))
        };
        match line(true)? {
            None => return Ok(None),
            Some(version) if version.starts_with("WARC/") => {}
            Some(_) => return Err(invalid()),
        }
        let mut fields: Vec<(String, String)> = Vec::new();
        while let Some(text) = line(false)?.filter(|text| !text.is_empty()) {
            match (text.split_once(':'), fields.last_mut()) {
                // A line that begins with white space continues the value of the field before it (ISO 28500:2017 §4).
                (_, Some((_, value))) if text.starts_with([' ', '\t']) => {
                    value.push(' ');
                    value.push_str(text.trim());
                }
                (Some((name, value)), _) => {
                    fields.push((name.trim().to_owned(), value.trim().to_owned()));
                }
                (None, _) => return Err(invalid()),
            }
        }
        Ok(Some(Self { fields }))
    }
}

/// Writes the header in the form that it has in a WARC file, including the empty line at its end.
impl fmt::Display for RecordHeader {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{VERSION}\r\n")?;
        for (name, value) in &self.fields {
            write!(formatter, "{name}: {value}\r\n")?;
        }
        formatter.write_str("\r\n")
    }
}

fn unbracketed(value: &str) -> &str {
    let inner = value.strip_prefix('<').and_then(|it| it.strip_suffix('>'));
    inner.unwrap_or(value)
}

/// Formats a SHA-256 hash as the value of a digest field.
pub(crate) fn digest(sha256: &impl fmt::LowerHex) -> String {
    format!("sha256:{sha256:x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_is_read_back_and_a_value_cannot_start_a_new_line() {
        let at = SystemTime::UNIX_EPOCH;
        let mut header = RecordHeader::new(RecordType::Response, "urn:uuid:1", at);
        header.add(names::URI, "http://a.example/\r\nWARC-Type: warcinfo");
        header.add(names::LENGTH, "12");
        let text = header.to_string();
        let mut source = text.as_bytes();
        let read = RecordHeader::read(&mut source).unwrap().expect("a header");
        assert_eq!(
            (read.kind(), read.id()),
            (Some(RecordType::Response), Some("urn:uuid:1"))
        );
        assert_eq!(read.uri(), Some("http://a.example/  WARC-Type: warcinfo"));
        assert_eq!(read.length(), Some(12));
        assert!(source.is_empty());
        for length in 1..text.len() {
            let cut = RecordHeader::read(&mut &text.as_bytes()[..length]);
            assert!(cut.is_err(), "cut at {length}");
        }
        assert!(RecordHeader::read(&mut &b""[..]).unwrap().is_none());
    }
}
