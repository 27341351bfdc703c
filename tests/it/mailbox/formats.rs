//! The table of formats in docs/mailboxes.md: each format is read, or named with advice.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::path::Path;

use crate::common::archives::{tar, zip};
use crate::common::programs::{embody_in, stderr};
use crate::common::pst::{Form, Message, Pst};
use crate::common::reports;
use crate::common::tnef::{Properties, Tnef};

const MAIL: &str =
    "From: Ann <ann@example.org>\nSubject: x\nDate: Mon, 6 Jan 2020 10:00:00 +0000\n\nText.\n";
const FROM: &str = "From ann@example.org Mon Jan  6 10:00:00 2020\n";

/// Files of a format: paths and contents.
type Files = Vec<(&'static str, Vec<u8>)>;

fn files<const N: usize>(files: [(&'static str, &[u8]); N]) -> Files {
    files.map(|(name, content)| (name, content.to_vec())).into()
}

/// Returns a file of zeros with these bytes at an offset.
fn at(offset: usize, bytes: &[u8]) -> Vec<u8> {
    [vec![0; offset], bytes.to_vec(), vec![0; 64]].concat()
}

fn mbox() -> Vec<u8> {
    format!("{FROM}{MAIL}\n").into_bytes()
}

fn utf16(text: &[u8]) -> Vec<u8> {
    let text = String::from_utf8(text.to_vec()).unwrap();
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

fn pst() -> Vec<u8> {
    let mut pst = Pst::in_memory(Form {
        version: 23,
        encoding: 1,
    });
    pst.folder(None, "Inbox", &[Message::mail("a", "b")]);
    pst.bytes()
}

/// Returns the bytes of a text in EBCDIC.
fn ebcdic(text: &str) -> Vec<u8> {
    let of = |symbol: char| match symbol {
        'a'..='i' => symbol as u8 - b'a' + 0x81,
        'j'..='r' => symbol as u8 - b'j' + 0x91,
        's'..='z' => symbol as u8 - b's' + 0xa2,
        'A'..='I' => symbol as u8 - b'A' + 0xc1,
        'J'..='R' => symbol as u8 - b'J' + 0xd1,
        'S'..='Z' => symbol as u8 - b'S' + 0xe2,
        '0'..='9' => symbol as u8 - b'0' + 0xf0,
        ':' => 0x7a,
        '@' => 0x7c,
        '.' => 0x4b,
        '\n' => 0x25,
        _ => 0x40,
    };
    text.chars().map(of).collect()
}

/// Returns files of the format in a row of the table.
fn samples(row: &str) -> Files {
    let mail = MAIL.as_bytes();
    let emlx = format!("{}\n{MAIL}", MAIL.len()).into_bytes();
    let queued = format!("C\x1f{:>15} {:>15}T\x11", 1234, 200);
    let utf32: Vec<u8> = MAIL
        .chars()
        .flat_map(|it| u32::from(it).to_le_bytes())
        .collect();
    let pegasus = [&b"FOL00001\0Projects"[..], &[0; 111], mail].concat();
    let batch = format!("#! rnews {0}\n{MAIL}#! rnews {0}\n{MAIL}", MAIL.len());
    match row {
        "mbox" => files([("Inbox", &mbox()), ("cr", &mbox_with_cr())]),
        "mbox of Thunderbird" => files([("Inbox.sbd/Work", &mbox()), ("Inbox", b"")]),
        "Eudora mailbox" => {
            let text = format!("From ???@??? Mon Jan 06 10:00:00 2020\n{MAIL}\n");
            files([("In.mbx", text.as_bytes())])
        }
        "MMDF mailbox" => {
            let text = format!("\x01\x01\x01\x01\n{MAIL}\x01\x01\x01\x01\n");
            files([("box", text.as_bytes())])
        }
        "Maildir" => files([("cur/1.M1P1.h:2,S", mail), ("new/2.M1P1.h", mail)]),
        "MH folder" => files([(".mh_sequences", b"cur: 1\n"), ("1", mail)]),
        "message (`.eml`)" => {
            let separated = mbox();
            files([("1.eml", mail), ("2", mail), ("3.eml", &separated)])
        }
        "message or mbox in UTF-16" => files([("1.eml", &utf16(mail)), ("box", &utf16(&mbox()))]),
        "Apple Mail `.emlx`" => files([("1.emlx", &emlx)]),
        "Outlook message (`.msg`, `.oft`)" => {
            let path = Path::new(env!("CARGO_MANIFEST_DIR"));
            let msg = fs::read(path.join("tests/it/mailbox/outlook/simple.msg")).unwrap();
            files([("1.msg", &msg)])
        }
        "Outlook message (`winmail.dat`, TNEF)" => {
            let properties = Properties::new().text(0x37, "x").text(0x1000, "Text.");
            let note = Tnef::new().class("IPM.Microsoft Mail.Note");
            let winmail = note.properties(properties).file("a.txt", b"x").bytes();
            files([("winmail.dat", &winmail)])
        }
        "Outlook mailbox (`.pst`, `.ost`)" => files([("a.pst", &pst())]),
        "zip or tar archive" => files([
            ("a.zip", &zip(&[("box", &mbox())])),
            ("b.tar", &tar(&[("1.eml", b'0', mail)])),
        ]),
        "directory" => files([("a/b/1.eml", mail)]),
        "dbox and mdbox of Dovecot" => files([("u.1", b"2 M1e C6b0aeacf\n\x01\x02N  ")]),
        "mail that Dovecot encrypted" => files([("a", b"CRYPTED\x03\x07\x02\0")]),
        "archive of Outlook for Mac" => {
            let member = "Accounts/a@b/com.microsoft.__Messages/Inbox/message_00001.xml";
            let archive = zip(&[(member, b"<?xml version=\"1.0\"?><emails/>")]);
            files([("a.olm", &archive)])
        }
        "profile of Outlook for Mac" => files([
            ("x.olk15MsgSource", b"\0\x01\x02"),
            ("x.olk14Message", b"\0\x01\x02"),
        ]),
        "Outlook Express `.dbx`, and `.mbx` of version 4" => files([
            ("a.dbx", b"\xcf\xad\x12\xfe\xc5\xfd\x74\x6f"),
            ("a.mbx", b"JMF6\0\0\0\0"),
        ]),
        "Outlook `.ost` of version 36" => {
            let mut ost = pst();
            ost[10] = 36;
            files([("a.ost", &ost)])
        }
        "MBX of UW-IMAP" => files([("a", b"*mbx*\r\n00000000\r\n")]),
        "Babyl of Emacs" => files([("RMAIL", b"BABYL OPTIONS: -*- rmail -*-\nVersion: 5\n")]),
        "Pegasus Mail `.PMM`" => files([("FOL00001.PMM", &pegasus), ("copy", &pegasus)]),
        "Becky! `.bmf`" => files([("IN.BMF", &mbox())]),
        "eM Client" => files([("mail_data.dat", b"SQLite format 3\0\x10\0")]),
        "The Bat!, Foxmail, Lotus Notes, AOL, databases of Exchange" => files([
            ("a", b"!\x09\x70\x19\x30\0"),
            (
                "b",
                b"\x10\x10\x10\x10\x10\x10\x10\x11\x11\x11\x11\x11\x11\x53\r\n",
            ),
            ("c", b"\x1a\0\0\x04\0\0\0"),
            ("d", b"AOLVM100\0"),
            ("e", &at(4, b"\xef\xcd\xab\x89")),
        ]),
        "queue of Exim, sendmail or Postfix" => files([
            ("a", b"1hBx3y-0001Qa-Ab-H\nmail 8 8\n"),
            ("b", b"V8\nT1578304800\nHSubject: x\n.\n"),
            ("c", queued.as_bytes()),
        ]),
        "batch of Usenet news with several articles" => files([
            ("a", batch.as_bytes()),
            ("b", b"#! cunbatch\n\x1f\x9d\x90\0"),
            ("c", b"#! gunbatch\n\x1f\x8b\x08\0"),
        ]),
        "recorded POP3, IMAP, NNTP or SMTP session, and a file to which a news reader saved several articles" =>
        {
            let session = |before: &str| format!("{before}{MAIL}.\n").repeat(2).into_bytes();
            files([
                ("a", &session("+OK 120 octets\n")),
                ("b", &session("* 1 FETCH (BODY[] {1234}\n")),
                ("c", &session("220 1 <id>\n")),
                ("d", &session("MAIL FROM:<a@b>\nDATA\n")),
                ("e", &session("Article 1 of group:\n")),
                ("f", format!("RETR 1\n+OK 9\n{MAIL}.\n").as_bytes()),
            ])
        }
        "mbox with a tab after `From` in its separators" => {
            let mbox = format!("{FROM}{MAIL}\n").replace("From ann", "From\tann");
            files([("a", mbox.repeat(2).as_bytes())])
        }
        "image of a disk: VHD, VHDX, VMDK, VDI, qcow2, Parallels, EnCase, NTFS, FAT, APFS, HFS+; a disk that LUKS or BitLocker encrypted; xar and squashfs" => {
            files([
                ("a", b"conectix\0\0\0\x02"),
                ("b", b"vhdxfileM\0"),
                ("c", b"KDMV\x01\0\0\0"),
                ("d", b"# Disk DescriptorFile\nversion=1\n"),
                ("e", &at(0x40, b"\x7f\x10\xda\xbe")),
                ("f", b"QFI\xfb\0\0\0\x03"),
                ("g", b"WithoutFreeSpace\x02"),
                ("h", b"EVF\x09\x0d\x0a\xff\x00\x01"),
                ("i", &at(3, b"NTFS    ")),
                ("j", &at(54, b"FAT16   ")),
                ("k", &at(32, b"NXSB")),
                ("l", &at(1024, b"H+\0\x04")),
                ("m", b"LUKS\xba\xbe\0\x02"),
                ("n", &at(3, b"-FVE-FS-")),
                ("o", b"xar!\0\x1c\0\x01"),
                ("p", b"hsqs\x01\0\0\0"),
            ])
        }
        "mail in UTF-32 or EBCDIC" => {
            let header = "FROM: ANN@EXAMPLE.ORG\nTO: BOB\nSUBJECT: X\n\nX\n";
            files([("a", &utf32), ("b", &ebcdic(header))])
        }
        "7z, RAR, ACE, ALZ, ARJ, EGG, LHA, ZOO, ZPAQ, ar, cabinet, StuffIt, BinHex, cpio, backup of Windows (BKF) or Android, Windows image, image of a CD" => {
            files([
                ("a", b"7z\xbc\xaf\x27\x1c\0\x04"),
                ("b", b"Rar!\x1a\x07\x01\0"),
                ("c", &at(7, b"**ACE**")),
                ("d", &at(2, b"-lh5-")),
                ("e", b"MSCF\0\0\0\0"),
                ("f", b"SIT!\0\0"),
                ("g", b"070701000"),
                ("h", b"MSWIM\0\0\0"),
                ("i", &at(0x8001, b"CD001")),
                ("j", b"\x60\xea\x2c\0\x22\x0b\x01\x02\x10\0\x02"),
                ("k", &at(20, b"\xdc\xa7\xc4\xfd")),
                ("l", b"7kSt\xa0\x31\x83\xd3"),
                ("m", b"StuffIt!\0"),
                ("n", b"(This file must be converted with BinHex 4.0)\n"),
                ("o", b"TAPE\0\0\x03\0"),
                (
                    "p",
                    b"!<arch>\n1.eml/          1578304860  0     0     100644  4         `\nmail",
                ),
                ("q", b"ALZ\x01\x0a\0"),
                ("r", b"EGGA\0\x01\0\0"),
                ("s", b"ANDROID BACKUP\n5\n1\nnone\n"),
                ("t", &at(0x8001, b"BEA01")),
            ])
        }
        "self-extracting zip archive" => {
            let stub = [&b"MZ"[..], &[0; 80_000]].concat();
            let archive = zip(&[("1.eml", MAIL.as_bytes())]);
            files([
                ("backup.exe", &[&stub[..], &archive].concat()),
                ("backup", &[&[b'x'; 100][..], &archive].concat()),
            ])
        }
        "shell script with an archive (makeself)" => {
            let stub = [&b"#!/bin/sh\n"[..], &b"cd\n".repeat(20)].concat();
            let archive = tar(&[("1.eml", b'0', MAIL.as_bytes())]);
            files([
                ("a.run", &[&stub[..], &archive].concat()),
                (
                    "b.run",
                    &[&stub[..], &super::appended::gzip(&archive)].concat(),
                ),
            ])
        }
        "disk image of macOS" => files([
            ("Backup.dmg", b"x\xda\x63\0"),
            ("bzip2.DMG", b"BZh91AY&SY\0"),
            ("a", b"encrcdsa\0\0\0\x02"),
            ("b", b"sprs\0\0\0\x03"),
        ]),
        "data compressed with compress, pack, freeze, lzip, lzop, lzma, lrzip, rzip, bzip3, snappy, LZFSE, SZDD, lz4 or (in a Maildir) zlib" => {
            files([
                ("f", b"\x1f\x1e\0"),
                ("g", b"\x1f\x9e\0"),
                ("h", b"LRZI\0\x06"),
                ("i", b"RZIP\x02\x01"),
                ("a", b"\x1f\x9d\x90\0"),
                ("b", b"LZIP\x01\x0c"),
                ("c", b"\x89LZO\0\r\n\x1a\n"),
                ("d", b"\x5d\0\0\x80\0\xff"),
                ("e", b"\x04\x22\x4d\x18\x64\x40"),
                ("j", b"BZ3v1\0"),
                ("k", b"\xff\x06\0\0sNaPpY"),
                ("l", b"bvx2\0"),
                ("m", b"SZDD\x88\xf0\x27\x33A"),
                ("cur/1578304801.M1P1.h:2,", b"x\x9c\x03\0"),
            ])
        }
        "encrypted file" => files([
            ("Inbox.mbox.gpg", b"\x85\x01\x0c\x03\0"),
            ("mail.tar.enc", b"Salted__\0"),
        ]),
        "part of a split file" => files([
            ("mail.zip.002", &[1, 0, 2]),
            ("mail.tar.gz.ab", &[1, 0, 2]),
            ("mail.z01", &[1, 0, 2]),
            ("mail.r00", &[1, 0, 2]),
        ]),
        "text that begins like a mail" => {
            files([("note", b"Subject: x\nno field\nX-Id: 1\n\ntext\n")])
        }
        "other file with the file name extension of mail, such as `x.mbox` or `x.emlx`" => files([
            ("x.mbox", b"Dear all,\n"),
            ("x.emlx", b"\0\x01\x02\x03"),
            ("zeros", &[0; 4096]),
            ("behind", format!("Dear all,\n\n{FROM}{MAIL}").as_bytes()),
        ]),
        _ => Vec::new(),
    }
}

fn mbox_with_cr() -> Vec<u8> {
    let mbox = String::from_utf8(mbox()).unwrap();
    mbox.replace('\n', "\r").into_bytes()
}

#[test]
fn each_format_of_the_table_is_read_or_named_with_its_advice() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/mailboxes.md");
    let page = fs::read_to_string(path).unwrap();
    let (_, table) = page.split_once("| format | how embody recognises").unwrap();
    let mut rows = 0;
    for line in table.lines().skip(2).take_while(|line| !line.is_empty()) {
        let columns: Vec<&str> = line.split(" | ").collect();
        let (row, read) = (columns[0].trim_start_matches("| "), columns[2]);
        rows += 1;
        if row == "IMAP account" {
            continue;
        }
        let samples = samples(row);
        assert!(!samples.is_empty(), "no sample of '{row}'");
        let temporary = tempfile::tempdir().unwrap();
        let place = temporary.path();
        for (name, content) in &samples {
            let path = place.join("mail").join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            let mut file = fs::File::create(path).unwrap();
            file.write_all(content).unwrap();
        }
        let output = embody_in(place, &["inspect", "--json", "mail"]);
        let said = stderr(&output);
        let json = String::from_utf8(output.stdout).unwrap();
        let last = reports::object(json.lines().last().unwrap());
        let survey = &last["survey"];
        if read.starts_with("yes") {
            assert_eq!(output.status.code(), Some(0), "{row}: {said}");
            assert!(survey["messages"].as_u64() >= Some(1), "{row}: {json}");
            assert_eq!(survey["files"]["not_mail"], 0, "{row}: {json}");
            continue;
        }
        assert_eq!(output.status.code(), Some(1), "{row}: {said}");
        assert_eq!(survey["files"]["not_read"], samples.len(), "{row}: {said}");
        let named: BTreeSet<&str> = said
            .lines()
            .filter_map(|line| line.strip_prefix("embody: mail/")?.split(": ").next())
            .collect();
        let expected: BTreeSet<&str> = samples.iter().map(|(name, _)| *name).collect();
        assert_eq!(named, expected, "{row}: {said}");
        // Programs are written as code in the advice.
        let programs = read.split('`').skip(1).step_by(2);
        for program in programs.filter_map(|code| code.split_whitespace().next()) {
            let is_program = program.chars().all(|it| it.is_ascii_lowercase());
            assert!(
                !is_program || said.contains(program),
                "{row}: {program}: {said}"
            );
        }
    }
    assert!(rows > 25, "{rows}");
}
