//! Looking without taking: a dry run asks nobody, or, if the user wants to know, asks each source whether
//! it would answer. Nothing is retrieved in either; the policy judges as ever.

use super::{Fetch, Probed, Request, Retrieved};
use crate::link::url::masked;
use crate::report::{Reason, Refusal};

/// Asks nobody: every retrieval is refused with [`Reason::NotRetrieved`].
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Unasked;

impl Fetch for Unasked {
    fn fetch(&self, request: &Request) -> Result<Retrieved, Refusal> {
        Err(Refusal::lasting(
            Reason::NotRetrieved,
            format!("would retrieve {}", masked(&request.url)),
        ))
    }
}

/// Asks another fetcher whether it would answer: a retrieval that would succeed is refused with
/// [`Reason::NotRetrieved`] and what the source said, any other as it would be.
#[derive(Debug)]
pub(crate) struct Probing<F>(pub(crate) F);

impl<F: Fetch> Fetch for Probing<F> {
    fn fetch(&self, request: &Request) -> Result<Retrieved, Refusal> {
        let probed = self.0.probe(request)?;
        let reason = match probed.method {
            "archive" => Reason::InArchive,
            _ => Reason::NotRetrieved,
        };
        Err(Refusal::lasting(reason, probed.to_string()))
    }

    fn probe(&self, request: &Request) -> Result<Probed, Refusal> {
        self.0.probe(request)
    }

    fn heeds_date(&self) -> bool {
        self.0.heeds_date()
    }
}
