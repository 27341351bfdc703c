//! Pages in several browsers, under one interface.

use std::fs;
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
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
pub trait PageDriver: Send {
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

/// The running browsers that no test uses, each with its program. To start a browser takes seconds, so a later test uses them.
/// They end with the test program.
static UNUSED: Mutex<Vec<(PathBuf, Box<dyn PageDriver>)>> = Mutex::new(Vec::new());

/// Maximum number of running browsers that no test uses. Each needs some 500 MB.
const MOST_UNUSED: usize = 4;

/// A page in a browser. Afterwards, another test uses the browser, unless this test failed or needs the end of the browser.
pub struct OpenPage {
    /// `None` only while it is dropped.
    driver: Option<Box<dyn PageDriver>>,
    program: PathBuf,
}

impl OpenPage {
    /// Ends the browser, and so everything that its page does.
    pub fn end_browser(mut self) {
        self.driver = None;
    }
}

impl Deref for OpenPage {
    type Target = dyn PageDriver;

    fn deref(&self) -> &Self::Target {
        self.driver.as_deref().unwrap()
    }
}

impl DerefMut for OpenPage {
    fn deref_mut(&mut self) -> &mut Self::Target {
        self.driver.as_deref_mut().unwrap()
    }
}

impl Drop for OpenPage {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        if let Some(mut driver) = self.driver.take() {
            driver.open("about:blank");
            let program = std::mem::take(&mut self.program);
            let mut unused = UNUSED.lock().unwrap();
            if unused.len() < MOST_UNUSED {
                unused.push((program, driver));
            }
        }
    }
}

impl InstalledBrowser {
    /// Opens a page with this text from `file:`, and waits until `ready` is true.
    pub fn opened(&self, page: &str, ready: &str) -> OpenPage {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("page.html");
        fs::write(&file, page).unwrap();
        self.opened_from(&format!("file://{}", file.display()), ready)
    }

    /// Opens a URL without a fragment, and waits until `ready` is true.
    pub fn opened_from(&self, url: &str, ready: &str) -> OpenPage {
        let mut page = OpenPage {
            driver: Some(self.running()),
            program: self.program.clone(),
        };
        page.open(url);
        // Another page may still be there, and be ready.
        page.wait_for(&format!(
            "location.href.split('#')[0] === '{url}' && document.readyState === 'complete' && ({ready})"
        ));
        page
    }

    /// Returns a running browser that no test uses, or starts one.
    fn running(&self) -> Box<dyn PageDriver> {
        let mut unused = UNUSED.lock().unwrap();
        let found = unused.iter().position(|(it, _)| *it == self.program);
        if let Some((_, driver)) = found.map(|at| unused.swap_remove(at)) {
            return driver;
        }
        drop(unused);
        (self.start)(&self.program)
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
