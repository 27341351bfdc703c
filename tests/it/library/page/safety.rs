//! A mail makes no requests and runs no scripts.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use embody::view::MailView;
use serde_json::{Value, json};

use super::hostile::{REFERENCES, SCRIPTS};
use super::{
    CONNECTION, IS_READY, Recorder, SETTLED, mail_of, page_and_browsers, shown, with_files,
    with_mail,
};
use crate::common::page_driver::{InstalledBrowser, PageDriver};

fn addressed(markup: &str, port: u16) -> String {
    let url = format!("http://127.0.0.1:{port}");
    let port = port.to_string();
    markup.replace("URL", &url).replace("PORT", &port)
}

fn page_of(markups: &[&str], port: u16) -> String {
    let mut html = String::new();
    for (index, markup) in markups.iter().enumerate() {
        let markup = addressed(markup, port);
        writeln!(html, "<div id=d{index}><p>{index}</p>{markup}</div>").unwrap();
    }
    html
}

/// Returns the page with another script, which its policy allows.
fn with_changed_script(page: &str, from: &str, to: &str) -> String {
    let changed = page.replace(from, to);
    assert_ne!(changed, page);
    let (_, script) = changed.rsplit_once("<script>").unwrap();
    let (script, _) = script.split_once("</script>").unwrap();
    let digest = STANDARD.encode(<sha2::Sha256 as sha2::Digest>::digest(script.as_bytes()));
    let (before, rest) = changed.split_once("'sha256-").unwrap();
    let (_, after) = rest.split_once('\'').unwrap();
    format!("{before}'sha256-{digest}'{after}")
}

#[test]
fn hostile_mail_makes_no_request_in_the_page_but_many_without_it() {
    let test = "hostile_mail_makes_no_request_in_the_page_but_many_without_it";
    let Some((page, browsers)) = page_and_browsers(test) else {
        return;
    };
    for browser in browsers {
        let recorder = Recorder::start();
        let html = page_of(REFERENCES, recorder.port);

        // The control: the same HTML as a page. A redirect and a form would replace the page before it has made all requests.
        let control: Vec<&str> = REFERENCES
            .iter()
            .copied()
            .filter(|markup| !markup.contains("refresh") && !markup.contains("form"))
            .collect();
        let driver = browser.opened(&page_of(&control, recorder.port), "true");
        let name = driver.name();
        std::thread::sleep(SETTLED);
        let leaked = recorder.taken();
        assert!(
            leaked.len() > 30,
            "{name}: the control made only these requests: {leaked:?}"
        );
        driver.end_browser();
        // The browser may have opened a connection that it did not use before it ended.
        std::thread::sleep(SETTLED);
        recorder.taken();

        let dom = shown(&browser, &with_mail(&page, mail_of(&html).as_bytes()));
        assert!(
            dom.contains("<h1>a hostile mail</h1>") && dom.contains("srcdoc="),
            "{name}: the page did not show the mail"
        );
        assert_eq!(recorder.taken(), Vec::<String>::new(), "{name}");

        // The policies hold without the cleaning as well, except for connections without a request, which no policy can block.
        let unclean = with_changed_script(
            &page,
            "null : cleanHtml(html, picture, titleOf)",
            "null : html",
        );
        let dom = shown(&browser, &with_mail(&unclean, mail_of(&html).as_bytes()));
        assert!(
            dom.contains("srcdoc=") && dom.contains("/svg-image"),
            "{name}: the page did not show the mail"
        );
        let mut requests = recorder.taken();
        requests.retain(|path| path != CONNECTION);
        assert_eq!(requests, Vec::<String>::new(), "{name}");
    }
}

/// Page that shows each of the texts in a frame without a policy and without a sandbox. It then sends the events of a person to
/// all elements, and has the positions of the frames that called a function.
const FRAMES: &str = r#"<!doctype html><body><script>
const ran = new Set();
const texts = TEXTS;
const events = "focus focusin blur mouseover mouseenter pointerover pointerenter mousedown mouseup click dblclick input change submit toggle scroll wheel".split(" ");
const pause = (time) => new Promise((resolve) => setTimeout(resolve, time));
async function poke(frame) {
  const elements = [...(frame.contentDocument?.querySelectorAll("*") ?? [])];
  for (const element of elements) {
    // A link to a web server is followed by a person, and is no script.
    if (/^(?:https?|mailto):/.test(element.href ?? "")) continue;
    for (const name of events) element.dispatchEvent(new Event(name, { bubbles: true, cancelable: name === "submit" }));
    element.focus?.();
    element.click?.();
  }
}
const hook = (index) => "<script>for (const name of ['alert', 'confirm', 'prompt', 'print']) window[name] = () => parent.ran.add(" + index + ");<\/script>";
window.ran = ran;
async function run() {
  for (let from = 0; from < texts.length; from += 20) {
    const frames = texts.slice(from, from + 20).map((text, index) => {
      const frame = document.createElement("iframe");
      frame.loaded = new Promise((resolve) => { frame.onload = resolve; });
      frame.srcdoc = hook(from + index) + text;
      document.body.append(frame);
      return frame;
    });
    // A busy machine needs seconds for the frames, and some frames never end to load.
    await Promise.race([Promise.all(frames.map((frame) => frame.loaded)), pause(5000)]);
    await pause(700);
    for (const frame of frames) try { await poke(frame); } catch {}
    await pause(300);
    for (const frame of frames) frame.remove();
  }
  document.documentElement.setAttribute("data-done", "");
}
run();
</script>"#;

/// Returns which of the texts ran a script.
fn ran(browser: &InstalledBrowser, texts: &[String]) -> Vec<usize> {
    // `</script>` would end the script that contains the texts.
    let list = json!(texts).to_string().replace('<', "\\u003c");
    let frames = FRAMES.replace("TEXTS", &list);
    let ended = "document.documentElement.hasAttribute('data-done')";
    let mut driver = browser.opened(&frames, ended);
    let mut ran: Vec<usize> = serde_json::from_value(driver.value("[...ran]")).unwrap();
    driver.end_browser();
    ran.sort_unstable();
    ran
}

/// Returns the texts as the page cleans them.
fn cleaned(driver: &mut dyn PageDriver, texts: &[String]) -> Vec<String> {
    let list = json!(texts);
    let cleaned = driver.value(&format!("{list}.map((html) => cleanHtml(html, () => ''))"));
    serde_json::from_value(cleaned).unwrap()
}

/// Checks that cleaned texts make no requests and run no scripts where nothing else protects them, and that at least `least` of
/// the texts run scripts if they are not cleaned.
fn assert_harmless(
    browser: &InstalledBrowser,
    page: &str,
    recorder: &Recorder,
    texts: &[String],
    least: usize,
) {
    let mut driver = browser.opened(page, IS_READY);
    let name = driver.name();
    let clean = cleaned(&mut *driver, texts);
    drop(driver);
    recorder.taken();
    let numbers = ran(browser, &clean);
    let found: Vec<_> = numbers
        .iter()
        .map(|it| (&texts[*it], &clean[*it]))
        .collect();
    assert!(found.is_empty(), "{name}: {found:#?}");
    assert_eq!(recorder.taken(), Vec::<String>::new(), "{name}");
    // Two elements that give the focus to each other keep the browser busy for ever, and a frame of another origin opens a
    // dialog that nothing closes.
    let blocks = |text: &&String| text.contains("onblur") || text.contains("data:text/html");
    let tried: Vec<String> = texts.iter().filter(|it| !blocks(it)).cloned().collect();
    let control = ran(browser, &tried);
    assert!(control.len() >= least, "{name}: only {control:?} ran");
    let _ = writeln!(
        std::io::stderr(),
        "{name}: of {} texts, {} ran a script and made {} requests; cleaned, none did",
        texts.len(),
        control.len(),
        recorder.taken().len()
    );
}

#[test]
fn cleaned_html_runs_no_script_and_makes_no_request_without_the_other_layers() {
    let test = "cleaned_html_runs_no_script_and_makes_no_request_without_the_other_layers";
    let Some((page, browsers)) = page_and_browsers(test) else {
        return;
    };
    for browser in browsers {
        let recorder = Recorder::start();
        let addressed = |markup: &&str| addressed(markup, recorder.port);
        let texts: Vec<String> = SCRIPTS.iter().chain(REFERENCES).map(addressed).collect();
        assert_harmless(&browser, &page, &recorder, &texts, 40);
    }
}

/// Opens ten mails of the mailbox, one after the other, and returns how many were shown. A mail is only shown for a moment.
const OPEN_TEN: &str = r#"(async () => {
  const pause = (time) => new Promise((resolve) => setTimeout(resolve, time));
  const mail = document.getElementById("mail");
  let shown = 0;
  for (let index = FROM; index < FROM + 10; index += 1) {
    const row = () => document.querySelector(`[data-index="${index}"]`);
    const more = document.getElementById("more");
    while (!row() && !more.hidden) more.click();
    if (!row()) break;
    mail.replaceChildren();
    row().click();
    while (!mail.querySelector("h1")) await pause(10);
    await pause(150);
    shown += 1;
  }
  return shown;
})()"#;

/// Returns the HTML of each mail. All its URLs lead to the recorder.
fn html_of_mails(folder: &Path, port: u16) -> Vec<String> {
    let mut paths: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|it| it.unwrap().path())
        .collect();
    paths.sort();
    let url = format!("http://127.0.0.1:{port}/");
    paths
        .iter()
        .filter_map(|path| {
            let view = MailView::new(fs::read(path).unwrap(), SystemTime::UNIX_EPOCH);
            let html = view.bodies().iter().find_map(|body| body.html.clone())?;
            let local = html.replace("https://", &url).replace("http://", &url);
            Some(local.replace(&url.replace("http://", &url), &url))
        })
        .collect()
}

/// Public test vectors and phishing mails, which `tests/peers/vectors` collects for `.ci/peers`.
#[test]
fn public_vectors_and_phishing_mails_are_harmless_in_the_page() {
    let Some(folder) = std::env::var_os("EMBODY_VECTORS").map(PathBuf::from) else {
        return;
    };
    let test = "public_vectors_and_phishing_mails_are_harmless_in_the_page";
    let (page, browsers) = page_and_browsers(test).unwrap();
    for browser in browsers {
        let recorder = Recorder::start();
        let vectors = fs::read(folder.join("vectors.json")).unwrap();
        let texts: Vec<String> = serde_json::from_slice(&vectors).unwrap();
        assert_harmless(&browser, &page, &recorder, &texts, 30);

        let mails = html_of_mails(&folder.join("mails"), recorder.port);
        assert!(mails.len() >= 300, "{}", mails.len());
        let mut shown = 0;
        let mut mailbox = String::new();
        let hostile: Vec<String> = mails.iter().chain(&texts).cloned().collect();
        for html in &hostile {
            let mail = mail_of(html).replace("\nFrom ", "\n>From ");
            write!(mailbox, "From a@b Mon Jan  6 10:00:00 2020\n{mail}\n\n").unwrap();
        }
        let with_mailbox = with_files(&page, &[("mails.mbox", mailbox.as_bytes())]);
        let mut driver = browser.opened(&with_mailbox, IS_READY);
        let name = driver.name();
        driver.wait_for("document.querySelector('[data-index]') !== null");
        // The list of the mails is read in pieces.
        std::thread::sleep(SETTLED);
        recorder.taken();
        for from in (0..hostile.len()).step_by(10) {
            let opened = driver.value(&OPEN_TEN.replace("FROM", &from.to_string()));
            shown += opened.as_u64().unwrap();
        }
        std::thread::sleep(SETTLED);
        assert_eq!(recorder.taken(), Vec::<String>::new(), "{name}");
        assert_eq!(shown, hostile.len() as u64, "{name}");
        assert_eq!(
            driver.value("document.title"),
            Value::from("embody: open a mail")
        );
        driver.end_browser();
        // The control: some of the mails without the page.
        let some: Vec<&str> = mails.iter().take(40).map(String::as_str).collect();
        let control = browser.opened(&some.join("\n<hr>\n"), "true");
        std::thread::sleep(SETTLED);
        control.end_browser();
        let leaked = recorder.taken().len();
        assert!(leaked > 20, "{name}: the control made {leaked} requests");
        let _ = writeln!(
            std::io::stderr(),
            "{name}: {} phishing mails and {} texts made no request in the page; 40 of the mails made {leaked} without it",
            mails.len(),
            texts.len()
        );
    }
}
