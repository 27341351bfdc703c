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
//! ([`Policy::judge_address`]). With the feature `url`, this is the WHATWG parser of the crate `url`. Without it, the
//! parser accepts only simple URLs, and refuses all others with [`Reason::BadUrl`].

mod address;
mod choice;
pub(crate) mod command_line;
mod host;
mod mapping;
mod target;

use core::net::IpAddr;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use crate::engine::external_body::{Reading, size_in_words};
use crate::engine::report::{Detail, Reason, Refusal, Setting};
use crate::link::server_url::advice;

pub use crate::engine::external_body::{Follow, Followed, Scheme};
pub use choice::{Embed, Limits, Links, OnFailure, Protected, Trackers, TypePattern};
pub use host::HostPattern;
#[cfg(feature = "cli")]
pub(crate) use host::countable;
pub(crate) use host::{Host, HostPatterns};
pub use ipnet::IpNet;
pub use mapping::Mapping;
pub use target::{Proxy, Target};

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
    /// `--attachments`: absolute paths of directories with files that a mail links to by a path on another computer
    /// (feature `file`).
    pub(crate) attachments: Vec<PathBuf>,
    /// `--copies`: mailboxes with other copies of the mail. The driver searches them for parts that are missing in the mail.
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
    /// `--embed` and related options: content of HTML that is embedded into the mail.
    pub(crate) embed: Embed,
    /// `--follow`: kinds of references that are followed, in addition to `message/external-body`.
    pub(crate) follow: Followed,
    /// Whether the report also lists references whose kind is not in `follow`, so that the user sees what a run could do.
    pub(crate) tells_unfollowed: bool,
    /// `--provenance`: whether an inserted part has a header field with the source and the time of the retrieval.
    pub(crate) provenance: bool,
    /// `--on-failure`: treatment of temporary failures.
    pub(crate) on_failure: OnFailure,
    /// Limits on size, time and work.
    pub(crate) limits: Limits,
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

    /// Checks whether an absolute URL may be retrieved, as far as this is possible without I/O. A retrieval can still
    /// be refused because of the address of the host, and a file can be missing.
    ///
    /// # Errors
    /// [`Reason::BadUrl`], [`Reason::SchemeNotAllowed`], [`Reason::UserinfoNotAllowed`], [`Reason::HostNotAllowed`],
    /// [`Reason::PrivateAddress`] and [`Reason::PortNotAllowed`]. For files [`Reason::UnsupportedScheme`] (a file on
    /// another computer) and [`Reason::OutsideFileRoot`]. The checks are made in the order in the documentation of
    /// the module. The detail never contains a password.
    pub fn judge_url(&self, url: &str) -> Result<Target, Refusal> {
        let (scheme, _) = target::split_scheme(url)?;
        let Some(scheme) = Scheme::from_name(scheme.as_bytes()) else {
            let detail = Detail::from(format!("{scheme}: is not one of the schemes that "))
                .naming(Setting::Fetch)
                .then(" can allow: ")
                .then(Scheme::names());
            return Err(Refusal::lasting(Reason::SchemeNotAllowed, detail));
        };
        if !self.fetch.contains(&scheme) {
            let detail = not_among(&format!("{}:", scheme.as_str()), Setting::Fetch);
            // The syntax is checked before the scheme is compared with the allowed schemes: a malformed URL cannot be retrieved
            // with any setting.
            if !target::is_plain(scheme, url)
                && let Err(broken) = Target::parse(scheme, url)
                && broken.reason == Reason::BadUrl
            {
                return Err(broken);
            }
            return Err(Refusal::lasting(Reason::SchemeNotAllowed, detail));
        }
        let target = Target::parse(scheme, url)?;
        match target.path() {
            Some(path) => self.judge_path(path)?,
            None => self.judge_server(&target)?,
        }
        Ok(target)
    }

    /// Checks whether a redirect may be followed. It must lead to http or https, and not from https to http. The URL must
    /// also be allowed by [`Policy::judge_url`].
    ///
    /// # Errors
    /// [`Reason::RedirectRefused`] for the scheme, or if `location` is not a URL. Otherwise as [`Policy::judge_url`].
    pub fn judge_redirect(&self, from: &Target, location: &str) -> Result<Target, Refusal> {
        let refused = |detail: Detail| Refusal::lasting(Reason::RedirectRefused, detail);
        let next = from.join(location).ok_or_else(|| {
            refused(format!("the redirect has an invalid URL{}", advice()).into())
        })?;
        let (name, _) = target::split_scheme(&next)?;
        let scheme = Scheme::from_name(name.as_bytes())
            .filter(|scheme| scheme.is_http())
            .ok_or_else(|| {
                refused(
                    format!("the server redirects to {name}:, which embody never follows").into(),
                )
            })?;
        if !self.fetch.contains(&scheme) {
            let detail = Detail::from(format!("the server redirects to {name}:, which "))
                .naming(Setting::Fetch)
                .then(" does not allow");
            return Err(refused(detail));
        }
        if from.scheme() == Scheme::Https && scheme == Scheme::Http {
            return Err(refused(
                "the server redirects from https: to http:, which is not secure".into(),
            ));
        }
        self.judge_url(&next).map_err(|refusal| Refusal {
            detail: Detail::from("after a redirect: ").then(refusal.detail),
            ..refusal
        })
    }

    /// Checks whether a connection to this address is allowed. The address must be globally reachable, and so must an
    /// IPv4 address that is embedded in it, or `--allow-net` must contain it.
    ///
    /// The operating system treats an IPv4-mapped address (`::ffff:127.0.0.1`) as the IPv4 address, so it is also
    /// allowed by a network of IPv4 addresses. Other addresses with an embedded IPv4 address are allowed only by a
    /// network of IPv6 addresses. An address in `--deny-host` is refused even if the URL contains a host name.
    ///
    /// # Errors
    /// [`Reason::HostNotAllowed`], [`Reason::PrivateAddress`].
    pub fn judge_address(&self, address: IpAddr) -> Result<(), Refusal> {
        let host = Host::Address(address);
        self.judge_denied(&host)?;
        let canonical = address.to_canonical();
        let opened = |network: &IpNet| network.contains(&address) || network.contains(&canonical);
        if self.allow_nets.iter().any(opened) {
            return Ok(());
        }
        let Some(why) = address::why_not_global(address) else {
            return Ok(());
        };
        let detail = format!("{address} is {why}");
        Err(Refusal::lasting(Reason::PrivateAddress, detail))
    }

    pub(crate) fn judge_server(&self, target: &Target) -> Result<(), Refusal> {
        if target.has_userinfo() && !self.allow_userinfo {
            let detail = "the URL contains a user name or password";
            return Err(Refusal::lasting(Reason::UserinfoNotAllowed, detail));
        }
        let (Some(host), Some(port)) = (target.host(), target.port()) else {
            return Err(Refusal::lasting(
                Reason::BadUrl,
                "the URL contains no host name",
            ));
        };
        self.judge_host(&host)?;
        let is_behind_proxy = self.proxy.is_some() && target.scheme().is_http();
        if is_behind_proxy && host.is_own_name() && !self.allow_hosts.matches(&host) {
            let what = format!(
                "{host} is the name of a host in a local network, whose address embody cannot check with "
            );
            let detail = Detail::from(what).naming(Setting::Proxy).then("");
            return Err(Refusal::lasting(Reason::PrivateAddress, detail));
        }
        let own = target.scheme().default_port() == Some(port);
        if port == 0 || !(own || self.allow_ports.contains(&port)) {
            let detail = format!("port {port} of {host} is not an allowed port");
            return Err(Refusal::lasting(Reason::PortNotAllowed, detail));
        }
        Ok(())
    }

    fn judge_denied(&self, host: &Host) -> Result<(), Refusal> {
        let setting = match host {
            _ if self.deny_hosts.matches(host) => Setting::DenyHost,
            _ if self.listed_hosts.matches(host) => Setting::DenyHostFile,
            _ => return Ok(()),
        };
        let detail = Detail::from(format!("{host} is denied by ")).naming(setting);
        Err(Refusal::lasting(Reason::HostNotAllowed, detail))
    }

    fn judge_host(&self, host: &Host) -> Result<(), Refusal> {
        self.judge_denied(host)?;
        if !self.allow_hosts.is_empty() && !self.allow_hosts.matches(host) {
            let detail = not_among(&host.to_string(), Setting::AllowHost);
            return Err(Refusal::lasting(Reason::HostNotAllowed, detail));
        }
        match host {
            Host::Address(address) => self.judge_address(*address),
            Host::Name(name) if host::is_localhost(name) => {
                // `localhost` has two addresses. It is allowed if one of them is, because the address is checked again before
                // each connection.
                let [four, six] = host::LOOPBACK.map(|address| self.judge_address(address));
                let (Err(four), Err(six)) = (four, six) else {
                    return Ok(());
                };
                // If `--deny-host` contains one of the two addresses, this is the reported reason. The other possible
                // reason is a private address. It would suggest `--allow-net`, which has no effect on a denied host.
                let denied = |refusal: &Refusal| refusal.reason == Reason::HostNotAllowed;
                let is_this = format!("{host} is this machine");
                let Some(refusal) = [four, six].into_iter().find(denied) else {
                    return Err(Refusal::lasting(Reason::PrivateAddress, is_this));
                };
                let detail = Detail::from(is_this).then(", and ").then(refusal.detail);
                Err(Refusal { detail, ..refusal })
            }
            Host::Name(_) => Ok(()),
        }
    }

    fn judge_path(&self, path: &Path) -> Result<(), Refusal> {
        let detail = if path.components().any(|it| it == Component::ParentDir) {
            format!("the path {} contains '..'", path.display()).into()
        } else if self.file_roots.iter().any(|root| path.starts_with(root)) {
            return Ok(());
        } else {
            Detail::from(format!("{} is not in a directory of ", path.display()))
                .naming(Setting::FileRoot)
        };
        Err(Refusal::lasting(Reason::OutsideFileRoot, detail))
    }

    /// Checks whether content of this media type (in any case) may be inserted. This includes content of `data:` URLs
    /// (RFC 2397 §6).
    ///
    /// # Errors
    /// [`Reason::TypeNotAllowed`].
    pub fn judge_type(&self, essence: &str) -> Result<(), Refusal> {
        let matches = |pattern: &TypePattern| pattern.matches(essence);
        let detail = if self.deny_types.iter().any(matches) {
            Detail::from(format!("{essence} is denied by ")).naming(Setting::DenyType)
        } else if !self.allow_types.is_empty() && !self.allow_types.iter().any(matches) {
            not_among(essence, Setting::AllowType)
        } else {
            return Ok(());
        };
        Err(Refusal::lasting(Reason::TypeNotAllowed, detail))
    }

    pub(crate) fn reading(&self) -> Reading {
        Reading {
            header_limit: self.limits.header,
            most_notes: self.limits.parts,
            forms: self.follow,
            beside: None,
        }
    }

    /// Returns the settings for reading references. If the report also lists kinds that are not followed, the settings include
    /// these kinds.
    pub(crate) fn reading_to_tell(&self) -> Reading {
        let mut reading = self.reading();
        if self.tells_unfollowed {
            reading.forms = Followed::all();
        }
        reading
    }

    pub(crate) fn judge_form(&self, form: Follow) -> Result<(), Refusal> {
        if self.follow.contains(form) {
            return Ok(());
        }
        let detail = not_among(form.as_str(), Setting::Follow);
        Err(Refusal::lasting(Reason::NotFollowed, detail))
    }

    /// Checks whether one retrieved file may have this size, in bytes.
    ///
    /// # Errors
    /// [`Reason::TooLarge`].
    pub fn judge_size(&self, octets: u64) -> Result<(), Refusal> {
        if octets > self.limits.body {
            let limit = self.limits.body;
            let detail = Detail::from(format!("the content has {}; ", size_in_words(octets)))
                .naming(Setting::Body)
                .measuring(limit, octets)
                .then(format!(" is {limit}"));
            return Err(Refusal::lasting(Reason::TooLarge, detail));
        }
        Ok(())
    }
}

fn not_among(what: &str, setting: Setting) -> Detail {
    Detail::from(format!("{what} is not allowed by ")).naming(setting)
}

macro_rules! one {
    ($($(#[doc = $doc:literal])* $name:ident $field:ident: $type:ty;)*) => {$(
        $(#[doc = $doc])*
        #[must_use]
        pub fn $name(mut self, $field: $type) -> Self {
            self.$field = $field.into();
            self
        }
    )*};
}

macro_rules! many {
    ($($(#[doc = $doc:literal])* $name:ident $field:ident: $type:ty;)*) => {$(
        $(#[doc = $doc])*
        #[must_use]
        pub fn $name(mut self, $field: impl IntoIterator<Item = $type>) -> Self {
            self.$field.extend($field);
            self
        }
    )*};
}

impl Policy {
    many! {
        /// Adds URL schemes that may be retrieved, in addition to `data:` and `cid:` (`--fetch`).
        with_fetch fetch: Scheme;
        /// Adds hosts. If there are any, requests are sent only to these hosts. A host that has a private address
        /// is still refused (`--allow-host`).
        with_allow_hosts allow_hosts: HostPattern;
        /// Adds hosts to which no requests are sent, even if they are also allowed (`--deny-host`).
        with_deny_hosts deny_hosts: HostPattern;
        /// Adds networks to which requests are allowed although they are not globally reachable (`--allow-net`).
        with_allow_nets allow_nets: IpNet;
        /// Adds allowed ports, in addition to the default port of the scheme (`--allow-port`).
        with_allow_ports allow_ports: u16;
        /// Adds absolute paths of directories below which `file:` URLs may be read (`--file-root`).
        with_file_roots file_roots: PathBuf;
        /// Adds absolute paths of directories with files to which mail links by a path on another computer. It
        /// needs the feature `file` (`--attachments`).
        with_attachments attachments: PathBuf;
        /// Adds replacements of URL prefixes, which are applied before a URL is checked (`--map`).
        with_maps maps: Mapping;
        /// Adds media types. If there are any, only content of these types may be inserted (`--allow-type`).
        with_allow_types allow_types: TypePattern;
        /// Adds media types that may not be inserted, even if they are also allowed (`--deny-type`).
        with_deny_types deny_types: TypePattern;
    }

    one! {
        /// Sets whether URLs with a user name or a password are retrieved. A user name can disguise the real host
        /// (`http://good@evil/`), and a password is a secret. The default is false (`--allow-userinfo`).
        with_allow_userinfo allow_userinfo: bool;
        /// Sets a proxy for http and https. The proxy resolves host names, so embody cannot check the addresses of
        /// hosts (`--proxy`).
        with_proxy proxy: Proxy;
        /// Sets a PEM file with certificates that are trusted in addition to those of the system (`--ca-file`).
        with_ca_file ca_file: PathBuf;
        /// Sets whether content is inserted if its media type differs from the declared one. It is then labelled
        /// with the declared type (RFC 2017 §3.1). The default is false (`--accept-mismatch`).
        with_accept_mismatch accept_mismatch: bool;
        /// Sets the treatment of signed and encrypted parts (`--signed`).
        with_protected protected: Protected;
        /// Sets the treatment of relative links (`--links`).
        with_links links: Links;
        /// Sets which content of HTML is embedded into the mail (`--embed`).
        with_embed embed: Embed;
        /// Sets the kinds of references that are followed, in addition to `message/external-body` (`--follow`).
        with_follow follow: Followed;
        /// Sets the treatment of temporary failures (`--on-failure`).
        with_on_failure on_failure: OnFailure;
        /// Sets whether an inserted part has a header field with the source and the time of the retrieval. The
        /// default is false (`--provenance`).
        with_provenance provenance: bool;
        /// Sets all limits. [`Policy::map_limits`] changes some of them.
        with_limits limits: Limits;
    }
}

impl Limits {
    one! {
        /// Sets the maximum size of one retrieved body after decompression, in bytes.
        with_body body: u64;
        /// Sets the maximum growth of one message, in bytes.
        with_growth growth: u64;
        /// Sets the maximum size of a message with all retrieved content, in bytes. The default is no limit.
        with_message message: u64;
        /// Sets the maximum number of retrievals for one message.
        with_fetches fetches: u32;
        /// Sets the maximum number of redirects in one retrieval.
        with_redirects redirects: u32;
        /// Sets the time limit for one retrieval.
        with_timeout timeout: Duration;
        /// Sets the time limit for all retrievals of one message. Processing the message as a whole may take a
        /// quarter more time, but at most 5 seconds more.
        with_deadline deadline: Duration;
        /// Sets the maximum number of parallel retrievals for all messages of a run together
        /// ([`in_flight`](crate::fetch::Fetcher::in_flight)). It is also the maximum for one message, with any
        /// [`Fetch`](crate::fetch::Fetch).
        with_in_flight in_flight: usize;
        /// Sets the maximum depth of nested parts. Deeper parts are left unchanged.
        with_depth depth: usize;
        /// Sets the maximum number of parts of a message. Further parts are left unchanged.
        with_parts parts: usize;
        /// Sets the maximum size of one header section, in bytes. Headers can contain data: URLs.
        with_header header: usize;
        /// Sets the limit on processing. The number of bytes that may be read is this factor times the size of the
        /// message with its retrieved content, plus the allowed growth.
        with_work work: u64;
    }
}
