//! The password prompt on a terminal.

use std::process::Command;

use super::scripted::Scripted;
use crate::common::programs::{program, skipped};

/// Runs a program on a terminal of its own, answers its prompt, and prints the text on the terminal and the exit status.
const TERMINAL: &str = r#"
import os, pty, sys, time
answer = sys.argv[1].encode()
process, terminal = pty.fork()
if process == 0:
    os.environ.pop("EMBODY_IMAP_PASSWORD_FILE", None)
    os.execv(sys.argv[2], sys.argv[2:])
seen, asked = b"", False
while True:
    try:
        octets = os.read(terminal, 4096)
    except OSError:
        break
    if not octets:
        break
    seen += octets
    if not asked and b"Password for" in seen:
        asked = True
        time.sleep(0.3)
        os.write(terminal, answer)
_, status = os.waitpid(process, 0)
sys.stdout.buffer.write(seen + b"\nstatus %d\n" % os.waitstatus_to_exitcode(status))
"#;

/// Returns the text on the terminal after `answer` was typed, and the logins that the server received.
fn typed(answer: &str) -> (String, Vec<String>) {
    let server = Scripted::answering(|_| None);
    let url = server.url("");
    let output = Command::new("timeout")
        .args(["20", "python3", "-c", TERMINAL, answer])
        .arg(env!("CARGO_BIN_EXE_embody"))
        .args(["inspect", "--allow-plaintext", &url])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{answer:?}: it does not end");
    let mut heard = server.heard();
    heard.retain(|command| command.starts_with("AUTHENTICATE") || command.starts_with("LOGIN"));
    (text, heard)
}

#[test]
fn a_password_is_asked_for_on_the_terminal_and_not_shown() {
    if program("python3").is_none() {
        return skipped(
            "a_password_is_asked_for_on_the_terminal_and_not_shown",
            "python3",
        );
    }
    let (text, heard) = typed("hid den\u{fc}\n");
    assert!(text.contains("Password for me at 127.0.0.1: "), "{text}");
    assert!(!text.contains("hid") && text.contains("status 0"), "{text}");
    assert_eq!(heard.len(), 1, "asked once, and taken: {heard:?}");
    // An empty line, or the end of input.
    for nothing in ["\n", "\u{4}"] {
        let (text, heard) = typed(nothing);
        assert!(
            text.contains("the password is empty for me at 127.0.0.1"),
            "{text}"
        );
        assert!(!text.contains("status 0") && heard.is_empty(), "{text}");
    }
    let (text, heard) = typed("hid\u{3}");
    assert!(
        text.contains("status 130") || text.contains("status -2"),
        "{text}"
    );
    assert!(!text.contains("hid") && heard.is_empty(), "{text}");
}
