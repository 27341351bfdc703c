use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;

use super::super::Key;
use super::super::uses::keys;
use super::*;

fn found(octets: &[u8], piece: usize) -> Vec<Key> {
    let mut all = Vec::new();
    let mut layers = Layers::default();
    let mut visit = |window: &[u8]| keys(window, &mut |key, _, _| all.push(key));
    for piece in octets.chunks(piece) {
        layers.push(piece, &mut visit);
    }
    layers.finish(&mut visit);
    all
}

fn base64(octets: &[u8]) -> Vec<u8> {
    let text = STANDARD.encode(octets);
    let lines: Vec<&[u8]> = text.as_bytes().chunks(76).collect();
    lines.join(&b"\r\n"[..])
}

fn quoted(octets: &[u8], all: bool) -> Vec<u8> {
    let mut line = 0;
    let mut text = Vec::new();
    for &octet in octets {
        let plain = !all && octet != b'=' && (octet.is_ascii_graphic() || octet == b' ');
        let word = match (plain, octet) {
            (_, b'\n') => "\n".into(),
            (true, octet) => char::from(octet).to_string(),
            (false, octet) => format!("={octet:02X}"),
        };
        if line + word.len() > 75 {
            text.extend(b"=\r\n");
            line = 0;
        }
        line = if word == "\n" { 0 } else { line + word.len() };
        text.extend(word.bytes());
    }
    text
}

fn part(key: &Key) -> Vec<u8> {
    format!(
            "From: a@example.org\nMIME-Version: 1.0\nContent-Type: message/external-body; access-type=URL;\n URL=\"https://www.example.org/store/{}\"\n\nContent-Type: image/png\n\n",
            key.path()
        )
        .into_bytes()
}

#[test]
fn object_key_is_found_in_every_spelling_and_encoding() {
    let key = Key::of(b"abc");
    let digits = key.to_string();
    let (start, end) = digits.split_at(23);
    let part = part(&key);
    let utf16: Vec<u8> = digits.bytes().flat_map(|octet| [octet, 0]).collect();
    let attached = |octets: &[u8]| {
        let mut mail = b"Subject: Fwd\nContent-Type: application/octet-stream\nContent-Transfer-Encoding: base64\n\n".to_vec();
        mail.extend(base64(octets));
        mail.extend(b"\n--b--\n");
        mail
    };
    let twice = attached(&attached(&part));
    let inside = [&vec![b'x'; 100_000][..], b"\n", &part].concat();
    for (name, octets) in [
        ("plain", part.clone()),
        ("upper case", digits.to_uppercase().into_bytes()),
        ("folded", format!("{start}\r\n {end}").into_bytes()),
        ("quoted", format!("> {start}\n> {end}").into_bytes()),
        (
            "RFC 2231",
            format!("URL*0=\"a/{start}\";\n URL*1=\"{end}\"").into_bytes(),
        ),
        (
            "RFC 2231 encoded",
            format!("URL*0*=us-ascii''a/{start};\n\turl*12*={end}").into_bytes(),
        ),
        ("among digits", format!("sha256=3D{digits}00").into_bytes()),
        ("UTF-16", utf16.clone()),
        ("soft line break", format!("{start}=\r\n{end}").into_bytes()),
        (
            "soft line break with blanks",
            format!("{start}= \n{end}").into_bytes(),
        ),
        ("quoted-printable", quoted(&part, false)),
        ("all quoted-printable", quoted(&part, true)),
        ("base64", attached(&part)),
        ("base64, a UTF-16 text", attached(&utf16)),
        ("base64 in one line", STANDARD.encode(&part).into_bytes()),
        ("base64 in base64", twice.clone()),
        ("three times", attached(&twice)),
        (
            "base64 in quoted-printable",
            quoted(&attached(&part), false),
        ),
        (
            "quoted-printable in base64",
            attached(&quoted(&part, false)),
        ),
        ("far inside", attached(&inside)),
        (
            "two joined",
            [&base64(b"x")[..], b"\r\n", &base64(&part)].concat(),
        ),
        (
            "double-spaced",
            base64(&part)
                .split(|&b| b == b'\n')
                .flat_map(|line| [line, b"\n\n"].concat())
                .collect(),
        ),
        (
            "blanks behind",
            base64(&part)
                .split(|&b| b == b'\r')
                .flat_map(|line| [line, b" \t\r"].concat())
                .collect(),
        ),
    ] {
        for piece in [octets.len(), 1000, 64, 7, 1] {
            assert!(found(&octets, piece).contains(&key), "{name} by {piece}");
        }
    }
}

#[test]
fn text_that_only_resembles_an_object_key_is_ignored() {
    let key = Key::of(b"abc");
    let digits = key.to_string();
    for octets in [
        digits[1..].to_owned(),
        digits.replacen('b', "g", 1),
        format!("{}/{}", &digits[..30], &digits[30..]),
        format!("{}\nUR*1={}", &digits[..30], &digits[30..]),
    ] {
        assert_eq!(found(octets.as_bytes(), octets.len()), [], "{octets}");
    }
}

/// A reference consists of hexadecimal digits, which white space, soft line breaks or the names of RFC 2231 parameters can
/// interrupt. Files that contain only digits, or only such interruptions, could cause the same bytes to be decoded and
/// searched many times. The number of searched bytes must be proportional to the length of the file.
#[test]
fn hostile_files_cost_what_their_length_says() {
    let long = 4 << 20;
    for octets in [
        vec![b'a'; long],
        vec![b' '; long],
        b"=\n".repeat(long / 2),
        b"=3D".repeat(long / 3),
        b"a\n\n".repeat(long / 3),
        b"QUJD=\n".repeat(long / 6),
        b"url*1=".repeat(long / 6),
        b"u1".repeat(long / 2),
    ] {
        let mut seen = 0;
        let mut layers = Layers::default();
        let mut visit = |window: &[u8]| seen += window.len();
        for piece in octets.chunks(1 << 20) {
            layers.push(piece, &mut visit);
        }
        layers.finish(&mut visit);
        assert!(seen < 20 * long, "{seen}");
    }
}

proptest! {
    #[test]
    fn object_key_is_found_at_every_offset_and_under_nested_encodings(
        before in prop::collection::vec(any::<u8>(), 0..3000),
        after in prop::collection::vec(any::<u8>(), 0..3000),
        layers in prop::collection::vec(0..3_u8, 0..4),
        piece in 1..5000_usize,
    ) {
        let key = Key::of(&before);
        let mut octets = [&before[..], b"\n/", key.to_string().as_bytes(), b"\n", &after].concat();
        let mut printable = 0;
        for layer in layers {
            octets = match layer {
                0 if printable == 0 => {
                    printable += 1;
                    quoted(&octets, false)
                }
                _ => [b"Content-Transfer-Encoding: base64\n\n", &base64(&octets)[..], b"\n--b--"].concat(),
            };
        }
        prop_assert!(found(&octets, piece).contains(&key));
    }
}
