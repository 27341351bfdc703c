//! RFC 2046: external bodies (§5.2.3), rivals in a multipart/alternative (§5.1.4), and the allowed places of parts
//! (§5.1, §5.2). RFC 2045 §6: the encoding of the content.

use super::common::mail::{
    self, assert_bytes, assert_left, expand, second_part, with_external_body, with_url,
};
use embody::Policy;
use embody::engine::Content;
use embody::fetch::{Fetch, Request};
use embody::mime;
use embody::policy::Scheme;
use embody::report::{Outcome, Reason, Refusal, Report};

const MAIL_SERVER: &str = "access-type=mail-server; server=a@example.org";

fn data(text: &str) -> String {
    format!("access-type=URL; URL=\"data:text/plain,{text}\"")
}

fn alternative(parts: &[(&str, &str)]) -> Vec<u8> {
    let mut mail =
        "MIME-Version: 1.0\nContent-Type: multipart/alternative; boundary=alt\n".to_owned();
    for (parameters, phantom) in parts {
        mail.push_str(&format!(
            "\n--alt\nContent-Type: message/external-body; {parameters}\n\n{phantom}"
        ));
    }
    mail.push_str("\n--alt--\n");
    mail.into_bytes()
}

fn outcomes(report: &Report) -> Vec<Outcome> {
    report.rows.iter().map(|row| row.outcome).collect()
}

fn parts(message: &[u8]) -> usize {
    mime::scan(message, &mime::ScanLimits::default())
        .root()
        .children
        .len()
}

#[test]
fn rivals_with_one_content_id_leave_one_part() {
    let id = "Content-Type: text/plain\nContent-ID: <r@x>\n";
    for order in [[0, 1], [1, 0]] {
        let rivals = [(MAIL_SERVER.to_owned(), id), (data("x"), id)];
        let offers: Vec<_> = order.map(|at| (rivals[at].0.as_str(), rivals[at].1)).into();
        for mail in [alternative(&offers), mail::crlf(&alternative(&offers))] {
            let (output, report) = expand(&mail);
            assert_eq!(parts(&output), 1);
            assert_eq!(report.expanded(), 1);
            let text = String::from_utf8_lossy(&output).replace('\r', "");
            assert_eq!(
                text,
                "MIME-Version: 1.0\nContent-Type: multipart/alternative; boundary=alt\n\n--alt\n\
                 Content-Type: text/plain\nContent-ID: <r@x>\nContent-Transfer-Encoding: 7bit\n\nx\n--alt--\n"
            );
            assert_bytes(&expand(&output).0, &output, "twice is once");
        }
    }
}

#[test]
fn rivals_with_three_access_types_leave_one_part_in_each_order() {
    let id = "Content-Type: text/plain\nContent-ID: <r@x>\n";
    let good = data("x");
    let rivals = [
        MAIL_SERVER,
        &good,
        "access-type=ANON-FTP; site=ftp.example.org; name=x",
    ];
    for order in [
        [0, 1, 2],
        [0, 2, 1],
        [1, 0, 2],
        [1, 2, 0],
        [2, 0, 1],
        [2, 1, 0],
    ] {
        let (output, report) = expand(&alternative(&order.map(|at| (rivals[at], id))));
        assert_eq!(parts(&output), 1, "{order:?}");
        assert_eq!(report.expanded(), 1, "{order:?}");
        assert!(output.windows(3).any(|it| it == b"\nx\n"), "{order:?}");
    }
}

/// The first boundary line has no line break of its own, so removing a part there also removes the line break of the
/// next boundary.
#[test]
fn alternatives_before_and_after_the_inserted_one_are_removed() {
    let id = "Content-Type: text/plain\nContent-ID: <r@x>\n";
    let good = data("x");
    for gone in 1..5 {
        let mut offers = vec![(MAIL_SERVER, id); gone];
        offers.push((&good, id));
        offers.push((MAIL_SERVER, id));
        offers.push((MAIL_SERVER, id));
        for preamble in ["", "preamble\n"] {
            let mail = String::from_utf8(alternative(&offers)).unwrap().replacen(
                "\n\n--alt",
                &format!("\n\n{preamble}--alt"),
                1,
            );
            for mail in [mail.as_bytes(), &mail::crlf(mail.as_bytes())] {
                let (output, report) = expand(mail);
                let text = String::from_utf8_lossy(&output).replace('\r', "");
                assert_eq!(
                    text,
                    format!(
                        "MIME-Version: 1.0\nContent-Type: multipart/alternative; boundary=alt\n\n{preamble}--alt\n\
                         Content-Type: text/plain\nContent-ID: <r@x>\nContent-Transfer-Encoding: 7bit\n\nx\n--alt--\n"
                    ),
                    "{gone} {report:?}"
                );
                assert_bytes(&expand(&output).0, &output, "twice is once");
            }
        }
    }
}

/// If the only empty line after a header belongs to the next boundary line, the text before the rival must still end
/// its line.
#[test]
fn removing_an_alternative_without_a_body_keeps_line_breaks_of_other_parts() {
    let field = "Content-Type: message/external-body; access-type=URL; URL";
    let id = "Content-ID: <o@x>\n";
    for behind in ["--alt--\n", "--alt--", "--alt\n\nx\n--alt--\n", ""] {
        let mail = format!(
            "MIME-Version: 1.0\nContent-Type: multipart/alternative; boundary=alt\n\n--alt\n\
             {field}=\"data:text/plain,one\"\n\n{id}\n--alt\n{field}=\"data:text/plain,two\"\n\n{id}{behind}"
        );
        for mail in [mail.as_bytes(), &mail::crlf(mail.as_bytes())] {
            let (output, report) = expand(mail);
            // If there is a part with content, the others are not rivals.
            let rivals = !behind.contains('x');
            assert_eq!(report.expanded(), if rivals { 1 } else { 2 }, "{behind:?}");
            let leaves = mail::our_leaves(&output);
            assert_eq!(leaves.len(), if rivals { 1 } else { 3 }, "{behind:?}");
            assert_eq!(leaves[0].octets, b"one", "{behind:?}");
            assert!(
                behind.is_empty()
                    || output.ends_with(b"--alt--\n")
                    || output.ends_with(b"--alt--\r\n")
                    || behind == "--alt--"
            );
            assert_bytes(&expand(&output).0, &output, "twice is once");
        }
    }
}

#[test]
fn parts_with_the_same_content_md5_are_alternatives_for_each_other() {
    // The digest of "x".
    let md5 = "Content-MD5: ndTkYSaMgDT1yFZOFVxnpg==\n";
    let id = "Content-ID: <r@x>\n";
    let (output, report) = expand(&alternative(&[
        (MAIL_SERVER, md5),
        (&data("x"), &format!("{md5}{id}")),
        (MAIL_SERVER, id),
        (MAIL_SERVER, "Content-Type: text/plain\n"),
    ]));
    assert_eq!(
        outcomes(&report),
        [
            Outcome::Rewritten,
            Outcome::Expanded,
            Outcome::Rewritten,
            Outcome::Left
        ]
    );
    assert_eq!(report.rows[0].reason, Some(Reason::RivalExpanded));
    assert_eq!(parts(&output), 2);
}

/// An English and a French text can have the same type, and a text and its HTML can have no common field.
#[test]
fn parts_are_alternatives_only_by_content_id_or_digest() {
    for phantoms in [
        [
            "Content-Type: text/plain\nContent-Language: en\n",
            "Content-Type: text/plain\nContent-Language: fr\n",
        ],
        ["\n", "\n"],
    ] {
        let (output, report) = expand(&alternative(&[
            (&data("good%20day"), phantoms[0]),
            (&data("bonjour"), phantoms[1]),
        ]));
        assert_eq!(outcomes(&report), [Outcome::Expanded; 2]);
        let text = String::from_utf8(output).unwrap();
        assert!(text.contains("good day") && text.contains("bonjour"));
    }
}

#[test]
fn different_ids_are_different_objects() {
    let (output, report) = expand(&alternative(&[
        (&data("x"), "Content-Type: text/plain\nContent-ID: <1@x>\n"),
        (MAIL_SERVER, "Content-Type: text/plain\nContent-ID: <2@x>\n"),
    ]));
    assert_eq!(outcomes(&report), [Outcome::Expanded, Outcome::Left]);
    assert_eq!(parts(&output), 2);
}

#[test]
fn rivals_of_whom_none_succeeds_stay_as_they_came() {
    let id = "Content-Type: text/plain\nContent-ID: <r@x>\n";
    let mail = alternative(&[
        ("access-type=URL; URL=\"data:text/plain\"", id),
        ("access-type=URL; URL=\"data:text/plain;base64,*\"", id),
    ]);
    assert_left(Policy::default(), &mail, "bad-data-url");
}

#[test]
fn a_rival_that_is_too_large_gives_way_to_the_next() {
    let id = "Content-Type: application/x\nContent-ID: <r@x>\n";
    let large = format!("access-type=URL; URL=\"cid:big@x\"; x={}", "y".repeat(40));
    let small = "access-type=URL; URL=\"data:application/x,small\"";
    let mut mail = b"MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=o\n\n--o\nContent-ID: <big@x>\n\n".to_vec();
    mail.extend("z".repeat(2_000).bytes());
    mail.extend(b"\n--o\n");
    mail.extend(alternative(&[(large.as_str(), id), (small, id)]));
    mail.extend(b"\n--o--\n");
    let mut policy = Policy::default().with_accept_mismatch(true);
    policy.limits.growth = 1_000;
    let (output, report) = mail::expand_with(policy.clone(), &mail);
    assert_eq!(
        outcomes(&report),
        [Outcome::Rewritten, Outcome::Expanded],
        "{report:?}"
    );
    assert!(String::from_utf8_lossy(&output).contains("c21hbGw="));
    let (again, _) = mail::expand_with(policy, &output);
    assert_bytes(&again, &output, "twice is once");
}

/// A source without content that records the order of the requests.
struct Asked(std::sync::Mutex<Vec<String>>);

impl Fetch for Asked {
    fn fetch(&self, request: &Request) -> Result<Content, Refusal> {
        self.0.lock().unwrap().push(request.url().to_owned());
        Err(Refusal::lasting(Reason::HttpStatus, "404"))
    }
}

#[test]
fn alternatives_are_tried_in_the_order_https_http_ftp() {
    let id = "Content-Type: text/plain\nContent-ID: <r@x>\n";
    let ftp = "access-type=anon-ftp; site=ftp.example.org; directory=a; name=b; mode=image";
    let http = "access-type=URL; URL=\"http://example.org/b\"";
    let https = "access-type=URL; URL=\"https://example.org/b\"";
    let mail = alternative(&[(ftp, id), (http, id), (https, id)]);
    let world = std::sync::Arc::new(Asked(std::sync::Mutex::default()));
    let mut policy = Policy::default();
    policy
        .fetch
        .extend([Scheme::Ftp, Scheme::Http, Scheme::Https]);
    let expander = mail::expander(policy, std::sync::Arc::clone(&world));
    let expansion = expander.expand(&mail, "test").unwrap();
    assert_eq!(
        *world.0.lock().unwrap(),
        [
            "https://example.org/b",
            "http://example.org/b",
            "ftp://ftp.example.org/a/b;type=i"
        ]
    );
    assert_bytes(&expansion.output().into_bytes(), &mail, "none succeeded");
}

#[test]
fn an_alternative_with_a_real_part_offers_formats_not_sources() {
    let mail = b"MIME-Version: 1.0\nContent-Type: multipart/alternative; boundary=alt\n\n--alt\n\nreal\n--alt\n\
        Content-Type: message/external-body; access-type=URL; URL=\"data:,x\"\n\n\n--alt\n\
        Content-Type: message/external-body; access-type=URL; URL=\"data:,y\"\n\n\n--alt--\n";
    let (output, report) = expand(mail);
    assert_eq!(report.expanded(), 2);
    assert_eq!(parts(&output), 3);
}

#[test]
fn text_of_short_ascii_lines_goes_as_7bit_with_the_messages_line_ends() {
    for url in ["data:text/plain,a%0Ab%0A", "data:text/plain,a%0D%0Ab%0D%0A"] {
        let mail = with_url(url, "Content-Type: text/plain\n");
        for (mail, newline) in [(mail.clone(), "\n"), (mail::crlf(&mail), "\r\n")] {
            let (output, _) = expand(&mail);
            let text = String::from_utf8(output).unwrap();
            let expected =
                "Content-Transfer-Encoding: 7bit\n\na\nb\n\n--b0\n".replace('\n', newline);
            assert!(text.contains(&expected), "{text:?}");
        }
    }
}

#[test]
fn text_that_7bit_cannot_hold_is_encoded_without_loss() {
    for (url, encoding) in [
        (
            "data:text/plain;charset=utf-8,a%20few%20words%20with%20one%20%C3%A4",
            "quoted-printable",
        ),
        (
            "data:text/plain;charset=utf-8,%D0%9F%D0%9F%D0%9F%D0%9F%D0%9F%D0%9F%D0%9F%D0%9F",
            "base64",
        ),
        ("data:text/plain,some%20words%00b", "quoted-printable"),
        ("data:text/plain,some%20words%0Db", "quoted-printable"),
        ("data:text/plain,--b0", "quoted-printable"),
        (
            "data:text/plain,--b0--%20%0Asome%20words",
            "quoted-printable",
        ),
        ("data:text/plain;charset=utf-16,%FE%FF%00a", "base64"),
    ] {
        let (output, report) = expand(&with_url(url, ""));
        assert_eq!(report.expanded(), 1, "{url}");
        let part = second_part(&output);
        assert!(
            part.contains(&format!("Content-Transfer-Encoding: {encoding}\n")),
            "{url}: {part}"
        );
        let tree = mime::scan(&output, &mime::ScanLimits::default());
        let id = tree.ids().nth(2).unwrap();
        let decoded = tree
            .part(id)
            .encoding
            .decode(tree.part(id).body.of(&output))
            .unwrap();
        let original = embody::link::data::DataUrl::parse(url.as_bytes())
            .unwrap()
            .decode(1_000)
            .unwrap();
        assert_eq!(decoded.as_ref(), original, "{url}");
        assert_eq!(parts(&output), 3);
    }
}

#[test]
fn other_types_go_as_base64_in_lines_of_76() {
    let (output, _) = expand(&with_url(
        &format!("data:application/x,{}", "a".repeat(200)),
        "",
    ));
    let part = second_part(&output);
    let (_, body) = part.split_once("\n\n").unwrap();
    let lengths: Vec<usize> = body.lines().map(str::len).collect();
    assert_eq!(lengths, [76, 76, 76, 40]);
}

#[test]
fn an_empty_content_is_an_empty_body() {
    for phantom in [
        "",
        "Content-Type: image/png\n",
        "Content-Type: text/plain\n",
    ] {
        let (output, report) = expand(&with_url("data:,", phantom));
        assert_eq!(report.expanded(), 1);
        assert_eq!(mail::our_leaves(&output)[1].octets, b"");
        assert_eq!(parts(&output), 3);
        assert_bytes(&expand(&output).0, &output, "twice is once");
    }
}

#[test]
fn multiparts_and_messages_go_unencoded_and_are_processed() {
    let inner = "--i%0AContent-Type:%20message/external-body;%20access-type=URL;%20URL=%22data:,deep%22%0A%0A%0A--i--%0A";
    let (output, report) = expand(&with_url(
        &format!("data:multipart/mixed;boundary=i,{inner}"),
        "Content-Type: multipart/mixed; boundary=i\n",
    ));
    assert_eq!(report.expanded(), 2);
    let part = second_part(&output);
    assert!(
        part.starts_with(
            "Content-Type: multipart/mixed; boundary=i\nContent-Transfer-Encoding: 7bit\n\n--i\n"
        ),
        "{part}"
    );
    assert!(part.ends_with("\n\ndeep\n--i--\n"), "{part}");
    let numbers: Vec<&str> = report.rows.iter().map(|row| row.part.as_str()).collect();
    assert_eq!(numbers, ["2", "2.1"]);
}

#[test]
fn content_that_would_end_the_part_it_is_put_into_is_left() {
    // RFC 2046 asks mail programs to compare only the start of a line, and many do, so --b01 could end the part.
    for line in [
        "--b0",
        "--b0--",
        "--b0%20%09",
        "--b01",
        "x%0D%0A--b0%0D%0Ay",
    ] {
        let url = format!("data:message/rfc822,Subject:%20x%0A%0A{line}%0A");
        let mail = with_url(&url, "Content-Type: message/rfc822\n");
        assert_left(Policy::default(), &mail, "boundary-collision");
    }
    let url = "data:message/rfc822,Subject:%20x%0A%0A%20--b0%0Ax--b0%0A";
    let (output, report) = expand(&with_url(url, "Content-Type: message/rfc822\n"));
    assert_eq!(report.expanded(), 1);
    assert_eq!(parts(&output), 3);
}

/// A multipart without a boundary line, or a truncated one, would include the lines after it. The following parts would
/// then be inside it.
#[test]
fn content_that_would_take_in_the_parts_behind_it_is_left() {
    let inner = "MIME-Version:%201.0%0AContent-Type:%20multipart/mixed;%20boundary=";
    for (declared, url) in [
        (
            "multipart/mixed; boundary=b0",
            "data:multipart/mixed;boundary=b0,x".to_owned(),
        ),
        (
            "multipart/mixed; boundary=\"b\"",
            "data:multipart/mixed;boundary=b,x".to_owned(),
        ),
        (
            "message/rfc822",
            format!("data:message/rfc822,{inner}b0%0A%0Ax%0A"),
        ),
        (
            "multipart/mixed",
            format!("data:multipart/mixed;boundary=i,--i%0A{inner}b0%0A%0Ax%0A"),
        ),
    ] {
        let mail = with_url(&url, &format!("Content-Type: {declared}\n"));
        assert_left(Policy::default(), &mail, "boundary-collision");
        assert_left(Policy::default(), &mail::crlf(&mail), "boundary-collision");
    }
    let url = format!("data:message/rfc822,{inner}b0x%0A%0A--b1%0A");
    let (output, report) = expand(&with_url(&url, "Content-Type: message/rfc822\n"));
    assert_eq!(report.expanded(), 1);
    assert_eq!(parts(&output), 3);
}

#[test]
fn phantom_headers_present_empty_and_absent_are_told_from_bodies() {
    for (phantom, expected) in [
        (
            "Content-Type: text/plain\n\nphantom body\n",
            "Content-Type: text/plain\n",
        ),
        ("Content-Type: text/plain", "Content-Type: text/plain\n"),
        (
            "\nphantom body\n",
            "Content-Type: text/plain; charset=\"US-ASCII\"\n",
        ),
        ("", "Content-Type: text/plain; charset=\"US-ASCII\"\n"),
        (
            "no field at all\n",
            "Content-Type: text/plain; charset=\"US-ASCII\"\n",
        ),
    ] {
        let (output, report) = expand(&with_url("data:,x", phantom));
        assert_eq!(report.expanded(), 1, "{phantom}");
        assert_eq!(
            second_part(&output),
            format!("{expected}Content-Transfer-Encoding: 7bit\n\nx"),
            "{phantom}"
        );
    }
}

#[test]
fn external_body_with_a_transfer_encoding_is_left() {
    for encoding in ["base64", "Quoted-Printable"] {
        let parameters = format!("{}\nContent-Transfer-Encoding: {encoding}", data("x"));
        let mail = with_external_body(&parameters, "Content-Type: text/plain\n");
        assert_left(Policy::default(), &mail, "encoded-reference");
    }
}

#[test]
fn second_run_over_a_truncated_reference_changes_nothing() {
    let mail = with_url("data:text/plain,0123456789", "Content-Type: text/plain\n");
    let from = mail
        .windows(5)
        .position(|window| window == b"data:")
        .unwrap();
    for cut in from..from + 26 {
        let (output, _) = expand(&mail[..cut]);
        let again = expand(&output).0;
        assert_bytes(&again, &output, "twice is once");
    }
}

/// Comments are allowed between any two tokens (RFC 822 §3.1.4).
#[test]
fn comments_between_all_tokens_of_the_field_change_nothing() {
    let mail =
        b"MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary (b) = (c) x (d)\n\n--x\n\
        Content-Type: message (1) / (2) external-body (3) ; (4) access-type (5) = (6) URL (7) ;\n \
        (8) URL (9) = (10) \"data:,hi\" (11)\n\nContent-Type: text/plain\n\n\n--x--\n";
    let (output, report) = mail::expand(mail);
    assert_eq!(report.expanded(), 1, "{report:?}");
    assert!(memchr::memmem::find(&output, b"\n\nhi\n--x--\n").is_some());
}
