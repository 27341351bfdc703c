//! May we? One value answers every such question, without I/O (docs/design.md, "Retrieval").
//!
//! [`Policy::default`] allows what is in the mail (`data:`, `cid:`), what some mailboxes keep in files beside the
//! message, and nothing else: no network, no file system (P3 of docs/design.md).
//!
//! A URL is judged in this order, and the first "no" is the reason that is reported:
//! 1. it can be understood at all, and holds nothing that may not stand in it;
//! 2. its scheme; 3. user name and password; 4. the host against `--deny-host` and
//!    `--allow-host`; 5. the host as an address, whatever its spelling; 6. the port;
//!    for files instead of 3 to 6: the roots.
//!
//! The host that is judged is the host that is asked: `fetch` sends what the `url` crate (the WHATWG parser) understood,
//! never the text of the mail, and judges addresses when it connects ([`Policy::judge_address`]).

mod address;
mod choice;
pub(crate) mod command_line;
mod host;
mod mapping;
mod target;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use crate::external_body::{Reading, size_in_words};
use crate::report::{Detail, Reason, Refusal, Setting};

pub use crate::external_body::{Follow, Followed, Scheme};
pub use choice::{Embed, Limits, Links, OnFailure, Protected, Trackers, TypePattern};
pub use host::HostPattern;
#[cfg(feature = "cli")]
pub(crate) use host::countable;
pub(crate) use host::{Host, HostPatterns};
pub use ipnet::IpNet;
pub use mapping::Mapping;
pub use target::{Proxy, Target};

/// Everything the user decided about what may be done. Pure data and pure answers.
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
    /// `--fetch`: schemes that may be retrieved besides `data:` and `cid:`.
    pub fetch: BTreeSet<Scheme>,
    /// `--allow-host`: if not empty, only these hosts are asked. It opens no private address.
    pub(crate) allow_hosts: HostPatterns,
    /// `--deny-host`: these win over `allow_hosts`.
    pub(crate) deny_hosts: HostPatterns,
    /// `--deny-host-file`: these win, too.
    pub(crate) listed_hosts: HostPatterns,
    /// `--allow-net`: networks that are asked although they are not globally reachable.
    pub allow_nets: Vec<IpNet>,
    /// `--allow-port`: ports besides the scheme's own.
    pub allow_ports: BTreeSet<u16>,
    /// `--allow-userinfo`: whether URLs with a user name or a password are retrieved. They may be bait
    /// (`http://good@evil/`) or a secret; no host that a redirect leads to gets them.
    pub allow_userinfo: bool,
    /// `--file-root`: absolute folders beneath which files are read.
    pub file_roots: Vec<PathBuf>,
    /// `--attachments`: absolute folders for files that a mail names by a URL of elsewhere (feature `file`).
    pub attachments: Vec<PathBuf>,
    /// `--resolver`: a program and its arguments, for files of clouds that nobody else gave.
    pub(crate) resolver: Vec<String>,
    /// `--map`: rewritten before anything is judged.
    pub maps: Vec<Mapping>,
    /// `--proxy`: where http and https go. Its own address is not judged. It resolves names, so their addresses are not
    /// judged either; names of one's own network are refused, unless `allow_hosts` names them.
    pub proxy: Option<Proxy>,
    /// `--ca-file`: PEM certificates trusted besides the system's.
    pub ca_file: Option<PathBuf>,
    /// If not empty, only these media types may be put in.
    pub allow_types: Vec<TypePattern>,
    /// These may not; they win over `allow_types`.
    pub deny_types: Vec<TypePattern>,
    /// `--accept-mismatch`: whether content of another type than declared is taken, under the declared type (RFC 2017
    /// §3.1, last paragraph).
    pub accept_mismatch: bool,
    /// Signed and encrypted parts.
    pub protected: Protected,
    /// Relative links.
    pub links: Links,
    /// What HTML shows that is to become part of the mail.
    pub embed: Embed,
    /// `--follow`: forms of references besides `message/external-body`.
    pub follow: Followed,
    /// Whether forms that are not followed are told of.
    pub(crate) tells_unfollowed: bool,
    /// `--provenance`: whether parts that come in bear a field that says from where and when.
    pub provenance: bool,
    /// Temporary failures.
    pub on_failure: OnFailure,
    /// Bounds.
    pub limits: Limits,
}

impl Policy {
    /// The reference after `--map`: the longest FROM that is a prefix becomes its TO, once.
    pub fn map<'a>(&self, url: &'a str) -> Cow<'a, str> {
        self.maps
            .iter()
            .filter_map(|mapping| Some((mapping.prefix_len(), mapping.apply(url)?)))
            .max_by_key(|(length, _)| *length)
            .map_or(Cow::Borrowed(url), |(_, mapped)| Cow::Owned(mapped))
    }

    /// Whether an absolute URL may be retrieved, as far as that is known without asking anybody: a name may resolve to
    /// an address that is refused, and a file may be missing.
    ///
    /// # Errors
    /// [`Reason::BadUrl`], [`Reason::SchemeNotAllowed`], [`Reason::UserinfoNotAllowed`],
    /// [`Reason::HostNotAllowed`], [`Reason::PrivateAddress`], [`Reason::PortNotAllowed`], and for
    /// files [`Reason::UnsupportedScheme`] (another machine's) and [`Reason::OutsideFileRoot`], in
    /// the order that the module's text gives. The detail never holds a password.
    pub fn judge_url(&self, url: &str) -> Result<Target, Refusal> {
        let (scheme, _) = target::split_scheme(url)?;
        let Some(scheme) = Scheme::from_name(scheme.as_bytes()) else {
            let detail = Detail::from(format!("{scheme}: is not one of the schemes that "));
            let detail = detail.naming(Setting::Fetch).then(" can allow: ");
            let detail = detail.then(Scheme::names());
            return Err(Refusal::lasting(Reason::SchemeNotAllowed, detail));
        };
        if !self.fetch.contains(&scheme) {
            let detail = not_among(&format!("{}:", scheme.as_str()), Setting::Fetch);
            // A text that is no URL under any policy should not send the user to the schemes.
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
        let next = from
            .join(location)
            .ok_or_else(|| refused("the redirect has an invalid URL".into()))?;
        let (name, _) = target::split_scheme(&next)?;
        let scheme = Scheme::from_name(name.as_bytes())
            .filter(|scheme| scheme.is_http())
            .ok_or_else(|| {
                refused(
                    format!("the server redirects to {name}:, which embody never follows").into(),
                )
            })?;
        if !self.fetch.contains(&scheme) {
            let detail = Detail::from(format!("the server redirects to {name}:, which "));
            let detail = detail.naming(Setting::Fetch).then(" does not allow");
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

    /// Whether a connection may be made to this address: it is globally reachable, also as the IPv4 address that is
    /// embedded in it, or `--allow-net` names it.
    ///
    /// An IPv4-mapped address (`::ffff:127.0.0.1`) is the IPv4 address to the system, so a network of IPv4 addresses
    /// opens it; only networks of IPv6 addresses open other embeddings. An address that `--deny-host` names is refused
    /// whatever name led to it.
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
            return Err(Refusal::lasting(Reason::BadUrl, "the URL names no host"));
        };
        self.judge_host(&host)?;
        let is_behind_proxy = self.proxy.is_some() && target.scheme().is_http();
        if is_behind_proxy && host.is_own_name() && !self.allow_hosts.matches(&host) {
            let what = format!(
                "{host} is the name of a host in a local network, and its address is known only to the proxy of "
            );
            let detail = Detail::from(what).naming(Setting::Proxy);
            let detail = detail.then("");
            return Err(Refusal::lasting(Reason::PrivateAddress, detail));
        }
        let own = target.scheme().default_port() == Some(port);
        if port == 0 || !(own || self.allow_ports.contains(&port)) {
            let detail = format!("port {port} of {host}");
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
                // One is enough: only opened ones are asked.
                let [four, six] = host::LOOPBACK.map(|address| self.judge_address(address));
                let (Err(four), Err(six)) = (four, six) else {
                    return Ok(());
                };
                // A denied address stays denied whatever network is opened.
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
            format!("{} climbs with '..'", path.display()).into()
        } else if self.file_roots.iter().any(|root| path.starts_with(root)) {
            return Ok(());
        } else {
            Detail::from(format!("{} is not below a ", path.display())).naming(Setting::FileRoot)
        };
        Err(Refusal::lasting(Reason::OutsideFileRoot, detail))
    }

    /// Whether content of this media type (any case) may be put in, also from `data:` URLs (RFC 2397 §6).
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

    /// A report also tells of forms that are not followed.
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

    /// Whether this many octets may be one body.
    ///
    /// # Errors
    /// [`Reason::TooLarge`].
    pub fn judge_size(&self, octets: u64) -> Result<(), Refusal> {
        if octets > self.limits.body {
            let limit = self.limits.body;
            let detail = Detail::from(format!("{}, ", size_in_words(octets)));
            let detail = detail.naming(Setting::Body).measuring(limit, octets);
            let detail = detail.then(format!(" is {limit}"));
            return Err(Refusal::lasting(Reason::TooLarge, detail));
        }
        Ok(())
    }
}

fn not_among(what: &str, setting: Setting) -> Detail {
    Detail::from(format!("{what} is not allowed by ")).naming(setting)
}

macro_rules! one {
    ($($name:ident $field:ident: $type:ty;)*) => {$(
        #[doc = concat!("The same with another [`", stringify!($field), "`](Self::", stringify!($field), ").")]
        #[must_use]
        pub fn $name(mut self, $field: $type) -> Self {
            self.$field = $field.into();
            self
        }
    )*};
}

macro_rules! many {
    ($($name:ident $field:ident: $type:ty;)*) => {$(
        #[doc = concat!("The same with more `", stringify!($field), "`.")]
        #[must_use]
        pub fn $name(mut self, $field: impl IntoIterator<Item = $type>) -> Self {
            self.$field.extend($field);
            self
        }
    )*};
}

impl Policy {
    many! {
        with_fetch fetch: Scheme;
        with_allow_hosts allow_hosts: HostPattern;
        with_deny_hosts deny_hosts: HostPattern;
        with_allow_nets allow_nets: IpNet;
        with_allow_ports allow_ports: u16;
        with_file_roots file_roots: PathBuf;
        with_attachments attachments: PathBuf;
        with_maps maps: Mapping;
        with_allow_types allow_types: TypePattern;
        with_deny_types deny_types: TypePattern;
    }

    one! {
        with_allow_userinfo allow_userinfo: bool;
        with_proxy proxy: Proxy;
        with_ca_file ca_file: PathBuf;
        with_accept_mismatch accept_mismatch: bool;
        with_protected protected: Protected;
        with_links links: Links;
        with_embed embed: Embed;
        with_follow follow: Followed;
        with_on_failure on_failure: OnFailure;
        with_provenance provenance: bool;
        with_limits limits: Limits;
    }
}

impl Limits {
    one! {
        with_body body: u64;
        with_growth growth: u64;
        with_message message: u64;
        with_fetches fetches: u32;
        with_redirects redirects: u32;
        with_timeout timeout: Duration;
        with_deadline deadline: Duration;
        with_in_flight in_flight: usize;
        with_depth depth: usize;
        with_parts parts: usize;
        with_header header: usize;
        with_work work: u64;
    }
}
