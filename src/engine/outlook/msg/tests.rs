use std::io::{Cursor, Write as _};

use super::*;
use crate::engine::outlook::source::mail;

const SIMPLE: &[u8] = include_bytes!("../../../../tests/it/mailbox/outlook/simple.msg");
const EMBEDDED: &[u8] = include_bytes!("../../../../tests/it/mailbox/outlook/embedded.msg");

#[test]
fn msg_that_is_cut_or_changed_at_any_place_is_read_without_a_panic() {
    let mut read_at_all = 0;
    for whole in [SIMPLE, EMBEDDED] {
        for at in (0..whole.len()).step_by(61) {
            _ = read(&whole[..at], 4);
            for byte in [0xff, 0x00, 0x01] {
                let mut bytes = whole.to_vec();
                bytes[at] ^= byte;
                bytes[at] = bytes[at].wrapping_add(byte);
                if let Ok(message) = read(&bytes, 4) {
                    read_at_all += 1;
                    let written = mail(&message.item).content;
                    assert!(written.len() < 4 * whole.len(), "{at}");
                }
            }
        }
    }
    assert!(read_at_all > 600, "{read_at_all}");
}

/// Creates a compound file with these streams.
fn compound(streams: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut file = CompoundFile::create(Cursor::new(Vec::new())).unwrap();
    for (path, bytes) in streams {
        let path = Path::new(path);
        file.create_storage_all(path.parent().unwrap()).unwrap();
        file.create_stream(path).unwrap().write_all(bytes).unwrap();
    }
    file.flush().unwrap();
    file.into_inner().into_inner()
}

/// Creates a list of properties whose values are in other streams.
fn list(header: usize, properties: &[(u16, u16)]) -> Vec<u8> {
    let mut list = vec![0; header];
    for (id, kind) in properties {
        list.extend_from_slice(&kind.to_le_bytes());
        list.extend_from_slice(&id.to_le_bytes());
        list.extend_from_slice(&[0; 12]);
    }
    list
}

#[test]
fn msg_with_messages_within_messages_is_read_to_the_limit() {
    let mut path = String::new();
    let mut streams = vec![("/__properties_version1.0".to_owned(), list(32, &[]))];
    for _ in 0..8 {
        path += "/__attach_version1.0_#00000000";
        streams.push((format!("{path}/__properties_version1.0"), list(8, &[])));
        path += "/__substg1.0_3701000D";
        streams.push((format!("{path}/__properties_version1.0"), list(24, &[])));
    }
    let streams: Vec<(&str, Vec<u8>)> = streams
        .iter()
        .map(|(path, bytes)| (path.as_str(), bytes.clone()))
        .collect();
    let bytes = compound(&streams);
    let message = read(&bytes, 5).unwrap();
    assert_eq!(
        message.damage,
        [
            "the message has too many levels of messages within messages; the innermost messages are missing"
        ]
    );
    assert!(read(&bytes, 8).unwrap().damage.is_empty());
}

/// Creates a message with these numeric properties, and with a subject in these bytes.
fn narrow(numbers: &[(u16, u32)], subject: &[u8]) -> OutlookItem<'static> {
    let mut list = list(32, &[(id::SUBJECT, kind::NARROW)]);
    for (id, number) in numbers {
        list.extend_from_slice(&3_u16.to_le_bytes());
        list.extend_from_slice(&id.to_le_bytes());
        list.extend_from_slice(&[0; 4]);
        list.extend_from_slice(&number.to_le_bytes());
        list.extend_from_slice(&[0; 4]);
    }
    let bytes = compound(&[
        ("/__properties_version1.0", list),
        ("/__substg1.0_0037001E", subject.to_vec()),
    ]);
    read(&bytes, 1).unwrap().item
}

#[test]
fn msg_with_a_title_above_its_transport_header_keeps_the_header() {
    let header = b"Microsoft Mail Internet Headers Version 2.0\r\n\
        Received: from a by b; Fri, 12 Sep 2008 07:28:29 -0700\r\nFrom: \"Ann\" <ann@example.org>\r\n\
        Content-Type: text/plain; charset=\"koi8-r\"\r\nX-Own: 1\r\n\r\n\r\n";
    let properties = [
        (0x007d, kind::NARROW),
        (id::SUBJECT, kind::NARROW),
        (id::SENDER_NAME, kind::NARROW),
    ];
    let bytes = compound(&[
        ("/__properties_version1.0", list(32, &properties)),
        ("/__substg1.0_007D001E", header.to_vec()),
        ("/__substg1.0_0037001E", b"\xf0\xd2\xc9".to_vec()),
        ("/__substg1.0_0C1A001E", b"/O=ANN".to_vec()),
    ]);
    let item = read(&bytes, 1).unwrap().item;
    let text = String::from_utf8(mail(&item).content).unwrap();
    assert!(
        text.starts_with(
            "Received: from a by b; Fri, 12 Sep 2008 07:28:29 -0700\nFrom: \"Ann\" <ann@example.org>\nX-Own: 1\n"
        ),
        "{text}"
    );
    assert!(!text.contains("exchange.invalid"), "{text}");
    // The header declares koi8-r, and no property declares a code page. So the code page of the item is that of
    // koi8-r (20866).
    assert_eq!(item.page, 20866);
}

#[test]
fn msg_in_its_own_code_page_is_read_in_it() {
    for (number, subject, expected) in [
        (1251, &b"\xcf\xf0\xe8"[..], "\u{41f}\u{440}\u{438}"),
        (932, b"\x93\xfa\x96\x7b\0", "\u{65e5}\u{672c}"),
        (1252, b"\xc3\xa9\0", "\u{e9}"),
    ] {
        let pages = [
            (id::INTERNET_CODEPAGE, 65001),
            (id::MESSAGE_CODEPAGE, number),
        ];
        let item = narrow(&pages, subject);
        assert_eq!(item.text(id::SUBJECT).as_deref(), Some(expected));
    }
}

#[test]
fn msg_without_its_code_page_is_read_in_that_of_its_language() {
    let japanese = "\u{65e5}\u{672c}";
    for (numbers, subject, expected) in [
        // The mail was sent in ISO-2022-JP, but Outlook stored its texts in the code page of the system.
        (
            &[(id::INTERNET_CODEPAGE, 50220), (id::LOCALE, 0x0411)][..],
            &b"\x93\xfa\x96\x7b"[..],
            japanese,
        ),
        (
            &[(id::INTERNET_CODEPAGE, 50220)],
            b"\x93\xfa\x96\x7b",
            japanese,
        ),
        (&[(id::LOCALE, 0x0411)], b"\x93\xfa\x96\x7b", japanese),
        (
            &[(id::LOCALE, 0x0419)],
            b"\xcf\xf0\xe8",
            "\u{41f}\u{440}\u{438}",
        ),
        (&[(id::LOCALE, 0x0404)], b"\xa4\xa4", "\u{4e2d}"),
        (&[(id::LOCALE, 0x0804)], b"\xd6\xd0", "\u{4e2d}"),
        (&[(id::LOCALE, 0x0415)], b"\xb3", "\u{142}"),
        (&[(id::LOCALE, 0x0407)], b"\xe9", "\u{e9}"),
        (&[(id::LOCALE, u32::MAX)], b"\xe9", "\u{e9}"),
        // Text that is not valid in the Japanese code page is read as Western European.
        (&[(id::LOCALE, 0x0411)], b"caf\xe9", "caf\u{e9}"),
    ] {
        let item = narrow(numbers, subject);
        assert_eq!(
            item.text(id::SUBJECT).as_deref(),
            Some(expected),
            "{numbers:x?}"
        );
    }
}

#[test]
fn msg_with_streams_that_are_too_large_is_read_within_twice_its_length() {
    let bytes = compound(&[("/large", vec![7; 10_000]), ("/small", vec![8; 100])]);
    let mut reading = MsgReader {
        file: Compound::open(&bytes).unwrap(),
        names: PropertyIds::default(),
        has_all_names: true,
        room: 6000,
        values: 0,
        damage: Vec::new(),
        lost: 0,
        first_lost: None,
    };
    assert!(reading.stream(Path::new("/large")).is_none());
    assert_eq!(reading.room, 3000);
    assert!(reading.stream(Path::new("/large")).is_none());
    assert_eq!(reading.room, 1500);
    // The large stream was rejected twice and halved `room` each time. What is left must still be enough for a small
    // stream.
    assert_eq!(reading.stream(Path::new("/small")).unwrap().len(), 100);
    assert_eq!(reading.room, 1400);
}

/// Returns the position of a directory entry with this name.
fn entry_of(file: &[u8], name: &str) -> usize {
    let name: Vec<u8> = name.encode_utf16().flat_map(u16::to_le_bytes).collect();
    memchr::memmem::find(file, &name).unwrap()
}

#[test]
fn msg_with_a_damaged_name_of_a_value_keeps_the_other_values() {
    let mut bytes = SIMPLE.to_vec();
    let at = entry_of(&bytes, "__substg1.0_1000");
    // The length of the name in the directory entry of this stream is overwritten with an invalid number. Only this
    // stream may be lost.
    bytes[at + 65] = 0x80;
    assert!(CompoundFile::open(Cursor::new(&bytes[..])).is_err());
    let message = read(&bytes, 4).unwrap();
    let whole = read(SIMPLE, 4).unwrap().item;
    assert_eq!(message.item.text(id::BODY), None);
    let others = [id::SUBJECT, id::SENDER_ADDRESS, id::MESSAGE_CLASS];
    for id in others {
        assert_eq!(message.item.text(id), whole.text(id));
    }
    let damage = message.damage.join("\n");
    assert!(damage.starts_with("the file is damaged ("), "{damage}");
    assert!(
        damage.contains("__substg1.0_1000")
            && damage.contains("(the stream of this value is missing)"),
        "{damage}"
    );
}

#[test]
fn msg_without_its_list_of_properties_keeps_the_values_with_streams() {
    let mut bytes = SIMPLE.to_vec();
    let at = entry_of(&bytes, PROPERTIES);
    bytes[at] = b'W';
    let message = read(&bytes, 4).unwrap();
    let whole = read(SIMPLE, 4).unwrap().item;
    assert_eq!(message.item.text(id::BODY), whole.text(id::BODY));
    assert_eq!(message.item.text(id::SUBJECT), whole.text(id::SUBJECT));
    let damage = message.damage.join("\n");
    assert!(
        damage.contains("is missing or cannot be read, so only the properties"),
        "{damage}"
    );
}

#[test]
fn msg_with_a_list_of_properties_that_ends_within_its_header_keeps_the_values_with_streams() {
    let bytes = |list: Vec<u8>| {
        compound(&[
            ("/__properties_version1.0", list),
            ("/__substg1.0_0037001E", b"subject".to_vec()),
            ("/__substg1.0_1000001E", b"text".to_vec()),
        ])
    };
    let properties = [(id::SUBJECT, kind::NARROW), (id::BODY, kind::NARROW)];
    let whole = read(&bytes(list(32, &properties)), 1).unwrap();
    assert!(whole.damage.is_empty(), "{:?}", whole.damage);
    for length in [1, 8, 31] {
        let message = read(&bytes(vec![0; length]), 1).unwrap();
        assert_eq!(message.item.text(id::SUBJECT).as_deref(), Some("subject"));
        assert_eq!(message.item.text(id::BODY).as_deref(), Some("text"));
        let damage = message.damage.join("\n");
        assert!(
            damage.contains("is missing or cannot be read, so only the properties"),
            "{length}: {damage}"
        );
    }
    // A list without properties is not damaged.
    assert!(read(&bytes(list(32, &[])), 1).unwrap().damage.is_empty());
}

#[test]
fn msg_with_wrong_tables_of_sectors_is_read_as_far_as_they_lead() {
    // The table of sectors gets an entry for a sector after the end of the file. The mail must still be read
    // completely.
    let mut bytes = SIMPLE.to_vec();
    let sector = u32::from_le_bytes(bytes[76..80].try_into().unwrap());
    let table = 512 * (usize::try_from(sector).unwrap() + 1);
    bytes[table + 508..table + 512].copy_from_slice(&0x1000_u32.to_le_bytes());
    assert!(CompoundFile::open(Cursor::new(&bytes[..])).is_err());
    let message = read(&bytes, 4).unwrap();
    let whole = read(SIMPLE, 4).unwrap();
    assert!(whole.damage.is_empty(), "{:?}", whole.damage);
    assert_eq!(mail(&message.item).content, mail(&whole.item).content);
    assert_eq!(message.damage.len(), 1, "{:?}", message.damage);

    // The directory contains a cycle, and so does a chain of sectors. Reading must still end.
    let mut bytes = SIMPLE.to_vec();
    let at = entry_of(&bytes, PROPERTIES);
    bytes[at + 68..at + 72].copy_from_slice(&0_u32.to_le_bytes());
    bytes[at + 72..at + 76].copy_from_slice(&1_u32.to_le_bytes());
    for place in (table..table + 512).step_by(4) {
        bytes[place..place + 4].copy_from_slice(&1_u32.to_le_bytes());
    }
    _ = read(&bytes, 4);
}

#[test]
fn ole_object_in_a_damaged_msg_is_read() {
    let bytes = compound(&[
        ("/__properties_version1.0", list(32, &[])),
        ("/__attach_version1.0_#00000000/__properties_version1.0", {
            let mut list = list(8, &[]);
            list.extend_from_slice(&[3, 0, 5, 0x37, 0, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0]);
            list
        }),
        (
            "/__attach_version1.0_#00000000/__substg1.0_3701000D/Inner/data",
            b"object".to_vec(),
        ),
        ("/zzz", Vec::new()),
    ]);
    let mut damaged = bytes.clone();
    let at = entry_of(&bytes, "zzz");
    damaged[at + 66] = 9;
    assert!(CompoundFile::open(Cursor::new(&damaged[..])).is_err());
    let message = read(&damaged, 1).unwrap();
    match &message.item.attachments[0].content {
        AttachmentContent::Storage(object) => {
            let mut file = CompoundFile::open(Cursor::new(&object[..])).unwrap();
            let mut text = String::new();
            let mut stream = file.open_stream("/Inner/data").unwrap();
            stream.read_to_string(&mut text).unwrap();
            assert_eq!(text, "object");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn ole_object_in_a_msg_becomes_the_same_bytes_each_time() {
    let streams = [
        ("/__properties_version1.0", list(32, &[])),
        ("/__attach_version1.0_#00000000/__properties_version1.0", {
            let mut list = list(8, &[]);
            list.extend_from_slice(&[3, 0, 5, 0x37, 0, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0]);
            list
        }),
        (
            "/__attach_version1.0_#00000000/__substg1.0_3701000D/Inner/data",
            b"object".to_vec(),
        ),
    ];
    let bytes = compound(&streams);
    let object = || match read(&bytes, 1).unwrap().item.attachments.remove(0).content {
        AttachmentContent::Storage(bytes) => bytes.into_owned(),
        other => panic!("{other:?}"),
    };
    let first = object();
    assert!(first == object());
    let mut file = CompoundFile::open(Cursor::new(first)).unwrap();
    let mut text = String::new();
    file.open_stream("/Inner/data")
        .unwrap()
        .read_to_string(&mut text)
        .unwrap();
    assert_eq!(text, "object");
}

/// Returns the positions of all used entries of the directory, each with its name. Entries begin at multiples of 128 bytes.
fn entries(file: &[u8]) -> Vec<(usize, String)> {
    let starts = (512..file.len()).step_by(128);
    let named = starts.filter_map(|at| {
        let length = usize::from(u16::from_le_bytes([file[at + 64], file[at + 65]]));
        let is_entry = matches!(file[at + 66], 1 | 2) && (4..=64).contains(&length);
        let units = file[at..at + length.saturating_sub(2).min(62)]
            .as_chunks::<2>()
            .0;
        let name = String::from_utf16(
            &units
                .iter()
                .map(|it| u16::from_le_bytes(*it))
                .collect::<Vec<_>>(),
        );
        Some((
            at,
            name.ok()
                .filter(|name| is_entry && name.starts_with("__"))?,
        ))
    });
    named.collect()
}

#[test]
fn msg_with_one_wrong_bit_in_any_name_loses_nothing_unnamed() {
    let nested = nested();
    let streams: Vec<(&str, Vec<u8>)> = nested
        .iter()
        .map(|(path, bytes)| (path.as_str(), bytes.clone()))
        .collect();
    let (mut flips, mut unnamed) = (0, 0);
    let made = &compound(&streams)[..];
    // Sorts the lines and drops the boundaries: the order of the attachments may change, and with it the boundary.
    let lines = |content: &[u8]| {
        let text = String::from_utf8_lossy(content);
        let kept = text.lines().filter(|line| !line.contains("=_embody_"));
        let mut sorted: Vec<String> = kept.map(str::to_owned).collect();
        sorted.sort_unstable();
        sorted
    };
    for whole in [SIMPLE, EMBEDDED, made] {
        let read_whole = read(whole, 4).unwrap();
        assert!(read_whole.damage.is_empty(), "{:?}", read_whole.damage);
        let expected = mail(&read_whole.item);
        assert!(expected.missing.is_empty(), "{:?}", expected.missing);
        let all = entries(whole);
        assert!(all.len() > 20, "{all:?}");
        for (at, name) in all {
            // Large files are slow here, so only one bit in each storage name is flipped.
            let is_storage = |start: &&str| name.starts_with(start);
            let storages = [
                "__recip",
                "__attach",
                NAMES,
                PROPERTIES,
                "__substg1.0_3701000D",
            ];
            let bits = match (whole == made, storages.iter().any(is_storage)) {
                (true, _) => (0..name.len() * 2)
                    .map(|byte| byte * 8 + byte / 2 % 8)
                    .collect(),
                (false, true) => vec![16 * (at / 128 % name.len())],
                (false, false) => Vec::new(),
            };
            for bit in bits {
                let mut bytes = whole.to_vec();
                bytes[at + bit / 8] ^= 1 << (bit % 8);
                flips += 1;
                assert!(is_message(Cursor::new(&bytes)), "{name}, bit {bit}");
                // An unreadable file is reported as an error, so nothing is lost silently.
                let Ok(message) = read(&bytes, 4) else {
                    continue;
                };
                let written = mail(&message.item);
                if message.damage.is_empty() && written.missing.is_empty() {
                    unnamed += 1;
                    let same = lines(&written.content) == lines(&expected.content);
                    assert!(same, "{name}, bit {bit} of {}", name.len() * 16);
                }
            }
        }
    }
    // Some flipped bits are harmless: names are compared case-insensitively, the number of a recipient or attachment
    // has no meaning, and the lists for searching by name are not needed.
    assert!(unnamed < flips / 2, "{unnamed} of {flips}");
}

/// Returns the streams of a message with two recipients, a file, an attached message with a file, a named property and a
/// property with several values.
fn nested() -> Vec<(String, Vec<u8>)> {
    let wide = |text: &str| {
        text.encode_utf16()
            .flat_map(u16::to_le_bytes)
            .collect::<Vec<u8>>()
    };
    let mut streams = Vec::new();
    let mut put = |storage: &str,
                   header: Vec<u8>,
                   values: &[(u16, u16, Vec<u8>)],
                   more: &[(u16, u16, u32)]| {
        let mut list = header;
        for (id, kind, bytes) in values {
            let end = match *kind {
                kind::WIDE => 2,
                kind::NARROW => 1,
                _ => 0,
            };
            let length = u32::try_from(bytes.len()).unwrap() + end;
            list.extend([kind.to_le_bytes(), id.to_le_bytes()].concat());
            list.extend([[6, 0, 0, 0], length.to_le_bytes(), [0; 4]].concat());
            streams.push((
                format!("{storage}/__substg1.0_{id:04X}{kind:04X}"),
                bytes.clone(),
            ));
        }
        for (id, kind, number) in more {
            list.extend([kind.to_le_bytes(), id.to_le_bytes()].concat());
            list.extend([[6, 0, 0, 0], number.to_le_bytes(), [0; 4]].concat());
        }
        streams.push((format!("{storage}/{PROPERTIES}"), list));
    };
    let counted = |length: usize, recipients: u32, attachments: u32| {
        let mut header = vec![0; length];
        header[16..20].copy_from_slice(&recipients.to_le_bytes());
        header[20..24].copy_from_slice(&attachments.to_le_bytes());
        header
    };
    let message = |subject: &str| {
        vec![
            (id::SUBJECT, kind::WIDE, wide(subject)),
            (id::BODY, kind::WIDE, wide("The text.")),
            (id::MESSAGE_CLASS, kind::WIDE, wide("IPM.Note")),
        ]
    };
    let mut outer = message("outer");
    // Categories: a property with several values, whose name is in the list of names.
    outer.push((
        0x8000,
        kind::MANY | kind::WIDE,
        vec![8, 0, 0, 0, 10, 0, 0, 0],
    ));
    put("", counted(32, 2, 2), &outer, &[]);
    for number in 0..2 {
        let person = [
            (id::DISPLAY_NAME, kind::WIDE, wide("Ann")),
            (id::SMTP_ADDRESS, kind::WIDE, wide("ann@example.org")),
        ];
        put(
            &format!("/__recip_version1.0_#0000000{number}"),
            vec![0; 8],
            &person,
            &[(id::RECIPIENT_TYPE, 3, 1)],
        );
    }
    let file = [
        (id::DATA, kind::BYTES, b"%PDF-1.4 file".to_vec()),
        (id::LONG_FILE_NAME, kind::WIDE, wide("a.pdf")),
    ];
    put(
        "/__attach_version1.0_#00000000",
        vec![0; 8],
        &file,
        &[(id::METHOD, 3, 1)],
    );
    let attached = "/__attach_version1.0_#00000001";
    put(
        attached,
        vec![0; 8],
        &[(id::DISPLAY_NAME, kind::WIDE, wide("inner"))],
        &[(id::METHOD, 3, 5), (id::DATA, kind::OBJECT, u32::MAX)],
    );
    let inner = format!("{attached}/__substg1.0_3701000D");
    put(&inner, counted(24, 0, 1), &message("inner"), &[]);
    put(
        &format!("{inner}/__attach_version1.0_#00000000"),
        vec![0; 8],
        &file,
        &[(id::METHOD, 3, 1)],
    );
    for (index, word) in ["red", "blue"].iter().enumerate() {
        streams.push((format!("/__substg1.0_8000101F-{index:08X}"), wide(word)));
    }
    let name = wide("Keywords");
    let mut strings = u32::try_from(name.len()).unwrap().to_le_bytes().to_vec();
    strings.extend(name);
    let names = format!("/{NAMES}");
    for (number, bytes) in [
        ("0002", Vec::new()),
        ("0003", vec![0, 0, 0, 0, 5, 0, 0, 0]),
        ("0004", strings),
    ] {
        streams.push((format!("{names}/__substg1.0_{number}0102"), bytes));
    }
    streams
}

#[test]
fn msg_without_some_of_its_recipients_or_attachments_says_how_many_it_had() {
    for (start, what) in [
        ("/__recip_version1.0_#00000001", "2 recipients, but only 1"),
        (
            "/__attach_version1.0_#00000001",
            "2 attachments, but only 1",
        ),
    ] {
        let mut streams = nested();
        streams.retain(|(path, _)| !path.starts_with(start));
        let streams: Vec<(&str, Vec<u8>)> = streams
            .iter()
            .map(|(path, bytes)| (path.as_str(), bytes.clone()))
            .collect();
        let damage = read(&compound(&streams), 4).unwrap().damage.join("\n");
        assert!(damage.contains(what), "{damage}");
    }
}
