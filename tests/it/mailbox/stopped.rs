//! Processes that are stopped and continued, by job control or because the machine sleeps: on Linux, a read with a time limit
//! from a socket then ends with EINTR, even without a signal handler (signal(7), "Interruption of system calls by stop
//! signals"). The run must continue normally.
#![cfg(target_os = "linux")]

use std::fs::{self, File};
use std::io::Write as _;
use std::process::{Child, ExitStatus, Stdio};
use std::thread::{scope, sleep};
use std::time::Duration;

use crate::common::filter::{filled, mail, open, reference};
use crate::common::programs::{embody, ftp, nginx};
use rustix::process::{Pid, Signal, kill_process};

/// Stops and continues a process until it exits. Returns how often.
fn disturb(child: &mut Child) -> (ExitStatus, usize) {
    let process = Pid::from_child(child);
    for times in 0.. {
        if let Some(status) = child.try_wait().unwrap() {
            return (status, times);
        }
        // A process that has exited can be sent signals until its status is collected.
        kill_process(process, Signal::STOP).unwrap();
        sleep(Duration::from_millis(20));
        kill_process(process, Signal::CONT).unwrap();
        sleep(Duration::from_millis(30));
    }
    unreachable!("it ends, or the test does not");
}

#[test]
fn a_filter_that_is_stopped_and_continued_reads_fetches_and_writes_everything() {
    const TEST: &str = "a_filter_that_is_stopped_and_continued_reads_fetches_and_writes_everything";
    const SLOW_FTP: &str = "from pyftpdlib.handlers import ThrottledDTPHandler\n\
        class Slow(ThrottledDTPHandler):\n    write_limit = 40000\n\
        handler.dtp_handler = Slow";
    let body: Vec<u8> = (0..=255).cycle().take(80_000).collect();
    let files: &[(&str, &[u8])] = &[("slow.bin", &body)];
    let (Some(http), Some(ftp)) = (nginx(TEST, files), ftp(TEST, files, SLOW_FTP)) else {
        return;
    };
    let declared = "application/octet-stream";
    let urls = [
        format!("http://127.0.0.1:{}/slow.bin", http.port),
        format!("https://127.0.0.1:{}/slow.bin", http.secure),
        format!("ftp://127.0.0.1:{}/slow.bin", ftp.port),
    ];
    let before = mail(&urls.each_ref().map(|url| reference(url, declared)));
    let after = mail(
        &urls
            .each_ref()
            .map(|url| filled(Some(url), declared, &body)),
    );

    let output = tempfile::NamedTempFile::new().unwrap();
    let mut child = embody()
        .args(["filter", "--ca-file"])
        .arg(http.folder.path().join("ca.pem"))
        .args(open(&[http.port, http.secure, ftp.port]).split_whitespace())
        .stdin(Stdio::piped())
        .stdout(File::create(output.path()).unwrap())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let (status, times) = scope(|scope| {
        scope.spawn(move || {
            for piece in before.chunks(100) {
                stdin.write_all(piece).unwrap();
                sleep(Duration::from_millis(20));
            }
        });
        disturb(&mut child)
    });
    assert_eq!(status.code(), Some(0));
    assert!(fs::read(output.path()).unwrap() == after);
    assert!(times > 10, "it was stopped {times} times only");
}
