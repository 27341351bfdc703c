//! A session of IMAP: whatever a server says, it ends, without a panic and with little memory; a message is whole or gone, and is
//! told once.

use embody::internals::imap::canned::conversation;

/// The answers of a server stand one behind the other, each ended by a NUL and a line's end.
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
