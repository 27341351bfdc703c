//! Runs the program of `--resolver`, with which a user retrieves files that need a sign-in.
//!
//! The program is started without a shell. It reads one line of JSON from its standard input: `url`, and `name` and `provider`
//! as the mail gives them. If it exits with status 0, its standard output is the file. It has a temporary working directory,
//! which is removed afterwards. When the time limit ends, the program and all processes that it started are killed.

use std::io::{Read, Write as _};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use super::super::allowance::RequestAllowance;
use super::super::request::just_now;
use crate::detail::excerpt;
use crate::engine::Content;
use crate::engine::policy::Policy;
use crate::engine::report::{Provenance, Reason, Refusal};
use crate::platform;

/// Maximum number of bytes read from standard error of the program, for the error message.
const LONGEST_WORDS: u64 = 16 << 10;
const SHOWN: usize = 200;

/// Interval between checks whether the program has exited. It may continue to run after it closed its output.
const INTERVAL: Duration = Duration::from_millis(5);

/// Exit status for a temporary failure (EX_TEMPFAIL in sysexits.h).
const TEMPORARY: i32 = 75;

pub(super) fn ask(
    policy: &Policy,
    (provider, name, url): (&str, Option<&str>, &str),
    allowance: RequestAllowance,
) -> Result<Content, Refusal> {
    let begun = Instant::now();
    let no_folder = |error| {
        failed(&format!(
            "cannot create a working directory for the program: {error}"
        ))
    };
    let folder = tempfile::TempDir::with_prefix("embody-resolver-").map_err(no_folder)?;
    let (program, arguments) = match policy.resolver.as_slice() {
        [program, arguments @ ..] => (program, arguments),
        [] => return Err(failed("the command names no program")),
    };
    platform::keep_exit_statuses();
    let mut command = Command::new(program);
    command
        .args(arguments)
        .current_dir(folder.path())
        .env("TMPDIR", folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let not_started = |error| failed(&format!("{program} could not be started: {error}"));
    let mut running = RunningResolver {
        child: command.spawn().map_err(not_started)?,
        is_waited_for: false,
    };
    let question = serde_json::json!({"url": url, "name": name, "provider": provider});
    let asked = format!("{question}\n");
    if let Some(mut input) = running.child.stdin.take() {
        // Writing fails if the program closed its input without reading it, which is not an error.
        thread::spawn(move || input.write_all(asked.as_bytes()));
    }
    let most = policy.limits.body;
    let output = read(running.child.stdout.take(), most.saturating_add(1));
    let errors = read(running.child.stderr.take(), LONGEST_WORDS);
    let body = match output.recv_timeout(allowance.remaining()?) {
        Ok(body) => body,
        Err(RecvTimeoutError::Timeout) => return Err(allowance.overrun()),
        Err(RecvTimeoutError::Disconnected) => {
            return Err(failed("cannot read the output of the program"));
        }
    };
    policy.judge_size(body.len() as u64)?;
    let status = running.ended(allowance)?;
    if !status.success() {
        let words = errors.recv_timeout(INTERVAL * 20).unwrap_or_default();
        let said = last_line(&words)
            .or_else(|| last_line(&body))
            .unwrap_or_else(|| format!("the program ended with {status} and gave no reason"));
        return Err(match status.code() {
            Some(TEMPORARY) => Refusal::temporary(Reason::ResolverFailed, failed(&said).detail),
            _ => failed(&said),
        });
    }
    if body.is_empty() {
        return Err(failed("the program wrote no bytes to stdout"));
    }
    Ok(just_now(url.to_owned(), Provenance::Resolver, body, begun))
}

fn failed(why: &str) -> Refusal {
    Refusal::lasting(
        Reason::ResolverFailed,
        format!("the resolver program failed: {why}"),
    )
}

/// Reads a pipe in a thread of its own, because a read blocks until the program closes the pipe and has no time limit.
fn read(pipe: Option<impl Read + Send + 'static>, most: u64) -> Receiver<Vec<u8>> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        let mut octets = Vec::new();
        if let Some(pipe) = pipe
            && pipe.take(most).read_to_end(&mut octets).is_ok()
        {
            let _ = sender.send(octets);
        }
    });
    receiver
}

/// Returns the last line that is not blank, which usually contains the error message of a program.
fn last_line(text: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(text);
    let line = text.lines().rev().find(|line| !line.trim().is_empty())?;
    let shown = line.trim().replace(char::is_control, "");
    Some(excerpt(&shown, SHOWN).into_owned())
}

struct RunningResolver {
    child: Child,
    is_waited_for: bool,
}

impl RunningResolver {
    /// Waits for the program to exit, then kills the processes that it started and that still run.
    fn ended(&mut self, allowance: RequestAllowance) -> Result<ExitStatus, Refusal> {
        let lost = |error: std::io::Error| failed(&format!("cannot wait for the program: {error}"));
        while !self.is_over().map_err(lost)? {
            thread::sleep(allowance.remaining()?.min(INTERVAL));
        }
        self.end().map_err(lost)
    }

    /// Returns whether the program has exited, without collecting its status. Until the status is collected, the system does
    /// not reuse the process id, so [`RunningResolver::end`] cannot kill the process group of an unrelated program.
    #[cfg(unix)]
    fn is_over(&mut self) -> std::io::Result<bool> {
        use rustix::process::{WaitId, WaitIdOptions, waitid};
        let how = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        match self.group() {
            Some(group) => Ok(waitid(WaitId::Pid(group), how)?.is_some()),
            None => Ok(true),
        }
    }

    #[cfg(not(unix))]
    fn is_over(&mut self) -> std::io::Result<bool> {
        Ok(self.child.try_wait()?.is_some())
    }

    #[cfg(unix)]
    fn group(&self) -> Option<rustix::process::Pid> {
        rustix::process::Pid::from_raw(self.child.id().cast_signed())
    }

    fn end(&mut self) -> std::io::Result<ExitStatus> {
        if !std::mem::replace(&mut self.is_waited_for, true) {
            #[cfg(unix)]
            if let Some(group) = self.group() {
                // The program was started in a process group of its own, so only its own processes are killed.
                let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
            }
            // For a program that has already exited, this has no effect, and `wait` returns its real status.
            let _ = self.child.kill();
        }
        self.child.wait()
    }
}

impl Drop for RunningResolver {
    fn drop(&mut self) {
        let _ = self.end();
    }
}
