//! Looking without taking: a dry run asks nobody, or, if the user wants to know, asks each source whether
//! it would answer. Nothing is retrieved in either; the policy judges as ever.

use std::fmt;

use super::{Fetch, Request, Retrieved};
use crate::link::url::masked;
use crate::report::{Reason, Refusal};

/// What a source says of content that was not taken.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Probed {
    /// What was asked: `HEAD`, or `GET` where that was not understood and for ftp and file, which have
    /// no question of that kind.
    pub method: &'static str,
    /// The URL that finally answered, as in [`Retrieved::url`].
    pub url: String,
    /// The source's own Content-Type value, unparsed.
    pub media_type: Option<String>,
    /// Octets, as far as the source says.
    pub length: Option<u64>,
}

impl From<Retrieved> for Probed {
    fn from(retrieved: Retrieved) -> Self {
        Self {
            method: "GET",
            url: retrieved.url,
            media_type: retrieved.media_type,
            length: Some(retrieved.body.len() as u64),
        }
    }
}

/// As the end of a sentence about the source: `HEAD was answered: image/png, 125 octets`.
impl fmt::Display for Probed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let media_type = self.media_type.as_deref().unwrap_or("no type");
        write!(formatter, "{} was answered: {media_type}", self.method)?;
        match self.length {
            Some(length) => write!(formatter, ", {length} octets"),
            None => formatter.write_str(", length not said"),
        }
    }
}

/// A world that asks nobody: every retrieval is refused with [`Reason::NotRetrieved`].
#[derive(Clone, Copy, Default, Debug)]
pub struct Unasked;

impl Fetch for Unasked {
    fn fetch(&self, request: &Request) -> Result<Retrieved, Refusal> {
        Err(Refusal::lasting(
            Reason::NotRetrieved,
            format!("would retrieve {}", masked(&request.url)),
        ))
    }
}

/// Asks another world whether it would answer: a retrieval that would succeed is refused with
/// [`Reason::NotRetrieved`] and what the source said, any other as it would be.
#[derive(Debug)]
pub struct Probing<F>(pub F);

impl<F: Fetch> Fetch for Probing<F> {
    fn fetch(&self, request: &Request) -> Result<Retrieved, Refusal> {
        let probed = self.0.probe(request)?;
        Err(Refusal::lasting(Reason::NotRetrieved, probed.to_string()))
    }

    fn probe(&self, request: &Request) -> Result<Probed, Refusal> {
        self.0.probe(request)
    }
}
