//! `--follow winmail`: unpacking of a `winmail.dat`.

use std::process::Command;

use base64::Engine as _;

use crate::common::browser::{chromium, png, shown};
use crate::common::filter::{Ran, filter};
use crate::common::mail::crlf;
use crate::common::programs::{embody, skipped};
use crate::common::tnef::{
    APPOINTMENT, MARCH, MEETING, PACIFIC, Properties, SERIES, Tnef, compressed, delivery_report,
    from_html, hex, series, usual,
};

const FOLLOW: &str = "--follow winmail";

fn encoded(bytes: &[u8]) -> String {
    let text = base64::engine::general_purpose::STANDARD.encode(bytes);
    let lines: Vec<&str> = text
        .as_bytes()
        .chunks(76)
        .map(|line| str::from_utf8(line).unwrap())
        .collect();
    lines.join("\n")
}

fn part(tnef: &[u8]) -> String {
    format!(
        "Content-Type: application/ms-tnef; name=\"winmail.dat\"\nContent-Transfer-Encoding: base64\n\n{}\n",
        encoded(tnef)
    )
}

/// Returns a mail with a text and a `winmail.dat`.
fn mail(tnef: &[u8]) -> String {
    format!(
        "Subject: x\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: text/plain\n\n\
         Hello world\n--b\n{}--b--\n",
        part(tnef)
    )
}

/// Returns the unpacked mail. Asserts that a second run changes nothing.
fn opened(mail: &str) -> (String, Ran) {
    let ran = filter(FOLLOW, mail.as_bytes());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let again = filter(FOLLOW, &ran.stdout);
    assert_eq!(
        String::from_utf8_lossy(&again.stdout),
        String::from_utf8_lossy(&ran.stdout)
    );
    (String::from_utf8(ran.stdout.clone()).unwrap(), ran)
}

#[test]
fn winmail_with_html_pictures_files_and_a_message_becomes_parts_next_to_the_text() {
    let (text, ran) = opened(&mail(&usual()));
    assert_eq!(ran.column("outcome"), ["expanded"], "{}", ran.stderr);
    assert_eq!(ran.column("kind"), ["tnef"]);
    assert!(
        ran.column("detail")[0].contains("categories"),
        "{}",
        ran.stderr
    );
    assert!(!text.contains("ms-tnef"), "{text}");
    let places = [
        "Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: multipart/alternative;",
        "\nContent-Type: text/plain\n\nHello world\n--=_embody_",
        "\nContent-Type: multipart/related;",
        "\nContent-Type: text/html",
        "<html><body>Hello <b>world</b> <img src=\"cid:p1@x\"></body></html>\n--=_embody_",
        "\nContent-Type: image/png\nContent-Transfer-Encoding: base64\nContent-Disposition: inline;\n filename=\"p.png\"\nContent-ID: <p1@x>\n\niVBORw0KGgpwaWN0dXJl\n--=_embody_",
        "--\n--b\nContent-Type: application/pdf\n",
        "\nJVBERi0xLjQgZmlsZQ==\n--b\nContent-Type: message/rfc822\nContent-Disposition: attachment;\n filename=\"the inner one.eml\"\n\nFrom: ",
        "<anna@example.org>\nDate: Sun, 9 Sep 2001 01:46:40 ",
        "\nSubject: the inner one\nMIME-Version: 1.0\nContent-Type: multipart/mixed;",
        "\n\nInner text.\n--=_embody_",
        "filename=\"inner.txt\"\n\naW5uZXIgZmlsZQ0K\n--=_embody_",
        "--\n--b--\n",
    ];
    let mut rest = text.as_str();
    for place in places {
        let at = rest
            .find(place)
            .unwrap_or_else(|| panic!("{place:?} is not in\n{rest}\nof\n{text}"));
        rest = &rest[at + place.len()..];
    }
    assert_eq!(rest, "");
    // A mail with CRLF has the same result, with CRLF.
    let crlf = filter(FOLLOW, mail(&usual()).replace('\n', "\r\n").as_bytes());
    assert_eq!(
        String::from_utf8(crlf.stdout).unwrap(),
        text.replace('\n', "\r\n")
    );
}

#[test]
fn winmail_without_the_option_stays_and_the_survey_names_the_command() {
    let mail = mail(&usual());
    filter("", mail.as_bytes()).gives(mail.as_bytes());
    let folder = tempfile::tempdir().unwrap();
    let (old, new) = (
        folder.path().join("old.mbox"),
        folder.path().join("new.mbox"),
    );
    std::fs::write(&old, format!("From a@b Thu Jan  1 00:00:00 2026\n{mail}\n")).unwrap();
    let said = |arguments: &[&str]| {
        let mut program = embody();
        let output = program.args(arguments).arg(&old).output().unwrap();
        String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap()
    };
    let text = said(&["inspect"]);
    assert!(text.contains("winmail.dat of Outlook"), "{text}");
    let text = said(&["convert", "--output", new.to_str().unwrap()]);
    assert!(text.contains("1 changed"), "{text}");
    assert!(!std::fs::read_to_string(&new).unwrap().contains("ms-tnef"));
    // `compare` accepts the changes that `convert` made.
    let mut program = embody();
    let output = program.arg("compare").arg(&old).arg(&new).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(
        text.contains("1 message with winmail.dat or another packed part opened"),
        "{text}"
    );
    std::fs::remove_file(&new).unwrap();
    let text = said(&[
        "convert",
        "--follow",
        "-winmail",
        "--output",
        new.to_str().unwrap(),
    ]);
    assert!(text.contains("0 changed"), "{text}");
}

#[test]
fn winmail_that_is_damaged_stays_next_to_what_is_readable() {
    let whole = usual();
    let cut = &whole[..whole.len() - 200];
    let (text, ran) = opened(&mail(cut));
    assert_eq!(ran.column("outcome"), ["expanded"], "{}", ran.stderr);
    assert!(
        ran.column("detail")[0].contains("the end of the file is missing"),
        "{}",
        ran.stderr
    );
    assert!(text.contains("iVBORw0KGgpwaWN0dXJl"), "{text}");
    assert!(text.contains(&part(cut)), "{text}");
    let again = filter(FOLLOW, text.as_bytes());
    assert_eq!(
        again.column("reason"),
        ["already-in-mail"],
        "{}",
        again.stderr
    );
    let nothing = mail(b"\x78\x9f\x3e\x22\x01\0\x01");
    filter(FOLLOW, nothing.as_bytes()).leaves(nothing.as_bytes(), &["damaged-file"]);
    let other = mail(b"not TNEF at all");
    filter(FOLLOW, other.as_bytes()).leaves(other.as_bytes(), &["damaged-file"]);
}

#[test]
fn winmail_without_its_content_stays_and_says_why() {
    let note = || Tnef::new().class("IPM.Note");
    let says = Properties::new().text(0x0037, "plan").long(0x0e1b, 1);
    let blob = vec![7; 2200];
    for (tnef, reason, why) in [
        (note(), "no-counterpart", "no text and no attachment"),
        (
            note().attribute(1, 0x0006_9055, &blob),
            "no-counterpart",
            "an attribute that embody does not know",
        ),
        (
            note().attribute(1, 0, &blob),
            "damaged-file",
            "longer than its kind allows",
        ),
        (
            note().properties(says),
            "damaged-file",
            "says that it has attachments, but contains none",
        ),
    ] {
        let whole = mail(&tnef.bytes());
        filter(FOLLOW, whole.as_bytes()).leaves(whole.as_bytes(), &[reason]);
        let detail = filter(FOLLOW, whole.as_bytes()).column("detail");
        assert!(detail[0].contains(why), "{detail:?}");
    }
    // The attachment next to the unknown attribute comes out, and the file stays next to it.
    let beside = note()
        .file("a.bin", b"\0\x01\x02")
        .attribute(1, 0x0006_9055, &blob)
        .bytes();
    let (text, ran) = opened(&mail(&beside));
    assert_eq!(ran.column("outcome"), ["expanded"]);
    assert!(
        ran.column("detail")[0].contains("does not know"),
        "{}",
        ran.stderr
    );
    assert!(
        text.contains("AAEC") && text.contains(&part(&beside)),
        "{text}"
    );
}

#[test]
fn winmail_with_a_contact_stays_and_says_why() {
    let contact = Tnef::new().class("IPM.Contact").bytes();
    let mail = mail(&contact);
    filter(FOLLOW, mail.as_bytes()).leaves(mail.as_bytes(), &["no-counterpart"]);
}

#[test]
fn winmail_in_a_signed_mail_is_not_touched() {
    let mail = format!(
        "MIME-Version: 1.0\nContent-Type: multipart/signed; boundary=s; protocol=\"application/pgp-signature\"\n\n--s\n{}\n--s\n\
         Content-Type: application/pgp-signature\n\nx\n--s--\n",
        mail(&usual())
    );
    filter(FOLLOW, mail.as_bytes()).leaves(mail.as_bytes(), &["signed"]);
}

#[test]
fn winmail_that_is_the_whole_mail_becomes_its_body() {
    let tnef = Tnef::new()
        .class("IPM.Note")
        .properties(Properties::new().text(0x1000, "Only text.\r\n"))
        .bytes();
    let mail = format!("Subject: x\nMIME-Version: 1.0\n{}", part(&tnef));
    let (text, _) = opened(&mail);
    assert_eq!(
        text,
        "Subject: x\nMIME-Version: 1.0\nContent-Type: text/plain\n\nOnly text.\n\n"
    );
    // With another type, the part is recognized by its first bytes.
    let (text, _) = opened(&mail.replace("application/ms-tnef", "application/octet-stream"));
    assert!(
        text.ends_with("Content-Type: text/plain\n\nOnly text.\n\n"),
        "{text}"
    );
}

#[test]
fn winmail_whose_content_is_in_the_mail_goes_and_nothing_comes() {
    let tnef = Tnef::new()
        .class("IPM.Note")
        .properties(Properties::new().text(0x1000, "Hello  world"))
        .file("a.bin", b"\0\x01\x02");
    let attached =
        "Content-Type: application/octet-stream\nContent-Transfer-Encoding: base64\n\nAAEC\n";
    let whole = mail(&tnef.bytes()).replace("--b--", &format!("--b\n{attached}--b--"));
    let (text, ran) = opened(&whole);
    assert!(ran.column("detail")[0].contains("the mail already contains"));
    assert_eq!(
        text,
        format!(
            "Subject: x\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: text/plain\n\n\
             Hello world\n--b\n{attached}--b--\n"
        )
    );
}

#[test]
fn winmail_twice_in_a_mail_is_opened_part_by_part() {
    let html = |text: &str| {
        Tnef::new()
            .class("IPM.Note")
            .properties(Properties::new().binary(0x1013, format!("<p>{text}</p>").as_bytes()))
            .file(&format!("{text}.bin"), text.as_bytes())
            .bytes()
    };
    let two = |one: &[u8], other: &[u8]| {
        let whole = mail(one);
        whole.replace("--b--", &format!("--b\n{}--b--", part(other)))
    };
    let (text, ran) = opened(&two(&html("one"), &html("two")));
    assert_eq!(
        ran.column("outcome"),
        ["expanded", "expanded"],
        "{}",
        ran.stderr
    );
    assert_eq!(text.matches("multipart/alternative").count(), 1, "{text}");
    // After the first part was unpacked, the mail contains HTML.
    assert!(
        text.contains("filename=\"message.html\"\n\n<p>two</p>\n--b\n"),
        "{text}"
    );
    let (text, ran) = opened(&two(&html("one"), &html("one")));
    assert_eq!(
        ran.column("outcome"),
        ["expanded", "expanded"],
        "{}",
        ran.stderr
    );
    assert_eq!(text.matches("<p>one</p>").count(), 1, "{text}");
    assert_eq!(text.matches("one.bin").count(), 1, "{text}");
}

#[test]
fn winmail_with_a_meeting_becomes_a_calendar() {
    let person = |kind, name: &str| {
        Properties::new()
            .long(0x0c15, kind)
            .text(0x3001, name)
            .text(0x39fe, &format!("{name}@example.org"))
    };
    let tnef = Tnef::new()
        .class("IPM.Schedule.Meeting.Request")
        .properties(
            Properties::new()
                .text(0x0037, "Plans; and more")
                .text(0x0042, "Anna")
                .text(0x5d02, "anna@example.org")
                .time(0x0039, 1_000_000_000)
                .named_time(APPOINTMENT, 0x820d, 1_000_003_600)
                .named_time(APPOINTMENT, 0x820e, 1_000_007_200)
                .named(
                    0x102,
                    MEETING,
                    0x0003,
                    b"\x01\0\0\0\x04\0\0\0\x01\x02\xab\xcd",
                ),
        )
        .recipients(&[person(1, "bert"), person(2, "carl")])
        .bytes();
    let (text, _) = opened(&mail(&tnef));
    let calendar = text
        .split("BEGIN:VCALENDAR\n")
        .nth(1)
        .unwrap()
        .replace("\n ", "");
    for line in [
        "METHOD:REQUEST",
        "UID:0102ABCD",
        "DTSTAMP:20010909T014640Z",
        "DTSTART:20010909T024640Z",
        "DTEND:20010909T034640Z",
        "SUMMARY:Plans\\; and more",
        "ORGANIZER;CN=\"Anna\":mailto:anna@example.org",
        "ATTENDEE;ROLE=REQ-PARTICIPANT;PARTSTAT=NEEDS-ACTION;RSVP=TRUE;CN=\"bert\":mailto:bert@example.org",
        "ATTENDEE;ROLE=OPT-PARTICIPANT;PARTSTAT=NEEDS-ACTION;RSVP=TRUE;CN=\"carl\":mailto:carl@example.org",
    ] {
        assert!(calendar.contains(&format!("{line}\n")), "{line}: {text}");
    }
    assert!(
        text.contains("method=\"REQUEST\"") || text.contains("method=REQUEST"),
        "{text}"
    );
}

#[test]
fn winmail_with_a_recurring_meeting_becomes_its_rule_and_its_changed_meetings() {
    let (text, ran) = opened(&mail(&series(
        MARCH,
        &hex(SERIES),
        Some((0x8260, &hex(PACIFIC))),
    )));
    assert!(!text.contains("ms-tnef"), "{}", ran.stderr);
    let calendar = text
        .split("BEGIN:VCALENDAR\n")
        .nth(1)
        .unwrap()
        .split("END:VCALENDAR\n")
        .next()
        .unwrap()
        .replace("\n ", "");
    assert_eq!(
        calendar,
        "PRODID:-//embody//EN\nVERSION:2.0\nMETHOD:REQUEST\n\
         BEGIN:VTIMEZONE\nTZID:Pacific Standard Time\n\
         BEGIN:STANDARD\nDTSTART:16010101T020000\nRRULE:FREQ=YEARLY;BYDAY=1SU;BYMONTH=11\n\
         TZOFFSETFROM:-0700\nTZOFFSETTO:-0800\nEND:STANDARD\n\
         BEGIN:DAYLIGHT\nDTSTART:16010101T020000\nRRULE:FREQ=YEARLY;BYDAY=2SU;BYMONTH=3\n\
         TZOFFSETFROM:-0800\nTZOFFSETTO:-0700\nEND:DAYLIGHT\nEND:VTIMEZONE\n\
         BEGIN:VEVENT\nUID:ABCD\nDTSTAMP:20070128T160000Z\n\
         DTSTART;TZID=Pacific Standard Time:20070326T100000\n\
         DTEND;TZID=Pacific Standard Time:20070326T103000\n\
         RRULE:FREQ=WEEKLY;COUNT=12;BYDAY=MO,TH,FR;WKST=SU\n\
         SEQUENCE:0\nSUMMARY:Simple Recurrence\nORGANIZER;CN=\"Anna\":mailto:anna@example.org\nEND:VEVENT\n\
         BEGIN:VEVENT\nUID:ABCD\nDTSTAMP:20070128T160000Z\n\
         RECURRENCE-ID;TZID=Pacific Standard Time:20070416T100000\n\
         DTSTART;TZID=Pacific Standard Time:20070416T110000\n\
         DTEND;TZID=Pacific Standard Time:20070416T113000\n\
         SEQUENCE:0\nSUMMARY:Simple Recurrence with exceptions\nLOCATION:34/4141\n\
         ORGANIZER;CN=\"Anna\":mailto:anna@example.org\nEND:VEVENT\n"
    );
}

/// The values are from an Outlook message in the examples of Aspose.Email for Java (MIT), which describes its rule as "every
/// Monday and Thursday from 10:30 PM to 11:00 PM".
#[test]
fn winmail_with_the_rule_of_a_real_message_becomes_a_calendar() {
    let rule = hex(
        "043004300b2001000000c0210000010000000000000012000000232000000a00000000000000000000000000000060f10a0d\
         df80e95a0630000009300000460500006405000000000000000000000000",
    );
    let karachi = hex(&("d4feffff00000000c4ffffff".to_owned() + &"00".repeat(36)));
    let (text, ran) = opened(&mail(&series(
        1_484_847_000,
        &rule,
        Some((0x8233, &karachi)),
    )));
    assert!(!text.contains("ms-tnef"), "{}", ran.stderr);
    for line in [
        "TZID:Local time\nBEGIN:STANDARD\nDTSTART:16010101T000000\nTZOFFSETFROM:+0500\nTZOFFSETTO:+0500\nEND:STANDARD",
        "DTSTART;TZID=Local time:20170119T223000",
        "DTEND;TZID=Local time:20170119T230000",
        "RRULE:FREQ=WEEKLY;BYDAY=MO,TH;WKST=SU",
    ] {
        assert!(text.contains(&format!("{line}\n")), "{line}: {text}");
    }
}

/// Each changed meeting is an event with all participants and the text of the mail.
#[test]
fn winmail_with_thousands_of_changed_meetings_stays_small() {
    let mut rule = hex(SERIES);
    let at = 34 + 3 * 4 + 8 + 8 + 2 * 4 + 8;
    let exception: Vec<u8> = [&rule[at + 2..at + 14], &[0, 0]].concat();
    rule.truncate(at);
    rule.extend(4000_u16.to_le_bytes());
    rule.extend(exception.repeat(4000));
    // The blocks with Unicode text.
    rule.extend([0; 8 + 8 * 4000]);
    let mail = mail(&series(MARCH, &rule, Some((0x8260, &hex(PACIFIC)))));
    let (text, ran) = opened(&mail);
    assert!(
        text.len() < 20 * rule.len(),
        "{}: {}",
        text.len(),
        ran.stderr
    );
    let long = "long ".repeat(1000);
    let with = |id: u16| {
        let properties = Properties::new()
            .text(id, &long)
            .named_time(APPOINTMENT, 0x820d, MARCH)
            .named_binary(APPOINTMENT, 0x8216, &rule)
            .named_binary(APPOINTMENT, 0x8260, &hex(PACIFIC));
        let tnef = Tnef::new().class("IPM.Appointment");
        opened(&self::mail(&tnef.properties(properties).bytes()))
    };
    // Only the series contains the text.
    let (text, _) = with(0x1000);
    assert_eq!(text.matches("DESCRIPTION:").count(), 1);
    assert_eq!(text.matches("RECURRENCE-ID;").count(), 4000);
    let (text, ran) = with(0x0037);
    assert!(text.len() < 1 << 20, "{}", text.len());
    let detail = &ran.column("detail")[0];
    assert!(
        detail.contains("because the calendar would be too large"),
        "{detail}"
    );
}

#[test]
fn winmail_with_a_rule_that_cannot_be_mapped_stays_and_says_why() {
    let (rule, zone) = (hex(SERIES), hex(PACIFIC));
    let broken = &rule[..40];
    for (tnef, why) in [
        (
            series(MARCH, &rule, None),
            "the time zone of the meeting is not known",
        ),
        (
            series(MARCH + 3600, &rule, Some((0x8260, &zone))),
            "have different start times",
        ),
        (
            series(MARCH, broken, Some((0x8260, &zone))),
            "which is damaged",
        ),
    ] {
        let (text, ran) = opened(&mail(&tnef));
        assert!(text.contains("ms-tnef"), "{text}");
        assert!(text.contains("DTSTART:2007"), "{text}");
        assert!(!text.contains("RRULE"), "{text}");
        assert!(
            ran.column("detail")[0].contains(why),
            "{why}: {}",
            ran.stderr
        );
    }
}

#[test]
fn winmail_with_a_changed_meeting_of_a_series_says_which_one_it_replaces() {
    let meeting = |properties: Properties| {
        let properties = properties
            .named(0x0b, MEETING, 0x0005, &1_u32.to_le_bytes())
            .named(0x0b, MEETING, 0x000a, &1_u32.to_le_bytes())
            .named_time(APPOINTMENT, 0x820d, MARCH + 3600);
        let tnef = Tnef::new().class("IPM.Schedule.Meeting.Request");
        mail(&tnef.properties(properties).bytes())
    };
    let replaced = Properties::new().named_time(APPOINTMENT, 0x8228, MARCH);
    let (text, _) = opened(&meeting(replaced));
    assert!(text.contains("RECURRENCE-ID:20070326T170000Z\n"), "{text}");
    assert!(!text.contains("ms-tnef"), "{text}");
    let (text, _) = opened(&meeting(Properties::new()));
    assert!(text.contains("ms-tnef"), "{text}");
}

#[test]
fn winmail_with_a_series_of_whole_days_needs_no_time_zone() {
    let mut rule = hex(SERIES);
    // Without the changed meeting, from midnight to midnight.
    rule.splice(34.., hex("00000000 00000000 00000000 8020BC0C 20ADBC0C 06300000 09300000 00000000 A0050000 0000 00000000 00000000"));
    let properties = Properties::new()
        .named(0x0b, APPOINTMENT, 0x8215, &1_u32.to_le_bytes())
        .named_time(APPOINTMENT, 0x820d, MARCH - 36000)
        .named_binary(APPOINTMENT, 0x8216, &rule);
    let tnef = Tnef::new().class("IPM.Appointment");
    let (text, ran) = opened(&mail(&tnef.properties(properties).bytes()));
    assert!(!text.contains("ms-tnef"), "{}", ran.stderr);
    for line in [
        "DTSTART;VALUE=DATE:20070326",
        "DTEND;VALUE=DATE:20070327",
        "RRULE:FREQ=WEEKLY;COUNT=12;BYDAY=MO,TH,FR;WKST=SU",
    ] {
        assert!(text.contains(&format!("{line}\n")), "{line}: {text}");
    }
}

/// The properties are those of `garbage-at-end.tnef` in the tests of MimeKit (MIT).
#[test]
fn winmail_with_a_read_receipt_becomes_a_report() {
    let properties = Properties::new()
        .narrow(0x0049, b"Test with lots of addresses")
        .time(0x0032, 1_151_468_239)
        .time(0x004e, 1_151_468_218)
        .narrow(0x0074, b"bob@example.com; carl@example.com")
        .narrow(0x0080, b"displayed")
        .narrow(0x0081, b"manual-action/MDN-sent-manually")
        .binary(0x0c1d, b"SMTP:BOB@EXAMPLE.COM\0")
        .narrow(0x1001, b"Message was read on:")
        .narrow(0x1042, b"<1@example.com>");
    let tnef = Tnef::new()
        .class("IPM.Microsoft Mail.Read Receipt")
        .properties(properties)
        .bytes();
    let whole = format!("Subject: x\nMIME-Version: 1.0\n{}", part(&tnef));
    let (text, _) = opened(&whole);
    let (header, body) = text.split_once("\n\n").unwrap();
    assert!(header.contains("Content-Type: multipart/report;"), "{text}");
    assert!(
        header.contains("report-type=\"disposition-notification\""),
        "{text}"
    );
    for place in [
        "Content-Type: text/plain\n\nMessage was read on: Wed, 28 Jun 2006 04:17:19 +0000\n\n\
         To: bob@example.com; carl@example.com\nSubject: Test with lots of addresses\n\
         Sent: Wed, 28 Jun 2006 04:16:58 +0000\n",
        "Content-Type: message/disposition-notification\n\nFinal-Recipient: rfc822; bob@example.com\n\
         Original-Message-ID: <1@example.com>\nDisposition: manual-action/MDN-sent-manually; displayed\n",
    ] {
        assert!(body.contains(place), "{place}\nis not in\n{text}");
    }
    // Next to a text of the mail.
    let (text, _) = opened(&mail(&tnef));
    assert!(!text.contains("ms-tnef"), "{text}");
    assert!(
        text.contains("--b\nContent-Type: message/disposition-notification\n"),
        "{text}"
    );
    // The reader is unknown, so the file is left.
    let tnef = Tnef::new().class("REPORT.IPM.Note.IPNNRN").bytes();
    let mail = mail(&tnef);
    let ran = filter(FOLLOW, mail.as_bytes());
    assert!(
        ran.stderr.contains("does not name a recipient"),
        "{}",
        ran.stderr
    );
    assert!(String::from_utf8_lossy(&ran.stdout).contains("ms-tnef"));
}

#[test]
fn winmail_with_a_delivery_report_becomes_a_report_with_the_message() {
    let (text, ran) = opened(&format!("MIME-Version: 1.0\n{}", part(&delivery_report())));
    assert!(!text.contains("ms-tnef"), "{}", ran.stderr);
    assert!(
        text.contains("report-type=\"delivery-status\"")
            || text.contains("report-type=delivery-status"),
        "{text}"
    );
    let status = "Content-Type: message/delivery-status\n\nReporting-MTA: dns;mail.example.com\n\n\
                  Final-Recipient: rfc822; carl@example.org\nAction: failed\nStatus: 5.1.1\n\
                  Remote-MTA: dns; mx.example.org\nDiagnostic-Code: ";
    assert!(text.contains(status), "{text}");
    assert!(
        text.contains("The message could not be delivered."),
        "{text}"
    );
    assert!(text.contains("Content-Type: message/rfc822"), "{text}");
    // The result is a single report: text, status, message.
    assert_eq!(text.matches("multipart/").count(), 1, "{text}");
}

/// The HTML is inside RTF. One picture is identified by its Content-ID, the other one by its Content-Location.
#[test]
fn browser_shows_the_pictures_of_winmail() {
    let test = "browser_shows_the_pictures_of_winmail";
    let Some(chromium) = chromium(test) else {
        return;
    };
    let colours = [[200, 30, 40], [30, 40, 200]];
    let html = "<html><body><img src=\"cid:p1@x\"><img src=\"second.png\"></body></html>";
    let picture = |colour, id, text: &str| {
        let properties = Properties::new().text(0x3707, "p.png").text(id, text);
        (png(colour), properties)
    };
    let (first, one) = picture(colours[0], 0x3712, "p1@x");
    let (second, other) = picture(colours[1], 0x3713, "second.png");
    let rtf = compressed(from_html(html).as_bytes());
    let tnef = Tnef::new()
        .class("IPM.Note")
        .properties(Properties::new().binary(0x1009, &rtf))
        .attachment(Some(&first), one)
        .attachment(Some(&second), other)
        .bytes();
    let whole = crlf(format!("Subject: x\nMIME-Version: 1.0\n{}", part(&tnef)).as_bytes());
    let ran = filter(FOLLOW, &whole);
    let messages = [
        ("opened".to_owned(), ran.stdout),
        ("closed".to_owned(), whole),
    ];
    let pictures = shown(&chromium, messages.into_iter().collect());
    for colour in colours {
        assert_eq!(
            pictures["opened"].count(colour),
            400,
            "{colour:?}: {}",
            ran.stderr
        );
        assert_eq!(pictures["closed"].count(colour), 0, "{colour:?}");
    }
}

#[test]
fn tnef_extracts_the_same_files() {
    let test = "tnef_extracts_the_same_files";
    if Command::new("tnef").arg("--version").output().is_err() {
        skipped(test, "tnef");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("winmail.dat");
    std::fs::write(&file, usual()).unwrap();
    let done = Command::new("tnef")
        .args(["--overwrite", "-C"])
        .arg(folder.path())
        .arg(&file)
        .output()
        .unwrap();
    assert!(done.status.success(), "{done:?}");
    let (text, _) = opened(&mail(&usual()));
    for name in ["p.png", "r\u{e9}sum\u{e9}.pdf"] {
        // `tnef` writes file names in its own code page.
        let entries = std::fs::read_dir(folder.path()).unwrap();
        let start = &name[..1];
        let mut paths = entries.map(|entry| entry.unwrap().path());
        let path = paths.find(|path| {
            let name = path.file_name().unwrap().to_string_lossy();
            name.starts_with(start) && !name.ends_with(".dat")
        });
        let content = std::fs::read(path.expect("tnef extracts it")).unwrap();
        assert!(text.contains(&encoded(&content)), "{name}");
    }
}

/// A sender can predict the id that embody gives to a part. The id alone must not make a file disappear.
#[test]
fn content_id_of_a_stranger_never_makes_an_attachment_disappear() {
    use sha2::Digest as _;

    let content = b"the only copy";
    let digest = format!("{:x}", sha2::Sha256::digest(content));
    let forged = format!("Content-ID: <{}@embody.invalid>\n", &digest[..32]);
    let tnef = Tnef::new().file("a.txt", content).bytes();
    let mail = mail(&tnef).replace(
        "Content-Type: text/plain\n",
        &format!("Content-Type: text/plain\n{forged}"),
    );
    let (text, ran) = opened(&mail);
    assert_eq!(ran.column("outcome"), ["expanded"], "{}", ran.stderr);
    assert!(
        text.contains("filename=\"a.txt\"") || text.contains("filename=a.txt"),
        "{text}"
    );
    assert!(text.contains(&encoded(content)), "{text}");
}

/// Each part needs the contents of the mail, which are determined only once.
#[test]
fn thousands_of_small_files_take_linear_time() {
    let mail = |count: usize| {
        let tnef = |number: usize| {
            Tnef::new()
                .file("a.txt", format!("file {number}").as_bytes())
                .bytes()
        };
        let parts = (0..count).map(|number| format!("--b\n{}", part(&tnef(number))));
        let filler = "x".repeat(70) + "\n";
        format!(
            "Subject: x\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: text/plain\n\n{}\n{}--b--\n",
            filler.repeat(20_000),
            parts.collect::<String>()
        )
    };
    let time = |count: usize| {
        let mail = mail(count);
        let begun = std::time::Instant::now();
        let ran = filter(FOLLOW, mail.as_bytes());
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        begun.elapsed()
    };
    let (few, many) = (time(100), time(2000));
    assert!(
        many < few * 20 + std::time::Duration::from_secs(20),
        "{few:?} {many:?}"
    );
}
