//! What a mail refers to, and the files that a person puts in the place of a reference.

use std::fs;
use std::path::Path;

use embody::Expander;
use embody::policy::{Followed, Policy};
use embody::report::Kind;
use embody::view::{PartRole, ReferenceState};

use super::{REFERENCE, TEXT, mixed, view};

#[test]
fn references_are_sorted_into_what_a_person_can_do() {
    let html = "Content-Type: text/html\n\n<img src=\"https://www.example.org/a.png\">\
        <img width=1 height=1 src=\"https://www.example.org/t.gif?id=1\"><a href=\"https://www.example.org/\">x</a>";
    let detached = "Content-Type: application/pdf; name=\"a.pdf\"\nContent-Disposition: attachment; filename=a.pdf\n\
        X-Mozilla-External-Attachment-URL: file:///C:/Users/ada/a.pdf\n\
        X-Mozilla-Altered: AttachmentDetached; date=\"Tue May 14 09:12:03 2024\"\n\nYou deleted an attachment from this message. The original MIME headers for the attachment were:\nContent-Type: application/pdf; name=\"a.pdf\"\n";
    let no_type = "Content-Type: message/external-body; access-type=x-nothing\n\nContent-Type: text/plain\n\n";
    let view = view(mixed(&[html, REFERENCE, detached, no_type]));
    let found: Vec<_> = view
        .references()
        .iter()
        .map(|it| (it.kind, it.state, it.can_fill))
        .collect();
    for expected in [
        (Kind::Embed, ReferenceState::Remote, true),
        (Kind::Embed, ReferenceState::Tracker, false),
        (Kind::ExternalBody, ReferenceState::Missing, true),
        (Kind::Detached, ReferenceState::Missing, true),
        (Kind::ExternalBody, ReferenceState::Kept, false),
    ] {
        assert!(
            found.contains(&expected),
            "{expected:?} is not in {found:?}"
        );
    }
    // The words are for a person: no options, and no marks of the code.
    for reference in view.references() {
        assert!(
            !reference.explanation.contains("--"),
            "{}",
            reference.explanation
        );
        assert!(
            !reference.explanation.contains('\u{1}'),
            "{}",
            reference.explanation
        );
        assert!(
            reference.explanation.ends_with('.'),
            "{}",
            reference.explanation
        );
    }
    let named = |name: &str| {
        view.references()
            .iter()
            .any(|it| it.name.as_deref() == Some(name))
    };
    assert!(named("minutes.txt") && named("a.pdf") && named("a.png"));
}

#[test]
fn chosen_file_fills_its_reference_and_no_other() {
    let other = REFERENCE.replace("minutes", "other");
    let mail = mixed(&[TEXT, REFERENCE, &other]);
    let mut view = view(&mail);
    assert_eq!(view.references().len(), 2);
    view.fill(0, "Milk, bread.\n", Some("text/plain")).unwrap();
    let states: Vec<_> = view.references().iter().map(|it| it.state).collect();
    assert_eq!(states, [ReferenceState::Filled, ReferenceState::Missing]);
    let roles: Vec<_> = view.parts().iter().map(|it| it.role).collect();
    assert_eq!(roles[..1], [PartRole::Body]);
    assert_eq!(roles[roles.len() - 1], PartRole::Note);
    let repaired = String::from_utf8(view.repaired()).unwrap();
    assert!(repaired.contains("Milk, bread."), "{repaired}");
    assert_eq!(repaired.matches("message/external-body").count(), 1);
    assert!(repaired.contains("/a/other.txt"));
    assert_eq!(&view.original()[..], mail.as_bytes());
    view.fill(1, "Wine.", None).unwrap();
    let repaired = String::from_utf8(view.repaired()).unwrap();
    assert!(repaired.contains("Milk, bread.") && repaired.contains("Wine."));
    assert!(view.fill(0, "x", None).is_err() && view.fill(9, "x", None).is_err());
}

#[test]
fn chosen_file_that_contradicts_the_mail_is_refused_and_nothing_changes() {
    let digest = "Content-Type: text/plain\nContent-MD5: 1B2M2Y8AsgTpgAmY7PhCfg==\n\n";
    let part = REFERENCE.replace("Content-Type: text/plain\n\n", digest);
    let mut view = view(mixed(&[&part]));
    let before = (view.references().to_vec(), view.repaired());
    let why = view.fill(0, "not empty", None).unwrap_err().to_string();
    assert!(why.contains("Content-MD5") || why.contains("MD5"), "{why}");
    assert_eq!((view.references().to_vec(), view.repaired()), before);
    view.fill(0, "", None).unwrap();
}

#[test]
fn chosen_picture_replaces_the_picture_on_the_web() {
    let html = "Content-Type: text/html\n\n<p><img src=\"https://www.example.org/a.gif\"><img src=\"https://www.example.org/b.gif\">";
    let gif = b"GIF89a\x08\0\x08\0\x80\0\0\xff\0\0\0\0\0!\xf9\x04\0\0\0\0\0,\0\0\0\0\x08\0\x08\0\0\x02\x07\x84\x8f\xa9\xcb\xed\x5d\0;";
    let mut view = view(mixed(&[html]));
    view.fill(0, &gif[..], Some("image/gif")).unwrap();
    let repaired = String::from_utf8(view.repaired()).unwrap();
    assert!(
        repaired.contains("cid:") && repaired.contains("https://www.example.org/b.gif"),
        "{repaired}"
    );
    assert!(
        view.parts()
            .iter()
            .any(|part| part.role == PartRole::Picture)
    );
    assert!(view.fill(1, "no picture", Some("image/gif")).is_err());
}

/// Returns the result of `embody filter --follow all`, without its program.
fn filtered(mail: &[u8]) -> Vec<u8> {
    let policy = Policy::default().with_follow(Followed::all());
    let expander = Expander::new(policy).unwrap();
    let expansion = expander.expand(mail, "1").unwrap();
    expansion.output().into_bytes().into_owned()
}

#[test]
fn repaired_mail_without_chosen_files_is_that_of_the_program() {
    let mut changed = 0;
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("samples")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|suffix| suffix == "eml") {
                let mail = fs::read(&path).unwrap();
                let view = view(&mail);
                let words = format!("{:?}", view.references());
                assert!(!words.contains("\\u{1}"), "{}: {words}", path.display());
                let repaired = view.repaired();
                assert!(repaired == filtered(&mail), "{}", path.display());
                changed += usize::from(repaired != mail);
            }
        }
    }
    assert!(changed > 20, "{changed}");
}
