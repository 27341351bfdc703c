//! Sentences for the user, and the settings that they mention.
//!
//! A sentence of the library does not contain the names of options, because a library has no options. A [`Detail`]
//! records where its text mentions a [`Setting`], and the program inserts the name of the option there
//! (`cli/wording.rs`).

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;

/// Defines an enum from a table. Each row has the name of the variant, its text in reports, and its documentation.
/// `ALL` is a slice of all variants, or an array if the table states their number.
macro_rules! words {
    (@all $($variant:ident)*) => {
        /// All values, in the order of their definition.
        pub const ALL: &'static [Self] = &[$(Self::$variant,)*];
    };
    (@all [$count:literal] $($variant:ident)*) => {
        /// All values, in the order of their definition.
        pub const ALL: [Self; $count] = [$(Self::$variant,)*];
    };
    ($(#[$about:meta])* pub enum $name:ident $([$count:literal])? { $($variant:ident $words:literal $meaning:literal;)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum $name {
            $(#[doc = $meaning] $variant,)*
        }

        impl $name {
            $crate::detail::words! { @all $([$count])? $($variant)* }

            /// Returns the words for this value in reports and in sentences of the library.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $words,)* }
            }
        }
    };
}
pub(crate) use words;

words! {
    /// A setting that a [`Detail`] mentions. Most settings are fields of [`Policy`](crate::Policy) and its
    /// [`Limits`](crate::engine::policy::Limits).
    #[non_exhaustive]
    pub enum Setting {
        Body "the limit of one retrieved file" "The maximum size of one retrieved file, in bytes.";
        Growth "the limit of growth" "The maximum growth of one message, in bytes.";
        Message "the limit of the message" "The maximum size of a message with all retrieved content, in bytes.";
        Fetches "the limit of retrievals" "The maximum number of retrievals for one message.";
        Redirects "the limit of redirects" "The maximum number of redirects in one retrieval.";
        Timeout "the time limit of one retrieval" "The time limit for one retrieval.";
        Deadline "the deadline" "The time limit for one message, with all its retrievals.";
        Depth "the limit of depth" "The maximum depth of nested parts.";
        Parts "the limit of parts" "The maximum number of parts in a message.";
        Header "the limit of a header" "The maximum size of one header section, in bytes.";
        Work "the limit of work" "The limit on the number of bytes that are read to process a message, as a multiple of the size of the message.";
        Fetch "the policy" "The URL schemes that may be retrieved.";
        AllowHost "the policy" "The hosts to which requests are allowed.";
        DenyHost "the policy" "The hosts to which requests are not allowed.";
        DenyHostFile "the list of hosts" "Files with hosts to which requests are not allowed.";
        AllowNet "the policy" "Private networks to which requests are allowed.";
        AllowPort "the policy" "Allowed ports in addition to the default port of the scheme.";
        AllowUserinfo "the policy" "Whether URLs with a user name or password are retrieved.";
        CaFile "the certificates" "Certificates that are trusted in addition to those of the system.";
        AllowType "the policy" "The media types that may be inserted into a message.";
        DenyType "the policy" "The media types that may not be inserted into a message.";
        AcceptMismatch "the policy" "Whether content is accepted if its type differs from the declared type.";
        Protected "the policy" "Treatment of signed and encrypted parts.";
        Trackers "the policy" "Treatment of tracking pictures.";
        Inline "the choice" "Whether `detach` also moves attachments that the text of the mail displays.";
        Follow "the policy" "The kinds of references that are followed.";
        FileRoot "the file roots" "The directories below which files may be read.";
        Attachments "the folders of attachments" "The directories in which missing attachments are searched for.";
        Copies "the mailboxes of copies" "Mailboxes with other copies of the mail, from which missing parts are taken.";
        Resolver "the resolver" "The program that retrieves files that require a login.";
        Proxy "the proxy" "The proxy for http and https.";
        Cache "the cache" "The directory in which server responses are cached.";
        ArchiveAny "the archive" "Whether any URL may be sent to a web archive.";
        ArchiveWindow "the archive window" "The longest time between the date of the mail and the archived capture.";
        Expanded "the limit of expanded bytes" "The maximum size of decompressed data, in bytes.";
        Format "the source format" "Format of the sources.";
        OutputFormat "the output format" "Format of the result.";
        InPlace "the conversion in place" "Whether the result replaces the source.";
        Output "the destination" "Destination of the result.";
        Range "the range" "The part of a mailbox that is processed, as a range of bytes.";
        Backup "the backup" "The suffix of the backup copy of the source.";
        Expect "the expected length" "The length and modification time that the source had when it was split.";
        Trash "the trash folder" "The folder of an IMAP account to which old messages are moved.";
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// Maximum number of characters that a sentence quotes from a response of a server.
pub(crate) const QUOTED: usize = 300;

/// Returns the start of a text that a server or another program sent, for a sentence about this text. A text of more than
/// `longest` characters ends with `…` and the number of the characters that are left out, so that a cut text is never taken for
/// the whole text.
pub(crate) fn excerpt(text: &str, longest: usize) -> Cow<'_, str> {
    if text.len() <= longest {
        return Cow::Borrowed(text);
    }
    let Some((at, _)) = text.char_indices().nth(longest) else {
        return Cow::Borrowed(text);
    };
    let (start, rest) = text.split_at(at);
    Cow::Owned(match rest.chars().count() {
        1 => format!("{start}… (1 more character)"),
        count => format!("{start}… ({count} more characters)"),
    })
}

/// A sentence for the user, without a full stop. It can quote the mail, and it can mention [`Setting`]s. A `Detail`
/// can be used like a `str`, which is the text of the sentence.
///
/// ```
/// use embody::Policy;
/// use embody::policy::Limits;
/// use embody::report::Setting;
///
/// let policy = Policy::default().with_limits(Limits::default().with_body(10));
/// let refusal = policy.judge_size(12).expect_err("that is too much");
/// assert_eq!(refusal.detail, "the content has 12 bytes; the limit of one retrieved file is 10");
/// assert_eq!(refusal.detail.settings().collect::<Vec<_>>(), [Setting::Body]);
/// assert_eq!(refusal.detail.measured(), Some((10, 12)));
/// ```
#[derive(Clone, Default, PartialEq, Eq, Hash, Debug, serde::Serialize)]
#[serde(transparent)]
pub struct Detail {
    text: String,
    /// The settings that the text mentions, in the order of the text.
    #[serde(skip)]
    named: Vec<Mention>,
}

/// A setting that a text mentions, the byte offset of its words in the text, and for a limit its value and the measured value.
type Mention = (Setting, usize, Option<(u64, u64)>);

impl Detail {
    /// Returns the settings that the text mentions, in order.
    pub fn settings(&self) -> impl Iterator<Item = Setting> {
        self.named.iter().map(|(setting, ..)| *setting)
    }

    /// Returns the value of the limit that was exceeded and the measured value, if both are known.
    pub fn measured(&self) -> Option<(u64, u64)> {
        self.named.iter().find_map(|(.., measured)| *measured)
    }

    /// Returns the text with the words for each setting replaced by `words(setting)`, for example the name of an option.
    pub fn worded(&self, words: impl Fn(Setting) -> &'static str) -> String {
        let mut text = String::with_capacity(self.text.len());
        let mut until = 0;
        for &(setting, at, _) in &self.named {
            text.push_str(&self.text[until..at]);
            text.push_str(words(setting));
            until = at + setting.as_str().len();
        }
        text.push_str(&self.text[until..]);
        text
    }

    pub(crate) fn naming(mut self, setting: Setting) -> Self {
        self.named.push((setting, self.text.len(), None));
        self.text.push_str(setting.as_str());
        self
    }

    /// Adds the value of the limit and the measured value to the setting that was appended last.
    pub(crate) fn measuring(mut self, allowed: u64, found: u64) -> Self {
        if let Some((.., measured)) = self.named.last_mut() {
            *measured = Some((allowed, found));
        }
        self
    }

    pub(crate) fn then(mut self, more: impl Into<Self>) -> Self {
        self.push(more);
        self
    }

    pub(crate) fn push(&mut self, more: impl Into<Self>) {
        let more = more.into();
        let length = self.text.len();
        self.text.push_str(&more.text);
        let named = more.named.into_iter();
        self.named
            .extend(named.map(|(setting, at, measured)| (setting, length + at, measured)));
    }

    pub(crate) fn behind(&self, octets: usize) -> Self {
        let behind = |&(setting, at, measured): &Mention| {
            let at = usize::checked_sub(at, octets)?;
            Some((setting, at, measured))
        };
        Self {
            text: self.text[octets..].to_owned(),
            named: self.named.iter().filter_map(behind).collect(),
        }
    }
}

impl Deref for Detail {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for Detail {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

impl From<String> for Detail {
    fn from(text: String) -> Self {
        let named = Vec::new();
        Self { text, named }
    }
}

impl From<&str> for Detail {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl PartialEq<str> for Detail {
    fn eq(&self, other: &str) -> bool {
        self.text == other
    }
}

impl PartialEq<&str> for Detail {
    fn eq(&self, other: &&str) -> bool {
        self.text == *other
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loud(setting: Setting) -> &'static str {
        match setting {
            Setting::Range => "RANGE",
            _ => "OTHER",
        }
    }

    #[test]
    fn excerpt_of_a_longer_text_counts_the_characters_that_are_left_out() {
        assert!(matches!(excerpt("äöü", 3), Cow::Borrowed("äöü")));
        assert_eq!(excerpt("äöüß", 3), "äöü… (1 more character)");
        assert_eq!(excerpt("äöüß!", 3), "äöü… (2 more characters)");
        assert_eq!(excerpt("", 0), "");
    }

    #[test]
    fn settings_keep_their_places_when_details_are_put_together() {
        let detail = Detail::from("ä: ")
            .naming(Setting::Range)
            .then(" is not for ")
            .naming(Setting::InPlace);
        assert_eq!(detail, "ä: the range is not for the conversion in place");
        let mut detail = Detail::from("front: ").then(detail);
        detail.push("; ");
        detail.push(Detail::default().naming(Setting::Body).measuring(10, 12));
        assert_eq!(
            detail.worded(loud),
            "front: ä: RANGE is not for OTHER; OTHER"
        );
        assert_eq!(detail.measured(), Some((10, 12)));
        let behind = detail.behind("front: ".len());
        assert_eq!(behind.worded(loud), "ä: RANGE is not for OTHER; OTHER");
        assert_eq!(behind.worded(Setting::as_str), *behind);
        assert_eq!(detail.settings().count(), 3);
    }
}
