//! The table of all forms of references to external content. To add a form, create a directory and add it to [`TABLE`], and its
//! variant of [`ReferenceShape`] to the function after the table.

pub(crate) use super::mailman::divided;
use super::reference_form::{Needles, ReferenceForm};
use super::{apple, hosted, mailman, shortcut, sympa, thunderbird, yahoo};
use crate::engine::external_body::facts::Facts;
use crate::engine::external_body::{ExternalBody, ReferenceParse, ReferenceShape};
use crate::engine::report::Kind;
use crate::mime::{Field, MessageTree};

/// All forms. A part belongs to the first form that reads it.
pub(crate) static TABLE: &[&dyn ReferenceForm] = &[
    &apple::Apple,
    &thunderbird::Thunderbird,
    &shortcut::Shortcut,
    &sympa::Sympa,
    &yahoo::Yahoo,
    &mailman::Mailman,
    &hosted::HostedForm,
];

/// Facts about `message/external-body` (RFC 2046 §5.2.3).
const EXTERNAL_BODY: Facts = Facts {
    may_be_in_copies: true,
    ..Facts::of_whole_part(Kind::ExternalBody, None)
};

impl ReferenceShape {
    /// Returns the [`Facts`] about this form. The module of each form defines its facts, except that the facts about
    /// `message/external-body` are defined in this file.
    pub fn facts(self) -> &'static Facts {
        match self {
            Self::ExternalBody => &EXTERNAL_BODY,
            Self::Detached => &thunderbird::DETACHED,
            Self::Enclosure => &thunderbird::ENCLOSURE,
            Self::CloudFile => &thunderbird::CLOUD_FILE,
            Self::Shortcut => &shortcut::FACTS,
            Self::AttachedShortcut => &shortcut::ATTACHED,
            Self::Mailman => &mailman::FACTS,
            Self::Hosted => &hosted::FACTS,
            Self::Sympa => &sympa::FACTS,
            Self::YahooGroups => &yahoo::FACTS,
            Self::Apple => &apple::FACTS,
        }
    }
}

impl ExternalBody<'_> {
    /// Returns true if the reference is inside a text or a document. The part is then content, too, and must not be removed
    /// with the reference.
    pub fn stands_in_text(&self) -> bool {
        self.form.facts().is_in_text()
    }

    /// Returns the suffix that a mail program appended to the file name, so that it can be removed. The program appended `.html`
    /// to the name of a file in cloud storage only if the part is a web page about the file.
    pub fn suffix(&self) -> Option<&'static str> {
        let facts = self.form.facts();
        facts
            .suffix
            .filter(|_| !facts.has_web_page || self.is_page_about_it())
    }
}

impl ReferenceParse {
    /// Selects also parts whose content is in a file next to the message, wherever the message is. A message that was moved out
    /// of its mailbox still has such parts.
    pub(crate) fn with_parts_in_files(self) -> Self {
        let beside = TABLE.iter().find_map(|form| match form.needles() {
            Needles::Beside(kind, _) => Some(kind),
            _ => None,
        });
        Self { beside, ..self }
    }
}

/// Returns true for fields that make a part a reference. They are removed when the content is inserted.
pub(crate) fn is_reference_field(original: &[u8], field: &Field) -> bool {
    let names = TABLE.iter().flat_map(|form| form.reference_fields());
    names.into_iter().any(|name| field.is(original, name))
}

/// Returns true if a part of this media type is itself a reference.
pub(crate) fn is_reference_type(essence: &str) -> bool {
    TABLE.iter().any(|form| form.is_reference_type(essence))
}

/// Returns true if a text contains references. If it became a text of the message, a later run would change it.
pub(crate) fn holds_notes(tree: &MessageTree<'_>, text: &[u8]) -> bool {
    TABLE.iter().any(|form| form.is_in_text(tree, text))
}
