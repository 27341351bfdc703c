//! Links that a mail filter or a picture proxy wrapped in a URL of its own server: `--unwrap`, and originals that are requested
//! if the wrapped URL fails. Also pictures that Outlook on the web took out of their place.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use embody::fetch::Canned;
use embody::policy::{Followed, Links, Protected, Scheme};
use embody::report::{Kind, Outcome, Reason};
use embody::{Policy, Report};

use super::common::mail::{assert_bytes, expander, with_url};
use super::embed::{gif, html, pictures, policy, run};

const ORIGINAL: &str = "https://h.example/original.gif?w=1";

/// Wrapped forms of [`ORIGINAL`] for pictures, each with the URL that is requested and becomes the Content-Location.
const WRAPPED: [(&str, &str); 5] = [
    (
        "https://ci3.googleusercontent.com/meips/AbC=s0-d-e1-ft#https://h.example/original.gif?w=1",
        "https://ci3.googleusercontent.com/meips/AbC=s0-d-e1-ft",
    ),
    (
        "//ci6.googleusercontent.com/proxy/AbC=s0-d-e1-ft#https://h.example/original.gif?w=1",
        "https://ci6.googleusercontent.com/proxy/AbC=s0-d-e1-ft",
    ),
    (
        "https://ecp.yusercontent.com/mail?url=https%3A%2F%2Fh.example%2Foriginal.gif%3Fw%3D1&amp;t=1&amp;sig=x",
        "https://ecp.yusercontent.com/mail?url=https%3A%2F%2Fh.example%2Foriginal.gif%3Fw%3D1&t=1&sig=x",
    ),
    (
        "https://nam02.safelinks.protection.outlook.com/?url=https%3A%2F%2Fh.example%2Foriginal.gif%3Fw%3D1&amp;reserved=0",
        "https://nam02.safelinks.protection.outlook.com/?url=https%3A%2F%2Fh.example%2Foriginal.gif%3Fw%3D1&reserved=0",
    ),
    (
        "https://urldefense.com/v3/__https://h.example/original.gif*w=1__;Pw!!o!s$",
        "https://urldefense.com/v3/__https://h.example/original.gif*w=1__;Pw!!o!s$",
    ),
];

fn without_folds(output: &[u8]) -> String {
    String::from_utf8_lossy(output)
        .replace("\n ", "")
        .replace("Content-Location:https", "Content-Location: https")
}

#[test]
fn picture_whose_proxy_fails_is_embedded_from_the_original() {
    let picture = gif(9, 9, 1);
    for (wrapped, location) in WRAPPED {
        for page in [None, Some("<html>This link is blocked.</html>")] {
            let mut world = Canned::new().with(ORIGINAL, Some("image/gif"), picture.clone());
            if let Some(page) = page {
                world = world.with(location, Some("text/html"), page.as_bytes());
            }
            let mail = html(&format!("<img src=\"{wrapped}\">"));
            let (output, report) = run(policy(), &world, mail.as_bytes());
            assert_eq!(
                pictures(&output).into_values().collect::<Vec<_>>(),
                std::slice::from_ref(&picture),
                "{wrapped}"
            );
            let text = without_folds(&output);
            assert!(
                text.contains(&format!("Content-Location: {location}\n")),
                "{text}"
            );
            let [row] = report.rows.as_slice() else {
                panic!("{report:?}")
            };
            assert_eq!(
                (row.outcome, row.url.as_deref()),
                (Outcome::Expanded, Some(location))
            );
            let detail = row.detail.to_string();
            assert!(
                detail.contains(&format!("from {ORIGINAL}, the original of the URL")),
                "{detail}"
            );
        }
    }
}

#[test]
fn picture_whose_proxy_works_is_not_requested_from_the_original() {
    let (proxied, direct) = (gif(9, 9, 1), gif(9, 9, 2));
    for (wrapped, location) in WRAPPED {
        let world = Canned::new()
            .with(location, Some("image/gif"), proxied.clone())
            .with(ORIGINAL, Some("image/gif"), direct.clone());
        let (output, report) = run(
            policy(),
            &world,
            html(&format!("<img src=\"{wrapped}\">")).as_bytes(),
        );
        assert_eq!(
            pictures(&output).into_values().collect::<Vec<_>>(),
            std::slice::from_ref(&proxied)
        );
        assert!(
            !report.rows[0].detail.to_string().contains("original"),
            "{report:?}"
        );
    }
}

#[test]
fn original_is_judged_by_the_policy_like_any_other_url() {
    let picture = gif(9, 9, 1);
    let world = Canned::new()
        .with(ORIGINAL, Some("image/gif"), picture.clone())
        .with("http://h.example/x.gif", Some("image/gif"), picture.clone())
        .with(
            "https://127.0.0.1/x.gif",
            Some("image/gif"),
            picture.clone(),
        );
    let denied = |host: &str| policy().with_deny_hosts([host.parse().unwrap()]);
    let only_https = || Policy {
        fetch: [Scheme::Https].into(),
        ..policy()
    };
    let google = |original: &str| format!("https://google.com/url?q={original}");
    for (policy, url) in [
        (denied("h.example"), google(ORIGINAL)),
        (
            denied("h.example"),
            google(&google(ORIGINAL).replace('?', "%3F").replace('=', "%3D")),
        ),
        (only_https(), google("http://h.example/x.gif")),
        (policy(), google("https://127.0.0.1/x.gif")),
        (policy(), google("https://u:p@h.example/original.gif?w=1")),
        (policy(), google("javascript:alert(1)")),
    ] {
        let mail = html(&format!("<img src=\"{url}\">"));
        let (output, report) = run(policy, &world, mail.as_bytes());
        assert_bytes(&output, mail.as_bytes(), &url);
        assert_eq!(report.rows[0].outcome, Outcome::Left, "{url}");
    }
    let (output, report) = run(
        denied("google.com"),
        &world,
        html(&format!("<img src=\"{}\">", google(ORIGINAL))).as_bytes(),
    );
    assert_eq!(pictures(&output).len(), 1, "{report:?}");
    let mail = html(&format!(
        "<img width=1 height=1 src=\"{}\">",
        google(ORIGINAL)
    ));
    let (output, report) = run(policy(), &world, mail.as_bytes());
    assert_bytes(&output, mail.as_bytes(), "a tracker stays");
    assert_eq!(report.rows[0].reason, Some(Reason::Tracker));
}

#[test]
fn row_of_a_picture_names_the_original_that_failed_too() {
    let mail = html(&format!("<img src=\"{}\">", WRAPPED[0].0));
    let (output, report) = run(policy(), &Canned::new(), mail.as_bytes());
    assert_bytes(&output, mail.as_bytes(), "both failed");
    let detail = report.rows[0].detail.to_string();
    assert!(
        detail.contains(&format!("the original URL {ORIGINAL} failed too: ")),
        "{detail}"
    );
}

#[test]
fn attachment_behind_a_wrapped_url_is_retrieved_from_the_original() {
    let policy = Policy {
        fetch: [Scheme::Https].into(),
        ..Policy::default()
    };
    let wrapped = "https://google.com/url?q=https://h.example/note.txt";
    let world = Canned::new().with(
        "https://h.example/note.txt",
        Some("text/plain"),
        b"the note\n".to_vec(),
    );
    let mail = with_url(wrapped, "Content-Type: text/plain\n\n");
    for denied in [None, Some("google.com")] {
        let policy = policy
            .clone()
            .with_deny_hosts(denied.map(|host: &str| host.parse().unwrap()));
        let expansion = expander(policy, world.clone()).expand(&mail, "x").unwrap();
        let report = &expansion.report;
        assert!(
            String::from_utf8_lossy(&expansion.output().into_bytes()).contains("the note"),
            "{report:?}"
        );
        assert!(
            report.rows[0]
                .detail
                .to_string()
                .contains("https://h.example/note.txt, the original"),
            "{report:?}"
        );
    }
    let policy = policy.with_deny_hosts(["h.example".parse().unwrap()]);
    let expansion = expander(policy, world).expand(&mail, "x").unwrap();
    assert_eq!(expansion.report.rows[0].outcome, Outcome::Left);
}

#[test]
fn wrapped_link_to_a_cloud_file_is_recovered_from_its_original() {
    let drive = "https://drive.google.com/file/d/1AbC/view";
    let encoded = "https%3A%2F%2Fdrive.google.com%2Ffile%2Fd%2F1AbC%2Fview";
    let wrapped =
        format!("https://nam02.safelinks.protection.outlook.com/?url={encoded}&reserved=0");
    let file = b"\x89PNG\r\n\x1a\n and so on\0\xff".to_vec();
    let world = Canned::new().with(
        "https://drive.google.com/uc?export=download&id=1AbC",
        Some("image/png"),
        file.clone(),
    );
    let mut policy = Policy::default().with_follow(Followed::all());
    policy.fetch = [Scheme::Https].into();
    let mail = html(&format!(
        "<a href=\"{}\">film.png</a>",
        wrapped.replace('&', "&amp;")
    ));
    let expansion = expander(policy.clone(), world.clone())
        .expand(mail.as_bytes(), "x")
        .unwrap();
    let output = expansion.output().into_bytes().into_owned();
    let text = without_folds(&output);
    assert!(
        text.contains(&STANDARD.encode(&file)),
        "{:?}",
        expansion.report
    );
    assert!(text.contains(&wrapped), "{text}");
    let row = &expansion.report.rows[0];
    assert_eq!(
        row.hosted.as_ref().and_then(|it| it.original.as_deref()),
        Some(drive)
    );
    let again = expander(policy.clone(), world.clone())
        .expand(&output, "x")
        .unwrap();
    assert_bytes(&again.output().into_bytes(), &output, "twice is once");
    let denied = policy.with_deny_hosts(["drive.google.com".parse().unwrap()]);
    let expansion = expander(denied, world)
        .expand(mail.as_bytes(), "x")
        .unwrap();
    assert_bytes(&expansion.output().into_bytes(), mail.as_bytes(), "denied");
}

fn unwrapping() -> Policy {
    Policy::default().with_unwrap(true)
}

fn unwrapped(policy: &Policy, mail: &[u8]) -> (Vec<u8>, Report) {
    let expander = expander(policy.clone(), Canned::new());
    let expansion = expander.expand(mail, "x").unwrap();
    let output = expansion.output().into_bytes().into_owned();
    let again = expander.expand(&output, "x").unwrap();
    assert_bytes(&again.output().into_bytes(), &output, "twice is once");
    (output, expansion.report)
}

const SAFE: &str = "https://nam02.safelinks.protection.outlook.com/?url=https%3A%2F%2Fexample.org%2F%3Fa%3D1%26b%3D2&amp;data=x&amp;reserved=0";

#[test]
fn unwrap_restores_links_in_html_and_text_in_every_encoding() {
    let text = format!("See <{SAFE}>.\n");
    let expected = "See <https://example.org/?a=1&b=2>.\n";
    let page = format!(
        "<a href='{SAFE}'>x</a><img src=\"{SAFE}\"><p style=\"background: url({SAFE})\">\n"
    );
    let expected_page = "<a href='https://example.org/?a=1&amp;b=2'>x</a><img src=\"https://example.org/?a=1&amp;b=2\"><p style=\"background: url(https://example.org/?a=1&amp;b=2)\">\n";
    let decoded = |output: &[u8]| {
        let tree = embody::mime::scan(output, &embody::mime::ScanLimits::default());
        let part = tree.part(embody::mime::PartId::ROOT);
        String::from_utf8(
            part.encoding
                .decode(part.body.of(output))
                .unwrap()
                .into_owned(),
        )
        .unwrap()
    };
    for (essence, body, expected) in [
        ("text/plain", &text, expected),
        ("text/html", &page, expected_page),
    ] {
        let quoted = body
            .replace('=', "=3D")
            .replace("safelinks", "safe=\nlinks");
        let wide = STANDARD.encode(body);
        for (encoding, written) in [
            ("7bit", body),
            ("quoted-printable", &quoted),
            ("base64", &wide),
        ] {
            let mail = format!(
                "Subject: s\nContent-Type: {essence}; charset=utf-8\nContent-Transfer-Encoding: {encoding}\n\n{written}"
            );
            let (output, report) = unwrapped(&unwrapping(), mail.as_bytes());
            assert_eq!(decoded(&output), expected, "{encoding}");
            let rows: Vec<_> = report
                .rows
                .iter()
                .filter(|row| row.kind == Kind::Wrapped)
                .collect();
            assert!(
                !rows.is_empty() && rows.iter().all(|row| row.outcome == Outcome::Rewritten),
                "{report:?}"
            );
            let detail = rows[0].detail.to_string();
            assert!(
                detail.contains("safelinks") && detail.contains("https://example.org/?a=1&b=2"),
                "{detail}"
            );
            let (kept, report) = unwrapped(&Policy::default(), mail.as_bytes());
            assert_bytes(&kept, mail.as_bytes(), "off by default");
            assert!(report.rows.is_empty());
        }
    }
    let mail = format!("{text}Subject: no header at all\n");
    unwrapped(&unwrapping(), mail.as_bytes());
    let mail = format!("Subject: no type\n\n{text}");
    assert!(
        unwrapped(&unwrapping(), mail.as_bytes())
            .0
            .ends_with(expected.as_bytes())
    );
}

#[test]
fn unwrap_restores_the_text_of_links_in_html() {
    let proofpoint = "https://urldefense.com/v3/__https://example.org/a?b=1&amp;c=2__;!!o!s$";
    for (body, expected) in [
        (
            format!("<a href=\"{SAFE}\">{SAFE}</a>"),
            "<a href=\"https://example.org/?a=1&amp;b=2\">https://example.org/?a=1&amp;b=2</a>",
        ),
        (
            format!("<p title='a > b'>({SAFE}&nbsp;x)</p>"),
            "<p title='a > b'>(https://example.org/?a=1&amp;b=2&nbsp;x)</p>",
        ),
        (
            format!("&lt;{proofpoint}&gt;<br>"),
            "&lt;https://example.org/a?b=1&amp;c=2&gt;<br>",
        ),
        (
            format!("<!-- {SAFE} --><script>'{SAFE}'</script><style>/* {SAFE} */</style>"),
            "",
        ),
        (format!("{SAFE}<wbr>more"), ""),
        (format!("<p title=\"{SAFE}\">x</p>"), ""),
    ] {
        let (output, _) = unwrapped(&unwrapping(), html(&body).as_bytes());
        let expected = if expected.is_empty() {
            body.as_str()
        } else {
            expected
        };
        assert_bytes(&output, html(expected).as_bytes(), &body);
    }
}

#[test]
fn unwrap_leaves_what_is_signed_attached_or_uncertain() {
    let long =
        "https://urldefense.proofpoint.com/v2/url?u=https-3A__www.example.org_abcdefghijkl&d=";
    for (name, mail, reason) in [
        ("attached", format!("Content-Type: text/plain\nContent-Disposition: attachment\n\n{SAFE}\n"), None),
        ("pgp", format!("Subject: s\n\n-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA256\n\n{SAFE}\n-----BEGIN PGP SIGNATURE-----\n"), Some(Reason::Signed)),
        ("signed", format!("Content-Type: multipart/signed; boundary=b\n\n--b\nContent-Type: text/plain\n\n{SAFE}\n--b\nContent-Type: application/pgp-signature\n\nx\n--b--\n"), Some(Reason::Signed)),
        ("charset", format!("Content-Type: text/plain; charset=utf-7\n\n{SAFE}\n"), Some(Reason::CharsetNotSupported)),
        ("cut", format!("Subject: s\n\n{long}\nDwMFaQ&c=x&e=\n"), Some(Reason::BadUrl)),
        ("script", "Content-Type: text/html\n\n<a href=\"https://google.com/url?q=javascript:alert(1)\">x</a>\n".to_owned(), None),
        ("bounce", format!("Content-Type: multipart/report; boundary=b\n\n--b\n\n{SAFE}\n--b--\n"), Some(Reason::InsideReport)),
    ] {
        let (output, report) = unwrapped(&unwrapping(), mail.as_bytes());
        assert_bytes(&output, mail.as_bytes(), name);
        assert_eq!(report.rows.first().and_then(|row| row.reason), reason, "{name} {report:?}");
    }
    let rewriting = Policy {
        protected: Protected::Rewrite,
        ..unwrapping()
    };
    let signed = format!("Subject: s\n\n-----BEGIN PGP SIGNED MESSAGE-----\n\n{SAFE}\n");
    assert_ne!(
        unwrapped(&rewriting, signed.as_bytes()).0,
        signed.as_bytes()
    );
}

#[test]
fn unwrap_counts_a_repeated_link_in_one_row() {
    let mail = format!("Subject: s\n\n{SAFE} {SAFE} x {SAFE} x\n");
    let (_, report) = unwrapped(&unwrapping(), mail.as_bytes());
    let [row] = report.rows.as_slice() else {
        panic!("{report:?}")
    };
    assert!(
        row.detail.to_string().ends_with("the link occurs 3 times"),
        "{row:?}"
    );
}

#[test]
fn unwrap_of_many_links_is_linear_and_has_a_bounded_report() {
    let links: String = (0..5_000)
        .map(|number| format!("https://google.com/url?q=https://example.org/{number} x\n"))
        .collect();
    let mail = format!("Subject: s\n\n{links}");
    let (output, report) = unwrapped(&unwrapping(), mail.as_bytes());
    assert!(!String::from_utf8(output).unwrap().contains("google"));
    assert_eq!(report.rows.len(), 1_001);
}

fn related(image: &str) -> String {
    format!(
        "Subject: s\nContent-Type: multipart/related; boundary=b\n\n--b\nContent-Type: text/html\n\n<p>{image}</p>\n--b\nContent-Type: image/gif\nContent-ID: <im=1@x>\n\nGIF\n--b--\n"
    )
}

#[test]
fn picture_without_src_shows_the_part_that_originalsrc_names() {
    for (image, expected) in [
        (
            "<img data-imagetype=\"AttachmentByCid\" originalsrc=\"cid:im=1@x\">",
            "<img data-imagetype=\"AttachmentByCid\" src=\"cid:im=1@x\">",
        ),
        (
            "<IMG originalSrc='cid:im%3D1@x' alt=x>",
            "<IMG src='cid:im%3D1@x' alt=x>",
        ),
        (
            "<img src=\"\" alt=\"a\" originalsrc=\"cid:im=1@x\">",
            "<img alt=\"a\" src=\"cid:im=1@x\">",
        ),
        (
            "<img originalsrc=\"cid:im=1@x\" src=''>",
            "<img src=\"cid:im=1@x\" src=''>",
        ),
        ("<img originalsrc = cid:im=1@x >", "<img src = cid:im=1@x >"),
    ] {
        let mail = related(image);
        let (output, report) = unwrapped(&Policy::default(), mail.as_bytes());
        assert_bytes(&output, related(expected).as_bytes(), image);
        assert_eq!(report.rows[0].links, Some(1), "{report:?}");
        let quoted = mail
            .replace(
                "text/html\n",
                "text/html\nContent-Transfer-Encoding: quoted-printable\n",
            )
            .replace("src=\"cid:im=1", "sr=\nc=3D\"cid:im=3D1");
        if quoted.contains("sr=\nc") {
            let (output, _) = unwrapped(&Policy::default(), quoted.as_bytes());
            assert_ne!(output, quoted.as_bytes(), "{image}");
        }
        let kept = Policy::default().with_links(Links::Keep);
        assert_bytes(
            &unwrapped(&kept, mail.as_bytes()).0,
            mail.as_bytes(),
            "--links keep",
        );
    }
}

#[test]
fn picture_with_src_or_without_its_part_is_left() {
    for image in [
        "<img originalsrc=\"cid:other@x\">",
        "<img src=\"https://h.example/a.png\" originalsrc=\"cid:im=1@x\">",
        "<img srcset=\"https://h.example/a.png 2x\" originalsrc=\"cid:im=1@x\">",
        "<a originalsrc=\"cid:im=1@x\">x</a>",
        "<img originalsrc=\"https://h.example/a.png\">",
        "<!-- <img originalsrc=\"cid:im=1@x\"> -->",
    ] {
        let mail = related(image);
        assert_bytes(
            &unwrapped(&Policy::default(), mail.as_bytes()).0,
            mail.as_bytes(),
            image,
        );
    }
    let twice = related("<img originalsrc=\"cid:im=1@x\">").replace(
        "--b--",
        "--b\nContent-Type: image/gif\nContent-ID: <im=1@x>\n\nOTHER\n--b--",
    );
    assert_bytes(
        &unwrapped(&Policy::default(), twice.as_bytes()).0,
        twice.as_bytes(),
        "two parts with the id",
    );
}
