//! Mails that others wrote: none contributes a part without proof.

use base64::Engine as _;

use super::{PDF, Place, STANDARD, attachment, deleted, whole, with_part};

fn incomplete() -> String {
    with_part("hello", &deleted())
}

/// The content has the length of the original.
fn forged() -> String {
    let mut content = PDF.to_vec();
    content[20] = b'!';
    with_part("hello", &attachment(&content))
}

#[test]
fn two_copies_with_different_contents_are_both_refused() {
    for copies in [[whole(), forged()], [forged(), whole()]] {
        let place = Place::with(&incomplete(), &[&copies[0], &copies[1]]);
        let (reason, detail) = place.left();
        assert_eq!(reason, "copies-differ");
        let names = detail.contains("message 1 of ")
            && detail.contains("1.eml")
            && detail.contains("2.eml");
        assert!(names, "{detail}");
    }
}

#[test]
fn two_copies_with_the_same_content_are_one() {
    let received = format!(
        "Received: from a by b; Mon, 6 May 2024 10:00:01 +0200\n{}",
        whole()
    );
    let crlf = whole().replace('\n', "\r\n");
    let place = Place::with(&incomplete(), &[&whole(), &received, &crlf, &whole()]);
    let (out, _) = place.filled();
    assert!(out.contains(&STANDARD.encode(PDF)[..60]), "{out}");
}

#[test]
fn mail_with_the_message_id_and_anything_else_different_is_no_copy() {
    let place = |copy: &str| Place::with(&incomplete(), &[copy]);
    place(&whole()).filled();
    let more = format!("{}\n--b\n{}", deleted(), attachment(b"more"));
    for copy in [
        whole().replace("hello", "Hello"),
        whole().replace("Ann B", "Ann C"),
        whole().replace("Otto", "Eve"),
        whole().replace("a plan", "another plan"),
        whole().replace("10:00:00", "10:00:01"),
        whole().replace("name=a.pdf", "name=b.pdf"),
        whole().replace("application/pdf", "application/zip"),
        with_part(
            "hello",
            &format!("{}\n--b\n{}", attachment(PDF), attachment(b"more")),
        ),
        whole().replace("multipart/mixed", "multipart/alternative"),
        format!("Reply-To: eve@example.org\n{}", whole()),
        whole().replace("--b--\n", ""),
        with_part("hello", &more),
    ] {
        let (reason, detail) = place(&copy).left();
        assert_eq!(reason, "not-in-copies", "{copy}");
        assert!(
            detail.contains("1 other mail with the same Message-ID"),
            "{detail}"
        );
    }
    let (reason, detail) = place(&whole().replace("1@example.org", "2@example.org")).left();
    assert_eq!(reason, "not-in-copies");
    assert!(detail.contains("no other copy of this mail"), "{detail}");
}

#[test]
fn header_of_a_copy_gets_nothing_but_the_part_into_the_mail() {
    let copy = format!("X-Forged: yes\nStatus: O\n{}", whole());
    let (out, _) = Place::with(&incomplete(), &[&copy]).filled();
    assert!(
        !out.contains("X-Forged") && !out.contains("Status"),
        "{out}"
    );
}

#[test]
fn mail_that_is_its_own_copy_has_nothing_to_give() {
    let (reason, _) = Place::with(&incomplete(), &[&incomplete()]).left();
    assert_eq!(reason, "not-in-copies");
}

#[test]
fn many_mails_with_one_message_id_are_not_compared() {
    let mut copies: Vec<String> = (0..65)
        .map(|number| whole().replace("hello", &format!("hello {number}")))
        .collect();
    let borrowed = |copies: &[String]| -> Place {
        let copies: Vec<&str> = copies.iter().map(String::as_str).collect();
        Place::with(&incomplete(), &copies)
    };
    let (reason, detail) = borrowed(&copies).left();
    assert_eq!(reason, "copies-differ");
    assert!(detail.contains("more than 64"), "{detail}");
    copies.truncate(63);
    copies.push(whole());
    borrowed(&copies).filled();
}

#[test]
fn content_beyond_the_limits_is_refused() {
    let place = Place::with(&incomplete(), &[&whole()]);
    for (option, reason) in [
        ("--max-body 10", "too-large"),
        ("--max-growth 10", "growth-limit"),
        ("--deny-type application/pdf", "type-not-allowed"),
    ] {
        let line = format!(
            "recover --offline in.eml --copies mail --output out.eml --report rows.jsonl {option}"
        );
        place.run(&line, 0);
        assert_eq!(place.rows()[0]["reason"], reason, "{option}");
        assert_eq!(place.read("out.eml"), incomplete());
        for name in ["out.eml", "rows.jsonl"] {
            std::fs::remove_file(place.path(name)).unwrap();
        }
    }
}

#[test]
fn attachments_from_copies_are_no_retrievals() {
    let parts = |part: &dyn Fn(usize) -> String| {
        let parts: Vec<String> = (0..5).map(part).collect();
        with_part("hello", &parts.join("\n--b\n"))
    };
    let named = |text: String, number: usize| text.replace("a.pdf", &format!("a{number}.pdf"));
    let mail = parts(&|number| named(deleted(), number));
    let copy = parts(&|number| named(attachment(PDF), number));
    let place = Place::with(&mail, &[&copy]);
    place.run("recover --offline in.eml --copies mail --output out.eml --report rows.jsonl --max-fetches 1", 0);
    let rows = place.rows();
    assert_eq!(rows.len(), 5);
    assert!(
        rows.iter().all(|row| row["outcome"] == "expanded"),
        "{rows:#?}"
    );
}
