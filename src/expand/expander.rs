//! Expands messages under one policy, one after the other or from several threads.

use std::fmt;
use std::sync::Arc;

use super::driver::Driver;
use super::stored::FromStore;
use crate::engine::policy::Policy;
use crate::engine::report::Report;
use crate::engine::{Engine, EngineOutcome, Kinds, Mark, Mode, Prefilter};
use crate::error::Error;
#[cfg(feature = "file")]
use crate::fetch::Attachments;
#[cfg(all(feature = "file", feature = "mailbox"))]
use crate::fetch::EudoraMailbox;
use crate::fetch::store::Store;
use crate::fetch::{Fetch, Fetcher, Sidecars};

/// Fills in external bodies and resolves links. An expander contains its policy and its fetcher, and threads can share
/// it.
///
/// ```
/// use embody::{Expander, Policy};
///
/// let mail = b"Content-Type: message/external-body; access-type=URL;\n URL=\"data:,A%20brief%20note\"\n\n";
/// let expander = Expander::new(Policy::default())?;
/// let expansion = expander.expand(mail, "stdin")?;
/// assert_eq!(expansion.report.expanded(), 1);
/// assert!(expansion.output().into_bytes().ends_with(b"\n\nA brief note"));
/// # Ok::<(), embody::Error>(())
/// ```
#[derive(Clone)]
pub struct Expander {
    pub(super) engine: Engine,
    fetch: Arc<dyn Fetch>,
    /// State of the Eudora mailbox that is being read: the files next to it, and which message each belongs to.
    #[cfg(all(feature = "file", feature = "mailbox"))]
    pub(super) eudora: EudoraMailbox,
}

/// Creates an [`Expander`] with other settings than the default ones; see [`Expander::builder`].
#[derive(Clone)]
#[must_use = "call `build` to create the `Expander`"]
pub struct ExpanderBuilder {
    engine: Engine,
    fetch: Option<Arc<dyn Fetch>>,
    store: Option<Arc<dyn Store>>,
    cache: Option<usize>,
}

impl ExpanderBuilder {
    /// Sets the source of content. The default is in [`Expander::builder`].
    pub fn fetch(mut self, fetch: impl Fetch + 'static) -> Self {
        self.fetch = Some(Arc::new(fetch));
        self
    }

    /// Sets a source of content that needs the policy of this expander, for example a [`Fetch`] that passes requests on
    /// to a [`Fetcher`].
    ///
    /// # Errors
    /// The errors of `make`.
    pub fn fetch_with<F: Fetch + 'static>(
        self,
        make: impl FnOnce(&Arc<Policy>) -> Result<F, Error>,
    ) -> Result<Self, Error> {
        let fetch = make(self.engine.shared_policy())?;
        Ok(self.fetch(fetch))
    }

    /// Keeps up to this many bytes of responses in memory, for later messages ([`Fetcher::memory`]).
    pub fn cache(mut self, octets: usize) -> Self {
        self.cache = Some(octets);
        self
    }

    /// Sets whether changed messages get the field `X-Embody`.
    pub fn mark(mut self, mark: Mark) -> Self {
        self.engine = self.engine.mark(mark);
        self
    }

    /// Limits the expander to restoring attachments that embody detached.
    pub fn restoring(mut self) -> Self {
        self.engine = self.engine.restoring();
        self
    }

    /// Sets the store that contains the content of detached attachments. The content is read from the store by its
    /// hash, and its URL is not requested.
    pub fn store(mut self, store: Arc<dyn Store>) -> Self {
        self.engine = self.engine.with_store();
        self.store = Some(store);
        self
    }

    /// Creates the expander.
    ///
    /// # Errors
    /// The errors of [`Fetcher::new`], if no other source was set.
    pub fn build(self) -> Result<Expander, Error> {
        let policy = self.engine.shared_policy();
        let fetch: Arc<dyn Fetch> = match self.fetch {
            Some(fetch) => fetch,
            None => Arc::new(Fetcher::new(Arc::clone(policy))?),
        };
        let fetch = match self.store {
            Some(store) => Arc::new(FromStore {
                store,
                others: fetch,
                at_most: policy.limits.body,
            }),
            None => fetch,
        };
        #[cfg(feature = "file")]
        let fetch: Arc<dyn Fetch> = if policy.attachments.is_empty() {
            fetch
        } else {
            Arc::new(Attachments::open(policy, fetch)?)
        };
        Ok(Expander {
            fetch: match self.cache {
                Some(octets) => Arc::new(Fetcher::around(fetch).memory(octets, None)),
                None => fetch,
            },
            engine: self.engine,
            #[cfg(all(feature = "file", feature = "mailbox"))]
            eudora: EudoraMailbox::default(),
        })
    }
}

impl Expander {
    /// Creates an expander that retrieves the content that the policy allows, from servers and files.
    ///
    /// # Errors
    /// The errors of [`Fetcher::new`]. A policy that allows no retrieval and names no CA file causes no error.
    pub fn new(policy: Policy) -> Result<Self, Error> {
        Self::builder(policy).build()
    }

    /// Returns a builder. Without [`ExpanderBuilder::fetch`], the expander retrieves content with a [`Fetcher`] under
    /// the same policy.
    pub fn builder(policy: impl Into<Arc<Policy>>) -> ExpanderBuilder {
        ExpanderBuilder {
            engine: Engine::new(policy),
            fetch: None,
            store: None,
            cache: None,
        }
    }

    /// Returns the policy of this expander.
    pub fn policy(&self) -> &Policy {
        self.engine.policy()
    }

    /// Expands one message. `name` is the name of the message in the report.
    ///
    /// # Errors
    /// [`Error::Deferred`] if a retrieval failed temporarily and the policy is to try the message again later.
    pub fn expand<'m>(&self, message: &'m [u8], name: &str) -> Result<EngineOutcome<'m>, Error> {
        self.expand_beside(message, name, None, Mode::Run)
    }

    pub(crate) fn expand_beside<'m>(
        &self,
        message: &'m [u8],
        name: &str,
        beside: Option<&Sidecars>,
        mode: Mode,
    ) -> Result<EngineOutcome<'m>, Error> {
        let kinds = self
            .prefilter()
            .kinds_beside(message, beside.map(Sidecars::form));
        self.driver(name, mode, beside).run(message, kinds, None)
    }

    /// Expands a message whose parts were already found within the limits of the policy, so that it is not parsed again.
    #[cfg(feature = "cli")]
    pub(crate) fn expand_parsed<'m>(
        &self,
        parts: &crate::mime::MessageTree<'m>,
        beside: Option<&Sidecars>,
        mode: Mode,
    ) -> Result<EngineOutcome<'m>, Error> {
        let kinds = self
            .prefilter()
            .kinds_beside(parts.original, beside.map(Sidecars::form));
        let driver = self.driver("", mode, beside);
        driver.run(parts.original, kinds, Some(parts))
    }

    /// Expands a message that the prefilter has already searched. `kinds` says whether the prefilter found signs of references
    /// and of documents.
    #[cfg(feature = "milter")]
    pub(crate) fn expand_searched<'m>(
        &self,
        message: &'m [u8],
        kinds: Kinds,
        name: &str,
    ) -> Result<EngineOutcome<'m>, Error> {
        let driver = self.driver(name, Mode::Run, None);
        driver.run(message, kinds, None)
    }

    fn driver<'d>(&'d self, name: &'d str, mode: Mode, beside: Option<&'d Sidecars>) -> Driver<'d> {
        Driver {
            engine: &self.engine,
            fetch: &*self.fetch,
            mode,
            name,
            beside,
        }
    }

    /// Returns the report that [`Expander::expand`] would probably give, without retrieving any content.
    pub fn forecast(&self, message: &[u8], name: &str) -> Report {
        let expansion = self.expand_beside(message, name, None, Mode::DryRun);
        // A dry run makes no requests, so it cannot end with a temporary failure.
        expansion.map_or_else(|_| Report::default(), |outcome| outcome.report.would())
    }

    /// Returns false if a message with this header (including its empty line) needs no change, whatever its body
    /// contains. The milter then does not receive the body.
    #[cfg(feature = "milter")]
    pub(crate) fn body_matters(&self, header: &[u8]) -> bool {
        let is_marked = self.engine.is_marked(header);
        let may_hold_notes = self.prefilter().looks_at_bodies();
        if is_marked || may_hold_notes || self.prefilter().first(header).is_some() {
            return true;
        }
        // `header` is parsed as a message without a body. If the message is a single part that is neither a reference
        // nor a document, its body is never read.
        let tree = crate::mime::scan(header, &self.policy().limits.scan());
        let root = tree.root();
        // RFC 2045 forbids base64 for a multipart or a message, but some mail declares it. The parser then needs the
        // body to decide whether there are parts, so here the media type alone decides.
        let is_composite = ["multipart/", "message/"]
            .iter()
            .any(|start| root.essence.starts_with(start));
        is_composite || root.content != crate::mime::PartKind::Leaf
    }

    /// Returns the position of the first byte in a sequence of whole messages that [`Expander::expand`] might change.
    /// `None` proves that no message would change. A position does not prove that a message would change. This is as
    /// fast as reading memory.
    pub fn first_touch(&self, bytes: &[u8]) -> Option<usize> {
        if self.marks() {
            // An X-Embody field that another program added is removed even if the message needs no other change.
            self.prefilter().first_or_mark(bytes)
        } else {
            self.prefilter().first(bytes)
        }
    }

    pub(super) fn marks(&self) -> bool {
        self.engine.marks()
    }

    pub(crate) fn prefilter(&self) -> &Prefilter {
        self.engine.prefilter()
    }
}

impl fmt::Debug for Expander {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Expander")
            .field("engine", &self.engine)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for ExpanderBuilder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ExpanderBuilder")
            .field("engine", &self.engine)
            .field("cache", &self.cache)
            .finish_non_exhaustive()
    }
}
