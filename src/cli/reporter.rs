//! Reports and counts messages during a run over mailboxes, in the order of the messages.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use super::args::OutputVolume;
use super::named_files::NamedFiles;
use super::origin::{RunOrigin, RunStart};
use super::progress::Display;
use super::report_file::ReportFile;
use super::say;
use super::survey::RunTally;
use super::totals::Totals;
use super::verb::VerbReport;
use super::wording;
use crate::engine::policy::Policy;
use crate::engine::report::{Detail, Row};
use crate::error::unpoisoned;
use crate::mailbox::{MailboxEvent, MailboxFact, Observer, Stop, Summary};

pub(super) struct Reporter<'r> {
    pub(super) display: Display,
    pub(super) volume: OutputVolume,
    pub(super) says_rows: bool,
    /// Whether to count the options that would have allowed refused references.
    pub(super) counts_remedies: bool,
    /// Stops the run if a row of the report cannot be written. `None` if the run has other output than the report,
    /// because it then continues without rows.
    pub(super) needs_rows: Option<&'r Stop>,
    pub(super) policy: &'r Policy,
    pub(super) start: &'r RunStart,
    pub(super) several: bool,
    pub(super) files: Option<&'r NamedFiles>,
    pub(super) counts: Mutex<ReporterCounts>,
}

#[derive(Default)]
pub(super) struct ReporterCounts {
    mailbox: PathBuf,
    rows: Option<io::Result<ReportFile>>,
    of_mailbox: Totals,
    /// Counts for the HTML page about the run: of the current mailbox, and of all finished mailboxes. `None` if the run
    /// writes no page.
    run: Option<[RunTally; 2]>,
    /// Sum over the finished mailboxes. It excludes mailboxes that failed or were stopped.
    settled: (Summary, Totals),
    /// Number of messages that a mail server refused to replace.
    #[cfg(all(unix, feature = "imap"))]
    pub(super) refused_replacements: u64,
}

impl ReporterCounts {
    pub(super) fn new(rows: Option<ReportFile>) -> Mutex<Self> {
        Mutex::new(Self {
            rows: rows.map(Ok),
            ..Self::default()
        })
    }

    /// Adds empty counts for the HTML page to `counts` if the run writes a page.
    pub(super) fn with_page(counts: Mutex<Self>, has_page: bool) -> Mutex<Self> {
        let counts = unpoisoned(counts.into_inner());
        Mutex::new(Self {
            run: has_page.then(Default::default),
            ..counts
        })
    }
}

impl Reporter<'_> {
    /// Returns the counts for the HTML page about the run.
    pub(super) fn run_tally(&self) -> RunTally {
        let mut counts = unpoisoned(self.counts.lock());
        let [_, run] = counts.run.take().unwrap_or_default();
        run
    }

    pub(super) fn finish(self) -> (Summary, Totals, Option<io::Error>) {
        let counts = unpoisoned(self.counts.into_inner());
        let (summary, totals) = counts.settled;
        (summary, totals, counts.rows.and_then(Result::err))
    }

    fn count_skipped(&self, what: &'static str, count: u64) {
        let mut counts = unpoisoned(self.counts.lock());
        counts.settled.0.skipped_files += count;
        counts.settled.1.tally("skipped", what, count);
    }

    /// Records that the report cannot be written, so that no further rows are written.
    fn rows_failed(&self, counts: &mut ReporterCounts, error: io::Error) {
        if self.says_rows {
            self.display.say(&format!(
                "cannot write the report: {error}; the run continues without it"
            ));
        }
        counts.rows = Some(Err(error));
        if let Some(stop) = self.needs_rows {
            stop.request();
        }
    }

    fn say_rows(&self, origin: &RunOrigin, rows: &[Row]) {
        let mut called = origin.called();
        if self.several {
            called = format!("{}: {called}", say::harmless(&origin.source));
        }
        if let Some(id) = &origin.message_id {
            let id = say::harmless(id);
            self.display.say(&format!("{called}, Message-ID {id}"));
        }
        for line in say::lines(rows, self.policy, self.volume) {
            self.display.say(&format!("{called}, {line}"));
        }
    }
}

impl Observer<VerbReport> for Reporter<'_> {
    fn event(&self, event: MailboxEvent<VerbReport>) {
        match event {
            MailboxEvent::Begin(mailbox) => self.begin(mailbox),
            MailboxEvent::Message(said, is_refused) => self.message(said, is_refused),
            MailboxEvent::Advance(bytes, messages) => self.advance(bytes, messages),
            MailboxEvent::Expects(bytes) => self.display.expect(bytes),
            MailboxEvent::Done(summary) => self.done(&summary),
            MailboxEvent::Fact(fact) => self.fact(&fact),
        }
    }
}

impl Reporter<'_> {
    fn begin(&self, mailbox: PathBuf) {
        let mut counts = unpoisoned(self.counts.lock());
        counts.of_mailbox = Totals::default();
        if let Some([run, _]) = &mut counts.run {
            *run = RunTally::default();
        }
        #[cfg(all(unix, feature = "imap"))]
        if let Some(folder) = mailbox
            .to_str()
            .and_then(crate::imap::account::folder_of_url)
        {
            self.display.within(&say::harmless(&folder));
        }
        counts.mailbox = mailbox;
    }

    pub(super) fn message(&self, mut said: VerbReport, is_refused: bool) {
        let mut counts = unpoisoned(self.counts.lock());
        let is_kept = is_refused && said.survey.is_none();
        if let Some(files) = self.files.filter(|_| !is_kept) {
            files.place(&said.files);
        }
        if let Some(mut survey) = said.survey.take() {
            survey.locate(&counts.mailbox);
            counts.of_mailbox.survey.add(*survey);
        }
        if is_refused {
            said.leave_for_separator();
        }
        if !said.report.rows.is_empty() {
            let policy = self.policy;
            counts.of_mailbox.count(&said.report, policy);
            counts.of_mailbox.count_attachments(&said.report, policy);
        }
        if self.counts_remedies {
            counts.of_mailbox.count_remedies(&said.report, self.policy);
        }
        if let Some([run, _]) = &mut counts.run {
            let called = || match &said.origin {
                Some(origin) => origin.called(),
                None => String::new(),
            };
            run.count(&said.report.rows, called, |row| {
                wording::remedy(row, self.policy)
            });
        }
        let Some(origin) = said.origin.take() else {
            return;
        };
        let mailbox = counts.mailbox.display().to_string();
        said.name(&match origin.index {
            _ if origin.source != mailbox => origin.source.clone(),
            number if self.several => format!("{mailbox}:{number}"),
            number => number.to_string(),
        });
        let called = || origin.called();
        counts.of_mailbox.count_missing(&said.report, called);
        let rows = &said.report.rows;
        // A large mailbox contains too many references to list each of them, so they are listed only with `--verbose`.
        if self.says_rows && self.volume == OutputVolume::Verbose {
            self.say_rows(&origin, rows);
        }
        if let Some(Ok(file)) = &mut counts.rows
            && let Err(error) = file
                .write(self.start, &origin, wording::rows(rows, Some(self.policy)))
                .and_then(|()| file.write(self.start, &origin, &said.listed))
        {
            self.rows_failed(&mut counts, error);
        }
    }

    fn advance(&self, bytes: u64, messages: u64) {
        let counts = unpoisoned(self.counts.lock());
        let totals = [&counts.settled.1, &counts.of_mailbox];
        self.display.advance(bytes, messages, totals);
    }

    fn done(&self, summary: &Summary) {
        let mut counts = unpoisoned(self.counts.lock());
        let totals = std::mem::take(&mut counts.of_mailbox);
        counts.settled.0.add(summary);
        counts.settled.1.add(totals);
        if let Some([run, settled]) = &mut counts.run {
            settled.add(std::mem::take(run));
        }
    }

    fn fact(&self, fact: &MailboxFact) {
        let is_verbose = self.volume == OutputVolume::Verbose;
        match fact {
            MailboxFact::Skipped(path, what) => {
                self.count_skipped(what, 1);
                if is_verbose {
                    self.display.say(&say::skipped(path, what));
                }
            }
            MailboxFact::SetAside(path, what) => {
                let mut counts = unpoisoned(self.counts.lock());
                counts.settled.0.set_aside += 1;
                counts.settled.1.tally("skipped", *what, 1);
                drop(counts);
                if is_verbose {
                    self.display.say(&say::skipped(path, what));
                }
            }
            MailboxFact::SkippedOthers(archive, what, count) => {
                self.count_skipped(what, *count);
                if is_verbose {
                    let what = format!("{count} more files that are not named here: {what}");
                    self.display.say(&say::skipped(archive, &what));
                }
            }
            MailboxFact::PassedOver(path, what) => {
                if self.volume == OutputVolume::Normal {
                    self.display.say(&say::skipped(path, what));
                }
            }
            MailboxFact::Noted(path, what) => {
                if self.volume > OutputVolume::Quiet {
                    self.display.say(&say::damaged(path, what));
                }
            }
            MailboxFact::Damaged(path, why) | MailboxFact::Lost(path, why) => {
                self.damaged(path, why);
            }
            MailboxFact::LostFlags(what, count) => self.lost_flags(what, *count),
            MailboxFact::UnusedFlags(path, what) => {
                self.lost_flags(what, 1);
                if is_verbose {
                    let text = format!("not kept: {what}");
                    self.display.say(&say::damaged(path, &text));
                }
            }
            MailboxFact::Waiting(mailbox, lock) => {
                if self.volume > OutputVolume::Quiet {
                    self.display.say(&format!(
                        "{}: another program holds the lock {}; waiting for it",
                        say::shown(mailbox),
                        say::shown(lock)
                    ));
                }
            }
        }
    }

    fn lost_flags(&self, what: &str, count: u64) {
        let mut counts = unpoisoned(self.counts.lock());
        counts.settled.1.tally(say::NOT_KEPT, what, count);
    }

    fn damaged(&self, path: &Path, why: &Detail) {
        let why = wording::detail(why);
        self.display.say(&say::damaged(path, &why));
        let mut counts = unpoisoned(self.counts.lock());
        if let Some(Ok(file)) = &mut counts.rows
            && let Err(error) = file.write_not_read(self.start, path, &why)
        {
            self.rows_failed(&mut counts, error);
        }
    }
}
