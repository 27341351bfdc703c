use std::io::Write as _;

use super::*;
use crate::mailbox::forms::{cost, mbox};
use crate::platform::FileExt as _;
use proptest::prelude::*;

fn stream(bytes: &[u8]) -> InputSource {
    let bytes = io::Cursor::new(bytes.to_vec());
    InputSource::stream(bytes, None, Arc::default())
}

pub(crate) fn divided(
    bytes: &[u8],
    window: usize,
    max_message: usize,
) -> (Vec<u8>, Vec<Vec<u8>>, u64) {
    let mut windows = Windows::new(stream(bytes), window, max_message);
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

pub(crate) fn pieces() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        Just(b"From a@b Thu Jan  1 00:00:00 1970\n".to_vec()),
        Just(b"From a@b Thu Jan  1 00:00:00 1970\r\n".to_vec()),
        Just(b"From a@b Thu Jan  1 00:00:00 1970\rSubject: s\rTo: t\r\rtext\r\r".to_vec()),
        Just(
            b"From a@b Thu Jan  1 00:00:00 1970\nFrom - Thu Jan  1 00:00:00 1970\nTo: t\n".to_vec()
        ),
        Just(
            b"From a@b Thu Jan  1 00:00:00 1970\rFrom - Thu Jan  1 00:00:00 1970\rTo: t\r\rx\r"
                .to_vec()
        ),
        Just(b"From - \n".to_vec()),
        (1_usize..900).prop_map(|n| b"From a@b Thu Jan  1 00:00:00 1970\n".repeat(n)),
        (1_usize..3000)
            .prop_map(|n| [b"From Jan 1 1:00 1 ".as_slice(), &b"a".repeat(n), b"\n"].concat()),
        Just(b"From here on\nwe walk\n".to_vec()),
        Just(b"From x\nSubject: y\n".to_vec()),
        (1_usize..900).prop_map(|n| b"From \nA:\nB:\n".repeat(n)),
        (1_usize..900).prop_map(|n| b"A: b\n".repeat(n)),
        (1_usize..9000).prop_map(|n| [b"\nFrom ".as_slice(), &b"a".repeat(n), b"\n"].concat()),
        (1_usize..9000).prop_map(|n| [b"x".as_slice(), &b"\r".repeat(n)].concat()),
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
    fn freed_bytes_are_read_again_unchanged(
        bytes in pieces(), window in 1_usize..6000, skipped in 0_usize..3, max_message in 1100_usize..100_000
    ) {
        let file = tempfile::tempfile().unwrap();
        (&file).write_all(&bytes).unwrap();
        let skipped = skipped.min(bytes.len());
        let source = InputSource::section(&Arc::new(file), skipped as u64, u64::MAX);
        let mut windows = Windows::new(source, window, max_message);
        let mut chunks = Vec::new();
        let mut expected = Vec::new();
        while let Some(mut chunk) = windows.next_chunk().unwrap() {
            expected.push(chunk.bytes().to_vec());
            prop_assert!(chunk.let_go().is_some());
            prop_assert!(chunk.buffer.is_empty());
            chunks.push(chunk);
        }
        prop_assert_eq!(&expected.concat(), &bytes[skipped..]);
        for (mut chunk, expected) in chunks.into_iter().zip(expected) {
            chunk.read_again().unwrap();
            prop_assert_eq!(chunk.bytes(), expected);
        }
    }

    #[test]
    fn limit_on_message_size_loses_no_bytes_and_no_messages(bytes in pieces(), window in 1_usize..3000) {
        let bytes = [b"From ".as_slice(), &bytes].concat();
        let (joined, messages, oversized) = divided(&bytes, window, 1100);
        prop_assert_eq!(&joined, &bytes);
        let (_, at_once, _) = divided(&bytes, 1 << 20, 1 << 20);
        // If a header does not end within the limit, its Content-Length is unknown, and the messages may be divided in
        // another way.
        let is_known = |message: &[u8]| {
            message.len() <= 1100 || mbox::MboxHeader::of_message(message, 0).body.is_some_and(|body| body <= 1100)
        };
        if at_once.iter().all(|message| is_known(message)) {
            prop_assert_eq!(messages.len() as u64 + oversized, at_once.len() as u64);
        }
    }
}

#[test]
fn bytes_that_another_program_changed_are_not_read_again() {
    let file = tempfile::tempfile().unwrap();
    (&file)
        .write_all(b"From a@b Thu Jan  1 00:00:00 1970\nSubject: x\n\ntext\n")
        .unwrap();
    let file = Arc::new(file);
    let change_and_read = |change: fn(&File)| {
        let mut windows = Windows::new(InputSource::file(&file), 4096, 1 << 20);
        let mut chunk = windows.next_chunk().unwrap().unwrap();
        chunk.let_go();
        change(&file);
        chunk.read_again().map_err(|error| error.to_string())
    };
    assert_eq!(change_and_read(|_| {}), Ok(()));
    for change in [
        |file: &File| file.write_all_at(b"X", 50).unwrap(),
        |file: &File| file.set_len(20).unwrap(),
    ] {
        let error = change_and_read(change).unwrap_err();
        assert!(error.contains("run the same command again"), "{error}");
    }
}

proptest! {
    #[test]
    fn header_read_late_equals_the_header_read_at_once(bytes in pieces()) {
        let bytes = [b"From x\n\n".as_slice(), &bytes].concat();
        let mut windows = Windows::new(stream(&bytes), 1 << 20, 1 << 20);
        let mut compared = 0;
        while let Some(chunk) = windows.next_chunk().unwrap() {
            // The first message has no Content-Length, so the mailbox is not mboxcl2, and later headers are not read
            // during the division.
            for frame in chunk.frames.iter().skip(1) {
                prop_assert!(!frame.is_looked_at);
                let mut alone = MboxReadState::default();
                let peek = &mut |_: u64, _: &mut [u8]| None;
                let progress = &mut MessageEndSearch::default();
                let end = mbox::end_of_message(chunk.bytes(), frame.start, true, &mut alone, progress, peek);
                let Ok(at_once) = end else {
                    panic!("all is there");
                };
                // The message was examined alone here. It can count as mboxcl2, although the first message rules this
                // out for the mailbox. The two results then differ, so they are not compared.
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
    let file = Arc::new(file);
    let messages_of = |section: InputSource, counted: MboxReadState| {
        let mut windows = Windows::new(section, 1, 1 << 20).behind(counted);
        let mut messages = 0;
        while let Some(chunk) = windows.next_chunk().unwrap() {
            messages += chunk.frames.len();
        }
        (messages, windows.counted.elsewhere())
    };
    let section = |start, end| InputSource::section(&file, start, end);
    let (messages, counted) = messages_of(section(0, start), MboxReadState::default());
    assert_eq!(messages, 2);
    assert_eq!(messages_of(section(start, end), counted).0, 1);
    // Without the earlier messages, the mailbox is not recognised as mboxcl2, so the separator inside the message
    // counts.
    assert_eq!(
        messages_of(section(start, end), MboxReadState::default()).0,
        2
    );
    assert_eq!(
        messages_of(InputSource::file(&file), MboxReadState::default()).0,
        3
    );
}

/// A reader that returns a few bytes at a time, is interrupted before each read, and fails at the offset `bad`.
struct Faulty {
    bytes: io::Cursor<Vec<u8>>,
    step: usize,
    bad: u64,
    reads: u64,
}

impl io::Read for Faulty {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.reads += 1;
        if self.reads % 2 == 1 {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let at = self.bytes.position();
        if at >= self.bad {
            return Err(io::Error::other("the disk is gone"));
        }
        let step = (self.bad - at).min(self.step as u64) as usize;
        let most = step.min(into.len());
        self.bytes.read(&mut into[..most])
    }
}

#[test]
fn short_reads_do_not_change_messages_and_a_failed_read_is_not_end_of_file() {
    let message = |number: usize| {
        let body = "line\n".repeat(number * 37 % 400);
        format!(
            "From a 10:00\nSubject: {number}\nContent-Length: {}\n\n{body}\n",
            body.len()
        )
    };
    let bytes: Vec<u8> = (0..20)
        .flat_map(|number| message(number).into_bytes())
        .collect();
    let (_, expected, _) = divided(&bytes, 1 << 20, 1 << 20);
    assert_eq!(expected.len(), 20);
    for step in [1, 7, 4096] {
        let walk = |bad: u64| {
            let faulty = Faulty {
                bytes: io::Cursor::new(bytes.clone()),
                step,
                bad,
                reads: 0,
            };
            let source = InputSource::stream(faulty, None, Arc::default());
            let mut windows = Windows::new(source, 1500, 1 << 20);
            let mut messages = Vec::new();
            while let Some(chunk) = windows.next_chunk()? {
                let of = |frame: &Frame| chunk.bytes()[frame.start..frame.end].to_vec();
                messages.extend(chunk.frames.iter().map(of));
            }
            Ok::<_, io::Error>(messages)
        };
        assert_eq!(walk(u64::MAX).unwrap(), expected);
        for bad in [0, 1, bytes.len() / 2, bytes.len() - 1, bytes.len()] {
            assert!(
                walk(bad as u64).is_err(),
                "an error at byte {bad} must not count as the end of the file"
            );
        }
    }
}

/// Mailboxes in which each part of the text could be the end of the first message, depending on the bytes after it. The
/// search must therefore wait for more bytes again and again. Each mailbox consists of a start and many copies of a
/// text.
const UNDECIDED: [(&str, &str, &str); 27] = [
    ("dated separators", "", "From a Jan 1 1:00 1\n"),
    ("dated separators with CR", "", "From a Jan 1 1:00 1\r"),
    (
        "dated separators in a message",
        "From a\n\nx\n",
        "From a Jan 1 1:00 1\n",
    ),
    (
        "two separators before each message",
        "",
        "From a Jan 1 1:00 1\nFrom \nA:\n\n",
    ),
    ("separators without a date", "", "From x\nA:\nB:\n"),
    ("separators alone and fields", "", "From \nA:\nB:\n"),
    ("separators alone", "", "From \n"),
    ("quoted separators", "From \n", ">From \n"),
    ("one and one", "", "From \n>From \n"),
    (
        "separators after empty lines",
        "From a\n\n",
        "From x y z w v\n\n",
    ),
    ("empty lines", "From a\n\n", "\n"),
    ("empty lines with CR", "From a\r\n\r\n", "\r\n"),
    ("CR", "From a\nA: b\n\n", "\r"),
    ("CR in place of a header", "From a\n", "\r"),
    ("CR and From", "From a\nA: b\n\n", "\rFrom \r"),
    (
        "CR and From with a date",
        "From a\nA: b\n\n",
        "\rFrom Jan 1:1",
    ),
    ("CR and From in a field", "From a\nA: ", "\rFrom Jan 1:1"),
    ("fields", "From a\n", "A: b\n"),
    ("Content-Lengths", "From a\n", "Content-Length: 77\n"),
    (
        "a Content-Length that jumps",
        "From a\nContent-Length: 300000\n\n",
        "\nFrom a\nB:\n",
    ),
    ("a folded field", "From a\nA:\n", " b\n"),
    (
        "header fields up to the last byte that is read after a separator",
        "From a\n\n",
        "From \nA: b\n c\n c\n c\n c\n c\n",
    ),
    ("one field", "From a\nA: ", "b"),
    ("one line", "From a\n\n", "b"),
    ("one From line", "From ", "a"),
    (
        "Eudora",
        "From ???@??? Tue May 14 12:00:00 2024\n",
        "\nFrom ???@??? x",
    ),
    (
        "MMDF",
        "\u{1}\u{1}\u{1}\u{1}\n",
        "x\n\u{1}\u{1}\u{1}\u{1}\n",
    ),
];

#[test]
fn search_for_the_end_of_a_message_looks_at_each_byte_a_bounded_number_of_times() {
    for (name, start, repeated) in UNDECIDED {
        for length in [50_000_usize, 200_000] {
            let times = length / repeated.len();
            let bytes = [start.as_bytes(), &repeated.as_bytes().repeat(times)].concat();
            cost::taken();
            let (joined, _, oversized) = divided(&bytes, 1, 1 << 30);
            let looked_at = cost::taken();
            assert!(joined == bytes && oversized == 0, "{name}");
            let most = 12 * bytes.len() as u64;
            assert!(
                looked_at <= most,
                "{name}: {looked_at} of {} bytes",
                bytes.len()
            );
        }
    }
}
