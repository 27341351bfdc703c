//! Without the feature `file` nothing lies beside a mailbox.

use std::path::Path;
use std::time::Instant;

use super::request::Retrieved;
use crate::external_body::Follow;
use crate::policy::Policy;
use crate::report::Refusal;

#[derive(Debug)]
pub(crate) enum Sidecars {}

#[cfg_attr(not(feature = "mailbox"), allow(dead_code))]
impl Sidecars {
    pub(crate) fn of_apple_mail(_source: &Path) -> Option<Self> {
        None
    }

    pub(crate) fn form(&self) -> Follow {
        match *self {}
    }

    pub(crate) fn look(&self, _: &str, _: Option<&str>, _: &Policy) -> Result<(), Refusal> {
        match *self {}
    }

    pub(crate) fn read(
        &self,
        _: &str,
        _: Option<&str>,
        _: &Policy,
        _: Instant,
    ) -> Result<Retrieved, Refusal> {
        match *self {}
    }
}
