//! Checks whether the policy allows a URL, a redirect, an address, a kind of reference or a content.

use core::net::IpAddr;
use std::path::{Component, Path};

use super::host::{self, Host};
use super::{Follow, IpNet, Policy, Scheme, Target, TypePattern, address, target};
use crate::detail::{QUOTED, excerpt};
use crate::engine::report::{Detail, Reason, Refusal, Setting};

impl Policy {
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
            // The reason for a malformed URL is its syntax and not its scheme, because a malformed URL cannot be retrieved
            // with any setting. A plain URL is certainly valid, so it is not parsed.
            if !target::is_plain(scheme, url)
                && let Err(broken) = Target::parse(scheme, url)
                && broken.reason == Reason::BadUrl
            {
                return Err(broken);
            }
            return Err(Refusal::lasting(Reason::SchemeNotAllowed, detail));
        }
        let target = Target::parse(scheme, url)?;
        if self.allows_all {
            return Ok(target);
        }
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
        let scheme = Scheme::from_name(name.as_bytes());
        let name = excerpt(name, QUOTED);
        let scheme = scheme.filter(|scheme| scheme.is_http()).ok_or_else(|| {
            refused(format!("the server redirects to {name}:, which embody never follows").into())
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
        if self.allows_all {
            return Ok(());
        }
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
        let shown = excerpt(essence, QUOTED);
        let detail = if self.deny_types.iter().any(matches) {
            Detail::from(format!("{shown} is denied by ")).naming(Setting::DenyType)
        } else if !self.allow_types.is_empty() && !self.allow_types.iter().any(matches) {
            not_among(&shown, Setting::AllowType)
        } else {
            return Ok(());
        };
        Err(Refusal::lasting(Reason::TypeNotAllowed, detail))
    }

    pub(crate) fn judge_form(&self, form: Follow) -> Result<(), Refusal> {
        if self.follow.contains(form) {
            return Ok(());
        }
        // The program takes the first word as the value for `--follow`.
        let kind = match form {
            Follow::Links => "to cloud files",
            _ => "references",
        };
        let detail = format!("{} {kind} are not followed", form.as_str());
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

/// Writes a size for the report. `u64::MAX` means that the number was too large to parse, so "or more" is added.
pub(crate) fn size_in_words(octets: u64) -> String {
    let more = if octets == u64::MAX { " or more" } else { "" };
    format!("{octets} bytes{more}")
}
