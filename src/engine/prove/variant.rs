//! The options of a run that its answers do not contain.

use std::sync::{Arc, Mutex, PoisonError};

use crate::engine::Engine;
use crate::engine::forms::opened_by;
use crate::engine::policy::{Embed, Followed, Limits, Links, Policy, Protected, Scheme, Trackers};
use crate::engine::report::{Kind, Outcome, Row};
use crate::engine::source_field::SOURCE_FIELD;
use crate::link::wrapper::may_hold_wrapped;
use crate::mime::{MessageTree, PartId};

/// The files next to the mailbox that the run read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Beside {
    Nothing,
    Apple,
    Eudora,
}

/// Options of a run that decide something for which no content is needed. Everything else is allowed, and content that the
/// new mail does not contain is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Variant {
    follow: Followed,
    links: Links,
    unwrap: bool,
    protected: Protected,
    /// Whether content may be from other copies of the mail.
    copies: bool,
    /// Whether the run only restores detached attachments.
    is_restoring: bool,
    provenance: bool,
    pub(super) beside: Beside,
}

impl Default for Variant {
    fn default() -> Self {
        Self {
            follow: Followed::all(),
            links: Links::Resolve,
            unwrap: false,
            protected: Protected::Leave,
            copies: false,
            is_restoring: false,
            provenance: false,
            beside: Beside::Nothing,
        }
    }
}

/// Engines that were created. Creating one compiles its prefilter, which takes longer than a run over a small mail.
static ENGINES: Mutex<Vec<(Variant, Arc<Engine>)>> = Mutex::new(Vec::new());

/// Maximum number of engines that are kept.
const MOST_ENGINES: usize = 64;

impl Variant {
    pub(super) fn restoring() -> Self {
        Self {
            is_restoring: true,
            ..Self::default()
        }
    }

    /// Returns the most likely options for a change of `tree` to `new`.
    pub(super) fn first(tree: &MessageTree<'_>, new: &[u8]) -> Self {
        let has = |mail: &[u8], text: &str| memchr::memmem::find(mail, text.as_bytes()).is_some();
        let is_of_apple = has(tree.original, "X-Apple-Content-Length");
        let is_of_eudora = [
            "Attachment Converted",
            "Embedded Content",
            "<x-html>",
            "<x-flowed>",
            "<x-rich>",
            "<x-charset",
            "X-Attachments",
        ]
        .iter()
        .any(|mark| has(tree.original, mark));
        Self {
            provenance: has(new, SOURCE_FIELD),
            beside: match (is_of_apple, is_of_eudora) {
                (true, _) => Beside::Apple,
                (_, true) => Beside::Eudora,
                _ => Beside::Nothing,
            },
            ..Self::default()
        }
    }

    /// Returns the other combinations of options that may give another result. `rows` is the report of the run with this one.
    pub(super) fn others(self, tree: &MessageTree<'_>, rows: &[Row]) -> Vec<Self> {
        let mut variants = vec![self];
        let is_rewritten = |row: &Row| row.kind == Kind::Link && row.outcome == Outcome::Rewritten;
        if rows.iter().any(is_rewritten) {
            vary(&mut variants, |it| it.links = Links::Keep);
        }
        for form in opened_by(rows) {
            vary(&mut variants, |it| it.follow = it.follow.without(form));
        }
        if self.beside == Beside::Eudora {
            vary(&mut variants, |it| it.beside = Beside::Nothing);
        }
        let is_reference =
            |row: &Row| !matches!(row.kind, Kind::Link | Kind::Embed | Kind::Attachment);
        if rows.iter().any(is_reference) {
            vary(&mut variants, |it| it.copies = true);
        }
        let is_wrapped = |part: PartId| {
            let entity = tree.part(part);
            let text = || entity.encoding.decode(entity.body.of(tree.original));
            entity.essence.starts_with("text/") && text().is_some_and(|it| may_hold_wrapped(&it))
        };
        if tree.ids().any(is_wrapped) {
            vary(&mut variants, |it| it.unwrap = true);
        }
        let is_protected = |part: PartId| {
            let essence = tree.part(part).essence.as_str();
            let is_multipart = matches!(essence, "multipart/signed" | "multipart/encrypted");
            is_multipart || essence.contains("pkcs7-mime")
        };
        if tree.ids().any(is_protected) {
            vary(&mut variants, |it| it.protected = Protected::Rewrite);
        }
        if rows.iter().any(|row| row.kind == Kind::Attachment) {
            variants.push(Self {
                is_restoring: true,
                ..self
            });
        }
        variants.remove(0);
        variants
    }

    pub(super) fn engine(&self) -> Arc<Engine> {
        let mut engines = ENGINES.lock().unwrap_or_else(PoisonError::into_inner);
        let mut known = engines.iter();
        if let Some((_, engine)) = known.find(|(variant, _)| variant == self) {
            return Arc::clone(engine);
        }
        let engine = Engine::new(self.policy()).with_store();
        let engine = Arc::new(if self.is_restoring {
            engine.restoring()
        } else {
            engine
        });
        if engines.len() < MOST_ENGINES {
            engines.push((*self, Arc::clone(&engine)));
        }
        engine
    }

    pub(super) fn policy(&self) -> Policy {
        let embed = Embed {
            data: true,
            remote: true,
            pictures: true,
            fonts: true,
            media: true,
            styles: true,
            trackers: Trackers::Fetch,
        };
        let unlimited = 1 << 50;
        let limits = Limits::default()
            .with_body(unlimited)
            .with_growth(unlimited)
            .with_fetches(u32::MAX);
        let policy = Policy {
            fetch: Scheme::ALL.into_iter().collect(),
            allow_userinfo: true,
            accept_mismatch: true,
            protected: self.protected,
            links: self.links,
            unwrap: self.unwrap,
            embed,
            follow: self.follow,
            provenance: self.provenance,
            limits,
            allows_all: true,
            // Nothing is read: these names only make the engine list the needs.
            resolver: vec![String::new()],
            copies: self.copies.then(Default::default).into_iter().collect(),
            ..Policy::default()
        };
        if self.is_restoring {
            return Policy {
                embed: Embed::default(),
                links: Links::Keep,
                ..policy
            };
        }
        policy
    }
}

/// Doubles the variants: each one with and without a change.
fn vary(variants: &mut Vec<Variant>, change: impl Fn(&mut Variant)) {
    let mut changed = variants.clone();
    changed.iter_mut().for_each(change);
    variants.extend(changed);
}
