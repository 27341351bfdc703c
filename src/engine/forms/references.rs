//! The table of all forms of references to external content. To add a form, create a directory and add a row here.

use super::{apple, hosted, mailman, shortcut, sympa, thunderbird};
use crate::engine::external_body::facts::Facts;
use crate::engine::external_body::{ExternalBody, Form};
use crate::engine::report::Kind;

/// Facts about `message/external-body` (RFC 2046 §5.2.3).
const EXTERNAL_BODY: Facts = Facts::of_whole_part(Kind::ExternalBody);

impl Form {
    /// Returns the facts about this form, which are defined in the directory of the form.
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

    /// Returns true if the file is in cloud storage or on the server of a mailing list.
    pub fn is_hosted(&self) -> bool {
        self.form.facts().kind == Kind::Hosted
    }

    /// Returns the suffix that a mail program appended to the file name. For a file in cloud storage, only a part that is a
    /// page about the file has a suffix.
    pub fn suffix(&self) -> Option<&'static str> {
        let is_other = self.form == Form::CloudFile && !self.is_page_about_it();
        self.form.facts().suffix.filter(|_| !is_other)
    }
}
