//! Faults of TNEF streams.

/// A fault of a TNEF stream. The rest of the stream can usually be read.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum TnefDamage {
    /// The signature is missing.
    NoSignature,
    /// The stream ends inside an attribute, or the length of an attribute is wrong.
    Truncated,
    /// The checksum after an attribute does not match its content.
    Checksum,
    /// Bytes after the last attribute do not belong to any attribute.
    Trailing,
    /// A list of properties cannot be read to its end.
    Properties,
    /// Items are nested more deeply than the limit.
    TooDeep,
    /// The stream has more values than the limit.
    TooMany,
    /// The item is flagged as having attachments, but the stream contains none.
    NoAttachments,
    /// A text or the content of an attachment occurs twice, and the second one is different.
    Repeated,
    /// An attribute is longer than its kind can be, so its number is probably wrong.
    TooLong,
    /// An attribute with an unknown number has content.
    UnknownAttribute,
    /// An unknown property is large enough to be content.
    UnknownProperty,
}

impl TnefDamage {
    /// Returns a description of the fault for the report.
    pub fn what(self) -> &'static str {
        match self {
            Self::NoSignature => "the file does not begin like a winmail.dat file",
            Self::Truncated => "the end of the file is missing",
            Self::Checksum => "a checksum in the file is wrong",
            Self::Trailing => "the file has unknown bytes at the end",
            Self::Properties => "a list of properties in the file is damaged",
            Self::TooDeep => "the file has too many levels of items within items",
            Self::TooMany => "the file has too many properties",
            Self::NoAttachments => "the file says that it has attachments, but contains none",
            Self::Repeated => {
                "a text or an attachment occurs twice in the file, with different content"
            }
            Self::TooLong => "an attribute of the file is longer than its kind allows",
            Self::UnknownAttribute => {
                "the file has content in an attribute that embody does not know"
            }
            Self::UnknownProperty => "the file has content in a property that embody does not know",
        }
    }
    /// Whether the stream is intact, and merely contains content of an unknown kind.
    pub fn is_unknown(self) -> bool {
        matches!(self, Self::UnknownAttribute | Self::UnknownProperty)
    }
}
