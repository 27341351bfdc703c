//! The options for sources of content: servers, files, the cache and an archive.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::cli::values::{
    CacheMax, HostList, cache_max, duration_or_none, file, host_list, scheme, window,
};
use crate::engine::policy::{HostPattern, IpNet, Mapping, Policy, Proxy, Scheme};
use crate::error::Error;
use crate::fetch::archive::{ArchiveWindow, IndexTemplate, Template};

#[derive(Args, Clone, Default, Debug)]
#[group(skip)]
#[command(next_help_heading = "Retrieval")]
pub(super) struct RetrievalArgs {
    /// Read options from this TOML file
    ///
    /// Options on the command line override those in the file.
    #[arg(long, value_name = "FILE", help_heading = None::<&'static str>, value_parser = file())]
    config: Option<PathBuf>,
    #[arg(
        long, value_name = "SCHEME,...", value_delimiter = ',', value_parser = scheme,
        help = format!("Retrieve over these schemes: {}", Scheme::names())
    )]
    pub(super) fetch: Vec<Scheme>,
    /// Retrieve only from these hosts: NAME or *.NAME [default: all public]
    #[arg(long, value_name = "PAT,...", value_delimiter = ',')]
    allow_host: Vec<HostPattern>,
    /// Never retrieve from these hosts; overrides --allow-host
    #[arg(long, value_name = "PAT,...", value_delimiter = ',')]
    deny_host: Vec<HostPattern>,
    /// Never retrieve from the hosts that are listed in this file
    ///
    /// The file has one host, or *.host, per line. A # begins a comment.
    #[arg(long, value_name = "FILE", value_parser = host_list)]
    deny_host_file: Vec<HostList>,
    /// Allow retrieval from these networks, e.g. 10.1.0.0/16
    ///
    /// Without this option, addresses that are not globally reachable are refused: private, loopback and link-local
    /// ones.
    #[arg(long, value_name = "CIDR,...", value_delimiter = ',', value_parser = network)]
    allow_net: Vec<IpNet>,
    /// Retrieve content from these ports, too [default: the port of the scheme]
    #[arg(long, value_name = "N,...", value_delimiter = ',', value_parser = port)]
    allow_port: Vec<u16>,
    /// Retrieve URLs that contain a user name or a password, too
    #[arg(long)]
    allow_userinfo: bool,
    /// Read file: URLs only below this directory
    ///
    /// The same holds for references with access-type=local-file. Symbolic links that lead out of the directory are not
    /// followed.
    #[arg(long, value_name = "DIR", value_parser = file_root)]
    file_root: Vec<PathBuf>,
    /// Replace the beginning FROM of a URL with TO before retrieval
    ///
    /// If several FROM match, the longest one is used.
    #[arg(long, value_name = "FROM=TO")]
    map: Vec<Mapping>,
    #[command(flatten)]
    server: ServerArgs,
}

impl RetrievalArgs {
    pub(super) fn policy(&self) -> Policy {
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

#[derive(Args, Clone, Default, Debug)]
#[group(skip)]
pub(super) struct ServerArgs {
    /// Use this proxy for http and https
    ///
    /// The value is http://[user:password@]host[:port], or https:// if the proxy itself uses TLS. The proxy receives
    /// requests for http: URLs, and CONNECT requests for https: URLs. The proxy resolves host names, so embody cannot
    /// check their addresses: the proxy has to refuse addresses that must not be reached. Names of a local network
    /// (without a dot, .local, .internal, .home.arpa) need --allow-host.
    #[arg(long, value_name = "URL")]
    proxy: Option<Proxy>,
    /// Trust the certificates in this PEM file, too
    #[arg(long, value_name = "PEM", value_parser = file())]
    ca_file: Option<PathBuf>,
}

impl ServerArgs {
    pub(super) fn policy(&self) -> Policy {
        Policy {
            proxy: self.proxy.clone(),
            ca_file: self.ca_file.clone(),
            ..Policy::default()
        }
    }
}

#[derive(Args, Clone, Default, Debug)]
#[group(skip)]
#[command(next_help_heading = "Limits")]
pub(super) struct TimeArgs {
    /// Time limit for one retrieval; 0: none [default: 20s]
    #[arg(long, value_name = "DUR", value_parser = duration_or_none)]
    pub timeout: Option<Duration>,
    /// Time limit for one message; 0: none [default: 60s]
    ///
    /// The time includes all retrievals for the message and the work on it.
    #[arg(long, value_name = "DUR", value_parser = duration_or_none)]
    pub deadline: Option<Duration>,
}

pub(super) const KEPT: &str = "Cache and records";

#[derive(Args, Clone, Default, Debug)]
#[group(skip)]
#[command(next_help_heading = KEPT)]
pub(crate) struct CacheArgs {
    /// Keep responses of http and https servers in this directory
    ///
    /// Later runs use these responses as long as the responses are fresh.
    #[arg(long, value_name = "DIR")]
    pub cache: Option<PathBuf>,
    /// Maximum size of the cache [default: 2G]
    ///
    /// The least recently used entries are evicted. The word none removes the limit.
    #[arg(long, value_name = "SIZE", requires = "cache", value_parser = cache_max)]
    pub cache_max: Option<CacheMax>,
    /// Cache responses that are marked no-store or private, too
    #[arg(
        long,
        value_parser = ["no-store"],
        hide_possible_values = true,
        value_delimiter = ',',
        value_name = "WHAT",
        requires = "cache"
    )]
    pub cache_ignore: Vec<String>,
    /// Make no network requests
    ///
    /// Content comes only from --cache, whether it is fresh or stale, and from the files of --archive.
    #[arg(long)]
    pub offline: bool,
    /// Whether `--offline` is allowed without a cache or an archive. Only `recover` sets this, because its content can also
    /// be in files.
    #[arg(skip)]
    pub may_keep_nothing: bool,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum ArchivePlace {
    Server(Template),
    /// Path of a WARC or WACZ file with captures, or of a directory of such files.
    Files(PathBuf),
}

fn archive(text: &str) -> Result<ArchivePlace, String> {
    if text.contains("://") || text.contains("{url}") {
        text.parse().map(ArchivePlace::Server)
    } else {
        Ok(ArchivePlace::Files(text.into()))
    }
}

#[derive(Args, Clone, Default, Debug)]
#[group(skip)]
#[command(next_help_heading = "Web archives")]
pub(crate) struct ArchiveArgs {
    /// Web archive, or files, for content that is gone
    ///
    /// The value is a URL template such as https://web.archive.org/web/{date}id_/{url}, or the name of a WARC or WACZ file,
    /// or of a directory of such files.
    #[arg(long, value_name = "URL|FILE", value_parser = archive)]
    pub archive: Option<ArchivePlace>,
    /// Try the archive first, and then the original server
    #[arg(long, requires = "archive")]
    pub archive_first: bool,
    /// Longest time between the mail and a capture [default: 90d,400d]
    ///
    /// BEFORE is how much older than the mail a capture may be, AFTER how much newer. Captures in files may have any
    /// date.
    #[arg(long, requires = "archive", value_name = "BEFORE,AFTER", value_parser = window)]
    pub archive_window: Option<ArchiveWindow>,
    /// URL of the archive's list of captures
    ///
    /// For example https://web.archive.org/cdx/search/cdx?url={url}&closest={date}. If the capture nearest to the mail
    /// is an error page, the list is requested once to find another one.
    #[arg(long, requires = "archive", value_name = "URL-TEMPLATE")]
    pub archive_cdx: Option<IndexTemplate>,
    /// Send even URLs that may be secret to the archive
    ///
    /// Without this option, the archive does not receive URLs that look like secrets, nor URLs whose host is not
    /// public.
    #[arg(long, requires = "archive")]
    pub archive_any: bool,
}

fn network(text: &str) -> Result<IpNet, Error> {
    text.parse()
}

/// Returns the absolute path of a directory. Whether the directory exists is checked when the first file is read.
pub(super) fn file_root(text: &str) -> Result<PathBuf, String> {
    std::path::absolute(text).map_err(|why| format!("'{text}' is not a directory: {why}"))
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
    use std::net::IpAddr;

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
