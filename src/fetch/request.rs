use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Instant, SystemTime};

use crate::engine::{Announcement, Answer, Content, Mode, Need};
use crate::error::unpoisoned;
use crate::link::url::masked;
use crate::report::{Provenance, Reason, Refusal};

/// One retrieval.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Request {
    /// The content to retrieve.
    pub need: Need,
    /// Time at which all retrievals for the message must be complete.
    pub deadline: Instant,
    /// Date of the message, for a [`Fetch`] whose answers [depend on it](Fetch::heeds_date).
    pub date: Option<SystemTime>,
}

impl Request {
    /// The URL of the content. Empty for content that has no URL ([`Need::url`]).
    pub fn url(&self) -> &str {
        self.need.url().unwrap_or_default()
    }

    /// Value of the Accept field. `*/*` if the reference declares no media type.
    pub(crate) fn acceptable(&self) -> &str {
        self.need
            .accept()
            .filter(|wanted| wanted.contains('/') && wanted.bytes().all(|it| it.is_ascii_graphic()))
            .unwrap_or("*/*")
    }
}

/// Content that was retrieved just now; the retrieval began at `begun`.
pub(super) fn just_now(url: String, from: Provenance, body: Vec<u8>, begun: Instant) -> Content {
    let mut content = Content::new(url, None, body);
    content.origin.from = from;
    content.origin.at = Some(SystemTime::now());
    content.origin.elapsed = begun.elapsed();
    content
}

/// The content of a file. Its URL has the scheme `file`.
pub(super) fn of_file(path: &Path, body: Vec<u8>, begun: Instant) -> Content {
    let url = url::Url::from_file_path(path).map_or_else(|()| "file:".to_owned(), String::from);
    just_now(url, Provenance::File, body, begun)
}

/// Retrieves what is not in the message. Threads share an implementation.
///
/// The expander asks only for what its policy allows ([`Policy::judge_url`]), and puts in only what the policy lets it.
/// The implementation judges what a host's name resolves to and where a redirect leads, as [`Fetcher`](super::Fetcher)
/// does. The text of the [crate] has an example.
///
/// [`Policy::judge_url`]: crate::policy::Policy::judge_url
pub trait Fetch: Send + Sync {
    /// Retrieves the whole body or says why not.
    ///
    /// # Errors
    /// A [`Refusal`] with its reason; temporary ones are marked so.
    fn fetch(&self, request: &Request) -> Result<Content, Refusal>;

    /// Answers a need as the mode allows. A run returns the content. A probe returns an announcement, with as few
    /// transferred bytes as possible. A dry run returns what is known without a request.
    ///
    /// Override this method if the source can announce content without retrieving it. The default retrieves the content in
    /// a probe, and only announces it in a dry run.
    ///
    /// # Errors
    /// As [`Fetch::fetch`], as far as that shows without the content.
    fn answer(&self, request: &Request, mode: Mode) -> Result<Answer, Refusal> {
        answer_by_fetching(self, request, mode)
    }

    /// Whether answers may depend on [`Request::date`]; else requests have none, and messages share answers.
    fn heeds_date(&self) -> bool {
        false
    }
}

impl<F: Fetch + ?Sized> Fetch for Arc<F> {
    fn fetch(&self, request: &Request) -> Result<Content, Refusal> {
        (**self).fetch(request)
    }

    fn answer(&self, request: &Request, mode: Mode) -> Result<Answer, Refusal> {
        (**self).answer(request, mode)
    }

    fn heeds_date(&self) -> bool {
        (**self).heeds_date()
    }
}

/// Asks nobody and retrieves nothing.
#[derive(Clone, Copy, Default, Debug)]
pub struct NoFetch;

impl Fetch for NoFetch {
    fn fetch(&self, request: &Request) -> Result<Content, Refusal> {
        let detail = format!("{} was not retrieved", request.url());
        Err(Refusal::lasting(Reason::SchemeNotAllowed, detail))
    }
}

/// The answer of a source that can only retrieve the whole content.
pub(crate) fn answer_by_fetching(
    source: &(impl Fetch + ?Sized),
    request: &Request,
    mode: Mode,
) -> Result<Answer, Refusal> {
    match mode {
        Mode::Run => source.fetch(request).map(Answer::Content),
        Mode::Probe => {
            let content = source.fetch(request)?;
            let announcement = Announcement::of_content("GET", &content);
            Ok(Answer::Announced(announcement))
        }
        Mode::DryRun => Ok(Answer::Announced(would_retrieve(request))),
    }
}

fn would_retrieve(request: &Request) -> Announcement {
    Announcement::new(format!("would retrieve {}", masked(request.url())))
}

/// Answers each URL with what it was given beforehand, and remembers what it was asked; clones remember together.
#[derive(Clone, Debug, Default)]
pub struct Canned {
    answers: HashMap<String, Result<Content, Refusal>>,
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
        let answer = Content::new(url, media_type.map(str::to_owned), body.into());
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
    fn fetch(&self, request: &Request) -> Result<Content, Refusal> {
        unpoisoned(self.asked.lock()).push(request.clone());
        let unknown = || {
            let detail = format!("{}: 404", request.url());
            Err(Refusal::lasting(Reason::HttpStatus, detail))
        };
        let known = self.answers.get(request.url());
        known.cloned().unwrap_or_else(unknown)
    }
}
