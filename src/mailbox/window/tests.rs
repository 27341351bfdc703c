//! The walk in windows.

use std::os::unix::fs::FileExt as _;

use super::*;
use proptest::prelude::*;

pub(in super::super) fn divided(
    bytes: &[u8],
    window: usize,
    max_message: usize,
) -> (Vec<u8>, Vec<Vec<u8>>, u64) {
    let mut windows = Windows::new(bytes, Pool::default(), window, max_message);
    let (mut joined, mut messages, mut oversized) = (Vec::new(), Vec::new(), 0);
    while let Some(chunk) = windows.next_chunk().unwrap() {
        let mut at = None;
        for frame in &chunk.frames {
            assert!(at.is_none_or(|at| at == frame.start), "frames tile");
            at = Some(frame.end);
            messages.push(chunk.bytes()[frame.start..frame.end].to_vec());
        }
        assert!(at.is_none_or(|at| at == chunk.length));
        oversized += chunk.oversized;
        joined.extend_from_slice(chunk.bytes());
    }
    (joined, messages, oversized)
}

pub(in super::super) fn pieces() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        Just(b"From a@b Thu Jan  1 00:00:00 1970\n".to_vec()),
        Just(b"From a@b Thu Jan  1 00:00:00 1970\r\n".to_vec()),
        Just(b"From here on\nwe walk\n".to_vec()),
        Just(b"From x\nSubject: y\n".to_vec()),
        Just(b">From z 10:00\n".to_vec()),
        Just(b"\n".to_vec()),
        Just(b"\r\n".to_vec()),
        Just(b"\r".to_vec()),
        Just(b"Subject: s\n".to_vec()),
        (0_usize..900).prop_map(|n| format!("Content-Length: {n}\n").into_bytes()),
        (0_usize..4, 0_usize..900).prop_map(|(hidden, n)| {
            let line = "\nFrom a@b Thu Jan  1 00:00:00 1970\nSubject: s\n";
            let body = format!("{}{}\n", line.repeat(hidden), "x".repeat(n));
            let length = body.len();
            format!("From a@b Thu Jan  1 00:00:00 1970\nContent-Length: {length}\n\n{body}\n")
                .into_bytes()
        }),
        (1_usize..700).prop_map(|n| vec![b'x'; n]),
        any::<[u8; 3]>().prop_map(|b| b.to_vec()),
    ];
    proptest::collection::vec(piece, 0..60).prop_map(|all| all.concat())
}

proptest! {
    #[test]
    fn chunks_put_together_are_the_file_whatever_the_window(
        bytes in pieces(), window in 1_usize..6000, from_first in any::<bool>()
    ) {
        let bytes = if from_first { [b"From ".as_slice(), &bytes].concat() } else { bytes };
        let (joined, messages, oversized) = divided(&bytes, window, 1 << 20);
        prop_assert_eq!(&joined, &bytes);
        prop_assert_eq!(oversized, 0);
        let (_, at_once, _) = divided(&bytes, 1 << 20, 1 << 20);
        prop_assert_eq!(messages, at_once);
    }

    #[test]
    fn a_bound_on_messages_loses_none(bytes in pieces(), window in 1_usize..3000) {
        let bytes = [b"From ".as_slice(), &bytes].concat();
        let (joined, messages, oversized) = divided(&bytes, window, 1100);
        prop_assert_eq!(&joined, &bytes);
        let (_, at_once, _) = divided(&bytes, 1 << 20, 1 << 20);
        // Of a header that does not end within the bound no Content-Length is known.
        let is_known = |message: &[u8]| {
            message.len() <= 1100 || mbox::Header::of_message(message, 0).body.is_some_and(|body| body <= 1100)
        };
        if at_once.iter().all(|message| is_known(message)) {
            prop_assert_eq!(messages.len() as u64 + oversized, at_once.len() as u64);
        }
    }
}

proptest! {
    #[test]
    fn a_header_that_is_read_later_says_what_it_says_at_once(bytes in pieces()) {
        let bytes = [b"From x\n\n".as_slice(), &bytes].concat();
        let mut windows = Windows::new(bytes.as_slice(), Pool::default(), 1 << 20, 1 << 20);
        let mut compared = 0;
        while let Some(chunk) = windows.next_chunk().unwrap() {
            // The first has no Content-Length: no header behind it is read.
            for frame in chunk.frames.iter().skip(1) {
                prop_assert!(!frame.is_looked_at);
                let mut alone = Counted::default();
                let peek = &mut |_: u64, _: &mut [u8]| None;
                let end = mbox::end_of_message(chunk.bytes(), frame.start, true, &mut alone, peek);
                let End::At(at_once) = end else {
                    panic!("all is there");
                };
                // Here nothing says that messages before have none.
                if !at_once.is_mboxcl2 {
                    prop_assert_eq!(frame.looked_at(chunk.bytes()), at_once);
                    compared += 1;
                }
            }
        }
        prop_assume!(compared > 0);
    }
}

#[test]
fn what_is_appended_to_an_mboxcl2_mailbox_is_divided_as_if_it_had_been_there() {
    let line = "From a@b Thu Jan  1 00:00:00 1970\n";
    let message = |body: &str| {
        let length = body.len();
        format!("{line}Content-Length: {length}\n\n{body}\n")
    };
    let before = [message("one\n"), message("two\n")].concat();
    let appended = message(&format!("a\n\n{line}Subject: hidden\n\nb\n"));
    let file = tempfile::tempfile().unwrap();
    file.write_all_at((before + &appended).as_bytes(), 0)
        .unwrap();
    let end = file.metadata().unwrap().len();
    let start = end - appended.len() as u64;
    let messages_of = |section: Section<'_>| {
        let counted = section.counted;
        let mut windows = Windows::new(section, Pool::default(), 1, 1 << 20).behind(counted);
        let mut messages = 0;
        while let Some(chunk) = windows.next_chunk().unwrap() {
            messages += chunk.frames.len();
        }
        (messages, windows.counted())
    };
    let section = |start, end, counted| Section {
        file: &file,
        growing: None,
        start,
        end,
        counted,
    };
    let (messages, counted) = messages_of(section(0, start, Counted::default()));
    assert_eq!(messages, 2);
    assert_eq!(messages_of(section(start, end, counted)).0, 1);
    // Nothing says that what has nothing before it is mboxcl2.
    assert_eq!(messages_of(section(start, end, Counted::default())).0, 2);
    assert_eq!(messages_of(Section::whole(&file)).0, 3);
}
