//! Mails with more parts than are compared one by one, and keys of mails.

use super::super::{copy_key, plain};
use super::{assert_others, mixed, relation, whole};

#[test]
fn parts_behind_the_limit_are_compared() {
    let many = |end: &str| {
        mixed(
            "mixed",
            &format!("{}{end}--b--\n", "--b\n\nx\n".repeat(10_001)),
        )
    };
    assert_others(&[
        (
            "another part",
            many("--b\n\nORIGINAL\n"),
            many("--b\n\nFORGED\n"),
        ),
        ("a missing part", many("--b\n\nORIGINAL\n"), many("")),
    ]);
}

#[test]
fn mail_of_many_parts_is_compared_as_a_whole() {
    let many =
        |count: usize, end: &str| mixed("mixed", &format!("{}{end}", "--b\n\nx\n".repeat(count)));
    let received = |mail: &str| format!("Received: x\n{mail}");
    let mail = many(2000, "--b--\n");
    assert_eq!(relation(&mail, &received(&mail)), [Ok(()), Ok(())]);
    assert_others(&[
        ("another part", mail.clone(), many(2001, "--b--\n")),
        ("a cut", mail, many(1500, "")),
    ]);
}

#[test]
fn mail_without_message_id_is_known_by_its_header_and_text() {
    let bare = |mail: String| mail.replace("Message-ID: <1@example.org>\n", "");
    let key = |mail: &str| copy_key(&plain(mail.as_bytes()));
    let mail = bare(whole());
    assert_eq!(key(&mail), key(&format!("Received: x\n{mail}")));
    for other in [
        whole(),
        mail.replace("hello", "bye"),
        mail.replace("a test", "b"),
    ] {
        assert_ne!(key(&mail), key(&other), "{other}");
    }
    let hidden = whole().replace("<1@example.org>", "<1 at example.org>");
    assert_eq!(key(&whole()), key(&hidden));
}
