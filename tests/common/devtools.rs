//! Drives Chromium over the pipe of its DevTools protocol: opens a page, and evaluates scripts in it.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::page_driver::{Key, PageDriver};

/// Chromium with one page.
pub struct Chromium {
    child: Child,
    commands: File,
    answers: BufReader<File>,
    session: Option<String>,
    number: u64,
    _folder: TempDir,
}

impl Drop for Chromium {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Chromium {
    /// Starts Chromium. It reads commands from file descriptor 3 and writes answers to 4, each ended by a NUL byte, so a shell
    /// connects them with two named pipes.
    pub fn start(chromium: &Path) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let made = Command::new("mkfifo").args([at("in"), at("out")]).status();
        assert!(made.unwrap().success());
        let child = Command::new("sh")
            .arg("-c")
            .arg("exec \"$0\" \"$@\" 3<\"$FOLDER/in\" 4>\"$FOLDER/out\"")
            .arg(chromium)
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--no-first-run",
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
                // The browser cannot reach the network.
                "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
                "--remote-debugging-pipe",
            ])
            .arg(format!("--user-data-dir={}", at("profile").display()))
            .arg("about:blank")
            .env("FOLDER", folder.path())
            .env("HOME", folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let commands = File::options().write(true).open(at("in")).unwrap();
        let answers = BufReader::new(File::open(at("out")).unwrap());
        let mut browser = Self {
            child,
            commands,
            answers,
            session: None,
            number: 0,
            _folder: folder,
        };
        let target = browser.command("Target.createTarget", json!({ "url": "about:blank" }));
        let attached = browser.command(
            "Target.attachToTarget",
            json!({ "targetId": target["targetId"], "flatten": true }),
        );
        browser.session = Some(attached["sessionId"].as_str().unwrap().to_owned());
        browser
    }

    fn command(&mut self, method: &str, parameters: Value) -> Value {
        self.number += 1;
        let mut command = json!({ "id": self.number, "method": method, "params": parameters });
        if let Some(session) = &self.session {
            command["sessionId"] = json!(session);
        }
        let text = format!("{command}\0");
        self.commands.write_all(text.as_bytes()).unwrap();
        loop {
            let mut answer = Vec::new();
            let read = self.answers.read_until(0, &mut answer).unwrap();
            assert!(read > 0, "{method}: chromium ended");
            answer.pop();
            let answer: Value = serde_json::from_slice(&answer).unwrap();
            if answer["id"] == self.number {
                assert!(answer.get("error").is_none(), "{method}: {answer}");
                return answer["result"].clone();
            }
        }
    }
}

impl PageDriver for Chromium {
    fn name(&self) -> &'static str {
        "chromium"
    }

    fn open(&mut self, url: &str) {
        self.command("Page.navigate", json!({ "url": url }));
    }

    fn value(&mut self, script: &str) -> Value {
        let parameters =
            json!({ "expression": script, "returnByValue": true, "awaitPromise": true });
        let answer = self.command("Runtime.evaluate", parameters);
        assert!(
            answer.get("exceptionDetails").is_none(),
            "{script}: {answer}"
        );
        answer["result"]["value"].clone()
    }

    fn press(&mut self, key: Key) {
        let (name, code, text) = match key {
            Key::Tab => ("Tab", 9, None),
            Key::Enter => ("Enter", 13, Some("\r")),
            Key::ArrowDown => ("ArrowDown", 40, None),
        };
        let mut event = json!({
            "type": "keyDown", "key": name, "code": name, "windowsVirtualKeyCode": code,
        });
        if let Some(text) = text {
            event["text"] = json!(text);
        }
        self.command("Input.dispatchKeyEvent", event.clone());
        event["type"] = json!("keyUp");
        self.command("Input.dispatchKeyEvent", event);
    }
}
