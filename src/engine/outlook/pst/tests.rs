use std::collections::BTreeMap;

use super::sample::{Form, Message, Pst, Value as Sample, text as words};
use super::*;
use crate::engine::outlook::source::mail;

const FORMS: [Form; 7] = [
    Form {
        version: 14,
        encoding: 0,
    },
    Form {
        version: 15,
        encoding: 1,
    },
    Form {
        version: 15,
        encoding: 2,
    },
    Form {
        version: 14,
        encoding: 1,
    },
    Form {
        version: 23,
        encoding: 0,
    },
    Form {
        version: 23,
        encoding: 1,
    },
    Form {
        version: 23,
        encoding: 2,
    },
];
const USUAL: Form = Form {
    version: 23,
    encoding: 1,
};
const ROOM: u64 = 1 << 30;

fn open(bytes: Vec<u8>) -> Result<PstMailbox, Fault> {
    PstMailbox::open(Box::new(bytes))
}

/// Returns the text of each message, by its folder.
fn texts(mailbox: &PstMailbox) -> BTreeMap<String, Vec<String>> {
    let mut texts = BTreeMap::new();
    for folder in mailbox.folders() {
        let all = folder.items.iter().map(|id| match mailbox.item(*id, ROOM) {
            Ok(read) => {
                assert!(read.damage.is_empty(), "{:?}", read.damage);
                String::from_utf8(mail(&read.item).content).unwrap()
            }
            Err(unread) => panic!("{unread:?}"),
        });
        texts.insert(folder.path.join("/"), all.collect());
    }
    texts
}

/// Creates a file with three folders, one of them inside another one, and a message with all kinds of content.
fn usual(form: Form) -> Vec<u8> {
    let large: Vec<u8> = (0..40_000_u32).map(|it| ((it * it) >> 3) as u8).collect();
    let whole = Message::mail("Whole \u{e9}", "Text\r\nof \u{e9} mail\r\n")
        .with_file("small.bin", b"\x00\x01\x02")
        .with_file("large.bin", &large)
        .with_message(Message::mail("inner", "within").with_file("deep.txt", b"deep"));
    let mut pst = Pst::in_memory(form);
    let inbox = pst.folder(None, "Inbox", &[Message::mail("first", "one"), whole]);
    pst.folder(Some(inbox), "Old", &[Message::mail("old", "two")]);
    pst.folder(None, "Empty", &[]);
    pst.bytes()
}

#[test]
fn mail_of_each_version_and_encoding_is_read() {
    for form in FORMS {
        let mailbox = open(usual(form)).unwrap();
        assert!(mailbox.damage().is_empty(), "{:?}", mailbox.damage());
        let texts = texts(&mailbox);
        let folders: Vec<&str> = texts.keys().map(String::as_str).collect();
        assert_eq!(folders, ["Inbox", "Inbox/Old"], "{form:?}");
        assert_eq!(
            texts["Inbox/Old"],
            [
                "From: \"Bob\" <bob@example.org>\nTo: \"Ann\" <ann@example.org>\n\
              Date: Sun, 13 Sep 2020 12:26:40 +0000\nSubject: old\nMIME-Version: 1.0\nContent-Type: text/plain\n\ntwo\n"
            ]
        );
        let whole = &texts["Inbox"][1];
        assert!(whole.contains("Subject: =?utf-8?"), "{whole}");
        assert!(
            whole.contains("filename=\"small.bin\"\n\nAAEC\n"),
            "{whole}"
        );
        let large: Vec<u8> = (0..40_000_u32).map(|it| ((it * it) >> 3) as u8).collect();
        let encoded = crate::mime::transfer::encode_base64(&large, crate::span::Newline::Lf);
        assert!(whole.contains(&*String::from_utf8_lossy(&encoded.body)));
        assert!(whole.contains("Content-Type: message/rfc822\n"));
        assert!(
            whole.contains("Subject: inner\n")
                && whole.contains("filename=\"deep.txt\"\n\nZGVlcA==")
        );
    }
}

#[test]
fn folder_in_a_code_page_has_the_name_that_its_owner_gave_it() {
    // In a file of version 15, the generator writes each of these letters as one byte. In code page 1251, the three
    // bytes mean Russian letters.
    let name = "\u{cf}\u{f0}\u{e8}";
    let page = (0x3ffd, Sample::Long(1251));
    let language = (0x3ff1, Sample::Long(0x0419));
    let none = (0x3ff1, Sample::Long(0));
    for ((id, value), form, expected) in [
        (page.clone(), FORMS[1], "\u{41f}\u{440}\u{438}"),
        (language, FORMS[2], "\u{41f}\u{440}\u{438}"),
        (none, FORMS[1], name),
        (page, USUAL, name),
    ] {
        let mut pst = Pst::in_memory(form);
        pst.folder(None, name, &[Message::mail("x", "y").with(id, value)]);
        let mailbox = open(pst.bytes()).unwrap();
        assert_eq!(mailbox.folders()[0].path, [expected], "{form:?}");
    }
}

#[test]
fn categories_and_flags_are_read() {
    let categories = Sample::Texts(vec!["Red".to_owned(), "Blue".to_owned()]);
    let message = Message::mail("x", "y")
        .with(0x8000, categories)
        .with(0x1081, Sample::Long(102))
        .with(0x1090, Sample::Long(2))
        .with(0x0017, Sample::Long(2));
    let mut pst = Pst::in_memory(USUAL);
    pst.folder(None, "Inbox", &[message]);
    let mailbox = open(pst.bytes()).unwrap();
    let read = mailbox.item(mailbox.folders()[0].items[0], ROOM).unwrap();
    let mail = mail(&read.item);
    let text = String::from_utf8(mail.content).unwrap();
    assert!(text.contains("\nKeywords: Red, Blue\n"), "{text}");
    assert!(text.contains("\nImportance: high\n"), "{text}");
    let flags = mail.flags;
    assert!(flags.is_read && flags.is_replied && flags.is_flagged && !flags.is_forwarded);
    assert_eq!(mail.received, Some(1_600_000_100));
}

#[test]
fn item_that_is_not_mail_is_named() {
    let other = |class: &str| Message::mail("x", "y").with(0x1a, words(class));
    let mut pst = Pst::in_memory(USUAL);
    pst.folder(
        None,
        "All",
        &[
            "IPM.Contact",
            "IPM.Note",
            "IPM.Appointment",
            "IPM.Task",
            "IPM.NoteX",
        ]
        .map(other),
    );
    let mailbox = open(pst.bytes()).unwrap();
    let kinds: Vec<_> = mailbox.folders()[0]
        .items
        .iter()
        .map(|id| match mailbox.kind(*id) {
            ItemKind::Mail => "mail",
            ItemKind::Other(name) => name,
        })
        .collect();
    let expected = [
        "an Outlook contact",
        "mail",
        "an Outlook appointment",
        "an Outlook task",
        "mail",
    ];
    assert_eq!(kinds, expected);
}

#[test]
fn message_without_a_folder_is_in_a_folder_of_its_own_and_a_lost_one_is_named() {
    let mut pst = Pst::in_memory(USUAL);
    let folder = pst.folder(None, "Inbox", &[Message::mail("first", "one")]);
    pst.message(0x9999_9002, &Message::mail("orphan", "two"));
    let rows = [(0x50_0004, vec![(0x37, words("lost"))])];
    pst.contents(folder + 0x20, &rows);
    let mailbox = open(pst.bytes()).unwrap();
    let paths: Vec<String> = mailbox
        .folders()
        .iter()
        .map(|it| it.path.join("/"))
        .collect();
    assert_eq!(paths, ["Inbox", ORPHANS]);

    let mut pst = Pst::in_memory(USUAL);
    let folder = pst.folder(None, "Inbox", &[]);
    pst.contents(folder, &rows);
    let bytes = pst.bytes();
    let mailbox = open(bytes).unwrap();
    // The folder now has two item tables with the same id: an empty one, and the real one. Either may be found first.
    // With the empty one the folder is not listed at all, so the item is checked only if the folder is listed.
    if let Some(folder) = mailbox.folders().first() {
        let unread = mailbox.item(folder.items[0], ROOM).unwrap_err();
        assert_eq!(
            unread.why,
            "the index of the file does not contain the item"
        );
    }
}

#[test]
fn other_versions_and_files_are_refused_by_name() {
    let mut bytes = usual(USUAL);
    bytes[10] = 36;
    assert!(open(bytes.clone()).err().unwrap().contains("version 36"));
    bytes[0] = b'?';
    assert!(open(bytes).is_err());
    assert!(open(Vec::new()).is_err());
    assert!(open(b"!BDN".to_vec()).is_err());
}

#[test]
fn items_within_items_are_read_to_the_limit() {
    let mut message = Message::mail("0", "x");
    for level in 1..=30 {
        message = Message::mail(&level.to_string(), "x").with_message(message);
    }
    let mut pst = Pst::in_memory(USUAL);
    pst.folder(None, "Inbox", &[message]);
    let mailbox = open(pst.bytes()).unwrap();
    let read = mailbox.item(mailbox.folders()[0].items[0], ROOM).unwrap();
    assert_eq!(
        read.damage,
        [
            "the item has messages within messages to more than 20 levels; the innermost messages are missing"
        ]
    );
}

/// Returns the offset of the topmost page in the index of items.
fn top_page(bytes: &[u8]) -> usize {
    ndb::u64_at(bytes, 224).unwrap() as usize
}

#[test]
fn index_that_leads_back_to_itself_ends() {
    for level in [0, 1, 2, 5, 200] {
        let mut bytes = usual(USUAL);
        let at = top_page(&bytes);
        let page = &mut bytes[at..at + 512];
        page[488] = 20;
        page[490] = 24;
        page[491] = level;
        for entry in page[..480].chunks_exact_mut(24) {
            entry[..8].copy_from_slice(&0_u64.to_le_bytes());
            entry[16..].copy_from_slice(&(at as u64).to_le_bytes());
        }
        if let Ok(mailbox) = open(bytes) {
            assert!(mailbox.folders().is_empty());
        }
    }
}

/// A page contains its type twice. One correct copy is enough.
#[test]
fn index_whose_type_is_damaged_is_read() {
    let whole = usual(USUAL);
    let page = top_page(&whole);
    for byte in [496, 497] {
        let mut bytes = whole.clone();
        bytes[page + byte] ^= 4;
        let mailbox = open(bytes).unwrap();
        let items: usize = mailbox.folders().iter().map(|it| it.items.len()).sum();
        assert_eq!(items, 3);
        let damage = mailbox.damage().join("\n");
        assert!(damage.contains("wrong checksum"), "{damage}");
    }
    let mut bytes = whole;
    bytes[page + 496] ^= 4;
    bytes[page + 497] ^= 4;
    assert!(open(bytes).is_err());
}

/// A mailbox whose indexes have more than one page.
fn large(form: Form) -> Vec<u8> {
    let mut pst = Pst::in_memory(form);
    let messages: Vec<Message> = (0..60)
        .map(|it| Message::mail(&format!("message {it}"), "text").with_file("a.bin", &[7; 900]))
        .collect();
    pst.folder(None, "Inbox", &messages);
    pst.bytes()
}

/// Reads all messages of a mailbox. Returns the number of messages without damage, and the damage of the mailbox and of all
/// messages.
fn read_whole(bytes: Vec<u8>) -> (usize, String) {
    let mailbox = open(bytes).unwrap();
    let mut damage = mailbox.damage().join("\n");
    let mut whole = 0;
    for id in mailbox.folders().iter().flat_map(|it| &it.items) {
        match mailbox.item(*id, ROOM) {
            Ok(read) => {
                let text = String::from_utf8(mail(&read.item).content).unwrap();
                let attached = "BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcH\n";
                whole += usize::from(text.matches(attached).count() == 15);
                damage += &read.damage.join("\n");
            }
            Err(unread) => damage += &unread.why,
        }
    }
    (whole, damage)
}

#[test]
fn index_with_a_wrong_key_above_its_leaves_is_read_to_its_end() {
    let good = large(USUAL);
    assert_eq!(read_whole(good.clone()), (60, String::new()));
    // Positions in the header at which the references to the index of items and to the index of blocks begin.
    for header in [224, 240] {
        let top = ndb::u64_at(&good, header).unwrap() as usize;
        assert!(good[top + 491] > 0, "one page only");
        let count = usize::from(good[top + 488]);
        for entry in 0..count {
            for key in [0, u64::MAX] {
                let mut bytes = good.clone();
                bytes[top + 24 * entry..][..8].copy_from_slice(&key.to_le_bytes());
                let (whole, damage) = read_whole(bytes);
                assert_eq!(whole, 60, "{header} {entry} {key}: {damage}");
                assert!(damage.contains("wrong checksum"), "{damage}");
            }
        }
    }
}

#[test]
fn message_whose_id_in_the_index_is_damaged_is_read() {
    let mut bytes = usual(USUAL);
    let mut page = top_page(&bytes);
    while bytes[page + 491] > 0 {
        page = ndb::u64_at(&bytes, page + 16).unwrap() as usize;
    }
    let entries = page..page + usize::from(bytes[page + 488]) * 32;
    let is_message = |entry: &usize| bytes[*entry] & 0x1f == 4;
    let entry = entries.step_by(32).find(is_message).unwrap();
    bytes[entry] ^= 0x22;
    let mailbox = open(bytes).unwrap();
    let items = mailbox.folders().iter().flat_map(|it| &it.items);
    let read = items.filter(|id| mailbox.item(**id, ROOM).is_ok()).count();
    assert_eq!(read, 3);
}

#[test]
fn block_whose_length_in_the_index_is_wrong_is_read_whole() {
    for (form, header, step) in [(USUAL, 240, 8), (FORMS[1], 196, 4)] {
        let good = large(form);
        let at = |at: usize| match step {
            8 => ndb::u64_at(&good, at).unwrap() as usize,
            _ => ndb::u32_at(&good, at).unwrap() as usize,
        };
        let (levels, entries) = (if step == 8 { 491 } else { 499 }, 3 * step);
        let mut page = at(header);
        while good[page + levels] > 0 {
            page = at(page + 2 * step);
        }
        // The length of each block in the first leaf page of the index gets several wrong values.
        for entry in 0..10 {
            let length = page + entry * (2 * step + 4).next_multiple_of(step) + 2 * step;
            for wrong in [0_u16, 1, 70, 8000, 20_000, u16::MAX] {
                let mut bytes = good.clone();
                bytes[length..length + 2].copy_from_slice(&wrong.to_le_bytes());
                let (whole, damage) = read_whole(bytes);
                assert_eq!(whole, 60, "{form:?} {entry} {wrong} {entries}: {damage}");
            }
        }
    }
}

#[test]
fn header_with_an_unknown_version_or_encoding_is_named_and_the_mail_is_read() {
    for form in [FORMS[0], FORMS[1], FORMS[2], FORMS[5], FORMS[6]] {
        let mut bytes = large(form);
        bytes[10..12].copy_from_slice(&0x1313_u16.to_le_bytes());
        let (whole, damage) = read_whole(bytes);
        assert_eq!(whole, 60, "{form:?}: {damage}");
        assert_eq!(
            damage,
            "the header of the file is damaged: the header gives the unknown version 4883"
        );
    }
    for form in FORMS {
        let at = if form.version < 23 { 461 } else { 513 };
        let mut bytes = large(form);
        bytes[at] = 77;
        let (whole, damage) = read_whole(bytes);
        assert_eq!(whole, 60, "{form:?}: {damage}");
        assert!(damage.contains("unknown encoding 77"), "{damage}");
    }
    let mut bytes = large(USUAL);
    bytes[10] = 37;
    bytes[224..232].fill(0);
    let why = open(bytes).err().unwrap();
    assert!(
        why.contains("version 37") && why.contains("export"),
        "{why}"
    );
}

#[test]
fn list_of_blocks_that_names_one_block_often_gives_no_more_than_the_limit() {
    let mut pst = Pst::in_memory(Form {
        version: 23,
        encoding: 0,
    });
    let content: Vec<u8> = (0..8_000_000_u32).map(|it| it as u8).collect();
    pst.folder(
        None,
        "Inbox",
        &[Message::mail("x", "y").with_file("a", &content)],
    );
    let mut bytes = pst.bytes();
    // In the list of blocks of the attachment, every id is replaced by the first one. The content then consists of the
    // same block many times.
    let find = |bytes: &[u8]| {
        bytes
            .chunks_exact(64)
            .position(|it| it.starts_with(&[1, 1, 0xd3, 3]) || it.starts_with(&[1, 1, 0xd2, 3]))
    };
    let at = find(&bytes).unwrap() * 64;
    let first = bytes[at + 8..at + 16].to_vec();
    for id in bytes[at + 8..at + 8 + 8 * 900].chunks_exact_mut(8) {
        id.copy_from_slice(&first);
    }
    let mailbox = open(bytes).unwrap();
    let item = mailbox.folders()[0].items[0];
    assert_eq!(mailbox.item(item, 1 << 20).unwrap_err().why, TOO_LARGE);
    let read = mailbox.item(item, ROOM).unwrap();
    assert!(read.damage.iter().any(|it| it.contains("checksum")));
}

#[test]
fn list_that_has_fewer_entries_than_it_counts_is_named_as_damage() {
    let content = vec![7; 20_000];
    for form in [USUAL, FORMS[1]] {
        let mut pst = Pst::in_memory(form);
        let message = Message::mail("x", "y").with_file("a.bin", &content);
        pst.folder(None, "Inbox", &[message]);
        let good = pst.bytes();
        let damage = |bytes: Vec<u8>| {
            let mailbox = open(bytes).unwrap();
            let item = mailbox.folders()[0].items[0];
            mailbox.item(item, ROOM).unwrap().damage.join("\n")
        };
        assert_eq!(damage(good.clone()), "");
        // The file contains two lists: the blocks of the attachment, and the parts of the message. Each starts with a
        // two-byte type, followed by the number of entries, 3. Changing the number to 4 makes the list look truncated.
        for (list, named) in [
            ([1, 1, 3, 0], "the list of data blocks is cut off"),
            ([2, 0, 3, 0], "the list of parts of the item is cut off"),
        ] {
            let is_list = |block: &&[u8]| block.starts_with(&list);
            let places: Vec<usize> = (0..good.len())
                .step_by(64)
                .filter(|at| good.get(*at..).as_ref().is_some_and(is_list))
                .collect();
            assert!(!places.is_empty(), "{form:?} {named}");
            let named_by = places.iter().filter(|at| {
                let mut bytes = good.clone();
                bytes[**at + 2] = 4;
                damage(bytes).contains(named)
            });
            assert_eq!(named_by.count(), places.len(), "{form:?} {named}");
        }
    }
}

#[test]
fn table_of_recipients_that_has_fewer_columns_than_it_counts_is_named_as_damage() {
    let mut pst = Pst::in_memory(Form {
        version: 23,
        encoding: 0,
    });
    pst.folder(None, "Inbox", &[Message::mail("x", "y")]);
    let good = pst.bytes();
    // Every table starts with the byte 0x7c and its number of columns. The search also finds other tables, so damage to
    // the recipients must be reported for exactly one of them.
    let tables: Vec<usize> = memchr::memchr_iter(0x7c, &good)
        .filter(|at| (1..9).contains(&good[at + 1]) && good[at + 10..at + 14] == [0x40, 0, 0, 0])
        .collect();
    assert!(!tables.is_empty());
    let mut named = 0;
    for at in tables {
        let mut bytes = good.clone();
        bytes[at + 1] = 200;
        let mailbox = open(bytes).unwrap();
        let item = mailbox.folders()[0].items[0];
        let damage = mailbox.item(item, ROOM).unwrap().damage.join("\n");
        named += usize::from(damage.contains("the table of recipients lacks columns"));
    }
    assert_eq!(named, 1);
}

#[test]
fn damaged_file_is_read_without_a_panic_and_most_of_its_mail_is_there() {
    let mut random = 1_u64;
    let mut next = || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random as usize
    };
    let (mut whole, mut all) = (0, 0);
    for form in [FORMS[1], FORMS[5], FORMS[6]] {
        let mut pst = Pst::in_memory(form);
        let messages: Vec<Message> = (0..20)
            .map(|it| Message::mail(&format!("message {it}"), "text").with_file("a.bin", &[7; 900]))
            .collect();
        pst.folder(None, "Inbox", &messages);
        let good = pst.bytes();
        for round in 0..120 {
            let mut bytes = good.clone();
            if round % 4 == 0 {
                bytes.truncate(0x4600 + next() % (bytes.len() - 0x4600));
            }
            for _ in 0..[1, 10, 50][round % 3] {
                let at = next() % bytes.len();
                bytes[at] = next() as u8;
            }
            all += 20;
            let Ok(mailbox) = open(bytes) else { continue };
            for folder in mailbox.folders() {
                for id in &folder.items {
                    _ = mailbox.kind(*id);
                    if let Ok(read) = mailbox.item(*id, ROOM) {
                        whole += 1;
                        assert!(mail(&read.item).content.len() < 100_000);
                    }
                }
            }
        }
    }
    assert!(whole * 10 > all * 5, "{whole} of {all}");
}
