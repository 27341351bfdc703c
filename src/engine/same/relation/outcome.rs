//! The result of a comparison: the changes that embody made, or the reason why embody cannot have made them.

/// The changes that embody made to a message.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Changes {
    /// Number of links that refer to content outside the mail in the old message, and to a part of the mail in the new one.
    pub(crate) embedded: usize,
    /// Number of attachments that were moved to a store. A note of `embody detach` with the hash of the content is in their
    /// place.
    pub(crate) detached: usize,
    /// Number of attachments that were put back from a store.
    pub(crate) restored: usize,
    /// Number of references whose content is now in the mail.
    pub(crate) filled: usize,
    /// Number of documents whose relative links are now absolute.
    pub(crate) resolved: usize,
    /// 1 if `winmail.dat` or a similar part was unpacked.
    pub(crate) opened: usize,
    /// Number of Eudora messages that were converted back to MIME.
    pub(crate) unmarked: usize,
    /// Number of messages that were removed because another copy of the mail is at least as complete.
    pub(crate) merged: usize,
}

/// The reason why a difference between two messages cannot be a change that embody made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Altered {
    /// A header field that embody never changes is different.
    Header,
    /// A part is missing, or has different content.
    Part {
        number: String,
        essence: String,
        size: u64,
    },
    /// The fields of a part are different.
    PartFields { number: String },
    /// A link in a document leads to another URL than before.
    Link { number: String },
    /// An enclosed message, or the text around parts, is missing or different.
    Around,
    /// The new message has parts to which nothing in the old message refers.
    More,
    /// The closing boundary line of a multipart is missing.
    Cut,
    /// Only the encoding of parts, the boundary lines, or the white space in fields is different.
    Encoding,
}

impl std::fmt::Display for Altered {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Header => write!(f, "its header is different"),
            Self::Part {
                number,
                essence,
                size,
            } => {
                let number = match number.as_str() {
                    "" => "1",
                    number => number,
                };
                write!(
                    f,
                    "part {number} ({essence}, {size} bytes) of the old message is missing or different"
                )
            }
            Self::PartFields { number } => {
                write!(f, "the header fields of part {number} are different")
            }
            Self::Link { number } => write!(f, "a link in part {number} leads to a different URL"),
            Self::Around => write!(
                f,
                "an enclosed message, or the text between the parts, is different"
            ),
            Self::More => write!(
                f,
                "the new message has parts that are not from the old message"
            ),
            Self::Cut => write!(f, "the end of the new message is missing"),
            Self::Encoding => write!(
                f,
                "the encoding of parts, or the white space in the header, is different"
            ),
        }
    }
}

impl Changes {
    pub(crate) fn add(&mut self, other: Self) {
        self.embedded += other.embedded;
        self.detached += other.detached;
        self.restored += other.restored;
        self.filled += other.filled;
        self.resolved += other.resolved;
        self.opened += other.opened;
        self.unmarked += other.unmarked;
        self.merged += other.merged;
    }
}
