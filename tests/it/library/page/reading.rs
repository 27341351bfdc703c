//! The page shows mail that is hard to show: long lists and names, wide or missing content, encrypted texts.

use std::fmt::Write as _;
use std::io::Write as _;

use serde_json::Value;

use super::{IS_READY, mail_of, page_and_browsers, with_files, with_mail};
use crate::common::page_driver::PageDriver;
use crate::common::pst::{Form, Message, Pst};
use crate::common::tnef::{Properties, Tnef, compressed};

/// Gives the page the width of a phone.
const NARROW: &str = "(() => { document.body.style.width = '390px'; })()";

const TEXT: &str = "document.getElementById('mail').innerText";

fn text_of(driver: &mut dyn PageDriver) -> String {
    driver.value(TEXT).as_str().unwrap().to_owned()
}

#[test]
fn long_list_of_recipients_is_folded_and_exchange_addresses_are_shown_as_names() {
    let test = "long_list_of_recipients_is_folded_and_exchange_addresses_are_shown_as_names";
    let Some((page, browsers)) = page_and_browsers(test) else {
        return;
    };
    let mut mail = "From: \"Roe, Jane\" <IMCEAEX-_O=ORG_OU=EXCHANGE+20ADMIN_CN=RECIPIENTS_CN=JROE@exchange.invalid>\n\
        Cc: /O=ORG/OU=EXCHANGE ADMIN/CN=RECIPIENTS/CN=0123456789abcdef0123456789abcdef-jdoe\nSubject: All\nTo: first@example.org"
        .to_owned();
    for number in 2..=200 {
        // An encoded comma is not a separator.
        write!(
            mail,
            ",\n =?utf-8?q?Person=2C_{number}?= <p{number}@example.org>"
        )
        .unwrap();
    }
    mail += "\n\nHello.\n";
    for browser in browsers {
        let mut driver = browser.opened(&with_mail(&page, mail.as_bytes()), IS_READY);
        let name = driver.name();
        let shown = text_of(&mut *driver);
        for expected in [
            "Roe, Jane\n",
            "and 195 more",
            "Person, 5 <p5@example.org>",
            "\njdoe\n",
            "Exchange address",
        ] {
            assert!(
                shown.contains(expected),
                "{name}: {expected} is not in {shown}"
            );
        }
        assert!(
            !shown.contains("p6@") && !shown.contains("RECIPIENTS"),
            "{name}: {shown}"
        );
        driver.value(
            "document.querySelectorAll('.fields details').forEach((it) => { it.open = true; })",
        );
        let unfolded = text_of(&mut *driver);
        for expected in [
            "Person, 200 <p200@example.org>",
            "/O=ORG/OU=EXCHANGE ADMIN/CN=RECIPIENTS/CN=JROE",
        ] {
            assert!(
                unfolded.contains(expected),
                "{name}: {expected} is not in {unfolded}"
            );
        }
    }
}

const WIDE: &str = "<div style=\"width: 600px\"><img src=\"https://www.example.org/a.png\" width=600 height=90 alt=\"Garden News\">\
    <a href=\"https://www.example.org/\"><img src=\"https://www.example.org/b.png\" alt=\"Buy now\"></a>\
    <img src=\"https://www.example.org/t.gif\" width=1 height=1 alt=\"pixel\"><p>Tulips.</div>";

#[test]
fn wide_html_is_scaled_to_the_window_and_scrolls_in_its_full_size() {
    let test = "wide_html_is_scaled_to_the_window_and_scrolls_in_its_full_size";
    let Some((page, browsers)) = page_and_browsers(test) else {
        return;
    };
    for browser in browsers {
        let mut driver = browser.opened(&with_mail(&page, mail_of(WIDE).as_bytes()), IS_READY);
        let button = "[...document.querySelectorAll('.views button')].find((it) => it.textContent === 'Full size')";
        let is_offered = format!("{button}.offsetParent !== null");
        // The window of the browser is wide enough.
        driver.wait_for("document.querySelector('.frame iframe').style.width !== ''");
        assert_eq!(driver.value(&is_offered), false, "{}", driver.name());
        driver.value(NARROW);
        driver.wait_for(&is_offered);
        let fits = "(() => { const [place, frame] = ['.frame', '.frame iframe'].map((it) => document.querySelector(it).getBoundingClientRect().width); \
            return place < 390 && Math.abs(place - frame) <= 3; })()";
        let scale = "Number(/scale\\((.*)\\)/.exec(document.querySelector('.frame iframe').style.transform)?.[1] ?? 1)";
        driver.wait_for(&format!("{scale} < 0.7 && {scale} > 0.4"));
        assert_eq!(driver.value(fits), true, "{}", driver.name());
        driver.value(&format!("{button}.click()"));
        driver.wait_for(&format!(
            "{scale} === 1 && document.querySelector('.frame').tabIndex === 0"
        ));
        let scrolls = "(() => { const it = document.querySelector('.frame'); it.scrollLeft = 1000; return it.scrollLeft > 200; })()";
        driver.wait_for(scrolls);
        driver.value(&format!("{button}.click()"));
        driver.wait_for(&format!("{scale} < 0.7"));
        // Plain text has no size.
        driver.value("[...document.querySelectorAll('.views button')].find((it) => it.textContent === 'Plain text').click()");
        assert_eq!(driver.value(&is_offered), false, "{}", driver.name());
    }
}

#[test]
fn alternative_text_is_shown_in_place_of_a_picture() {
    let test = "alternative_text_is_shown_in_place_of_a_picture";
    let Some((page, browsers)) = page_and_browsers(test) else {
        return;
    };
    for browser in browsers {
        let mut driver = browser.opened(&with_mail(&page, mail_of(WIDE).as_bytes()), IS_READY);
        let shown = driver.value(
            "(() => { const mail = new DOMParser().parseFromString(document.querySelector('.frame iframe').srcdoc, 'text/html'); \
             return [...mail.querySelectorAll('span')].map((it) => `${it.textContent} ${it.style.display} ${it.closest('a') !== null}`); })()",
        );
        let expected = serde_json::json!([
            "Garden News inline-block false",
            "Buy now inline-block true"
        ]);
        assert_eq!(shown, expected, "{}", driver.name());
        driver.value("[...document.querySelectorAll('.views button')].find((it) => it.textContent === 'Plain text').click()");
        let text = text_of(&mut *driver);
        assert!(
            text.contains("Garden News Buy now"),
            "{}: {text}",
            driver.name()
        );
    }
}

#[test]
fn long_names_of_files_and_folders_keep_their_ends() {
    let test = "long_names_of_files_and_folders_keep_their_ends";
    let Some((page, browsers)) = page_and_browsers(test) else {
        return;
    };
    let long = format!("Report_{}.pdf", "of_the_year_".repeat(7));
    let mut parts = String::new();
    for name in [
        long.as_str(),
        "Quarterly_report_of_the_garden_department_2024.docx",
        "a.pdf",
    ] {
        write!(parts, "--b\nContent-Type: application/octet-stream\nContent-Disposition: attachment; filename=\"{name}\"\n\nx\n").unwrap();
    }
    let mail = format!(
        "Subject: x\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n{parts}--b--\n"
    );
    let mut pst = Pst::in_memory(Form {
        version: 23,
        encoding: 1,
    });
    let mut above = None;
    for name in [
        "Personal folders of the year 2019",
        "Inbox",
        "Customers in the north and the east",
    ] {
        above = Some(pst.folder(above, name, &[]));
    }
    pst.folder(
        above,
        "Gardens Ltd",
        &[Message::mail("one", "x"), Message::mail("two", "x")],
    );
    let pst = pst.bytes();
    for browser in browsers {
        let mut driver = browser.opened(&with_mail(&page, mail.as_bytes()), IS_READY);
        let name = driver.name();
        driver.value(NARROW);
        let ends = driver.value("[...document.querySelectorAll('.part .tail')].map((it) => `${it.getClientRects().length} ${it.textContent}`)");
        assert_eq!(
            ends,
            serde_json::json!(["1 ear_.pdf", "1 2024.docx", "1 a.pdf"]),
            "{name}"
        );
        let titles =
            driver.value("[...document.querySelectorAll('.part .name')].map((it) => it.title)");
        assert_eq!(titles[0], Value::from(long.as_str()), "{name}");

        let mut driver = browser.opened(&with_files(&page, &[("archive.pst", &pst)]), IS_READY);
        driver.value(NARROW);
        driver.wait_for("document.querySelectorAll('.folder').length === 2");
        let folder = driver.value(
            "(() => { const it = document.querySelector('.folder'); const last = it.lastElementChild; \
             const inside = last.getBoundingClientRect().right <= it.closest('.row').getBoundingClientRect().right; \
             return [last.textContent, last.scrollWidth <= last.clientWidth + 1 && inside, it.title.endsWith('the east / Gardens Ltd'), it.firstElementChild.scrollWidth > it.firstElementChild.clientWidth]; })()",
        );
        assert_eq!(
            folder,
            serde_json::json!([" / Gardens Ltd", true, true, true]),
            "{name}"
        );
    }
}

#[test]
fn page_says_why_a_text_or_a_sender_is_not_there() {
    let test = "page_says_why_a_text_or_a_sender_is_not_there";
    let Some((page, browsers)) = page_and_browsers(test) else {
        return;
    };
    let pgp = "From: a@b\nMIME-Version: 1.0\nContent-Type: multipart/encrypted; protocol=\"application/pgp-encrypted\"; boundary=b\n\n\
        --b\nContent-Type: application/pgp-encrypted\n\nVersion: 1\n\n--b\nContent-Type: application/octet-stream; name=encrypted.asc\n\n\
        -----BEGIN PGP MESSAGE-----\n\nhQEMA\n-----END PGP MESSAGE-----\n--b--\n";
    let smime = "From: a@b\nMIME-Version: 1.0\nContent-Type: application/pkcs7-mime; smime-type=enveloped-data; name=smime.p7m\n\nx\n";
    let inline = "From: a@b\n\n-----BEGIN PGP MESSAGE-----\n\nhQEMA\n-----END PGP MESSAGE-----\n";
    let rtf = Properties::new().binary(0x1009, &compressed(br"{\rtf1\ansi {\b Hello} there\par}"));
    let winmail = Tnef::new().class("IPM.Note").properties(rtf).bytes();
    let one = "From: a@b\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\nHello.\n\
        --b\nContent-Type: message/external-body; access-type=URL;\n URL=\"https://www.example.org/wine.txt\"\n\nContent-Type: text/plain\n\n--b--\n";
    let hollow = "From: a@b\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\nHello.\n\
        --b\nContent-Type: application/pdf; name=a.pdf\nContent-Disposition: attachment\n\n\n--b--\n";
    let emlx = format!(
        "{}\n{hollow}<?xml version=\"1.0\"?>\n<plist/>\n",
        hollow.len()
    );
    // A mail that was attached as an ordinary file, and a file without an address.
    let attached = "From: a@b\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\nHello.\n\
        --b\nContent-Type: application/octet-stream; name=old.eml\nContent-Disposition: attachment\n\nSubject: old\n\nx\n\
        --b\nContent-Type: message/external-body; access-type=mail-server; server=\"list@example.org\"\n\nContent-Type: text/plain\n\nget\n--b--\n";
    for browser in browsers {
        for (name, bytes, expected, unexpected) in [
            (
                "pgp.eml",
                pgp.as_bytes(),
                vec!["is encrypted (OpenPGP)", "Save the mail, and open it"],
                vec!["no text", "Nothing is missing"],
            ),
            (
                "smime.eml",
                smime.as_bytes(),
                vec!["is encrypted (S/MIME)", "Save the mail, and open it"],
                vec!["no text", "Nothing is missing"],
            ),
            (
                "inline.eml",
                inline.as_bytes(),
                vec!["is encrypted (OpenPGP)", "BEGIN PGP MESSAGE"],
                vec!["no text", "Nothing is missing"],
            ),
            (
                "winmail.dat",
                &winmail,
                vec![
                    "the sender is in the mail that it came with",
                    "Hello there",
                    "The text with its formatting",
                    "message.rtf",
                ],
                vec![
                    "attachments",
                    "1 attachment",
                    "Nothing is missing",
                    "Save all",
                ],
            ),
            (
                "one.eml",
                one.as_bytes(),
                vec!["1 file is missing", "in place of this file"],
                vec!["these files", "the files"],
            ),
            (
                "empty.eml",
                b"",
                vec!["empty.eml is empty", "Get another copy"],
                vec!["mailbox"],
            ),
            (
                "hollow.eml",
                hollow.as_bytes(),
                vec!["1 attachment is empty", "another copy of the mail"],
                vec!["Nothing is missing"],
            ),
            (
                "1.partial.emlx",
                emlx.as_bytes(),
                vec!["1 attachment is empty", "the directory Attachments"],
                vec!["Nothing is missing"],
            ),
            (
                "attached.eml",
                attached.as_bytes(),
                vec![
                    "Open",
                    "1 part of the mail stays as it is",
                    "does not say where the file is",
                ],
                vec!["Nothing is missing"],
            ),
        ] {
            let mut driver = browser.opened(&with_files(&page, &[(name, bytes)]), IS_READY);
            driver
                .value("document.querySelectorAll('details').forEach((it) => { it.open = true; })");
            let text = text_of(&mut *driver);
            for it in expected {
                assert!(
                    text.contains(it),
                    "{} {name}: {it} is not in {text}",
                    driver.name()
                );
            }
            for it in unexpected {
                assert!(
                    !text.contains(it),
                    "{} {name}: {it} is in {text}",
                    driver.name()
                );
            }
        }
    }
}

#[test]
fn list_shows_the_damage_of_the_file_and_old_forms_of_names() {
    let test = "list_shows_the_damage_of_the_file_and_old_forms_of_names";
    let Some((page, browsers)) = page_and_browsers(test) else {
        return;
    };
    let mail = |from: &str| {
        format!("From a@b Mon Jan  6 10:00:00 2020\nFrom: {from}\nSubject: x\n\nHello.\n\n")
    };
    let mbox = [
        "ann@example.org (Ann Example)",
        "ben at example.org (Ben Example)",
        "Cat <cat@example.org>",
    ]
    .map(mail)
    .concat();
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
    packed.write_all(mbox.as_bytes()).unwrap();
    let mut packed = packed.finish().unwrap();
    packed.truncate(packed.len() - 12);
    for browser in browsers {
        for (name, bytes, is_damaged) in [
            ("In.mbox", mbox.as_bytes(), false),
            ("In.mbox.gz", &packed, true),
        ] {
            let mut driver = browser.opened(&with_files(&page, &[(name, bytes)]), IS_READY);
            let list = "document.getElementById('lists').innerText";
            let text = driver.value(list).as_str().unwrap().to_owned();
            let browser = driver.name();
            for person in ["Ann Example", "Ben Example", "Cat"] {
                assert!(text.contains(&format!("{person}\n")), "{browser}: {text}");
            }
            assert_eq!(
                text.contains("The compressed file is damaged"),
                is_damaged,
                "{browser} {name}: {text}"
            );
        }
    }
}

#[test]
fn text_from_right_to_left_begins_at_the_right() {
    let test = "text_from_right_to_left_begins_at_the_right";
    let Some((page, browsers)) = page_and_browsers(test) else {
        return;
    };
    let html = mail_of("<html dir=rtl><body><p>שלום</p></body></html>");
    let text =
        "Subject: x\nMIME-Version: 1.0\nContent-Type: text/plain; charset=utf-8\n\nשלום.\nHello.\n";
    for browser in browsers {
        let mut driver = browser.opened(&with_mail(&page, html.as_bytes()), IS_READY);
        let has_direction =
            "document.querySelector('#mail iframe').srcdoc.includes('<div dir=\"rtl\">')";
        assert_eq!(driver.value(has_direction), true, "{}", driver.name());
        let mut driver = browser.opened(&with_mail(&page, text.as_bytes()), IS_READY);
        // Distance of the first line and of the second line from the left edge.
        let lines = "(() => {
            const text = document.querySelector('#mail .body pre').firstChild;
            const left = (from, to) => {
              const range = document.createRange();
              range.setStart(text, from);
              range.setEnd(text, to);
              return range.getBoundingClientRect().left;
            };
            return left(0, 4) - left(6, 11);
        })()";
        let distance = driver.value(lines).as_f64().unwrap();
        assert!(distance > 100.0, "{}: {distance}", driver.name());
    }
}
