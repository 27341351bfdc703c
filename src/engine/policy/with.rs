//! The methods `with_...`, which set the values of a policy and of its limits.

use std::path::PathBuf;
use std::time::Duration;

use super::{
    Embed, Followed, HostPattern, IpNet, Limits, Links, Mapping, OnFailure, Policy, Protected,
    Proxy, Scheme, TypePattern,
};

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
        /// Adds networks to which requests are allowed although they are not globally reachable, such as
        /// `"10.1.0.0/16".parse()?` or `"127.0.0.1".parse()?` (`--allow-net`).
        with_allow_nets allow_nets: IpNet;
        /// Adds allowed ports, in addition to the default port of the scheme (`--allow-port`).
        with_allow_ports allow_ports: u16;
        /// Adds absolute paths of directories below which `file:` URLs may be read (`--file-root`).
        with_file_roots file_roots: PathBuf;
        /// Adds absolute paths of directories in which missing attachments are searched for. A file is used if the end
        /// of its path is the end of the URL in the mail. This needs the feature `file` (`--attachments`).
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
        /// Sets the treatment of signed and encrypted parts (`--protected`).
        with_protected protected: Protected;
        /// Sets the treatment of relative links (`--links`).
        with_links links: Links;
        /// Sets whether links that a mail filter or a picture proxy wrapped in a URL of its own server become the
        /// original links again. The default is false (`--unwrap`).
        with_unwrap unwrap: bool;
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
        /// Sets the time limit for all retrievals of one message. The processing may end later, by a quarter of this
        /// time and at most by 5 seconds, so that content that arrived shortly before the limit is still inserted.
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
        /// Sets the limit on processing, so that a hostile message cannot keep the program busy. The maximum number of
        /// bytes to read is the product of this factor and the size of the message with its retrieved content. The
        /// allowed growth is added to this product.
        with_work work: u64;
    }
}
