//! `embody inspect`: lists the references in mail, and what embody would do with the same options. It retrieves
//! nothing; with `--probe`, it only asks servers whether the content exists.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::HashSet;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use clap::ValueEnum as _;

use super::args::{InspectArgs, OutputVolume, ProgressOption};
use super::cache::{Cache, shared_fetcher};
use super::copies::CopyMailboxes;
use super::duplicates;
use super::exit::ProgramStatus;
#[cfg(all(unix, feature = "imap"))]
use super::exit::Signals;
use super::messages;
use super::named_files::NamedFiles;
use super::origin::RunStart;
use super::outline::outline;
use super::picture_watch::PictureWatch;
use super::progress::Display;
#[cfg(all(unix, feature = "imap"))]
use super::remote;
use super::report_file::{ReportFile, json};
use super::reporter::{Reporter, ReporterCounts};
use super::say::{self, harmless_within};
use super::streams::{
    is_folder, is_output_lost, is_standard, print, standard, stream, write_error,
};
use super::survey::{
    NamedSource, RepeatedLinks, SourceKind, SurveyContext, as_json, check_page, in_units, lines,
    page, write_page,
};
use super::survey_run::SurveyRun;
use super::totals::{Totals, files, read};
use super::verb::ExpandRun;
use super::wording;
use crate::engine::Mode;
use crate::engine::declared_charsets::in_declared_charsets;
use crate::engine::lengths::Lengths;
use crate::engine::policy::Policy;
use crate::error::Error;
use crate::expand::Expander;
use crate::expand::detach::Choice;
use crate::mailbox::find::{NotMail, StartKind};
use crate::mailbox::{
    Conversion, Format, InputSource, Message, Options, Program, Quoting, ReadOptions, Source, Stop,
    Transform as _, appended_to_file, as_mail, in_full, kind_of_open, not_encoded, refused_session,
    shown, starts_like_msg, with_line_feeds_alone,
};
use crate::mime::scan;

pub(super) fn run(args: &InspectArgs, arguments: &[OsString]) -> Result<ProgramStatus, Error> {
    if args.messages || args.keys {
        return messages::run(args);
    }
    if args.duplicates {
        return duplicates::run(args);
    }
    let is_page_printed = args.html.as_deref().is_some_and(is_standard);
    if is_page_printed && args.json {
        let what =
            "--json and --html - cannot be used together, because both write to standard output";
        return Err(Error::Usage(what.into()));
    }
    let page_file = args.html.as_deref().filter(|_| !is_page_printed);
    page_file.map_or(Ok(()), check_page)?;
    let policy = args.policy.policy();
    let cache = Cache::of(&args.policy, args.mode(), None)?;
    let stdin = [standard().to_owned()];
    let sources = match args.sources.as_slice() {
        [] => stdin.as_slice(),
        sources => sources,
    };
    cache.open_record(sources, &[])?;
    let options = args.compressed.added_to(ReadOptions::default());
    let copies = CopyMailboxes::read(&policy, &options, ProgressOption::Never, &Stop::default())?;
    let expander = Expander::builder(args.probing_policy())
        .fetch_with(|policy| {
            let fetcher = shared_fetcher(policy, &cache, &Stop::default())?;
            Ok(copies.before(policy, fetcher))
        })?
        .build()?;
    if args.mode() == Mode::Probe {
        cache.read_archive(&policy, &Stop::default())?;
    }
    if sources.iter().filter(|source| is_standard(source)).count() > 1 {
        return Err(Error::Usage("standard input can be read only once".into()));
    }
    let base_url = args.policy.store_url();
    let larger_than = args.larger_than.unwrap_or(Choice::LARGER_THAN);
    #[cfg(all(unix, feature = "imap"))]
    if remote::are_remote(sources, &args.imap)? {
        return accounts(args, &policy, larger_than);
    }
    let tells_embeds = policy.embed.is_on();
    let expanding = ExpandRun {
        expander,
        mode: args.mode(),
        // The survey predicts the size of the mail after `detach`. Like `detach`, it leaves wrong Content-Length and
        // Lines fields unchanged, so that its numbers are the same.
        lengths: Lengths::Reversible,
        recorder: cache.recorder.clone(),
        tells_rows: args.json,
        pictures: PictureWatch::default(),
    };
    let defaults = ReadOptions::default();
    let mut surveying = SurveyRun::new(expanding, larger_than, base_url.clone(), tells_embeds);
    let directory = args.save_attachments.as_deref();
    surveying.files = directory.map(NamedFiles::open).transpose()?;
    let inspection = Inspection {
        args,
        surveying,
        says: match (args.json, is_page_printed) {
            (true, _) => InspectOutput::Rows,
            (false, true) => InspectOutput::Nothing,
            (false, false) => InspectOutput::Text,
        },
        named: sources.len() > 1,
        options: Options {
            read: args.compressed.added_to(ReadOptions {
                format: args.format,
                // Messages that wait for servers use no core, so more of them than there are cores can be processed in
                // parallel.
                max_in_flight: match args.mode() {
                    Mode::DryRun => defaults.jobs,
                    _ => policy.limits.in_flight.max(defaults.jobs),
                },
                may_lack_mail: sources.len() > 1,
                ..defaults
            }),
            writes: false,
            ..Options::default()
        },
        lacks_mail: Cell::new(false),
        trouble: Cell::new(false),
        start: RunStart::now(None),
    };
    let mut status = if copies.is_damaged {
        ProgramStatus::Trouble
    } else {
        ProgramStatus::Success
    };
    let mut sum = Totals::default();
    let mut has_read = false;
    let known = |path: &PathBuf| {
        if is_standard(path) {
            Source::of_no_file(path)
        } else {
            Source::new(path, &inspection.options.read, true, &Stop::default())
        }
    };
    let sources: Vec<Source> = sources.iter().map(known).collect();
    let mut without_mail = HashSet::new();
    for source in &sources {
        let inspected = inspection.run(source);
        if inspection.lacks_mail.take() {
            without_mail.insert(source.path());
        }
        source.close();
        match inspected {
            Ok(of_source) => {
                has_read = true;
                sum.add(of_source);
            }
            Err(error) if is_output_lost(&error) => return Err(error),
            Err(error) => {
                say::tell(&say::error(&error));
                status = ProgramStatus::Trouble;
            }
        }
    }
    if sources.iter().all(|it| without_mail.contains(it.path())) {
        say::tell(say::NO_MAIL);
        status = ProgramStatus::Trouble;
    }
    let has_no_response = sum.outcomes.has_no_response();
    sum.survey.settle(has_no_response);
    if has_no_response {
        say::tell(&sum.outcomes.no_response("run the same command again."));
        status = ProgramStatus::Trouble;
    }
    if let Some(files) = &inspection.surveying.files {
        let (text, is_whole) = files.ended();
        say::tell(&text);
        if let Some(packed) = inspection.surveying.packed_files() {
            say::tell(&packed);
        }
        inspection
            .trouble
            .set(inspection.trouble.get() || !is_whole);
    }
    cache.tell_trouble(OutputVolume::Normal);
    if cache.tell_record() || inspection.trouble.get() {
        status = ProgramStatus::Trouble;
    }
    if !has_read {
        // Nothing could be read, and the errors were already printed. An empty survey would only hide them.
        return Ok(status);
    }
    let with_mail = sources
        .iter()
        .filter(|source| !without_mail.contains(source.path()));
    let named = with_mail.map(|source| NamedSource {
        name: source.path().display().to_string(),
        kind: source_kind(source),
    });
    let context = SurveyContext {
        larger_than,
        base_url: &base_url,
        is_probed: args.mode() == Mode::Probe,
        has_no_response,
        has_archive: args.policy.archive.archive.is_some(),
        by: &args.by,
        sources: named.collect(),
        store: args.policy.store(),
        format: match args.format.to_possible_value() {
            Some(word) if args.format != Format::Auto => format!(" --format {}", word.get_name()),
            _ => String::new(),
        },
        repeated: RepeatedLinks::of_retrieval(arguments),
        page: page_file.and_then(Path::to_str).map(str::to_owned),
        remedy: sum
            .best_remedy()
            .map(|(options, _)| options)
            .filter(|options| {
                ["--fetch ", "--allow-"]
                    .iter()
                    .any(|it| options.starts_with(it))
            }),
        start: &inspection.start.time,
    };
    match inspection.says {
        // The rows of a single message do not contain its pictures and trackers, so the survey follows them, too.
        InspectOutput::Rows => {
            let embed = tells_embeds.then(|| sum.forecast.embed(&policy));
            let line = as_json(&sum.survey, &context, embed);
            print(&json(&line).map_err(write_error)?)?;
        }
        InspectOutput::Text => {
            // With --verbose, these counts are in the table of each source instead.
            let skipped = if args.verbose {
                String::new()
            } else {
                sum.skipped()
            };
            print(lines(&sum.survey, &context, skipped).as_bytes())?;
        }
        InspectOutput::Nothing => {}
    }
    match &args.html {
        Some(_) if is_page_printed => print(page(&sum.survey, &context).as_bytes())?,
        Some(file) => write_page(file, &page(&sum.survey, &context))?,
        None => {}
    }
    Ok(status)
}

#[cfg(all(unix, feature = "imap"))]
fn accounts(args: &InspectArgs, policy: &Policy, larger_than: u64) -> Result<ProgramStatus, Error> {
    let needs_content = args.html.is_some()
        || args.save_attachments.is_some()
        || !args.by.is_empty()
        || policy.embed.is_on();
    if needs_content || args.mode() != Mode::DryRun || args.format != Format::Auto {
        let what = "--html, --by, --embed, --probe, --save-attachments and --format work only with mail in files, because inspect reads only the sizes and the structure of mail on a server: download the mail with embody convert first";
        return Err(Error::Usage(what.into()));
    }
    let signals = Signals::watch();
    let mut status = ProgramStatus::Success;
    for source in &args.sources {
        let Some(account) = remote::account(source, &args.imap, policy)? else {
            continue;
        };
        match remote::overview(&account, larger_than, args.json, &signals.stop) {
            Ok(true) => {}
            Ok(false) => status = ProgramStatus::Trouble,
            Err(Error::Interrupted) => return Ok(signals.status()),
            Err(error) if is_output_lost(&error) => return Err(error),
            Err(error) => status = ProgramStatus::told(&error),
        }
    }
    Ok(status)
}

fn source_kind(source: &Source) -> SourceKind {
    let path = source.path();
    // An HTML page must not contain control characters, so the page does not show a source name that contains one.
    let is_name = |name: &str| harmless_within(name) == name;
    if !path.to_str().is_some_and(is_name) {
        return SourceKind::Nameless;
    }
    if is_folder(path) {
        return SourceKind::Folder;
    }
    if is_standard(path) || !path.is_file() {
        return SourceKind::Nameless;
    }
    match source.kind() {
        Some(StartKind::Archive) => SourceKind::Archive,
        Some(kind) if kind.is_message() => SourceKind::Message,
        _ => SourceKind::File,
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum InspectOutput {
    Text,
    Rows,
    Nothing,
}

struct Inspection<'i> {
    args: &'i InspectArgs,
    surveying: SurveyRun,
    says: InspectOutput,
    named: bool,
    options: Options,
    /// Whether the source that was read last is an archive without mail.
    lacks_mail: Cell<bool>,
    trouble: Cell<bool>,
    start: RunStart,
}

impl Inspection<'_> {
    fn policy(&self) -> &Policy {
        self.surveying.expanding.expander.policy()
    }

    fn asks_servers(&self) -> bool {
        self.args.mode().asks_servers()
    }

    fn run(&self, looked_at: &Source) -> Result<Totals, Error> {
        let source = looked_at.path();
        let failed = Error::cannot_read(source.display());
        if is_folder(source) {
            return self.mailbox(looked_at, None);
        }
        let stop = Stop::default();
        let mut stream = match stream(source, &self.options, &stop)? {
            None if looked_at.is_plain_file() => None,
            None => {
                let file = File::open(source).map_err(&failed)?;
                Some(InputSource::named(file, source, &self.options.read, &stop)?)
                    .filter(|opened| opened.as_file().is_none())
            }
            stream => stream,
        };
        let format = self.options.read.format;
        let (kind, is_empty) = match &mut stream {
            None => (looked_at.verdict()?, false),
            Some(opened) => {
                let kind = kind_of_open(opened, source, format)?;
                let is_empty = opened.start(1).map_err(in_full(source))?.is_empty();
                (
                    kind,
                    is_empty && opened.damage().is_none() && !opened.has_spooled(),
                )
            }
        };
        // Text from a stream is read as a message, as in `filter`. Text in a file is an error, because the user may have
        // named the wrong file.
        let is_stream = stream.as_ref().is_some_and(|it| it.original().is_none());
        match kind {
            Ok(kind) if !kind.is_message() && !is_empty => self.mailbox(looked_at, stream),
            Err(other) if !is_stream || !matches!(other, NotMail::Text) => Err(other.error(source)),
            _ => {
                let mut message = Vec::new();
                match &mut stream {
                    Some(opened) => {
                        opened.read_to_end(&mut message).map_err(in_full(source))?;
                    }
                    None => message = std::fs::read(source).map_err(&failed)?,
                }
                let mut reasons = Vec::new();
                if let Some(damage) = stream.as_ref().and_then(|opened| opened.damage()) {
                    if !damage.whole {
                        return Err(failed(io::Error::other(damage.clone())));
                    }
                    reasons.push(wording::detail(&damage.detail()));
                }
                if message.is_empty() {
                    self.damaged(source, &reasons)?;
                    return Ok(Totals::default());
                }
                // The start of a file shows this only if its first message is short.
                if let Some(session) = refused_session(&message) {
                    return Err(session.error(source));
                }
                if stream.as_ref().is_some_and(InputSource::is_utf16) {
                    match in_declared_charsets(&message) {
                        Ok(encoded) => message = encoded.unwrap_or(message),
                        Err(why) => reasons.push(not_encoded(why)),
                    }
                }
                let message = with_line_feeds_alone(message);
                if !starts_like_msg(&message) {
                    let appended = appended_to_file(&message, stream.is_none());
                    reasons.extend(appended.map(|why| wording::detail(&why)));
                }
                let made = as_mail(Cow::Owned(message), source);
                let (message, missing) = made.map_err(|why| failed(io::Error::other(why)))?;
                reasons.extend(missing);
                let (message, why, beside) = shown(&message, source);
                reasons.extend(why.map(str::to_owned));
                self.damaged(source, &reasons)?;
                let mut totals = self.message(source, message, beside)?;
                totals.survey.broken.files = reasons.len() as u64;
                if !is_standard(source) {
                    totals.survey.files.count_read(reasons.is_empty());
                }
                Ok(totals)
            }
        }
    }

    fn mailbox(&self, looked_at: &Source, stream: Option<InputSource>) -> Result<Totals, Error> {
        let source = looked_at.path();
        let stop = &Stop::default();
        let reporter = Reporter {
            display: Display::new(ProgressOption::Never, 0),
            volume: if self.args.verbose {
                OutputVolume::Verbose
            } else {
                OutputVolume::Normal
            },
            says_rows: false,
            counts_remedies: self.asks_servers(),
            needs_rows: Some(stop),
            policy: self.policy(),
            start: &self.start,
            files: self.surveying.files.as_ref(),
            several: self.named || is_folder(source),
            counts: ReporterCounts::new(
                (self.says == InspectOutput::Rows).then_some(ReportFile::Stdout),
            ),
        };
        let conversion = match stream {
            Some(opened) => Conversion::of_stream(opened, source),
            None => Conversion::of_source(looked_at),
        };
        let done = conversion
            .options(&self.options)
            .stop(stop)
            .run(&self.surveying, &reporter);
        let (_, mut totals, failure) = reporter.finish();
        if let Some(failure) = failure {
            return Err(write_error(failure));
        }
        let summary = done?;
        if summary.damaged > 0 {
            self.trouble.set(true);
        }
        self.lacks_mail.set(summary.without_mail > 0);
        totals.survey.walked(&summary);
        if self.says != InspectOutput::Text {
            return Ok(totals);
        }
        let mut text = self.heading(source);
        if summary.without_mail == 0 {
            text += &format!("{}, {}\n", read(&summary), in_units(summary.bytes_in));
        }
        text += &files(&summary.files);
        text += &if self.args.verbose {
            totals.table(false)
        } else {
            totals.table_of(&["missing"])
        };
        if self.surveying.tells_embeds {
            text += &totals.forecast.lines(self.policy(), true);
        }
        print(text.as_bytes())?;
        Ok(totals)
    }

    fn heading(&self, source: &Path) -> String {
        let heading = self.named.then(|| format!("{}:\n", say::shown(source)));
        heading.unwrap_or_default()
    }

    /// Names a file that could not be read completely, with all reasons.
    fn damaged(&self, source: &Path, reasons: &[String]) -> Result<(), Error> {
        for why in reasons {
            self.trouble.set(true);
            say::tell(&say::damaged(source, why));
            if self.says == InspectOutput::Rows {
                let written = ReportFile::Stdout.write_not_read(&self.start, source, why);
                written.map_err(write_error)?;
            }
        }
        Ok(())
    }

    fn message(
        &self,
        source: &Path,
        message: &[u8],
        beside: Option<Program>,
    ) -> Result<Totals, Error> {
        let (_, mut said) = self.surveying.transform(&Message {
            number: 1,
            source,
            content: message,
            at: None,
            quoting: Quoting::None,
            beside,
        })?;
        if let Some(files) = &self.surveying.files {
            files.place(&said.files);
        }
        said.name(&source.display().to_string());
        let mut totals = Totals::default();
        totals.survey = said.survey.take().map(|survey| *survey).unwrap_or_default();
        totals.survey.mail.mailboxes = 1;
        totals.count(&said.report, self.policy());
        if self.asks_servers() {
            totals.count_remedies(&said.report, self.policy());
        }
        if let (InspectOutput::Rows, Some(origin)) = (self.says, &said.origin) {
            ReportFile::Stdout
                .write(
                    &self.start,
                    origin,
                    wording::rows(&said.report.rows, Some(self.policy())),
                )
                .and_then(|()| ReportFile::Stdout.write(&self.start, origin, &said.listed))
                .map_err(write_error)?;
        } else if self.says == InspectOutput::Text {
            let policy = self.policy();
            let tree = scan(message, &policy.limits.scan());
            let mut text = self.heading(source);
            let text_links = self
                .surveying
                .expanding
                .expander
                .cloud_links_in_texts(&tree);
            text += &outline(&tree, &said.report, policy, &text_links);
            if self.surveying.tells_embeds {
                text += &totals.forecast.lines(policy, false);
            }
            print(text.as_bytes())?;
        }
        Ok(totals)
    }
}
