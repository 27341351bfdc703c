//! `--offline` without a cache: no server is asked, and nothing was kept.

use crate::fetch::{Answer, Ask, Asked, Disk, Failed};
use crate::policy::Host;
use crate::report::{Reason, Refusal};

#[derive(Debug)]
pub(crate) struct Offline;

impl Disk for Offline {
    fn answer(&self, _: &Asked<'_>, _: Ask<'_>) -> Result<Answer, Failed> {
        Err(offline("no server is asked").into())
    }

    fn may_ask(&self, _: &Host, _: u16) -> Result<(), Refusal> {
        Err(offline("no server is asked"))
    }

    fn found_nobody(&self, _: &Host, _: u16, _: &Failed) {}
}

pub(super) fn offline(detail: &str) -> Refusal {
    Refusal::lasting(Reason::Offline, detail)
}
