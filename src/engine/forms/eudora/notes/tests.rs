use super::*;

fn notes(body: &str) -> Vec<EudoraNote> {
    let (pieces, _) = eudora_pieces(body.as_bytes(), Span::new(0, body.len()), 100);
    let notes = pieces.into_iter().filter_map(|piece| match piece {
        EudoraPiece::Note(note) => Some(note),
        EudoraPiece::Text(_) => None,
    });
    notes.collect()
}

#[test]
fn hashes_are_those_that_eudora_wrote() {
    assert_eq!(hash(b"merged_girl.jpg"), 0x5864_25e8);
    assert_eq!(
        hash(b"part1.08010409.03060503@arlut.utexas.edu"),
        0x277b_fd3a
    );
    assert_eq!(hash(b"part1.01020304@example.org"), 0x52ce_f2c6);
    assert_eq!(hash(b""), 1);
}

#[test]
fn a_line_that_names_a_file_is_a_note_and_a_sentence_is_none() {
    for (line, name) in [
        (
            "Attachment Converted: \"C:\\Eudora\\attach\\a b.png\"",
            "a b.png",
        ),
        ("ATTACHMENT CONVERTED: \"a.png\"  ", "a.png"),
        ("Attachment Converted: C:\\EUDORA\\ATTACH\\A.DOC", "A.DOC"),
        ("Attachment Converted: \\\\server\\x\\A.DOC", "A.DOC"),
        (
            "Attachment converted: Macintosh HD:a/b.txt (TEXT/ttxt) (0022466E)",
            "a/b.txt",
        ),
        (
            "Attachment converted: HD:Untitled (    /    ) (0022466A)",
            "Untitled",
        ),
        (
            "Attachment converted: HD:a (x) (PDF /) ()) (0022466A)",
            "a (x)",
        ),
        (
            "Attachment converted: HD:a.pdf (Type: 'PDF ' Creator: 'CARO')",
            "a.pdf",
        ),
        (
            "Attachment converted: a.png: 00000001,52cef2c6,00000000,00000000",
            "a.png",
        ),
        (
            "Embedded Content: a: b.png: 00000001,52CEF2C6,00000000,00000000",
            " b.png",
        ),
        (
            "Related: :Macintosh HD:a.png:0022466F:52CEF2C6:00000000:00000000",
            "a.png",
        ),
        ("Attachment Converted: \"C:\\x\\..\"", ".."),
    ] {
        let found = notes(&format!("text\n{line}\n"));
        assert_eq!(found.len(), 1, "{line}");
        assert_eq!(found[0].name, name, "{line}");
    }
    for line in [
        ">Attachment Converted: \"C:\\a.png\"",
        "#Attachment Converted: \"C:\\a.png\"",
        "Attachment Converted&#058; \"C:\\a.png\"",
        " Attachment Converted: \"C:\\a.png\"",
        "It says Attachment Converted: \"C:\\a.png\"",
        "Attachment Converted: \"C:\\a.png\" and more",
        "Attachment Converted: \"\"",
        "Attachment Converted: \"C:\\x\\\"",
        "Attachment converted: see below",
        "Attachment converted: c:\\ is full",
        "Attachment converted: HD:a.png (PNGf/ogle)",
        "Attachment converted: a.png (PNGf/ogle) (0022466D)",
        "Embedded Content: a.png: 1,52cef2c6,0,0",
        "Related: work by others: see 00000000",
        "Related: :a:0022466F:52CEF2C6:00000000",
    ] {
        assert_eq!(notes(&format!("text\n{line}\n")), [], "{line}");
    }
}

#[test]
fn pieces_are_texts_and_notes_in_order() {
    let body = "<x-html><!x-stuff-for-pete base=\"http://a/\" src=\"\" id=\"1\" charset=\"iso-8859-1/macintosh\"><p>a</p>\n</X-HTML>\nplain\n\nAttachment Converted: \"a\"\n\n\nAttachment converted: HD:b (TEXT/ttxt) (00224669)\n<x-flowed>\nb\nAttachment Converted: \"c\"\n</x-flowed>\n<x-rich>cut off";
    let (pieces, _) = eudora_pieces(body.as_bytes(), Span::new(0, body.len()), 100);
    let text = |span: Span| std::str::from_utf8(span.of(body.as_bytes())).unwrap();
    let shown: Vec<String> = pieces
        .iter()
        .map(|piece| match piece {
            EudoraPiece::Text(it) => format!("{:?} {}", it.wrapper, text(it.span)),
            EudoraPiece::Note(note) => format!("note {}", text(note.whole)),
        })
        .collect();
    assert_eq!(
        shown,
        [
            "Some(Html) <p>a</p>\n",
            "None plain\n",
            "note \nAttachment Converted: \"a\"\n",
            "None \n\n",
            "note Attachment converted: HD:b (TEXT/ttxt) (00224669)\n",
            "Some(Flowed) b\nAttachment Converted: \"c\"\n",
            "Some(Rich) cut off",
        ]
    );
    let EudoraPiece::Text(html) = &pieces[0] else {
        panic!("it is text");
    };
    assert_eq!(html.charset.map(text), Some("iso-8859-1/macintosh"));
    assert_eq!(html.base.map(text), Some("http://a/"));
}

#[test]
fn names_are_read_in_the_charset_of_their_machine() {
    assert_eq!(decoded(b"R\x8esum\x8e", true), "R\u{e9}sum\u{e9}");
    assert_eq!(
        decoded(b"R\xe9sum\xe9 \x80", false),
        "R\u{e9}sum\u{e9} \u{20ac}"
    );
    assert_eq!(decoded("R\u{e9}".as_bytes(), true), "R\u{e9}");
    assert_eq!(decoded(b"\xff\x80", true), "\u{2c7}\u{c4}");
    for name in ["", ".", "..", "a\\b", "a\0", "nul.txt", "COM1", "Aux .x"] {
        assert!(!is_file_name(name), "{name:?}");
    }
    for name in ["a", "a/b.txt", "console", "com10", "..a"] {
        assert!(is_file_name(name), "{name:?}");
    }
}

#[test]
fn thousands_of_lines_that_open_or_name_something_cost_linear_time() {
    for unit in [
        "<x-html>\n",
        "Attachment Converted: \"a\"\n",
        "<x-html>a</x-html>\n",
    ] {
        let body = unit.repeat(400_000);
        let begun = std::time::Instant::now();
        let (pieces, is_cut) = eudora_pieces(body.as_bytes(), Span::new(0, body.len()), 1000);
        assert!(!pieces.is_empty() && (is_cut || pieces.len() == 1));
        assert!(begun.elapsed() < std::time::Duration::from_secs(20));
    }
}
