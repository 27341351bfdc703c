//! Objects are made durable before the mail that refers to them is written. How many of them are synced together depends on
//! the load of the machine, so it is not tested here.

use std::fs;
use std::process::Command;

use super::folders::Place;
use crate::common::programs::{program, skipped, stderr};
use crate::common::serve::{octets, with_attachment};

const MAILS: usize = 120;

/// A call of the program that is important for the promise of the store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum DiskCall {
    /// A file, a directory or the file system is synced.
    Sync,
    /// An object gets its name.
    Object,
    /// The mailbox gets its name.
    Mailbox,
}

fn of_line(line: &str) -> Option<DiskCall> {
    // strace divides a call into two lines if another thread calls the system at the same time. A sync counts when it has returned,
    // and a rename when it has begun.
    let is_begun = !line.contains("resumed>");
    let is_over = !line.contains("<unfinished");
    if line.contains("sync") {
        return is_over.then_some(DiskCall::Sync);
    }
    let is_object = line
        .split('"')
        .any(|name| name.len() == 64 && name.bytes().all(|byte| byte.is_ascii_hexdigit()));
    let call = if is_object {
        DiskCall::Object
    } else {
        DiskCall::Mailbox
    };
    (is_begun && (is_object || line.contains("out.mbox"))).then_some(call)
}

#[test]
fn objects_of_a_run_are_synced_before_the_mail() {
    let test = "objects_of_a_run_are_synced_before_the_mail";
    let trace = |arguments: &[&str]| {
        let calls = "trace=fsync,fdatasync,syncfs,renameat,renameat2,rename,link,linkat";
        let mut command = Command::new("strace");
        command
            .args(["-f", "-qq", "-e", calls, "-o"])
            .args(arguments);
        command
    };
    let is_traced = program("strace").is_some()
        && trace(&["/dev/null", "true"])
            .status()
            .is_ok_and(|status| status.success());
    if !is_traced {
        return skipped(test, "strace");
    }
    let place = Place::new();
    let mut mbox = Vec::new();
    for number in 0..MAILS {
        let crlf = with_attachment(number, &octets(20_000, number));
        let mail = String::from_utf8(crlf).unwrap().replace("\r\n", "\n");
        mbox.extend(format!("From a@example.org Sat Jan  3 01:05:34 1996\n{mail}\n").bytes());
    }
    fs::write(place.path("in.mbox"), mbox).unwrap();
    let output = trace(&[
        "log",
        env!("CARGO_BIN_EXE_embody"),
        "detach",
        "in.mbox",
        "--store",
        "store",
        "--larger-than",
        "1k",
        "--output",
        "out.mbox",
    ])
    .current_dir(place.path(""))
    .output()
    .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let log = fs::read_to_string(place.path("log")).unwrap();
    let calls: Vec<DiskCall> = log.lines().filter_map(of_line).collect();
    let count = |call| calls.iter().filter(|it| **it == call).count();
    // The list of the users of the store has an entry with such a name, too.
    assert_eq!(count(DiskCall::Object), MAILS + 1, "{log}");
    assert_eq!(count(DiskCall::Mailbox), 1, "{log}");
    let first = |call| calls.iter().position(|it| *it == call).unwrap();
    let last = |call| calls.iter().rposition(|it| *it == call).unwrap();
    assert!(first(DiskCall::Sync) < first(DiskCall::Object), "{calls:?}");
    let between = &calls[last(DiskCall::Object)..first(DiskCall::Mailbox)];
    assert!(between.contains(&DiskCall::Sync), "{calls:?}");
}
