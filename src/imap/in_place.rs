//! Runs a command that changes the messages of an account in place, such as `detach`.
//!
//! Each folder is searched for candidates. They are downloaded in batches, processed by all processors, and replaced one after
//! the other over several connections. If a connection is interrupted, a new one is opened after a pause, and an unfinished
//! replacement is completed first.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::account::Account;
use super::candidates::Candidates;
use super::doubts::Doubts;
use super::failure::ImapFailure;
use super::journal::{JournalAccount, NamedMessage, OpenReplacement, ReplaceJournal};
use super::names::{means, shown};
use super::narrowing::{AT_A_TIME, BreakSearch, RequestedMessage};
use super::place::MessagePlace;
use super::reading::BrokenMessage;
use super::replace::{GMAIL, MessageReplacer, ReplaceResult, has};
use super::retry::{ConnectionPool, RetryPatience, Tries};
use super::session::{ImapSession, RemoteFolder, SelectResponse};
use crate::detail::{Detail, Setting};
use crate::engine::Mode;
use crate::engine::report::Reason;
use crate::error::Error;
use crate::fetch::store::Store;
use crate::mailbox::MailboxEvent;
use crate::mailbox::{Observer, Stop, Summary, Transform};

/// Waiting time before unfinished replacements are examined. The server may still execute the last command of an
/// interrupted connection, and store a copy after the folder was examined.
pub(super) const SETTLING: Duration = Duration::from_secs(1);

/// Report about a run that skipped each selected folder.
const NO_FOLDER: &str =
    "no selected folder allows embody to replace messages, so the run changed nothing";

/// Observer of a run that changes messages in place. Receives the outcome of each message, in addition to the events of
/// an [`Observer`].
pub(crate) trait InPlaceObserver<S>: Observer<S> {
    /// Reports a processed message. `fate` is `None` if the message did not need a replacement, and in a dry run.
    fn message_at(&self, said: S, place: MessagePlace, fate: Option<ReplaceResult>);

    /// Reports a replacement that an earlier run left unfinished and this run has settled.
    fn resumed(&self, folder: &Path, uid: u32, fate: &ReplaceResult);

    /// Reports that unfinished replacements of a folder stay in the journal, because the state of their messages cannot
    /// be determined.
    fn unsettled(&self, folder: &Path, why: &str);
}

/// Settings of a run over an account.
pub(crate) struct InPlace<'a, S> {
    pub(crate) account: &'a Account,
    pub(crate) candidates: &'a Candidates,
    pub(crate) mode: Mode,
    /// Folder to which old messages are moved, as the user typed it.
    pub(crate) trash: Option<&'a str>,
    /// Whether REPLACE (RFC 8508) may be used if the quota has no room for both messages.
    pub(crate) by_replace: bool,
    /// Directory of the journal.
    pub(crate) state: &'a Path,
    /// Store of the command with detached attachments. `None` if the command has no store.
    pub(crate) objects: Option<&'a dyn Store>,
    /// Number of threads that process messages.
    pub(crate) jobs: usize,
    /// Maximum size of a message, in bytes. Larger messages are skipped.
    pub(crate) max_message: usize,
    pub(crate) transform: &'a dyn Transform<S>,
    pub(crate) observer: &'a dyn InPlaceObserver<S>,
    pub(crate) stop: &'a Stop,
}

/// Counts of the run, and the used bytes of the quota before and after it.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct InPlaceCounts {
    pub(crate) summary: Summary,
    pub(crate) quota: Option<(u64, u64)>,
}

impl<S: Send> InPlace<'_, S> {
    /// Runs the command on all selected folders.
    ///
    /// # Errors
    /// Failures that end the run: the server lacks a required extension or cannot be reached, or the journal cannot be written.
    /// Messages that were already replaced stay replaced, and were reported to the observer.
    pub(crate) fn run(&self) -> Result<InPlaceCounts, ImapFailure> {
        let journal = match self.mode {
            Mode::Run => {
                let account = JournalAccount {
                    user: self.account.user.clone(),
                    host: self.account.host.clone(),
                    port: self.account.port,
                };
                Some(ReplaceJournal::open(self.state, account)?)
            }
            Mode::Probe | Mode::DryRun => None,
        };
        let mut run = AccountRun::begin(self, journal.as_ref())?;
        let folders = run.again(AccountRun::folders)?;
        let used = |run: &mut AccountRun<'_, S>| {
            let folder = folders.first().map(|folder| folder.name.clone());
            run.again(|run| match &folder {
                Some(folder) => match run.session()?.quota(folder) {
                    Err(ImapFailure::Refused { .. }) => Ok(None),
                    other => other,
                },
                None => Ok(None),
            })
        };
        run.name_earlier();
        run.resume_earlier()?;
        run.adopt_others()?;
        let before = used(&mut run)?;
        for folder in &folders {
            self.stop.check()?;
            let done = run.folder(folder);
            match done.map_err(|why| run.connecting.of_folder(why)) {
                Err(why) if why.costs_one_folder() && !run.is_half_made(&folder.name) => {
                    run.give_up(&folder.name, &why);
                }
                done => done?,
            }
        }
        if run.skipped_folders == folders.len() && run.summary.damaged == 0 {
            // The run was started to change messages, and could not have changed any.
            let account = PathBuf::from(account_url(self.account));
            self.observer
                .event(MailboxEvent::damaged(account, NO_FOLDER));
            run.summary.damaged += 1;
        }
        let after = used(&mut run)?;
        let summary = run.summary;
        run.end();
        if let Some(journal) = journal {
            journal.forget_named()?;
            journal.close()?;
        }
        Ok(InPlaceCounts {
            summary,
            quota: before.zip(after).map(|(before, after)| (before.0, after.0)),
        })
    }
}

/// State of one connection of a run over an account.
pub(super) struct AccountRun<'r, S> {
    pub(super) job: &'r InPlace<'r, S>,
    /// Opens all connections of the run.
    pub(super) connecting: Arc<ConnectionPool<'r>>,
    session: Option<ImapSession>,
    /// Journal of the account. `None` in a dry run.
    pub(super) journal: Option<&'r ReplaceJournal>,
    /// Trash folder in the spelling of the server.
    trash: Option<String>,
    pub(super) selected: SelectResponse,
    /// Number of folders in which no message can be replaced.
    pub(super) skipped_folders: usize,
    /// Messages of the folder that this connection downloaded and that may be incomplete.
    pub(super) doubts: Doubts,
    /// Smallest UID that a new message in the folder can get. A message with a smaller UID existed before the run.
    pub(super) least: u32,
    /// UID of the message that this connection is replacing.
    pub(super) in_work: Option<u32>,
    /// Outcome for `in_work`, if its replacement was completed after the connection had been interrupted.
    pub(super) resumed: Option<ReplaceResult>,
    pub(super) altered: u32,
    /// Messages that this run must not touch, by folder, UIDVALIDITY and UID: another run is replacing them. Its
    /// journal is for the same account, under another spelling of the user or host.
    pub(super) avoided: Vec<(String, u32, u32)>,
    pub(super) summary: Summary,
}

impl<'r, S: Send> AccountRun<'r, S> {
    fn begin(
        job: &'r InPlace<'r, S>,
        journal: Option<&'r ReplaceJournal>,
    ) -> Result<Self, ImapFailure> {
        let mut run = Self {
            job,
            connecting: Arc::new(ConnectionPool::new(job.account, job.stop)),
            session: None,
            journal,
            trash: None,
            selected: SelectResponse::default(),
            skipped_folders: 0,
            doubts: Doubts::default(),
            least: 0,
            in_work: None,
            resumed: None,
            altered: 0,
            avoided: Vec::new(),
            summary: Summary::default(),
        };
        run.again(|run| run.session().map(drop))?;
        if job.mode.writes() {
            run.trash = run.again(AccountRun::find_trash)?;
            let session = run.session()?;
            let lacks = |what: &str| {
                let what = format!(
                    "{}: nothing was changed, because the server does not support {what}, which is needed to replace messages safely",
                    account_url(job.account)
                );
                ImapFailure::Run(Error::Usage(what.into()))
            };
            if !session.has("UIDPLUS") && !session.has("IMAP4REV2") {
                return Err(lacks("UIDPLUS (RFC 4315)"));
            }
            let has_move = session.has("MOVE") || session.has("IMAP4REV2");
            if run.trash.is_some() && !has_move {
                return Err(lacks("MOVE (RFC 6851)"));
            }
        }
        Ok(run)
    }

    /// Returns the state for an additional connection to the same folder. It opens its session on first use.
    pub(super) fn beside(&self) -> Self {
        Self {
            job: self.job,
            connecting: Arc::clone(&self.connecting),
            session: None,
            journal: self.journal,
            trash: self.trash.clone(),
            selected: self.selected.clone(),
            skipped_folders: 0,
            doubts: Doubts::default(),
            least: self.least,
            in_work: None,
            resumed: None,
            altered: 0,
            avoided: self.avoided.clone(),
            summary: Summary::default(),
        }
    }

    pub(super) fn end(mut self) {
        if let Some(session) = self.session.take() {
            session.logout();
        }
    }

    /// Returns the session. If the connection was lost, opens a new session, selects the same folder and completes an
    /// unfinished replacement.
    pub(super) fn session(&mut self) -> Result<&mut ImapSession, ImapFailure> {
        if self.session.is_none() {
            if self.in_work.is_some() {
                self.connecting.rest(SETTLING)?;
            }
            let session = self.connecting.open()?;
            if let Some(journal) = self.journal {
                journal.set_server(session.server_name());
            }
            self.session = Some(session);
            if !self.selected.folder.is_empty() {
                let before = self.selected.clone();
                self.select(&before.folder)?;
                if self.selected.uidvalidity != before.uidvalidity {
                    return Err(ImapFailure::Renumbered {
                        folder: shown(&before.folder),
                        before: before.uidvalidity,
                        now: self.selected.uidvalidity,
                    });
                }
                if let Some(uid) = self.in_work {
                    let mut fates = Vec::new();
                    self.resume_in(&before.folder, Some(uid), &mut fates)?;
                    self.resumed = fates.into_iter().next().map(|(_, fate)| fate);
                }
            }
        }
        let none = ImapFailure::Protocol("the connection to the server is closed");
        self.session.as_mut().ok_or(none)
    }

    /// Runs a step, and repeats it over a new connection if the connection is interrupted.
    pub(super) fn again<T>(
        &mut self,
        mut step: impl FnMut(&mut Self) -> Result<T, ImapFailure>,
    ) -> Result<T, ImapFailure> {
        let mut tries = Tries::default();
        loop {
            self.job.stop.check()?;
            let failure = match self.session().map(drop).and_then(|()| step(self)) {
                Err(failure) => failure,
                done => return done,
            };
            if failure.is_passing() || !failure.leaves_session() {
                self.session = None;
            }
            self.connecting.pause(&mut tries, failure)?;
        }
    }

    fn set_patience(&mut self, patience: RetryPatience) -> Result<(), ImapFailure> {
        let connecting = Arc::clone(&self.connecting);
        connecting.set_patience(self.session()?, patience);
        Ok(())
    }

    /// Requests messages of the selected folder with `work`, and requests those again that did not arrive because the
    /// connection ended. `work` stores what arrives in `state`, in which `has` finds it. Returns the messages at which
    /// the server ends the connection each time.
    pub(super) fn narrowed<T: RequestedMessage, R>(
        &mut self,
        messages: &[T],
        state: &mut R,
        mut work: impl FnMut(&mut Self, &[T], &mut R) -> Result<(), ImapFailure>,
        has: impl Fn(&R, &T) -> bool,
    ) -> Result<Vec<BrokenMessage>, ImapFailure> {
        let mut broken = Vec::new();
        let mut tries = Tries::default();
        for messages in messages.chunks(AT_A_TIME) {
            let mut narrowing = BreakSearch::of(messages.to_vec());
            while let Some(group) = narrowing.next().map(<[T]>::to_vec) {
                self.job.stop.check()?;
                let opened = self.set_patience(narrowing.patience());
                let is_open = opened.is_ok();
                let failure = match opened.and_then(|()| work(self, &group, state)) {
                    Ok(()) => {
                        self.set_patience(RetryPatience::Command)?;
                        self.connecting.progressed();
                        tries = Tries::default();
                        narrowing.done();
                        continue;
                    }
                    Err(failure) => failure,
                };
                if failure.is_passing() || !failure.leaves_session() {
                    self.session = None;
                }
                if !is_open || !failure.is_break() {
                    self.connecting.pause(&mut tries, failure)?;
                    continue;
                }
                let mut rest = group;
                rest.retain(|message| !has(state, message));
                if let Some(message) = narrowing.failed(rest) {
                    broken.push(BrokenMessage::of(message.uid(), &failure));
                }
                self.connecting.broke(&mut tries, failure)?;
            }
        }
        Ok(broken)
    }

    pub(super) fn select(&mut self, folder: &str) -> Result<(), ImapFailure> {
        let mode = self.job.mode;
        let session = self.session()?;
        let selected = match mode {
            Mode::Run => session.select(folder)?,
            Mode::Probe | Mode::DryRun => session.examine(folder)?,
        };
        self.least = selected.uidnext;
        self.selected = selected;
        Ok(())
    }

    /// Returns the selected folders. At Gmail, the other folders are labels on the messages of All Mail, so only All Mail is
    /// processed. Each message is then processed once.
    fn folders(&mut self) -> Result<Vec<RemoteFolder>, ImapFailure> {
        let account = self.job.account;
        let choice = &account.choice;
        let session = self.session()?;
        if session.has(GMAIL) && choice.folder.is_none() && choice.folders.is_empty() {
            let all: Vec<RemoteFolder> = session
                .list("*")?
                .folders
                .into_iter()
                .filter(|it| has(&it.attributes, "\\all"))
                .collect();
            if !all.is_empty() {
                return Ok(all);
            }
        }
        let chosen = session.folders(choice)?;
        for why in chosen.unreadable.into_iter().chain(chosen.absent) {
            let account = PathBuf::from(account_url(account));
            self.job.observer.event(MailboxEvent::damaged(account, why));
            self.summary.damaged += 1;
        }
        let mut folders = chosen.folders;
        // The trash contains the old messages that were already replaced, so it is not processed.
        folders.retain(|folder| Some(&folder.name) != self.trash.as_ref());
        Ok(folders)
    }

    /// Returns the folder to which old messages are moved, or `None` if they are expunged.
    fn find_trash(&mut self) -> Result<Option<String>, ImapFailure> {
        let typed = self.job.trash;
        let session = self.session()?;
        if typed.is_none() && !session.has(GMAIL) {
            return Ok(None);
        }
        let all = session.list("*")?.folders;
        let found = all.into_iter().find(|folder| match typed {
            Some(typed) => means(typed, &folder.name, folder.delimiter),
            None => has(&folder.attributes, "\\trash"),
        });
        let Some(found) = found else {
            let what = match typed {
                Some(typed) => Detail::from(format!(
                    "the account does not have the folder {typed}, which was named with "
                ))
                .naming(Setting::Trash)
                .then("; embody inspect lists the folders of the account"),
                None => Detail::from(
                    "the server does not report which folder is the trash; name the folder for old messages with ",
                )
                .naming(Setting::Trash),
            };
            return Err(ImapFailure::Run(Error::Usage(what)));
        };
        Ok(Some(found.name))
    }

    /// Names the messages that may exist twice according to earlier runs, which were killed before their end.
    fn name_earlier(&mut self) {
        let named = self.journal.map(ReplaceJournal::named_ones);
        for NamedMessage { folder, uid, why } in named.unwrap_or_default() {
            self.summary.damaged += 1;
            let fate = ReplaceResult::Both(Reason::ChangedMeanwhile, why);
            self.job.observer.resumed(&self.url_of(&folder), uid, &fate);
        }
    }

    /// Finishes or undoes the unfinished replacements of earlier runs, in all folders.
    fn resume_earlier(&mut self) -> Result<(), ImapFailure> {
        let Some(journal) = self.journal else {
            return Ok(());
        };
        let open = journal.open_ones().into_iter();
        let mut folders: Vec<String> = open.map(|it| it.replacement.folder).collect();
        folders.sort_unstable();
        folders.dedup();
        if !folders.is_empty() {
            self.connecting.rest(SETTLING)?;
        }
        for folder in folders {
            let url = self.url_of(&folder);
            // Outside of the closure, so that a retry after an interrupted connection keeps the outcomes collected
            // before.
            let mut fates = Vec::new();
            let done = self.again(|run| {
                run.select_to_resume(&folder)?;
                run.resume_in(&folder, None, &mut fates)
            });
            for (uid, fate) in fates {
                self.summary.damaged += u64::from(fate.may_be_doubled());
                self.job.observer.resumed(&url, uid, &fate);
            }
            match done {
                // Whether the message was replaced is still unknown, so its journal entry is kept for a later run. This
                // run continues with other messages, and ends with exit status 1.
                Err(ImapFailure::Unknown(why) | ImapFailure::Refused { text: why, .. }) => {
                    self.summary.damaged += 1;
                    self.job.observer.unsettled(&url, &why);
                }
                done => done?,
            }
        }
        self.selected = SelectResponse::default();
        Ok(())
    }

    /// Selects a folder with unfinished replacements in the journal. If the folder was renamed or deleted, no folder is
    /// selected: no UIDVALIDITY then matches the journal, so its UIDs belong to no message. A refused SELECT does not
    /// prove that the folder is gone, so the list of folders is checked, too.
    pub(super) fn select_to_resume(&mut self, folder: &str) -> Result<(), ImapFailure> {
        let refusal = match self.select(folder) {
            Err(refusal @ ImapFailure::Refused { .. }) => refusal,
            other => return other,
        };
        let session = self.session()?;
        let refusals = session.refusals().0;
        let all = session.list("*")?.folders;
        let is_listed = all.iter().any(|it| it.name == folder);
        if is_listed || all.is_empty() || session.refusals().0 > refusals {
            return Err(refusal);
        }
        self.selected = SelectResponse::default();
        Ok(())
    }

    /// Completes the unfinished replacements in the folder. If a UID is given, completes only the replacement of
    /// this message, because the other replacements belong to other connections.
    pub(super) fn resume_in(
        &mut self,
        folder: &str,
        only: Option<u32>,
        fates: &mut Vec<(u32, ReplaceResult)>,
    ) -> Result<(), ImapFailure> {
        let Some(journal) = self.journal else {
            return Ok(());
        };
        let mut unknown = None;
        for open in journal.open_ones() {
            let OpenReplacement { replacement, .. } = &open;
            let uid = replacement.uid;
            if replacement.folder != folder || only.is_some_and(|only| uid != only) {
                continue;
            }
            if replacement.uidvalidity != self.selected.uidvalidity {
                let why = self.renumbered(journal, &open)?;
                fates.push((uid, ReplaceResult::Both(Reason::ChangedMeanwhile, why)));
                continue;
            }
            let Some(mut replacing) = self.replacing()? else {
                continue;
            };
            match replacing.resume(open) {
                // The result of this replacement is unknown, but the others may be settled, so the loop continues.
                Err(ImapFailure::Unknown(why)) => unknown = Some(why),
                fate => fates.extend(fate?.map(|fate| (uid, fate))),
            }
        }
        unknown.map_or(Ok(()), |why| Err(ImapFailure::Unknown(why)))
    }

    /// Returns whether the journal contains an unfinished replacement of this message.
    pub(super) fn is_open(&self, uid: u32) -> bool {
        let SelectResponse {
            folder,
            uidvalidity,
            ..
        } = &self.selected;
        let is_it = |it: &(String, u32, u32)| (&it.0, &it.1, it.2) == (folder, uidvalidity, uid);
        self.avoided.iter().any(is_it)
            || self
                .journal
                .is_some_and(|journal| journal.is_open(folder, *uidvalidity, uid))
    }

    /// Returns the [`MessageReplacer`] that replaces messages of the selected folder over the current session. Returns
    /// `None` in a dry run, which has no journal.
    pub(super) fn replacing(&mut self) -> Result<Option<MessageReplacer<'_>>, ImapFailure> {
        match self.journal {
            Some(journal) => self.replacing_in(journal).map(Some),
            None => Ok(None),
        }
    }

    /// Does the same as [`replacing`](Self::replacing) with another journal.
    pub(super) fn replacing_in<'s>(
        &'s mut self,
        journal: &'s ReplaceJournal,
    ) -> Result<MessageReplacer<'s>, ImapFailure> {
        let session = self.session.as_mut().ok_or(ImapFailure::Protocol(
            "the connection to the server is closed",
        ))?;
        Ok(MessageReplacer {
            session,
            journal,
            selected: &self.selected,
            trash: self.trash.as_deref(),
            by_replace: self.job.by_replace,
            objects: self.job.objects,
            stop: self.job.stop,
        })
    }

    /// Returns whether a replacement in the folder was begun and not completed. The run must then end, and the next run
    /// completes the replacement first.
    fn is_half_made(&self, folder: &str) -> bool {
        self.journal.is_some_and(|journal| {
            let open = journal.open_ones().into_iter();
            open.map(|it| it.replacement.folder).any(|it| it == folder)
        })
    }

    /// Reports a folder that cannot be processed. The run continues with the other folders.
    fn give_up(&mut self, folder: &str, why: &ImapFailure) {
        if !why.leaves_session() {
            self.session = None;
        }
        self.selected = SelectResponse::default();
        let why = format!("{why}; the other messages of this folder were not changed");
        self.job
            .observer
            .event(MailboxEvent::damaged(self.url_of(folder), why));
        self.summary.damaged += 1;
    }

    pub(super) fn url_of(&self, folder: &str) -> PathBuf {
        PathBuf::from(self.job.account.url(folder))
    }
}

/// Returns the URL of the account, without a folder.
pub(super) fn account_url(account: &Account) -> String {
    account.url("")
}
