//! Notices pictures that a run leaves on the web although its options allow requests. Without a notice, the user of a
//! configuration with `fetch` and without `embed` would lose these pictures unawares.

use std::sync::atomic::{AtomicBool, Ordering};

use memchr::memmem;

use crate::engine::policy::Policy;
use crate::expand::shows_remote_pictures;

/// Searches messages until the first picture on the web is found.
#[derive(Default, Debug)]
pub(super) struct PictureWatch {
    is_looking: AtomicBool,
    has_met: AtomicBool,
}

impl PictureWatch {
    /// Starts the search if the policy allows requests over http or https but does not embed pictures from the web.
    pub(super) fn of(policy: &Policy) -> Self {
        Self::looking(may_request(policy) && !policy.embed.remote)
    }

    /// Starts the search if the policy does not embed pictures from the web. A verbose run names them even if its options
    /// allow no requests.
    pub(super) fn of_verbose_run(policy: &Policy) -> Self {
        Self::looking(!policy.embed.remote)
    }

    fn looking(is_looking: bool) -> Self {
        Self {
            is_looking: AtomicBool::new(is_looking),
            has_met: AtomicBool::new(false),
        }
    }

    /// Returns the notice that a command for a mail system prints once.
    pub(super) fn delivery_notice(policy: &Policy) -> &'static str {
        if may_request(policy) {
            DELIVERY_NOTICE
        } else {
            REQUEST_NOTICE
        }
    }

    fn is_looking(&self) -> bool {
        self.is_looking.load(Ordering::Relaxed)
    }

    /// Searches a message. Returns true once: for the first message with a picture on the web.
    pub(super) fn meets(&self, policy: &Policy, message: &[u8]) -> bool {
        if !self.is_looking() || !shows_remote_pictures(policy, message) {
            return false;
        }
        self.has_met.store(true, Ordering::Relaxed);
        self.is_looking.swap(false, Ordering::Relaxed)
    }

    /// Returns the offset of a tag that may display a picture. HTML in base64 is not searched.
    pub(super) fn first_tag(&self, bytes: &[u8]) -> Option<usize> {
        let find = |tag: &str| memmem::find(bytes, tag.as_bytes());
        let found = self
            .is_looking()
            .then(|| find("<img").or_else(|| find("<IMG")));
        found.flatten()
    }

    pub(super) fn has_met(&self) -> bool {
        self.has_met.load(Ordering::Relaxed)
    }
}

fn may_request(policy: &Policy) -> bool {
    policy.fetch.iter().any(|scheme| scheme.is_http())
}

/// Notice that a run over mailboxes prints once.
pub(super) const NOTICE: &str = "pictures on the web stay on their servers; embody embed, or the option --embed data,remote, puts them into the mail";

/// Notice that a command for a mail system prints once. It also contains the line for the configuration file, because
/// most mail systems run embody with `--config`.
pub(super) const DELIVERY_NOTICE: &str = "pictures on the web stay on their servers; the option --embed data,remote, or the line embed = [\"data\", \"remote\"] of a file for --config, puts them into the mail";

/// Notice of a run whose options allow no requests over http or https.
const REQUEST_NOTICE: &str = "pictures on the web stay on their servers; the options --embed data,remote --fetch http,https put them into the mail";
