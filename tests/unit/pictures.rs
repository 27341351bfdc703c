//! Recognises the type of content from its bytes: complete small files of each type, their first bytes, and content
//! that only looks like such a file.

use embody::mime::picture::{FileType, sniff, sniff_font, sniff_media};
use proptest::prelude::*;

fn box_of(name: &[u8], content: &[u8]) -> Vec<u8> {
    let length = u32::try_from(content.len() + 8).unwrap();
    [&length.to_be_bytes()[..], name, content].concat()
}

/// Returns an ISO 14496-12 still picture of 300 by 200 pixels, without its samples.
fn still(brands: &[u8]) -> Vec<u8> {
    let extent = [0, 0, 0, 0, 0, 0, 1, 44, 0, 0, 0, 200];
    let properties = box_of(b"iprp", &box_of(b"ipco", &box_of(b"ispe", &extent)));
    let meta = box_of(b"meta", &[&[0; 4][..], &properties].concat());
    [box_of(b"ftyp", brands), meta].concat()
}

fn png() -> Vec<u8> {
    let mut out = Vec::new();
    let mut encoder = png::Encoder::new(&mut out, 300, 1);
    encoder.set_color(png::ColorType::Grayscale);
    let mut writer = encoder.write_header().unwrap();
    writer.write_image_data(&[0; 300]).unwrap();
    writer.finish().unwrap();
    out
}

/// A GIF of one transparent pixel.
const GIF: &[u8] = b"GIF89a\x01\0\x01\0\x80\0\0\0\0\0\xff\xff\xff!\xf9\x04\x01\0\0\0\0,\0\0\0\0\x01\0\x01\0\0\x02\x02D\x01\0;";

/// A JFIF file with a comment and a frame of 300 by 200 pixels.
const JPEG: &[u8] = b"\xff\xd8\xff\xe0\0\x10JFIF\0\x01\x01\0\0\x01\0\x01\0\0\xff\xfe\0\x04hi\
    \xff\xc0\0\x0b\x08\0\xc8\x01\x2c\x01\x01\x11\0\xff\xd9";

/// WebP pictures of 300 by 200 pixels: lossless, lossy and extended.
const WEBP: [&[u8]; 3] = [
    b"RIFF\x1a\0\0\0WEBPVP8L\x0e\0\0\0\x2f\x2b\xc1\x31\0\0\0\0\0\0",
    b"RIFF\x1a\0\0\0WEBPVP8 \x0e\0\0\0\x30\x01\0\x9d\x01\x2a\x2c\x01\xc8\0\0\0\0\0",
    b"RIFF\x16\0\0\0WEBPVP8X\x0a\0\0\0\x10\0\0\0\x2b\x01\0\xc7\0\0",
];

/// A BMP of 2 by 1 pixels in 24 bits, with the top row first.
const BMP: &[u8] =
    b"BM\x3e\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0\x02\0\0\0\xff\xff\xff\xff\x01\0\x18\0\
    \0\0\0\0\x08\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\xff\xff\xff\0\0";

/// A BMP of 2 by 1 pixels with the header of OS/2 1.x.
const OLD_BMP: &[u8] =
    b"BM\x22\0\0\0\0\0\0\0\x1a\0\0\0\x0c\0\0\0\x02\0\x01\0\x01\0\x18\0\0\0\xff\xff\xff\xff\0\0";

const ICO: &[u8] = b"\0\0\x01\0\x02\0\x10\x10\0\0\x01\0\x20\0\x04\0\0\0\x26\0\0\0\
    \0\0\0\0\x01\0\x20\0\x04\0\0\0\x26\0\0\0....";

const TIFF: &[u8] = b"II*\0\x08\0\0\0\x02\0\0\x01\x03\0\x01\0\0\0\x2c\x01\0\0\x01\x01\x03\0\x01\0\0\0\xc8\0\0\0\0\0\0\0";

fn kind(
    essence: &'static str,
    extension: &'static str,
    size: Option<(u32, u32)>,
) -> Option<FileType> {
    let kind = FileType {
        essence,
        extension,
        size,
    };
    Some(kind)
}

/// Returns complete files with their types.
fn pictures() -> Vec<(Vec<u8>, Option<FileType>)> {
    let large = Some((300, 200));
    let mut all = vec![
        (png(), kind("image/png", "png", Some((300, 1)))),
        (GIF.to_vec(), kind("image/gif", "gif", Some((1, 1)))),
        (JPEG.to_vec(), kind("image/jpeg", "jpg", large)),
        (BMP.to_vec(), kind("image/bmp", "bmp", Some((2, 1)))),
        (OLD_BMP.to_vec(), kind("image/bmp", "bmp", Some((2, 1)))),
        (
            ICO.to_vec(),
            kind("image/vnd.microsoft.icon", "ico", Some((256, 256))),
        ),
        (TIFF.to_vec(), kind("image/tiff", "tif", large)),
        (
            still(b"avif\0\0\0\0avifmif1miaf"),
            kind("image/avif", "avif", large),
        ),
        (
            still(b"mif1\0\0\0\0mif1miafMA1Bavif"),
            kind("image/avif", "avif", large),
        ),
        (
            still(b"heic\0\0\0\0mif1heic"),
            kind("image/heic", "heic", large),
        ),
    ];
    for webp in WEBP {
        all.push((webp.to_vec(), kind("image/webp", "webp", large)));
    }
    all
}

#[test]
fn each_kind_of_picture_is_known_with_its_size() {
    for (octets, expected) in pictures() {
        assert_eq!(sniff(&octets), expected, "{}", octets.escape_ascii());
        assert_eq!(sniff_media(&octets), None, "{}", octets.escape_ascii());
        assert_eq!(sniff_font(&octets), None, "{}", octets.escape_ascii());
    }
}

#[test]
fn truncated_picture_is_recognised_as_the_same_type_or_not_at_all() {
    for (octets, whole) in pictures() {
        let essence = whole.map(|kind| kind.essence);
        for length in 0..octets.len() {
            let found = sniff(&octets[..length]);
            assert!(found.is_none() || found.map(|kind| kind.essence) == essence);
            assert!(found.is_none() || length >= 12, "{length}");
        }
    }
}

#[test]
fn svg_is_recognised_after_its_xml_prologue() {
    for (document, size) in [
        ("<svg/>", None),
        ("<svg>", None),
        (
            "\u{feff}<?xml version='1.0'?>\r\n<!-- <html> --><svg width='10' height=\"20\">",
            Some((10, 20)),
        ),
        (
            "<!DOCTYPE svg PUBLIC 'a' \"b\">\n<svg\nviewBox='0 0 1 1' height = '1.5px' width='1'/>",
            Some((1, 2)),
        ),
        (
            "<!DOCTYPE svg [<!ENTITY a '>'>] >\n<svg width='100%' height='1'>",
            None,
        ),
        ("<svg width='1e9' height='1'>", None),
        ("<svg width='0' height='1'>", None),
        ("<svg data-width='1' height='1'><rect width='1'/>", None),
        ("<svg width=1 height=1>", None),
    ] {
        assert_eq!(
            sniff(document.as_bytes()),
            kind("image/svg+xml", "svg", size),
            "{document}"
        );
    }
}

#[test]
fn svg_in_utf_16_with_a_prefix_or_with_entities_is_known() {
    let wide = |text: &str| {
        let text = format!("\u{feff}{text}");
        [
            text.encode_utf16()
                .flat_map(u16::to_le_bytes)
                .collect::<Vec<u8>>(),
            text.encode_utf16().flat_map(u16::to_be_bytes).collect(),
        ]
    };
    let plain = "<!-- x --><svg width='10' height='20'/>";
    let [little, big] = wide(plain);
    let prefixed = b"<p:svg xmlns:p='http://www.w3.org/2000/svg' width='10' height='20'/>".to_vec();
    let entities =
        b"<!DOCTYPE svg [<!ENTITY a ']'><!ENTITY b ']x>'>\n] >\n<svg width='10' height='20'/>";
    for document in [little, big, prefixed, entities.to_vec()] {
        let found = sniff(&document);
        assert_eq!(found, kind("image/svg+xml", "svg", Some((10, 20))));
    }
    for document in [
        "<p:svg width='1'/>",
        "<:svg xmlns:=''/>",
        "<p:svgx xmlns:p=''/>",
        "<a:b:svg xmlns:a:b=''/>",
    ] {
        assert_eq!(sniff(document.as_bytes()), None, "{document}");
    }
    let [little, _] = wide("<html><svg/></html>");
    assert_eq!(sniff(&little), None);
}

#[test]
fn icon_and_cursor_need_a_picture_after_their_list() {
    let list = |kind: u8, reserved: u8, start: u8| {
        let entry = [16, 32, 0, reserved, 1, 0, 32, 0, 4, 0, 0, 0, start, 0, 0, 0];
        [&[0, 0, kind, 0, 1, 0][..], &entry, b"...."].concat()
    };
    for reserved in [0, 23, 255] {
        let icon = sniff(&list(1, reserved, 22)).map(|kind| kind.essence);
        assert_eq!(icon, Some("image/vnd.microsoft.icon"));
        let cursor = sniff(&list(2, reserved, 22));
        assert_eq!(cursor, kind("image/x-icon", "cur", Some((16, 32))));
    }
    for octets in [
        list(1, 0, 21),
        list(2, 0, 0),
        list(3, 0, 22),
        list(0, 0, 22),
    ] {
        assert_eq!(sniff(&octets), None, "{}", octets.escape_ascii());
    }
}

#[test]
fn content_that_is_only_declared_as_a_picture_is_refused() {
    let wide: Vec<u8> = "<svg/>".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let texts: [&[u8]; 16] = [
        b"",
        b"<!DOCTYPE html><html><svg/></html>",
        b"<html><body>not found</body></html>",
        b"<svgx/>",
        b"<!-- <svg/>",
        b"<?xml version='1.0'?><html/>",
        b"{\"error\": \"not found\"}",
        b"BMW is a car, and not a picture",
        b"GIF8 is how they begin, all of them",
        b"\x89PNG is what it says, no more",
        b"RIFF\0\0\0\0AVI LIST",
        b"\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\0\0",
        b"\0\0\0\x18ftypisom\0\0\0\0isommp42",
        b"\0\0\0\x14ftypmif1\0\0\0\0mif1",
        b"%PDF-1.7\nand so on",
        &wide,
    ];
    for text in texts {
        assert_eq!(sniff(text), None, "{}", text.escape_ascii());
    }
}

#[test]
fn media_and_fonts_are_known_by_their_magic() {
    let ogg = |codec: &[u8]| [b"OggS\0\x02", &[0; 20][..], b"\x01\x1e", codec].concat();
    for (octets, essence) in [
        (b"\0\0\0\x18ftypisom\0\0\0\0isommp42".to_vec(), "video/mp4"),
        (b"\0\0\0\x14ftypM4A \0\0\0\0isom".to_vec(), "audio/mp4"),
        (
            b"\0\0\0\x14ftypqt  \0\0\0\0qt  ".to_vec(),
            "video/quicktime",
        ),
        (
            b"\x1a\x45\xdf\xa3\x9f\x42\x86\x81\x01\x42\x82\x84webm".to_vec(),
            "video/webm",
        ),
        (ogg(b"\x80theora"), "video/ogg"),
        (ogg(b"\x01vorbis"), "audio/ogg"),
        (ogg(b"OpusHead"), "audio/ogg"),
        (b"RIFF\x24\0\0\0WAVEfmt ".to_vec(), "audio/wav"),
        (b"ID3\x04\0\0\0\0\0\0".to_vec(), "audio/mpeg"),
        (b"\xff\xfb\x90\x64".to_vec(), "audio/mpeg"),
    ] {
        assert_eq!(sniff_media(&octets).map(|kind| kind.essence), Some(essence));
        assert_eq!(sniff(&octets), None, "{essence}");
        assert_eq!(sniff_font(&octets), None, "{essence}");
    }
    for (octets, essence) in [
        (&b"wOFF\0\x01\0\0"[..], "font/woff"),
        (b"wOF2\0\x01\0\0", "font/woff2"),
        (b"\0\x01\0\0\0\x0a\0\x80\0\x03\0\x20OS/2", "font/ttf"),
        (b"true\0\x0a\0\x80\0\x03\0\x20cmap", "font/ttf"),
        (b"OTTO\0\x0a\0\x80\0\x03\0\x20CFF ", "font/otf"),
    ] {
        assert_eq!(sniff_font(octets).map(|kind| kind.essence), Some(essence));
        assert_eq!(sniff_media(octets), None, "{essence}");
        assert_eq!(sniff(octets), None, "{essence}");
    }
    for octets in [
        &b""[..],
        b"\xff\xfe<\0h\0t\0",
        b"\xff\xfb\xf0\0",
        b"\x1a\x45\xdf\xa3\x9f\x42\x82\x88matroska",
        b"\0\x01\0\0",
        b"true story, this is no font",
        b"OTTO is a name",
        b"<html>",
    ] {
        assert_eq!(sniff_media(octets), None, "{}", octets.escape_ascii());
        assert_eq!(sniff_font(octets), None, "{}", octets.escape_ascii());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(5000))]

    /// The crate reads untrusted lengths and offsets. No value may cause a panic or an endless loop.
    #[test]
    fn picture_detection_of_any_octets_does_not_panic(
        which in any::<prop::sample::Index>(),
        keep in any::<prop::sample::Index>(),
        noise in prop::collection::vec((any::<prop::sample::Index>(), prop_oneof![
            Just(0_u8), Just(1), Just(0x7f), Just(0x80), Just(0xff), any::<u8>(),
        ]), 0..12),
        tail in prop::collection::vec(any::<u8>(), 0..64),
    ) {
        let mut all: Vec<Vec<u8>> = pictures().into_iter().map(|(octets, _)| octets).collect();
        all.push(b"<!DOCTYPE svg [<!ENTITY a '>'>] ><svg width='1' height='2'>".to_vec());
        all.push(b"MM\0+\0\x08\0\0\0\0\0\0\0\0\0\x10\0\0\0\0\0\0\0\x02".to_vec());
        let mut octets = which.get(&all).clone();
        octets.truncate(keep.index(octets.len() + 1).max(4));
        octets.extend(tail);
        for (at, octet) in noise {
            let at = at.index(octets.len());
            octets[at] = octet;
        }
        if let Some(FileType { size: Some((width, height)), .. }) = sniff(&octets) {
            prop_assert!(width > 0 && height > 0);
        }
        let _ = (sniff_media(&octets), sniff_font(&octets));
    }
}
