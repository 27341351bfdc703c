//! The ways to say what differs from the default, one field after the other.

use std::path::PathBuf;
use std::time::Duration;

use ipnet::IpNet;

use super::{
    Embed, Followed, HostPattern, Limits, Links, Mapping, OnFailure, Policy, Protected, Proxy,
    Scheme, TypePattern,
};

/// Setters of fields that hold one value.
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

/// Setters of fields that hold many.
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
