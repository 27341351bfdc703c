//! Formats that contain mail, or may contain mail, and that embody recognises but does not read. Each has a name and advice on
//! how to read the file in another way. The formats are recognised by their first bytes; the name of a file decides only
//! where the first bytes are those of another format.

use std::path::Path;

use crate::mailbox::compressed::plain_suffix;
use crate::mailbox::forms::archive::is_archive;
use crate::mailbox::forms::outlook::starts_like_msg;
use crate::mailbox::forms::separator::next_in_message;
use crate::mailbox::forms::{emlx, mmdf};
use crate::mailbox::not_mail::NotMail;
use crate::prologue;
use crate::span::{front, split_while};

/// A format that is recognised by bytes at a fixed offset: its offset, its bytes, its name, and the advice.
type Magic = (usize, &'static [u8], &'static str, &'static str);

const UNPACK: &str = "decompress the file first";
const UNPACK_ARCHIVE: &str = "embody cannot list the files in this archive; unpack the archive, and name the directory with its files";

const MOUNT: &str =
    "embody cannot list the files in it; open it on a Mac, and name the directory with its files";

const NEWS: &str = "a compressed batch of Usenet news";
const UNPACK_NEWS: &str =
    "decompress the data after the first line, and write each article to a file of its own";

const OPEN_IMAGE: &str = "embody cannot list the files in this image; mount the image, for example with guestmount, and name the directory with its files";

const OPEN_DISK: &str =
    "embody cannot decrypt it; open and mount the disk, and name the directory with its files";

const MAGICS: &[Magic] = &[
    (
        0,
        b"BABYL OPTIONS",
        "a Babyl mailbox",
        "embody does not read this format; save the mail as an mbox first, with unrmail in Emacs",
    ),
    (
        0,
        b"*mbx*",
        "an MBX mailbox",
        "embody does not read this format; convert the file to an mbox first, with mailutil",
    ),
    (
        0,
        b"!BDN",
        "an Outlook PST file",
        "embody does not read this format; convert the file to an mbox first, with readpst",
    ),
    (
        0,
        b"\xcf\xad\x12\xfe",
        "an Outlook Express file",
        "embody does not read this format; convert the file to an mbox first, with readdbx",
    ),
    (
        0,
        b"JMF",
        "a mailbox of Outlook Express 4",
        "embody does not read this format; import it into a newer program, and export the mail from there",
    ),
    (
        0,
        b"!\x09\x70\x19",
        "a mailbox of The Bat!",
        "embody does not read this format; export the mail as a Unix mailbox in The Bat!",
    ),
    (
        0,
        b"\x10\x10\x10\x10\x10\x10\x10\x11\x11\x11\x11\x11\x11\x53\r\n",
        "a mailbox of Foxmail",
        "embody does not read this format; export the mail as .eml files in Foxmail",
    ),
    (
        0,
        b"\x1a\0\0\x04\0\0",
        "a database of Lotus Notes",
        "embody does not read this format; export the mail as .eml files in Notes",
    ),
    (
        0,
        b"AOLVM",
        "a filing cabinet of AOL",
        "embody does not read this format; export the mail from the program that wrote the file",
    ),
    (
        4,
        b"\xef\xcd\xab\x89",
        "a database of Exchange or Windows Mail",
        "embody does not read this format; export the mail to a .pst file",
    ),
    (
        0,
        b"CRYPTED\x03\x07",
        "mail that Dovecot encrypted",
        "export the mail with doveadm, which decrypts it",
    ),
    (0, b"\x1f\x8b", "compressed (gzip)", UNPACK),
    (0, b"\x28\xb5\x2f\xfd", "compressed (zstd)", UNPACK),
    (0, b"BZh", "compressed (bzip2)", UNPACK),
    (0, b"\xfd7zXZ\0", "compressed (xz)", UNPACK),
    (0, b"\x04\x22\x4d\x18", "compressed (lz4)", UNPACK),
    (0, b"Dovecot-LZ4\x0d", "compressed by Dovecot (lz4)", UNPACK),
    (0, b"\x1f\x9d", "compressed (compress)", UNPACK),
    (0, b"\x1f\xa0", "compressed (lzh)", UNPACK),
    (0, b"\x1f\x9e", "compressed (freeze)", UNPACK),
    (0, b"\x1f\x1e", "compressed (pack)", UNPACK),
    (0, b"LRZI\0", "compressed (lrzip)", UNPACK),
    (0, b"RZIP\x02", "compressed (rzip)", UNPACK),
    (0, b"LZIP\x01", "compressed (lzip)", UNPACK),
    (0, b"\x89LZO\0\r\n\x1a\n", "compressed (lzop)", UNPACK),
    (0, b"\x5d\0\0\x80\0", "compressed (lzma)", UNPACK),
    (0, b"7z\xbc\xaf\x27\x1c", "a 7z archive", UNPACK_ARCHIVE),
    (0, b"Rar!\x1a\x07", "a RAR archive", UNPACK_ARCHIVE),
    (0, b"RE~^", "a RAR archive", UNPACK_ARCHIVE),
    (7, b"**ACE**", "an ACE archive", UNPACK_ARCHIVE),
    (2, b"-lh", "an LHA archive", UNPACK_ARCHIVE),
    (0, b"MSCF\0\0\0\0", "a cabinet archive", UNPACK_ARCHIVE),
    (0, b"SIT!\0", "a StuffIt archive", UNPACK_ARCHIVE),
    (0, b"StuffIt (c)", "a StuffIt archive", UNPACK_ARCHIVE),
    (0, b"StuffIt!", "a StuffIt archive", UNPACK_ARCHIVE),
    (20, b"\xdc\xa7\xc4\xfd", "a ZOO archive", UNPACK_ARCHIVE),
    (0, b"7kSt\xa0\x31\x83\xd3", "a ZPAQ archive", UNPACK_ARCHIVE),
    (
        0,
        b"(This file must be converted with BinHex",
        "a BinHex archive",
        UNPACK_ARCHIVE,
    ),
    (0, b"TAPE\0\0", "a backup of Windows (BKF)", UNPACK_ARCHIVE),
    (0, b"070701", "a cpio archive", UNPACK_ARCHIVE),
    (0, b"070702", "a cpio archive", UNPACK_ARCHIVE),
    (0, b"070707", "a cpio archive", UNPACK_ARCHIVE),
    (0, b"ALZ\x01", "an ALZ archive", UNPACK_ARCHIVE),
    (0, b"EGGA\0\x01", "an EGG archive", UNPACK_ARCHIVE),
    (
        0,
        b"ANDROID BACKUP\n",
        "a backup of Android",
        UNPACK_ARCHIVE,
    ),
    (0, b"!<thin>\n", "a thin ar archive", UNPACK_ARCHIVE),
    (0, b"#! cunbatch", NEWS, UNPACK_NEWS),
    (0, b"#! gunbatch", NEWS, UNPACK_NEWS),
    (0, b"#! zunbatch", NEWS, UNPACK_NEWS),
    (0, b"#! bunbatch", NEWS, UNPACK_NEWS),
    (0, b"encrcdsa", "an encrypted disk image of macOS", MOUNT),
    (0, b"sprs", "a disk image of macOS", MOUNT),
    (0, b"BZ3v1", "compressed (bzip3)", UNPACK),
    (0, b"\xff\x06\0\0sNaPpY", "compressed (snappy)", UNPACK),
    (0, b"bvx2", "compressed (LZFSE)", UNPACK),
    (0, b"SZDD\x88\xf0\x27\x33", "compressed (Microsoft)", UNPACK),
    (0, b"MSWIM\0\0\0", "a Windows image", UNPACK_ARCHIVE),
    (0x8001, b"CD001", "an image of a CD or DVD", UNPACK_ARCHIVE),
    (0x8001, b"BEA01", "an image of a CD or DVD", UNPACK_ARCHIVE),
    (0, b"xar!\0\x1c", "a xar archive", UNPACK_ARCHIVE),
    (0, b"hsqs", "a squashfs image", UNPACK_ARCHIVE),
    (0, b"sqsh", "a squashfs image", UNPACK_ARCHIVE),
    (0, b"conectix", "a disk image (VHD)", OPEN_IMAGE),
    (0, b"vhdxfile", "a disk image (VHDX)", OPEN_IMAGE),
    (0, b"KDMV\x01\0\0\0", "a disk image (VMDK)", OPEN_IMAGE),
    (0, b"KDMV\x02\0\0\0", "a disk image (VMDK)", OPEN_IMAGE),
    (0, b"KDMV\x03\0\0\0", "a disk image (VMDK)", OPEN_IMAGE),
    (0, b"COWD\x01\0\0\0", "a disk image (VMDK)", OPEN_IMAGE),
    (
        0,
        b"# Disk DescriptorFile",
        "a disk image (VMDK)",
        OPEN_IMAGE,
    ),
    (0, b"QFI\xfb\0\0\0", "a disk image (qcow2)", OPEN_IMAGE),
    (64, b"\x7f\x10\xda\xbe", "a disk image (VDI)", OPEN_IMAGE),
    (
        0,
        b"WithoutFreeSpace",
        "a disk image (Parallels)",
        OPEN_IMAGE,
    ),
    (
        0,
        b"WithouFreSpacExt",
        "a disk image (Parallels)",
        OPEN_IMAGE,
    ),
    (
        0,
        b"EVF\x09\x0d\x0a\xff\x00",
        "a disk image (EnCase)",
        OPEN_IMAGE,
    ),
    (3, b"NTFS    ", "an image of a disk (NTFS)", OPEN_IMAGE),
    (54, b"FAT12   ", "an image of a disk (FAT)", OPEN_IMAGE),
    (54, b"FAT16   ", "an image of a disk (FAT)", OPEN_IMAGE),
    (82, b"FAT32   ", "an image of a disk (FAT)", OPEN_IMAGE),
    (32, b"NXSB", "an image of a disk (APFS)", OPEN_IMAGE),
    (1024, b"H+\0\x04", "an image of a disk (HFS+)", OPEN_IMAGE),
    (1024, b"HX\0\x05", "an image of a disk (HFS+)", OPEN_IMAGE),
    (0, b"LUKS\xba\xbe", "an encrypted disk (LUKS)", OPEN_DISK),
    (3, b"-FVE-FS-", "an encrypted disk (BitLocker)", OPEN_DISK),
];

/// Returns the magic numbers that no text contains, with the names of their formats.
pub(crate) fn binary_magics() -> impl Iterator<Item = (&'static [u8], &'static str)> {
    let is_text = |byte: &u8| byte.is_ascii_graphic() || byte.is_ascii_whitespace();
    let binary = MAGICS.iter().filter(move |(offset, magic, ..)| {
        *offset == 0 && magic.len() >= 4 && !magic.iter().all(is_text)
    });
    binary.map(|(_, magic, name, _)| (*magic, *name))
}

const AR: NotMail = NotMail::Format("an ar archive", UNPACK_ARCHIVE);

const DISK_IMAGE: NotMail = NotMail::Format("a disk image of macOS", MOUNT);

const CPIO: NotMail = NotMail::Format("a cpio archive", UNPACK_ARCHIVE);

const ARJ: NotMail = NotMail::Format("an ARJ archive", UNPACK_ARCHIVE);

const DBOX: NotMail = NotMail::Format(
    "a dbox file of Dovecot",
    "embody does not read this format; copy the mail to a Maildir first: doveadm -o mail_location=mdbox:DIRECTORY backup maildir:NEW (or sdbox:DIRECTORY)",
);

const PEGASUS: NotMail = NotMail::Format(
    "a folder of Pegasus Mail",
    "embody does not read this format; in Pegasus Mail, copy the mail to a folder of the type Unix mailbox",
);

const BECKY: NotMail = NotMail::Format(
    "a mailbox of Becky!",
    "embody does not read this format; export the mail as a Unix mailbox or as .eml files in Becky!",
);

/// An archive of Outlook for Mac, which is a zip file with XML files.
pub(crate) const OLM: NotMail = NotMail::Format(
    "an archive of Outlook for Mac",
    "embody does not read this format; import the archive into Outlook for Mac, and drag each folder from Outlook to the desktop, which creates an mbox",
);

const OUTLOOK_FOR_MAC: NotMail = NotMail::Format(
    "a message in the profile of Outlook for Mac",
    "embody does not read this format; in Outlook for Mac, drag each folder from Outlook to the desktop, which creates an mbox",
);

const EM_CLIENT: NotMail = NotMail::Format(
    "a database of eM Client",
    "embody does not read this format; export the mail as .eml files in eM Client",
);

const EXIM: NotMail = NotMail::Format(
    "a file in the queue of Exim",
    "embody does not read this format; print the message with exim -Mvc, and save it as an .eml file",
);

const SENDMAIL: NotMail = NotMail::Format(
    "a file in the queue of sendmail",
    "embody does not read this format; append the body in the file df... to the header in the file qf...",
);

const POSTFIX: NotMail = NotMail::Format(
    "a file in the queue of Postfix",
    "embody does not read this format; print the message with postcat -h -b, and save it as an .eml file",
);

/// Returns the format of a file that embody refuses, by its first bytes.
pub(crate) fn refused(start: &[u8]) -> Option<NotMail> {
    let is_at = |offset: usize, magic: &[u8]| {
        let found = start.get(offset..);
        found.is_some_and(|found| found.starts_with(magic))
    };
    let mut magics = MAGICS.iter();
    if let Some((.., name, advice)) = magics.find(|(offset, magic, ..)| is_at(*offset, magic)) {
        return Some(NotMail::Format(name, advice));
    }
    if is_dbox(start) {
        return Some(DBOX);
    }
    if is_arj(start) {
        return Some(ARJ);
    }
    if is_old_cpio(start) {
        return Some(CPIO);
    }
    if let Some(members) = start.strip_prefix(AR_MAGIC) {
        let is_software = is_of_software(members);
        return Some(if is_software { NotMail::DOCUMENT } else { AR });
    }
    queued(start).or(is_pegasus(start).then_some(PEGASUS))
}

/// Returns the mail server whose queue contains the file. A queue contains each message in a format of its own.
fn queued(start: &[u8]) -> Option<NotMail> {
    let (line, behind) = split_while(front(start, 256), |byte| *byte != b'\n');
    // The first line is the name of the file: three groups of letters and digits, and a letter for its content.
    let words: Vec<&[u8]> = line.split(|&byte| byte == b'-').collect();
    if let [one, two, three, b"H" | b"D" | b"J"] = words.as_slice() {
        let is_group = |word: &[u8]| word.iter().all(u8::is_ascii_alphanumeric);
        let is_id = one.len() == 6
            && matches!((two.len(), three.len()), (6, 2) | (11, 4))
            && [*one, *two, *three].into_iter().all(is_group);
        return is_id.then_some(EXIM);
    }
    let is_number = |word: &[u8]| !word.is_empty() && word.iter().all(u8::is_ascii_digit);
    if let Some(version) = line.strip_prefix(b"V") {
        let (second, _) = split_while(behind.get(1..)?, |byte| *byte != b'\n');
        let time = second.strip_prefix(b"T")?;
        return (is_number(version) && is_number(time)).then_some(SENDMAIL);
    }
    // A record has a letter, its length, and its content. The first one contains only numbers in columns.
    let [b'C', length @ 31..=127, record @ ..] = start else {
        return None;
    };
    let record = record.get(..usize::from(*length))?;
    let is_column = |byte: &u8| byte.is_ascii_digit() || *byte == b' ';
    (record.starts_with(b" ") && record.iter().all(is_column)).then_some(POSTFIX)
}

/// Returns the format of a message in a Maildir or an MH folder if embody refuses it, by its first bytes. Mail servers compress
/// messages also with zlib. Many other files start like zlib data, so this format is recognised only here.
pub(crate) fn refused_message(content: &[u8]) -> Option<NotMail> {
    const ZLIB: [&[u8]; 3] = [b"x\x01", b"x\x9c", b"x\xda"];
    const MOVE: &str = "in a directory of messages, embody reads only single messages; move the file to another directory";
    let is_zlib = ZLIB.iter().any(|magic| content.starts_with(magic));
    // The separator that a single message had in an mbox is left before it by some programs.
    let is_mbox = content.starts_with(b"From ") && next_in_message(content).is_some();
    let is_emlx = emlx::behind_count(content).is_some_and(prologue::starts_mail)
        && matches!(emlx::message(content), Some(Ok(_)));
    let not_a_message = [
        (is_zlib, "compressed (zlib)", UNPACK),
        (is_mbox, "an mbox among messages", MOVE),
        (
            mmdf::starts(content),
            "an MMDF mailbox among messages",
            MOVE,
        ),
        (is_emlx, "a message of Apple Mail among messages", MOVE),
        (is_archive(content), "an archive among messages", MOVE),
        (
            starts_like_msg(content),
            "an Outlook file or a document among messages",
            MOVE,
        ),
    ];
    let other = not_a_message.into_iter().find(|(is_it, ..)| *is_it);
    refused(content).or(other.map(|(_, name, advice)| NotMail::Format(name, advice)))
}

/// Returns the format of a refused file that only its name shows, because its first bytes (`start`) are those of a more general
/// format, such as SQLite.
pub(crate) fn refused_by_name(path: &Path, start: &[u8]) -> Option<NotMail> {
    let is_database = || start.starts_with(b"SQLite format 3\0");
    if path.file_name()? == "mail_data.dat" && is_database() {
        return Some(EM_CLIENT);
    }
    let suffix = plain_suffix(path)?.to_str()?.to_ascii_lowercase();
    match suffix.as_str() {
        "olm" => Some(OLM),
        "bmf" => Some(BECKY),
        "pmm" => Some(PEGASUS),
        // The magic number of a disk image is at the end of the file. Its first bytes can be those of bzip2.
        "dmg" => Some(DISK_IMAGE),
        suffix if is_of_outlook_for_mac(suffix) => Some(OUTLOOK_FOR_MAC),
        _ => None,
    }
}

/// Returns whether the suffix is that of a message in a profile of Outlook for Mac, such as `olk15MsgSource`.
fn is_of_outlook_for_mac(suffix: &str) -> bool {
    let kind = ["olk14", "olk15"]
        .iter()
        .find_map(|version| suffix.strip_prefix(version));
    matches!(kind, Some("message" | "msgsource" | "msgattachment"))
}

/// Returns whether a member of an archive is a part of an archive of Outlook for Mac, by its name.
pub(crate) fn is_of_olm(name: &[u8]) -> bool {
    let lower = name.to_ascii_lowercase();
    lower.ends_with(b".xml") && memchr::memmem::find(&lower, b"/com.microsoft.").is_some()
}

/// Returns whether a file is an ARJ archive. Its two magic bytes are not enough, so the length of the header, which is at most
/// 2600 bytes, and the type of the header of an archive count, too.
fn is_arj(start: &[u8]) -> bool {
    let Some([0x60, 0xea, low, high, _, _, _, _, _, _, 2]) = start.first_chunk() else {
        return false;
    };
    (1..=2600).contains(&u16::from_le_bytes([*low, *high]))
}

/// Returns whether a file is a cpio archive in the old binary format. Its magic number has only two bytes, so the length of the
/// first name and the NUL at the end of this name count, too.
fn is_old_cpio(start: &[u8]) -> bool {
    const NAME: usize = 26;
    let number: fn([u8; 2]) -> u16 = match start {
        [0xc7, 0x71, ..] => u16::from_le_bytes,
        [0x71, 0xc7, ..] => u16::from_be_bytes,
        _ => return false,
    };
    let length = start
        .get(20..22)
        .map(|it| usize::from(number([it[0], it[1]])));
    let name = length.and_then(|length| start.get(NAME..NAME + length));
    name.and_then(<[u8]>::split_last)
        .is_some_and(|(end, name)| *end == 0 && !name.is_empty() && !name.contains(&0))
}

/// First bytes of an archive of ar(1).
const AR_MAGIC: &[u8] = b"!<arch>\n";

/// Returns whether the first member of an ar archive is that of a Debian package or of a library of object files. The name of
/// a member is at its start. BSD writes a longer name after the 60 bytes of the member's header.
fn is_of_software(members: &[u8]) -> bool {
    const NAMES: [&[u8]; 5] = [b"debian-binary", b"/ ", b"/SYM64/", b"// ", b"__.SYMDEF"];
    let is_name = |name: &[u8]| {
        let (word, _) = split_while(name, |byte| !matches!(byte, b'/' | b' ' | 0));
        NAMES.iter().any(|it| name.starts_with(it)) || word.ends_with(b".o")
    };
    let name = front(members, 16);
    let long = members.get(60..).unwrap_or_default();
    is_name(name) || name.starts_with(b"#1/") && is_name(front(long, 64))
}

/// Returns whether a file is a dbox file of Dovecot (sdbox and mdbox). Its first line contains the version, the size of the
/// header of a message in hexadecimal digits (`M`), and the time of creation (`C`).
pub(crate) fn is_dbox(start: &[u8]) -> bool {
    let line = front(start, 64);
    let Some(end) = memchr::memchr(b'\n', line) else {
        return false;
    };
    let first = &line[..end];
    // A transfer as text adds a CR.
    let bare = first.strip_suffix(b"\r").unwrap_or(first);
    let words: Vec<&[u8]> = bare.split(|&byte| byte == b' ').collect();
    let is_hex = |word: &[u8], letter: u8| {
        word.split_first().is_some_and(|(first, digits)| {
            *first == letter && !digits.is_empty() && digits.iter().all(u8::is_ascii_hexdigit)
        })
    };
    match words.as_slice() {
        [version, size, rest @ ..] => {
            matches!(version, [b'1'..=b'9'])
                && is_hex(size, b'M')
                && rest.iter().all(|word| {
                    word.first().is_some_and(u8::is_ascii_uppercase)
                        && word[1..].iter().all(u8::is_ascii_hexdigit)
                })
        }
        _ => false,
    }
}

/// Returns whether a file is a folder of Pegasus Mail: 128 bytes with two names, which are padded with NULs, and then the
/// header of the first message.
fn is_pegasus(start: &[u8]) -> bool {
    const HEADER: usize = 128;
    let Some((names, text)) = start.split_at_checked(HEADER) else {
        return false;
    };
    let (file, rest) = split_while(names, |&byte| byte != 0);
    let is_name =
        |name: &[u8]| !name.is_empty() && name.iter().all(|byte| !byte.is_ascii_control());
    let (_, title) = split_while(rest, |&byte| byte == 0);
    let (title, padding) = split_while(title, |&byte| byte != 0);
    let (word, colon) = split_while(text, |&byte| byte.is_ascii_alphanumeric() || byte == b'-');
    is_name(file)
        && !rest.is_empty()
        && (title.is_empty() || is_name(title))
        && padding.iter().all(|&byte| byte == 0)
        && !word.is_empty()
        && colon.starts_with(b":")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_of_other_programs_are_refused_by_their_first_bytes() {
        let old_cpio = |magic: [u8; 2], length: u8| {
            [&magic[..], &[0; 18], &[length, 0], &[0; 4], b"1.eml\0mail"].concat()
        };
        let pegasus = |text: &str| {
            let mut bytes = b"FOL00001\0Projects".to_vec();
            bytes.resize(128, 0);
            bytes.extend_from_slice(text.as_bytes());
            bytes
        };
        for (start, name) in [
            (b"2 M1e C6b0aeacf\n\x01\x02N    ".to_vec(), "dbox"),
            (b"2 M1e C6b0aeacf\r\n".to_vec(), "dbox"),
            (b"2 M1e C6b0aeacf\r".to_vec(), ""),
            (b"2 Mails came\n".to_vec(), ""),
            (b"2 M1e".to_vec(), ""),
            (pegasus("From: a@b\r\n"), "Pegasus"),
            (pegasus("hello"), ""),
            (
                [b'x'; 128].iter().chain(b"style: a\n").copied().collect(),
                "",
            ),
            (b"7z\xbc\xaf\x27\x1c\0\x04".to_vec(), "7z"),
            (b"Rar!\x1a\x07\x01\0".to_vec(), "RAR"),
            (b"\x60\xea\x2c\0\x22\x0b\x01\x02\x10\0\x02".to_vec(), "ARJ"),
            (b"\x60\xea\x2c\x7f\x22\x0b\x01\x02\x10\0\x02".to_vec(), ""),
            (b"ZOO 2.10 Archive.\x1a\0\0\xdc\xa7\xc4\xfd".to_vec(), "ZOO"),
            (b"StuffIt!\0\0".to_vec(), "StuffIt"),
            (
                b"(This file must be converted with BinHex 4.0)\n\n:".to_vec(),
                "BinHex",
            ),
            (b"!\x09\x70\x19\x30\0".to_vec(), "The Bat!"),
            (b"!<arch>\n1.eml/          0           0".to_vec(), "an ar"),
            (b"!<arch>\n#1/20           0           0".to_vec(), "an ar"),
            (b"!<arch>\ndebian-binary   1".to_vec(), "software"),
            (b"!<arch>\n/               0".to_vec(), "software"),
            (b"!<arch>\nmain.o/         0".to_vec(), "software"),
            (b"!<arch>\n".to_vec(), "an ar"),
            (old_cpio(*b"\xc7\x71", 6), "cpio"),
            (old_cpio(*b"\x71\xc7", 6), ""),
            (old_cpio(*b"\xc7\x71", 5), ""),
            (b"From: a@b\n\nx\n".to_vec(), ""),
            (Vec::new(), ""),
        ] {
            let found = refused(&start).map_or("", NotMail::name);
            assert!(
                found.contains(name) && found.is_empty() == name.is_empty(),
                "{found}"
            );
        }
        let mbox = "From a@b Mon Jan  6 10:00:00 2020\nFrom: a@b\nSubject: s\n\nx\n\n";
        let emlx = "24\nFrom: a@b\nSubject: s\n\nx\n<?xml version=\"1.0\"?>\n<plist/>\n";
        for (content, expected) in [
            (mbox.to_owned(), ""),
            (mbox.repeat(2), "mbox"),
            (mbox[34..].repeat(2), ""),
            (format!("\u{1}\u{1}\u{1}\u{1}\n{mbox}"), "MMDF"),
            (emlx.to_owned(), "Apple Mail"),
            ("24\nhours a day".to_owned(), ""),
        ] {
            let found = refused_message(content.as_bytes()).map_or("", NotMail::name);
            assert!(
                found.contains(expected) && found.is_empty() == expected.is_empty(),
                "{found}: {content}"
            );
        }
        for (name, expected) in [
            ("x.olm", true),
            ("IN.BMF", true),
            ("x.PMM", true),
            ("x.eml", false),
            ("Backup.dmg", true),
        ] {
            assert_eq!(
                refused_by_name(Path::new(name), b"x\xda\x63\0").is_some(),
                expected,
                "{name}"
            );
        }
        assert!(is_of_olm(
            b"Accounts/a@b/com.microsoft.__Messages/Inbox/message_00001.xml"
        ));
        assert!(!is_of_olm(b"notes/com.xml"));
    }
}
