//! The two mailboxes of the comparison. A mailbox on a server is downloaded before it is compared.

use std::path::{Path, PathBuf};

use super::super::args::CompareArgs;
#[cfg(all(unix, feature = "imap"))]
use super::super::remote;
#[cfg(all(unix, feature = "imap"))]
use super::super::say;
use super::reading::LostMessage;
#[cfg(all(unix, feature = "imap"))]
use crate::edit::Edits;
use crate::error::Error;
#[cfg(all(unix, feature = "imap"))]
use crate::imap::account::Account;
#[cfg(all(unix, feature = "imap"))]
use crate::imap::download::{Download, url_of_saved};
#[cfg(all(unix, feature = "imap"))]
use crate::mailbox::{MailboxEvent, MailboxFact, Message, Observer, Options, Transform};
use crate::mailbox::{ReadOptions, Stop};

/// One of the two mailboxes of the comparison: OLD or NEW.
pub(super) struct Side {
    pub(super) path: PathBuf,
    /// Temporary copy of a mailbox on a server. Dropping it removes the copy.
    _copy: Option<tempfile::TempDir>,
    /// The account from which the copy was downloaded.
    #[cfg(all(unix, feature = "imap"))]
    account: Option<Account>,
    pub(super) is_damaged: bool,
}

impl Side {
    /// For a message from a temporary copy, replaces the path of the copy by the URL on the server.
    pub(super) fn named(&self, message: LostMessage) -> LostMessage {
        #[cfg(all(unix, feature = "imap"))]
        if let Some(account) = &self.account
            && let Some(source) = url_of_saved(account, Path::new(&message.source))
        {
            return LostMessage { source, ..message };
        }
        message
    }
}

/// Returns a mailbox to compare. A mailbox on a server is downloaded into a temporary directory, because it is read
/// twice.
pub(super) fn side(
    source: &Path,
    args: &CompareArgs,
    options: &ReadOptions,
    stop: &Stop,
) -> Result<Side, Error> {
    #[cfg(all(unix, feature = "imap"))]
    if let Some(account) = remote::account(source, &args.imap, &args.connection.policy())? {
        let copy = tempfile::tempdir().map_err(Error::cannot_write("a temporary folder"))?;
        let download: Download<'_, ()> = Download {
            account: &account,
            output: copy.path(),
            options: &Options {
                read: options.clone(),
                ..Options::default()
            },
            transform: &SideContents,
            observer: &SourceNotes,
            stop,
        };
        let done = download.run();
        let summary = done.map_err(|why| remote::error(why, &account))?;
        return Ok(Side {
            path: copy.path().to_owned(),
            is_damaged: summary.damaged > 0,
            _copy: Some(copy),
            account: Some(account),
        });
    }
    let _ = (args, options, stop);
    Ok(Side {
        path: source.to_owned(),
        _copy: None,
        #[cfg(all(unix, feature = "imap"))]
        account: None,
        is_damaged: false,
    })
}

#[cfg(all(unix, feature = "imap"))]
struct SideContents;

#[cfg(all(unix, feature = "imap"))]
impl Transform<()> for SideContents {
    fn next_touch(&self, _bytes: &[u8]) -> Option<usize> {
        None
    }

    fn transform(&self, _message: &Message<'_>) -> Result<(Edits, ()), Error> {
        Ok((Edits::new(), ()))
    }
}

#[cfg(all(unix, feature = "imap"))]
struct SourceNotes;

#[cfg(all(unix, feature = "imap"))]
impl Observer<()> for SourceNotes {
    fn event(&self, event: MailboxEvent<()>) {
        if let MailboxEvent::Fact(MailboxFact::Damaged(path, why) | MailboxFact::Lost(path, why)) =
            event
        {
            say::tell(&say::damaged(&path, &why));
        }
    }
}
