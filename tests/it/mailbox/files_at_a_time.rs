//! Messages that are files of a directory are converted several at a time, and results keep the order of the files.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, UNIX_EPOCH};

use super::verdicts::gzipped;
use crate::common::programs::{embody, embody_in, stderr};
use crate::common::raw::{Raw, ok};

const COUNT: usize = 12;

/// Time in which the server answers a request while it is slow.
const SLOW: Duration = Duration::from_millis(500);

fn server(is_slow: &Arc<AtomicBool>) -> Raw {
    let is_slow = Arc::clone(is_slow);
    Raw::http(move |_, stream| {
        use std::io::Write as _;
        if is_slow.load(Ordering::SeqCst) {
            std::thread::sleep(SLOW);
        }
        let _ = stream.write_all(&ok("text/plain", b"what was fetched\n"));
    })
}

fn mail(number: usize, url: &str) -> String {
    format!(
        "From: a@example.org\nSubject: {number}\nMIME-Version: 1.0\nContent-Type: message/external-body; access-type=URL;\n URL=\"{url}\"\n\nContent-Type: text/plain\n\n"
    )
}

/// Creates messages in files with different forms, each with a reference to `server`.
fn make(folder: &Path, server: &Raw) {
    fs::create_dir(folder).unwrap();
    for number in 0..COUNT {
        let content = mail(number, &server.url(&format!("/{number}")));
        let (name, bytes) = match number % 4 {
            0 => ("eml.gz", gzipped(content.as_bytes())),
            1 => ("emlx", {
                let count = format!("{:<10}\n", content.len());
                [count.as_bytes(), content.as_bytes()].concat()
            }),
            _ => ("eml", content.into_bytes()),
        };
        let path = folder.join(format!("{number:02}.{name}"));
        fs::write(&path, bytes).unwrap();
        // A mailbox of another format contains the time of the file.
        let time = UNIX_EPOCH + Duration::from_secs(800_000_000);
        File::options()
            .append(true)
            .open(path)
            .unwrap()
            .set_modified(time)
            .unwrap();
    }
}

fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        if folder.is_file() {
            files.insert(String::new(), fs::read(&folder).unwrap());
            continue;
        }
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(&folder).unwrap_or(&path);
                files.insert(name.display().to_string(), fs::read(&path).unwrap());
            }
        }
    }
    files
}

fn fetching(place: &Path, server: &Raw, arguments: &[&str], one_at_a_time: bool) -> Output {
    let url = server.url("");
    let port = url
        .rsplit(':')
        .next()
        .unwrap()
        .trim_end_matches('/')
        .to_owned();
    let mut command: Command = embody();
    command
        .current_dir(place)
        .args(arguments)
        .args([
            "--fetch",
            "http",
            "--allow-net",
            "127.0.0.0/8",
            "--allow-port",
        ])
        .arg(port);
    if one_at_a_time && arguments.first() != Some(&"inspect") {
        command.args(["--jobs", "1", "--max-in-flight", "1"]);
    }
    command.output().unwrap()
}

#[test]
fn messages_in_files_wait_for_servers_at_the_same_time_and_keep_their_order() {
    let is_slow = Arc::new(AtomicBool::new(true));
    let server = server(&is_slow);
    for (arguments, result) in [
        (
            &["convert", "mail", "--report", "-", "--output", "to"][..],
            "to",
        ),
        (
            &[
                "convert",
                "mail",
                "--output-format",
                "mbox",
                "--output",
                "to.mbox",
            ],
            "to.mbox",
        ),
        (
            &[
                "convert",
                "mail",
                "--output-format",
                "maildir",
                "--output",
                "to",
            ],
            "to",
        ),
        (
            &[
                "convert",
                "mail",
                "--output-format",
                "thunderbird",
                "--output",
                "to",
            ],
            "to",
        ),
        (&["convert", "--in-place", "--report", "-", "mail"], "mail"),
        (&["inspect", "--probe", "--json", "mail"], "mail"),
        (
            &["convert", "mail", "--dry-run", "--probe", "--output", "to"],
            "mail",
        ),
    ] {
        let mut results = Vec::new();
        for one_at_a_time in [false, true] {
            // Only the result of the run with one message at a time matters, so the server need not be slow.
            is_slow.store(!one_at_a_time, Ordering::SeqCst);
            let temporary = tempfile::tempdir().unwrap();
            let place = temporary.path();
            make(&place.join("mail"), &server);
            let start = Instant::now();
            let done = fetching(place, &server, arguments, one_at_a_time);
            let time = start.elapsed();
            assert!(done.status.success(), "{arguments:?}: {}", stderr(&done));
            // One after the other, the answers of the slow server would take twice as long.
            assert!(
                one_at_a_time || time < SLOW * (COUNT as u32 / 2),
                "{arguments:?}: {time:?}"
            );
            let rows = |text: &[u8]| {
                let text = String::from_utf8_lossy(text).into_owned();
                let rows: Vec<String> = text
                    .lines()
                    .filter_map(|line| line.split_once("\"source\":"))
                    .map(|(_, rest)| rest.split(',').next().unwrap_or_default().to_owned())
                    .collect();
                rows
            };
            results.push((
                files(&place.join(result)),
                rows(&done.stdout),
                rows(&done.stderr),
            ));
        }
        assert!(results[0] == results[1], "{arguments:?}");
    }
}

#[test]
fn damaged_message_in_a_file_is_named_in_its_place_and_the_others_are_converted() {
    for arguments in [
        &["convert", "mail", "--embed", "data", "--output", "to"][..],
        &[
            "convert",
            "mail",
            "--output-format",
            "mbox",
            "--output",
            "to.mbox",
        ],
        &["convert", "--in-place", "--embed", "data", "mail"],
        &["inspect", "mail"],
    ] {
        let mut results = Vec::new();
        for jobs in ["4", "1"] {
            let temporary = tempfile::tempdir().unwrap();
            let place = temporary.path();
            let folder = place.join("mail");
            fs::create_dir(&folder).unwrap();
            for number in 0..40 {
                let content = format!("From: a@example.org\nSubject: {number}\n\nhello {number}\n");
                let (name, content) = match number {
                    7 | 19 => {
                        let mut cut = gzipped(content.repeat(50).as_bytes());
                        cut.truncate(cut.len() - 15);
                        (format!("{number:02}.eml.gz"), cut)
                    }
                    23 => (
                        format!("{number:02}.emlx"),
                        [b"99999\n", content.as_bytes()].concat(),
                    ),
                    _ => (format!("{number:02}.eml"), content.into_bytes()),
                };
                fs::write(folder.join(name), content).unwrap();
            }
            let arguments = match arguments[0] {
                "inspect" => arguments.to_vec(),
                _ => [arguments, &["--jobs", jobs]].concat(),
            };
            let done = embody_in(place, &arguments);
            assert_eq!(done.status.code(), Some(1), "{}", stderr(&done));
            let named: Vec<String> = stderr(&done)
                .lines()
                .filter(|line| line.contains("mail/"))
                .map(str::to_owned)
                .collect();
            assert_eq!(named.len(), 3, "{named:?}");
            assert!(
                named.is_sorted_by_key(|line| line[line.find("mail/").unwrap()..][..7].to_owned())
            );
            let copy = place.join("to");
            let result = if copy.exists() { copy } else { folder };
            results.push((named, files(&result)));
        }
        assert!(results[0] == results[1], "{arguments:?}");
    }
}
