use proptest::prelude::*;

use super::*;
use crate::engine::policy::Embed;
use crate::engine::search_words::SHORT;
use crate::expand::Expander;

#[test]
fn the_word_is_found_in_any_case() {
    let candidates = Prefilter::new(&Policy::default());
    assert_eq!(candidates.first(b"x message/eXternal-BODY"), Some(10));
    assert_eq!(
        candidates.first(b"-body External-body external-Body"),
        Some(6)
    );
    assert_eq!(candidates.first(b"x\nContent-Type: TEXT/HTML"), Some(2));
    assert!(!candidates.any(b"external-bod y -body text/plain"));
}

#[test]
fn words_of_mozilla_forms_and_internet_shortcuts_are_found_in_any_case() {
    let candidates = Prefilter::new(&Policy::default());
    for text in [
        "X-Mozilla-External-Attachment-URL: file:///x",
        "x-mozilla-altered: AttachmentDeleted",
        "X-MOZILLA-CLOUD-PART: cloudFile",
        "text/X-Moz-Deleted",
        "application/Internet-Shortcut",
    ] {
        assert!(candidates.any(text.as_bytes()), "{text}");
        assert!(candidates.external_bodies(text.as_bytes()), "{text}");
    }
    for text in ["X-Mozilla-Status: 0001", "x-mozilla-external", "a-a", "-"] {
        assert!(!candidates.external_bodies(text.as_bytes()), "{text}");
    }
}

#[test]
fn a_subtype_is_found_behind_blanks_folds_and_comments() {
    let candidates = Prefilter::new(&Policy::default());
    let far = format!("text/{}html", " ".repeat(100));
    for text in [
        "text/ html",
        "TEXT /\tHTML",
        "text/\r\n html",
        "text/\n\tcss",
        "application/ (not (only) HTML) xhtml+xml",
        "text/(a comment)html",
        &far,
    ] {
        let essence = crate::mime::MediaType::parse(text.as_bytes()).essence;
        assert!(essence.ends_with("html") || essence == "text/css" || essence.ends_with("+xml"));
        for name in ["Content-Type: ", "content-TYPE :\r\n\t"] {
            let field = [name, text].concat();
            for filler in [0, SHORT] {
                let bytes = [&vec![b'/'; filler], field.as_bytes()].concat();
                assert!(candidates.documents(&bytes), "{field}");
                assert_eq!(candidates.first(&bytes), Some(filler), "{field}");
            }
            let message = format!("Content-Base: x\n{field}\n\n");
            assert!(candidates.in_message(message.as_bytes()), "{field}");
        }
    }
    for text in [
        "Content-Type: text/plain\n",
        "Content-Type: text/richtext; x=/html",
        "Content-Type: multipart/mixed;\n boundary=/",
        "h=Subject:Content-Type:MIME-Version:Content-Type:\n\tDate:Content-Type; b=x",
        "Content-Type: text\nSubject: /html",
        "Content-Type: text x/html",
        "a content-type, and text/ html",
        "text/html",
        "and / or",
        "http://h/\r\nhttp://h/\n",
        "</p>\n",
    ] {
        assert!(!candidates.any(text.as_bytes()), "{text}");
    }
}

#[test]
fn document_type_cut_off_by_the_search_window_is_still_found() {
    let candidates = Prefilter::new(&Policy::default());
    for essence in ["text/html", "application/xhtml+xml", "Text/CSS"] {
        for blanks in [1, 9, 20, 40] {
            let field = format!("Content-Type:{}{essence}", " ".repeat(blanks));
            for cut in "Content-Type".len()..=field.len() {
                let found = candidates.any(&field.as_bytes()[..cut]);
                assert!(found, "{field} cut at {cut}");
            }
            let further = format!("{field}; charset=us-ascii\n");
            assert!(candidates.any(further.as_bytes()), "{further}");
        }
    }
}

#[test]
fn documents_do_not_matter_when_links_are_kept() {
    let policy = Policy {
        links: Links::Keep,
        ..Policy::default()
    };
    assert!(!Prefilter::new(&policy).any(b"Content-Type: text/html"));
}

#[test]
fn a_document_matters_where_a_base_may_be() {
    let candidates = Prefilter::new(&Policy::default());
    for (message, may) in [
        ("Content-Type: text/html\n\n<a href=x>", false),
        ("Content-Type: text/html\n\n<BASE href=x>", true),
        ("Content-base: x\nContent-Type: text/html\n\n", true),
        ("Content-Base: x\nContent-Type: text/plain\n\n", false),
        ("content-LOCATION: x\nContent-Type: text/css\n\n", true),
        ("Content-Type: x/html\n\n<p>\n--b\n<base>", true),
        (
            "Content-Transfer-Encoding: Base64\nContent-Type: text/html\n\nPGJhc2Ug",
            true,
        ),
        (
            "Content-Type: text/html\n\nx\n\nContent-Transfer-Encoding: base64\n\nPGJhc2Ug",
            false,
        ),
        ("Content-Type: message/external-body\n\n", true),
    ] {
        assert_eq!(candidates.in_message(message.as_bytes()), may, "{message}");
    }
    let quoted = "Content-Type: text/html\nContent-Transfer-Encoding: quoted-printable\n";
    let in_base64 = "Content-Transfer-Encoding: base64\nContent-Type: text/html\n";
    for (fields, body, may) in [
        ("", "<base>", false),
        (quoted, "<a href=3Dx> =3Cb =\nx", false),
        (quoted, "=3cB=41=\n=53e", true),
        (quoted, "<=\r\nbase ", true),
        (quoted, "<BA= \t\r\n=\nSE ", true),
        (quoted, "<BA= x\r\nSE ", false),
        (in_base64, "PGJ-h\nc2Ug", true),
        (in_base64, "PGJhcg==", false),
        (in_base64, "PGI=\n--b\n\nPGJhc2U=", false),
        ("Content-Type: text/html\n", "<p>\n--b\n\n<base>", false),
        (
            "Content-Type: text/html\n",
            "<p>\n--bc\n-->\n--\n<base>",
            true,
        ),
    ] {
        let part = format!("--b\n{fields}\n{body}\n--b--\n");
        let message = format!(
            "X: Content-Type: text/html\nContent-Type: multipart/mixed; boundary=b\n\n{part}"
        );
        assert_eq!(candidates.in_message(message.as_bytes()), may, "{message}");
    }
}

#[test]
fn a_data_url_matters_in_every_encoding() {
    let policy = Policy {
        links: Links::Keep,
        embed: Embed {
            data: true,
            ..Embed::default()
        },
        ..Policy::default()
    };
    let candidates = Prefilter::new(&policy);
    for (encoding, body, may) in [
        ("7bit", "<img src=data:,x>", true),
        ("7bit", "<base href=x>", false),
        ("7bit", "<img src=3Dda=\nta:,x>", false),
        ("quoted-printable", "<img src=3Dda=\nta:,x>", true),
        ("quoted-printable", "<img src=3D=64ata=3A,x>", true),
        ("base64", "PGltZyBzcmM9ZGF0YTosPg==", true),
        ("base64", "PHA+", false),
        ("base64", "PHA+P", true),
    ] {
        let message =
            format!("Content-Type: text/html\nContent-Transfer-Encoding: {encoding}\n\n{body}");
        assert_eq!(candidates.in_message(message.as_bytes()), may, "{message}");
    }
}

#[test]
fn field_that_exchange_adds_to_every_mail_is_no_winmail() {
    let prefilter = Prefilter::new(&Policy::default());
    let message = b"X-MS-TNEF-Correlator: <x@example.org>\nContent-Type: text/plain\n\nA letter.\n";
    assert!(!prefilter.in_message(message));
    assert!(prefilter.messages(message, &[message.len()]).is_empty());
    assert!(!prefilter.any(message));
    let with_winmail =
        b"X-MS-TNEF-Correlator: <x@example.org>\nContent-Type: application/ms-tnef\n\nA letter.\n";
    assert!(prefilter.in_message(with_winmail));
}

#[test]
fn many_content_types_matter_only_if_they_form_parts_of_a_multipart() {
    let candidates = Prefilter::new(&Policy::default());
    for (unit, may) in [
        ("Content-Type: text/html\n", false),
        ("Content-Type: text/html\n\n", false),
        ("--b\nContent-Type: text/html\n\n", true),
    ] {
        let head = "Content-Type: multipart/mixed; boundary=b\n\n";
        for head in ["", head] {
            let message = format!("{head}{}", unit.repeat(1 << 18));
            let matters = candidates.in_message(message.as_bytes());
            assert_eq!(matters, may && !head.is_empty(), "{unit:?}");
        }
    }
}

fn messages() -> impl Strategy<Value = Vec<String>> {
    let piece = prop_oneof![
        Just("Content-Type: text/html\n"),
        Just("Content-Type: text/plain\n"),
        Just("content-type: text/ html\n"),
        Just("Content-Type: Message/External-Body\n"),
        Just("Content-Type: message/external-body; access-type=URL; URL=\"data:,x\"\n\n"),
        Just("content-type :\r\n\tAPPLICATION/(a (b)) xhtml+XML\n"),
        Just("CONTENT-TYPE: Text/(c)Css\n"),
        Just("Content-Type: multipart/mixed; boundary=b\n\n--b\n"),
        Just("\n--b\n"),
        Just("<a href=x>\n"),
        Just("Content-Transfer-Encoding: base64\n"),
        // The body is the base64 of `<base href=http://h/><a href=x>`.
        Just(
            "Content-Type: text/html\nContent-Transfer-Encoding: base64\n\nPGJhc2UgaHJlZj1odHRwOi8vaC8+PGEgaHJlZj14Pg==\n"
        ),
        Just("Content-Transfer-Encoding: quoted-printable\n"),
        Just("Content-Location: x\n"),
        Just("X-Mozilla-Status: 0001\n"),
        Just("X-Mozilla-Altered: x\n"),
        // The start of a winmail.dat matters only in a part with one of its media types.
        Just(
            "Content-Type: Application/Octet-Stream\nContent-Transfer-Encoding: base64\n\neJ8+IgAA\n"
        ),
        Just("Content-Type: application/octet-stream; name=winmail.dat\n"),
        Just("Content-Type: application/ms-tnef\n"),
        Just("X-MS-TNEF-Correlator: \n"),
        Just("\neJ8+IgAA\n"),
        Just("\n"),
        Just("<html><a href=3Dx>\n"),
        Just("<BASE href=x>\n"),
        Just("=3Cbase href=3Dx>\n"),
        Just("<ba=\nse href=3Dx>\n"),
        Just(
            "<img src=data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7>\n"
        ),
        Just(
            "<img src='dat\na&colon;image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7'>\n"
        ),
        Just(
            "<p style='x:url(&#100;\\61 ta:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7)'>\n"
        ),
        Just(
            "<img src=3Dda=\nta=3Aimage/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7>\n"
        ),
        Just("/html /css content-type l-bo se64 <bas =3c=\n"),
    ];
    let message = prop::collection::vec(piece, 1..12).prop_map(|pieces| pieces.concat());
    prop::collection::vec(message, 0..12)
}

proptest! {
    #[test]
    fn no_type_of_a_document_is_taken_for_another(
        main in prop_oneof![Just("text"), Just("APPLICATION"), Just("x")],
        sub in prop_oneof![Just("html"), Just("CSS"), Just("xhtml+xml"), Just("htm")],
        gaps in prop::collection::vec(
            prop_oneof![4 => Just(""), 1 => Just(" "), 1 => Just("\r\n\t"), 1 => Just("(a / (b))"), 1 => Just("(")],
            3,
        ),
        slash in prop_oneof![4 => Just("/"), 1 => Just(":"), 1 => Just("")],
        behind in prop_oneof![Just(""), Just(";"), Just(" (c)"), Just("\""), Just(":")],
    ) {
        let [first, second, third] = gaps[..] else { unreachable!() };
        let value = [first, main, second, slash, third, sub, behind].concat();
        let essence = crate::mime::MediaType::parse(value.as_bytes()).essence;
        let is_document = ["text/html", "application/xhtml+xml", "text/css"].contains(&&*essence);
        let field = format!("Content-Type:{value}");
        prop_assert!(!is_document || DOCUMENTS.first(field.as_bytes()) == Some(0), "{field:?}");
    }

    #[test]
    fn searching_many_messages_at_once_finds_the_same_as_one_by_one(
        messages in messages(), keep in any::<bool>(), data in any::<bool>(), long in any::<bool>(),
        opened in prop::sample::subsequence(vec!["winmail", "uuencode"], 0..=2),
    ) {
        let policy = Policy {
            links: if keep { Links::Keep } else { Links::Resolve },
            embed: Embed { data, ..Embed::default() },
            follow: opened.iter().fold(Followed::none(), |forms, word| forms.told(word).expect("a form")),
            ..Policy::default()
        };
        let prefilter = Prefilter::new(&policy);
        let mut bytes = Vec::new();
        let mut ends = Vec::new();
        if long {
            bytes.extend(vec![b'x'; SHORT]);
            ends.push(bytes.len());
        }
        for message in &messages {
            bytes.extend(message.bytes());
            ends.push(bytes.len());
        }
        let one_by_one: Vec<usize> = messages
            .iter()
            .enumerate()
            .filter(|(_, message)| prefilter.in_message(message.as_bytes()))
            .map(|(number, _)| number + usize::from(long))
            .collect();
        prop_assert_eq!(prefilter.messages(&bytes, &ends), one_by_one);
    }
}

#[test]
fn escapes_by_the_million_are_looked_at_once_each() {
    // Each body contains a million escapes. A search that starts to decode again at every `=` takes quadratic time,
    // which is minutes for each of these bodies.
    for unit in ["=", "=\n", "= ", "<=\n", "=3c=\n"] {
        let body = format!(
            "Content-Type: text/html\nContent-Transfer-Encoding: quoted-printable\n\n{}",
            unit.repeat(1 << 20)
        );
        let candidates = Prefilter::new(&Policy::default());
        assert!(!candidates.in_message(body.as_bytes()), "{unit:?}");
    }
}

proptest! {
    #[test]
    fn prefilter_finds_everything_the_planner_acts_on(
        messages in messages(), keep in any::<bool>(), data in any::<bool>(),
    ) {
        let policy = Policy {
            links: if keep { Links::Keep } else { Links::Resolve },
            embed: Embed { data, ..Embed::default() },
            ..Policy::default()
        };
        let expander = Expander::new(policy).expect("it retrieves nothing");
        for message in messages {
            let head = "From: a\nMIME-Version: 1.0\n";
            let message = format!("{head}{message}");
            // The engine searches for references and for documents separately, so both searches are compared with the
            // parsed message.
            let tree = crate::mime::scan(message.as_bytes(), &expander.policy().limits.scan());
            let is_document = |id| {
                let essence = tree.part(id).essence.as_str();
                ["text/html", "application/xhtml+xml", "text/css"].contains(&essence)
            };
            let found = expander.prefilter().documents(message.as_bytes()) || (keep && !data);
            prop_assert!(found || !tree.ids().any(is_document), "{message:?}");
            let is_reference = |id| tree.part(id).essence == "message/external-body";
            let found = expander.prefilter().external_bodies(message.as_bytes());
            prop_assert!(found || !tree.ids().any(is_reference), "{message:?}");
            let report = expander.forecast(message.as_bytes(), "1");
            let found = expander.prefilter().in_message(message.as_bytes());
            prop_assert!(found || report.rows.is_empty(), "{message:?}: {:?}", report.rows);
        }
    }
}

#[test]
fn words_for_references_and_for_documents_are_disjoint() {
    let is_of_documents = |word: &PrefilterWord| word.text == b"content-type";
    assert!(!REFERENCES.words.iter().any(is_of_documents));
    assert!(DOCUMENTS.words.iter().all(is_of_documents));
    assert_eq!(
        ALL.words.len(),
        REFERENCES.words.len() + DOCUMENTS.words.len()
    );
}

#[test]
fn what_stands_in_front_of_a_message_in_a_mailbox_hides_no_document() {
    let message = "Content-Type: text/html\n\n<base href=http://h/><a href=x>\n";
    let prefilter = Prefilter::new(&Policy::default());
    let from = "From a@example.org Sat Jan  3 01:05:34 1996\n";
    for opening in ["", from, "\x01\x01\x01\x01\n", "\x01\x01\x01\x01\r\n"] {
        let message = format!("{opening}{message}");
        assert!(prefilter.in_message(message.as_bytes()), "{opening:?}");
    }
    let both = format!("\x01\x01\x01\x01\n{from}{message}");
    assert!(prefilter.in_message(both.as_bytes()));
}
