//! `embody::outlook`: Outlook files, read by another program.

use std::collections::BTreeSet;
use std::fs;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use embody::outlook::{
    ConvertedMail, Msg, OutlookError, Pst, PstItem, RandomAccess, Tnef, convert,
};

use crate::common::pst::{Form, Message, Pst as Sample, text};
use crate::common::tnef::{Properties, Tnef as Stream};

const SIMPLE: &[u8] = include_bytes!("../mailbox/outlook/simple.msg");

const UNICODE: Form = Form {
    version: 23,
    encoding: 1,
};

fn at(seconds: u64) -> Option<SystemTime> {
    Some(UNIX_EPOCH + Duration::from_secs(seconds))
}

/// Returns a mailbox with two folders of mails, one of which also contains a contact.
fn mailbox(form: Form) -> Vec<u8> {
    let mut sample = Sample::in_memory(form);
    let inbox = [
        Message::mail("one", "first text").with_file("notes.txt", b"notes"),
        Message::mail("Ann", "").with(0x1a, text("IPM.Contact")),
        Message::mail("two", "second text").with_message(Message::mail("inner", "third text")),
    ];
    let above = sample.folder(None, "Inbox", &inbox);
    let mails: Vec<Message> = (0..20)
        .map(|number| Message::mail(&format!("old {number}"), &"text ".repeat(500)))
        .collect();
    sample.folder(Some(above), "Old", &mails);
    sample.bytes()
}

fn open(bytes: &[u8]) -> Pst {
    Pst::from_bytes(bytes.to_vec()).unwrap()
}

fn items(pst: &Pst) -> Vec<PstItem> {
    let folders = pst.folders();
    folders.flat_map(|folder| folder.items()).collect()
}

fn mails(pst: &Pst) -> Vec<ConvertedMail> {
    let mails = items(pst).into_iter().filter_map(|item| match item {
        PstItem::Mail(mail) => Some(mail),
        _ => None,
    });
    mails.collect()
}

#[test]
fn each_item_of_a_mailbox_is_a_mail_or_named() {
    for form in [
        UNICODE,
        Form {
            version: 15,
            encoding: 1,
        },
        Form {
            version: 14,
            encoding: 0,
        },
    ] {
        let pst = open(&mailbox(form));
        assert!(pst.damage().is_empty(), "{:?}", pst.damage());
        let lengths: Vec<usize> = pst.folders().map(|folder| folder.len()).collect();
        assert_eq!((lengths, pst.item_count()), (vec![3, 20], 23));
        let items = items(&pst);
        assert_eq!(items.len(), 23);
        assert_eq!(items[1], PstItem::NotMail("an Outlook contact"));
        let mails = mails(&pst);
        assert_eq!(mails.len(), 22);
        let first = &mails[0];
        assert_eq!(first.folder, ["Inbox"]);
        assert_eq!(mails[2].folder, ["Inbox", "Old"]);
        assert_eq!(first.subject.as_deref(), Some("one"));
        assert_eq!(
            (first.sent, first.received),
            (at(1_600_000_000), at(1_600_000_100))
        );
        assert!(first.flags.is_read && !first.flags.is_draft && first.is_complete());
        let content = String::from_utf8(first.content.clone()).unwrap();
        assert!(
            content.starts_with("From: \"Bob\" <bob@example.org>\n"),
            "{content}"
        );
        assert!(content.contains("filename=\"notes.txt\"") && content.ends_with("--\n"));
        assert!(!content.contains('\r'));
        let second = String::from_utf8(mails[1].content.clone()).unwrap();
        assert!(
            second.contains("Content-Type: message/rfc822\n"),
            "{second}"
        );
        assert!(second.contains("third text"));
    }
}

#[test]
fn items_of_a_folder_are_read_in_any_order() {
    let pst = open(&mailbox(UNICODE));
    let folder = pst.folders().nth(1).unwrap();
    let all: Vec<PstItem> = folder.items().collect();
    for index in [19, 0, 7, 7] {
        assert_eq!(folder.item(index).as_ref(), all.get(index));
    }
    assert_eq!(folder.item(20), None);
}

#[test]
fn mailbox_on_disk_has_the_mails_of_one_in_memory() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.pst");
    let bytes = mailbox(UNICODE);
    fs::write(&path, &bytes).unwrap();
    assert_eq!(items(&Pst::open(&path).unwrap()), items(&open(&bytes)));
    let missing = Pst::open(folder.path().join("b.pst")).unwrap_err();
    assert!(matches!(missing, OutlookError::Read(_)), "{missing}");
}

/// A file that returns one byte at a time.
struct Slow(Vec<u8>);

impl RandomAccess for Slow {
    fn length(&self) -> u64 {
        self.0.len() as u64
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> std::io::Result<usize> {
        let byte = usize::try_from(offset).ok().and_then(|at| self.0.get(at));
        match (byte, into.first_mut()) {
            (Some(byte), Some(first)) => *first = *byte,
            _ => return Ok(0),
        }
        Ok(1)
    }
}

#[test]
fn source_that_returns_few_bytes_at_a_time_is_read() {
    let bytes = mailbox(UNICODE);
    let slow = Pst::from_source(Slow(bytes.clone())).unwrap();
    assert_eq!(items(&slow), items(&open(&bytes)));
}

#[test]
fn items_of_a_damaged_mailbox_are_mails_or_named_with_the_damage() {
    let bytes = mailbox(UNICODE);
    let whole: BTreeSet<Vec<u8>> = mails(&open(&bytes))
        .into_iter()
        .map(|it| it.content)
        .collect();
    let (mut unreadable, mut told) = (0, 0);
    for at in (0x4600..bytes.len()).step_by(331) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x20;
        let Ok(pst) = Pst::from_bytes(damaged) else {
            continue;
        };
        let items = items(&pst);
        assert_eq!(items.len(), pst.item_count(), "{at}");
        let is_told = |item: &PstItem| match item {
            PstItem::Mail(mail) => !mail.is_complete(),
            _ => false,
        };
        unreadable += items
            .iter()
            .filter(|it| matches!(it, PstItem::Unreadable { .. }))
            .count();
        told += items.iter().filter(|it| is_told(it)).count();
        // A mail without a fault is one of the mails in the whole file.
        let delivered = mails(&pst);
        let changed = delivered
            .iter()
            .filter(|mail| mail.is_complete() && !whole.contains(&mail.content));
        assert!(!pst.damage().is_empty() || changed.count() == 0, "{at}");
    }
    assert!(unreadable > 10 && told > 10, "{unreadable}, {told}");
}

#[test]
fn mail_that_exceeds_the_limit_is_named_with_its_subject() {
    let pst = open(&mailbox(UNICODE)).with_max_message(2000);
    let items = items(&pst);
    let large: Vec<_> = items
        .iter()
        .filter_map(|item| match item {
            PstItem::Unreadable { subject, why, .. } => Some((subject.as_deref(), why.as_str())),
            _ => None,
        })
        .collect();
    assert_eq!(large.len(), 20);
    assert_eq!(
        large[0],
        (Some("old 0"), "the content has more bytes than the limit")
    );
}

#[test]
fn other_files_are_refused_with_a_reason() {
    let mut newer = mailbox(UNICODE);
    newer[10] = 36;
    let why = Pst::from_bytes(newer.clone()).unwrap_err();
    assert!(matches!(why, OutlookError::Version(36)), "{why}");
    assert!(
        why.to_string()
            .contains("export the mailbox to a .pst file"),
        "{why}"
    );
    assert!(Pst::is_pst(&newer));
    for bytes in [&b""[..], b"!BD", b"From a\n\n", SIMPLE] {
        let why = Pst::from_bytes(bytes.to_vec()).unwrap_err();
        assert!(matches!(why, OutlookError::OtherFormat(_)), "{why}");
        let why = Tnef::parse(bytes).unwrap_err();
        assert!(matches!(why, OutlookError::OtherFormat(_)), "{why}");
    }
    let why = Pst::from_bytes(mailbox(UNICODE)[..600].to_vec()).unwrap_err();
    assert!(matches!(why, OutlookError::Damaged(_)), "{why}");
    let why = Msg::parse(b"From: a@b\n\n").unwrap_err();
    assert!(matches!(why, OutlookError::OtherFormat(_)), "{why}");
    let why = Msg::parse(&SIMPLE[..520]).unwrap_err();
    assert!(matches!(why, OutlookError::Damaged(_)), "{why}");
}

#[test]
fn file_with_one_message_is_converted_by_its_content() {
    let mail = convert(SIMPLE).unwrap().unwrap();
    assert_eq!(mail, Msg::parse(SIMPLE).unwrap().mail());
    // The program that saved the file changed the subject, but not the header.
    assert!(
        mail.subject
            .as_deref()
            .unwrap()
            .ends_with(" BitDaddys Software")
    );
    assert!(
        mail.content
            .starts_with(b"Date: Sat, 12 Aug 2006 14:25:25 -0400\n")
    );
    assert!(mail.is_complete() && mail.folder.is_empty());
    let tnef = Stream::new()
        .class("IPM.Note")
        .properties(
            Properties::new()
                .text(0x37, "Minutes")
                .text(0x1000, "See you.")
                .time(0x39, 1_700_000_000)
                .time(0xe06, 1_700_000_060),
        )
        .file("plan.pdf", b"%PDF-1.4")
        .bytes();
    let mail = convert(&tnef).unwrap().unwrap();
    assert_eq!(mail, Tnef::parse(&tnef).unwrap().mail());
    assert_eq!(
        (mail.sent, mail.received),
        (at(1_700_000_000), at(1_700_000_060))
    );
    let content = String::from_utf8(mail.content).unwrap();
    assert!(content.contains("\nSubject: Minutes\n") && content.contains("filename=\"plan.pdf\""));
    for other in [&b""[..], b"From: a@b\n\n", b"%PDF-1.4", &mailbox(UNICODE)] {
        assert!(convert(other).is_none());
    }
    // An office document is a compound file without a message.
    let document = cfb::CompoundFile::create(std::io::Cursor::new(Vec::new())).unwrap();
    assert!(convert(&document.into_inner().into_inner()).is_none());
}

#[test]
fn cut_or_changed_tnef_is_never_complete_without_its_content() {
    const HAS_ATTACHMENTS: i32 = 0x10;
    let properties = Properties::new()
        .text(0x37, "Minutes")
        .text(0x1000, "See you.")
        .long(0xe07, HAS_ATTACHMENTS);
    let tnef = Stream::new()
        .class("IPM.Note")
        .properties(properties)
        .file("plan.pdf", b"%PDF-1.4")
        .bytes();
    let whole = convert(&tnef).unwrap().unwrap();
    assert!(whole.is_complete());
    for length in 4..tnef.len() {
        if let Ok(mail) = convert(&tnef[..length]).unwrap() {
            let has_all = mail.content == whole.content;
            assert!(has_all || !mail.damage.is_empty(), "{length}: {mail:?}");
        }
    }
    for at in 6..tnef.len() {
        let mut changed = tnef.clone();
        changed[at] ^= 1;
        match convert(&changed).unwrap() {
            Ok(mail) => assert!(
                !mail.damage.is_empty() || mail.content == whole.content,
                "{at}: {mail:?}"
            ),
            Err(why) => assert!(matches!(why, OutlookError::Damaged(_)), "{why}"),
        }
    }
}
