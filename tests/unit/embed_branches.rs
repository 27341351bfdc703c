//! A document finds its pictures in a multipart/related around it, in its own branch of a multipart/alternative. Mail
//! programs look only there, so each multipart/related needs its own part with its own Content-ID.

use std::collections::BTreeSet;

use embody::fetch::Canned;
use embody::mime::entity::sha256;
use embody::mime::{self, MessageTree, PartId, ScanLimits};
use embody::report::Outcome;
use embody::{Policy, Report};

use super::common::mail::crlf;
use super::embed::{cids, data, gif, policy, run};

fn world() -> Canned {
    let css = "b { background: url(https://h.example/1) }";
    let world = Canned::new().with("https://h.example/s.css", Some("text/css"), css);
    (0..4_u8).fold(world, |world, number| {
        let url = format!("https://h.example/{number}");
        world.with(&url, Some("image/gif"), gif(9, 9, number))
    })
}

fn styles() -> Policy {
    let mut policy = policy();
    policy.embed.styles = true;
    policy
}

fn html(body: &str) -> String {
    format!("Content-Type: text/html\n\n<p>{body}")
}

fn multi(kind: &str, boundary: &str, parts: &[String]) -> String {
    let parts: String = parts
        .iter()
        .map(|part| format!("--{boundary}\n{part}\n"))
        .collect();
    format!("Content-Type: multipart/{kind}; boundary={boundary}\n\n{parts}--{boundary}--\n")
}

fn mail(part: &str) -> String {
    format!("From: a@b\nMIME-Version: 1.0\n{part}")
}

fn decoded(tree: &MessageTree<'_>, part: PartId) -> Vec<u8> {
    let entity = tree.part(part);
    let octets = entity.encoding.decode(entity.body.of(tree.original));
    octets.unwrap().into_owned()
}

fn id_of<'o>(tree: &MessageTree<'o>, part: PartId) -> Option<&'o str> {
    let value = tree.value(part, "Content-ID")?;
    Some(
        std::str::from_utf8(value)
            .unwrap()
            .trim()
            .trim_matches(['<', '>']),
    )
}

/// Returns the parts that a document displays, as mail programs find them: parts with a Content-ID whose
/// multipart/related contains the document, inside its branch of an alternative.
#[track_caller]
fn shown(tree: &MessageTree<'_>, document: PartId) -> Vec<PartId> {
    let related_of = |part: PartId| {
        let mut around = tree.ancestors(part);
        around.find(|above| tree.part(*above).essence == "multipart/related")
    };
    let text = String::from_utf8(decoded(tree, document)).unwrap();
    let named = |id: &str| {
        let bears = |part: &PartId| id_of(tree, *part) == Some(id);
        let of_message = |part: &PartId| tree.message_of(*part) == tree.message_of(document);
        let bearers: Vec<PartId> = tree.ids().filter(bears).filter(of_message).collect();
        let whole = tree.original.escape_ascii();
        assert_eq!(
            bearers.len(),
            1,
            "{id} in {}: {whole}",
            tree.number(document)
        );
        let related = related_of(bearers[0]).unwrap();
        let place = tree
            .ancestors(document)
            .position(|above| above == related)
            .unwrap_or_else(|| panic!("{id} of {}: {whole}", tree.number(document)));
        let branch = |part: PartId, above: PartId| {
            let mut at = std::iter::once(part).chain(tree.ancestors(part));
            at.find(|at| tree.part(*at).parent == Some(above))
        };
        let mut inside = tree.ancestors(document).take(place);
        let crossed = inside.any(|above| {
            let other = branch(bearers[0], above);
            let is_alternative = tree.part(above).essence == "multipart/alternative";
            is_alternative && other.is_some() && other != branch(document, above)
        });
        assert!(!crossed, "{id} is in another branch: {whole}");
        bearers[0]
    };
    cids(&text).iter().map(|id| named(id)).collect()
}

/// Returns what each document displays after embedding, for the mail and for its variant with CRLF.
#[track_caller]
fn embedded(policy: &Policy, mail: &str) -> (Vec<Vec<Vec<u8>>>, String, Report) {
    let (output, report) = run(policy.clone(), &world(), mail.as_bytes());
    let (twin, _) = run(policy.clone(), &world(), &crlf(mail.as_bytes()));
    let [of_mail, of_twin] = [&output, &twin].map(|output| {
        let tree = mime::scan(output, &ScanLimits::default());
        let is_html = |part: &PartId| tree.part(*part).essence == "text/html";
        let of_document = |document: PartId| -> Vec<Vec<u8>> {
            let parts = shown(&tree, document);
            let sheets = parts
                .iter()
                .filter(|part| tree.part(**part).essence == "text/css")
                .flat_map(|sheet| shown(&tree, *sheet));
            let parts = parts.clone().into_iter().chain(sheets);
            parts.map(|part| decoded(&tree, part)).collect()
        };
        tree.ids()
            .filter(is_html)
            .map(of_document)
            .collect::<Vec<_>>()
    });
    assert_eq!(of_mail.len(), of_twin.len());
    (of_mail, String::from_utf8(output).unwrap(), report)
}

fn image(url: &str) -> String {
    format!("<img src=\"{url}\">")
}

/// Returns the Content-IDs of a mail, in order.
fn ids(output: &str) -> Vec<&str> {
    let fields = output
        .lines()
        .filter_map(|line| line.strip_prefix("Content-ID: <"));
    fields.filter_map(|id| id.strip_suffix('>')).collect()
}

#[test]
fn each_branch_has_its_own_part_and_the_first_has_the_hash_for_its_name() {
    let one = gif(9, 9, 1);
    let name = sha256(&one)[..32].to_owned();
    for url in [data(&one), "https://h.example/1".to_owned()] {
        let documents = [html(&image(&url)), html(&format!("v2{}", image(&url)))];
        let plain = "Content-Type: text/plain\n\nx".to_owned();
        let three = [plain, documents[0].clone(), documents[1].clone()];
        let inside = multi("mixed", "m", &[documents[1].clone()]);
        for shape in [
            multi("alternative", "a", &three),
            multi("mixed", "m", &documents),
            multi("related", "r", &[multi("alternative", "a", &three)]),
            multi(
                "alternative",
                "a",
                &[documents[0].clone(), multi("related", "r", &documents[1..])],
            ),
            multi(
                "alternative",
                "a",
                &[multi("related", "r", &documents[..1]), inside.clone()],
            ),
            multi(
                "alternative",
                "a",
                &[
                    multi("related", "r", &documents[..1]),
                    multi("related", "s", &documents[1..]),
                ],
            ),
            multi(
                "mixed",
                "x",
                &[
                    multi("alternative", "a", &documents[..1]),
                    multi("alternative", "b", &documents[1..]),
                ],
            ),
        ] {
            let (shown, output, report) = embedded(&policy(), &mail(&shape));
            assert_eq!(shown, [vec![one.clone()], vec![one.clone()]], "{output}");
            assert!(
                report
                    .rows
                    .iter()
                    .all(|row| row.outcome == Outcome::Expanded)
            );
            assert_eq!(
                ids(&output),
                [format!("{name}@embody"), format!("{name}.1@embody")]
            );
        }
        // Inside one multipart/related, both documents share one part.
        for shape in [
            multi("related", "r", &documents),
            multi("related", "r", &[documents[0].clone(), inside]),
        ] {
            let (shown, output, _) = embedded(&policy(), &mail(&shape));
            assert_eq!(shown, [vec![one.clone()], vec![one.clone()]], "{output}");
            assert_eq!(ids(&output), [format!("{name}@embody")]);
        }
    }
}

#[test]
fn message_in_an_alternative_gets_its_own_pictures() {
    let one = gif(9, 9, 1);
    let document = html(&image(&data(&one)));
    let forwarded = format!("Content-Type: message/rfc822\n\nMIME-Version: 1.0\n{document}");
    let shape = multi("alternative", "a", &[document.clone(), forwarded, document]);
    let (shown, output, _) = embedded(&policy(), &mail(&shape));
    assert_eq!(shown, vec![vec![one]; 3], "{output}");
    let all: BTreeSet<&str> = ids(&output).into_iter().collect();
    // A Content-ID is valid only inside its own message.
    assert_eq!(all.len(), 2, "{output}");
}

#[test]
fn a_style_sheet_and_what_it_shows_stand_in_each_branch() {
    let link = "<link rel=stylesheet href='https://h.example/s.css'>";
    let both = format!("{link}{}", image("https://h.example/1"));
    for documents in [
        [html(link), html(link)],
        [html(&both), html(link)],
        [html(link), html(&both)],
    ] {
        for kind in ["alternative", "mixed"] {
            let (shown, output, report) = embedded(&styles(), &mail(&multi(kind, "a", &documents)));
            for shown in &shown {
                assert!(shown.contains(&gif(9, 9, 1)), "{output}");
                assert!(
                    shown
                        .iter()
                        .any(|octets| octets.starts_with(b"b { background: url(cid:"))
                );
            }
            assert!(
                report
                    .rows
                    .iter()
                    .all(|row| row.outcome == Outcome::Expanded),
                "{report:?}"
            );
            let all: BTreeSet<&str> = ids(&output).into_iter().collect();
            assert_eq!((all.len(), ids(&output).len()), (4, 4), "{output}");
        }
    }
    // A style sheet that displays a part of the mail must display the one in its own branch.
    let sibling = |number: u8| {
        format!(
            "Content-Type: image/gif\nContent-Location: https://h.example/1\nContent-ID: <own{number}@x>\n\nGIF89a{number}"
        )
    };
    let branch =
        |boundary: &str, number| multi("related", boundary, &[html(link), sibling(number)]);
    let shape = multi("alternative", "a", &[branch("r", 1), branch("s", 2)]);
    let (shown, output, _) = embedded(&styles(), &mail(&shape));
    for (shown, number) in shown.iter().zip(1..) {
        let own = format!("GIF89a{number}").into_bytes();
        assert!(shown.contains(&own), "{output}");
    }
}

/// A part with the Content-Location of a link, next to a document of another branch.
#[test]
fn part_of_another_alternative_is_not_reused() {
    let located =
        "Content-Type: image/gif\nContent-Location: https://h.example/2\n\nGIF89a".to_owned();
    let first = [html("not a picture"), located.clone()];
    for link in [
        html(&image("https://h.example/2")),
        format!("Content-Base: https://h.example/\n{}", html(&image("2"))),
    ] {
        // The multipart/related contains both branches.
        let branches = [
            multi("mixed", "m", &first),
            multi("mixed", "n", std::slice::from_ref(&link)),
        ];
        let shape = multi("related", "r", &[multi("alternative", "a", &branches)]);
        let (shown, output, _) = embedded(&policy(), &mail(&shape));
        assert_eq!(shown, [vec![], vec![gif(9, 9, 2)]], "{output}");
        // Without `--embed`, the link is not changed to a `cid:` URL of the part either.
        let (output, _) = run(Policy::default(), &world(), mail(&shape).as_bytes());
        let output = String::from_utf8(output).unwrap();
        assert!(
            output.contains("<p><img src=\"https://h.example/2\">"),
            "{output}"
        );
        // In the branch of the document, it is.
        let own = [link, located.clone()];
        let branches = [multi("mixed", "m", &[html("x")]), multi("mixed", "n", &own)];
        let shape = multi("related", "r", &[multi("alternative", "a", &branches)]);
        let (shown, output, _) = embedded(&policy(), &mail(&shape));
        assert_eq!(shown, [vec![], vec![b"GIF89a".to_vec()]], "{output}");
        // The same is true for a part next to the alternative.
        let alternative = multi("alternative", "a", &branches[..1]);
        let parts = [
            alternative.replace("<p>x", "<p><img src=\"https://h.example/2\">"),
            located.clone(),
        ];
        let (shown, output, _) = embedded(&policy(), &mail(&multi("related", "r", &parts)));
        assert_eq!(shown, [vec![b"GIF89a".to_vec()]], "{output}");
    }
}

#[test]
fn embedded_part_is_reused_only_inside_its_multipart_related() {
    let one = gif(9, 9, 1);
    let document = html(&image(&data(&one)));
    let (_, before, _) = embedded(
        &policy(),
        &mail(&multi("related", "r", std::slice::from_ref(&document))),
    );
    let ours = before
        .split("--r\n")
        .nth(2)
        .unwrap()
        .split("\n--r--")
        .next()
        .unwrap();
    let again = [document.clone(), ours.to_owned()];
    let (shown, output, _) = embedded(&policy(), &mail(&multi("related", "r", &again)));
    assert_eq!(
        (shown, ids(&output).len()),
        (vec![vec![one.clone()]], 1),
        "{output}"
    );
    let branches = [
        document,
        multi("related", "r", &[html("x"), ours.to_owned()]),
    ];
    for branches in [branches.clone(), [branches[1].clone(), branches[0].clone()]] {
        let (shown, output, _) = embedded(&policy(), &mail(&multi("alternative", "a", &branches)));
        assert_eq!(shown.concat(), std::slice::from_ref(&one), "{output}");
        let all: BTreeSet<&str> = ids(&output).into_iter().collect();
        assert_eq!(all.len(), 2, "{output}");
    }
}
