//! Sentences for a person, and the settings that they speak of.
//!
//! A library has no options, so its sentences name none: a [`Detail`] knows where it speaks of a [`Setting`], and
//! the program puts the name of the option there (`cli/wording.rs`).

use std::fmt;
use std::ops::Deref;

use serde::Serialize;

/// A choice with a row for each variant: its name, its words, and what it means. With a number, `ALL` is an array of so many.
macro_rules! words {
    (@all $($variant:ident)*) => {
        /// Every one.
        pub const ALL: &'static [Self] = &[$(Self::$variant,)*];
    };
    (@all [$count:literal] $($variant:ident)*) => {
        /// Every one.
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

            /// The words that stand for it in reports and in sentences of the library.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $words,)* }
            }
        }
    };
}
pub(crate) use words;

words! {
    /// What a run was told, of which a [`Detail`] speaks: most are values of
    /// [`Policy`](crate::Policy) and its [`Limits`](crate::policy::Limits).
    #[non_exhaustive]
    pub enum Setting {
        Body "the limit of one body" "Bytes of one retrieved body.";
        Growth "the limit of growth" "Bytes that one message may gain.";
        Message "the limit of the message" "Bytes of a message with everything put in.";
        Fetches "the limit of retrievals" "Retrievals for one message.";
        Redirects "the limit of redirects" "Redirects for one retrieval.";
        Timeout "the time of one retrieval" "How long one retrieval may take.";
        Deadline "the deadline" "How long all retrievals of one message, and the work on it, may take.";
        Depth "the limit of depth" "How deep parts may be nested.";
        Parts "the limit of parts" "How many parts of a message are looked at.";
        Header "the limit of a header" "Bytes of one header section.";
        Work "the limit of work" "How many times a message may be looked at.";
        Fetch "the policy" "Schemes that may be retrieved.";
        AllowHost "the policy" "The hosts that may be asked.";
        DenyHost "the policy" "Hosts that may not.";
        DenyHostFile "the list of hosts" "Lists of hosts that may not.";
        AllowNet "the policy" "Networks that may be asked although they are not globally reachable.";
        AllowPort "the policy" "Ports that may be used in addition to the scheme's own.";
        AllowUserinfo "the policy" "URLs with a user name or password.";
        CaFile "the certificates" "Certificates that are trusted in addition to the system's.";
        AllowType "the policy" "The media types that may be put in.";
        DenyType "the policy" "Media types that may not.";
        AcceptMismatch "the policy" "Content of another type than declared.";
        Protected "the policy" "Treatment of signed and encrypted parts.";
        Trackers "the policy" "Treatment of tracking pictures.";
        Inline "the choice" "Whether attachments leave that the mail shows.";
        Follow "the policy" "Which forms of references are followed.";
        FileRoot "file root" "Directories below which files may be read.";
        Attachments "the folders of attachments" "Folders of what mails name by a URL of elsewhere.";
        Resolver "the resolver" "The program that gets what needs a sign-in.";
        Proxy "the proxy" "Where http and https go.";
        Cache "the cache" "The folder that keeps answers.";
        ArchiveAny "the archive" "Whether any URL may be sent to an archive.";
        ArchiveWindow "the window" "How far from the mail's date a capture may be.";
        Expanded "the limit of expanded bytes" "Bytes of what is compressed, when it is expanded.";
        Format "the format" "Format of the sources.";
        OutputFormat "the form of the result" "Format of the result.";
        InPlace "a conversion in place" "Whether the source is replaced.";
        Output "a destination" "Destination of the result.";
        Range "the range" "Which piece of a mailbox is done.";
        Backup "the backup" "The suffix of a copy of the source.";
        Expect "the piece" "Length and modification time of the source when it was split.";
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// A sentence for a person, without a full stop; it may quote the mail. It is read as the text it is, and may speak of
/// [`Setting`]s.
///
/// ```
/// use embody::Policy;
/// use embody::policy::Limits;
/// use embody::report::Setting;
///
/// let policy = Policy::default().with_limits(Limits::default().with_body(10));
/// let refusal = policy.judge_size(12).expect_err("that is too much");
/// assert_eq!(refusal.detail, "12 bytes, the limit of one body is 10");
/// assert_eq!(refusal.detail.settings().collect::<Vec<_>>(), [Setting::Body]);
/// assert_eq!(refusal.detail.measured(), Some((10, 12)));
/// ```
#[derive(Clone, Default, PartialEq, Eq, Hash, Debug, Serialize)]
#[serde(transparent)]
pub struct Detail {
    text: String,
    /// In the order of the text.
    #[serde(skip)]
    named: Vec<Mention>,
}

/// Where the words of a setting stand in the text, and what it allows and what was found.
type Mention = (Setting, usize, Option<(u64, u64)>);

impl Detail {
    /// The settings that it speaks of.
    pub fn settings(&self) -> impl Iterator<Item = Setting> {
        self.named.iter().map(|(setting, ..)| *setting)
    }

    /// What a limit allows, and what was found, where both are known.
    pub fn measured(&self) -> Option<(u64, u64)> {
        self.named.iter().find_map(|(.., measured)| *measured)
    }

    /// The text with other words for its settings.
    pub fn worded(&self, words: impl Fn(Setting) -> &'static str) -> String {
        let mut text = String::with_capacity(self.text.len());
        let mut until = 0;
        for &(setting, at, _) in &self.named {
            text.push_str(self.text.get(until..at).unwrap_or_default());
            text.push_str(words(setting));
            until = at + setting.as_str().len();
        }
        text.push_str(self.text.get(until..).unwrap_or_default());
        text
    }

    pub(crate) fn naming(mut self, setting: Setting) -> Self {
        self.named.push((setting, self.text.len(), None));
        self.text.push_str(setting.as_str());
        self
    }

    /// For the setting named last.
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
            text: self.text.get(octets..).unwrap_or_default().to_owned(),
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
    fn settings_keep_their_places_when_details_are_put_together() {
        let detail = Detail::from("ä: ").naming(Setting::Range);
        let detail = detail.then(" is not for ").naming(Setting::InPlace);
        assert_eq!(detail, "ä: the range is not for a conversion in place");
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
