//! Without the feature `file` nothing lies beside a mailbox.

use std::time::Instant;

use crate::engine::Content;
use crate::external_body::Follow;
use crate::policy::Policy;
use crate::report::Refusal;

#[derive(Debug)]
pub(crate) enum Sidecars {}

#[cfg_attr(not(feature = "mailbox"), allow(dead_code))]
impl Sidecars {
    pub(crate) fn form(&self) -> Follow {
        match *self {}
    }

    pub(crate) fn read(
        &self,
        _: &str,
        _: Option<&str>,
        _: &Policy,
        _: u64,
        _: Instant,
    ) -> Result<Content, Refusal> {
        match *self {}
    }
}
