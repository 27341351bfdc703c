//! Detach and restore: what comes back is what left, octet for octet, whatever the mail; and what is not ours, or
//! forged, is left.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use proptest::prelude::*;

use super::common::mail::{assert_bytes, crlf};
use crate::detach::{Choice, Detacher, Form, Settings};
use crate::edit::Edits;
use crate::expand::{Expander, Lengths};
use crate::mime::ScanLimits;
use crate::policy::{Limits, Links, OnFailure, Policy};
use crate::report::{Outcome, Reason, Report};
use crate::store::{Key, Store, StoreError};

/// A store in memory.
#[derive(Debug, Default)]
pub struct Memory(Mutex<HashMap<String, Vec<u8>>>);

impl Store for Memory {
    fn put(&self, octets: &[u8]) -> Result<Key, StoreError> {
        let key = Key::of(octets);
        self.0
            .lock()
            .unwrap()
            .insert(key.to_string(), octets.to_vec());
        Ok(key)
    }

    fn flush(&self, _keys: &[Key]) -> Result<(), StoreError> {
        Ok(())
    }

    fn get(&self, key: &Key, _at_most: u64) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.0.lock().unwrap().get(&key.to_string()).cloned())
    }

    fn base_url(&self) -> String {
        "https://attachments.example.org/".to_owned()
    }
}

fn detacher(store: &Arc<Memory>, form: Form) -> Detacher {
    Detacher::new(Settings {
        store: Some(Arc::clone(store) as Arc<dyn Store>),
        base_url: store.base_url(),
        choice: Choice {
            larger_than: 0,
            types: Vec::new(),
        },
        form,
        on_failure: OnFailure::Leave,
        lengths: Lengths::Corrected,
        limits: ScanLimits::default(),
    })
}

fn restorer(store: &Arc<Memory>) -> Expander {
    let policy = Policy {
        links: Links::Keep,
        limits: Limits {
            body: u64::MAX,
            growth: u64::MAX,
            fetches: u32::MAX,
            ..Limits::default()
        },
        ..Policy::default()
    };
    let builder = Expander::builder(policy).restoring();
    builder
        .store(Arc::clone(store) as Arc<dyn Store>)
        .build()
        .expect("nothing is opened")
}

fn made(message: &[u8], edits: &Edits) -> Vec<u8> {
    edits.splice(message).into_bytes().into_owned()
}

/// There, there again, and back.
fn there_and_back(message: &[u8], form: Form) -> (Vec<u8>, Report, Vec<u8>) {
    let store = Arc::new(Memory::default());
    let detacher = detacher(&store, form);
    let detachment = detacher.detach(message, "test").unwrap();
    let detached = made(message, &detachment.edits);
    let again = detacher.detach(&detached, "test").unwrap();
    assert!(
        again.edits.is_empty(),
        "twice is once: {:?}",
        again.report.rows
    );
    let restored = restorer(&store).expand(&detached, "test").unwrap();
    let back = made(&detached, &restored.edits);
    if back != message {
        eprintln!(
            "{}\n{:?}",
            String::from_utf8_lossy(&detached),
            restored.report.rows
        );
    }
    (detached, detachment.report, back)
}

fn base64(octets: usize, line: usize, newline: &str) -> String {
    let octets: Vec<u8> = (0..octets)
        .map(|index| (index * 7 + index / 256) as u8)
        .collect();
    let symbols = base64_simd::STANDARD.encode_to_string(octets);
    let lines: Vec<String> = symbols
        .as_bytes()
        .chunks(line)
        .map(|line| String::from_utf8_lossy(line).into_owned())
        .collect();
    lines.join(newline)
}

fn mixed(part: &str) -> String {
    format!(
        "From: a@example.org\nTo: b@example.org\nMIME-Version: 1.0\n\
         Content-Type: multipart/mixed; boundary=\"b0\"\n\nThis is MIME.\n--b0\n\
         Content-Type: text/plain\n\nbefore\n--b0\n{part}\n--b0\nContent-Type: text/plain\n\nbehind\n--b0--\nend\n"
    )
}

const PDF: &str = "Content-Type: application/pdf;\n name=\"a b.pdf\"\nContent-Description: a\n\tletter\n\
    Content-Transfer-Encoding: base64\nContent-Disposition: attachment;\n filename=\"a b.pdf\"\n\n";

#[test]
fn an_attachment_leaves_and_comes_back() {
    let mail = mixed(&format!("{PDF}{}\n", base64(5000, 76, "\n")));
    for form in [Form::ExternalBody, Form::Thunderbird] {
        for mail in [mail.clone().into_bytes(), crlf(mail.as_bytes())] {
            let (detached, report, back) = there_and_back(&mail, form);
            assert_eq!(report.detached(), 1, "{:?}", report.rows);
            assert!(
                detached.len() < 2000,
                "{}",
                String::from_utf8_lossy(&detached)
            );
            assert_bytes(&back, &mail, "there and back");
        }
    }
}
