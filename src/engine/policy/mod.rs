//! The policy: one value that decides whether an operation is allowed, without any I/O (docs/design.md, "Retrieval").
//!
//! [`Policy::default`] allows content that is in the mail (`data:` and `cid:` URLs), and files that some mailboxes
//! store next to the message. It allows no network requests and no other files (P3 of docs/design.md).
//!
//! A URL is checked in this order, and the first failed check is the reason that is reported:
//! 1. the syntax of the URL, including characters that are not allowed;
//! 2. the scheme;
//! 3. the user name and password;
//! 4. the host, against `--deny-host` and `--allow-host`;
//! 5. the host if it is an IP address, in any notation;
//! 6. the port.
//!
//! For `file:` URLs, the allowed directories are checked instead of 3 to 6.
//!
//! The host that was checked is always the host that receives the request: `fetch` sends the URL as the parser of
//! `link::server_url` understood it, not the text of the mail, and it checks each address again before it connects
//! ([`Policy::judge_address`]). This is the WHATWG parser of the crate `url`.

mod address;
mod choice;
pub(crate) mod command_line;
mod follow;
mod host;
mod judge;
mod mapping;
mod network;
pub(crate) mod reading;
mod scheme;
mod target;
mod with;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::PathBuf;

pub use self::follow::{Follow, Followed};
pub use choice::{Embed, Limits, Links, OnFailure, Protected, Trackers, TypePattern};
pub use host::HostPattern;
#[cfg(feature = "cli")]
pub(crate) use host::countable;
pub(crate) use host::{Host, HostPatterns};
pub(crate) use judge::size_in_words;
pub use mapping::Mapping;
pub use network::IpNet;
pub(crate) use reading::ReferenceParse;
pub use scheme::Scheme;
pub use target::{Proxy, Target};

/// Kinds of references that the report lists although they are not followed.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum UnfollowedKinds {
    #[default]
    None,
    /// Links to files in cloud storage. `recover` is the command for such files, but it follows only links that stand for
    /// an attachment: anyone can write any other link.
    #[cfg_attr(not(feature = "cli"), allow(dead_code))]
    Links,
    #[cfg_attr(not(feature = "cli"), allow(dead_code))]
    All,
}

/// Settings of the user that determine which operations are allowed. A policy is plain data, and its methods perform no I/O.
/// It is built from [`Policy::default`] with the methods `with_...`.
///
/// ```
/// use std::time::Duration;
///
/// use embody::Policy;
/// use embody::policy::{Limits, Scheme};
///
/// let policy = Policy::default()
///     .with_fetch([Scheme::Https])
///     .with_allow_hosts(["*.example.org".parse()?])
///     .with_limits(Limits::default().with_body(1 << 20).with_timeout(Duration::from_secs(5)));
/// assert!(policy.judge_url("https://www.example.org/note.txt").is_ok());
/// assert!(policy.judge_url("http://www.example.org/note.txt").is_err());
/// # Ok::<(), embody::Error>(())
/// ```
#[non_exhaustive]
#[derive(Clone, Default, Debug)]
pub struct Policy {
    /// `--fetch`: URL schemes that may be retrieved, in addition to `data:` and `cid:`.
    pub(crate) fetch: BTreeSet<Scheme>,
    /// `--allow-host`: if not empty, requests are sent only to these hosts. A host in the list that has a private address is
    /// still refused.
    pub(crate) allow_hosts: HostPatterns,
    /// `--deny-host`: hosts to which no requests are sent, even if `allow_hosts` contains them.
    pub(crate) deny_hosts: HostPatterns,
    /// `--deny-host-file`: more hosts to which no requests are sent, even if `allow_hosts` contains them.
    pub(crate) listed_hosts: HostPatterns,
    /// `--allow-net`: networks to which requests are allowed although they are not globally reachable.
    pub(crate) allow_nets: Vec<IpNet>,
    /// `--allow-port`: allowed ports in addition to the default port of the scheme.
    pub(crate) allow_ports: BTreeSet<u16>,
    /// `--allow-userinfo`: whether URLs with a user name or a password are retrieved. A user name can disguise the
    /// real host (`http://good@evil/`), and a password is a secret. After a redirect, neither is sent to the new URL.
    pub(crate) allow_userinfo: bool,
    /// `--file-root`: absolute paths of the directories below which files may be read.
    pub(crate) file_roots: Vec<PathBuf>,
    /// `--attachments`: absolute paths of directories in which missing attachments are searched for (feature `file`). A file is
    /// used if the end of its path is the end of the URL in the mail.
    pub(crate) attachments: Vec<PathBuf>,
    /// `--copies`: mailboxes with other copies of the mail. They are searched for parts that are missing in the mail.
    pub(crate) copies: Vec<PathBuf>,
    /// `--resolver`: a program and its arguments. It retrieves files in cloud storage that embody cannot retrieve itself.
    pub(crate) resolver: Vec<String>,
    /// `--map`: replacements of URL prefixes, which are applied before a URL is checked.
    pub(crate) maps: Vec<Mapping>,
    /// `--proxy`: proxy for http and https. The address of the proxy is not checked. The proxy resolves host names,
    /// so the addresses of the hosts cannot be checked either. Therefore names of hosts in a local network are
    /// refused, unless `allow_hosts` contains them.
    pub(crate) proxy: Option<Proxy>,
    /// `--ca-file`: PEM file with certificates that are trusted in addition to those of the system.
    pub(crate) ca_file: Option<PathBuf>,
    /// `--allow-type`: if not empty, only content with these media types may be inserted.
    pub(crate) allow_types: Vec<TypePattern>,
    /// `--deny-type`: media types that may not be inserted, even if `allow_types` contains them.
    pub(crate) deny_types: Vec<TypePattern>,
    /// `--accept-mismatch`: whether content is inserted if its media type differs from the declared one. It is then
    /// labelled with the declared type (RFC 2017 §3.1, last paragraph).
    pub(crate) accept_mismatch: bool,
    /// `--protected`: treatment of signed and encrypted parts.
    pub(crate) protected: Protected,
    /// `--links`: treatment of relative links.
    pub(crate) links: Links,
    /// `--unwrap`: whether links that a mail filter or a picture proxy wrapped in a URL of its own server become the original
    /// links again.
    pub(crate) unwrap: bool,
    /// `--embed` and related options: content of HTML that is embedded into the mail.
    pub(crate) embed: Embed,
    /// `--follow`: kinds of references that are followed, in addition to `message/external-body`.
    pub(crate) follow: Followed,
    /// Kinds of references that the report lists even if they are not in `follow`, so that the user sees the effect of
    /// further options.
    pub(crate) unfollowed: UnfollowedKinds,
    /// `--provenance`: whether an inserted part has a header field with the source and the time of the retrieval.
    pub(crate) provenance: bool,
    /// `--on-failure`: treatment of temporary failures.
    pub(crate) on_failure: OnFailure,
    /// Limits on size, time and work.
    pub(crate) limits: Limits,
    /// True for a proof, which retrieves nothing: every well-formed URL is allowed.
    pub(crate) allows_all: bool,
}

impl Policy {
    /// Returns the limits on size, time and work, which a source of content must also keep.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Returns the same policy with changed limits.
    ///
    /// ```
    /// use embody::Policy;
    ///
    /// let policy = Policy::default().map_limits(|limits| limits.with_body(1 << 20));
    /// assert_eq!(policy.limits().body, 1 << 20);
    /// ```
    #[must_use]
    pub fn map_limits(mut self, change: impl FnOnce(Limits) -> Limits) -> Self {
        self.limits = change(self.limits);
        self
    }

    /// Applies `--map` to a URL: of the mappings whose FROM is a prefix of the URL, the one with the longest FROM is
    /// applied once.
    pub fn map<'a>(&self, url: &'a str) -> Cow<'a, str> {
        self.maps
            .iter()
            .filter_map(|mapping| Some((mapping.prefix_len(), mapping.apply(url)?)))
            .max_by_key(|(length, _)| *length)
            .map_or(Cow::Borrowed(url), |(_, mapped)| Cow::Owned(mapped))
    }

    pub(crate) fn reading(&self) -> ReferenceParse {
        ReferenceParse {
            header_limit: self.limits.header,
            most_notes: self.limits.parts,
            forms: self.follow,
            beside: None,
        }
    }

    /// Returns the settings for reading references. If the report also lists kinds that are not followed, the settings include
    /// these kinds.
    pub(crate) fn reading_to_tell(&self) -> ReferenceParse {
        let mut reading = self.reading();
        reading.forms = match self.unfollowed {
            UnfollowedKinds::None => reading.forms,
            UnfollowedKinds::Links => reading.forms.with(Follow::Links),
            UnfollowedKinds::All => Followed::all(),
        };
        reading
    }
}
