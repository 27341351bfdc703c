//! Checks an IMAP session: whatever a server sends, the session ends, without a panic and with little memory. Each
//! message is complete or missing, and is reported once.

use embody::internals::imap::canned::conversation;

/// Checks the responses of a server. Each response ends with a NUL byte and a line ending.
pub fn check(data: &[u8]) {
    let mut answers = Vec::new();
    let mut rest = data;
    while let Some(at) = memchr::memmem::find(rest, b"\0\n") {
        answers.push(&rest[..at]);
        rest = &rest[at + 2..];
    }
    answers.push(rest);
    let told = conversation(&answers);
    assert!(
        told.octets <= data.len() * 2,
        "{told:?} of {} octets",
        data.len()
    );
}
