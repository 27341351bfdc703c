//! Waiting for processes that a test started, never for ever.
// Each of the test programs uses some of it.
#![allow(dead_code)]

use std::io::Read;
use std::process::{Child, ExitStatus, Output};
use std::sync::mpsc::{Receiver, channel};
use std::thread::{sleep, spawn};
use std::time::{Duration, Instant};

/// What no process of a test takes, however busy the machine is.
const PATIENCE: Duration = Duration::from_secs(600);

/// Waits for a process; one that does not end is killed, and the test fails.
#[track_caller]
pub fn ended(child: &mut Child) -> ExitStatus {
    let status = ended_within(PATIENCE, child);
    status.unwrap_or_else(|| panic!("a process did not end within {PATIENCE:?}, and was killed"))
}

/// The same without failing: `None` for a process that was killed.
pub fn ended_within(patience: Duration, child: &mut Child) -> Option<ExitStatus> {
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return Some(status);
        }
        if begun.elapsed() > patience {
            let _ = child.kill();
            let _ = child.wait();
            return None;
        }
        sleep(Duration::from_millis(1));
    }
}

/// Closes a process's standard input, takes all it says and waits for it.
#[track_caller]
pub fn finished(mut child: Child) -> Output {
    drop(child.stdin.take());
    let stdout = child.stdout.take().map(read);
    let stderr = child.stderr.take().map(read);
    let said = |stream: Option<Receiver<Vec<u8>>>| match stream {
        Some(stream) => stream.recv_timeout(PATIENCE),
        None => Ok(Vec::new()),
    };
    let (Ok(stdout), Ok(stderr)) = (said(stdout), said(stderr)) else {
        let _ = child.kill();
        panic!("a process did not close what it writes to within {PATIENCE:?}, and was killed");
    };
    Output {
        status: ended(&mut child),
        stdout,
        stderr,
    }
}

fn read(mut stream: impl Read + Send + 'static) -> Receiver<Vec<u8>> {
    let (say, said) = channel();
    spawn(move || {
        let mut text = Vec::new();
        stream.read_to_end(&mut text).unwrap();
        // Nobody hears it who has lost patience.
        let _ = say.send(text);
    });
    said
}
