//! Drives Chromium over the pipe of its DevTools protocol: opens a page, and evaluates scripts in it.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::browser_process::BrowserProcess;
use super::page_driver::{Key, PageDriver};

/// Chromium with one page.
pub struct Chromium {
    commands: File,
    answers: BufReader<File>,
    session: Option<String>,
    number: u64,
    _process: BrowserProcess,
}

impl Chromium {
    /// Starts Chromium. It reads commands from file descriptor 3 and writes answers to 4, each ended by a NUL byte, so a shell
    /// connects them with two named pipes.
    pub fn start(chromium: &Path) -> Self {
        let folder = tempfile::tempdir().unwrap().keep();
        let at = |name: &str| folder.join(name);
        let made = Command::new("mkfifo").args([at("in"), at("out")]).status();
        assert!(made.unwrap().success());
        let (input, output) = (at("in"), at("out"));
        let profile = format!("--user-data-dir={}", at("profile").display());
        let arguments = [
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
            &profile,
            "about:blank",
        ];
        let pipes = r#"3<"$folder/in" 4>"$folder/out""#;
        let process = BrowserProcess::start(folder, chromium, &arguments, pipes);
        let commands = File::options().write(true).open(input).unwrap();
        let answers = BufReader::new(File::open(output).unwrap());
        let mut browser = Self {
            commands,
            answers,
            session: None,
            number: 0,
            _process: process,
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
