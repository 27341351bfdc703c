//! Links that a mail filter wrapped.

use embody::view::LinkView;

use super::{mixed, multipart, view};

const WRAPPED: &str = "https://eur01.safelinks.protection.outlook.com/?url=https%3A%2F%2Fwww.example.org%2Fa%3Fb%3D1&data=05";
const DEFENDED: &str = "https://urldefense.com/v3/__https://www.example.org/c__;!!x!y$";

fn shown(links: &[LinkView]) -> Vec<(&str, &str, &str, u64)> {
    links
        .iter()
        .map(|it| {
            (
                it.part.as_str(),
                it.service.as_str(),
                it.target.as_str(),
                it.count,
            )
        })
        .collect()
}

#[test]
fn wrapped_links_are_listed_once_with_their_targets() {
    let html = format!(
        "Content-Type: text/html\n\n<a href=\"{}\">a</a> <A HREF='{DEFENDED}'>c</A> <a href=\"{}\">again</a> <a href=\"https://www.example.org/d\">d</a>",
        WRAPPED.replace('&', "&amp;"),
        WRAPPED.replace('&', "&amp;"),
    );
    let text = format!("Content-Type: text/plain\n\nSee <{WRAPPED}> and {DEFENDED} there.");
    let target = "https://www.example.org/a?b=1";
    let other = "https://www.example.org/c";
    for (name, mail, expected) in [
        (
            "html",
            mixed(&[&html]),
            vec![("1", "safelinks", target, 2), ("1", "proofpoint", other, 1)],
        ),
        (
            "text",
            mixed(&[&text]),
            vec![("1", "safelinks", target, 1), ("1", "proofpoint", other, 1)],
        ),
        // The same link in both alternatives is one link.
        (
            "alternative",
            multipart("alternative", &[&text, &html]),
            vec![("1", "safelinks", target, 3), ("1", "proofpoint", other, 2)],
        ),
        // A signed text stays as it is, but the links can be shown.
        (
            "signed",
            multipart(
                "signed",
                &[&html, "Content-Type: application/pgp-signature\n\nx"],
            ),
            vec![("1", "safelinks", target, 2), ("1", "proofpoint", other, 1)],
        ),
        (
            "none",
            mixed(&["Content-Type: text/html\n\n<a href=https://www.example.org/>x</a>"]),
            vec![],
        ),
        // The end of the link is not certain: it may continue on the next line.
        (
            "cut",
            mixed(&[&format!("Content-Type: text/plain\n\n{WRAPPED}\nmore")]),
            vec![],
        ),
        // Files and mails inside the mail are not texts of this mail.
        (
            "attached",
            mixed(&[
                &html.replace(
                    "text/html\n",
                    "text/html\nContent-Disposition: attachment\n",
                ),
                &format!("Content-Type: message/rfc822\n\nSubject: inner\n{html}"),
            ]),
            vec![],
        ),
    ] {
        let view = view(&mail);
        assert_eq!(shown(view.wrapped_links()), expected, "{name}");
        // The links are only listed.
        assert_eq!(view.repaired(), mail.as_bytes(), "{name}");
        if let Some(first) = view.wrapped_links().first() {
            assert_eq!(first.url, WRAPPED, "{name}");
        }
    }
}

#[test]
fn mail_with_thousands_of_wrapped_links_lists_the_first_thousand() {
    let mut html = "Content-Type: text/html\n\n".to_owned();
    for index in 0..3000 {
        html += &format!("<a href=\"{WRAPPED}&amp;n={index}\">x</a>\n");
    }
    assert_eq!(view(mixed(&[&html])).wrapped_links().len(), 1000);
}
