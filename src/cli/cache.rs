//! Opens the response cache (`--cache`), the web archive (`--archive`) and the log of requests and responses
//! (`--record`). Also opens the resume directory next to an output, in which a run keeps its responses until the output
//! is complete. If the run is stopped, killed or fails, the next run continues with these responses (docs/cache.md).

use std::cell::Cell;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::args::{ArchiveArgs, ArchivePlace, CacheArgs, OutputVolume, PolicyArgs};
use super::streams::is_standard;
use super::values::CacheMax;
use super::{exit, report_file, say};
use crate::engine::Mode;
use crate::engine::policy::Policy;
use crate::error::Error;
use crate::fetch::archive::{Archive, ArchiveReplay, ArchiveWindow, CaptureFiles};
use crate::fetch::cache::{
    CacheFolder, IgnoredDirectives, KeptResponses, Offline, RunFolder, cannot_write, is_of_disk,
    the_cache, trust,
};
use crate::fetch::record::{RecordPlace, WarcRecorder};
use crate::fetch::{
    Fetch, Fetcher, IsStopped, Recorder, ResponseCache, Servers, SystemNames, Unresponsive,
};
use crate::mailbox::{JournalFiles, ResultJournal, Stop, place_beside, place_inside};

/// Default of `--cache-max`, in bytes. Without a limit, a sender could fill the disk: large files that a mail links to
/// are cached even if they are then not put into the mail.
const CACHE_MAX: CacheMax = Some(2 << 30);

const DAY: u64 = 24 * 60 * 60;

const WINDOW: ArchiveWindow = ArchiveWindow {
    before: Duration::from_secs(90 * DAY),
    after: Duration::from_secs(400 * DAY),
};

/// Whether the process runs a single command or is a service. This determines how long a host counts as unresponsive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Process {
    /// A single command: a host that did not respond gets no further requests during the run.
    Run,
    /// A service that runs for months: a host that did not respond gets requests again later, because it may have
    /// recovered.
    #[cfg(any(feature = "milter", feature = "serve"))]
    Service,
}

#[derive(Clone, Debug)]
pub(super) struct Cache {
    args: CacheArgs,
    folder: Option<Arc<CacheFolder>>,
    of_run: Option<Arc<CacheFolder>>,
    trouble: Option<String>,
    archive: ArchiveArgs,
    pub(super) recorder: Option<WarcRecorder>,
    files: Option<Arc<CaptureFiles>>,
}

impl Cache {
    /// Opens the cache, the archive and the record that the options name. With `--offline`, the cache directory is not
    /// created if it is missing, because an empty cache would contain no responses.
    pub(super) fn of(
        args: &PolicyArgs,
        mode: Mode,
        resume: Option<&Resume>,
    ) -> Result<Self, Error> {
        let path = args.record.as_ref().filter(|_| mode.asks_servers());
        let recorder = path.map(|path| {
            let place = RecordPlace::new(path, args.record_max).map_err(|why| {
                let path = path.display();
                Error::Usage(format!("--record {path}: {why}").into())
            });
            place.map(WarcRecorder::new)
        });
        let (args, archive) = (&args.cache, &args.archive);
        let mut cache = Self {
            args: args.clone(),
            folder: None,
            of_run: resume
                .filter(|resume| resume.keeps_responses)
                .map(|resume| Arc::clone(&resume.folder.cache)),
            trouble: None,
            archive: archive.clone(),
            recorder: recorder.transpose()?,
            files: None,
        };
        if let Some(ArchivePlace::Files(path)) = &archive.archive {
            if archive.archive_cdx.is_some() || archive.archive_any {
                let what = "--archive-cdx and --archive-any work only with an archive on the web, but --archive names files";
                return Err(Error::Usage(what.into()));
            }
            cache.files = Some(Arc::new(CaptureFiles::open(path)?));
        } else if args.offline && args.cache.is_none() && !args.may_keep_nothing {
            let what = "--offline makes no requests; name the source of the content with --cache DIR or --archive FILE";
            return Err(Error::Usage(what.into()));
        }
        let Some(path) = args.cache.as_ref().filter(|_| mode.asks_servers()) else {
            return Ok(cache);
        };
        if path.exists() && !path.is_dir() {
            let why = io::Error::new(
                io::ErrorKind::NotADirectory,
                "the path does not lead to a directory",
            );
            return Err(Error::cannot_write(the_cache(path))(why));
        }
        let at_most = args.cache_max.unwrap_or(CACHE_MAX);
        let opened = if args.offline {
            CacheFolder::open_to_read(path, at_most)
        } else {
            CacheFolder::open(path, at_most)
        };
        match opened {
            Ok(folder) => cache.folder = Some(Arc::new(folder)),
            // The cache only makes a run faster, so a disk error of the cache is reported and does not stop the run.
            Err(Error::Write { source, .. }) if !args.offline && is_of_disk(&source) => {
                cache.trouble = Some(cannot_write(path, &source));
            }
            Err(error) => return Err(error),
        }
        Ok(cache)
    }

    pub(super) fn fetcher(
        &self,
        policy: &Arc<Policy>,
        process: Process,
        stop: &Stop,
    ) -> Result<Fetcher, Error> {
        if Fetcher::is_idle(policy) {
            return Fetcher::new(Arc::clone(policy));
        }
        let stop = stop.clone();
        let is_stopped: IsStopped = Arc::new(move || stop.check().is_err());
        let recorder = self
            .recorder
            .clone()
            .map(|recorder| Arc::new(recorder) as Arc<dyn Recorder>);
        let mut servers = Servers::new(policy, Arc::new(SystemNames), recorder)?;
        servers.is_stopped = is_stopped;
        match process {
            Process::Run => servers.unresponsive = Some(Unresponsive::new(&policy.limits)),
            #[cfg(any(feature = "milter", feature = "serve"))]
            Process::Service => servers.pace = crate::fetch::Pace::of_service(),
        }
        servers.disk = self.disk(policy)?;
        let servers = Arc::new(servers);
        let mut fetcher = Fetcher::over(Arc::clone(policy), Arc::clone(&servers))?;
        let options = &self.archive;
        let archive: Arc<dyn Fetch> = match (&self.files, &options.archive) {
            (Some(files), _) => {
                // From an archive in files, a message gets the capture nearest to its date, and a message without a
                // date gets the first capture. With `--archive-window`, a message without a date gets no capture,
                // because its distance in time from a capture is unknown.
                let is_unbound = options.archive_window.is_none();
                fetcher.undated = is_unbound.then_some(SystemTime::UNIX_EPOCH);
                Arc::new(ArchiveReplay {
                    files: Arc::clone(files),
                    window: options.archive_window,
                    policy: Arc::clone(policy),
                })
            }
            (None, Some(ArchivePlace::Server(template))) => Arc::new(Archive {
                template: template.clone(),
                index: options.archive_cdx.clone(),
                window: options.archive_window.unwrap_or(WINDOW),
                is_told_any: options.archive_any,
                policy: Arc::clone(policy),
                servers,
            }),
            _ => return Ok(fetcher),
        };
        fetcher.archive = Some((options.archive_first, archive));
        Ok(fetcher)
    }

    fn disk(&self, policy: &Arc<Policy>) -> Result<Option<Box<dyn ResponseCache>>, Error> {
        let (shared, of_run) = (self.folder.as_ref(), self.of_run.as_ref());
        if shared.or(of_run).is_none() {
            return Ok(self.args.offline.then(|| Box::new(Offline) as _));
        }
        let trust = trust(policy)?;
        let kept = |folder: &Arc<CacheFolder>, ignoring, behind| {
            Box::new(KeptResponses {
                folder: Arc::clone(folder),
                policy: Arc::clone(policy),
                trust: trust.clone(),
                ignoring,
                is_offline: self.args.offline,
                behind,
            })
        };
        let ignoring = if self.args.cache_ignore.is_empty() {
            IgnoredDirectives::Nothing
        } else {
            IgnoredDirectives::NoStore
        };
        let shared = shared.map(|folder| kept(folder, ignoring, None));
        Ok(match of_run {
            Some(folder) => Some(kept(folder, IgnoredDirectives::Everything, shared)),
            None => shared.map(|shared| shared as Box<dyn ResponseCache>),
        })
    }

    /// Reads the files of the archive before the first message, because reading them can take longer than the deadline
    /// of a message.
    pub(super) fn read_archive(&self, policy: &Policy, stop: &Stop) -> Result<(), Error> {
        match self.files.as_ref().filter(|_| !Fetcher::is_idle(policy)) {
            Some(files) => files.read(&|| stop.check().is_err()),
            None => Ok(()),
        }
    }

    pub(super) fn troubles(&self) -> Vec<String> {
        let folder = self.folder.as_ref();
        let why = folder.map_or(self.trouble.as_deref(), |it| it.trouble());
        let of_folder = why.map(|why| format!("{why}; the run continues without the cache"));
        let of_files = self.files.as_ref().and_then(|files| files.trouble());
        of_folder.into_iter().chain(of_files).collect()
    }

    /// Reports errors of the cache on standard error. The result is the same without a cache, but a later run requests
    /// everything again.
    pub(super) fn tell_trouble(&self, volume: OutputVolume) {
        if volume >= OutputVolume::Normal {
            for trouble in self.troubles() {
                say::tell(&say::harmless_sentence(&trouble));
            }
        }
    }

    /// Opens the file of `--record`, so that a wrong path is reported before any work is done. `filter` does not call
    /// this, because a mail must not wait for the record.
    pub(super) fn open_record(
        &self,
        sources: &[impl AsRef<Path>],
        outputs: &[PathBuf],
    ) -> Result<(), Error> {
        let Some(recorder) = &self.recorder else {
            return Ok(());
        };
        report_file::check_apart("--record", recorder.path(), sources, outputs)?;
        recorder.open()
    }

    pub(super) fn tell_record(&self) -> bool {
        let trouble = self.recorder.as_ref().and_then(WarcRecorder::finish);
        if let Some(trouble) = &trouble {
            say::tell(&say::harmless_within(trouble));
        }
        trouble.is_some()
    }
}

/// The resume directory next to the output, with the journal of the run and its responses. It is removed when the
/// output is complete.
pub(super) struct Resume {
    folder: Arc<RunFolder>,
    /// Whether responses of servers are kept, and not only the journal.
    keeps_responses: bool,
    pub(super) journal: ResultJournal,
    pub(super) is_whole: Cell<bool>,
}

impl Resume {
    /// Opens the resume directory next to `output`. `command` contains everything that determines the result, except
    /// the content of the sources. `leaves` is the number of bytes that the kept responses must leave free on the disk,
    /// or `None` if the run keeps no responses. Returns `None` if nothing can be kept.
    pub(super) fn beside(
        output: &Path,
        command: &str,
        leaves: Option<u64>,
        volume: OutputVolume,
    ) -> Result<Option<Self>, Error> {
        let Some(place) = place_beside(output).filter(|_| !is_standard(output)) else {
            return Ok(None);
        };
        let opened = match (RunFolder::open(&place, leaves), place_inside(output)) {
            // The parent directory of the output is often not writable, for example `/home`, so the output directory
            // itself is tried next.
            (Err(Error::Write { .. }), Some(inside)) => RunFolder::open(&inside, leaves),
            (opened, _) => opened,
        };
        let keeps_responses = leaves.is_some();
        let folder = match opened {
            Ok(folder) => folder,
            Err(Error::Usage(why)) if keeps_responses => {
                return Err(Error::Usage(why.then(", or give --no-resume")));
            }
            // The resume directory only saves time in a later run, so an error is reported and does not stop this run.
            Err(error @ (Error::Write { .. } | Error::Usage(_))) => {
                // In some directories, such as those of `/proc`, no files can be created. Writing the output will fail
                // with a better message.
                let takes_no_files = matches!(&error, Error::Write { source, .. }
                    if matches!(source.kind(), io::ErrorKind::Unsupported | io::ErrorKind::NotFound));
                if volume >= OutputVolume::Normal && (keeps_responses || !takes_no_files) {
                    let why = say::error(&error);
                    say::tell(&format!(
                        "{why}; if this run is stopped, remove its output before the next run, which starts again from the beginning"
                    ));
                }
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        let (before, to_append) = folder.journal();
        let has_earlier_run = folder.has_earlier_run;
        let files = JournalFiles {
            before,
            to_append,
            has_earlier_run,
        };
        let journal = ResultJournal::new(command, files);
        let answers = folder.answers();
        if (answers > 0 || journal.before() > 0) && volume >= OutputVolume::Normal {
            let path = say::shown(&folder.path);
            let with = match answers {
                0 => format!("which is recorded in {path}"),
                _ => format!("with {answers} responses that it stored in {path}"),
            };
            say::tell(&format!("continuing an earlier run, {with}"));
        }
        Ok(Some(Self {
            folder: Arc::new(folder),
            keeps_responses,
            journal,
            is_whole: Cell::new(false),
        }))
    }
}

impl Drop for Resume {
    fn drop(&mut self) {
        let folder = &self.folder;
        let (answers, path) = (folder.answers(), say::shown(&folder.path));
        let is_of_use = answers > 0 || self.journal.is_any();
        if self.is_whole.get() || !is_of_use {
            let folder = Arc::clone(folder);
            exit::at_end(move || {
                let is_removed = folder.remove();
                if !is_removed {
                    let what =
                        "was not removed, because it contains files that embody did not create";
                    say::tell(&format!("{path} {what}"));
                }
                // The process ends. It closes the files of the directory faster than this function.
                std::mem::forget(folder);
            });
            return;
        }
        let told = |why| {
            format!(
                " (embody could not store further responses: {})",
                say::harmless_sentence(why)
            )
        };
        let trouble = folder.cache.trouble().map(told).unwrap_or_default();
        let kept = match answers {
            0 => format!("{path} lists the files that are complete"),
            _ => format!("{answers} responses are stored in {path}"),
        };
        say::tell(&format!(
            "run the same command again to continue; {kept}{trouble}"
        ));
    }
}

/// Creates one fetcher for all messages of a run, so that each content is retrieved only once and the limits of the
/// policy apply to all requests together.
pub(super) fn shared_fetcher(
    policy: &Arc<Policy>,
    cache: &Cache,
    stop: &Stop,
) -> Result<Arc<dyn Fetch>, Error> {
    let fetcher = cache
        .fetcher(policy, Process::Run, stop)?
        .in_flight(policy.limits.in_flight)
        .memory(Fetcher::MEMORY, None)
        .keeping_failures();
    Ok(Arc::new(fetcher))
}

#[cfg(test)]
mod tests {
    use clap::{Args as _, Command};

    use super::*;
    use crate::cli::values::{cache_max, window};

    #[test]
    fn help_of_cache_and_archive_options_states_the_real_defaults() {
        let command = ArchiveArgs::augment_args(CacheArgs::augment_args(Command::new("x")));
        let default = |name| {
            let mut options = command.get_arguments();
            let option = options.find(|it| it.get_long() == Some(name)).unwrap();
            let help = option.get_help().unwrap().to_string();
            let (_, behind) = help.split_once("[default: ").unwrap();
            behind.split_once(']').unwrap().0.to_owned()
        };
        assert_eq!(cache_max(&default("cache-max")), Ok(CACHE_MAX));
        assert_eq!(window(&default("archive-window")), Ok(WINDOW));
    }
}
