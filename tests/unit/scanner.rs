//! The scanner (RFC 2046 §5.1): it accepts any bytes, finds boundaries only at the start of a line, respects its
//! limits, and agrees with two other programs if these follow the RFC.

use super::common::checks::scan::spans;
use super::common::mail;
use embody::mime::{self, Limit, MessageTree, PartId, PartKind, ScanLimits};
use proptest::prelude::*;

fn scan(message: &[u8]) -> MessageTree<'_> {
    mime::scan(message, &ScanLimits::default())
}

/// Returns the number and the type of every part.
fn outline(message: &[u8]) -> Vec<String> {
    let tree = scan(message);
    tree.ids()
        .map(|id| format!("{} {}", tree.number(id), tree.part(id).essence))
        .collect()
}

fn bodies(message: &[u8]) -> Vec<String> {
    let tree = scan(message);
    tree.ids()
        .skip(1)
        .map(|id| String::from_utf8_lossy(tree.part(id).body.of(message)).into_owned())
        .collect()
}

fn assert_tiles(message: &[u8], limits: &ScanLimits) -> Result<(), TestCaseError> {
    let tree = mime::scan(message, limits);
    let mut at = 0;
    for tile in spans(&tree) {
        prop_assert_eq!(tile.start, at);
        prop_assert!(tile.end <= message.len());
        at = tile.end;
    }
    prop_assert_eq!(at, message.len());
    for id in tree.ids() {
        let part = tree.part(id);
        prop_assert!(part.span.contains(part.header) && part.span.contains(part.body));
        prop_assert!(part.depth <= limits.depth + 1);
        for field in tree.fields(id).iter(message) {
            prop_assert!(part.header.contains(field.whole));
            prop_assert!(field.whole.contains(field.name) && field.whole.contains(field.value));
        }
    }
    prop_assert!(tree.ids().count() <= limits.parts.max(1));
    Ok(())
}

fn soup() -> impl Strategy<Value = Vec<u8>> {
    let word = prop::sample::select(vec![
        "\n",
        "\r\n",
        "\r",
        "--b",
        "--b--",
        "--bb",
        "--c",
        "--c--",
        " ",
        "\t",
        "a",
        ":",
        "X: y\n",
        "From a b\n",
        "\0",
        "é",
        "Content-Type: multipart/mixed; boundary=b\n",
        "Content-Type: multipart/mixed;\n boundary=\"c\"\n",
        "Content-Type: multipart/digest; boundary=b\n",
        "Content-Type: message/rfc822\n",
        "Content-Type: message/external-body\n",
        "Content-Transfer-Encoding: base64\n",
        "\n--b\n",
        "\n--c\n",
        "\n--b--\n",
        "\n\n",
    ]);
    prop::collection::vec(word, 0..50).prop_map(|words| words.concat().into_bytes())
}

proptest! {
    #[test]
    fn spans_tile_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        assert_tiles(&bytes, &ScanLimits::default())?;
    }

    #[test]
    fn spans_tile_soup_under_any_limits(
        bytes in soup(), depth in 0usize..5, parts in 0usize..6, header in 0usize..80, wide in any::<bool>(),
    ) {
        let limits = if wide { ScanLimits::default() } else { ScanLimits { depth, parts, header } };
        assert_tiles(&bytes, &limits)?;
    }

    #[test]
    fn parts_of_a_truncated_random_mail_cover_every_byte_once(bytes in soup(), cut in 0usize..400) {
        assert_tiles(&bytes[..cut.min(bytes.len())], &ScanLimits::default())?;
    }
}

#[test]
fn a_boundary_is_a_whole_line_but_for_blanks() {
    let mail = b"Content-Type: multipart/mixed; boundary=foo\n\n\
        --foobar\n--foo \t \n\nsee --foo here\n--foobar\n --foo\n--foo-\n--foo--x\n--foo\n\nb\n--foo-- \n--foo\nend\n";
    assert_eq!(
        bodies(mail),
        ["see --foo here\n--foobar\n --foo\n--foo-\n--foo--x", "b"]
    );
}

#[test]
fn the_line_break_before_a_boundary_belongs_to_it() {
    for newline in ["\n", "\r\n"] {
        let mail =
            "Content-Type: multipart/mixed; boundary=b\n\n--b\n\na\n--b\n\na\n\n--b\n\n--b\n--b--"
                .replace('\n', newline);
        let a_line = format!("a{newline}");
        assert_eq!(bodies(mail.as_bytes()), ["a", &a_line, "", ""]);
    }
}

#[test]
fn an_outer_boundary_ends_an_inner_multipart_that_was_never_closed() {
    let mail = b"Content-Type: multipart/mixed; boundary=out\n\n--out\n\
        Content-Type: multipart/mixed; boundary=in\n\n--in\n\na\n--out\n\nb\n--in\n\nnot c\n--out--\n--out\n";
    assert_eq!(
        outline(mail),
        [
            " multipart/mixed",
            "1 multipart/mixed",
            "1.1 text/plain",
            "2 text/plain"
        ]
    );
    assert_eq!(bodies(mail)[2], "b\n--in\n\nnot c");
}

#[test]
fn one_boundary_may_be_the_start_of_another() {
    let mail = b"Content-Type: multipart/mixed; boundary=a\n\n--a\n\
        Content-Type: multipart/mixed; boundary=ab\n\n--ab\n\nx\n--ab--\n--a\n\ny\n--a--\n";
    assert_eq!(outline(mail).len(), 4);
    let same = b"Content-Type: multipart/mixed; boundary=a\n\n--a\n\
        Content-Type: multipart/mixed; boundary=a\n\n--a\n\nx\n--a--\n\ny\n--a--\n";
    // Boundary lines belong to the inner multipart as long as it is open.
    assert_eq!(
        outline(same),
        [" multipart/mixed", "1 multipart/mixed", "1.1 text/plain"]
    );
}

#[test]
fn a_boundary_may_hold_blanks_colons_and_quotes() {
    for boundary in ["gc0p4Jq0M:2Yt08jU534c0p", "a b", "a'b(c)+_,-./:=?", "\\\"q"] {
        let text = boundary.replace("\\\"", "\"");
        let mail = format!(
            "Content-Type: multipart/mixed; boundary=\"{boundary}\"\n\n--{text}\n\nx\n--{text}--\n"
        );
        assert_eq!(bodies(mail.as_bytes()), ["x"], "{boundary}");
    }
}

#[test]
fn parts_of_a_digest_are_messages_unless_they_say_otherwise() {
    let mail = b"Content-Type: multipart/digest; boundary=d\n\n--d\n\nSubject: one\n\nx\n--d\n\
        Content-Type: text/plain\n\ny\n--d--\n";
    assert_eq!(
        outline(mail),
        [
            " multipart/digest",
            "1 message/rfc822",
            "1.1 text/plain",
            "2 text/plain"
        ]
    );
}

#[test]
fn encoded_and_partial_messages_are_leaves() {
    for field in [
        "message/partial; id=a; number=1",
        "message/external-body; access-type=x",
        "multipart/mixed",
        "multipart/mixed; boundary=\"\"",
    ] {
        let mail = format!("Content-Type: {field}\n\nSubject: x\n\n--b\n\nx\n--b--\n");
        assert_eq!(outline(mail.as_bytes()).len(), 1, "{field}");
    }
    for (field, body) in [
        (
            "message/rfc822\nContent-Transfer-Encoding: base64",
            "U3ViamVjdDogeAoKeQo=\n",
        ),
        (
            "message/global\nContent-Transfer-Encoding: quoted-printable",
            "Subject=3A x=0A=0Ay\n",
        ),
        (
            "multipart/mixed; boundary=b\nContent-Transfer-Encoding: base64",
            "LS1iCgp4Ci0tYi0tCg==\n",
        ),
        (
            "multipart/mixed; boundary=b\nContent-Transfer-Encoding: quoted-printable",
            "=2D-b\n\nx\n",
        ),
    ] {
        let mail = format!("Content-Type: {field}\n\n{body}");
        assert_eq!(outline(mail.as_bytes()).len(), 1, "{field}");
    }
    for encoding in ["8bit", "quoted-printable"] {
        let mail = format!(
            "Content-Type: message/global\nContent-Transfer-Encoding: {encoding}\n\nSubject: x\n\ny"
        );
        assert_eq!(
            outline(mail.as_bytes()),
            ["1 message/global", "1.1 text/plain"]
        );
    }
}

#[test]
fn a_from_line_stands_in_front_of_messages_only() {
    let mail = b"From a@x Sat Jan  1 00:00:00 2000\nContent-Type: multipart/mixed; boundary=b\n\n--b\nFrom a: x\n\ny\n--b--\n";
    let tree = scan(mail);
    assert_eq!(tree.root().envelope.len(), 34);
    assert_eq!(bodies(mail), ["From a: x\n\ny"]);
}

#[test]
fn nesting_beyond_the_limit_is_opaque_and_costs_no_stack() {
    let nested = |levels: usize| -> String {
        (0..levels)
            .map(|depth| {
                format!("Content-Type: multipart/mixed; boundary=b{depth}\n\n--b{depth}\n")
            })
            .collect()
    };
    let mail = nested(100_000);
    let tree = scan(mail.as_bytes());
    let deepest = tree.ids().last().unwrap();
    assert_eq!(tree.part(deepest).depth, 64);
    assert_eq!(tree.part(deepest).content, PartKind::Opaque(Limit::TooDeep));
    let mail = nested(3_500);
    let limits = ScanLimits {
        depth: 3_000,
        parts: 4_000,
        ..ScanLimits::default()
    };
    let tree = mime::scan(mail.as_bytes(), &limits);
    assert_eq!(tree.ids().count(), 3_001);
}

#[test]
fn parts_beyond_the_limit_are_one_span() {
    let mail = format!(
        "Content-Type: multipart/mixed; boundary=b\n\n{}--b--\n",
        "--b\n\nx\n".repeat(20)
    );
    let limits = ScanLimits {
        parts: 5,
        ..ScanLimits::default()
    };
    let tree = mime::scan(mail.as_bytes(), &limits);
    assert_eq!(tree.ids().count(), 5);
    let PartKind::Multipart(multipart) = &tree.root().content else {
        panic!("a multipart");
    };
    assert_eq!(multipart.overflow, Some(Limit::TooManyParts));
    assert_eq!(multipart.epilogue.end, mail.len());
}

#[test]
fn header_only_headerless_and_empty_inputs_are_read_as_messages() {
    for (mail, fields, body) in [
        (b"A: b\nC: d\n".as_slice(), 2, ""),
        (b"\nA: b\n", 0, "A: b\n"),
        (b"no field\n", 0, "no field\n"),
        (b"", 0, ""),
        (b"\r\n", 0, ""),
        (b"A: b\r\n\r\nx\0y", 1, "x\0y"),
        (b"A: b", 1, ""),
    ] {
        let tree = scan(mail);
        assert_eq!(tree.fields(PartId::ROOT).len(), fields);
        assert_eq!(tree.root().body.of(mail), body.as_bytes());
    }
}

/// Compares the number of parts with Python's `email` and mail-parser, for valid mails of many shapes. The parts of the
/// samples are compared in `samples.rs`.
#[test]
fn well_formed_trees_are_what_other_readers_see() {
    let mut messages = Vec::new();
    for shape in 0u32..200 {
        let mut next = shape.wrapping_mul(2_654_435_761) | 1;
        let mut draw = |below: u32| {
            next ^= next << 13;
            next ^= next >> 17;
            next ^= next << 5;
            next % below
        };
        let mut text = "From: a@example.org\nMIME-Version: 1.0\n".to_owned();
        let mut open = Vec::new();
        for part in 0..8 {
            match draw(4) {
                0 if open.len() < 4 => {
                    let boundary = format!("b{}{part}", open.len());
                    text.push_str(&format!(
                        "Content-Type: multipart/mixed; boundary=\"{boundary}\"\n\npreamble\n--{boundary}\n"
                    ));
                    open.push(boundary);
                    continue;
                }
                1 => text.push_str("Content-Type: message/rfc822\n\nSubject: inner\n\ntext\n"),
                2 => text.push_str(
                    "Content-Type: image/x\nContent-Transfer-Encoding: base64\n\nAAEC\nAwQ=\n",
                ),
                _ => text.push_str("Content-Type: text/plain\n\ntext\n"),
            }
            while draw(3) == 0 {
                let Some(boundary) = open.pop() else { break };
                text.push_str(&format!("\n--{boundary}--\n"));
            }
            match open.last() {
                Some(boundary) => text.push_str(&format!("\n--{boundary}\n")),
                None => break,
            }
        }
        if let Some(_last) = open.last() {
            text.push_str("Content-Type: text/plain\n\nlast\n");
        }
        while let Some(boundary) = open.pop() {
            text.push_str(&format!("\n--{boundary}--\n"));
        }
        messages.push(text.into_bytes());
    }
    let ours: Vec<_> = messages.iter().map(|mail| mail::our_leaves(mail)).collect();
    assert!(ours.iter().map(Vec::len).max() > Some(4));
    for (message, ours) in messages.iter().zip(&ours) {
        let text = String::from_utf8_lossy(message);
        assert_eq!(ours, &mail::mail_parser_leaves(message), "{text}");
    }
    if let Some(theirs) = mail::python_leaves(&messages) {
        for ((message, ours), theirs) in messages.iter().zip(&ours).zip(&theirs) {
            assert_eq!(ours, theirs, "{}", String::from_utf8_lossy(message));
        }
    }
}
