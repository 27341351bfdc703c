//! Pages in several browsers, under one interface.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::devtools::Chromium;
use super::marionette::Firefox;
use super::programs::{program, skipped};

/// Time limit for a condition in a page, on a machine that is also busy with other work.
pub const PATIENCE: Duration = Duration::from_secs(900);

/// Keys that move the focus and press buttons.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Key {
    Tab,
    Enter,
    ArrowDown,
}

/// A browser with one page.
pub trait PageDriver {
    fn name(&self) -> &'static str;

    fn open(&mut self, url: &str);

    /// Returns the value of an expression in the page. If the value is a promise, its result is returned.
    fn value(&mut self, script: &str) -> Value;

    /// Presses a key and releases it.
    fn press(&mut self, key: Key);

    /// Waits until an expression has the value `true`.
    fn wait_for(&mut self, script: &str) {
        let begun = Instant::now();
        while self.value(script) != json!(true) {
            if begun.elapsed() > PATIENCE {
                let document = self.value("document.body?.innerText?.slice(0, 2000)");
                let name = self.name();
                panic!("{name}: {script} did not become true within {PATIENCE:?}: {document}");
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

/// Browser that is installed.
pub struct InstalledBrowser {
    start: fn(&Path) -> Box<dyn PageDriver>,
    program: PathBuf,
}

impl InstalledBrowser {
    /// Starts the browser, opens a page with this text from `file:`, and waits until `ready` is true.
    pub fn opened(&self, page: &str, ready: &str) -> Box<dyn PageDriver> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("page.html");
        fs::write(&file, page).unwrap();
        self.opened_from(&format!("file://{}", file.display()), ready)
    }

    /// Starts the browser, opens a URL, and waits until `ready` is true.
    pub fn opened_from(&self, url: &str, ready: &str) -> Box<dyn PageDriver> {
        let mut driver = (self.start)(&self.program);
        driver.open(url);
        driver.wait_for(&format!("document.readyState === 'complete' && ({ready})"));
        driver
    }
}

/// Returns the browsers that are installed. For each of the others, a message is printed.
pub fn browsers(test: &str) -> Vec<InstalledBrowser> {
    type Start = fn(&Path) -> Box<dyn PageDriver>;
    let known: [(&[&str], Start); 2] = [
        (&["chromium", "chromium-browser"], |program| {
            Box::new(Chromium::start(program))
        }),
        (&["firefox-esr", "firefox"], |program| {
            Box::new(Firefox::start(program))
        }),
    ];
    let mut found = Vec::new();
    for (names, start) in known {
        match names.iter().find_map(|name| program(name)) {
            Some(program) => found.push(InstalledBrowser { start, program }),
            None => skipped(test, names[0]),
        }
    }
    found
}
