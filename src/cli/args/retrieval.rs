//! Where content may come from: servers, files, the cache and an archive.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::archive::{IndexTemplate, Template, Window};
use crate::cli::values::{
    CacheMax, HostList, cache_max, duration_or_none, file, host_list, scheme, window,
};
use crate::policy::{HostPattern, IpNet, Mapping, Policy, Proxy, Scheme};

#[derive(Args, Default, Debug)]
#[group(skip)]
#[command(next_help_heading = "What may be retrieved")]
pub struct RetrievalArgs {
    /// Options in TOML; those given here win [default: none]
    #[arg(long, value_name = "FILE", help_heading = None::<&'static str>, value_parser = file())]
    config: Option<PathBuf>,
    #[arg(
        long, value_name = "SCHEME,...", value_delimiter = ',', value_parser = scheme,
        help = format!("Retrieve by: {} [default: none]", Scheme::names())
    )]
    pub(super) fetch: Vec<Scheme>,
    /// Only NAME,*.example.org,... [default: all public]
    #[arg(long, value_name = "PAT", value_delimiter = ',')]
    allow_host: Vec<HostPattern>,
    /// Never these hosts; wins over --allow-host [default: none]
    #[arg(long, value_name = "PAT,...", value_delimiter = ',')]
    deny_host: Vec<HostPattern>,
    /// A file of hosts never to ask: a host or *.host a line, # begins a comment [default: none]
    #[arg(long, value_name = "FILE", value_parser = host_list)]
    deny_host_file: Vec<HostList>,
    /// Also from addresses that are not globally reachable, e.g. 10.1.0.0/16 [default: none]
    #[arg(long, value_name = "CIDR,...", value_delimiter = ',', value_parser = network)]
    allow_net: Vec<IpNet>,
    /// Also from these ports, not only the scheme's own [default: none]
    #[arg(long, value_name = "N,...", value_delimiter = ',', value_parser = port)]
    allow_port: Vec<u16>,
    /// Follow URLs with user:password@ [default: off]
    #[arg(long)]
    allow_userinfo: bool,
    /// Read file: and local-file only beneath these folders [default: none]
    #[arg(long, value_name = "DIR", value_parser = file_root)]
    file_root: Vec<PathBuf>,
    /// Retrieve from TO what refers to FROM; the longest FROM wins [default: none]
    #[arg(long, value_name = "FROM=TO")]
    map: Vec<Mapping>,
    #[command(flatten)]
    server: ServerArgs,
}

impl RetrievalArgs {
    pub fn policy(&self) -> Policy {
        let listed = self.deny_host_file.iter().flatten();
        Policy {
            fetch: self.fetch.iter().copied().collect(),
            allow_hosts: self.allow_host.iter().cloned().collect(),
            deny_hosts: self.deny_host.iter().cloned().collect(),
            listed_hosts: listed.cloned().collect(),
            allow_nets: self.allow_net.clone(),
            allow_ports: self.allow_port.iter().copied().collect(),
            allow_userinfo: self.allow_userinfo,
            file_roots: self.file_root.clone(),
            maps: self.map.clone(),
            ..self.server.policy()
        }
    }
}

#[derive(Args, Default, Debug)]
#[group(skip)]
pub struct ServerArgs {
    /// Go through this proxy for http and https [default: none]
    ///
    /// http://[user:password@]host[:port], or https:// for a proxy with TLS. It is asked for http: URLs themselves, and to
    /// CONNECT for https: URLs. It resolves the names behind it, so the addresses behind names are not checked: names of an own
    /// network (without a dot, .local, .internal, .home.arpa) need --allow-host, and what else may not be
    /// reached the proxy has to refuse.
    #[arg(long, value_name = "URL")]
    proxy: Option<Proxy>,
    /// Trust these certificates besides the system's [default: none]
    #[arg(long, value_name = "PEM", value_parser = file())]
    ca_file: Option<PathBuf>,
}

impl ServerArgs {
    pub fn policy(&self) -> Policy {
        Policy {
            proxy: self.proxy.clone(),
            ca_file: self.ca_file.clone(),
            ..Policy::default()
        }
    }
}

#[derive(Args, Default, Debug)]
#[group(skip)]
#[command(next_help_heading = "Limits")]
pub struct TimeArgs {
    /// One retrieval; 0 is no limit [default: 20s]
    #[arg(long, value_name = "DUR", value_parser = duration_or_none)]
    pub timeout: Option<Duration>,
    /// All retrievals of one message, and the work on it; 0 is no limit [default: 60s]
    #[arg(long, value_name = "DUR", value_parser = duration_or_none)]
    pub deadline: Option<Duration>,
}

pub(super) const KEPT: &str = "What is kept from run to run";

#[derive(Args, Clone, Default, Debug)]
#[group(skip)]
#[command(next_help_heading = KEPT)]
pub struct CacheArgs {
    /// Keep what http and https servers answer in this folder, and use it [default: none]
    #[arg(long, value_name = "DIR")]
    pub cache: Option<PathBuf>,
    /// What that folder may hold; what was not used for the longest time goes; none is no limit
    /// [default: 2G]
    #[arg(long, value_name = "SIZE", requires = "cache", value_parser = cache_max)]
    pub cache_max: Option<CacheMax>,
    /// Keep also what the server forbids to keep: no-store (and private) [default: none]
    #[arg(
        long,
        value_parser = ["no-store"],
        hide_possible_values = true,
        value_delimiter = ',',
        value_name = "WHAT",
        requires = "cache"
    )]
    pub cache_ignore: Vec<String>,
    /// Ask no server; only what is in --cache, fresh or not, and in the files of --archive [default: off]
    #[arg(long)]
    pub offline: bool,
    /// Set by `recover`: with --offline, files that need no network may be all that is wanted.
    #[arg(skip)]
    pub may_keep_nothing: bool,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ArchivePlace {
    Server(Template),
    /// Captures that stand in a file, or in the files of a folder.
    Files(PathBuf),
}

fn archive(text: &str) -> Result<ArchivePlace, String> {
    match text.contains("://") || text.contains("{url}") {
        true => text.parse().map(ArchivePlace::Server),
        false => Ok(ArchivePlace::Files(text.into())),
    }
}

#[derive(Args, Clone, Default, Debug)]
#[group(skip)]
#[command(next_help_heading = "Web archives")]
pub struct ArchiveArgs {
    /// Ask this web archive for what is gone, e.g. https://web.archive.org/web/{date}id_/{url}, or a WARC or WACZ file, or a
    /// folder of them [default: none]
    #[arg(long, value_name = "URL-TEMPLATE|FILE", value_parser = archive)]
    pub archive: Option<ArchivePlace>,
    /// Ask the archive first, and then the source [default: off]
    #[arg(long, requires = "archive")]
    pub archive_first: bool,
    /// How long before and after the mail's date a capture may be; in files any time [default: 90d,400d]
    #[arg(long, requires = "archive", value_name = "BEFORE,AFTER", value_parser = window)]
    pub archive_window: Option<Window>,
    /// Where captures are listed, e.g. https://web.archive.org/cdx/search/cdx?url={url}&closest={date}: asked once where the
    /// nearest is an error [default: none]
    #[arg(long, requires = "archive", value_name = "URL-TEMPLATE")]
    pub archive_cdx: Option<IndexTemplate>,
    /// Tell the archive also URLs that look like secrets, or name no public host [default: off]
    #[arg(long, requires = "archive")]
    pub archive_any: bool,
}

/// Bits beyond the prefix are an error: the writer of 10.1.2.3/8 may have meant 10.1.2.3 alone.
fn network(text: &str) -> Result<IpNet, String> {
    let trimmed = text.trim();
    let network = trimmed
        .parse::<IpNet>()
        .or_else(|_| trimmed.parse::<IpAddr>().map(IpNet::from))
        .map_err(|_| format!("'{text}' is not a network such as 10.1.0.0/16 or fd00::/8"))?;
    match network.trunc() {
        whole if whole == network => Ok(network),
        whole => Err(format!(
            "'{text}' has bits set beyond its prefix; the network is {whole}"
        )),
    }
}

/// Relative folders are made absolute against the current one. Whether it exists is seen when files are first read.
pub(super) fn file_root(text: &str) -> Result<PathBuf, String> {
    std::path::absolute(text).map_err(|why| format!("'{text}' is not a folder: {why}"))
}

fn port(text: &str) -> Result<u16, String> {
    text.trim()
        .parse()
        .ok()
        .filter(|port| *port != 0)
        .ok_or_else(|| format!("'{text}' is not a port from 1 to 65535"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_and_ports_that_make_no_sense_are_refused() {
        for text in [
            "",
            "10.0.0.0/33",
            "10.1.2.3/8",
            "10.0.0.0/-1",
            "10.0.0.0/+8",
            "::/129",
            "localhost/8",
            "127.1/8",
        ] {
            assert!(network(text).is_err(), "{text}");
        }
        for (text, inside, outside) in [
            ("0.0.0.0/0", "255.255.255.255", "::1"),
            ("10.0.0.0/8", "10.255.0.1", "11.0.0.0"),
            ("192.0.2.7", "192.0.2.7", "192.0.2.6"),
            ("::/0", "ffff::", "1.2.3.4"),
            ("2001:db8::/33", "2001:db8:7fff::", "2001:db8:8000::"),
        ] {
            let network = network(text).expect(text);
            let holds = |address: &str| network.contains(&address.parse::<IpAddr>().unwrap());
            assert!(holds(inside) && !holds(outside), "{text}");
        }
        for text in ["", "0", "65536", "-1", "http"] {
            assert!(port(text).is_err(), "{text}");
        }
    }
}
