//! [`Fetcher`] retrieves content from servers and files. It keeps responses in memory, limits the number of parallel
//! requests, and searches a web archive if the server does not have the content.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::gate::Gate;
use super::memory::AnswerMemory;
#[cfg(any(feature = "http", feature = "ftp"))]
use super::names::{Names, SystemNames};
use super::order::{both, either, may_be_archived, undated};
use super::request::{Fetch, NoFetch, Request};
#[cfg(feature = "http")]
use super::system::Servers;
use super::system::System;
use crate::engine::policy::Policy;
use crate::engine::report::Refusal;
use crate::engine::{Announcement, Answer, Content, Mode, Need};
use crate::error::Error;
use crate::mime::media_type::is_page;

/// Retrieves the content that a policy allows, for all messages of a run.
///
/// By default, responses are not kept in memory, and the number of parallel requests is not limited. Without the
/// features `http` and `ftp`, URLs with these schemes are refused with
/// [`Reason::UnsupportedScheme`](crate::engine::report::Reason::UnsupportedScheme).
pub struct Fetcher {
    pub(crate) archive: Option<(bool, Arc<dyn Fetch>)>,
    /// Date for which the archive is searched if the mail has no date. If both are missing, the archive is not used.
    pub(crate) undated: Option<SystemTime>,
    memory: Option<AnswerMemory<Content>>,
    /// Answers of probes (checks whether content could be retrieved). They may lack the content, so they are separate from the
    /// answers of retrievals.
    probed: Option<AnswerMemory<Answer>>,
    gate: Gate,
    pub(crate) observer: Option<Observer>,
    source: Arc<dyn Fetch>,
}

pub(crate) type Observer = Arc<dyn Fn(&Result<Content, Refusal>) + Send + Sync>;

impl Fetch for Fetcher {
    fn fetch(&self, request: &Request) -> Result<Content, Refusal> {
        let Some((archive_first, archive)) = self.archive_for(request) else {
            return self.retrieve(&*self.source, request);
        };
        let of_source = || self.retrieve(&*self.source, &undated_request(request));
        let of_archive = || self.retrieve(archive, &self.dated(request)?);
        either(archive_first, of_source, of_archive)
    }

    fn answer(&self, request: &Request, mode: Mode) -> Result<Answer, Refusal> {
        match mode {
            Mode::Run => self.fetch(request).map(Answer::Content),
            Mode::Probe => self.probe(request),
            Mode::DryRun => self.source.answer(request, mode),
        }
    }

    fn heeds_date(&self) -> bool {
        self.archive.is_some() || self.source.heeds_date()
    }
}

impl Fetcher {
    /// Recommended size for [`Fetcher::memory`] in bytes: 64 MiB.
    pub const MEMORY: usize = 64 << 20;

    /// Creates a fetcher that uses the name resolver of the system. The HTTP client is built at the first retrieval.
    ///
    /// An [`Expander`](crate::Expander) creates its own fetcher. Create one yourself if your own [`Fetch`] passes some requests
    /// on to it.
    ///
    /// # Errors
    /// [`Error::Read`] if a file root or a CA file cannot be opened, [`Error::Usage`] if a CA file contains no certificates or
    /// a proxy is not supported.
    pub fn new(policy: impl Into<Arc<Policy>>) -> Result<Self, Error> {
        let policy = policy.into();
        if Self::is_idle(&policy) {
            return Ok(Self::around(NoFetch));
        }
        #[cfg(any(feature = "http", feature = "ftp"))]
        return Self::with_names(policy, Arc::new(SystemNames));
        #[cfg(not(any(feature = "http", feature = "ftp")))]
        System::new(policy).map(Self::around)
    }

    /// Creates a fetcher that resolves host names with `names`.
    ///
    /// # Errors
    /// The errors of [`Fetcher::new`].
    #[cfg(any(feature = "http", feature = "ftp"))]
    pub fn with_names(
        policy: impl Into<Arc<Policy>>,
        names: Arc<dyn Names>,
    ) -> Result<Self, Error> {
        let policy = policy.into();
        #[cfg(feature = "http")]
        let servers = Arc::new(Servers::new(&policy, names, None)?);
        let system = System::new(
            policy,
            #[cfg(not(feature = "http"))]
            names,
            #[cfg(feature = "http")]
            servers,
        );
        system.map(Self::around)
    }

    #[cfg(feature = "http")]
    pub(crate) fn over(policy: Arc<Policy>, servers: Arc<Servers>) -> Result<Self, Error> {
        let is_stopped = Arc::clone(&servers.is_stopped);
        let system = System::new(policy, servers)?;
        let mut fetcher = Self::around(system);
        fetcher.gate.is_stopped = is_stopped;
        Ok(fetcher)
    }

    /// Creates a fetcher that sends every request to `source`, and uses neither network nor files itself.
    pub fn around(source: impl Fetch + 'static) -> Self {
        Self {
            archive: None,
            undated: None,
            memory: None,
            probed: None,
            gate: Gate::default(),
            observer: None,
            source: Arc::new(source),
        }
    }

    /// Limits the number of requests that run at the same time, over all messages. They run in the order in which they arrive.
    /// Zero counts as one.
    #[must_use]
    pub fn in_flight(mut self, most: usize) -> Self {
        self.gate.allow(most);
        self
    }

    /// Keeps answers and lasting refusals in memory, so that each URL is retrieved once. `octets` limits their size, and `age`
    /// the time until they are discarded.
    #[must_use]
    pub fn memory(mut self, octets: usize, age: Option<Duration>) -> Self {
        self.memory = Some(AnswerMemory::new(octets, age));
        self.probed = Some(AnswerMemory::new(octets, age));
        self
    }

    /// Keeps temporary failures in memory, too, so that a run requests no URL twice. A service must not do this,
    /// because the same request may succeed later.
    #[must_use]
    pub(crate) fn keeping_failures(mut self) -> Self {
        if let Some(memory) = &mut self.memory {
            memory.keep_failures();
        }
        if let Some(memory) = &mut self.probed {
            memory.keep_failures();
        }
        self
    }

    /// Returns whether the policy allows no retrieval at all. A policy with a CA file is not idle: the file is read anyway, so
    /// that an error in it is reported at the start.
    pub(crate) fn is_idle(policy: &Policy) -> bool {
        policy.fetch.is_empty() && policy.ca_file.is_none() && policy.resolver.is_empty()
    }

    /// Returns the web archive for a request, and true if the archive gets the request before the source
    /// (`--archive-first`). Returns `None` if there is no archive, or if the request is for the program of `--resolver`.
    fn archive_for(&self, request: &Request) -> Option<(bool, &dyn Fetch)> {
        let (archive_first, archive) = self.archive.as_ref()?;
        let is_question = matches!(request.need, Need::Question { .. });
        (!is_question).then_some((*archive_first, &**archive))
    }

    /// Adds a date to the request: that of the mail, or the default date. The archive returns the capture nearest to
    /// this date. Returns a refusal if there is no date.
    fn dated(&self, request: &Request) -> Result<Request, Refusal> {
        // Without a date, the key in [`AnswerMemory`] would be the same as for the source, and the answer of the source would be
        // returned as that of the archive.
        let date = request.date.or(self.undated).ok_or_else(undated)?;
        Ok(Request {
            date: Some(date),
            ..request.clone()
        })
    }

    fn retrieve(&self, source: &dyn Fetch, request: &Request) -> Result<Content, Refusal> {
        let ask = || {
            let _turn = self.gate.turn(request.deadline)?;
            let answer = source.fetch(request);
            if let Some(observer) = &self.observer {
                observer(&answer);
            }
            answer
        };
        match &self.memory {
            Some(memory) => memory.answer(request, ask),
            None => ask(),
        }
    }

    /// Finds out whether the source has the content, and searches the archive if the source does not have it.
    fn probe(&self, request: &Request) -> Result<Answer, Refusal> {
        let Some((_, archive)) = self.archive_for(request) else {
            return self.probe_one(&*self.source, request);
        };
        match self.probe_one(&*self.source, &undated_request(request)) {
            Err(refusal) if may_be_archived(&refusal) => {
                let answer = self
                    .dated(request)
                    .and_then(|request| self.probe_one(archive, &request));
                match answer {
                    Ok(Answer::Announced(announcement)) => {
                        Ok(Answer::Announced(announcement.in_place_of(refusal)))
                    }
                    Ok(content) => Ok(content),
                    Err(other) => Err(both(refusal, other)),
                }
            }
            answer => answer,
        }
    }

    fn probe_one(&self, source: &dyn Fetch, request: &Request) -> Result<Answer, Refusal> {
        let ask = || {
            let _turn = self.gate.turn(request.deadline)?;
            match source.answer(request, Mode::Probe)? {
                Answer::Announced(announced) if is_doubtful(request, &announced) => {
                    source.fetch(request).map(Answer::Content)
                }
                answer => Ok(answer),
            }
        };
        match &self.probed {
            Some(memory) => memory.answer(request, ask),
            None => ask(),
        }
    }
}

/// Removes the date, so that messages of different dates share one response of the source.
fn undated_request(request: &Request) -> Request {
    Request {
        date: None,
        ..request.clone()
    }
}

/// Returns whether the announced media type makes it doubtful that a run would use the content: a web page where another type
/// is wanted, or another type where a picture is wanted. Many servers send their home page for a deleted file, and some declare
/// a wrong type for a picture. In this case the content is retrieved and checked as in a run.
fn is_doubtful(request: &Request, announced: &Announcement) -> bool {
    let media_type = announced.media_type.as_deref().unwrap_or_default();
    let essence = media_type
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    let wanted = request.acceptable();
    let is_other_than_picture = wanted.starts_with("image/")
        && !essence.is_empty()
        && !essence.starts_with("image/")
        && essence != "application/octet-stream";
    is_page(&essence) && !wanted.eq_ignore_ascii_case(&essence) || is_other_than_picture
}

impl fmt::Debug for Fetcher {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Fetcher").finish_non_exhaustive()
    }
}
