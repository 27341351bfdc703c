//! Which references are looked for in folders of attachments, before anybody is asked; and the form in which a plan says
//! so to what retrieves.

use super::Policy;
use super::resolver::question_of;
use crate::external_body::{Claim, ExternalBody, Form};

/// What a URL begins with that is looked for in the folders first. It stands in no mail: the plan makes it.
const SCHEME: &str = "embody-attachment:";

impl Policy {
    /// The URL as [`split`] undoes it, for a reference that may be in a folder of attachments; none for others.
    #[must_use]
    pub(crate) fn in_attachments(&self, body: &ExternalBody<'_>, url: &str) -> Option<String> {
        let least = match body.form {
            _ if cfg!(not(feature = "file")) => return None,
            _ if self.attachments.is_empty() || body.claim != Claim::None => return None,
            // The names of all lists' attachments are alike: without the hash they tell nothing.
            // So are those of Sympa's.
            Form::Scrubbed | Form::Sympa => 2,
            Form::Detached => 1,
            _ => return None,
        };
        Some(format!("{SCHEME}{least}:{url}"))
    }
}

/// The URL that is looked for, and how many components at its end have to be there at least.
#[must_use]
pub(crate) fn split(url: &str) -> Option<(&str, usize)> {
    let (least, url) = url.strip_prefix(SCHEME)?.split_once(':')?;
    Some((url, least.parse().ok()?))
}

/// The URL without what [`Policy::in_attachments`] or [`Policy::question`] put in front.
#[must_use]
pub(crate) fn plain(url: &str) -> &str {
    let asked = || question_of(url).map_or(url, |(_, _, url)| url);
    split(url).map_or_else(asked, |(url, _)| url)
}
