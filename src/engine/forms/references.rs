//! The table of the forms in which a mail refers to content elsewhere. A new form is a directory, and a row here.

use super::{apple, hosted, mailman, shortcut, sympa, thunderbird};
use crate::engine::external_body::facts::Facts;
use crate::engine::external_body::{ExternalBody, Form};
use crate::engine::report::Kind;

/// `message/external-body`, as RFC 2046 §5.2.3 describes it.
const EXTERNAL_BODY: Facts = Facts::of_whole_part(Kind::ExternalBody);

impl Form {
    /// Returns the facts that the directory of the form states.
    pub fn facts(self) -> &'static Facts {
        match self {
            Self::ExternalBody => &EXTERNAL_BODY,
            Self::Detached => &thunderbird::DETACHED,
            Self::Enclosure => &thunderbird::ENCLOSURE,
            Self::CloudFile => &thunderbird::CLOUD_FILE,
            Self::Shortcut | Self::AttachedShortcut => &shortcut::FACTS,
            Self::Scrubbed => &mailman::FACTS,
            Self::Hosted(_) => &hosted::FACTS,
            Self::Sympa => &sympa::FACTS,
            Self::Apple => &apple::FACTS,
        }
    }
}

impl ExternalBody<'_> {
    /// Returns true if the reference is inside a text or a document. The part is then content, too, and must not be removed
    /// with the reference.
    pub fn stands_in_text(&self) -> bool {
        self.form.facts().is_in_text
    }

    /// Returns true if a cloud, or the server of a list, has the file.
    pub fn is_hosted(&self) -> bool {
        self.form.facts().kind == Kind::Hosted
    }

    /// Returns the suffix that a program added to the file name. A cloud file has one only if the part is a page about it.
    pub fn suffix(&self) -> Option<&'static str> {
        let is_other = self.form == Form::CloudFile && !self.is_page_about_it();
        self.form.facts().suffix.filter(|_| !is_other)
    }
}
