//! Waits for processes that a test started, with a time limit.
// Each test program uses only some of these functions.
#![allow(dead_code)]

use std::io::Read;
use std::process::{Child, ExitStatus, Output};
use std::sync::mpsc::{Receiver, channel};
use std::thread::{sleep, spawn};
use std::time::{Duration, Instant};

/// Time limit for a process. No process of a test takes this long, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(600);

/// Waits for a process. If it exceeds the time limit, it is killed, and the test fails.
#[track_caller]
pub fn ended(child: &mut Child) -> ExitStatus {
    let status = ended_within(PATIENCE, child);
    status.unwrap_or_else(|| panic!("a process did not end within {PATIENCE:?}, and was killed"))
}

/// Waits for a process. If it exceeds `patience`, it is killed, and the result is `None`.
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

/// Closes the standard input of a process, reads its output, and waits for it.
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
        // If the time limit was exceeded, the receiver no longer exists.
        let _ = say.send(text);
    });
    said
}
