use std::fs;
use std::path::Path;
use std::sync::Arc;

use tempfile::TempDir;

use super::context::ReadContext;
use super::files::FilesReader;
use super::letters::{LetterFacts, MailboxReader, ReadEvent};
use super::open::open_reader;
use crate::error::Error;
use crate::mailbox::event::{MailboxEvent, MailboxFact};
use crate::mailbox::finds::SourceFind;
use crate::mailbox::forms::kind::StartKind;
use crate::mailbox::{Options, ReadOptions, Stop, Summary};

const FROM: &str = "From a@example.org Sat Jan  3 01:05:34 1996\n";

/// Results of a reader: each message as `number at content`, the sum of the counts, and all events.
#[derive(Default)]
struct ReadRecord {
    messages: Vec<String>,
    counts: Summary,
    events: Vec<ReadEvent>,
}

impl ReadRecord {
    fn add(&mut self, facts: LetterFacts) {
        self.counts.add(&facts.counts);
        self.events.extend(facts.events);
    }

    /// Reads all messages, but not the end.
    fn read(&mut self, reader: &mut dyn MailboxReader, is_reversed: bool) -> Result<(), Error> {
        self.add(reader.begin());
        while let Some(mut letters) = reader.next()? {
            self.add(letters.facts_before());
            let mut opened = Vec::new();
            let mut order: Vec<usize> = (0..letters.count()).collect();
            if is_reversed {
                order.reverse();
            }
            for index in order {
                let facts = letters.open(index, &mut |letter| {
                    let message = &letter.message;
                    let content = String::from_utf8_lossy(message.content);
                    let text = format!("{} {:?} {content}", message.number, message.at);
                    opened.push((index, text));
                    Ok(())
                })?;
                self.add(facts);
            }
            opened.sort();
            self.messages
                .extend(opened.into_iter().map(|(_, text)| text));
            self.add(letters.facts_after());
        }
        Ok(())
    }

    fn end(&mut self, reader: &mut dyn MailboxReader) -> Result<(), Error> {
        self.events.extend(reader.end(&mut self.counts)?);
        Ok(())
    }

    fn damaged(&self) -> Vec<String> {
        let reasons = self.events.iter().filter_map(|event| match event {
            MailboxEvent::Fact(MailboxFact::Damaged(path, why)) => {
                let name = path.file_name().unwrap_or_default();
                Some(format!("{}: {why}", name.display()))
            }
            _ => None,
        });
        reasons.collect()
    }

    fn is_done(&self) -> bool {
        matches!(self.events.last(), Some(MailboxEvent::Done(_)))
    }
}

fn context(path: &Path, options: Options) -> Arc<ReadContext> {
    let options = Arc::new(options);
    Arc::new(ReadContext::of_source(
        path.to_owned(),
        &options,
        &Stop::default(),
    ))
}

fn mbox(count: usize) -> String {
    (1..=count)
        .map(|number| format!("{FROM}Subject: {number}\n\ntext\n\n"))
        .collect()
}

fn record(path: &Path, kind: StartKind, options: Options, is_reversed: bool) -> ReadRecord {
    let mut reader = open_reader(&context(path, options), kind).unwrap();
    let mut record = ReadRecord::default();
    record.read(&mut *reader, is_reversed).unwrap();
    record.end(&mut *reader).unwrap();
    record
}

#[test]
fn mbox_in_small_windows_keeps_numbers_positions_and_counts() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("in.mbox");
    let content = mbox(2000);
    fs::write(&path, &content).unwrap();
    let options = || {
        Options::for_reading(ReadOptions {
            window: 200,
            ..ReadOptions::default()
        })
    };
    let whole = record(&path, StartKind::Mbox, Options::default(), false);
    let expected: Vec<String> = (1..=2000)
        .map(|number| {
            let message = format!("Subject: {number}\n\ntext\n");
            let at = content.find(&message).unwrap() as u64;
            format!("{number} {:?} {message}", Some(at))
        })
        .collect();
    assert_eq!(whole.messages, expected);
    assert!(whole.is_done());
    assert_eq!((whole.counts.mailboxes, whole.counts.messages), (1, 2000));
    assert_eq!(whole.counts.bytes_in, content.len() as u64);
    // The order in which threads open the messages changes nothing.
    for is_reversed in [false, true] {
        let small = record(&path, StartKind::Mbox, options(), is_reversed);
        assert_eq!(small.messages, expected);
        assert_eq!(small.counts, whole.counts);
        let chunks = small.events.len();
        assert!(chunks > 5, "the mailbox was read in {chunks} chunks");
    }
}

#[test]
fn message_above_the_limit_is_counted_and_not_read() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("in.mbox");
    let large = format!("{FROM}Subject: large\n\n{}\n", "text\n".repeat(1000));
    fs::write(&path, mbox(1) + &large + &mbox(1)).unwrap();
    let options = Options::for_reading(ReadOptions {
        max_message: 1000,
        window: 200,
        ..ReadOptions::default()
    });
    let read = record(&path, StartKind::Mbox, options, false);
    assert_eq!(read.messages.len(), 2);
    assert!(read.messages[1].starts_with("3 "), "{:?}", read.messages);
    assert_eq!((read.counts.messages, read.counts.oversized), (3, 1));
}

#[test]
fn mailbox_with_an_index_that_changes_during_the_run_is_an_error() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("In.mbx");
    let eudora = |count| mbox(count).replace("a@example.org", "???@???");
    fs::write(&path, eudora(2)).unwrap();
    let mut reader = open_reader(&context(&path, Options::default()), StartKind::Eudora).unwrap();
    let mut record = ReadRecord::default();
    record.read(&mut *reader, false).unwrap();
    assert_eq!(record.messages.len(), 2);
    fs::write(&path, eudora(3)).unwrap();
    let changed = record.end(&mut *reader);
    assert!(matches!(changed, Err(Error::Changed { .. })), "{changed:?}");
}

#[test]
fn message_that_leaves_a_maildir_during_the_run_is_damage() {
    let folder = TempDir::new().unwrap();
    for part in ["cur", "new", "tmp"] {
        fs::create_dir(folder.path().join(part)).unwrap();
    }
    for number in 1..=3 {
        let path = folder.path().join(format!("cur/{number}.x:2,S"));
        fs::write(path, format!("Subject: {number}\n\n")).unwrap();
    }
    let context = context(folder.path(), Options::default());
    let mut reader = open_reader(&context, StartKind::Maildir).unwrap();
    fs::remove_file(folder.path().join("cur/2.x:2,S")).unwrap();
    let mut record = ReadRecord::default();
    record.read(&mut *reader, false).unwrap();
    record.end(&mut *reader).unwrap();
    let numbers: Vec<&str> = record.messages.iter().map(|text| &text[..1]).collect();
    assert_eq!(numbers, ["1", "3"]);
    let damaged = record.damaged();
    assert!(
        matches!(damaged.as_slice(), [one] if one.starts_with("2.x:2,S: ")),
        "{damaged:?}"
    );
    assert_eq!((record.counts.mailboxes, record.counts.damaged), (1, 1));
    assert!(record.is_done());
}

#[test]
fn file_that_cannot_be_read_is_damage_in_a_directory_and_an_error_as_the_source() {
    let folder = TempDir::new().unwrap();
    let found = |name: &str, relative: &str| SourceFind {
        path: folder.path().join(name),
        relative: relative.into(),
        kind: StartKind::Eml,
        method: None,
        length: 0,
        pst: None,
    };
    fs::write(folder.path().join("1.eml"), "Subject: 1\n\n").unwrap();
    fs::write(folder.path().join("3.eml"), "Subject: 3\n\n").unwrap();
    let context = context(folder.path(), Options::default());
    let names = ["1.eml", "2.eml", "3.eml"];
    let founds = names.map(|name| found(name, name)).into();
    let mut reader = FilesReader::new(&context, founds);
    let mut record = ReadRecord::default();
    record.read(&mut reader, false).unwrap();
    assert_eq!(record.messages.len(), 2);
    let damaged = record.damaged();
    assert!(
        matches!(damaged.as_slice(), [one] if one.starts_with("2.eml: ")),
        "{damaged:?}"
    );
    let begun = record.events.iter().filter_map(|event| match event {
        MailboxEvent::Begin(path) => path.file_name()?.to_str(),
        _ => None,
    });
    assert_eq!(begun.collect::<Vec<_>>(), names);

    let mut reader = FilesReader::new(&context, [found("2.eml", "")].into());
    let failed = ReadRecord::default().read(&mut reader, false);
    assert!(
        matches!(failed, Err(Error::Unreadable { .. })),
        "{failed:?}"
    );
}

#[test]
fn facts_about_a_single_message_come_with_the_message() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("1.emlx");
    fs::write(&path, "99999\nSubject: cut\n\n").unwrap();
    let mut reader = open_reader(&context(&path, Options::default()), StartKind::Eml).unwrap();
    let mut record = ReadRecord::default();
    record.read(&mut *reader, false).unwrap();
    // The end was not read yet.
    assert_eq!(record.damaged().len(), 1, "{:?}", record.damaged());
    assert!(record.messages.is_empty(), "{:?}", record.messages);
    assert_eq!((record.counts.messages, record.counts.damaged), (0, 1));
}

#[cfg(feature = "cli")]
#[test]
fn error_of_the_work_on_a_message_comes_after_the_results_of_the_messages_before_it() {
    use super::map::{LetterWork, read_source};

    let folder = TempDir::new().unwrap();
    for number in 10..50 {
        let path = folder.path().join(format!("{number}.eml"));
        fs::write(path, format!("Subject: {number}\n\n")).unwrap();
    }
    let options = ReadOptions {
        jobs: 8,
        ..ReadOptions::default()
    };
    let refused = || Error::Usage("refused".into());
    let run = |refused_at: &str| {
        let mut seen = Vec::new();
        let work = LetterWork {
            work: &|message| {
                let content = String::from_utf8_lossy(message.content).into_owned();
                if content.contains(refused_at) {
                    return Err(refused());
                }
                Ok(content)
            },
            weight: &String::len,
        };
        let stop = Stop::default();
        let done = read_source(folder.path(), (&options, &stop), &work, &mut |event| {
            if let MailboxEvent::Message(content, _) = event {
                seen.push(content);
            }
            Ok(())
        });
        (seen, done)
    };
    let expected = |end| {
        let numbers = 10..end;
        numbers
            .map(|number| format!("Subject: {number}\n\n"))
            .collect::<Vec<_>>()
    };
    let (seen, done) = run("nowhere");
    assert_eq!(seen, expected(50));
    let done = done.unwrap();
    assert_eq!((done.messages, done.files.read), (40, 40));
    let (seen, done) = run("Subject: 33");
    assert_eq!(seen, expected(33));
    assert!(matches!(done, Err(Error::Usage(_))), "{done:?}");
}
