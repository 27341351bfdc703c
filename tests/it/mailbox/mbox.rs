//! The mbox format: RFC 4155, and the variants mboxo, mboxrd, mboxcl and mboxcl2 in mbox(5) of qmail.

use std::fs;
use std::path::PathBuf;

use crate::common::mailboxes::{Expand, Look, in_place, mbox, to};
use embody::Error;
use embody::mailbox::{Conversion, Format, Options, Quoting, ReadOptions, Stop, Transform};
use proptest::prelude::*;

const ONE: &str = "From a@b Thu Jan  1 00:00:00 1970\nSubject: one\n\nbody\n";
/// The same message with a correct Content-Length.
const COUNTED: &str =
    "From a@b Thu Jan  1 00:00:00 1970\nSubject: one\nContent-Length: 5\n\nbody\n";

struct Folder {
    folder: tempfile::TempDir,
}

impl Folder {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, bytes).unwrap();
        path
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(self.folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

/// Returns `text` as an mbox after the transformation `with`.
fn converted(text: &[u8], with: &dyn Transform) -> (Vec<u8>, embody::mailbox::Summary) {
    let folder = Folder::new();
    let source = folder.file("in", text);
    let summary = to(&source, &folder.path("out"), with).unwrap();
    let out = fs::read(folder.path("out")).unwrap();
    assert_eq!(folder.names(), ["in", "out"]);
    in_place(&source, with).unwrap();
    assert_eq!(
        fs::read(&source).unwrap(),
        out,
        "in place gives the same bytes"
    );
    assert_eq!(folder.names(), ["in", "out"]);
    assert_eq!(summary.bytes_in, text.len() as u64);
    assert_eq!(summary.bytes_out, out.len() as u64);
    (out, summary)
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

fn variants() -> Vec<(&'static str, String, u64)> {
    let header = "From a@b Thu Jan  1 00:00:00 1970\nSubject: x\n";
    vec![
        ("empty", String::new(), 0),
        ("one message", ONE.into(), 1),
        ("no final newline", ONE.trim_end().into(), 1),
        ("an empty line behind", format!("{ONE}\n"), 1),
        ("two", format!("{ONE}\n{ONE}\n"), 2),
        ("empty lines first", format!("\n\n{ONE}\n{ONE}"), 2),
        (
            "several empty lines between",
            format!("{ONE}\n\n\n{ONE}"),
            2,
        ),
        ("mboxrd", format!("{header}\n>From a\n>>From b\n\n{ONE}"), 2),
        ("mboxo", format!("{header}\n>From a\n\n{ONE}"), 2),
        (
            "mboxcl2",
            format!(
                "{header}Content-Length: 43\n\na\n\nFrom c@d Thu Jan  1 00:00:00 1970\nbody\n\n{COUNTED}"
            ),
            2,
        ),
        (
            "a Content-Length over a separator where the next message has none",
            format!(
                "{header}Content-Length: 43\n\na\n\nFrom c@d Thu Jan  1 00:00:00 1970\nbody\n\n{ONE}"
            ),
            3,
        ),
        (
            "a last Content-Length over a separator, with none before it",
            format!(
                "{header}Content-Length: 43\n\na\n\nFrom c@d Thu Jan  1 00:00:00 1970\nbody\n\n"
            ),
            2,
        ),
        (
            "a last Content-Length over a separator, with right ones before it",
            format!(
                "{COUNTED}\n{header}Content-Length: 43\n\na\n\nFrom c@d Thu Jan  1 00:00:00 1970\nbody\n\n"
            ),
            2,
        ),
        (
            "no empty line before a separator",
            format!("{header}\nbody\n{ONE}{header}{ONE}"),
            4,
        ),
        (
            "a wrong Content-Length",
            format!("{header}Content-Length: 30\n\nbody\n\n{ONE}\n{ONE}"),
            3,
        ),
        (
            "a huge Content-Length",
            format!(
                "{header}Content-Length: 99999999999999999999\n\nx\n\n{header}Content-Length: 9999999999\n\n{ONE}"
            ),
            3,
        ),
        (
            "From in a body without an empty line before it",
            format!("{header}\nbody\nFrom a@b Thu Jan  1 00:00:00 1970\n\n{ONE}"),
            2,
        ),
        (
            "From in a body that is no separator",
            format!("{header}\nbody\n\nFrom here on,\nwe walk\n\n{ONE}"),
            2,
        ),
        ("empty bodies", format!("{header}\n{header}\n{header}\n"), 3),
        (
            "a separator without a date",
            "From x\nSubject: a\n\nb\n\nFrom y\nSubject: c\n\n".into(),
            2,
        ),
        ("a separator that is all", "From ".into(), 1),
    ]
}

#[test]
fn a_mailbox_with_nothing_to_do_comes_out_identical() {
    let mut tested = 0;
    for (name, lf, messages) in variants() {
        // In mboxcl2 the length must include the line endings with CRLF.
        let crlf = lf
            .replace('\n', "\r\n")
            .replace("Content-Length: 43\r", "Content-Length: 47\r")
            .replace("Content-Length: 5\r", "Content-Length: 6\r");
        for bytes in [lf, crlf] {
            let (out, summary) = converted(bytes.as_bytes(), &Look);
            assert_eq!(text(&out), bytes, "{name}");
            assert_eq!(summary.messages, messages, "{name}: {bytes:?}");
            assert_eq!(summary.changed, 0);
            let (out, _) = converted(bytes.as_bytes(), &Expand(""));
            assert_eq!(text(&out), bytes, "{name}");
            tested += 1;
        }
    }
    assert!(tested > 30);
}

#[test]
fn what_is_not_a_mailbox_is_said_and_left() {
    let folder = Folder::new();
    for (bytes, why) in [
        (b"Dear all,\n".as_slice(), "neither"),
        (b"!BDN", "the file ends within its header"),
        (b"\0\0\0", "binary"),
    ] {
        let source = folder.file("in", bytes);
        for outcome in [
            to(&source, &folder.path("out"), &Look),
            in_place(&source, &Look),
        ] {
            match outcome {
                Err(error @ Error::NotAMailbox { .. }) => {
                    assert!(error.to_string().contains(why), "{error}");
                }
                // An Outlook file that cannot be read is a mailbox.
                Err(Error::Unreadable { source, .. }) => {
                    assert!(source.to_string().contains(why), "{source}");
                }
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(fs::read(&source).unwrap(), bytes);
        assert_eq!(folder.names(), ["in"]);
    }
    let options = Options {
        read: ReadOptions {
            format: Format::Mbox,
            ..ReadOptions::default()
        },
        ..Options::default()
    };
    let source = folder.file("in", b"From: a@b\n\n");
    let outcome = Conversion::of(&source)
        .to(&folder.path("out"))
        .options(&options)
        .run(&Look, &());
    assert!(matches!(outcome, Err(Error::NotAMailbox { .. })));
}

#[test]
fn new_text_is_quoted_the_way_the_mailbox_quotes() {
    const NEW: &str = "a\n\nFrom b@c Thu Jan  1 00:00:00 1970\n>From d\nFrom";
    let with = &Expand(NEW);
    let old = "From x 10:00\nSubject: a\n\n>>From e\n>From f\nFrom g\nEXPAND-ME\nFrom h\n\n";
    let rd = "From x 10:00\nSubject: a\n\n>>From e\n>From f\nFrom g\na\n\n\
              >From b@c Thu Jan  1 00:00:00 1970\n>>From d\nFrom\nFrom h\n\n";
    assert_eq!(text(&converted(old.as_bytes(), with).0), rd);
    let old = old.replace(">>From e", "");
    let o = rd.replace(">>From e", "").replace(">>From d", ">From d");
    assert_eq!(text(&converted(old.as_bytes(), with).0), o);
}

#[test]
fn nothing_is_quoted_where_lengths_are_counted_and_the_count_is_corrected() {
    let first = "From a@b Thu Jan  1 00:00:00 1970\nContent-Length: 44\nLines: 4\nSubject: x\n\n\
               EXPAND-ME\n\nFrom c@d Thu Jan  1 00:00:00 1970\n\n";
    let old = format!("{}{COUNTED}", first.replace("44", "45"));
    let (new, summary) = converted(old.as_bytes(), &Expand("one\n\nFrom me at 10:00\nthree"));
    assert_eq!(summary.messages, 2);
    let expected = "From a@b Thu Jan  1 00:00:00 1970\nContent-Length: 63\nLines: 7\nSubject: x\n\n\
               one\n\nFrom me at 10:00\nthree\n\nFrom c@d Thu Jan  1 00:00:00 1970\n\n";
    let body = expected.split_once("\n\n").unwrap().1;
    let length = body.len() - 1;
    let lines = body.matches('\n').count();
    let expected = expected
        .replace("63", &length.to_string())
        .replace("Lines: 7", &format!("Lines: {lines}"));
    assert_eq!(text(&new), format!("{expected}{COUNTED}"));
    let (again, summary) = converted(&new, &Look);
    assert_eq!((again, summary.messages), (new, 2));
}

#[test]
fn a_wrong_length_becomes_right_when_the_body_changes() {
    let old = format!(
        "From a@b Thu Jan  1 00:00:00 1970\ncontent-length :  7 \nX-Lines: 9\n\nEXPAND-ME\n\n{ONE}"
    );
    let (new, _) = converted(old.as_bytes(), &Expand("1234567890"));
    let expected = old
        .replace("EXPAND-ME", "1234567890")
        .replace(":  7 ", ":  11 ");
    assert_eq!(text(&new), expected);
}

#[test]
fn a_message_that_lost_its_last_line_end_gets_it_back() {
    for newline in ["\n", "\r\n"] {
        let old =
            format!("From x 10:00\nSubject: a\n\nb\nEXPAND-ME\n\n{ONE}").replace('\n', newline);
        struct Cut;
        impl Transform for Cut {
            fn next_touch(&self, bytes: &[u8]) -> Option<usize> {
                Expand("").next_touch(bytes)
            }
            fn transform(
                &self,
                message: &embody::mailbox::Message<'_>,
            ) -> Result<(embody::Edits, ()), Error> {
                let end = self.next_touch(message.content).unwrap_or(0);
                let rest = embody::Span::new(end, message.content.len());
                Ok((
                    embody::Edits::of([embody::Edit::replace(rest, b"c")]).unwrap(),
                    (),
                ))
            }
        }
        let (new, summary) = converted(old.as_bytes(), &Cut);
        assert_eq!(text(&new), old.replace("EXPAND-ME", "c"));
        assert_eq!(summary.messages, 2);
    }
}

#[test]
fn an_edit_that_would_make_a_separator_of_an_old_line_is_not_made() {
    let old = "From x 10:00\nSubject: a\n\nb\nEXPAND-ME\nFrom c Mon Jan  1 10:00:00 2024\n\n";
    let (new, summary) = converted(old.as_bytes(), &Expand(""));
    assert_eq!((text(&new), summary.changed), (old, 0));
}

#[test]
fn an_edit_outside_the_message_ends_the_run_with_the_source_intact() {
    struct Wrong;
    impl Transform for Wrong {
        fn next_touch(&self, _: &[u8]) -> Option<usize> {
            Some(usize::MAX)
        }
        fn transform(
            &self,
            message: &embody::mailbox::Message<'_>,
        ) -> Result<(embody::Edits, ()), Error> {
            let span = embody::Span::new(0, message.content.len() + 1);
            Ok((embody::Edits::of([embody::Edit::remove(span)]).unwrap(), ()))
        }
    }
    let folder = Folder::new();
    let source = folder.file("in", ONE.as_bytes());
    assert!(in_place(&source, &Wrong).is_err());
    assert!(to(&source, &folder.path("out"), &Wrong).is_err());
    assert_eq!(fs::read(&source).unwrap(), ONE.as_bytes());
    assert_eq!(folder.names(), ["in"]);
}

#[test]
fn quoting_and_unquoting_are_inverse_for_mboxrd() {
    let body = b"From a\n>From b\n>>From c\n> From d\nx From e\n>";
    let quoted = Quoting::Rd.quote(body);
    assert_eq!(
        quoted.as_ref(),
        b">From a\n>>From b\n>>>From c\n> From d\nx From e\n>"
    );
    assert_eq!(Quoting::Rd.unquote(&quoted).as_ref(), body);
    assert_eq!(
        Quoting::O.quote(body).as_ref(),
        b">From a\n>From b\n>>From c\n> From d\nx From e\n>"
    );
    assert_eq!(Quoting::None.quote(body).as_ref(), body);
}

#[test]
fn a_dry_run_counts_and_writes_nothing() {
    let folder = Folder::new();
    let source = folder.file("in", &mbox(30));
    let options = Options {
        writes: false,
        ..Options::default()
    };
    let stop = Stop::default();
    let with = Expand("longer than it was before");
    let one = Conversion::of(&source)
        .to(&folder.path("out"))
        .options(&options)
        .stop(&stop)
        .run(&with, &())
        .unwrap();
    let two = Conversion::of(&source)
        .in_place()
        .options(&options)
        .stop(&stop)
        .run(&with, &())
        .unwrap();
    assert_eq!(one, two);
    assert_eq!((one.messages, one.changed), (30, 10));
    assert_eq!(folder.names(), ["in"]);
    assert_eq!(fs::read(&source).unwrap(), mbox(30));
    let summary = in_place(&source, &with).unwrap();
    assert_eq!(summary, one);
    assert_eq!(fs::metadata(&source).unwrap().len(), one.bytes_out);
}

#[test]
fn numbers_and_order_do_not_depend_on_windows_or_workers() {
    struct Number;
    impl Transform for Number {
        fn next_touch(&self, bytes: &[u8]) -> Option<usize> {
            Expand("").next_touch(bytes)
        }
        fn transform(
            &self,
            message: &embody::mailbox::Message<'_>,
        ) -> Result<(embody::Edits, ()), Error> {
            std::thread::sleep(std::time::Duration::from_micros(message.number % 7 * 100));
            let at = self.next_touch(message.content).unwrap();
            let span = embody::Span::new(at, at + 9);
            let number = message.number.to_string();
            Ok((
                embody::Edits::of([embody::Edit::replace(span, number)]).unwrap(),
                (),
            ))
        }
    }
    let mut expected = mbox(300);
    for number in (3..=300).step_by(3) {
        let at = memchr::memmem::find(&expected, b"EXPAND-ME").unwrap();
        expected.splice(at..at + 9, i32::to_string(&number).into_bytes());
    }
    let folder = Folder::new();
    let source = folder.file("in", &mbox(300));
    for (window, jobs) in [(1, 1), (1500, 3), (20_000, 2), (1 << 20, 4)] {
        let options = Options {
            read: ReadOptions {
                window,
                jobs,
                ..ReadOptions::default()
            },
            ..Options::default()
        };
        let out = folder.path(&format!("out{window}"));
        Conversion::of(&source)
            .to(&out)
            .options(&options)
            .run(&Number, &())
            .unwrap();
        assert!(fs::read(out).unwrap() == expected, "window {window}");
    }
}

#[test]
fn a_message_beyond_the_bound_is_passed_on() {
    let large = format!("{ONE}{}EXPAND-ME\n\n", "x".repeat(70_000));
    let bytes = format!("{ONE}EXPAND-ME\n\n{large}{ONE}EXPAND-ME\n");
    let folder = Folder::new();
    let source = folder.file("in", bytes.as_bytes());
    let options = Options {
        read: ReadOptions {
            window: 4096,
            max_message: 50_000,
            ..ReadOptions::default()
        },
        ..Options::default()
    };
    let out = folder.path("out");
    let summary = Conversion::of(&source)
        .to(&out)
        .options(&options)
        .run(&Expand("!"), &())
        .unwrap();
    assert_eq!(
        (summary.messages, summary.changed, summary.oversized),
        (3, 2, 1)
    );
    let small = |text: &str| text.replace("EXPAND-ME", "!");
    let expected = [
        small(&format!("{ONE}EXPAND-ME\n\n")),
        large,
        small(&format!("{ONE}EXPAND-ME\n")),
    ]
    .concat();
    assert!(fs::read_to_string(out).unwrap() == expected);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn any_bytes_come_out_as_they_are(
        bytes in proptest::collection::vec(prop_oneof![
            Just(b"\nFrom a 10:00\n".to_vec()), Just(b"\n\n".to_vec()), Just(b"\r\n".to_vec()),
            Just(b"Content-Length: 20\n".to_vec()), any::<[u8; 5]>().prop_map(|b| b.to_vec()),
        ], 0..80)
    ) {
        let bytes = [b"From ".to_vec(), bytes.concat()].concat();
        let (out, _) = converted(&bytes, &Look);
        prop_assert_eq!(out, bytes);
    }

    #[test]
    fn a_change_in_one_message_leaves_the_number_of_messages(
        new in "(a|>|From |\n|\r|10:00|Subject: x){0,30}", at in 0_usize..3
    ) {
        struct Into(String);
        impl Transform for Into {
            fn next_touch(&self, bytes: &[u8]) -> Option<usize> {
                Expand("").next_touch(bytes)
            }
            fn transform(
                &self, message: &embody::mailbox::Message<'_>,
            ) -> Result<(embody::Edits, ()), Error> {
                let at = self.next_touch(message.content).unwrap();
                let span = embody::Span::new(at, at + 9);
                let bytes = self.0.clone().into_bytes();
                Ok((embody::Edits::of([embody::Edit::replace(span, bytes)]).unwrap(), ()))
            }
        }
        let mut bytes = String::new();
        for number in 0..3 {
            bytes += "From a@b Thu Jan  1 00:00:00 1970\nSubject: x\n";
            bytes += if number == 1 { "Content-Length: 777\n\nx\n" } else { "\nx\n" };
            bytes += if number == at { "EXPAND-ME\nFrom b 10:00\n\n" } else { "y\n\n" };
        }
        let (out, summary) = converted(bytes.as_bytes(), &Into(new));
        prop_assert_eq!(summary.messages, 3);
        let (_, again) = converted(&out, &Look);
        prop_assert_eq!(again.messages, 3, "{:?}", text(&out));
    }
}
