use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Instant, SystemTime};

use crate::engine::report::{Provenance, Reason, Refusal};
use crate::engine::{Announcement, Answer, Content, Mode, Need};
use crate::error::unpoisoned;
use crate::fetch::file_url;
use crate::link::url::masked;

/// A request for content that is not in the message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Request {
    /// The content to retrieve.
    pub need: Need,
    /// Time at which all retrievals for the message must be complete.
    pub deadline: Instant,
    /// Date of the message. It is used by a [`Fetch`] whose answers [depend on the date](Fetch::heeds_date), such as a web
    /// archive.
    pub date: Option<SystemTime>,
}

impl Request {
    /// Returns the URL of the content, or an empty string if the content has no URL ([`Need::url`]).
    pub fn url(&self) -> &str {
        self.need.url().unwrap_or_default()
    }

    /// Returns the value of the Accept field: the media type that the reference declares, or `*/*` if it declares none.
    pub(crate) fn acceptable(&self) -> &str {
        self.need
            .accept()
            .filter(|wanted| wanted.contains('/') && wanted.bytes().all(|it| it.is_ascii_graphic()))
            .unwrap_or("*/*")
    }
}

/// Builds the result of a retrieval that ends now. `begun` is the time at which the retrieval began.
pub(super) fn just_now(url: String, from: Provenance, body: Vec<u8>, begun: Instant) -> Content {
    let mut content = Content::new(url, None, body);
    content.origin.from = from;
    content.origin.at = Some(SystemTime::now());
    content.origin.elapsed = begun.elapsed();
    content
}

/// Builds content that was read from a file. Its URL has the scheme `file`.
pub(super) fn of_file(path: &Path, body: Vec<u8>, begun: Instant) -> Content {
    let url = file_url::of_file(path).unwrap_or_else(|| "file:".to_owned());
    just_now(url, Provenance::File, body, begun)
}

/// Returns the refusal for a file that is not next to the message.
pub(crate) fn not_beside() -> Refusal {
    let detail = "there are no attachment files next to the message, because it is not in a mailbox of Apple Mail or Eudora";
    Refusal::lasting(Reason::FileNotReadable, detail)
}

/// A source of content that is not in the message. Threads share an implementation.
///
/// The expander requests only URLs that its policy allows ([`Policy::judge_url`]), and checks the size and type of the content
/// before it uses it. The implementation itself must check the addresses of a host and the targets of redirects, as
/// [`Fetcher`](super::Fetcher) does. The documentation of the [crate] contains an example.
///
/// [`Policy::judge_url`]: crate::engine::policy::Policy::judge_url
pub trait Fetch: Send + Sync {
    /// Returns the whole body.
    ///
    /// # Errors
    /// A [`Refusal`] with the reason. It is marked as temporary if a later request may succeed.
    fn fetch(&self, request: &Request) -> Result<Content, Refusal>;

    /// Answers a need in the given mode. A run returns the content. A probe returns an announcement, and transfers as few bytes
    /// as possible. A dry run returns only facts that need no request.
    ///
    /// Override this method if the source can announce content without retrieving it. By default, a probe retrieves the whole
    /// content, and a dry run returns an announcement without a request.
    ///
    /// # Errors
    /// The errors of [`Fetch::fetch`], as far as they can be found without the content.
    fn answer(&self, request: &Request, mode: Mode) -> Result<Answer, Refusal> {
        answer_by_fetching(self, request, mode)
    }

    /// Returns whether responses may depend on [`Request::date`]. If not, the date is left out of requests, so that messages
    /// with different dates share responses.
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

/// A source that sends no requests and refuses everything.
#[derive(Clone, Copy, Default, Debug)]
pub struct NoFetch;

impl Fetch for NoFetch {
    fn fetch(&self, request: &Request) -> Result<Content, Refusal> {
        let detail = format!("{} was not retrieved", request.url());
        Err(Refusal::lasting(Reason::SchemeNotAllowed, detail))
    }
}

/// Implements [`Fetch::answer`] for a source that can only retrieve the whole content.
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

/// A source for tests: returns a prepared answer for each URL, and records the requests. Clones share the record.
#[derive(Clone, Debug, Default)]
pub struct Canned {
    answers: HashMap<String, Result<Content, Refusal>>,
    asked: Arc<Mutex<Vec<Request>>>,
}

impl Canned {
    /// Creates a source without answers. It refuses every URL.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a body as the answer for a URL.
    #[must_use]
    pub fn with(mut self, url: &str, media_type: Option<&str>, body: impl Into<Vec<u8>>) -> Self {
        let answer = Content::new(url, media_type.map(str::to_owned), body.into());
        self.answers.insert(url.to_owned(), Ok(answer));
        self
    }

    /// Adds a refusal as the answer for a URL.
    #[must_use]
    pub fn failing(mut self, url: &str, refusal: Refusal) -> Self {
        self.answers.insert(url.to_owned(), Err(refusal));
        self
    }

    /// Returns the requests so far, in the order in which they were made.
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
