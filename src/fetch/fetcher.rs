//! One retrieval from top to bottom.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::gate::Gate;
use super::memory::Memory;
#[cfg(any(feature = "http", feature = "ftp"))]
use super::names::{Names, SystemNames};
use super::order::{both, either, may_be_archived, undated};
use super::request::{Fetch, NoFetch, Request};
#[cfg(feature = "http")]
use super::system::Servers;
use super::system::System;
use crate::engine::{Announcement, Answer, Content, Mode, Need};
use crate::error::Error;
use crate::mime::media_type::is_page;
use crate::policy::Policy;
use crate::report::Refusal;

/// Retrieves what a policy allows, for all messages of a run.
///
/// By itself it has neither memory nor gate. Without the features `http` and `ftp`, their schemes are refused with
/// [`Reason::UnsupportedScheme`](crate::report::Reason::UnsupportedScheme).
pub struct Fetcher {
    pub(crate) archive: Option<(bool, Arc<dyn Fetch>)>,
    /// The archive is asked by this date if the mail has none, and else not.
    pub(crate) undated: Option<SystemTime>,
    memory: Option<Memory<Content>>,
    /// The answers of probes.
    probed: Option<Memory<Answer>>,
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
    /// Octets that [`Fetcher::memory`] is good for: 64 MiB.
    pub const MEMORY: usize = 64 << 20;

    /// A fetcher that asks the system's name resolver. Networks wait for the first retrieval that needs them.
    ///
    /// An [`Expander`](crate::Expander) makes its own; this is for a [`Fetch`] of one's own that hands requests on.
    ///
    /// # Errors
    /// [`Error::Read`] for a file root or a CA file that cannot be opened, [`Error::Usage`] for a
    /// CA file without certificates or a proxy that cannot be used.
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

    /// A fetcher under a policy, which asks another resolver.
    ///
    /// # Errors
    /// As [`Fetcher::new`].
    #[cfg(any(feature = "http", feature = "ftp"))]
    pub fn with_names(
        policy: impl Into<Arc<Policy>>,
        names: Arc<dyn Names>,
    ) -> Result<Self, Error> {
        let policy = policy.into();
        #[cfg(feature = "http")]
        let servers = Arc::new(Servers::new(&policy, Arc::clone(&names), None)?);
        let system = System::new(
            policy,
            #[cfg(feature = "ftp")]
            names,
            #[cfg(feature = "http")]
            servers,
        );
        system.map(Self::around)
    }

    #[cfg(feature = "http")]
    pub(crate) fn over(policy: Arc<Policy>, servers: Arc<Servers>) -> Result<Self, Error> {
        let is_stopped = Arc::clone(&servers.is_stopped);
        let system = System::new(
            policy,
            #[cfg(feature = "ftp")]
            Arc::new(SystemNames),
            servers,
        )?;
        let mut fetcher = Self::around(system);
        fetcher.gate.is_stopped = is_stopped;
        Ok(fetcher)
    }

    /// A fetcher that asks this for everything, and nothing of the system.
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

    /// Asks at most so many at the same time, over all messages, in the order in which they come; zero counts as one.
    #[must_use]
    pub fn in_flight(mut self, most: usize) -> Self {
        self.gate.allow(most);
        self
    }

    /// Remembers so many octets of answers and lasting refusals, up to this age: the same URL is retrieved once.
    #[must_use]
    pub fn memory(mut self, octets: usize, age: Option<Duration>) -> Self {
        self.memory = Some(Memory::new(octets, age));
        self.probed = Some(Memory::new(octets, age));
        self
    }

    /// Also remembers temporary failures, so that a run requests no URL twice. A service must not do this, because the same
    /// request may succeed later.
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

    /// A CA file that is named is read all the same, so that a mistake shows before it matters.
    pub(crate) fn is_idle(policy: &Policy) -> bool {
        policy.fetch.is_empty() && policy.ca_file.is_none() && policy.resolver.is_empty()
    }

    /// The archive, and whether it is asked before the source.
    fn archive_for(&self, request: &Request) -> Option<(bool, &dyn Fetch)> {
        let (archive_first, archive) = self.archive.as_ref()?;
        let is_question = matches!(request.need, Need::Question { .. });
        (!is_question).then_some((*archive_first, &**archive))
    }

    /// The request with the date for which the archive is asked.
    fn dated(&self, request: &Request) -> Result<Request, Refusal> {
        let date = request.date.or(self.undated);
        // Without a date, the key in [`Memory`] would equal that of the source, and the archive would return the response of
        // the source.
        let date = Some(date.ok_or_else(undated)?);
        Ok(Request {
            date,
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

    /// Asks the source whether it has the content, and the archive if the source does not.
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

/// Whether a source names a type that a run would hardly take: a web page in place of a file, or no picture in place of
/// one. Many servers answer with their home page for what is gone, and some name a wrong type for a picture. The content
/// decides, so it is retrieved and judged as in a run.
fn is_doubtful(request: &Request, announced: &Announcement) -> bool {
    let essence = announced.media_type.as_deref().unwrap_or_default();
    let essence = essence.split(';').next().unwrap_or_default();
    let essence = essence.trim().to_ascii_lowercase();
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
