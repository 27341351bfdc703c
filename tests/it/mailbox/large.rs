//! Messages larger than a window: the window grows until it contains one, and the result does not depend on it. The memory is
//! as documented in docs/mailboxes.md.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use crate::common::mailboxes::Expand;
use crate::common::programs::{embody, program, skipped, stderr};
use embody::mailbox::{
    Conversion, MailboxEvent, Message, Observer, Options, ReadOptions, Stop, Summary, Transform,
};
use embody::{Edits, Error};
use proptest::prelude::*;

const FROM: &str = "From a@b Thu Jan  1 00:00:00 1970\nSubject: x\n\n";
const NEEDLE: &str = "EXPAND-ME";

/// A transformation that replaces each mark, and records the numbers of the changed messages.
struct Fill {
    with: Expand,
    numbers: Mutex<Vec<u64>>,
}

impl Fill {
    fn new(with: &'static str) -> Self {
        Self {
            with: Expand(with),
            numbers: Mutex::default(),
        }
    }

    /// Returns the numbers of the messages that were passed to the transformation, sorted.
    fn numbers(&self) -> Vec<u64> {
        let mut numbers = std::mem::take(&mut *self.numbers.lock().unwrap());
        numbers.sort_unstable();
        numbers
    }
}

impl Transform for Fill {
    fn next_touch(&self, bytes: &[u8]) -> Option<usize> {
        self.with.next_touch(bytes)
    }

    fn transform(&self, message: &Message<'_>) -> Result<(Edits, ()), Error> {
        self.numbers.lock().unwrap().push(message.number);
        self.with.transform(message)
    }
}

/// The progress that a run reports, message by message.
#[derive(Default)]
struct Come(Mutex<(u64, u64)>);

impl Observer for Come {
    fn event(&self, event: MailboxEvent) {
        if let MailboxEvent::Advance(bytes, messages) = event {
            let mut come = self.0.lock().unwrap();
            *come = (come.0 + bytes, come.1 + messages);
        }
    }
}

/// Returns the results of `mbox` for every kind of output.
fn converted(mbox: &[u8], window: usize, fill: &Fill) -> (Vec<u8>, Summary, Vec<u64>) {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("in"), mbox).unwrap();
    let options = Options {
        read: ReadOptions {
            window,
            ..ReadOptions::default()
        },
        ..Options::default()
    };
    let come = Come::default();
    let to = |out: &Path, options: &Options| {
        Conversion::of(&path("in"))
            .to(out)
            .options(options)
            .run(fill, &come)
            .unwrap()
    };
    let summary = to(&path("out"), &options);
    assert_eq!(
        *come.0.lock().unwrap(),
        (summary.bytes_in, summary.messages)
    );
    let numbers = fill.numbers();
    let out = fs::read(path("out")).unwrap();
    assert_eq!(summary.bytes_out, out.len() as u64);
    let rehearsed = to(
        &path("none"),
        &Options {
            writes: false,
            ..options.clone()
        },
    );
    assert_eq!((rehearsed, fill.numbers()), (summary, numbers.clone()));
    for waits in [false, true] {
        fs::write(path("in"), mbox).unwrap();
        let options = Options {
            waits,
            ..options.clone()
        };
        let in_place = Conversion::of(&path("in"))
            .in_place()
            .options(&options)
            .run(fill, &())
            .unwrap();
        assert_eq!((in_place, fill.numbers()), (summary, numbers.clone()));
        assert!(fs::read(path("in")).unwrap() == out, "waits: {waits}");
    }
    (out, summary, numbers)
}

/// Returns a mailbox of messages with these lengths, and with marks at these positions.
fn mailbox(messages: &[(usize, Vec<usize>)]) -> Vec<u8> {
    let mut mbox = Vec::new();
    for (length, needles) in messages {
        let start = mbox.len();
        mbox.extend_from_slice(FROM.as_bytes());
        let body = "An ordinary line of text.\n".repeat(length / 26 + 1);
        mbox.extend_from_slice(body.as_bytes());
        for needle in needles {
            let at = start + FROM.len() + needle % length.saturating_sub(NEEDLE.len()).max(1);
            mbox[at..at + NEEDLE.len()].copy_from_slice(NEEDLE.as_bytes());
        }
        mbox.push(b'\n');
    }
    mbox
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn result_for_large_messages_does_not_depend_on_the_window_size(
        messages in proptest::collection::vec(
            (20_usize..12_000, prop_oneof![
                3 => Just(Vec::new()),
                1 => proptest::collection::vec(0_usize..12_000, 1..3),
            ]),
            1..9,
        ),
        window in 1024_usize..3000,
        with in prop_oneof![Just("!"), Just(NEEDLE), Just("much more than there was, by some words\n")],
    ) {
        let mbox = mailbox(&messages);
        let whole = converted(&mbox, 1 << 20, &Fill::new(with));
        let grown = converted(&mbox, window, &Fill::new(with));
        prop_assert!(whole == grown);
    }
}

#[test]
fn message_found_larger_than_the_limit_is_copied_unchanged() {
    let large = mailbox(&[(30_000, vec![20_000])]);
    let small = mailbox(&[(30, vec![5])]);
    let mbox = [small.as_slice(), &large, &small].concat();
    let folder = tempfile::tempdir().unwrap();
    let (source, out) = (folder.path().join("in"), folder.path().join("out"));
    fs::write(&source, &mbox).unwrap();
    for max_message in [3000, 25_000] {
        let options = Options {
            read: ReadOptions {
                window: 2048,
                max_message,
                ..ReadOptions::default()
            },
            ..Options::default()
        };
        let fill = Fill::new("!");
        let summary = Conversion::of(&source)
            .to(&out)
            .options(&options)
            .run(&fill, &())
            .unwrap();
        let counts = (summary.messages, summary.changed, summary.oversized);
        assert_eq!((counts, fill.numbers()), ((3, 2, 1), vec![1, 3]));
        let new = String::from_utf8(small.clone())
            .unwrap()
            .replace(NEEDLE, "!");
        let expected = [new.as_bytes(), &large, new.as_bytes()].concat();
        assert!(fs::read(&out).unwrap() == expected);
        fs::remove_file(&out).unwrap();
    }
}

#[test]
fn message_above_512_mib_is_counted_by_each_command_and_by_what_it_says_about_the_others() {
    let folder = tempfile::tempdir().unwrap();
    for part in ["cur", "new", "tmp"] {
        fs::create_dir_all(folder.path().join("mail").join(part)).unwrap();
    }
    let write = |name: &str, length: u64| {
        let path = folder.path().join("mail/cur").join(name);
        fs::write(&path, "From: a@example.org\nSubject: x\n\nhello\n").unwrap();
        let file = fs::File::options().write(true).open(path).unwrap();
        file.set_len(length.max(file.metadata().unwrap().len()))
            .unwrap();
    };
    let ran = |arguments: &[&str]| {
        let output = embody()
            .args(arguments)
            .arg("mail")
            .current_dir(folder.path())
            .output()
            .unwrap();
        let said = stderr(&output) + &String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {said}");
        said
    };
    let detach = ["detach", "--store", "store", "--in-place"];
    write("1.x:2,S", 0);
    let said = ran(&detach);
    assert!(
        said.contains("\nNo attachment has 102 kB or more"),
        "{said}"
    );
    assert!(!said.contains("512 MiB"), "{said}");
    // The rest of the file is a hole, which needs no space.
    write("2.x:2,S", 513 << 20);
    let said = ran(&detach);
    let others = "\nNo attachment of the searched messages has 102 kB or more";
    assert!(said.contains(others), "{said}");
    let inspected = ran(&["inspect"]);
    let count = "1 message has more than 512 MiB, and is not counted above";
    assert!(inspected.contains(count), "{inspected}");
    let commands: [&[&str]; 4] = [
        &["detach", "--dry-run", "--store", "store", "--in-place"],
        &["restore", "--store", "store", "--in-place"],
        &["embed", "--in-place"],
        &["recover", "--in-place"],
    ];
    for said in commands.map(ran).into_iter().chain([said]) {
        let line = "\n1 message is larger than 512 MiB, so it was neither searched nor changed.\n";
        assert!(said.contains(line), "{said}");
        assert!(!said.contains("--max-message"), "{said}");
    }
}

/// Returns the peak memory of a run, and its standard output.
fn peak(arguments: &[&str], folder: &Path, input: &Path) -> Option<(u64, Vec<u8>)> {
    let script = "import resource, subprocess, sys\n\
        code = subprocess.call(sys.argv[2:])\n\
        open(sys.argv[1], 'w').write(str(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss << 10))\n\
        sys.exit(code)";
    program("python3")?;
    let said = tempfile::NamedTempFile::new().unwrap();
    let output = Command::new("python3")
        .args(["-c", script])
        .arg(said.path())
        .arg(env!("CARGO_BIN_EXE_embody"))
        .args(arguments)
        .current_dir(folder)
        .stdin(fs::File::open(input).unwrap())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let peak = fs::read_to_string(said.path()).unwrap().parse().unwrap();
    Some((peak, output.stdout))
}

/// Two large messages among many small ones, one with a reference. The limit is the memory of an idle program, 16 MB, and three
/// times the largest message.
#[test]
fn memory_is_bounded_by_the_largest_message_however_the_mailbox_comes() {
    const LARGE: u64 = 24 << 20;
    let small = mailbox(&vec![(3000, vec![]); 40]);
    let large = mailbox(&[(LARGE as usize, vec![])]);
    let to_do = "From a@b Thu Jan  1 00:00:00 1970\nSubject: x\nMIME-Version: 1.0\n\
        Content-Type: multipart/mixed; boundary=b\n\n--b\n\
        Content-Type: message/external-body; access-type=URL; URL=\"data:,x\"\n\nContent-Type: text/plain\n\n--b\n\n";
    let changed = [
        to_do.as_bytes(),
        &"An ordinary line of text.\n"
            .repeat(LARGE as usize / 26)
            .into_bytes(),
        b"--b--\n\n",
    ]
    .concat();
    // The messages are divided only by separators: a false Content-Length leads to a search without a result.
    let lies = b"From a@b Thu Jan  1 00:00:00 1970\nSubject: x\nContent-Length: 90000000\n\nx\n\n";
    let box_of = |parts: &[&[u8]]| parts.concat();
    let plain = box_of(&[&small, &large, &small, &changed, &small.repeat(100), &small]);
    let lying = box_of(&[lies.as_slice(), &small.repeat(900)]);
    let gzipped = |bytes: &[u8]| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        std::io::Write::write_all(&mut encoder, bytes).unwrap();
        encoder.finish().unwrap()
    };
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path();
    let files = [
        ("plain", plain.clone(), LARGE),
        ("plain.gz", gzipped(&plain), LARGE),
        ("lying", lying.clone(), 4096),
        ("lying.gz", gzipped(&lying), 4096),
    ];
    // The memory of the program without any work, in a build without optimization.
    fs::write(folder.join("tiny"), lies).unwrap();
    let arguments = ["convert", "tiny", "--output", "-", "--quiet"];
    let Some((own, _)) = peak(&arguments, folder, &folder.join("tiny")) else {
        return skipped("memory_is_bounded_by_the_largest_message", "python3");
    };
    let mut outputs = Vec::new();
    for (name, bytes, largest) in files {
        let path = folder.join(name);
        fs::write(&path, bytes).unwrap();
        for arguments in [
            vec!["convert", "-", "--output", "-", "--quiet"],
            vec!["convert", name, "--output", "-", "--quiet"],
            vec!["convert", name, "--in-place", "--quiet"],
        ] {
            let Some((peak, written)) = peak(&arguments, folder, &path) else {
                return skipped("memory_is_bounded_by_the_largest_message", "python3");
            };
            let most = (16 << 20) + 3 * largest + own;
            println!("{name} {arguments:?}: {} MB", peak >> 20);
            assert!(peak < most, "{name} {arguments:?}: {peak}");
            if arguments[1] != name || arguments[2] == "--output" {
                outputs.push((name.trim_end_matches(".gz").to_owned(), written));
            }
        }
    }
    for pair in outputs.windows(2) {
        assert!(pair[0].0 != pair[1].0 || pair[0].1 == pair[1].1);
    }
}

/// The first message waits until no other one is being transformed. Each other message has a long report.
struct Waiting {
    transformed: AtomicUsize,
    before: AtomicUsize,
}

const REPORT: usize = 1 << 20;

impl Transform<Vec<u8>> for Waiting {
    fn next_touch(&self, bytes: &[u8]) -> Option<usize> {
        (!bytes.is_empty()).then_some(0)
    }

    fn transform(&self, message: &Message<'_>) -> Result<(Edits, Vec<u8>), Error> {
        if message.number == 1 {
            let mut before = usize::MAX;
            let mut now = 0;
            while before != now {
                before = now;
                thread::sleep(Duration::from_millis(500));
                now = self.transformed.load(Ordering::SeqCst);
            }
            self.before.store(now, Ordering::SeqCst);
            return Ok((Edits::new(), Vec::new()));
        }
        self.transformed.fetch_add(1, Ordering::SeqCst);
        Ok((Edits::new(), vec![0; REPORT]))
    }

    fn weight(&self, report: &Vec<u8>) -> usize {
        report.len()
    }
}

#[test]
fn reading_ahead_of_a_waiting_message_is_bounded_by_report_memory() {
    let mbox = mailbox(&vec![(50_000, Vec::new()); 400]);
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("box"), &mbox).unwrap();
    let maildir = folder.path().join("Maildir");
    for name in ["cur", "new", "tmp"] {
        fs::create_dir_all(maildir.join(name)).unwrap();
    }
    for number in 0..400 {
        fs::write(
            maildir.join(format!("cur/{number:03}:2,S")),
            "Subject: x\n\ntext\n",
        )
        .unwrap();
    }
    let options = Options {
        read: ReadOptions {
            jobs: 3,
            max_in_flight: 3,
            ..ReadOptions::default()
        },
        ..Options::default()
    };
    for source in ["box", "Maildir"] {
        let waiting = Waiting {
            transformed: AtomicUsize::new(0),
            before: AtomicUsize::new(0),
        };
        let (source, out) = (folder.path().join(source), folder.path().join("out"));
        let stop = Stop::default();
        let summary = Conversion::of(&source)
            .to(&out)
            .options(&options)
            .stop(&stop)
            .run(&waiting, &())
            .unwrap();
        assert_eq!(summary.messages, 400);
        let before = waiting.before.load(Ordering::SeqCst);
        // The windows of three threads take 1 MB, and each thread may be in the middle of a window with five mails.
        assert!(
            (1..40).contains(&before),
            "{before} reports were held of {}",
            source.display()
        );
        if source.is_dir() {
            fs::remove_dir_all(out).unwrap()
        } else {
            assert!(fs::read(&out).unwrap() == mbox);
            fs::remove_file(out).unwrap();
        }
    }
}
