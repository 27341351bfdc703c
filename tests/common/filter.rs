//! Runs `embody filter` as a process, with options and a mail, and returns its output, messages, report rows, time and
//! memory.

use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use base64::Engine as _;
use serde_json::Value;

use super::programs::{false_clock, skipped};
use super::reports;

const EMBODY: &str = env!("CARGO_BIN_EXE_embody");

/// The results of one run.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub stdout: Vec<u8>,
    pub stderr: String,
    /// The rows of the file of `--report`.
    pub rows: Vec<Value>,
    /// Elapsed time; for a measured run, the processor time.
    pub took: Duration,
    /// Maximum memory, in bytes, of a measured run.
    pub peak: Option<u64>,
}

/// Returns options that allow all schemes on 127.0.0.1 at these ports.
pub fn open(ports: &[u16]) -> String {
    let ports: String = ports
        .iter()
        .map(|port| format!(" --allow-port {port}"))
        .collect();
    format!("--fetch http,https,ftp,file --allow-net 127.0.0.0/8{ports}")
}

/// Filters a mail. The options are separated by blanks.
pub fn filter(options: &str, mail: &[u8]) -> Ran {
    run(Command::new(EMBODY), options, mail)
}

/// Filters a mail while the wall clock is ahead, as in `+2h`. Returns `None` without libfaketime.
pub fn filter_at(test: &str, clock: &str, options: &str, mail: &[u8]) -> Option<Ran> {
    let library = false_clock(test)?;
    let mut command = Command::new(EMBODY);
    command
        .env("LD_PRELOAD", library)
        .env("FAKETIME", clock)
        .env("DONT_FAKE_MONOTONIC", "1");
    Some(run(command, options, mail))
}

/// Filters a mail, and measures its memory and processor time. The kernel reports them to a parent process that has no
/// other child.
pub fn measured(test: &str, options: &str, mail: &[u8]) -> Option<Ran> {
    let script = "import resource, subprocess, sys\n\
        code = subprocess.call(sys.argv[2:])\n\
        used = resource.getrusage(resource.RUSAGE_CHILDREN)\n\
        seconds = used.ru_utime + used.ru_stime\n\
        open(sys.argv[1], 'w').write(f'{used.ru_maxrss << 10} {seconds}')\n\
        sys.exit(code)";
    let python = Command::new("python3")
        .arg("--version")
        .stdout(Stdio::null())
        .status();
    if !python.is_ok_and(|status| status.success()) {
        skipped(test, "python3");
        return None;
    }
    let peak = tempfile::NamedTempFile::new().unwrap();
    let mut command = Command::new("python3");
    command.args(["-c", script]).arg(peak.path()).arg(EMBODY);
    let mut ran = run(command, options, mail);
    let used = fs::read_to_string(peak.path()).unwrap();
    let (peak, seconds) = used.split_once(' ').unwrap();
    ran.peak = Some(peak.parse().unwrap());
    ran.took = Duration::from_secs_f64(seconds.parse().unwrap());
    Some(ran)
}

fn run(mut command: Command, options: &str, mail: &[u8]) -> Ran {
    let folder = tempfile::tempdir().unwrap();
    let [input, output, report] =
        ["in.eml", "out.eml", "report.jsonl"].map(|name| folder.path().join(name));
    fs::write(&input, mail).unwrap();
    let begun = Instant::now();
    let ended = command
        .args(["filter", "--report"])
        .arg(&report)
        .args(options.split_whitespace())
        .stdin(fs::File::open(&input).unwrap())
        .stdout(fs::File::create(&output).unwrap())
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    Ran {
        took: begun.elapsed(),
        code: ended.status.code(),
        stdout: fs::read(&output).unwrap(),
        stderr: String::from_utf8(ended.stderr).unwrap(),
        rows: fs::read_to_string(&report)
            .unwrap_or_default()
            .lines()
            .map(reports::object)
            .collect(),
        peak: None,
    }
}

impl Ran {
    /// Returns one field of every row, or `-` if a row lacks the field.
    pub fn column(&self, name: &str) -> Vec<String> {
        let text = |row: &Value| match &row[name] {
            Value::Null => "-".to_owned(),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        self.rows.iter().map(text).collect()
    }

    /// Checks that the mail was written, with exactly this content.
    #[track_caller]
    pub fn gives(&self, expected: &[u8]) {
        assert_eq!(self.code, Some(0), "{}", self.stderr);
        assert!(
            self.stdout == expected,
            "--- got ---\n{}\n--- wanted ---\n{}\n--- said ---\n{}",
            String::from_utf8_lossy(&self.stdout),
            String::from_utf8_lossy(expected),
            self.stderr
        );
    }

    /// Checks that the mail was written unchanged, and that the rows contain these reasons.
    #[track_caller]
    pub fn leaves(&self, mail: &[u8], reasons: &[&str]) {
        self.gives(mail);
        assert_eq!(self.column("reason"), reasons, "{}", self.stderr);
        for reason in reasons {
            assert!(
                self.stderr.contains(&format!(": unchanged: {reason}: ")),
                "{}",
                self.stderr
            );
        }
    }
}

/// Returns a part that refers to a URL.
pub fn reference(url: &str, declared: &str) -> String {
    format!(
        "Content-Type: message/external-body; access-type=URL;\n URL=\"{url}\"\n\nContent-Type: {declared}\n\n\n"
    )
}

/// Returns a part that contains its content.
pub fn filled(location: Option<&str>, declared: &str, body: &[u8]) -> String {
    let (encoding, body) = if declared.starts_with("text/") {
        ("7bit", String::from_utf8(body.to_vec()).unwrap())
    } else {
        let encoded = base64::engine::general_purpose::STANDARD.encode(body);
        let lines: Vec<&str> = encoded
            .as_bytes()
            .chunks(76)
            .map(|line| std::str::from_utf8(line).unwrap())
            .collect();
        ("base64", lines.join("\n"))
    };
    let location = location.map_or_else(String::new, |location| {
        format!("Content-Location: {location}\n")
    });
    format!("Content-Type: {declared}\nContent-Transfer-Encoding: {encoding}\n{location}\n{body}\n")
}

/// Returns a multipart/mixed with these parts.
pub fn mail(parts: &[String]) -> Vec<u8> {
    let mut mail =
        "Subject: parts from elsewhere\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\nnobody reads this\n"
            .to_owned();
    for part in parts {
        mail.push_str("--b\n");
        mail.push_str(part);
    }
    mail.push_str("--b--\nor this");
    mail.into_bytes()
}
