//! Data of another format that were found in a message, and the sentence about them.

use crate::detail::Detail;
use crate::mailbox::not_mail::NotMail;

/// Data of another format in a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct AppendedData {
    /// Offset of the data in the message.
    pub(crate) at: usize,
    /// Name of the format.
    pub(crate) format: &'static str,
    /// Advice for data that embody does not read in a file of their own either. `None` if it reads them there.
    advice: Option<&'static str>,
}

/// Name of the format mbox.
const MBOX: &str = "an mbox";

/// Name of the messages of an MMDF mailbox that have a line of four Control-A characters in common.
const SHARED_LINE: &str = "messages after a line of four Control-A characters";

impl AppendedData {
    /// Returns data at an offset that embody reads in a file of their own.
    pub(super) const fn of(at: usize, format: &'static str) -> Self {
        Self {
            at,
            format,
            advice: None,
        }
    }

    /// Returns text at an offset that embody does not read in a file of its own either.
    pub(super) fn refused(at: usize, other: NotMail) -> Option<Self> {
        let NotMail::Format(format, advice) = other else {
            return None;
        };
        Some(Self {
            advice: Some(advice),
            ..Self::of(at, format)
        })
    }

    /// Returns an mbox at an offset.
    pub(super) fn mbox(at: usize) -> Self {
        Self::of(at, MBOX)
    }

    /// Returns the messages of an MMDF mailbox after a line that both ends a message and begins the next one.
    pub(super) fn shared_line(at: usize) -> Self {
        Self::of(at, SHARED_LINE)
    }

    /// Returns whether the data are text, of which a search in all bytes of a file reads every byte.
    #[cfg(feature = "cli")]
    pub(crate) fn is_text(self) -> bool {
        self.is_mbox() || self.format == SHARED_LINE || self.advice.is_some()
    }

    /// Returns whether the data are an mbox. A search in all bytes of a file reads its text.
    pub(crate) fn is_mbox(self) -> bool {
        self.format == MBOX || self.format == NotMail::QUOTED_MBOX.name()
    }

    pub(super) fn shifted(self, by: usize) -> Self {
        Self {
            at: self.at + by,
            ..self
        }
    }

    /// Returns the sentence for a report. `message` names the message, and `offset` is the offset of the message in its file. It is
    /// `None` if the file does not contain the bytes of the message.
    pub(crate) fn detail(self, message: &str, offset: Option<u64>) -> Detail {
        let at = self.at;
        if self.format == SHARED_LINE {
            return format!(
                "{message} contains further messages, because one line of four Control-A characters is between them instead \
                 of two; double each such line except for the first and the last one, for example with \
                 sed -e '2,$s/^\\x01\\x01\\x01\\x01\\r*$/&\\n&/' -e '$s/\\n.*//', and read the new file"
            )
            .into();
        }
        let what = self.named(message);
        if let Some(advice) = self.advice {
            let (first, of) = match offset {
                Some(offset) => (offset + at as u64, ""),
                None => (at as u64, " of the message"),
            };
            let what = format!("{what}, from byte {first}{of} on");
            return format!("{what}; several mails in it were read as one; {advice}").into();
        }
        match offset {
            Some(offset) => {
                let first = offset + at as u64;
                format!(
                    "{what}, from byte {first} on; mail in them was not read; copy these bytes to a file of their own, for \
                     example with tail -c +{}, and read that file",
                    first + 1
                )
            }
            None => format!(
                "{what}, from byte {at} of the message on; mail in them was not read; unpack the file, copy these bytes to a \
                 file of their own, and read that file"
            ),
        }
        .into()
    }

    /// Returns the sentence for a search for references in all bytes of a file, which stops at such data. The arguments are those
    /// of [`detail`](Self::detail).
    #[cfg(feature = "cli")]
    pub(crate) fn advice_for_search(self, message: &str, offset: Option<u64>) -> String {
        let what = self.named(message);
        match offset {
            Some(offset) => {
                let first = offset + self.at as u64;
                format!(
                    "{what}, from byte {first} on; their content was not searched; move these bytes to a file of their own \
                     (tail -c +{} prints the file from there on), and name that file too",
                    first + 1
                )
            }
            None => format!(
                "{what}, from byte {} of the message on; their content was not searched; unpack the file, move these bytes to \
                 a file of their own, and name both files",
                self.at
            ),
        }
    }

    fn named(self, message: &str) -> String {
        let Self { at, format, .. } = self;
        match at {
            0 => format!("{message} consists of data of another format: {format}"),
            _ => format!("data of another format were appended to {message}: {format}"),
        }
    }
}
