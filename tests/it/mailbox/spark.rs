//! samples/spark with PySpark on this machine: its parts together are the output of `embody convert`.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Arc, Mutex};

use crate::common::moto::moto;
use crate::common::programs::{embody, program};

/// Returns whether Spark is installed. It is too large for most machines: `.ci/peers` installs it, and sets
/// EMBODY_REQUIRE_SPARK.
pub(super) fn is_there(test: &str) -> bool {
    let missing = ["spark-submit", "java", "python3"]
        .into_iter()
        .find(|name| program(name).is_none());
    if let Some(name) = missing {
        let may_miss = std::env::var_os("EMBODY_REQUIRE_SPARK").is_none();
        assert!(may_miss, "{test}: there is no {name}");
        println!("{test}: skipped, there is no {name}");
    }
    missing.is_none()
}

/// Runs the job in `folder`, where `program` is embody.
fn job(folder: &Path, program: &Path, arguments: &[&str]) -> Output {
    submitted(folder, program, arguments).output().unwrap()
}

fn submitted(folder: &Path, program: &Path, arguments: &[&str]) -> Command {
    let told = [
        "--conf",
        "spark.ui.enabled=false",
        "--conf",
        "spark.ui.showConsoleProgress=false",
    ];
    let mut command = Command::new("spark-submit");
    command
        .args(["--master", "local[2,4]"])
        .args(told)
        .arg(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/samples/spark/convert.py"
        ))
        .args(["--output", "out", "--cache", "cache", "--embody"])
        .arg(program)
        .args(arguments)
        .current_dir(folder)
        .env("SPARK_LOCAL_IP", "127.0.0.1")
        .env("HOME", folder);
    command
}

/// Returns the parts of a source, joined in the order of their names, and their number.
fn parts(folder: &Path, source: &Path) -> (Vec<u8>, usize) {
    let beneath = source.strip_prefix("/").unwrap();
    let entries = fs::read_dir(folder.join("out/parts").join(beneath)).unwrap();
    let mut parts: Vec<PathBuf> = entries.map(|part| part.unwrap().path()).collect();
    parts.sort();
    let all: Vec<Vec<u8>> = parts.iter().map(|part| fs::read(part).unwrap()).collect();
    (all.concat(), parts.len())
}

fn whole(folder: &Path, source: &Path, options: &[&str]) -> Vec<u8> {
    let output = embody()
        .args(["convert", "--quiet", "--output", "whole"])
        .args(options)
        .arg(source)
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    fs::read(folder.join("whole")).unwrap()
}

/// Returns a directory whose path contains no symbolic link, because the parts are named by the paths of the sources.
fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().canonicalize().unwrap();
    (folder, path)
}

fn reference(number: usize, url: &str, media_type: &str) -> String {
    format!(
        "From a@b Thu Jan  1 00:00:00 1970\nMessage-ID: <{number}@x>\nMIME-Version: 1.0\nContent-Type: \
         message/external-body; access-type=URL;\n URL=\"{url}\"\n\nContent-Type: {media_type}\n\n\n"
    )
}

type Asked = Arc<Mutex<BTreeMap<(String, String), usize>>>;

/// Starts a server on all addresses of this machine. Returns its port, and the number of requests for each URL.
fn server() -> (u16, Asked) {
    let listener = TcpListener::bind("0.0.0.0:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let asked = Asked::default();
    let counting = Arc::clone(&asked);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let counting = Arc::clone(&counting);
            std::thread::spawn(move || answer(stream, &counting));
        }
    });
    (port, asked)
}

/// Handles the requests of one connection.
fn answer(mut stream: TcpStream, asked: &Asked) {
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
    while let Some(Ok(first)) = lines.next() {
        let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
        let mut host = String::new();
        for line in lines.by_ref().map_while(Result::ok) {
            match line.split_once(": ") {
                Some((name, value)) if name.eq_ignore_ascii_case("host") => host = value.to_owned(),
                _ if line.is_empty() => break,
                _ => {}
            }
        }
        // The message at /message refers to another URL.
        let (media_type, body) = match path.strip_prefix("/message/") {
            Some(name) => (
                "message/rfc822",
                format!(
                    "Subject: {name}\nMIME-Version: 1.0\nContent-Type: message/external-body; access-type=URL;\n \
                     URL=\"http://{host}/inner/{name}\"\n\nContent-Type: text/plain\n\n\n"
                ),
            ),
            None => ("text/plain", format!("{host} has {path}\nFrom here on\n")),
        };
        // A source that is gone, and an archive with captures of two years.
        let (status, more) = match path.get(..9) {
            Some("/gone/pic") => ("404 Not Found", ""),
            Some("/web/2003") => (
                "200 OK",
                "Memento-Datetime: Thu, 01 May 2003 10:00:00 GMT\r\n",
            ),
            Some("/web/2010") => (
                "200 OK",
                "Memento-Datetime: Tue, 01 Jun 2010 10:00:00 GMT\r\n",
            ),
            _ => ("200 OK", ""),
        };
        *asked.lock().unwrap().entry((host, path)).or_default() += 1;
        let head = format!(
            "HTTP/1.1 {status}\r\n{more}Content-Type: {media_type}\r\nCache-Control: max-age=3600\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        if stream.write_all((head + &body).as_bytes()).is_err() {
            break;
        }
    }
}

/// Returns the options that allow requests to the server at this port.
fn fetching(port: &str) -> [&str; 6] {
    [
        "--fetch",
        "http",
        "--allow-net",
        "127.0.0.0/8",
        "--allow-port",
        port,
    ]
}

#[test]
fn a_hundred_hosts_are_asked_once_for_each_of_a_thousand_urls() {
    const TEST: &str = "a_hundred_hosts_are_asked_once_for_each_of_a_thousand_urls";
    if !is_there(TEST) {
        return;
    }
    let (port, asked) = server();
    let (_folder, folder) = folder();
    let source = folder.join("box");
    // Each URL occurs in three messages that are far apart, and therefore in several ranges.
    let all: String = (0..3000)
        .map(|number| {
            let url = number % 1000;
            let (kind, media_type) = match url % 50 {
                0 => ("message", "message/rfc822"),
                _ => ("text", "text/plain"),
            };
            let url = format!(
                "http://127.0.0.{}:{port}/{kind}/{}",
                1 + url % 100,
                url / 100
            );
            reference(number, &url, media_type)
        })
        .collect();
    fs::write(&source, &all).unwrap();
    let port = port.to_string();
    let options = fetching(&port);
    let name = source.to_str().unwrap();
    let told = [&["--size", "100k", name, "--"], &options[..]].concat();
    let output = job(&folder, Path::new(env!("CARGO_BIN_EXE_embody")), &told);
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    // The references inside retrieved messages are retrieved, too.
    assert!(said.contains("requested 1000 URLs\n"), "{said}");

    let times = asked.lock().unwrap().clone();
    let hosts: std::collections::BTreeSet<&String> = times.keys().map(|(host, _)| host).collect();
    // A thousand URLs in the mail, and those in 20 retrieved messages.
    assert_eq!((hosts.len(), times.len()), (100, 1020));
    assert!(times.values().all(|count| *count == 1), "{times:?}");

    let (joined, count) = parts(&folder, &source);
    assert!(count > 5, "{count} parts");
    assert!(joined == whole(&folder, &source, &options));
    assert!(!String::from_utf8_lossy(&joined).contains("external-body"));
    assert_eq!(fs::read(folder.join("out/failed.jsonl")).unwrap(), b"");
    // One row for each reference, including those inside messages.
    let script = "import sys\nfrom pyspark.sql import SparkSession\nspark = SparkSession.builder.getOrCreate()\n\
        rows = spark.read.parquet('out/report.parquet')\n\
        print('rows', rows.count(), rows.where(\"outcome = 'expanded'\").count(), \
        rows.select('message_id').distinct().count())\n";
    fs::write(folder.join("count.py"), script).unwrap();
    let output = Command::new("spark-submit")
        .args([
            "--master",
            "local[1]",
            "--conf",
            "spark.ui.enabled=false",
            "count.py",
        ])
        .current_dir(&folder)
        .env("SPARK_LOCAL_IP", "127.0.0.1")
        .output()
        .unwrap();
    let counted = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(counted.contains("rows 3060 3060 3000"), "{counted}");
}

#[test]
fn a_killed_worker_costs_nothing_and_failed_ranges_are_run_again_alone() {
    const TEST: &str = "a_killed_worker_costs_nothing_and_failed_ranges_are_run_again_alone";
    if !is_there(TEST) {
        return;
    }
    let (_folder, folder) = folder();
    let source = folder.join("box");
    let all: String = (0..600)
        .map(|number| reference(number, &format!("data:text/plain,{number}"), "text/plain"))
        .collect();
    fs::write(&source, &all).unwrap();
    let program = folder.join("program");
    // In some ranges, the worker is killed once, or embody is killed once. One range fails as long as `broken` exists.
    let script = format!(
        "#!/bin/sh\ncd {}\ncase $* in\n*--offline*)\n\
         case $* in *'--range 0-'*) [ ! -e broken ] || {{ echo 'no such luck' >&2; exit 1; }};; esac\n\
         if mkdir killed 2>/dev/null; then kill -9 $PPID; fi\n\
         if mkdir shot 2>/dev/null; then kill -9 $$; fi;;\nesac\nexec {} \"$@\"\n",
        folder.display(),
        env!("CARGO_BIN_EXE_embody")
    );
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(folder.join("broken"), "").unwrap();
    let name = source.to_str().unwrap();
    let output = job(&folder, &program, &["--size", "10k", name]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(folder.join("killed").is_dir() && folder.join("shot").is_dir());
    let failed = fs::read_to_string(folder.join("out/failed.jsonl")).unwrap();
    let ranges = fs::read_to_string(folder.join("out/ranges.jsonl")).unwrap();
    let (expected, count) = (whole(&folder, &source, &[]), ranges.lines().count());
    assert_eq!(failed.lines().count(), 1, "{failed}");
    assert!(
        failed.contains("\"from\": 0,") && failed.contains("no such luck"),
        "{failed}"
    );
    let (joined, parts_done) = parts(&folder, &source);
    assert_eq!(parts_done + 1, count);
    assert!(expected.ends_with(&joined));

    fs::remove_file(folder.join("broken")).unwrap();
    let output = job(&folder, &program, &["--ranges", "out/failed.jsonl"]);
    assert!(output.status.success(), "{output:?}");
    assert!(
        String::from_utf8_lossy(&output.stdout).contains("1 ranges, 0 failed"),
        "{output:?}"
    );
    assert!(parts(&folder, &source) == (expected, count));
    assert_eq!(fs::read(folder.join("out/failed.jsonl")).unwrap(), b"");
}

#[test]
fn an_archive_is_asked_by_the_date_of_each_mail() {
    const TEST: &str = "an_archive_is_asked_by_the_date_of_each_mail";
    if !is_there(TEST) {
        return;
    }
    let (port, asked) = server();
    let (_folder, folder) = folder();
    let source = folder.join("box");
    let url = format!("http://127.0.0.9:{port}/gone/picture");
    let all: String = ["1 May 2003", "1 Jun 2010", "1 May 2003"]
        .iter()
        .enumerate()
        .map(|(number, date)| {
            let dated = format!("\nDate: {date} 10:00:00 +0000\nMessage-ID:");
            reference(number, &url, "text/plain").replace("\nMessage-ID:", &dated)
        })
        .collect();
    fs::write(&source, &all).unwrap();
    let (archive, port) = (
        format!("http://127.0.0.1:{port}/web/{{date}}id_/{{url}}"),
        port.to_string(),
    );
    let asking = ["--archive-any", "--archive", &archive];
    let options = [&fetching(&port)[..], &asking].concat();
    let told = [
        &["--size", "200", source.to_str().unwrap(), "--"],
        &options[..],
    ]
    .concat();
    let output = job(&folder, Path::new(env!("CARGO_BIN_EXE_embody")), &told);
    assert!(output.status.success(), "{output:?}");
    let times = asked.lock().unwrap().clone();
    // The source, and the captures of two dates.
    assert_eq!(times.len(), 3, "{times:?}");
    assert!(times.values().all(|count| *count == 1), "{times:?}");
    let (joined, count) = parts(&folder, &source);
    assert_eq!(count, 3);
    let text = String::from_utf8(joined.clone()).unwrap();
    assert_eq!(text.matches("has /web/2003").count(), 2, "{text}");
    assert_eq!(text.matches("has /web/2010").count(), 1, "{text}");
    assert!(joined == whole(&folder, &source, &options));
}

#[test]
fn mail_comes_from_a_bucket_and_goes_into_one() {
    const TEST: &str = "mail_comes_from_a_bucket_and_goes_into_one";
    if !is_there(TEST) {
        return;
    }
    let Some(moto) = moto(TEST) else { return };
    let (_folder, folder) = folder();
    // Text that looks like mail at the end of a range, in a file whose name contains characters that are escaped in a URL.
    let all: String = (0..600)
        .map(|number| {
            let long = "From - not a start\n>From x\n".repeat(number % 90);
            let mail = reference(number, &format!("data:text/plain,{number}"), "text/plain");
            format!("{mail}{long}\n")
        })
        .collect();
    let source = folder.join("box");
    fs::write(&source, &all).unwrap();
    moto.asked("PUT", "/bucket/lists/two%20words/box", all.as_bytes());
    // A message in an object of its own, and an object that is not mail.
    let in_mailbox = reference(1, "data:text/plain,one", "text/plain");
    let one = in_mailbox.split_once('\n').unwrap().1;
    moto.asked("PUT", "/bucket/lists/one.eml", one.as_bytes());
    let told = [
        "--size",
        "50k",
        "--parts",
        // moto confirms the end of a multipart upload in a form of its own.
        "s3://bucket/new?allow_delayed_open=true",
        "s3://bucket/lists",
    ];
    let program = Path::new(env!("CARGO_BIN_EXE_embody"));
    let output = moto
        .known(&mut submitted(&folder, program, &told))
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");

    let response = moto.asked("GET", "/bucket?list-type=2&prefix=new/", b"");
    let listed = String::from_utf8(response).unwrap();
    let mut keys: Vec<&str> = listed
        .split("<Key>")
        .skip(1)
        .filter_map(|key| Some(key.split_once("</Key>")?.0))
        .collect();
    keys.sort_unstable();
    let content = |key: &str| {
        let answer = moto.asked("GET", &format!("/bucket/{}", key.replace(' ', "%20")), b"");
        let body = memchr::memmem::find(&answer, b"\r\n\r\n").unwrap() + 4;
        answer[body..].to_vec()
    };
    let joined = |beneath: &str| -> (Vec<u8>, usize) {
        let parts: Vec<Vec<u8>> = keys
            .iter()
            .filter(|key| key.starts_with(beneath))
            .map(|key| content(key))
            .collect();
        (parts.concat(), parts.len())
    };
    let (mails, count) = joined("new/s3:/bucket/lists/two words/box/");
    assert!(count > 5, "{count} parts: {keys:?}");
    assert!(mails == whole(&folder, &source, &[]));
    let (single, count) = joined("new/s3:/bucket/lists/one.eml/");
    assert_eq!(count, 1);
    assert!(
        single.ends_with(b"\none"),
        "{}",
        String::from_utf8_lossy(&single)
    );
    let rows: String = fs::read_dir(folder.join("out/rows"))
        .unwrap()
        .map(|rows| fs::read_to_string(rows.unwrap().path()).unwrap())
        .collect();
    assert!(
        rows.contains("\"source\": \"s3://bucket/lists/two%20words/box"),
        "{rows}"
    );

    // Parts of another run would be mistaken for those of the same mailbox.
    fs::remove_dir_all(folder.join("out")).unwrap();
    let again = moto
        .known(&mut submitted(&folder, program, &told))
        .output()
        .unwrap();
    assert_eq!(again.status.code(), Some(2), "{again:?}");
}
