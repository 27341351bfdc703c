//! Expands messages, one after the other or many at a time, under one policy.

use std::fmt;
use std::sync::Arc;

use super::driver::Driver;
use super::stored::FromStore;
use crate::engine::{Engine, Kinds, Mark, Mode, Outcome, Prefilter};
use crate::error::Error;
#[cfg(feature = "file")]
use crate::fetch::Attachments;
#[cfg(all(feature = "file", feature = "mailbox"))]
use crate::fetch::EudoraMailbox;
use crate::fetch::{Fetch, Fetcher, Sidecars};
use crate::policy::Policy;
use crate::report::Report;
use crate::store::Store;

/// Fills external bodies and resolves links. Threads may share it. It owns its policy and what retrieves under it.
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
    /// The mailbox of Eudora that is being read, and the files next to it.
    #[cfg(all(feature = "file", feature = "mailbox"))]
    pub(super) eudora: EudoraMailbox,
}

/// Makes an [`Expander`]; see [`Expander::builder`].
#[derive(Clone)]
#[must_use = "call `build` to create the `Expander`"]
pub struct ExpanderBuilder {
    engine: Engine,
    fetch: Option<Arc<dyn Fetch>>,
    store: Option<Arc<dyn Store>>,
    cache: Option<usize>,
}

impl ExpanderBuilder {
    /// Retrieves with this. Without it, [`Expander::builder`] says what is used.
    pub fn fetch(mut self, fetch: impl Fetch + 'static) -> Self {
        self.fetch = Some(Arc::new(fetch));
        self
    }

    /// Retrieves with what is made from this expander's policy: a [`Fetch`] that hands requests on to a [`Fetcher`], say.
    ///
    /// # Errors
    /// Those of `make`.
    pub fn fetch_with<F: Fetch + 'static>(
        self,
        make: impl FnOnce(&Arc<Policy>) -> Result<F, Error>,
    ) -> Result<Self, Error> {
        let fetch = make(self.engine.shared_policy())?;
        Ok(self.fetch(fetch))
    }

    /// Remembers what was retrieved, up to this many octets, from message to message ([`Fetcher::memory`]).
    pub fn cache(mut self, octets: usize) -> Self {
        self.cache = Some(octets);
        self
    }

    /// Whether to add the `X-Embody` field.
    pub fn mark(mut self, mark: Mark) -> Self {
        self.engine = self.engine.mark(mark);
        self
    }

    /// Restores what embody detached, and does nothing else.
    pub fn restoring(mut self) -> Self {
        self.engine = self.engine.restoring();
        self
    }

    /// Takes the content of what embody detached from here, by its hash; its URL is not asked.
    pub fn store(mut self, store: Arc<dyn Store>) -> Self {
        self.engine = self.engine.with_store();
        self.store = Some(store);
        self
    }

    /// The expander.
    ///
    /// # Errors
    /// As [`Fetcher::new`], if that is what is used.
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
        let fetch: Arc<dyn Fetch> = match policy.attachments.is_empty() {
            true => fetch,
            false => Arc::new(Attachments::open(policy, fetch)?),
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
    /// An expander that retrieves from servers and files what the policy allows.
    ///
    /// # Errors
    /// As [`Fetcher::new`]; never if the policy allows no retrieval and names no CA file.
    pub fn new(policy: Policy) -> Result<Self, Error> {
        Self::builder(policy).build()
    }

    /// Without [`ExpanderBuilder::fetch`] the expander retrieves with a [`Fetcher`] under the same policy.
    pub fn builder(policy: impl Into<Arc<Policy>>) -> ExpanderBuilder {
        ExpanderBuilder {
            engine: Engine::new(policy),
            fetch: None,
            store: None,
            cache: None,
        }
    }

    /// The policy in force.
    pub fn policy(&self) -> &Policy {
        self.engine.policy()
    }

    /// Expands one message. `name` is what the report calls it.
    ///
    /// # Errors
    /// [`Error::Deferred`] if a retrieval failed for a while only and the policy says to try later.
    pub fn expand<'m>(&self, message: &'m [u8], name: &str) -> Result<Outcome<'m>, Error> {
        self.expand_beside(message, name, None, Mode::Run)
    }

    pub(crate) fn expand_beside<'m>(
        &self,
        message: &'m [u8],
        name: &str,
        beside: Option<&Sidecars>,
        mode: Mode,
    ) -> Result<Outcome<'m>, Error> {
        let kinds = self
            .prefilter()
            .kinds_beside(message, beside.map(Sidecars::form));
        self.run(message, kinds, name, mode, beside)
    }

    pub(crate) fn run<'m>(
        &self,
        message: &'m [u8],
        kinds: Kinds,
        name: &str,
        mode: Mode,
        beside: Option<&Sidecars>,
    ) -> Result<Outcome<'m>, Error> {
        let driver = Driver {
            engine: &self.engine,
            fetch: &*self.fetch,
            mode,
            name,
            beside,
            #[cfg(all(feature = "file", feature = "mailbox"))]
            eudora: beside.and_then(|_| self.open_eudora_files()),
        };
        driver.run(message, kinds)
    }

    /// What [`Expander::expand`] would do, as far as that can be known without retrieving.
    pub fn forecast(&self, message: &[u8], name: &str) -> Report {
        let expansion = self.expand_beside(message, name, None, Mode::DryRun);
        // Without requests, nothing fails for a while.
        expansion.map_or_else(|_| Report::default(), |outcome| outcome.report.would())
    }

    /// False: a message with this header, its empty line included, needs no change, whatever body comes.
    #[cfg(feature = "milter")]
    pub(crate) fn body_matters(&self, header: &[u8]) -> bool {
        let is_marked = self.engine.is_marked(header);
        let may_hold_notes = self.prefilter().looks_at_bodies();
        if is_marked || may_hold_notes || self.prefilter().first(header).is_some() {
            return true;
        }
        // A leaf that is no reference and no document has nothing in it that is looked at.
        let tree = crate::mime::scan(header, &self.policy().limits.scan());
        let root = tree.root();
        // Whether a composite with an untrue Content-Transfer-Encoding has parts, its body says.
        let is_composite = ["multipart/", "message/"]
            .iter()
            .any(|start| root.essence.starts_with(start));
        is_composite || root.content != crate::mime::PartKind::Leaf
    }

    /// Where the first byte is that [`Expander::expand`] might care about, in any run of whole messages. This runs at
    /// memory speed and proves nothing; `None` does: nothing in there would change.
    pub fn first_touch(&self, bytes: &[u8]) -> Option<usize> {
        match self.marks() {
            false => self.prefilter().first(bytes),
            // A mark of others goes from a message in which nothing else is to be done, too.
            true => self.prefilter().first_or_mark(bytes),
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
