//! The choices of a user, each one a value that has no third meaning.

use std::str::FromStr;
use std::time::Duration;

use crate::error::Error;
use crate::mime::ScanLimits;

/// A media type or a range of them: `image/png`, `image/*`, `*/*`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TypePattern {
    main: String,
    sub: String,
}

impl TypePattern {
    /// Whether `type/subtype` (any case, no parameters) falls under the pattern.
    pub fn matches(&self, essence: &str) -> bool {
        let (main, sub) = essence.split_once('/').unwrap_or((essence, ""));
        (self.main == "*" || self.main.eq_ignore_ascii_case(main))
            && (self.sub == "*" || self.sub.eq_ignore_ascii_case(sub))
    }
}

impl FromStr for TypePattern {
    type Err = Error;

    /// `type/subtype`, `type/*`, `*/*` or `*`, in any case.
    ///
    /// # Errors
    /// [`Error::Usage`] when the text is none of these.
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

/// What to do inside signed and encrypted parts (P6 of docs/design.md).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
pub enum Protected {
    /// Leave them, byte for byte.
    #[default]
    Leave,
    /// Rewrite them like any other part. Their signatures will not verify any more.
    Rewrite,
}

/// What to do with relative links.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
pub enum Links {
    /// Make them absolute, or point them at the sibling part they mean.
    #[default]
    Resolve,
    /// Leave them.
    Keep,
}

/// What HTML shows and is to become a part of the mail: `--embed`, `--embed-kinds`, `--trackers`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Embed {
    /// What stands in `data:` URLs.
    pub data: bool,
    /// What is on the web; [`super::Policy::fetch`] must allow the scheme besides.
    pub remote: bool,
    /// Pictures.
    pub pictures: bool,
    /// Fonts of style sheets.
    pub fonts: bool,
    /// Sound and video.
    pub media: bool,
    /// Style sheets of `<link>` and `@import`, and of what is wanted what they show.
    pub styles: bool,
    /// Remote pictures that nobody sees.
    pub trackers: Trackers,
}

impl Default for Embed {
    /// Nothing is embedded; if something is, it is pictures.
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
    /// Whether anything is to be embedded.
    pub fn is_on(self) -> bool {
        self.data || self.remote
    }

    /// Whether only documents matter that show something from a `data:` URL.
    pub(crate) fn is_only_data(self) -> bool {
        self.data && !self.remote && self.trackers == Trackers::Leave
    }
}

/// What to do with remote pictures that are at most 3 by 3 or hidden: they are there to be asked for.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
pub enum Trackers {
    /// Nobody is asked, nothing is touched.
    #[default]
    Leave,
    /// One transparent picture stands for all of them; nobody is asked.
    Blank,
    /// They are retrieved like others, which tells the sender that the mail was read.
    Fetch,
}

/// What a temporary failure does to a `filter` run.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
pub enum OnFailure {
    /// The part is left and the mail goes on.
    #[default]
    Leave,
    /// No output and exit status 75: the mail system tries again later.
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
    /// `--deadline`: time limit for all retrievals of one message. The work on the message may take a quarter longer, but at
    /// most 5 s.
    pub deadline: Duration,
    /// `--max-in-flight`: maximum number of retrievals at the same time, for all messages of a run together
    /// ([`in_flight`](crate::fetch::Fetcher::in_flight)). One message makes at most as many with any [`Fetch`](crate::fetch::Fetch).
    pub in_flight: usize,
    /// `--max-depth`: maximum depth of nested parts. Deeper parts are left unchanged.
    pub depth: usize,
    /// `--max-parts`: maximum number of parts of a message. Further parts are left unchanged.
    pub parts: usize,
    /// `--max-header`: maximum size of one header section, in bytes. Headers can contain data: URLs.
    pub header: usize,
    /// `--max-work`: maximum number of times that the message and its retrieved content are read. The growth that is allowed
    /// is added once.
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
