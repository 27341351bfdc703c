//! The page for people who use a keyboard or a screen reader.

use std::fs;

use serde_json::Value;

use super::{IS_READY, page_and_browsers, with_files};
use crate::common::page_driver::{Key, PageDriver};

/// A mailbox whose first mail has everything that the page shows of a mail.
const MAILBOX: &str = "From a@b Mon Jan  6 10:00:00 2020\nFrom: Ada <ada@example.org>\nTo: Bob <bob@example.org>\nSubject: Menu\n\
    Date: Mon, 6 Jan 2020 10:00:00 +0000\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n\
    --b\nContent-Type: text/html\n\n<p>Hello <a href=\"https://www.example.org/\">there</a>\
    <img src=\"https://www.example.org/a.png\" width=100 height=100>\
    <img src=\"https://www.example.org/t.gif\" width=1 height=1>\n\
    --b\nContent-Type: application/pdf; name=\"menu.pdf\"\nContent-Disposition: attachment\n\n%PDF-1.4\n\
    --b\nContent-Type: message/rfc822\n\nFrom: Cid <cid@example.org>\nSubject: Inner\n\nInner text.\n\
    --b\nContent-Type: message/external-body; access-type=URL;\n URL=\"https://www.example.org/wine.txt\"\n\n\
    Content-Type: text/plain\n\n--b--\n\n\
    From b@b Mon Jan  6 10:00:00 2020\nFrom: Bob <b@b>\nSubject: Second\n\nPlain text.\n";

/// Returns the name of the element with the focus, as a screen reader says it.
const FOCUSED: &str = r#"(() => {
  const element = document.activeElement;
  return element.getAttribute("aria-label") ?? element.title ?? "" ? (element.getAttribute("aria-label") || element.textContent || element.title).trim() : (element.textContent || element.id).trim();
})()"#;

/// Presses Tab until the focus is on the element with this name. Returns the names on the way.
fn tab_to(driver: &mut dyn PageDriver, wanted: &str) -> Vec<String> {
    let mut names = Vec::new();
    for _ in 0..60 {
        driver.press(Key::Tab);
        let name = driver.value(FOCUSED).as_str().unwrap().to_owned();
        names.push(name.clone());
        if name.starts_with(wanted) {
            return names;
        }
    }
    panic!("{}: no {wanted:?} in {names:#?}", driver.name());
}

#[test]
fn all_functions_of_the_page_can_be_used_with_the_keyboard_alone() {
    let test = "all_functions_of_the_page_can_be_used_with_the_keyboard_alone";
    let Some((page, browsers)) = page_and_browsers(test) else {
        return;
    };
    for browser in browsers {
        let page = with_files(&page, &[("In.mbox", MAILBOX.as_bytes())]);
        let mut opened = browser.opened(&page, IS_READY);
        let driver = &mut *opened;
        let name = driver.name();
        let heading =
            |text: &str| format!("document.querySelector('#mail h1')?.textContent === '{text}'");
        tab_to(driver, "search");
        driver.press(Key::ArrowDown);
        driver.press(Key::Enter);
        driver.wait_for(&heading("Menu"));
        // The focus is now at the mail, and Tab reaches every button of it, but not the list before it.
        let names = tab_to(driver, "Save menu.pdf");
        for wanted in [
            "All fields of the header",
            "Save the mail",
            "Save all attachments",
            "Print",
            "Choose the file for wine.txt",
            "The program embody can fetch",
            "1 picture from the web",
            "Formatted",
            "Plain text",
        ] {
            let found = names.iter().any(|it| it.starts_with(wanted));
            assert!(found, "{name}: {wanted} is not in {names:#?}");
        }
        tab_to(driver, "Open Inner.eml");
        driver.press(Key::Enter);
        driver.wait_for(&heading("Inner"));
        tab_to(driver, "In: Menu");
        driver.press(Key::Enter);
        driver.wait_for(&heading("Menu"));
        tab_to(driver, "Plain text");
        driver.press(Key::Enter);
        driver.wait_for("document.querySelector('.body pre')?.textContent.includes('Hello there')");
        let mut driver = browser.opened(&page, IS_READY);
        tab_to(&mut *driver, "Close In.mbox");
        driver.press(Key::Enter);
        driver.wait_for("!document.getElementById('start').hidden");
        assert_eq!(driver.value("document.activeElement.id"), "choose");
    }
}

/// Runs axe, and returns its findings.
const AXE: &str = r#"(async () => {
  const { violations } = await axe.run(document, { iframes: false, resultTypes: ["violations"] });
  return violations.map(({ id, impact, nodes }) => `${impact} ${id}: ${nodes.map((node) => node.html.slice(0, 120) + " " + node.failureSummary).join("; ")}`);
})()"#;

/// `EMBODY_AXE` is the script of axe-core, a test for web pages, which `.ci/peers` installs.
#[test]
fn axe_has_no_finding_on_the_page_in_light_and_dark() {
    let Some(axe) = std::env::var_os("EMBODY_AXE") else {
        return;
    };
    let axe = fs::read_to_string(axe).unwrap();
    let test = "axe_has_no_finding_on_the_page_in_light_and_dark";
    let (page, browsers) = page_and_browsers(test).unwrap();
    for browser in browsers {
        let with_mailbox = with_files(&page, &[("In.mbox", MAILBOX.as_bytes())]);
        let broken: &[(&str, &[u8])] = &[("note.txt", b"Dear all,\n")];
        for (view, page, script) in [
            ("start", page.clone(), "0"),
            ("list", with_mailbox.clone(), "0"),
            (
                "mail",
                with_mailbox,
                "document.querySelector('#mails button').click()",
            ),
            ("problem", with_files(&page, broken), "0"),
        ] {
            let mut driver = browser.opened(&page, IS_READY);
            driver.value(script);
            if view == "mail" {
                driver.wait_for("document.querySelector('#mail .parts') !== null");
            }
            driver.value(&format!("(() => {{ document.querySelectorAll('details').forEach((it) => it.open = true); {axe}\n return true; }})()"));
            for scheme in ["light", "dark"] {
                // Buttons change their colours gradually.
                driver.value(&format!(
                    "(() => {{ document.documentElement.style.colorScheme = '{scheme}'; document.getAnimations().forEach((it) => it.finish()); }})()"
                ));
                let found = driver.value(AXE);
                assert_eq!(
                    found,
                    Value::Array(Vec::new()),
                    "{} {view} {scheme}: {found:#}",
                    driver.name()
                );
            }
        }
    }
}
