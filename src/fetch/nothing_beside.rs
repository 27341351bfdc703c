//! Replaces the module `beside` in a build without the feature `file`. No value of its type can be created, so no file next to
//! a mailbox is read.

use std::time::Instant;

use crate::engine::policy::{Follow, Policy};
use crate::engine::report::Refusal;
use crate::engine::{Content, Neighbour};

#[derive(Debug)]
pub(crate) enum Sidecars {}

#[cfg_attr(not(feature = "mailbox"), allow(dead_code))]
impl Sidecars {
    pub(crate) fn form(&self) -> Follow {
        match *self {}
    }

    pub(crate) fn read(
        &self,
        _: &Neighbour,
        _: &Policy,
        _: u64,
        _: Instant,
    ) -> Result<Content, Refusal> {
        match *self {}
    }
}
