//! `--resolver`: a program of the user that retrieves files from clouds after a sign-in.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::common::filter::{Ran, filter, open};
use crate::common::programs::{embody, embody_in, fed, stderr};
use crate::common::raw::{Raw, ok};
use crate::common::reports;

const LINK: &str = "https://drive.google.com/file/d/1AbC/view?usp=drive_web";

/// Returns a mail with links to these files, each with a name.
fn mail(files: &[(&str, &str)]) -> Vec<u8> {
    let chips: String = files
        .iter()
        .map(|(link, name)| {
            format!(
                "<div class=\"gmail_chip gmail_drive_chip\"><a href=\"{link}\">{name}</a></div>\n"
            )
        })
        .collect();
    format!("Subject: x\nMIME-Version: 1.0\nContent-Type: text/html\n\n{chips}").into_bytes()
}

/// A program in a directory of its own.
struct Resolver(TempDir);

impl Resolver {
    fn doing(script: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("resolve");
        fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        Self(folder)
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("resolve")
    }

    fn seen(&self, name: &str) -> String {
        fs::read_to_string(self.0.path().join(name)).unwrap_or_default()
    }

    fn run(&self, options: &str, mail: &[u8]) -> Ran {
        let path = self.path();
        filter(
            &format!("--follow all --resolver {} {options}", path.display()),
            mail,
        )
    }

    #[track_caller]
    fn leaves(&self, options: &str, words: &str) {
        let mail = mail(&[(LINK, "coast.webm")]);
        let ran = self.run(options, &mail);
        ran.leaves(
            &mail,
            &ran.column("reason")
                .iter()
                .map(String::as_str)
                .collect::<Vec<_>>(),
        );
        assert!(ran.stderr.contains(words), "{}", ran.stderr);
    }
}

#[test]
fn resolver_gets_one_json_object_and_its_output_becomes_the_file() {
    let resolver =
        Resolver::doing("cat > \"$0.asked\"; pwd > \"$0.at\"; echo litter > litter; echo here");
    let name = "a \"b\" $(touch x) \u{e9}.txt";
    let mail = mail(&[(LINK, "a &quot;b&quot; $(touch x) \u{e9}.txt")]);
    let ran = resolver.run("", &mail);
    assert_eq!(ran.column("outcome"), ["expanded"], "{}", ran.stderr);
    assert_eq!(ran.column("from"), ["resolver"]);
    assert!(String::from_utf8_lossy(&ran.stdout).contains("aGVyZQo="));
    let asked = resolver.seen("resolve.asked");
    assert_eq!(asked.lines().count(), 1);
    let asked = reports::object(&asked);
    let expected = serde_json::json!({ "url": LINK, "name": name, "provider": "google-drive" });
    assert_eq!(asked, expected);
    // The working directory was removed, with the files that the program left there.
    let at = resolver.seen("resolve.at");
    assert!(at.contains("embody-resolver-"), "{at}");
    assert!(!PathBuf::from(at.trim()).exists());
    // A second run does not start the program.
    fs::remove_file(resolver.0.path().join("resolve.asked")).unwrap();
    resolver.run("", &ran.stdout).gives(&ran.stdout);
    assert_eq!(resolver.seen("resolve.asked"), "");
}

#[test]
fn failed_resolver_is_reported_with_its_error_text_and_changes_nothing() {
    Resolver::doing("echo partly; echo first >&2; echo 'not shared with you\x1b[1m' >&2; exit 3")
        .leaves(
            "",
            "resolver-failed: the resolver program failed: not shared with you[1m",
        );
    Resolver::doing("echo sorry; exit 1").leaves("", "the resolver program failed: sorry");
    Resolver::doing("exit 4").leaves("", "exit status: 4");
    Resolver::doing("exit 0").leaves(
        "",
        "the resolver program failed: the program wrote no bytes",
    );
    Resolver::doing("kill -9 $$").leaves("", "signal: 9");
    Resolver::doing("echo '<!doctype html><input type=\"password\">'")
        .leaves("", "unchanged: sign-in");
    Resolver::doing("head -c 2000000 /dev/zero").leaves("--max-body 1M", "unchanged: too-large");
    let mail = mail(&[(LINK, "coast.webm")]);
    let ran = filter("--follow gmail --resolver /nowhere/at-all", &mail);
    ran.leaves(&mail, &["resolver-failed"]);
    let ran = Resolver::doing("exit 75").run("--on-failure defer", &mail);
    assert_eq!(
        (ran.code, &ran.stdout[..]),
        (Some(75), &b""[..]),
        "{}",
        ran.stderr
    );
}

#[test]
fn resolver_and_its_children_end_at_the_retrieval_timeout() {
    let resolver = Resolver::doing("sleep 60 & echo $! > \"$0.child\"; sleep 60");
    let begun = Instant::now();
    resolver.leaves("--timeout 1s", "unchanged: timeout");
    assert!(begun.elapsed() < Duration::from_secs(20));
    let child = resolver.seen("resolve.child");
    let state = || fs::read_to_string(format!("/proc/{}/stat", child.trim())).unwrap_or_default();
    let is_over = || state().is_empty() || state().contains(") Z ");
    // The signal was sent, but on a busy machine the process takes a moment to end.
    let sent = Instant::now();
    while !is_over() && sent.elapsed() < Duration::from_secs(10) {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(is_over(), "{}", state());
}

#[test]
fn resolver_runs_only_for_cloud_files_that_were_not_retrieved() {
    let server = Raw::http(|path, stream| {
        use std::io::Write as _;
        let _ = stream.write_all(&match path {
            "/uc?export=download&id=open" => ok("text/plain", b"open"),
            _ => ok("text/html", b"<title>Sign in"),
        });
    });
    let options = format!(
        "{} --map https://drive.google.com/={}",
        open(&[server.address.port()]),
        server.url("/")
    );
    let resolver = Resolver::doing("cat >> \"$0.asked\"; echo here");
    let [shared, closed, document] = [
        "https://drive.google.com/file/d/open/view",
        "https://drive.google.com/file/d/closed/view",
        "https://docs.google.com/document/d/1/edit",
    ];
    let mail = mail(&[(shared, "a.txt"), (closed, "b.txt"), (document, "c")]);
    let ran = resolver.run(&options, &mail);
    assert_eq!(
        ran.column("from"),
        ["network", "resolver", "resolver"],
        "{}",
        ran.stderr
    );
    let asked = resolver.seen("resolve.asked");
    assert_eq!(asked.lines().count(), 2, "{asked}");
    assert!(!asked.contains("/open/"), "{asked}");
    // The program is not used for a URL that is not a file in a cloud.
    let resolver = Resolver::doing("cat >> \"$0.asked\"; echo here");
    let body = "Content-Type: message/external-body; access-type=URL; URL=\"https://drive.google.com/file/d/1/view\"\n\nContent-Type: text/plain\n\n";
    resolver
        .run("", body.as_bytes())
        .leaves(body.as_bytes(), &["scheme-not-allowed"]);
    for options in [
        "--deny-host drive.google.com",
        "--follow none",
        "--max-fetches 0",
    ] {
        let mail = self::mail(&[(LINK, "coast.webm")]);
        assert_eq!(resolver.run(options, &mail).stdout, mail, "{options}");
    }
    assert_eq!(resolver.seen("resolve.asked"), "");
}

#[test]
fn parallel_resolvers_are_limited_and_a_dry_run_starts_none() {
    let resolver = Resolver::doing(
        "mkdir \"$0.$$\"; set -- \"$0\".*; echo $# >> \"${1%.*}-count\"; sleep 0.2; rmdir \"${1%.*}.$$\"; cat",
    );
    let links: Vec<String> = (0..6)
        .map(|at| format!("{LINK}{at}").replace("1AbC", &format!("{at}")))
        .collect();
    let files: Vec<(&str, &str)> = links.iter().map(|link| (&**link, "a.txt")).collect();
    let mail = mail(&files);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.eml");
    fs::write(&path, &mail).unwrap();
    let words = format!(
        "--follow gmail --max-in-flight 2 --resolver {}",
        resolver.path().display()
    );
    let run = |more: &[&str]| {
        let mut arguments: Vec<&str> = vec!["convert", "a.eml", "--output", "b.eml"];
        arguments.extend(words.split(' '));
        arguments.extend(more);
        embody_in(folder.path(), &arguments)
    };
    let output = run(&["--dry-run"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let output = fed(embody().arg("inspect").args(words.split(' ')), &mail);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.contains("the resolver program would be started for"),
        "{text}"
    );
    assert_eq!(resolver.seen("resolve-count"), "");
    let output = run(&[]);
    assert!(
        stderr(&output).contains("6 attachments put into the mail"),
        "{}",
        stderr(&output)
    );
    let counts: Vec<u32> = resolver
        .seen("resolve-count")
        .lines()
        .map(|count| count.parse().unwrap())
        .collect();
    assert_eq!(
        (counts.len(), counts.iter().max()),
        (6, Some(&2)),
        "{counts:?}"
    );
}

#[test]
fn resolver_command_is_split_without_a_shell_and_refused_in_a_milter() {
    let folder = tempfile::tempdir().unwrap();
    let script = "import sys; sys.stdin.read(); print(sys.argv[1:], end='')";
    let mail = mail(&[(LINK, "coast.webm")]);
    let run = |line: &str| {
        let mut command = embody();
        command.args(["filter", "--follow", "gmail", "--resolver", line]);
        fed(command.current_dir(folder.path()), &mail)
    };
    let output = run(&format!(
        "python3 -c \"{script}\" 'a  b' \"\" $HOME ;x '*'\"'\""
    ));
    let text = String::from_utf8(output.stdout).unwrap();
    let expected = "['a  b', '', '$HOME', ';x', \"*'\"]";
    use base64::Engine as _;
    let expected = base64::engine::general_purpose::STANDARD.encode(expected);
    assert!(text.contains(&expected), "{text}");
    for (line, words) in [
        ("a 'b", "without a closing quote"),
        (" ", "the command is empty"),
        ("''", "the command is empty"),
    ] {
        let output = run(line);
        assert_eq!(output.status.code(), Some(75));
        assert!(stderr(&output).contains(words), "{}", stderr(&output));
    }
    // A relative path of the program begins at the directory in which embody was started.
    fs::write(folder.path().join("beside"), "#!/bin/sh\necho beside\n").unwrap();
    fs::set_permissions(
        folder.path().join("beside"),
        fs::Permissions::from_mode(0o755),
    )
    .unwrap();
    let output = run("./beside");
    assert!(
        String::from_utf8_lossy(&output.stdout).contains("YmVzaWRlCg=="),
        "{}",
        stderr(&output)
    );
    let milter = [
        "milter",
        "--listen",
        "unix:/nowhere/x",
        "--resolver",
        "true",
    ];
    let output = embody_in(folder.path(), &milter);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("--resolver cannot be used by a milter"),
        "{}",
        stderr(&output)
    );
}

/// The setting survives exec, so a daemon that ignores SIGCHLD passes it on.
#[test]
fn resolver_of_a_run_that_ignores_sigchld_keeps_its_exit_status() {
    let mail = mail(&[(LINK, "coast.webm")]);
    let run = |script: &str| {
        let resolver = Resolver::doing(script);
        let run = "trap '' CHLD; exec \"$0\" filter --follow gmail --resolver \"$1\"";
        let mut command = std::process::Command::new("sh");
        command.args(["-c", run]).arg(embody().get_program());
        fed(command.arg(resolver.path()), &mail)
    };
    let output = run("cat > /dev/null; echo here");
    assert!(
        String::from_utf8_lossy(&output.stdout).contains("aGVyZQo="),
        "{}",
        stderr(&output)
    );
    let output = run("cat > /dev/null; echo partly; exit 4");
    assert!(
        stderr(&output).contains("resolver program failed: partly"),
        "{}",
        stderr(&output)
    );
    assert_eq!(output.stdout, mail);
}
