//! Processes the messages of requests, each as the command of the same name does.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hyper::StatusCode;
use tempfile::TempDir;

use super::super::args::{
    DetachArgs, FilterArgs, InspectArgs, MailboxArgs, OutputVolume, ProgressOption, RestoreArgs,
    SelectionArgs, ServeArgs, restoring,
};
use super::super::cache::Cache;
use super::super::copies::CopyMailboxes;
use super::super::origin::RunOrigin;
use super::super::picture_watch::PictureWatch;
use super::super::report_file::{ReportFields, ReportLog};
use super::super::say;
use super::super::survey::{RepeatedLinks, Survey, SurveyContext, survey_fields};
use super::super::survey_run::SurveyRun;
use super::super::verb::{DetachRun, ExpandRun, VerbReport};
use super::answers::{
    failed, line, media_type, of_mailbox, of_no_message, of_other, of_store, rows, without_store,
    wrapped,
};
use super::expanders::{ExpanderMaker, Ready};
use super::options::{self, RequestOptions, narrowed, parsed};
use super::store::ServedStore;
use crate::engine::lengths::Lengths;
use crate::engine::outlook::tnef;
use crate::engine::policy::{Follow, OnFailure, Policy, UnfollowedKinds};
use crate::engine::{Mark, Mode};
use crate::error::{Error, unpoisoned};
use crate::expand::Expander;
use crate::expand::detach::{Detacher, Settings};
use crate::fetch::store::{Key, StoreError};
use crate::mailbox::{
    Message, Options, OtherInput, Quoting, ReadOptions, Stop, Transform, as_mail, is_mailbox,
    no_message, starts_like_msg, temporary_folder_in,
};
use crate::serve::{Backend, BackendResult, ObjectContent, Parameters, Problem, SharedSink, Verb};

/// Maximum size of a mailbox after decompression, as a multiple of `--max-mailbox`.
const EXPANDED: u64 = 4;

/// Number of bytes at the start of an object from which its media type is guessed.
const SNIFFED: u64 = 4 << 10;

/// Settings of a request, prepared from its parameters.
enum PreparedRequest {
    Expand(Expander, Lengths),
    /// The number is the minimum size of the attachments that `detach` would move, in bytes.
    Inspect(Expander, u64),
    Detach {
        selection: SelectionArgs,
        on_failure: OnFailure,
    },
}

/// Maximum number of settings in the cache.
const MOST_PREPARED: usize = 64;

type PreparedRequests = HashMap<(Verb, Vec<(String, String)>), Arc<PreparedRequest>>;

pub(super) struct Service {
    args: ServeArgs,
    cache: Cache,
    copies: CopyMailboxes,
    store: Option<ServedStore>,
    base_url: String,
    filter: Ready,
    embed: Ready,
    recover: Ready,
    restore: Ready,
    inspect: Ready,
    /// Unpacks a `winmail.dat`.
    opening: Expander,
    report: Option<ReportLog>,
    prepared: Mutex<PreparedRequests>,
}

impl Service {
    pub(super) fn new(mut args: ServeArgs) -> Result<Self, Error> {
        let remote = args.common.policy.take_remote_store();
        let policy = args.policy(&args.common);
        let local = args.common.policy.store().map(|(store, _)| store);
        let name = remote.or(local);
        let opened = name.map(|name| ServedStore::open(&name, &policy));
        let store = opened.transpose()?;
        let cache = Cache::of(&args.common.policy, Mode::Run, None)?;
        let options = ReadOptions::default();
        let (progress, stop) = (ProgressOption::Never, Stop::default());
        let copies = CopyMailboxes::read(&policy, &options, progress, &stop)?;
        cache.read_archive(&policy, &stop)?;
        let of_store = || store.as_ref().map(|store| store.reading.base_url());
        let given = args.common.policy.base_url().map(str::to_owned);
        let without_store = || args.common.policy.store_url();
        let base_url = given.or_else(of_store).unwrap_or_else(without_store);
        let making = ExpanderMaker {
            cache: &cache,
            copies: &copies,
            store: store.as_ref(),
        };
        let mark = args.common.mark;
        let ready = |verb, policy: Policy| {
            let expander = making.expander(verb, policy.clone(), mark)?;
            Ok::<_, Error>(Ready { policy, expander })
        };
        let preset = |common| {
            // `embed` and `recover` allow `http:` and `https:` by default. The service replaces this default by the schemes
            // of its start options, so that a request cannot retrieve more than they allow.
            let mut preset = args.policy(&common);
            preset.fetch.clone_from(&policy.fetch);
            preset
        };
        let filter = ready(Verb::Filter, policy.clone())?;
        let embed = ready(Verb::Embed, preset(args.common.clone().embedding()))?;
        let recover = ready(Verb::Recover, preset(args.common.clone().recovering()))?;
        let growth = args.common.policy.max_growth();
        let restore = ready(Verb::Restore, restoring(policy.clone(), growth))?;
        let mut told = preset(args.common.clone().opening());
        told.unfollowed = UnfollowedKinds::All;
        let inspect = ready(Verb::Inspect, told)?;
        let mut opening = Policy::default();
        opening.follow = opening.follow.with(Follow::Winmail);
        Ok(Self {
            opening: Expander::new(opening)?,
            report: args.common.saying.report.clone().map(ReportLog::new),
            args,
            cache,
            copies,
            store,
            base_url,
            filter,
            embed,
            recover,
            restore,
            inspect,
            prepared: Mutex::default(),
        })
    }

    pub(super) fn deadline(&self) -> Duration {
        self.filter.policy.limits.deadline
    }

    /// Reports the errors of the cache and of `--record` when the service ends.
    pub(super) fn finish(&self) {
        self.cache.tell_trouble(self.args.common.saying.volume());
        self.cache.tell_record();
    }

    fn ready(&self, verb: Verb) -> &Ready {
        match verb {
            Verb::Filter | Verb::Detach => &self.filter,
            Verb::Embed => &self.embed,
            Verb::Recover => &self.recover,
            Verb::Restore => &self.restore,
            Verb::Inspect => &self.inspect,
        }
    }

    /// Returns the expander for a request: the one with the start policy, or a new one if the request narrows the
    /// policy.
    fn expander(
        &self,
        verb: Verb,
        (asked, mark, names): (&Policy, Mark, &BTreeSet<String>),
    ) -> Result<Expander, Problem> {
        let ready = self.ready(verb);
        if names.is_empty() {
            return Ok(ready.expander.clone());
        }
        let mut policy = narrowed(&ready.policy, asked, names)?;
        if verb == Verb::Restore {
            policy.limits.body = policy.limits.growth;
        }
        let mark = if names.contains("mark") {
            mark
        } else {
            self.args.common.mark
        };
        let making = ExpanderMaker {
            cache: &self.cache,
            copies: &self.copies,
            store: self.store.as_ref(),
        };
        making
            .expander(verb, policy, mark)
            .map_err(|error| failed(&error))
    }

    /// Returns the settings of a request. They are cached, because most programs always send the same parameters.
    fn prepared(
        &self,
        verb: Verb,
        parameters: &Parameters,
    ) -> Result<Arc<PreparedRequest>, Problem> {
        let key = (verb, parameters.to_vec());
        if let Some(known) = unpoisoned(self.prepared.lock()).get(&key) {
            return Ok(Arc::clone(known));
        }
        let prepared = Arc::new(self.prepare(verb, parameters)?);
        let mut known = unpoisoned(self.prepared.lock());
        if known.len() >= MOST_PREPARED {
            known.clear();
        }
        known.insert(key, Arc::clone(&prepared));
        Ok(prepared)
    }

    fn prepare(&self, verb: Verb, parameters: &Parameters) -> Result<PreparedRequest, Problem> {
        match verb {
            Verb::Detach => {
                let RequestOptions { args, names }: RequestOptions<DetachArgs> =
                    parsed("detach", parameters, &["--store=-"])?;
                let policy = narrowed(&self.filter.policy, &args.policy(), &names)?;
                Ok(PreparedRequest::Detach {
                    selection: args.selection.over(&self.args.selection),
                    on_failure: policy.on_failure,
                })
            }
            Verb::Restore => {
                let RequestOptions { args, names }: RequestOptions<RestoreArgs> =
                    parsed(verb.as_str(), parameters, &["--store=-"])?;
                let expander = self.expander(verb, (&args.policy(), Mark::Off, &names))?;
                Ok(PreparedRequest::Expand(expander, Lengths::Reversible))
            }
            Verb::Inspect => {
                let RequestOptions { args, names }: RequestOptions<InspectArgs> =
                    parsed(verb.as_str(), parameters, &[])?;
                let args = args.opening();
                let of_start = self.args.selection.choice().larger_than;
                let least = args.larger_than.unwrap_or(of_start);
                let policy = args.policy.policy();
                let expander = self.expander(verb, (&policy, Mark::Off, &names))?;
                Ok(PreparedRequest::Inspect(expander, least))
            }
            Verb::Filter | Verb::Embed | Verb::Recover => {
                let RequestOptions { mut args, names }: RequestOptions<FilterArgs> =
                    parsed(verb.as_str(), parameters, &[])?;
                args.common = match verb {
                    Verb::Embed => args.common.embedding(),
                    Verb::Recover => args.common.recovering(),
                    _ => args.common,
                };
                let (policy, mark) = (args.policy(), args.common.mark);
                let expander = self.expander(verb, (&policy, mark, &names))?;
                Ok(PreparedRequest::Expand(expander, Lengths::Corrected))
            }
        }
    }

    /// Returns the transform for a request.
    fn transform(
        &self,
        verb: Verb,
        parameters: &Parameters,
    ) -> Result<Box<dyn Transform<VerbReport>>, Problem> {
        let needs_store = match verb {
            Verb::Detach => true,
            Verb::Restore => self.restore.policy.fetch.is_empty(),
            _ => false,
        };
        if needs_store && self.store.is_none() {
            return Err(without_store());
        }
        let expanding = |expander: &Expander, mode, lengths| ExpandRun {
            expander: expander.clone(),
            mode,
            lengths,
            recorder: self.cache.recorder.clone(),
            tells_rows: true,
            pictures: PictureWatch::default(),
        };
        Ok(match &*self.prepared(verb, parameters)? {
            PreparedRequest::Expand(expander, lengths) => {
                Box::new(expanding(expander, Mode::Run, *lengths))
            }
            PreparedRequest::Inspect(expander, larger_than) => {
                let tells_embeds = expander.policy().embed.is_on();
                let expanding = expanding(expander, Mode::DryRun, Lengths::Reversible);
                let base_url = self.base_url.clone();
                Box::new(SurveyRun::new(
                    expanding,
                    *larger_than,
                    base_url,
                    tells_embeds,
                ))
            }
            PreparedRequest::Detach {
                selection,
                on_failure,
            } => {
                let served = self.store.as_ref().ok_or_else(without_store)?;
                let store = served.to_write().map_err(|error| {
                    let why = say::error(&error);
                    let detail =
                        format!("{why}; send the request again when the store can be written");
                    Problem::passing(StatusCode::SERVICE_UNAVAILABLE, 30, detail)
                })?;
                let detacher = Detacher::new(Settings {
                    store: Some(store),
                    base_url: self.base_url.clone(),
                    choice: selection.choice(),
                    form: selection.note_format.unwrap_or_default(),
                    text: selection.note,
                    on_failure: *on_failure,
                });
                Box::new(DetachRun {
                    detacher,
                    files: None,
                })
            }
        })
    }

    /// Converts an Outlook message file to a mail. If this fails, the message is left unchanged, and the reason is
    /// added to `notes`.
    fn as_mail<'m>(&self, message: &'m [u8], notes: &mut Vec<String>) -> Cow<'m, [u8]> {
        if !is_of_outlook(message) {
            return Cow::Borrowed(message);
        }
        if starts_like_msg(message) {
            return match as_mail(Cow::Borrowed(message), Path::new("message")) {
                Ok((mail, missing)) => {
                    notes.extend(missing);
                    mail
                }
                Err(why) => {
                    notes.push(format!("the Outlook message was not converted: {why}"));
                    Cow::Borrowed(message)
                }
            };
        }
        let wrapped = wrapped(message);
        match self.opening.expand(&wrapped, "") {
            Ok(outcome) if outcome.report.expanded() > 0 => {
                Cow::Owned(outcome.output().into_bytes().into_owned())
            }
            _ => {
                notes.push("winmail.dat could not be unpacked".to_owned());
                Cow::Borrowed(message)
            }
        }
    }

    fn report(
        &self,
        said: &VerbReport,
        notes: &[String],
        left: u64,
        is_changed: bool,
        mail: &[u8],
    ) -> Vec<u8> {
        let report = ReportFields::default()
            .with("kind", &"report")
            .with("changed", &is_changed)
            .with("left", &left)
            .with("sha256", &Key::of(mail).to_string())
            .with("notes", &notes)
            .with("rows", &rows(said));
        line(&report)
    }

    /// Returns the survey of a message, as the last line of `inspect --json` contains it.
    fn surveyed(&self, mut survey: Survey, larger_than: u64) -> ReportFields {
        survey.mail.mailboxes = 1;
        survey.settle(false);
        let context = SurveyContext {
            larger_than,
            base_url: &self.base_url,
            is_probed: false,
            has_no_response: false,
            has_archive: false,
            by: &[],
            sources: Vec::new(),
            store: None,
            format: String::new(),
            repeated: RepeatedLinks::default(),
            page: None,
            remedy: None,
            start: "",
        };
        survey_fields(&survey, &context, None)
    }

    fn log(&self, said: &VerbReport) {
        let (Some(report), Some(origin)) = (&self.report, &said.origin) else {
            return;
        };
        if let Err(why) = report.write(origin, &said.report.rows, None) {
            say::tell(&why);
        }
    }
}

/// Returns whether the message is an Outlook message or a `winmail.dat`.
fn is_of_outlook(message: &[u8]) -> bool {
    starts_like_msg(message) || message.starts_with(tnef::SIGNATURE)
}

impl Backend for Service {
    fn process(
        &self,
        verb: Verb,
        parameters: &Parameters,
        message: Vec<u8>,
    ) -> Result<BackendResult, Problem> {
        if is_mailbox(&message) {
            return Err(of_mailbox(verb));
        }
        if let Some(other) = OtherInput::of(&message) {
            return Err(of_other(verb, other));
        }
        // The other requests return such a body unchanged. A survey of it would say that nothing is missing from the mail.
        if verb == Verb::Inspect
            && !is_of_outlook(&message)
            && let Some(what) = no_message(&message)
        {
            return Err(of_no_message(verb, what));
        }
        let transform = self.transform(verb, parameters)?;
        let mut notes = Vec::new();
        let mail = self.as_mail(&message, &mut notes);
        let (edits, mut said) = transform
            .transform(&Message {
                number: 1,
                source: Path::new("-"),
                content: &mail,
                at: None,
                quoting: Quoting::None,
                beside: None,
            })
            .map_err(|error| failed(&error))?;
        said.name("-");
        if said.origin.is_none() && (!said.report.rows.is_empty() || !said.listed.is_empty()) {
            said.origin = Some(RunOrigin::new("-", 1, &mail));
        }
        if let PreparedRequest::Inspect(_, larger_than) = &*self.prepared(verb, parameters)? {
            let survey = said.survey.take().unwrap_or_default();
            let report = ReportFields::default()
                .with("kind", &"inspection")
                .with("notes", &notes)
                .with("rows", &rows(&said))
                .with("survey", &self.surveyed(*survey, *larger_than));
            return Ok(BackendResult::Report(line(&report)));
        }
        self.log(&said);
        let new = if edits.is_empty() {
            mail
        } else {
            Cow::Owned(edits.splice(&mail).into_bytes().into_owned())
        };
        let is_changed = *new != *message;
        let left = said.report.left() as u64;
        let report = self.report(&said, &notes, left, is_changed, &new);
        Ok(BackendResult::Mail {
            mail: new.into_owned(),
            is_changed,
            left,
            report,
        })
    }

    fn check_mailbox(&self, parameters: &Parameters) -> Result<(), Problem> {
        self.mailbox_options(parameters).map(drop)
    }

    fn spool(&self) -> io::Result<TempDir> {
        temporary_folder_in(&self.args.spool())
    }

    fn mailbox(
        &self,
        source: &Path,
        parameters: &Parameters,
        stop: &Stop,
        sink: SharedSink,
    ) -> Result<Vec<u8>, Problem> {
        let options = self.mailbox_options(parameters)?;
        let done = super::mailbox::deliver(source, &options, stop, sink);
        let report = done.map_err(|error| {
            let text = super::mailbox::without_path(&say::error(&error), source);
            match error {
                Error::NotAMailbox { .. } | Error::Unreadable { .. } | Error::Usage(_) => {
                    let detail = format!("{text}; send a mailbox that embody convert can read");
                    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, detail)
                }
                _ => Problem::new(StatusCode::INTERNAL_SERVER_ERROR, text),
            }
        })?;
        Ok(line(&report))
    }

    fn object(&self, key: &Key) -> Result<Option<(ObjectContent, &'static str)>, Problem> {
        let store = &self.store.as_ref().ok_or_else(without_store)?.reading;
        let wrong = |error: StoreError| of_store(&error);
        let Some(file) = store.file(key).map_err(wrong)? else {
            let at_most = self.args.limits().max_request;
            let Some(content) = store.get(key, at_most).map_err(wrong)? else {
                return Ok(None);
            };
            let kind = media_type(&content);
            return Ok(Some((ObjectContent::Memory(content), kind)));
        };
        let unread = |error: io::Error| {
            let detail =
                format!("the object cannot be read ({error}); check the disk of the store");
            Problem::new(StatusCode::INTERNAL_SERVER_ERROR, detail)
        };
        if Key::of_file(&file).map_err(unread)? != *key {
            return Err(of_store(&StoreError::not_its_name(key)));
        }
        let length = file.metadata().map_err(unread)?.len();
        let mut start = Vec::new();
        crate::serve::start_of(&file, SNIFFED, &mut start).map_err(unread)?;
        let kind = media_type(&start);
        Ok(Some((ObjectContent::File(file, length), kind)))
    }

    fn requested(&self, line: &dyn Fn() -> String) {
        if self.args.common.saying.volume() >= OutputVolume::Verbose {
            say::tell(&say::harmless(&line()));
        }
    }

    fn trouble(&self, line: &str) {
        say::tell(line);
    }
}

impl Service {
    fn mailbox_options(&self, parameters: &Parameters) -> Result<Options, Problem> {
        let RequestOptions { args, names }: RequestOptions<MailboxArgs> =
            parsed("messages", parameters, &[])?;
        // Outlook mailboxes inside an archive are copied to the spool directory, so this also limits the spool.
        let most = self.args.limits().max_mailbox.saturating_mul(EXPANDED);
        let own = self.args.compressed.added_to(ReadOptions {
            max_expanded: most,
            ..ReadOptions::default()
        });
        let asked = args.compressed.added_to(own.clone());
        let max_expanded = if names.contains("max-expanded") {
            options::expanded(own.max_expanded, asked.max_expanded)?
        } else {
            own.max_expanded
        };
        Ok(Options {
            read: ReadOptions {
                format: args.format,
                max_expanded,
                ..own
            },
            ..Options::default()
        })
    }
}
