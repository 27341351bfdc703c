//! Drives Firefox over its Marionette protocol: opens a page, and evaluates scripts in it. The protocol is JSON over TCP, each
//! message with its length before it, so no WebDriver program is needed.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::time::Instant;

use serde_json::{Value, json};

use super::browser_process::BrowserProcess;
use super::page_driver::{Key, PATIENCE, PageDriver};

/// Preferences of the profile. With the port 0, Firefox chooses a free port and writes it to a file in the profile. All host
/// names resolve to this machine, so Firefox cannot reach the network.
const PREFERENCES: &str = r#"
user_pref("marionette.port", 0);
user_pref("network.dns.forceResolve", "127.0.0.1");
user_pref("app.update.disabledForTesting", true);
user_pref("browser.aboutwelcome.enabled", false);
user_pref("browser.shell.checkDefaultBrowser", false);
user_pref("browser.startup.page", 0);
user_pref("datareporting.policy.dataSubmissionEnabled", false);
user_pref("network.captive-portal-service.enabled", false);
user_pref("network.connectivity-service.enabled", false);
user_pref("services.settings.server", "http://127.0.0.1:9/");
user_pref("toolkit.telemetry.reportingpolicy.firstRun", false);
user_pref("toolkit.startup.max_resumed_crashes", -1);
"#;

/// Firefox with one page.
pub struct Firefox {
    stream: BufReader<TcpStream>,
    number: u64,
    _process: BrowserProcess,
}

impl Firefox {
    pub fn start(firefox: &Path) -> Self {
        let folder = tempfile::tempdir().unwrap().keep();
        let profile = folder.join("profile");
        fs::create_dir(&profile).unwrap();
        fs::write(profile.join("user.js"), PREFERENCES).unwrap();
        let named = profile.display().to_string();
        let arguments = [
            "--headless",
            "--no-remote",
            "--marionette",
            "--profile",
            &named,
            "about:blank",
        ];
        let process = BrowserProcess::start(folder, firefox, &arguments, "");
        let begun = Instant::now();
        let port: u16 = loop {
            let written = fs::read_to_string(profile.join("MarionetteActivePort"));
            if let Some(port) = written.ok().and_then(|text| text.trim().parse().ok()) {
                break port;
            }
            assert!(
                begun.elapsed() < PATIENCE,
                "firefox did not open its port within {PATIENCE:?}"
            );
            std::thread::sleep(std::time::Duration::from_millis(50));
        };
        let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.set_read_timeout(Some(2 * PATIENCE)).unwrap();
        let mut firefox = Self {
            stream: BufReader::new(stream),
            number: 0,
            _process: process,
        };
        let greeting = firefox.message();
        assert_eq!(greeting["marionetteProtocol"], 3, "{greeting}");
        let patience = u64::try_from(PATIENCE.as_millis()).unwrap();
        let wanted = json!({
            // A hostile page may never finish loading.
            "pageLoadStrategy": "eager",
        });
        let parameters = json!({ "capabilities": { "alwaysMatch": wanted } });
        firefox.command("WebDriver:NewSession", parameters);
        // Firefox ignores timeouts in the capabilities.
        let timeouts = json!({ "script": patience, "pageLoad": patience });
        firefox.command("WebDriver:SetTimeouts", timeouts);
        firefox
    }

    fn message(&mut self) -> Value {
        let mut length = Vec::new();
        self.stream.read_until(b':', &mut length).unwrap();
        assert_eq!(length.pop(), Some(b':'), "firefox ended");
        let length: usize = String::from_utf8(length).unwrap().parse().unwrap();
        let mut text = vec![0; length];
        self.stream.read_exact(&mut text).unwrap();
        serde_json::from_slice(&text).unwrap()
    }

    fn command(&mut self, name: &str, parameters: Value) -> Value {
        self.number += 1;
        let command = json!([0, self.number, name, parameters]).to_string();
        write!(self.stream.get_mut(), "{}:{command}", command.len()).unwrap();
        loop {
            // A response is [1, number, error, result].
            let response = self.message();
            if response[1] == self.number {
                assert!(response[2].is_null(), "{name}: {response}");
                return response[3].clone();
            }
        }
    }
}

impl PageDriver for Firefox {
    fn name(&self) -> &'static str {
        "firefox"
    }

    fn open(&mut self, url: &str) {
        self.command("WebDriver:Navigate", json!({ "url": url }));
    }

    fn value(&mut self, script: &str) -> Value {
        let script = format!("return ({script});");
        // Without a sandbox of its own, the script shares the objects of the page.
        let parameters = json!({ "script": script, "args": [], "sandbox": null });
        let result = self.command("WebDriver:ExecuteScript", parameters);
        result["value"].clone()
    }

    fn press(&mut self, key: Key) {
        // The numbers of the keys in WebDriver (§17.4.2).
        let key = match key {
            Key::Tab => "\u{e004}",
            Key::Enter => "\u{e007}",
            Key::ArrowDown => "\u{e015}",
        };
        let actions = json!([{ "type": "key", "id": "keyboard", "actions": [
            { "type": "keyDown", "value": key }, { "type": "keyUp", "value": key },
        ]}]);
        self.command("WebDriver:PerformActions", json!({ "actions": actions }));
    }
}
