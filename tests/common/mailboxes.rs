//! Transforms and mailboxes for the tests of mailboxes.

use std::path::Path;

use embody::mailbox::{Conversion, Message, Options, Summary, Transform};
use embody::{Edit, Edits, Error, Span};
use memchr::memmem;

/// The text that [`Expand`] replaces.
pub const MARK: &[u8] = b"EXPAND-ME";

/// Replaces each [`MARK`] by a text, instead of filtering the message.
pub struct Expand(pub &'static str);

impl Transform for Expand {
    fn next_touch(&self, bytes: &[u8]) -> Option<usize> {
        memmem::find(bytes, MARK)
    }

    fn transform(&self, message: &Message<'_>) -> Result<(Edits, ()), Error> {
        let new = memmem::find_iter(message.content, MARK)
            .map(|at| Edit::replace(Span::new(at, at + MARK.len()), self.0));
        let edits = Edits::of(new).expect("marks do not overlap");
        Ok((edits, ()))
    }
}

/// Reads every message and changes none. Unchanged messages are reported in both possible ways.
pub struct Look;

impl Transform for Look {
    fn next_touch(&self, bytes: &[u8]) -> Option<usize> {
        (!bytes.is_empty()).then_some(0)
    }

    fn transform(&self, message: &Message<'_>) -> Result<(Edits, ()), Error> {
        let edits = if message.number.is_multiple_of(2) {
            Edits::new()
        } else {
            same(message.content)
        };
        Ok((edits, ()))
    }
}

/// Returns an edit that replaces the whole content by itself.
pub fn same(content: &[u8]) -> Edits {
    let all = Edit::replace(Span::new(0, content.len()), content);
    Edits::of([all]).expect("it is one")
}

pub fn to(source: &Path, destination: &Path, with: &dyn Transform) -> Result<Summary, Error> {
    let options = Options::default();
    Conversion::of(source)
        .to(destination)
        .options(&options)
        .run(with, &())
}

pub fn in_place(source: &Path, with: &dyn Transform) -> Result<Summary, Error> {
    Conversion::of(source).in_place().run(with, &())
}

/// Prints that a test is skipped. With `EMBODY_REQUIRE_ALL=1`, the test fails instead.
pub fn skipped(why: &str) {
    assert!(
        std::env::var_os("EMBODY_REQUIRE_ALL").is_none_or(|all| all != "1"),
        "cannot run: {why}"
    );
    println!("skipped: {why}");
}

/// A generator of pseudo-random numbers that are the same in each run.
pub struct Numbers(pub u64);

impl Numbers {
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// Returns an mbox of `count` messages. Every third message contains a [`MARK`].
pub fn mbox(count: u64) -> Vec<u8> {
    let mut out = Vec::new();
    for number in 1..=count {
        out.extend_from_slice(
            format!(
                "From a@example.org Thu Jan  1 00:{:02}:{:02} 1970\n\
                 From: a@example.org\nSubject: message {number}\nMessage-ID: <{number}@example.org>\n\n",
                number / 60 % 60,
                number % 60
            )
            .as_bytes(),
        );
        for line in 0..number % 40 {
            out.extend_from_slice(format!("line {line} of message {number}\n").as_bytes());
        }
        if number % 3 == 0 {
            out.extend_from_slice(b"EXPAND-ME\n");
        }
        out.push(b'\n');
    }
    out
}
