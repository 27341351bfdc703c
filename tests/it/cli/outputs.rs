//! Tests each command with standard output that is discarded, closed, or a pipe whose reader has exited.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, SystemTime};

use crate::common::bounded::finished;
use crate::common::programs::{embody, embody_in, has_python, stderr};

/// The kind of data that a command writes to standard output.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Writes {
    Report,
    /// Mail. The number is the exit status if the mail cannot be written.
    Mail(i32),
    Nothing,
}
use Writes::{Mail, Nothing, Report};

/// Each line is run in a directory with `mail.eml`, `box` and `store`. OUT is replaced with a new name.
const COMMANDS: &[(&str, Writes)] = &[
    ("inspect mail.eml", Report),
    ("inspect --json --embed data mail.eml", Report),
    ("inspect box", Report),
    ("inspect --json box", Report),
    ("inspect mail.eml box .", Report),
    ("inspect --html - box", Report),
    ("inspect --html OUT --json box", Report),
    ("inspect --messages box", Mail(1)),
    ("compare box copy", Report),
    ("compare --json box copy", Report),
    ("merge box mail.eml --output OUT", Nothing),
    ("merge --dry-run box mail.eml --output OUT", Nothing),
    ("merge --json box mail.eml --output merged", Report),
    ("split box", Report),
    ("split --count box mail.eml", Report),
    ("store check store", Report),
    ("store check store box", Report),
    ("store gc store box large.eml", Report),
    ("schemes", Report),
    ("man", Report),
    ("man OUT", Nothing),
    ("completions bash", Report),
    ("completions zsh", Report),
    ("completions fish", Report),
    ("completions elvish", Report),
    ("completions powershell", Report),
    ("--version", Report),
    ("--help", Report),
    ("-h", Report),
    ("help", Report),
    ("help convert", Report),
    ("filter mail.eml", Mail(75)),
    ("convert box --output -", Mail(1)),
    ("convert box --output OUT", Nothing),
    ("convert --dry-run box --output -", Nothing),
    ("convert --dry-run box --in-place", Nothing),
    ("convert --in-place box", Nothing),
    ("embed mail.eml", Mail(75)),
    ("embed --dry-run box", Nothing),
    ("embed --dry-run box --output -", Nothing),
    ("embed box --output -", Mail(1)),
    ("embed box --output OUT", Nothing),
    ("recover mail.eml", Mail(75)),
    ("recover --dry-run box", Nothing),
    ("recover box --output -", Mail(1)),
    ("recover --offline box --output OUT", Nothing),
    ("detach --store store mail.eml", Mail(75)),
    ("detach --store store --dry-run box --output -", Nothing),
    ("detach --store store --dry-run box", Nothing),
    ("detach --store store box --output -", Mail(1)),
    ("detach --store store --in-place box", Nothing),
    ("restore --store store mail.eml", Mail(75)),
    ("restore --store store --dry-run box", Nothing),
    ("restore --store store box --output -", Mail(1)),
    ("restore --store store --in-place box", Nothing),
];

const MBOX: &str = "From a@b Sat Jan  3 01:05:34 1996\nSubject: 1\nMIME-Version: 1.0\n\
                    Content-Type: text/html\n\n<img src=\"data:image/gif;base64,R0lGODlhAgABAIAAAAAAAP///ywAAAAAAgABAAACAkQBADs=\">\n\nFrom a@b Sat Jan  3 01:05:34 1996\nSubject: 2\n\nx\n\n";

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mail = MBOX.split_once('\n').unwrap().1.split("From ").next();
    fs::write(folder.path().join("mail.eml"), mail.unwrap()).unwrap();
    for name in ["box", "copy"] {
        fs::write(folder.path().join(name), MBOX.repeat(3)).unwrap();
    }
    let large = format!(
        "MIME-Version: 1.0\nContent-Type: application/pdf\nContent-Disposition: attachment\n\n{}\n",
        "x".repeat(200_000)
    );
    fs::write(folder.path().join("large.eml"), large).unwrap();
    let arguments = ["detach", "--store", "store", "--in-place", "large.eml"];
    let detached = embody_in(folder.path(), &arguments);
    assert_eq!(detached.status.code(), Some(0), "{}", stderr(&detached));
    // An object to which no mail refers and that is old enough for gc. Its content is "x".
    let hash = "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881";
    let place = folder.path().join("store/2d/71");
    fs::create_dir_all(&place).unwrap();
    fs::write(place.join(hash), "x").unwrap();
    let file = File::options().write(true).open(place.join(hash)).unwrap();
    file.set_modified(SystemTime::now() - Duration::from_secs(2 * 24 * 60 * 60))
        .unwrap();
    folder
}

/// The way in which standard output is passed to the program.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Given {
    /// The null device opened for reading and writing, as Python's `subprocess.DEVNULL` is.
    NullBothWays,
    NullToWrite,
    Closed,
    WithoutReader,
}

fn run(line: &str, folder: &Path, given: Given) -> Output {
    let arguments = line.split(' ').map(|word| match word {
        "OUT" => "new",
        word => word,
    });
    let null = |options: &mut OpenOptions| Stdio::from(options.open("/dev/null").unwrap());
    let (mut command, stdout) = match given {
        Given::Closed => {
            let mut shell = Command::new("sh");
            shell.args(["-c", "exec \"$@\" >&-", "sh", env!("CARGO_BIN_EXE_embody")]);
            (shell, Stdio::null())
        }
        Given::NullBothWays => (embody(), null(File::options().read(true).write(true))),
        Given::NullToWrite => (embody(), null(File::options().write(true))),
        Given::WithoutReader => {
            let (reader, writer) = io::pipe().unwrap();
            drop(reader);
            (embody(), writer.into())
        }
    };
    command.args(arguments).current_dir(folder);
    command
        .stdin(Stdio::null())
        .stdout(stdout)
        .stderr(Stdio::piped());
    finished(command.spawn().unwrap())
}

#[test]
fn every_command_is_in_the_table() {
    let output = embody_in(Path::new("."), &["--help"]);
    let help = String::from_utf8(output.stdout).unwrap();
    let (_, commands) = help.split_once("Commands:\n").unwrap();
    let names: Vec<&str> = commands
        .lines()
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.strip_prefix("  ")?.split(' ').next())
        .filter(|name| !name.is_empty())
        .collect();
    assert!(names.len() > 10, "{names:?}");
    for name in names {
        let is_of = |(line, _): &&(&str, Writes)| line.split(' ').next() == Some(name);
        // The services run until a signal stops them, and write nothing to standard output.
        assert!(
            matches!(name, "milter" | "serve") || COMMANDS.iter().any(|line| is_of(&line)),
            "{name}"
        );
    }
}

#[test]
fn closed_output_is_accepted_for_reports_and_refused_for_mail() {
    for (line, writes) in COMMANDS {
        for given in [Given::NullBothWays, Given::NullToWrite, Given::Closed] {
            let folder = folder();
            let output = run(line, folder.path(), given);
            let expected = match writes {
                Mail(status) if given != Given::NullToWrite => *status,
                _ => 0,
            };
            let said = stderr(&output);
            assert_eq!(
                output.status.code(),
                Some(expected),
                "{line}, {given:?}: {said}"
            );
            let is_refused = said.contains("cannot write standard output: the stream is closed");
            assert_eq!(is_refused, expected != 0, "{line}, {given:?}: {said}");
        }
    }
}

#[test]
fn a_report_whose_reader_has_gone_ends_quietly_and_mail_does_not() {
    for (line, writes) in COMMANDS {
        let folder = folder();
        let before = run(line, folder.path(), Given::NullToWrite);
        let folder = self::folder();
        let output = run(line, folder.path(), Given::WithoutReader);
        let (status, said) = (output.status.code(), stderr(&output));
        match writes {
            Nothing => assert_eq!(status, before.status.code(), "{line}: {said}"),
            Report => {
                assert_eq!(status, Some(128 + 13), "{line}: {said}");
                assert_eq!(said, "", "{line}");
            }
            Mail(1) if line.starts_with("inspect") => {
                assert_eq!((status, &*said), (Some(128 + 13), ""), "{line}");
            }
            Mail(expected) => {
                assert_eq!(status, Some(*expected), "{line}: {said}");
                assert!(
                    said.contains("cannot write standard output: Broken pipe"),
                    "{line}: {said}"
                );
            }
        }
    }
}

/// A wrongly configured mail system may run the help of a filter. The exit status must make it retry later.
#[test]
fn the_help_of_a_filter_whose_reader_has_gone_is_quiet_and_delays_mail() {
    let folder = folder();
    for (line, status) in [
        ("filter --help", 75),
        ("detach --help", 75),
        ("convert --help", 141),
    ] {
        let output = run(line, folder.path(), Given::WithoutReader);
        assert_eq!(output.status.code(), Some(status), "{line}");
        assert_eq!(stderr(&output), "", "{line}");
        for given in [Given::NullBothWays, Given::Closed] {
            assert_eq!(
                run(line, folder.path(), given).status.code(),
                Some(0),
                "{line}"
            );
        }
    }
}

/// Rows of a mailbox are written while it is read. After the reader has exited, the rest of an endless mailbox is not read.
#[test]
fn failed_write_of_a_report_row_stops_reading_the_mailbox() {
    for full in [false, true] {
        if full && !Path::new("/dev/full").exists() {
            continue;
        }
        let stdout = if full {
            Stdio::from(File::options().write(true).open("/dev/full").unwrap())
        } else {
            Stdio::from(io::pipe().unwrap().1)
        };
        let mut child = embody()
            .args(["inspect", "--json", "--embed", "data"])
            .stdin(Stdio::piped())
            .stdout(stdout)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let output = std::thread::scope(|scope| {
            scope.spawn(move || while stdin.write_all(MBOX.as_bytes()).is_ok() {});
            finished(child)
        });
        let (status, said) = if full {
            (
                1,
                "embody: cannot write standard output: No space left on device (os error 28)\n",
            )
        } else {
            (141, "")
        };
        assert_eq!(
            (output.status.code(), &*stderr(&output)),
            (Some(status), said)
        );
    }
}

#[test]
fn report_commands_succeed_with_the_devnull_of_python() {
    if !has_python(
        "report_commands_succeed_with_the_devnull_of_python",
        "subprocess",
        "python3",
    ) {
        return;
    }
    let folder = folder();
    let script = "import subprocess, sys\n\
                  for line in sys.argv[2:]:\n\
                  \x20   print(line, subprocess.run([sys.argv[1], *line.split(' ')], stdout=subprocess.DEVNULL).returncode)\n";
    let lines: Vec<&str> = COMMANDS
        .iter()
        .filter(|(_, writes)| *writes == Report)
        .map(|(line, _)| *line)
        .collect();
    let output = Command::new("python3")
        .args(["-c", script, env!("CARGO_BIN_EXE_embody")])
        .args(&lines)
        .current_dir(folder.path())
        .output()
        .unwrap();
    let expected: String = lines.iter().map(|line| format!("{line} 0\n")).collect();
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        expected,
        "{}",
        stderr(&output)
    );
}
