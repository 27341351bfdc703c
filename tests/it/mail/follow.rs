//! `--follow`: forms of references in addition to `message/external-body`.

use crate::common::filter::filter;
use crate::common::programs::{embody, fed};

const DETACHED: &str = "Content-Type: text/plain\n\
    X-Mozilla-External-Attachment-URL: file:///srv/a.txt\n\
    X-Mozilla-Altered: AttachmentDetached; date=\"Thu Jan 01 00:00:00 1970\"\n\n\
    You deleted an attachment from this message. The original MIME headers for the attachment were:\n\
    Content-Type: text/plain\n";
const EXCHANGE: &str =
    "Content-Type: message/external-body; name=\"a.url\"\n\n[InternetShortcut]\nURL=data:,one\n";
const ATTACHED: &str =
    "Content-Type: application/internet-shortcut\n\n[InternetShortcut]\nURL=data:,two\n";

#[test]
fn a_form_that_is_not_followed_is_left_and_says_so() {
    let ran = filter("", EXCHANGE.as_bytes());
    assert_eq!(ran.column("outcome"), ["expanded"], "{}", ran.stderr);
    filter("", ATTACHED.as_bytes()).leaves(ATTACHED.as_bytes(), &[]);
    let ran = filter("--follow shortcuts", ATTACHED.as_bytes());
    assert_eq!(ran.column("outcome"), ["expanded"], "{}", ran.stderr);
    for (mail, options) in [
        (DETACHED, "--follow -thunderbird"),
        (EXCHANGE, "--follow all,-exchange"),
        (EXCHANGE, "--follow none,shortcuts"),
    ] {
        let ran = filter(options, mail.as_bytes());
        ran.leaves(mail.as_bytes(), &["not-followed"]);
    }
}

/// Forms that are not followed do not count as links or targets of Content-IDs either.
#[test]
fn inspect_tells_of_what_is_not_followed_and_which_word_follows_it() {
    let inspect = |options: &[&str]| {
        let mut program = embody();
        let output = fed(program.arg("inspect").args(options), ATTACHED.as_bytes());
        String::from_utf8(output.stdout).unwrap()
    };
    let text = inspect(&[]);
    assert!(text.contains("unchanged: not-followed"), "{text}");
    assert!(text.contains("--follow shortcuts"), "{text}");
    let text = inspect(&["--follow", "shortcuts"]);
    assert!(!text.contains("not-followed"), "{text}");
}

#[test]
fn wrong_follow_word_and_the_old_option_shortcuts_name_the_right_option() {
    let said = |arguments: &[&str]| {
        let mut program = embody();
        let output = fed(program.arg("inspect").args(arguments), b"\n");
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8(output.stderr).unwrap()
    };
    let text = said(&["--follow", "onedrive"]);
    assert!(text.contains("thunderbird, exchange, shortcuts"), "{text}");
    let text = said(&["--shortcuts", "all"]);
    assert!(text.contains("write --follow shortcuts"), "{text}");
}

#[test]
fn a_configuration_file_names_the_forms_too() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("embody.toml");
    std::fs::write(&file, "follow = [\"-exchange\"]\n").unwrap();
    let options = format!("--config {}", file.display());
    filter(&options, EXCHANGE.as_bytes()).leaves(EXCHANGE.as_bytes(), &["not-followed"]);
    let ran = filter(&format!("{options} --follow exchange"), EXCHANGE.as_bytes());
    assert_eq!(ran.column("outcome"), ["expanded"], "{}", ran.stderr);
    std::fs::write(&file, "shortcuts = \"all\"\n").unwrap();
    let ran = filter(&options, EXCHANGE.as_bytes());
    assert_eq!(ran.code, Some(75));
    assert!(
        ran.stderr.contains("write --follow shortcuts"),
        "{}",
        ran.stderr
    );
}
