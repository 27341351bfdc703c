//! RFC 2017, the access type URL: the URL in the parameter, the meaning of the phantom header, and that the part is left
//! unchanged after any error.

use crate::common::mail::{
    self, Leaf, assert_bytes, assert_left, expand, expand_with, second_part, with_external_body,
    with_url,
};
use embody::policy::{Protected, TypePattern};
use embody::report::Outcome;
use embody::{Policy, Report};

fn pattern(text: &str) -> TypePattern {
    text.parse().unwrap()
}

fn expanded(report: &Report) -> bool {
    report.expanded() == 1 && report.left() == 0
}

#[test]
fn the_message_of_section_3_1_comes_out_as_a_plain_message() {
    let mail = b"From: Whomever\nTo: Someone\nSubject: whatever\nMIME-Version: 1.0\n\
        Message-ID: <id1@example.org>\n\
        Content-Type: message/external-body; access-type=URL;\n\
        \x20                URL=\"data:text/html,%3Cp%3EThe%20minutes%20of\n\
        \x20                     %20the%20meeting%3C/p%3E%0A\"\n\n\
        Content-type: text/html\nContent-Transfer-Encoding: binary\n\nTHIS IS NOT REALLY THE BODY!\n";
    let (output, report) = expand(mail);
    assert!(expanded(&report));
    assert_bytes(
        &output,
        b"From: Whomever\nTo: Someone\nSubject: whatever\nMIME-Version: 1.0\n\
        Message-ID: <id1@example.org>\n\
        Content-type: text/html\nContent-Transfer-Encoding: 7bit\n\n\
        <p>The minutes of the meeting</p>\n",
        "RFC 2017 section 3.1",
    );
}

#[test]
fn two_other_readers_find_the_data_in_the_output() {
    let octets: Vec<u8> = (0..=255).cycle().take(5_000).collect();
    use base64::Engine as _;
    let url = format!(
        "data:application/x-all;base64,{}",
        base64::engine::general_purpose::STANDARD.encode(&octets)
    );
    let folded: Vec<&str> = url
        .as_bytes()
        .chunks(40)
        .map(|word| std::str::from_utf8(word).unwrap())
        .collect();
    let mail = with_url(&folded.join("\n    "), "Content-Type: application/x-all\n");
    let text = "one\ntwo\n";
    let nested = format!(
        "MIME-Version: 1.0\nContent-Type: message/rfc822\n\n{}",
        String::from_utf8(with_url(
            "data:text/plain,one%0Atwo%0A",
            "Content-Type: text/plain\n"
        ))
        .unwrap()
    );
    let plain = |body: &str| Leaf::new("text/plain", body.as_bytes());
    for (mail, content) in [
        (mail, Leaf::new("application/x-all", &octets)),
        (nested.into_bytes(), plain(text)),
    ] {
        for message in [mail.clone(), mail::crlf(&mail)] {
            let (output, report) = expand(&message);
            assert!(expanded(&report), "{report:?}");
            let expected = [plain("before"), content.clone(), plain("behind")];
            assert_eq!(mail::mail_parser_leaves(&output), expected);
            if let Some(read) = mail::python_leaves(&[output]) {
                assert_eq!(read, [expected]);
            }
        }
    }
}

#[test]
fn white_space_inside_the_url_is_no_part_of_it() {
    for url in [
        "data:text/plain,ab%20c",
        " d a t a : t e x t / p l a i n , a b % 2 0 c ",
        "data:text/plain,\n ab%\n\t20\n  c",
        "data:\n text/plain,ab%20c",
        "<URL:data:text/plain,ab%20c>",
        "URL: data:text/plain,ab%20c",
    ] {
        let (output, report) = expand(&with_url(url, "Content-Type: text/plain\n"));
        assert!(expanded(&report), "{url}: {report:?}");
        assert!(second_part(&output).ends_with("\n\nab c"), "{url}");
    }
}

#[test]
fn the_parameters_come_unquoted_in_any_case_and_order() {
    for parameters in [
        "access-type=URL; URL=data:text/plain,x",
        "URL=data:text/plain,x; access-type=url",
        "ACCESS-TYPE=\"Url\"; url=\"data:text/plain,x\"; size=1; permission=read",
        "(comment) access-type = URL ;URL = data:text/plain,x",
        "access-type=URL; URL=data:text/plain,x;",
    ] {
        let mail = with_external_body(parameters, "Content-Type: text/plain\n");
        let (output, report) = expand(&mail);
        assert!(expanded(&report), "{parameters}: {report:?}");
        assert!(second_part(&output).ends_with("\n\nx"), "{parameters}");
    }
}

#[test]
fn part_with_a_different_type_of_content_is_left_unchanged() {
    let mail = with_url("data:text/html,x", "Content-Type: image/png\n");
    assert_left(Policy::default(), &mail, "type-mismatch");
}

#[test]
fn accept_mismatch_inserts_content_under_the_declared_type() {
    let policy = Policy::default().with_accept_mismatch(true);
    let mail = with_url("data:text/html,x", "Content-Type: image/png\n");
    let (output, report) = expand_with(policy, &mail);
    assert!(expanded(&report));
    assert!(second_part(&output).starts_with("Content-Type: image/png\n"));
}

#[test]
fn types_agree_whatever_their_case_and_parameters() {
    for (url, phantom) in [
        (
            "data:TEXT/Plain,x",
            "Content-Type: text/PLAIN; charset=us-ascii\n",
        ),
        (
            "data:text/plain;format=flowed,x",
            "Content-Type: text/plain\n",
        ),
        ("data:,x", "Content-Type: image/png\n"),
        (
            "data:application/octet-stream,x",
            "Content-Type: image/png\n",
        ),
        (
            "data:image/png,x",
            "Content-Type: application/octet-stream\n",
        ),
        ("data:image/png,x", ""),
        ("data:image/png,x", "\n"),
        ("data:image/png,x", "Content-Description: no type\n"),
    ] {
        let (_, report) = expand(&with_url(url, phantom));
        assert!(expanded(&report), "{url} {phantom}: {report:?}");
    }
}

#[test]
fn part_is_unchanged_if_its_reference_is_invalid_or_not_allowed() {
    let typed = "Content-Type: text/plain\n";
    for (parameters, reason) in [
        (
            "access-type=URL; URL=\"data:text/plain;base64,a\"",
            "bad-data-url",
        ),
        (
            "access-type=URL; URL=\"data:text/plain;base64,ab=c\"",
            "bad-data-url",
        ),
        (
            "access-type=URL; URL=\"data:text/plain;base64,a_b-\"",
            "bad-data-url",
        ),
        ("access-type=URL; URL=\"data:text/plain\"", "bad-data-url"),
        ("access-type=URL; URL=\"data:#,\"", "bad-data-url"),
        ("access-type=URL", "missing-url"),
        ("access-type=URL; URL=\"\"", "missing-url"),
        ("access-type=URL; URL=\"<>\"", "missing-url"),
        (
            "access-type=x-unheard-of; URL=\"data:,x\"",
            "unknown-access-type",
        ),
        (
            "access-type=MAIL-SERVER; server=a@example.org",
            "unsupported-access-type",
        ),
        (
            "access-type=TFTP; site=a; name=b",
            "unsupported-access-type",
        ),
        ("access-type=AFS; name=b", "unsupported-access-type"),
        ("access-type=x-mutt-deleted; length=3", "deleted"),
        ("URL=\"data:,x\"", "no-access-type"),
        ("access-type=URL; URL=\"minutes.txt\"", "no-base"),
        (
            "access-type=URL; URL=\"http://example.org/\"",
            "scheme-not-allowed",
        ),
        (
            "access-type=URL; URL=\"https://example.org/\"",
            "scheme-not-allowed",
        ),
        (
            "access-type=URL; URL=\"ftp://example.org/a\"",
            "scheme-not-allowed",
        ),
        (
            "access-type=URL; URL=\"file:///etc/passwd\"",
            "scheme-not-allowed",
        ),
        (
            "access-type=URL; URL=\"javascript:alert(1)\"",
            "scheme-not-allowed",
        ),
        (
            "access-type=FTP; site=ftp.example.org; directory=a; name=b",
            "scheme-not-allowed",
        ),
        (
            "access-type=FTP; site=ftp.example.org; name=b",
            "scheme-not-allowed",
        ),
        (
            "access-type=FTP; site=ftp.example.org; directory=a",
            "missing-parameter",
        ),
        (
            "access-type=local-file; name=\"/etc/passwd\"",
            "scheme-not-allowed",
        ),
        (
            "access-type=local-file; name=\"passwd\"",
            "outside-file-root",
        ),
    ] {
        let mail = with_external_body(parameters, typed);
        for mail in [mail.clone(), mail::crlf(&mail)] {
            assert_left(Policy::default(), &mail, reason);
        }
    }
}

#[test]
fn allowed_and_denied_types_hold_for_data_urls_too() {
    let mail = with_url("data:image/png,x", "Content-Type: image/png\n");
    let allow = |patterns: &[&str]| {
        Policy::default().with_allow_types(patterns.iter().map(|text| pattern(text)))
    };
    assert!(expanded(
        &expand_with(allow(&["text/*", "image/*"]), &mail).1
    ));
    assert_left(allow(&["text/*"]), &mail, "type-not-allowed");
    let deny = |allowed: &str| allow(&[allowed]).with_deny_types([pattern("image/png")]);
    assert_left(deny("image/*"), &mail, "type-not-allowed");
    // The type in the URL is checked in addition to the declared one.
    let disguised = with_url(
        "data:image/png,x",
        "Content-Type: application/octet-stream\n",
    );
    assert_left(deny("*/*"), &disguised, "type-not-allowed");
    let untyped = with_url("data:image/png,x", "");
    assert_left(deny("*/*"), &untyped, "type-not-allowed");
}

#[test]
fn content_above_the_limit_leaves_the_part_as_it_came() {
    let mail = with_url("data:text/plain,0123456789", "Content-Type: text/plain\n");
    let limited = |body| {
        let mut policy = Policy::default();
        policy = policy.map_limits(|limits| limits.with_body(body));
        policy
    };
    assert_left(limited(9), &mail, "too-large");
    assert!(expanded(&expand_with(limited(10), &mail).1));
}

#[test]
fn what_does_not_fit_within_the_growth_is_left_and_the_next_that_fits_is_not() {
    let long = "%41".repeat(10);
    let external = |content_id: &str| {
        format!(
            "--b\nContent-Type: message/external-body; access-type=URL; URL=\"cid:{content_id}\"\n\n\n"
        )
    };
    let mut mail = "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n".to_owned();
    mail.push_str(&format!(
        "--b\nContent-Type: application/x\nContent-ID: <big@x>\n\n{}\n",
        "x".repeat(1_000)
    ));
    mail.push_str(&external("big@x"));
    mail.push_str(&external("big@x"));
    mail.push_str(&format!(
        "--b\nContent-Type: message/external-body; access-type=URL; URL=\"data:text/plain,{long}\"\n\n\n--b--\n"
    ));
    let limited = |growth| {
        let mut policy = Policy::default();
        policy = policy.map_limits(|limits| limits.with_growth(growth));
        expand_with(policy, mail.as_bytes())
    };
    let (_, report) = limited(10_000);
    assert_eq!(report.expanded(), 3);
    for (growth, first) in [(100, Outcome::Left), (1_500, Outcome::Expanded)] {
        let (output, report) = limited(growth);
        let outcomes: Vec<_> = report.rows.iter().map(|row| row.outcome).collect();
        assert_eq!(outcomes, [first, Outcome::Left, Outcome::Expanded]);
        let reason = report.rows[1].reason.map(|reason| reason.as_str());
        assert_eq!(reason, Some("growth-limit"));
        if first == Outcome::Expanded {
            assert!(
                report
                    .notes
                    .iter()
                    .any(|note| note.contains("run embody again on the result"))
            );
            continue;
        }
        let mut policy = Policy::default();
        policy = policy.map_limits(|limits| limits.with_growth(growth));
        let (again, _) = expand_with(policy, &output);
        assert_bytes(&again, &output, "twice is once");
    }
}

#[test]
fn a_declared_size_that_disagrees_is_told_and_stops_nothing() {
    let mail = with_external_body(
        "access-type=URL; size=99; URL=\"data:text/plain,abc\"",
        "Content-Type: text/plain\n",
    );
    let (_, report) = expand(&mail);
    assert!(expanded(&report));
    assert!(
        report.notes.iter().any(|note| note.contains("99")),
        "{report:?}"
    );
    assert_eq!(
        report.rows[0].detail,
        "3 bytes of text/plain; the size parameter is 99 bytes, but the content has 3 bytes"
    );
}

#[test]
fn declared_size_beyond_64_bits_is_reported_as_the_maximum_or_more() {
    let mail = with_external_body(
        "access-type=URL; size=18446744073709551617; URL=\"data:text/plain,abc\"",
        "Content-Type: text/plain\n",
    );
    let (_, report) = expand(&mail);
    assert!(expanded(&report));
    assert_eq!(
        report.rows[0].detail,
        "3 bytes of text/plain; the size parameter is 18446744073709551615 bytes or more, but the content has 3 bytes"
    );
}

#[test]
fn an_expiration_that_is_over_is_told_and_stops_nothing() {
    for (expiration, is_over) in [
        ("Fri, 14 Jun 1991 19:13:14 -0400 (EDT)", true),
        ("14 Jun 2024 19:13:14 GMT", true),
        ("Sat, 14 Jun 2900 19:13:14 +0000", false),
        ("soon", false),
        ("Fri, 99 Jun 99999999999999999999 99:99:99 +9999", false),
    ] {
        let mail = with_external_body(
            &format!("access-type=URL; expiration=\"{expiration}\"; URL=\"data:text/plain,abc\""),
            "Content-Type: text/plain\n",
        );
        let (_, report) = expand(&mail);
        assert!(expanded(&report));
        let told = report.rows[0].detail.contains(expiration);
        assert_eq!(told, is_over, "{expiration}: {report:?}");
    }
}

#[test]
fn that_a_dkim_signature_will_not_verify_is_told_once() {
    let mail = with_url("data:,abc", "");
    let signed = [b"DKIM-Signature: v=1".as_slice(), b"\n", &mail].concat();
    for (mail, times) in [(&mail, 0), (&signed, 1)] {
        let (output, report) = expand(mail);
        let told = |row: &&embody::report::Row| row.detail.contains("DKIM-Signature");
        assert_eq!(report.rows.iter().filter(told).count(), times, "{report:?}");
        let (_, report) = expand(&output);
        assert!(
            report.rows.is_empty() && report.notes.is_empty(),
            "{report:?}"
        );
    }
}

#[test]
fn signed_and_encrypted_content_is_left_unless_told() {
    for (kind, reason) in [
        ("signed", "signed"),
        ("encrypted", "encrypted"),
        ("report", "inside-report"),
    ] {
        let inner =
            String::from_utf8(with_url("data:text/plain,x", "Content-Type: text/plain\n")).unwrap();
        let mail = format!(
            "MIME-Version: 1.0\nContent-Type: multipart/{kind}; boundary=s\n\n--s\nContent-Type: message/rfc822\n\n{inner}\n--s--\n"
        );
        assert_left(Policy::default(), mail.as_bytes(), reason);
        let rewrite = Policy::default().with_protected(Protected::Rewrite);
        if kind == "report" {
            assert_left(rewrite, mail.as_bytes(), reason);
        } else {
            assert!(expanded(&expand_with(rewrite, mail.as_bytes()).1));
        }
    }
}

#[test]
fn outer_fields_stay_but_for_those_that_the_phantom_header_has() {
    let mail = b"MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b0\n\n--b0\n\n--b0\n\
        X-One: 1\nContent-Description: outer\nContent-Type: message/external-body; access-type=URL; URL=\"data:text/plain,x\"\n\
        Content-Transfer-Encoding: 7bit\nContent-Language: en\n\n\
        CONTENT-DESCRIPTION:  inner,\n\t as it stands \nX-Two:2\nContent-Type:text/plain\n\n--b0--\n";
    let (output, _) = expand(mail);
    assert_eq!(
        second_part(&output),
        "X-One: 1\nCONTENT-DESCRIPTION:  inner,\n\t as it stands \nX-Two:2\nContent-Type:text/plain\n\
         Content-Transfer-Encoding: 7bit\nContent-Language: en\n\nx\n--b0--\n"
    );
}

#[test]
fn a_data_url_in_an_oversized_header_is_left_not_cut() {
    let mut policy = Policy::default();
    policy = policy.map_limits(|limits| limits.with_header(400));
    let long = format!("data:text/plain,{}", "0123456789\n ".repeat(60));
    for mail in [
        with_url(&long, "Content-Type: text/plain\n"),
        format!("MIME-Version: 1.0\nContent-Type: message/external-body; access-type=URL; URL=\"{long}\"\n\nContent-Type: text/plain\n\n").into_bytes(),
    ] {
        assert_left(policy.clone(), &mail, "header-too-large");
    }
    let phantom = format!(
        "Content-Type: text/plain\nX: {}\nContent-MD5: x\n",
        "y\n ".repeat(300)
    );
    assert_left(
        policy,
        &with_url("data:text/plain,x", &phantom),
        "header-too-large",
    );
}

#[test]
fn a_url_that_is_relative_uses_the_declared_base() {
    let mail = b"Content-Base: http://example.org/a/\nMIME-Version: 1.0\n\
        Content-Type: message/external-body; access-type=URL; URL=\"../b\"\n\n\n";
    let (output, report) = expand(mail);
    assert_bytes(&output, mail, "nothing is fetched unasked");
    assert_eq!(report.rows[0].url.as_deref(), Some("http://example.org/b"));
}

#[test]
fn only_content_fields_of_the_phantom_header_reach_a_message_header() {
    let mail = b"Subject: mine\nMIME-Version: 1.0\nContent-Type: message/external-body; access-type=URL; URL=\"data:text/plain,x\"\n\n\
        Content-Type: text/plain\nSubject: theirs\nFrom: theirs\nBcc: theirs\n\n";
    let (output, _) = expand(mail);
    assert_bytes(
        &output,
        b"Subject: mine\nMIME-Version: 1.0\nContent-Type: text/plain\nContent-Transfer-Encoding: 7bit\n\nx",
        "a stranger's fields",
    );
}

#[test]
fn a_url_whose_end_was_cut_off_is_left() {
    // A field longer than header_size_limit, as Postfix truncates it.
    for parameter in [
        "URL=\"data:,half%20a%20l",
        "URL*0=\"data:,half\"; URL*1=\"%20a%20l",
    ] {
        let mail = with_external_body(&format!("access-type=URL;\n {parameter}"), "");
        assert_left(Policy::default(), &mail, "bad-url");
    }
}
