//! `embody milter`: processes mail as `filter` does, in one process for all mail of a server (docs/milter.md).

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use listenfd::ListenFd;
use sd_notify::{NotifyState, notify};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::args::{MilterArgs, OutputVolume, ProgressOption};
use super::cache::{Cache, Process};
use super::copies::CopyMailboxes;
use super::exit::{ProgramStatus, limits_on_files_are_failed_writes};
use super::origin::RunOrigin;
use super::picture_watch::{DELIVERY_NOTICE, PictureWatch};
use super::report_file::ReportLog;
use super::{say, wording};
use crate::engine::Mode;
use crate::engine::policy::Policy;
use crate::engine::report::{Report, Row};
use crate::error::Error;
use crate::expand::Expander;
use crate::fetch::Fetcher;
use crate::mailbox::{ReadOptions, Stop};
use crate::milter::{
    Address, Counters, FilterVerdict, HandoverResult, IncomingMail, MilterListener, MilterServer,
    MilterWork, ServerLog, bind_metrics,
};

/// Time limit for finishing messages after a stop signal, in addition to the time for retrievals.
const DRAINING: Duration = Duration::from_secs(15);

/// Default of `--connections`. Postfix has 100 processes, and each of them can open one connection.
const CONNECTIONS: usize = 128;

const SOCKET_MODE: u32 = 0o660;

const AGE: Duration = Duration::from_secs(300);

pub(super) type Failure = Box<dyn std::error::Error>;

pub(super) fn run(
    args: &MilterArgs,
    reread: &dyn Fn() -> Result<MilterArgs, String>,
) -> Result<ProgramStatus, Failure> {
    // Inherited sockets are identified by their file descriptor numbers, so they are taken before any other file is
    // opened.
    let mut listeners = handed_over()?;
    limits_on_files_are_failed_writes();
    let counters = Arc::new(Counters::default());
    let (work, mut log) = work_of(args, &counters)?;
    // Signal handlers are set before the first connection is accepted, so that no signal ends the process without
    // finishing its messages.
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP]).map_err(cannot("watch signals"))?;
    for address in &args.listen {
        let mode = args.socket_mode.unwrap_or(SOCKET_MODE);
        let bound = MilterListener::bind(address, mode, args.socket_group);
        listeners.push(bound.map_err(cannot(&format!("listen on {address}")))?);
    }
    if listeners.is_empty() {
        let what = "no address to listen on: add --listen unix:/path or --listen inet:host:port";
        return Err(Error::Usage(what.into()).into());
    }
    let bound = |at: &Address| bind_metrics(at).map_err(cannot(&format!("listen on {at}")));
    let metrics = args.metrics.as_ref().map(bound).transpose()?;
    let started = started(args, listeners.len());
    let server = Arc::new(MilterServer::new(work, Arc::clone(&counters)).map_err(cannot("start"))?);
    server.start(listeners, metrics).map_err(cannot("start"))?;
    let _ = notify(&[NotifyState::Ready]);
    log.event(&started);
    let mut signals = signals.forever();
    let stopped_by = loop {
        match signals.next() {
            Some(SIGHUP) => {}
            Some(SIGTERM) => break "SIGTERM",
            _ => break "SIGINT",
        }
        if let Ok(now) = NotifyState::monotonic_usec_now() {
            let _ = notify(&[NotifyState::Reloading, now]);
        }
        let again =
            reread().and_then(|args| work_of(&args, &counters).map_err(|error| say::error(&error)));
        match again {
            Ok((work, new)) => {
                server.replace(work);
                log = new;
                log.event("configuration reloaded");
            }
            Err(problem) => say::tell(&format!(
                "reload failed; keeping the previous configuration: {problem}"
            )),
        }
        let _ = notify(&[NotifyState::Ready]);
    };
    let _ = notify(&[NotifyState::Stopping]);
    for signal in [SIGTERM, SIGINT] {
        let _ = signal_hook::flag::register_conditional_default(signal, Arc::new(true.into()));
    }
    let record = log.cache.clone();
    let open = server.drain(log.policy.limits.deadline.saturating_add(DRAINING));
    match open {
        0 => log.event(&format!("stopped by {stopped_by}")),
        open => say::tell(&format!(
            "stopped by {stopped_by}; {open} connections were still open"
        )),
    }
    record.tell_record();
    Ok(ProgramStatus::Success)
}

fn started(args: &MilterArgs, listeners: usize) -> String {
    let mut places: Vec<String> = args.listen.iter().map(Address::to_string).collect();
    match listeners.saturating_sub(places.len()) {
        0 => {}
        1 => places.push("an inherited socket (systemd socket activation)".to_owned()),
        more => places.push(format!(
            "{more} inherited sockets (systemd socket activation)"
        )),
    }
    let metrics = args
        .metrics
        .as_ref()
        .map(|address| format!("; metrics on {address}"));
    format!(
        "version {} listens on {}{}",
        env!("CARGO_PKG_VERSION"),
        places.join(", "),
        metrics.unwrap_or_default()
    )
}

fn cannot(what: &str) -> impl FnOnce(io::Error) -> Failure {
    move |source| {
        // The directory of a Unix socket is missing.
        let advice = if source.kind() == io::ErrorKind::NotFound {
            "; create its directory first"
        } else {
            ""
        };
        io::Error::new(source.kind(), format!("cannot {what}: {source}{advice}")).into()
    }
}

fn handed_over() -> Result<Vec<MilterListener>, Failure> {
    let mut listeners = Vec::new();
    let mut handed = ListenFd::from_env();
    for index in 0..handed.len() {
        if let Ok(Some(listener)) = handed.take_unix_listener(index) {
            listeners.push(listener.into());
            continue;
        }
        let listener = handed
            .take_tcp_listener(index)
            .map_err(cannot("take the sockets of LISTEN_FDS"))?;
        listeners.extend(listener.map(MilterListener::from));
    }
    Ok(listeners)
}

fn work_of(args: &MilterArgs, counters: &Arc<Counters>) -> Result<(MilterWork, Arc<Log>), Error> {
    let common = &args.common;
    let cache = Cache::of(&common.policy, Mode::Run, None)?;
    let policy = args.policy()?;
    let options = ReadOptions::default();
    let copies = CopyMailboxes::read(&policy, &options, ProgressOption::Never, &Stop::default())?;
    let expander = Expander::builder(policy)
        .fetch_with(|policy| {
            // All messages share one fetcher, so that connections stay open and responses stay in memory for some time.
            let mut fetcher = cache.fetcher(policy, Process::Service, &Stop::default())?;
            let counters = Arc::clone(counters);
            fetcher.observer = Some(Arc::new(move |answer| counters.asked(answer)));
            let fetcher = fetcher
                .in_flight(policy.limits.in_flight)
                .memory(Fetcher::MEMORY, Some(AGE));
            Ok(copies.before(policy, fetcher))
        })?
        .mark(common.mark)
        .build()?;
    cache.read_archive(expander.policy(), &Stop::default())?;
    let report = common.saying.report.clone();
    let log = Arc::new(Log {
        volume: common.saying.volume(),
        policy: expander.policy().clone(),
        pictures: PictureWatch::of(expander.policy()),
        cache,
        is_cache_told: AtomicBool::new(false),
        is_record_told: AtomicBool::new(false),
        report: report.map(ReportLog::new),
    });
    let work = MilterWork {
        expander,
        journal: log.clone(),
        connections: args.max_connections.unwrap_or(CONNECTIONS),
    };
    Ok((work, log))
}

struct Log {
    volume: OutputVolume,
    policy: Policy,
    pictures: PictureWatch,
    cache: Cache,
    is_cache_told: AtomicBool,
    is_record_told: AtomicBool,
    /// The report file, which is opened for the first row. After SIGHUP it is opened again, so that logrotate can move
    /// the old file.
    report: Option<ReportLog>,
}

impl Log {
    fn event(&self, line: &str) {
        if self.volume >= OutputVolume::Normal {
            say::tell(line);
        }
    }

    fn tell(&self, queue_id: &str, line: &str) {
        match queue_id {
            "" => say::tell(line),
            queue_id => say::tell(&format!("{queue_id}: {line}")),
        }
    }

    fn write(&self, queue_id: &str, origin: &RunOrigin, rows: &[Row]) {
        let Some(report) = &self.report else {
            return;
        };
        if let Err(why) = report.write(origin, rows, Some(&self.policy)) {
            self.tell(queue_id, &why);
        }
    }
}

impl ServerLog for Log {
    fn processed(
        &self,
        message: &IncomingMail,
        verdict: &FilterVerdict,
        report: &Report,
        elapsed: Duration,
    ) {
        let queue_id = message.queue_id.as_str();
        let is_named = self.report.is_some() || self.cache.recorder.is_some();
        let origin = is_named.then(|| RunOrigin::new(queue_id, 1, &message.bytes));
        if let Some(origin) = &origin {
            self.write(queue_id, origin, &report.rows);
        }
        if !self.cache.troubles().is_empty() && !self.is_cache_told.swap(true, Ordering::Relaxed) {
            self.cache.tell_trouble(self.volume);
        }
        if let (Some(recorder), Some(origin)) = (&self.cache.recorder, &origin) {
            let limits = self.policy.limits.scan();
            recorder.mail(&origin.mailed(&message.bytes), &report.rows, &limits);
            if let Some(trouble) = recorder.trouble()
                && !self.is_record_told.swap(true, Ordering::Relaxed)
            {
                say::tell(&say::harmless_sentence(&trouble));
            }
        }
        let tell = |line: &str| self.tell(queue_id, line);
        if self.volume >= OutputVolume::Normal && self.pictures.meets(&self.policy, &message.bytes)
        {
            tell(DELIVERY_NOTICE);
        }
        match verdict {
            // An error is always logged, because `--quiet` hides only the normal outcomes.
            FilterVerdict::Unchanged(HandoverResult::Trouble(why)) => tell(&format!(
                "the message was not changed: {}",
                say::harmless_sentence(why)
            )),
            FilterVerdict::Unchanged(HandoverResult::TooLarge(why))
                if self.volume >= OutputVolume::Normal =>
            {
                tell(&format!(
                    "the message was not changed: {}",
                    wording::detail(why)
                ));
            }
            FilterVerdict::Later(why) if self.volume >= OutputVolume::Normal => {
                let why = wording::detail(why);
                tell(&format!(
                    "the message was deferred (temporary failure), so the sender delivers it again later: {}",
                    say::harmless_sentence(&why)
                ));
            }
            FilterVerdict::Unchanged(_) | FilterVerdict::Changed(..) | FilterVerdict::Later(_) => {}
        }
        for line in say::lines(&report.rows, &self.policy, self.volume) {
            tell(&line);
        }
        let has_something = !report.rows.is_empty() && self.volume >= OutputVolume::Normal;
        if has_something || self.volume >= OutputVolume::Verbose {
            let sum = say::sum(report);
            tell(&format!("{sum}, {} ms", elapsed.as_millis()));
        }
    }

    fn says(&self, line: &str) {
        say::tell(line);
    }
}
