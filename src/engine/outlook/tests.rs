use proptest::prelude::*;

use super::properties::AttachmentContent;
use super::rtf::{self, RtfDamage, RtfOrigin};
use super::sample::{MESSAGE, Properties, Tnef, compressed, usual, with_header};
use super::tnef;
use super::{compose, compressed_rtf};
use crate::engine::parts::NewMimePart;
use crate::span::Newline;

/// Reads a TNEF file and writes its whole content as mail.
fn written(bytes: &[u8], depth: usize) -> (Vec<u8>, Vec<tnef::TnefDamage>) {
    let stream = tnef::read(bytes, depth);
    let part: NewMimePart<'_> = compose::of(&stream.item).whole();
    (part.write(Newline::Lf, &[]), stream.damage)
}

/// Whether `winmail.dat` would be removed from a mail: the file has content, and none of it is known to be missing.
fn would_go(bytes: &[u8]) -> bool {
    let stream = tnef::read(bytes, 4);
    let contents = compose::of(&stream.item);
    stream.damage.is_empty() && contents.unmapped.is_empty() && contents.leaves().next().is_some()
}

#[test]
fn tnef_cut_at_any_byte_gives_the_front_and_says_so() {
    let whole = usual();
    let (all, damage) = written(&whole, 4);
    assert!(damage.is_empty(), "{damage:?}");
    assert!(would_go(&whole));
    let mut undetected = Vec::new();
    for end in 0..whole.len() {
        let (front, _) = written(&whole[..end], 4);
        assert!(front.len() <= all.len() + 200, "{end}");
        undetected.extend(would_go(&whole[..end]).then_some(end));
    }
    // The file does not say how many attachments it has, so it looks complete if it is cut off before the first, second
    // or third attachment.
    assert_eq!(undetected.len(), 3, "{undetected:?}");

    // If the file says that it has attachments, a cut before the first one is detected.
    let says = [
        Tnef::new()
            .class("IPM.Note")
            .properties(Properties::new().text(0x1000, "Text.").long(0x0e1b, 1)),
        Tnef::new()
            .class("IPM.Note")
            .properties(Properties::new().text(0x1000, "Text.").long(0x0e07, 0x11)),
        Tnef::new()
            .attribute(1, 0x0006_8007, &[0xa1])
            .properties(Properties::new().text(0x1000, "Text.")),
    ];
    for tnef in says {
        let whole = tnef.file("a.bin", b"content").bytes();
        assert!(would_go(&whole));
        let removed = (0..whole.len()).filter(|end| would_go(&whole[..*end]));
        assert_eq!(removed.count(), 0);
    }
}

#[test]
fn tnef_with_content_that_is_not_read_says_so() {
    const TEXT: u32 = 0x0006_9003;
    let text = || Properties::new().text(0x1000, "Text.");
    let with = |properties: Properties| Tnef::new().class("IPM.Note").properties(properties);
    let file = |tnef: Tnef| tnef.file("a.bin", b"content").bytes();
    let wrong_count = |count: u32| {
        let mut list = text().text(0x0037, "subject").bytes();
        list[..4].copy_from_slice(&count.to_le_bytes());
        Tnef::new().attribute(1, TEXT, &list)
    };
    let inner = |tnef: Tnef| {
        let object = Properties::new()
            .long(0x3705, 5)
            .object(0x3701, MESSAGE, &tnef.bytes());
        with(text()).attachment(None, object)
    };
    let blob = vec![7; 2200];
    let kept: Vec<(&str, Tnef)> = vec![
        (
            "an unknown attribute",
            with(text()).attribute(1, 0x0006_9055, &blob),
        ),
        (
            "the number of an owner",
            with(text()).attribute(1, 0, &blob),
        ),
        (
            "the number of a priority",
            with(text()).attribute(1, 0x0004_800d, &blob),
        ),
        (
            "the number of a code page",
            with(text()).attribute(1, 0x0006_9007, &blob),
        ),
        (
            "an unknown attribute of one byte",
            with(text()).attribute(1, 0x0006_9055, b"x"),
        ),
        (
            "an unknown attribute of an attachment",
            with(text())
                .file("b", b"b")
                .attribute(2, 0x0006_9055, &blob),
        ),
        ("an unknown property", with(text().binary(0x7123, &blob))),
        (
            "an unknown named property",
            with(text().named_binary([9; 16], 0x8123, &blob)),
        ),
        (
            "a long text without a name",
            with(text().text(0x7123, &"x".repeat(3000))),
        ),
        (
            "content in a property of no use",
            with(text().binary(0x1008, &[7; 5000])),
        ),
        ("too few properties", wrong_count(1)),
        ("too many properties", wrong_count(3)),
        ("a second text", with(text().text(0x1000, "Other."))),
        (
            "a second content of an attachment",
            with(text()).file("b", b"b").attribute(2, 0x0006_800f, b"c"),
        ),
        (
            "an attachment in an attribute and in a property",
            with(text()).attachment(Some(b"b"), Properties::new().binary(0x3701, b"c")),
        ),
    ];
    for (what, tnef) in kept {
        assert!(!would_go(&tnef.clone().bytes()), "{what}");
        // The file must stay, too, if the same content is next to a good attachment or inside an enclosed item.
        assert!(!would_go(&file(tnef.clone())), "{what}, with an attachment");
        assert!(
            !would_go(&inner(tnef.clone()).bytes()),
            "{what}, in an item"
        );
        assert!(
            !would_go(&inner(inner(tnef)).bytes()),
            "{what}, in an item of an item"
        );
    }
    let gone: Vec<(&str, Tnef)> = vec![
        (
            "an empty unknown attribute",
            with(text()).attribute(1, 0x0006_9055, b"\0\0"),
        ),
        ("an empty attachment", with(text()).file("empty.txt", b"")),
        (
            "small unknown properties",
            with(text().binary(0x7123, &[7; 100]).text(0x7124, "x")),
        ),
        (
            "notes of another program",
            with(text().named(0x0b, [9; 16], 1, &[1, 0, 0, 0])),
        ),
        ("padding", with(text()).attribute(1, 0x0006_9004, &[0; 8])),
        ("the same text twice", with(text().text(0x1000, "Text."))),
        (
            "only an RTF body",
            with(Properties::new().binary(0x1009, &compressed(br"{\rtf1\ansi text}"))),
        ),
    ];
    for (what, tnef) in gone {
        assert!(would_go(&tnef.clone().bytes()), "{what}");
        assert!(would_go(&file(tnef)), "{what}");
    }
}

#[test]
fn tnef_with_a_length_of_four_gigabytes_reserves_nothing() {
    let whole = usual();
    for at in 0..whole.len() - 4 {
        let mut bytes = whole.clone();
        bytes[at..at + 4].fill(0xff);
        let (text, _) = written(&bytes, 4);
        assert!(text.len() < whole.len() * 4, "{at}");
    }
}

#[test]
fn tnef_within_tnef_is_read_to_the_limit() {
    let mut inner = Tnef::new().class("IPM.Note").bytes();
    for _ in 0..40 {
        let properties = Properties::new()
            .long(0x3705, 5)
            .object(0x3701, MESSAGE, &inner);
        inner = Tnef::new()
            .class("IPM.Note")
            .attachment(None, properties)
            .bytes();
    }
    let stream = tnef::read(&inner, 10);
    assert_eq!(stream.damage, [tnef::TnefDamage::TooDeep]);
    let mut item = &stream.item;
    let mut levels = 0;
    while let Some(AttachmentContent::Item(inner)) = item.attachments.first().map(|it| &it.content)
    {
        (item, levels) = (inner, levels + 1);
    }
    assert_eq!(levels, 10);
    assert!(tnef::read(&inner, 40).damage.is_empty());
}

#[test]
fn tnef_of_empty_properties_takes_bounded_memory() {
    let mut list = 5_000_000_u32.to_le_bytes().to_vec();
    list.extend([1, 0, 1, 0x30].repeat(5_000_000));
    let bytes = Tnef::new().attribute(1, 0x0006_9003, &list).bytes();
    let stream = tnef::read(&bytes, 1);
    assert_eq!(stream.damage, [tnef::TnefDamage::TooMany]);
    assert!(stream.item.properties.0.len() < 60_000);
    let many = (0..100_000).fold(Tnef::new(), |many, _| many.attribute(2, 0x0006_9002, b""));
    let bytes = many.bytes();
    let stream = tnef::read(&bytes, 1);
    assert_eq!(stream.damage, [tnef::TnefDamage::TooMany]);
}

/// The file declares the number of recipients in the table. The number is untrusted, so it must not determine the memory or the
/// time.
#[test]
fn tnef_with_four_billion_recipients_that_are_not_there_ends_at_once() {
    for rest in [b"".as_slice(), b"\0", b"\0\0\0\0\0"] {
        let table = [&u32::MAX.to_le_bytes(), rest].concat();
        let bytes = Tnef::new().attribute(1, 0x0006_9004, &table).bytes();
        let stream = tnef::read(&bytes, 1);
        assert_eq!(stream.damage, [tnef::TnefDamage::Properties]);
        assert!(stream.item.recipients.is_empty());
    }
}

#[test]
fn tnef_names_lead_out_of_no_directory() {
    for (name, expected) in [
        ("C:\\temp\\a.txt", Some("a.txt")),
        ("../../etc/passwd", Some("passwd")),
        ("..", None),
        ("a\r\nBcc: x@example.org", Some("aBcc: x@example.org")),
        ("\0", None),
    ] {
        let bytes = Tnef::new().file(name, b"x").bytes();
        let stream = tnef::read(&bytes, 1);
        let contents = compose::of(&stream.item);
        assert_eq!(contents.attachments[0].name.as_deref(), expected, "{name}");
    }
}

proptest! {
    #[test]
    fn tnef_with_changed_bytes_is_read(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20)) {
        let mut bytes = usual();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let (text, _) = written(&bytes, 4);
        prop_assert!(text.len() < bytes.len() * 4);
    }

    #[test]
    fn rtf_of_any_bytes_is_read(bytes in "(\\{|\\}|\\\\|\\\\u-?[0-9]{1,6}|\\\\'[0-9a-f]{2}|\\\\f[0-3]|\\\\htmlrtf0?|\\\\\\*|\\\\fonttbl|\\\\fcharset128|[ -~]){0,200}") {
        for start in ["{\\rtf1\\fromhtml1 ", "{\\rtf1\\fromtext ", "{\\rtf1 "] {
            let rtf = [start.as_bytes(), bytes.as_bytes()].concat();
            let body = rtf::read(&rtf);
            prop_assert!(body.is_some_and(|body| body.text.len() <= rtf.len() * 10));
        }
    }

    #[test]
    fn rtf_of_any_compressed_bytes_is_read(content in prop::collection::vec(any::<u8>(), 0..2000), raw: u32) {
        let bytes = with_header(&content, raw);
        let rtf = compressed_rtf::decompress(&bytes);
        prop_assert!(rtf.is_ok_and(|(rtf, _)| rtf.len() <= content.len() * 9));
        let _ = compressed_rtf::decompress(&content);
    }
}

/// Examples of MS-OXRTFCP 3.
#[test]
fn rtf_of_the_specification_is_decompressed() {
    let example: &[u8] = b"\x2d\0\0\0\x2b\0\0\0LZFu\xf1\xc5\xc7\xa7\x03\0\x0a\0rcpg125\x42\x32\x0a\xf3 hel\x09\0 bw\x05\xb0ld}\x0a\x80\x0f\xa0";
    let (rtf, damage) = compressed_rtf::decompress(example).unwrap();
    assert_eq!(rtf, b"{\\rtf1\\ansi\\ansicpg1252\\pard hello world}\r\n");
    assert_eq!(damage, None);
    // The back-references of this example overlap their own output, in order to repeat `WXYZ`.
    let example: &[u8] =
        b"\x1a\0\0\0\x1c\0\0\0LZFu\xe2\xd4\x4b\x51\x41\0\x04\x20WXYZ\x0d\x6e}\x01\x0e\xb0";
    let (rtf, damage) = compressed_rtf::decompress(example).unwrap();
    assert_eq!(rtf, b"{\\rtf1 WXYZWXYZWXYZWXYZWXYZ}");
    assert_eq!(damage, None);
    let mut wrong = example.to_vec();
    wrong[12] ^= 1;
    assert_eq!(
        compressed_rtf::decompress(&wrong).unwrap().1,
        Some(RtfDamage::Checksum)
    );
    assert_eq!(compressed_rtf::decompress(b"LZFu"), Err(RtfDamage::Header));
    let bare = b"\x20\0\0\0\x08\0\0\0MELA\0\0\0\0{\\rtf1 }";
    assert_eq!(
        compressed_rtf::decompress(bare),
        Ok((b"{\\rtf1 }".to_vec(), None))
    );
    let text = b"{\\rtf1 x}";
    assert_eq!(
        compressed_rtf::decompress(&compressed(text)),
        Ok((text.to_vec(), None))
    );
}

#[test]
fn rtf_gives_back_what_it_encapsulates() {
    let html = |rtf: &str| {
        let body = rtf::read(rtf.as_bytes()).unwrap();
        assert_eq!(body.source, RtfOrigin::Html, "{rtf}");
        assert_eq!(body.damage, None, "{rtf}");
        body.text
    };
    const START: &str = "{\\rtf1\\ansi\\ansicpg1251\\fromhtml1 \\deff0{\\fonttbl{\\f0\\fswiss Arial;}{\\f1\\fcharset128 MS;}{\\f2\\fcharset136 MingLiu;}}\\uc1\\pard ";
    for (rtf, expected) in [
        (
            "{\\*\\htmltag64 <p>}\\htmlrtf {\\htmlrtf0 a\\htmlrtf\\par}\\htmlrtf0 b",
            "<p>ab",
        ),
        ("\\'cf\\'f0", "\u{41f}\u{440}"),
        ("\\f1\\'83\\'41\\f0\\'e0", "\u{30a2}\u{430}"),
        // In a double-byte code page, the second byte of a character can be an ASCII letter, which is not escaped:
        // `\'83A` is one character.
        ("\\f1\\'83A", "\u{30a2}"),
        ("\\f2 \\'a4\\'a4", "\u{4e2d}"),
        ("\\u20013?x", "\u{4e2d}x"),
        ("{\\uc2\\u20013??}y", "\u{4e2d}y"),
        ("\\u-10179 ?\\u-8694 ?!", "\u{1f60a}!"),
        ("\\u55357 ?\\u56842 ?", "\u{1f60a}"),
        ("\\u-10179 ??\\u-8694 ??!", "\u{1f60a}!"),
        (
            "a\\~b\\'a0c\\rquote d\\line e",
            "a&nbsp;b\u{a0}c&rsquo;d\ne",
        ),
        ("{\\*\\htmltag84 a\\~b\\par \\{\\}}", "a\u{a0}b\n{}"),
        ("{\\pntext\\f0\\'b7\\tab}x{\\*\\mhtmltag84 y}", "x"),
        (
            "{\\*\\htmltag241 <style>}{\\*\\htmltag241 p \\{a:b\\}\r\n}",
            "<style>p {a:b}",
        ),
    ] {
        assert_eq!(html(&format!("{START}{rtf}}}")), expected, "{rtf}");
    }
    let text = rtf::read(b"{\\rtf1\\ansi\\fromtext{\\fonttbl{\\f0 A;}}a\\par b\\tab c}").unwrap();
    assert_eq!(
        (text.source, text.text.as_str()),
        (RtfOrigin::Text, "a\nb\tc")
    );
    let file = b"{\\rtf1\\ansi{\\fonttbl{\\f0 A;}}{\\info{\\title T}}{\\pict 00}{\\b bold}\\par{\\field{\\*\\fldinst HYPERLINK x}{\\fldrslt link}}}";
    let plain = rtf::read(file).unwrap();
    assert_eq!(
        (plain.source, plain.text.as_str()),
        (RtfOrigin::Rtf, "bold\nlink")
    );
    let cut = rtf::read(b"{\\rtf1\\fromhtml1 {\\*\\htmltag64 <p>").unwrap();
    assert_eq!(cut.damage, Some(RtfDamage::Truncated));
    let half = rtf::read(b"{\\rtf1\\fromhtml1 \\u-10179 ?x}").unwrap();
    assert_eq!(
        (half.text.as_str(), half.damage),
        ("\u{fffd}x", Some(RtfDamage::Charset))
    );
    assert_eq!(rtf::read(b"plain"), None);
}

#[test]
fn rtf_of_braces_costs_no_stack() {
    let rtf = [b"{\\rtf1 ", vec![b'{'; 3_000_000].as_slice(), b"x"].concat();
    let body = rtf::read(&rtf).unwrap();
    assert_eq!(
        (body.text.as_str(), body.damage),
        ("x", Some(RtfDamage::Truncated))
    );
}
