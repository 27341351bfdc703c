//! Types for the values that the options of a run can have.

use std::str::FromStr;
use std::time::Duration;

use crate::error::Error;
use crate::mime::ScanLimits;

/// A media type or a range of media types: `image/png`, `image/*`, `*/*`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TypePattern {
    main: String,
    sub: String,
}

impl TypePattern {
    /// Returns whether the pattern includes a media type `type/subtype` (in any case, without parameters).
    pub fn matches(&self, essence: &str) -> bool {
        let (main, sub) = essence.split_once('/').unwrap_or((essence, ""));
        (self.main == "*" || self.main.eq_ignore_ascii_case(main))
            && (self.sub == "*" || self.sub.eq_ignore_ascii_case(sub))
    }

    /// Returns whether the pattern includes all media types that `other` includes.
    #[cfg(feature = "cli")]
    pub(crate) fn includes(&self, other: &Self) -> bool {
        (self.main == "*" || self.main == other.main) && (self.sub == "*" || self.sub == other.sub)
    }
}

impl FromStr for TypePattern {
    type Err = Error;

    /// Parses `type/subtype`, `type/*`, `*/*` or `*`, in any case.
    ///
    /// # Errors
    /// [`Error::Usage`] if the text has another form.
    fn from_str(text: &str) -> Result<Self, Error> {
        let wrong = || {
            let what = format!("'{text}' is not a media type such as image/png or image/*");
            Error::Usage(what.into())
        };
        let lower = text.trim().to_ascii_lowercase();
        let (main, sub) = match lower.as_str() {
            "*" => ("*", "*"),
            other => other.split_once('/').ok_or_else(wrong)?,
        };
        let is_of_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&byte);
        let token = |part: &str| part == "*" || !part.is_empty() && part.bytes().all(is_of_token);
        if !token(main) || !token(sub) || (main == "*" && sub != "*") {
            return Err(wrong());
        }
        Ok(Self {
            main: main.to_owned(),
            sub: sub.to_owned(),
        })
    }
}

/// Treatment of signed and encrypted parts (P6 of docs/design.md).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
pub enum Protected {
    /// Signed and encrypted parts are left unchanged, byte for byte.
    #[default]
    Leave,
    /// Signed and encrypted parts are rewritten like other parts. Afterwards, their signatures are invalid.
    Rewrite,
}

/// Treatment of relative links.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
pub enum Links {
    /// Relative links become absolute URLs, or links to the part of the same message to which they refer.
    #[default]
    Resolve,
    /// Relative links are left unchanged.
    Keep,
}

/// Which content of HTML documents is embedded as parts of the mail: `--embed`, `--embed-kinds` and `--trackers`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Embed {
    /// Whether content of `data:` URLs is embedded.
    pub data: bool,
    /// Whether content on the web is embedded. [`Policy::with_fetch`](super::Policy::with_fetch) must also allow the scheme.
    pub remote: bool,
    /// Whether pictures are embedded.
    pub pictures: bool,
    /// Whether fonts of style sheets are embedded.
    pub fonts: bool,
    /// Whether audio and video are embedded.
    pub media: bool,
    /// Whether style sheets of `<link>` and `@import` are embedded. The pictures and fonts that they use are embedded too, if
    /// `pictures` and `fonts` are set.
    pub styles: bool,
    /// Treatment of tracking pictures.
    pub trackers: Trackers,
}

impl Default for Embed {
    /// By default nothing is embedded. If `data` or `remote` is set, only pictures are embedded.
    fn default() -> Self {
        Self {
            data: false,
            remote: false,
            pictures: true,
            fonts: false,
            media: false,
            styles: false,
            trackers: Trackers::default(),
        }
    }
}

impl Embed {
    /// Returns whether any content is embedded.
    pub fn is_on(self) -> bool {
        self.data || self.remote
    }

    /// Returns whether only `data:` URLs matter, so that documents without them can be skipped.
    pub(crate) fn is_only_data(self) -> bool {
        self.data && !self.remote && self.trackers == Trackers::Leave
    }
}

/// Treatment of tracking pictures: remote pictures that are hidden or at most 3 by 3 pixels large. Retrieving them
/// shows the sender that the mail was read.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
pub enum Trackers {
    /// Tracking pictures are left unchanged, and no requests are sent for them.
    #[default]
    Leave,
    /// Each tracking picture is replaced with the same transparent picture, and no requests are sent.
    Blank,
    /// Tracking pictures are retrieved like other pictures, which tells the sender that the mail was read.
    Fetch,
}

/// Treatment of mail if a retrieval fails temporarily.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
pub enum OnFailure {
    /// The reference is left unchanged, and the mail is delivered.
    #[default]
    Leave,
    /// The command ends without output and with exit status 75, so that the mail system tries the mail again later.
    Defer,
}

/// Limits on the work for one message.
#[non_exhaustive]
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Limits {
    /// `--max-body`: maximum size of one retrieved body after decompression, in bytes.
    pub body: u64,
    /// `--max-growth`: maximum growth of one message, in bytes.
    pub growth: u64,
    /// `--max-fetches`: maximum number of retrievals for one message.
    pub fetches: u32,
    /// `--max-message`: maximum size of a message with all retrieved content, in bytes. `None` is no limit.
    pub message: Option<u64>,
    /// `--max-redirects`: maximum number of redirects in one retrieval.
    pub redirects: u32,
    /// `--timeout`: time limit for one retrieval.
    pub timeout: Duration,
    /// `--deadline`: time limit for all retrievals of one message. The processing may end later, by a quarter of this time and
    /// at most by 5 seconds, so that content that arrived shortly before the limit is still inserted.
    pub deadline: Duration,
    /// `--max-in-flight`: maximum number of parallel retrievals for all messages of a run together
    /// ([`in_flight`](crate::fetch::Fetcher::in_flight)). It is also the maximum for one message, with any
    /// [`Fetch`](crate::fetch::Fetch).
    pub in_flight: usize,
    /// `--max-depth`: maximum depth of nested parts. Deeper parts are left unchanged.
    pub depth: usize,
    /// `--max-parts`: maximum number of parts of a message. Further parts are left unchanged.
    pub parts: usize,
    /// `--max-header`: maximum size of one header section, in bytes. Headers can contain data: URLs.
    pub header: usize,
    /// `--max-work`: limit on processing, so that a hostile message cannot keep the program busy. The maximum number of
    /// bytes to read is the product of this factor and the size of the message with its retrieved content. The allowed
    /// growth ([`growth`](Self::growth)) is added to this product.
    pub work: u64,
}

impl Limits {
    pub(crate) fn scan(&self) -> ScanLimits {
        ScanLimits {
            depth: self.depth,
            parts: self.parts,
            header: self.header,
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body: 25 << 20,
            growth: 50 << 20,
            fetches: 32,
            message: None,
            redirects: 5,
            timeout: Duration::from_secs(20),
            deadline: Duration::from_secs(60),
            in_flight: 8,
            depth: 64,
            parts: 10_000,
            header: 64 << 20,
            work: 32,
        }
    }
}
