//! A fetcher made of answers given beforehand, for tests of this crate and of programs that use it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use super::{Fetch, Request, Retrieved};
use crate::error::unpoisoned;
use crate::report::{Reason, Refusal};

/// Answers each URL with what it was given, and remembers what it was asked; clones remember together.
#[derive(Clone, Debug, Default)]
pub struct Canned {
    answers: HashMap<String, Result<Retrieved, Refusal>>,
    asked: Arc<Mutex<Vec<Request>>>,
}

impl Canned {
    /// A fetcher that knows no URL.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a body under a URL.
    #[must_use]
    pub fn with(mut self, url: &str, media_type: Option<&str>, body: impl Into<Vec<u8>>) -> Self {
        let answer = Retrieved::new(url, media_type.map(str::to_owned), body.into());
        self.answers.insert(url.to_owned(), Ok(answer));
        self
    }

    /// Adds a failure under a URL.
    #[must_use]
    pub fn failing(mut self, url: &str, refusal: Refusal) -> Self {
        self.answers.insert(url.to_owned(), Err(refusal));
        self
    }

    /// The requests so far, in the order in which they came.
    pub fn asked(&self) -> Vec<Request> {
        unpoisoned(self.asked.lock()).clone()
    }
}

impl Fetch for Canned {
    fn fetch(&self, request: &Request) -> Result<Retrieved, Refusal> {
        unpoisoned(self.asked.lock()).push(request.clone());
        let unknown = || {
            let detail = format!("{}: 404", request.url);
            Err(Refusal::lasting(Reason::HttpStatus, detail))
        };
        self.answers
            .get(&request.url)
            .cloned()
            .unwrap_or_else(unknown)
    }
}
