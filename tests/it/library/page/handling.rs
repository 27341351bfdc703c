//! What a person does in the page: reading mail, choosing files, saving.

use std::time::SystemTime;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use embody::view::MailView;

use super::{IS_READY, document, mail_of, page_and_browsers, shown, with_files, with_mail};

#[test]
fn page_shows_the_mail_its_attachments_and_what_is_missing() {
    let test = "page_shows_the_mail_its_attachments_and_what_is_missing";
    let Some((page, browsers)) = page_and_browsers(test) else {
        return;
    };
    let mail = "From: Ada <ada@example.org>\nTo: b@example.org\nSubject: =?utf-8?q?Caf=C3=A9?= <b>menu</b>\nMIME-Version: 1.0\n\
        Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: text/plain\n\nHello there.\n\
        --b\nContent-Type: application/pdf; name=\"menu.pdf\"\nContent-Disposition: attachment\n\n%PDF-1.4\n\
        --b\nContent-Type: message/external-body; access-type=URL;\n URL=\"https://www.example.org/wine-list.txt\"\n\n\
        Content-Type: text/plain\n\n--b--\n";
    for browser in browsers {
        let dom = shown(&browser, &with_mail(&page, mail.as_bytes()));
        for expected in [
            "<h1>Café &lt;b&gt;menu&lt;/b&gt;</h1>",
            "Ada &lt;ada@example.org&gt;",
            "Hello there.",
            "menu.pdf",
            "1 file is missing",
            "wine-list.txt",
            "embody filter --follow all --fetch https",
            "data-ready",
        ] {
            assert!(dom.contains(expected), "{expected} is not in the page");
        }
        let (_, shown) = dom.split_once("id=\"problems\"").unwrap();
        assert!(
            shown.starts_with(" role=\"alert\"></div>"),
            "{}",
            &shown[..200]
        );
    }
}

#[test]
fn html_has_a_frame_of_its_height_and_wrapped_links_show_their_targets() {
    let test = "html_has_a_frame_of_its_height_and_wrapped_links_show_their_targets";
    let Some((page, browsers)) = page_and_browsers(test) else {
        return;
    };
    let link = "https://eur01.safelinks.protection.outlook.com/?url=https%3A%2F%2Fwww.example.org%2Fa&amp;data=05";
    // The frame is white, so a rule for dark windows must not apply in it.
    let style = "<style>@media (prefers-color-scheme: dark) { p { color: white } }</style>";
    let line = format!("{style}<p><a href=\"{link}\">agenda</a></p>");
    for browser in browsers {
        let mail = mail_of(&line);
        let mut driver = browser.opened(&with_mail(&page, mail.as_bytes()), IS_READY);
        let height = "document.querySelector('.body iframe').clientHeight";
        driver.wait_for(&format!("{height} > 20 && {height} < 150"));
        let dom = document(&mut *driver);
        for expected in [
            "title=&quot;https://www.example.org/a (through Microsoft Safe Links)&quot;",
            "<span class=\"target\">https://www.example.org/a</span>",
            "1 link leads through another server",
        ] {
            // Only some browsers write the quotation marks in an attribute as references.
            let is_there =
                dom.contains(expected) || dom.contains(&expected.replace("&quot;", "\""));
            assert!(is_there, "{}: {expected}", driver.name());
        }
        let source = "document.querySelector('.body iframe').srcdoc";
        let found = format!("[/color: white/, /prefers-color/].map((it) => it.test({source}))");
        assert_eq!(driver.value(&found), serde_json::json!([true, false]));
        // The text of the file that is in the page is not shown.
        assert_eq!(
            driver.value("document.querySelector('script.mail').offsetHeight"),
            0
        );

        let mail = mail_of(&line.repeat(50));
        let mut driver = browser.opened(&with_mail(&page, mail.as_bytes()), IS_READY);
        driver.wait_for(&format!("{height} > 1500 && {height} < 4000"));
        driver.wait_for("document.querySelector('.measure') === null");
    }
}

#[test]
fn part_of_a_mail_that_was_sent_in_several_mails_is_not_called_whole() {
    let test = "part_of_a_mail_that_was_sent_in_several_mails_is_not_called_whole";
    let Some((page, browsers)) = page_and_browsers(test) else {
        return;
    };
    let mail =
        "From: a@b\nContent-Type: message/partial; id=\"x@b\"; number=2; total=3\n\nmiddle\n";
    for browser in browsers {
        let dom = shown(&browser, &with_mail(&page, mail.as_bytes()));
        assert!(
            dom.contains("box warn\">This mail is only one part"),
            "{dom}"
        );
        assert!(!dom.contains("class=\"box good\""), "{dom}");
    }
}

#[test]
fn mailbox_is_listed_and_hostile_nesting_is_shown_as_text() {
    let test = "mailbox_is_listed_and_hostile_nesting_is_shown_as_text";
    let Some((page, browsers)) = page_and_browsers(test) else {
        return;
    };
    let mbox = "From a@b Mon Jan  6 10:00:00 2020\nFrom: Ada <a@b>\nSubject: first\n\nx\n\nFrom a@b Mon Jan  6 10:00:00 2020\nFrom: Bob <b@b>\nSubject: second\n\ny\n";
    for browser in browsers {
        let dom = shown(
            &browser,
            &with_files(&page, &[("In.mbox", mbox.as_bytes())]),
        );
        assert!(dom.contains("2 mails") && dom.contains(">first<") && dom.contains(">second<"));

        let deep = format!("{}deep{}", "<div>".repeat(20_000), "</div>".repeat(20_000));
        let dom = shown(&browser, &with_mail(&page, mail_of(&deep).as_bytes()));
        assert!(dom.contains("nested too deeply") && dom.contains("data-ready"));
        assert!(dom.contains(">deep<") || dom.contains("\n\ndeep"), "{dom}");
    }
}

/// Chooses a file for the first missing one, saves the mail, and returns its bytes in base64.
const FILL: &str = r#"(async () => {
  const later = (condition) => new Promise((resolve) => {
    const wait = () => (condition() ? resolve() : setTimeout(wait, 20));
    wait();
  });
  document.querySelector(".reference button").click();
  const files = new DataTransfer();
  files.items.add(new File(["Merlot\n"], "wine.txt", { type: "text/plain" }));
  const chooser = document.getElementById("filler");
  chooser.files = files.files;
  chooser.dispatchEvent(new Event("change"));
  await later(() => document.getElementById("status").textContent.includes("wine.txt"));
  let saved = null;
  const made = URL.createObjectURL;
  URL.createObjectURL = (blob) => { saved = blob; return made(blob); };
  document.querySelector(".tools .primary").click();
  await later(() => saved !== null);
  const bytes = new Uint8Array(await saved.arrayBuffer());
  return btoa(String.fromCharCode(...bytes));
})()"#;

#[test]
fn saved_mail_contains_the_chosen_file_and_has_the_bytes_of_the_library() {
    let test = "saved_mail_contains_the_chosen_file_and_has_the_bytes_of_the_library";
    let Some((page, browsers)) = page_and_browsers(test) else {
        return;
    };
    let mail = "Subject: menu\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\nHello.\n\
        --b\nContent-Type: message/external-body; access-type=URL;\n URL=\"https://www.example.org/wine.txt\"\n\n\
        Content-Type: text/plain\n\n--b--\n";
    for browser in browsers {
        let mut driver = browser.opened(&with_mail(&page, mail.as_bytes()), IS_READY);
        let saved = STANDARD
            .decode(driver.value(FILL).as_str().unwrap())
            .unwrap();
        let mut view = MailView::new(mail, SystemTime::now());
        view.fill(0, "Merlot\n", Some("text/plain")).unwrap();
        assert_eq!(
            String::from_utf8_lossy(&saved),
            String::from_utf8_lossy(&view.repaired())
        );
        assert!(!String::from_utf8_lossy(&saved).contains("external-body"));
    }
}
