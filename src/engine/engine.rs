//! The engine computes the outcome for one message. It is a pure function of the message and the answers so far (content that
//! the driver retrieved).

use std::sync::Arc;

use super::context::Context;
use super::guide::Guide;
use super::mark::{MARK_FIELD, Mark, has_field};
use super::mode::Mode;
use super::needs::{Answers, Needs};
use super::prefilter::Prefilter;
use super::prefilter::kinds::Kinds;
use super::run::run;
use super::session::Session;
use super::settings::EngineSettings;
use crate::edit::{Edits, Spliced};
use crate::engine::forms::converts_messages;
use crate::engine::ledger::Ledger;
use crate::engine::policy::{Follow, Policy};
use crate::engine::report::{Detail, Refusal, Report};
use crate::mime::{self, MessageTree};

/// Decides how a message changes under one policy. It has no sources, starts no threads and reads no clock.
///
/// A program that drives the engine itself calls [`Engine::run`] in a loop: it retrieves the content that
/// [`EngineOutcome::needs`] lists, adds it to the answers, and calls [`Engine::run`] again, until nothing is needed.
/// [`Expander`](crate::Expander) contains such a loop.
///
/// ```
/// use embody::Policy;
/// use embody::engine::{Answers, Content, Context, Engine};
/// use embody::policy::Scheme;
///
/// let mail = b"Content-Type: message/external-body; access-type=URL;\n URL=\"https://www.example.org/a\"\n\n\
///              Content-Type: text/plain\n\n";
/// let engine = Engine::new(Policy::default().with_fetch([Scheme::Https]));
/// let context = Context::new("stdin", std::time::SystemTime::now());
/// let mut answers = Answers::new();
/// let outcome = loop {
///     let mut outcome = engine.run(mail, &context, answers);
///     let Some(needs) = outcome.needs.take() else { break outcome };
///     answers = outcome.answers;
///     for need in needs.batch {
///         let content = Content::new(need.url().unwrap(), None, "A brief note");
///         answers.insert(need, Ok(content.into()));
///     }
/// };
/// assert!(outcome.output().into_bytes().ends_with(b"A brief note"));
/// ```
#[derive(Clone, Debug)]
pub struct Engine {
    settings: EngineSettings,
}

/// The result of one call of [`Engine::run`].
#[derive(Debug)]
#[non_exhaustive]
pub struct EngineOutcome<'m> {
    message: &'m [u8],
    /// The changes to the message. They are final if `needs` is `None`.
    pub edits: Edits,
    /// The report, with a row for each reference and document. It is final if `needs` is `None`.
    pub report: Report,
    /// Content that the engine needs before it can continue. `None` if the outcome is final.
    pub needs: Option<Needs>,
    /// The answers, to be passed to the next call. Empty in a final outcome, because the edits contain the content.
    pub answers: Answers,
    /// The first temporary failure, as a sentence. A later run may succeed. [`Policy::on_failure`](crate::Policy) decides how
    /// the program treats it.
    pub temporary: Option<Detail>,
    /// Number of bytes that were read, as [`Limits::work`](crate::engine::policy::Limits::work) counts them. 0 if the message
    /// contains nothing that the engine could change.
    pub work: u64,
}

impl EngineOutcome<'_> {
    /// Returns the message with the edits applied. Unchanged parts are borrowed from the input.
    pub fn output(&self) -> Spliced<'_> {
        self.edits.splice(self.message)
    }
}

impl Engine {
    /// Creates an engine that follows references and links according to `policy`.
    pub fn new(policy: impl Into<Arc<Policy>>) -> Self {
        let policy: Arc<Policy> = policy.into();
        let settings = EngineSettings {
            prefilter: Prefilter::new(&policy),
            policy,
            mark: Mark::default(),
            detached_only: false,
            store: false,
        };
        Self { settings }
    }

    /// Sets whether the field `X-Embody` is added to messages.
    #[must_use]
    pub fn mark(mut self, mark: Mark) -> Self {
        self.settings.mark = mark;
        self
    }

    /// Makes the engine only restore attachments that embody detached. All other references and links stay unchanged.
    #[must_use]
    pub fn restoring(mut self) -> Self {
        self.settings.detached_only = true;
        self.settings.prefilter = Prefilter::of_detached();
        self
    }

    /// Makes [`EngineOutcome::needs`] list the content of detached attachments as objects of a store
    /// ([`Need::Object`](super::Need::Object)), so that a program can read it from the store. Otherwise, the content is
    /// listed by its URL.
    #[must_use]
    pub fn with_store(mut self) -> Self {
        self.settings.store = true;
        self
    }

    /// Returns the policy of this engine.
    pub fn policy(&self) -> &Policy {
        &self.settings.policy
    }

    /// Processes `message` as far as the answers allow. The same arguments always give the same outcome, unless the time limit
    /// of [`Context::until`] has passed.
    ///
    /// If a need has no answer, the outcome lists the first needs that do not depend on each other, and nothing else in the
    /// outcome is final. A program must answer all of them, with content or a refusal, before it calls this function again.
    pub fn run<'m>(
        &self,
        message: &'m [u8],
        context: &Context,
        answers: Answers,
    ) -> EngineOutcome<'m> {
        let kinds = self.kinds(message, context);
        self.round(
            message,
            kinds,
            context,
            answers,
            (Mode::Run, None),
            self.parts(message, kinds).as_ref(),
        )
    }

    /// Previews [`Engine::run`] as far as this is possible without content from servers. If a run would retrieve content for a
    /// reference, its row has the outcome [`WouldFetch`](crate::engine::report::Outcome::WouldFetch).
    ///
    /// [`EngineOutcome::needs`] may list content that is not on a server: files next to the mailbox, files in directories of
    /// attachments, and objects of a store. A program answers these needs and calls this function again, as for
    /// [`Engine::run`].
    pub fn forecast<'m>(
        &self,
        message: &'m [u8],
        context: &Context,
        answers: Answers,
    ) -> EngineOutcome<'m> {
        let kinds = self.kinds(message, context);
        self.round(
            message,
            kinds,
            context,
            answers,
            (Mode::DryRun, None),
            self.parts(message, kinds).as_ref(),
        )
    }

    /// Refuses further rounds if the rounds so far have together read `spent` bytes, and this is more than one round may read.
    ///
    /// Each round repeats the work of the rounds before it, so a hostile message could cost many times its work limit. To
    /// prevent this, a program that drives the engine adds up [`EngineOutcome::work`], passes the sum as `spent`, and answers
    /// further needs with the returned refusal.
    ///
    /// # Errors
    /// Returns [`Reason::TooMuchWork`](crate::engine::report::Reason::TooMuchWork) if the limit is exceeded.
    pub fn judge_rounds(&self, message: &[u8], spent: u64) -> Result<(), Refusal> {
        Ledger::new(&self.settings.policy.limits, message.len()).judge_rounds(spent)
    }

    pub(crate) fn kinds(&self, message: &[u8], context: &Context) -> Kinds {
        self.settings
            .prefilter
            .kinds_beside(message, context.form_beside())
    }

    pub(crate) fn prefilter(&self) -> &Prefilter {
        &self.settings.prefilter
    }

    pub(crate) fn marks(&self) -> bool {
        self.settings.mark == Mark::Field
    }

    /// Returns true if the message contains a field `X-Embody` of an earlier run, which this engine replaces.
    pub(crate) fn is_marked(&self, message: &[u8]) -> bool {
        self.marks() && has_field(message, MARK_FIELD, usize::MAX)
    }

    pub(crate) fn shared_policy(&self) -> &Arc<Policy> {
        &self.settings.policy
    }

    /// Returns true if the engine may change the message or report something about it. Otherwise the message need not
    /// be processed.
    pub(crate) fn matters(&self, message: &[u8], kinds: Kinds, beside: Option<Follow>) -> bool {
        self.is_marked(message)
            || beside.is_some_and(converts_messages)
            || self.settings.prefilter.matters(message, kinds)
    }

    /// Returns the parts of a message for [`Engine::round`], or `None` if no reference is searched for.
    pub(crate) fn parts<'m>(&self, message: &'m [u8], kinds: Kinds) -> Option<MessageTree<'m>> {
        let limits = self.settings.policy.limits.scan();
        kinds.references.then(|| mime::scan(message, &limits))
    }

    /// Runs one round over a message. `kinds` is the result of the prefilter (such as references or documents), and the
    /// round looks only for these. If `last` is set, no round follows, and missing content is refused with this
    /// refusal. `parts` is the result of [`Engine::parts`], shared by all rounds so that the message is scanned once.
    pub(crate) fn round<'m>(
        &self,
        message: &'m [u8],
        kinds: Kinds,
        context: &Context,
        answers: Answers,
        (mode, last): (Mode, Option<Refusal>),
        parts: Option<&MessageTree<'_>>,
    ) -> EngineOutcome<'m> {
        self.guided_round(
            message,
            kinds,
            context,
            answers,
            (mode, last),
            (parts, None),
        )
    }

    /// Like [`round`](Self::round), but with a guide (the result of an earlier run), which supplies the content and
    /// decides which pictures are embedded.
    pub(super) fn guided_round<'m>(
        &self,
        message: &'m [u8],
        kinds: Kinds,
        context: &Context,
        answers: Answers,
        (mode, last): (Mode, Option<Refusal>),
        (parts, guide): (Option<&MessageTree<'_>>, Option<&Guide>),
    ) -> EngineOutcome<'m> {
        if !self.matters(message, kinds, context.form_beside()) {
            return EngineOutcome {
                message,
                edits: Edits::new(),
                report: Report::default(),
                needs: None,
                answers: Answers::new(),
                temporary: None,
                work: 0,
            };
        }
        let limits = &self.settings.policy.limits;
        let mut session = Session {
            settings: &self.settings,
            kinds,
            context,
            mode,
            answers,
            last,
            retrieved: Default::default(),
            not_copied: Default::default(),
            needs: None,
            ledger: Ledger::new(limits, message.len()).until(&context.is_over),
            given: Default::default(),
            guide,
        };
        let pass = run(&mut session, message, parts);
        EngineOutcome {
            message,
            edits: pass.edits,
            report: pass.report,
            needs: session.needs,
            answers: session.answers,
            temporary: pass.temporary,
            work: session.ledger.spent(),
        }
    }
}
