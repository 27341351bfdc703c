//! Mailbox conversion, file to file, against `cat`, formail, Python's mailbox and mail-parser.
//!
//!     cargo bench --bench mailbox                 500 MB
//!     cargo bench --bench mailbox -- --megabytes 2000
//!     cargo bench --bench mailbox -- --quick      200 MB, fewer rounds
//!     cargo bench --bench mailbox -- --memory     peak memory at 50 MB and at 5 GB (needs 10 GB),
//!                                                 or at what --megabytes says
//!     cargo bench --bench mailbox -- --scaling    one core against two, a tenth needing work
//!     cargo bench --bench mailbox -- --real FILE  an mbox of yours: beside cat and ripgrep, and one core against two
//!
//! Real mail is other than what is made here: small messages, prose full of hyphens and slashes, `From ` at every
//! one of them. What docs/mailboxes.md says of it was measured on public list archives, made into mboxes.
//!
//! The mailbox is made here, the same each time: threads with quoted text, HTML (half of it in
//! quoted-printable), attachments. What is measured is `embody convert` as a process, and next to
//! it, as "walk", the mailbox module alone: reading, dividing, searching for two words, writing.
//! Files are in `$TMPDIR`. Rates are the best of several runs, sources in the page cache.

mod figure;

use std::fs::{self, File};
use std::hint::black_box;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use embody::mailbox::{Message, Options, Stop, Transform, convert_to};
use embody::{Edit, Edits, Error, Span};
use figure::{Figure, Goal, quick, short, skipped};
use memchr::memmem::{self, Finder};

/// Bytes that mark a message that needs work; one in ten has them in a scaling run.
const MARK: &str = "Content-Type: message/external-body";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let has = |name: &str| arguments.iter().any(|argument| argument == name);
    let after = |name: &str| {
        let at = arguments.iter().position(|argument| argument == name)?;
        arguments.get(at + 1)
    };
    if has("--child") {
        return child(&arguments);
    }
    if has("--generate") {
        let messages = generate(Path::new("mailbox"), 500 << 20, 0)?;
        println!("{messages} messages");
        return Ok(());
    }
    if has("--list") || has("--test") {
        return Ok(());
    }
    let otherwise = match (has("--memory"), quick()) {
        (true, _) => 5000,
        (false, true) => 200,
        (false, false) => 500,
    };
    let megabytes: u64 = after("--megabytes").map_or(Ok(otherwise), |text| text.parse())?;
    if let Some(file) = after("--real") {
        return real(Path::new(file));
    }
    let folder = tempfile::tempdir()?;
    if has("--memory") {
        return memory(folder.path(), megabytes);
    }
    if has("--scaling") {
        return scaling(folder.path(), megabytes.min(200));
    }
    speed(folder.path(), megabytes)
}

fn speed(folder: &Path, megabytes: u64) -> Result<(), Box<dyn std::error::Error>> {
    let source = folder.join("mailbox");
    let messages = generate(&source, megabytes << 20, 0)?;
    let size = fs::metadata(&source)?.len();
    println!("{messages} messages, {} MB", size >> 20);
    let out = folder.join("out");
    let mut best = [Duration::MAX; 3];
    // Taking turns: what the disk does meanwhile hits all.
    // The best one of each counts.
    for _ in 0..if quick() { 7 } else { 9 } {
        for (place, time) in best.iter_mut().enumerate() {
            let _ = fs::remove_file(&out);
            let start = Instant::now();
            match place {
                0 => shell("cat mailbox > out", folder)?,
                1 => {
                    let mut program = embody(folder);
                    if !program.status()?.success() {
                        return Err("embody convert failed".into());
                    }
                }
                _ => convert(&source, &out, &Options::default(), &Filter::new(0))?,
            }
            *time = start.elapsed().min(*time);
            same(&source, &out)?;
        }
    }
    let [cat, ours, walk] = best.map(|time| rate(size, time));
    println!("cat a > b            {cat:9.1} MB/s");
    for (name, rate) in [("embody convert", ours), ("walk", walk)] {
        println!("{name:20} {rate:9.1} MB/s   {:.2} of cat", rate / cat);
    }
    let convert = format!("embody convert, {} MB mbox", size >> 20);
    let beside = |peer: &str, theirs: f64, goal: Goal| {
        let peer = format!("{peer}, {} MB/s", short(theirs));
        let own = format!("{} MB/s", short(ours));
        Figure::say(&convert, &own, &peer, ours / theirs, goal);
    };
    beside("cat", cat, Goal::AtLeast(0.8));
    let start = Instant::now();
    let parsed = parse_all(&source)?;
    let parser = rate(size, start.elapsed());
    beside("mail-parser only reading", parser, Goal::More);
    println!("mail-parser, reading {parser:9.1} MB/s   {parsed} messages");

    let small = folder.join("small");
    generate(&small, 20 << 20, 0)?;
    let size = fs::metadata(&small)?.len();
    for (name, goal, command) in [
        (
            "formail -s cat",
            Goal::AtLeast(50.0),
            "formail -s cat < small > out",
        ),
        (
            "Python's mailbox",
            Goal::More,
            "rm -f out && python3 -c \"import mailbox\nto=mailbox.mbox('out')\nfor m in mailbox.mbox('small'): to.add(m)\nto.flush()\"",
        ),
    ] {
        let start = Instant::now();
        match shell(command, folder) {
            Ok(()) => {
                let other = rate(size, start.elapsed());
                println!(
                    "{name:20} {other:9.1} MB/s   embody is {:.0} times that",
                    ours / other
                );
                beside(name, other, goal);
            }
            Err(error) => skipped(&format!("{name} beside embody convert"), &error.to_string()),
        }
    }
    Ok(())
}

/// What `embody convert` looks for, to have ripgrep look for the same.
const LOOKED_FOR: &str = "external-body|x-mozilla-external-attachment-url|x-mozilla-altered|x-mozilla-cloud-part|\
                          x-moz-deleted|internet-shortcut|content-type: (text/html|text/css|application/xhtml)";

fn real(source: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let source = source.canonicalize()?;
    let size = fs::metadata(&source)?.len();
    let folder = tempfile::tempdir()?;
    let folder = folder.path();
    std::os::unix::fs::symlink(&source, folder.join("mailbox"))?;
    let convert = |jobs: &str| {
        let mut program = Command::new(env!("CARGO_BIN_EXE_embody"));
        program
            .args([
                "convert", "--quiet", "--jobs", jobs, "mailbox", "--output", "out",
            ])
            .current_dir(folder);
        program
    };
    let mut alone = Command::new("taskset");
    alone
        .args(["-c", "0", env!("CARGO_BIN_EXE_embody")])
        .args([
            "convert", "--quiet", "--jobs", "1", "mailbox", "--output", "out",
        ])
        .current_dir(folder);
    let mut cat = Command::new("sh");
    cat.args(["-c", "cat mailbox > out"]).current_dir(folder);
    let mut ripgrep = Command::new("rg");
    ripgrep
        .args(["-c", "-a", "-i", LOOKED_FOR, "mailbox"])
        .current_dir(folder)
        .stdout(Stdio::null());
    let mut programs = [
        ("cat a > b", cat),
        ("embody convert", convert("2")),
        ("the same, one core", alone),
        ("rg -c", ripgrep),
    ];
    let mut best = [Duration::MAX; 4];
    // Taking turns, as above.
    for _ in 0..if quick() { 5 } else { 11 } {
        for ((_, program), best) in programs.iter_mut().zip(&mut best) {
            let _ = fs::remove_file(folder.join("out"));
            let start = Instant::now();
            // ripgrep says 1 if there is none.
            program.status()?;
            *best = start.elapsed().min(*best);
        }
    }
    println!("{}, {} MB", source.display(), size >> 20);
    for ((name, _), time) in programs.iter().zip(best) {
        println!(
            "{name:20} {:9.1} MB/s   {:.2} of cat",
            rate(size, time),
            best[0].as_secs_f64() / time.as_secs_f64()
        );
    }
    println!(
        "two cores: {:.2} times one",
        best[2].as_secs_f64() / best[1].as_secs_f64()
    );
    Ok(())
}

fn memory(folder: &Path, larger: u64) -> Result<(), Box<dyn std::error::Error>> {
    let mut peaks = Vec::new();
    for megabytes in [50, larger] {
        let source = folder.join("mailbox");
        generate(&source, megabytes << 20, 0)?;
        let _ = fs::remove_file(folder.join("out"));
        let mut program = embody(folder).spawn()?;
        let mut peak = 0;
        while program.try_wait()?.is_none() {
            // Gone from the status of a process that has ended: the last one read counts.
            let status = fs::read_to_string(format!("/proc/{}/status", program.id()))?;
            if let Some(now) = status.lines().find_map(|line| line.strip_prefix("VmHWM:")) {
                peak = now.trim().trim_end_matches(" kB").parse::<u64>()?;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        println!("{megabytes:5} MB: peak {peak} kB");
        peaks.push(peak as f64 / 1e3);
    }
    if let [small, large] = peaks[..] {
        Figure::say(
            &format!("embody convert, {larger} MB mbox, peak memory"),
            &format!("{} MB", short(large)),
            &format!("itself on 50 MB, {} MB", short(small)),
            large / small,
            Goal::AtMost(1.2),
        );
    }
    Ok(())
}

fn scaling(folder: &Path, megabytes: u64) -> Result<(), Box<dyn std::error::Error>> {
    generate(&folder.join("mailbox"), megabytes << 20, 10)?;
    let run = |cores: &str, jobs: &str| -> Result<f64, Box<dyn std::error::Error>> {
        let arguments = ["--child", "--work", "400", "--jobs", jobs];
        let mut best = f64::MAX;
        for _ in 0..3 {
            let seconds = in_child(folder, &["taskset", "-c", cores], &arguments)?;
            best = best.min(seconds.trim().parse()?);
        }
        Ok(best)
    };
    let (one, two) = (run("0", "1")?, run("0,1", "2")?);
    println!(
        "one core {one:.2} s, two cores {two:.2} s: {:.2} times",
        one / two
    );
    Figure::say(
        &format!("walking {megabytes} MB with costly work, two cores"),
        &format!("{} s", short(two)),
        &format!("itself on one core, {} s", short(one)),
        one / two,
        Goal::AtLeast(1.7),
    );
    Ok(())
}

/// `embody convert` from the mailbox to `out`.
fn embody(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_embody"));
    command
        .args(["convert", "--quiet", "mailbox", "--output", "out"])
        .current_dir(folder);
    command
}

/// Runs this program again; what it printed.
fn in_child(
    folder: &Path,
    wrapper: &[&str],
    arguments: &[&str],
) -> Result<String, Box<dyn std::error::Error>> {
    let program = std::env::current_exe()?;
    let mut command = match wrapper.split_first() {
        Some((first, rest)) => {
            let mut command = Command::new(first);
            command.args(rest).arg(program);
            command
        }
        None => Command::new(program),
    };
    let output = command
        .args(arguments)
        .current_dir(folder)
        .stderr(Stdio::inherit())
        .output()?;
    if !output.status.success() {
        return Err(output.status.to_string().into());
    }
    Ok(String::from_utf8(output.stdout)?)
}

fn child(arguments: &[String]) -> Result<(), Box<dyn std::error::Error>> {
    let number = |name: &str, otherwise: u32| -> Result<u32, std::num::ParseIntError> {
        let at = arguments.iter().position(|argument| argument == name);
        match at.and_then(|at| arguments.get(at + 1)) {
            Some(text) => text.parse(),
            None => Ok(otherwise),
        }
    };
    let jobs = number("--jobs", 2)? as usize;
    let options = Options {
        jobs,
        max_in_flight: jobs,
        window: number("--window", 1 << 20)? as usize,
        ..Options::default()
    };
    let _ = fs::remove_file("out");
    let start = Instant::now();
    let filter = Filter::new(number("--work", 0)?);
    convert(Path::new("mailbox"), Path::new("out"), &options, &filter)?;
    let seconds = start.elapsed().as_secs_f64();
    fs::remove_file("out")?;
    println!("{seconds}");
    Ok(())
}

fn convert(from: &Path, to: &Path, options: &Options, filter: &Filter) -> Result<(), Error> {
    convert_to(from, to, options, filter, &(), &Stop::default()).map(|_| ())
}

fn shell(command: &str, folder: &Path) -> io::Result<()> {
    let status = Command::new("sh")
        .args(["-ec", command])
        .current_dir(folder)
        .stderr(Stdio::null())
        .status()?;
    if status.success() {
        Ok(())
    } else {
        Err(io::Error::other(status.to_string()))
    }
}

fn same(a: &Path, b: &Path) -> io::Result<()> {
    if Command::new("cmp").arg(a).arg(b).status()?.success() {
        Ok(())
    } else {
        Err(io::Error::other("the copy differs"))
    }
}

fn rate(bytes: u64, time: Duration) -> f64 {
    bytes as f64 / 1e6 / time.as_secs_f64()
}

fn parse_all(path: &Path) -> Result<usize, Box<dyn std::error::Error>> {
    let file = io::BufReader::with_capacity(1 << 20, File::open(path)?);
    let parser = mail_parser::MessageParser::default();
    let mut count = 0;
    for message in mail_parser::mailbox::mbox::MessageIterator::new(file) {
        let message = message.map_err(|error| format!("{error:?}"))?;
        count += usize::from(black_box(parser.parse(message.contents())).is_some());
    }
    Ok(count)
}

/// A stand-in for the filter: its searches, and so many rounds of hashing per message found.
struct Filter {
    needles: [Finder<'static>; 2],
    work: u32,
}

impl Filter {
    fn new(work: u32) -> Self {
        Self {
            needles: [
                Finder::new("/external-body"),
                Finder::new("X-Mozilla-External-Attachment-URL"),
            ],
            work,
        }
    }
}

impl Transform for Filter {
    fn next_touch(&self, bytes: &[u8]) -> Option<usize> {
        let found = self.needles.iter().filter_map(|needle| needle.find(bytes));
        found.min()
    }

    fn transform(&self, message: &Message<'_>) -> Result<Edits, Error> {
        use md5::{Digest as _, Md5};
        let mut digest = Md5::digest(message.content);
        for _ in 0..self.work {
            digest = Md5::digest(
                [
                    digest.as_slice(),
                    &message.content[..message.content.len().min(4096)],
                ]
                .concat(),
            );
        }
        let Some(at) = memmem::find(message.content, MARK.as_bytes()) else {
            return Ok(Edits::new());
        };
        let span = Span::new(at, at + MARK.len());
        let field = format!("Content-Type: text/plain; x={:x}", digest[0]);
        Ok(Edits::of([Edit::replace(span, field)]).expect("it is one"))
    }
}

/// Numbers that look random and are the same each time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

const WORDS: [&str; 24] = [
    "the", "mail", "list", "of", "and", "patch", "draft", "section", "agree", "with", "this",
    "header", "field", "would", "break", "old", "readers", "From", "please", "see", "below",
    "review", "tomorrow", "regards",
];

/// Writes an mbox of about `size` bytes; one in `marked` messages has [`MARK`] (0: none).
fn generate(path: &Path, size: u64, marked: u64) -> io::Result<u64> {
    let mut out = BufWriter::with_capacity(1 << 20, File::create(path)?);
    let mut numbers = Numbers(42);
    let (mut written, mut count) = (0, 0);
    let mut message = Vec::new();
    while written < size {
        message.clear();
        one(
            &mut message,
            &mut numbers,
            count,
            marked > 0 && count % marked == 0,
        )?;
        out.write_all(&message)?;
        written += message.len() as u64;
        count += 1;
    }
    out.flush()?;
    Ok(count)
}

fn one(out: &mut Vec<u8>, numbers: &mut Numbers, count: u64, marked: bool) -> io::Result<()> {
    let user = numbers.below(400);
    let (hour, minute) = (numbers.below(24), numbers.below(60));
    writeln!(
        out,
        "From user{user}@example.org Thu Jan  1 {hour:02}:{minute:02}:00 1998"
    )?;
    writeln!(out, "Return-Path: <user{user}@example.org>")?;
    for hop in 0..3 + numbers.below(4) {
        writeln!(
            out,
            "Received: from mx{hop}.example.net (mx{hop}.example.net [192.0.2.{hop}])\n\tby relay{hop}.example.com (Postfix) with ESMTPS id {:016X}\n\tfor <list@example.com>; Thu, 1 Jan 1998 {hour:02}:{minute:02}:0{hop} +0000",
            numbers.below(1 << 31)
        )?;
    }
    writeln!(
        out,
        "Date: Thu, 1 Jan 1998 {hour:02}:{minute:02}:00 +0000\nFrom: User {user} <user{user}@example.org>\nTo: list@example.com"
    )?;
    writeln!(
        out,
        "Subject: Re: [list] thread {}\nMessage-ID: <{count}.{user}@example.org>",
        count / 12
    )?;
    writeln!(
        out,
        "In-Reply-To: <{}.{user}@example.org>\nMIME-Version: 1.0",
        count.saturating_sub(1)
    )?;
    match numbers.below(20) {
        0..=8 => {
            writeln!(out, "Content-Type: text/plain; charset=utf-8\n")?;
            prose(out, numbers, 20, count % 12)?;
        }
        9..=16 => {
            writeln!(
                out,
                "Content-Type: multipart/alternative; boundary=\"b{count}\"\n\n--b{count}\nContent-Type: text/plain\n"
            )?;
            prose(out, numbers, 15, count % 12)?;
            writeln!(out, "--b{count}\nContent-Type: text/html; charset=utf-8")?;
            // As much of it in quoted-printable as not.
            let equals = if numbers.below(2) == 0 {
                writeln!(out, "Content-Transfer-Encoding: quoted-printable")?;
                "=3D"
            } else {
                "="
            };
            writeln!(out, "\n<html><body>")?;
            for _ in 0..60 + numbers.below(200) {
                writeln!(
                    out,
                    "<tr><td style{equals}\"padding:0 8px\"><a href{equals}\"https://example.com/{}\">{}</a></td></tr>",
                    numbers.below(1 << 30),
                    word(numbers)
                )?;
            }
            writeln!(out, "</body></html>\n--b{count}--")?;
        }
        _ => {
            writeln!(
                out,
                "Content-Type: multipart/mixed; boundary=\"b{count}\"\n\n--b{count}\nContent-Type: text/plain\n"
            )?;
            prose(out, numbers, 10, count % 6)?;
            writeln!(
                out,
                "--b{count}\nContent-Type: application/pdf; name=\"a.pdf\"\nContent-Transfer-Encoding: base64\n"
            )?;
            const DIGITS: &[u8; 64] =
                b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
            for _ in 0..500 + numbers.below(6000) {
                let mut bits = numbers.below(1 << 31);
                for _ in 0..76 {
                    out.push(DIGITS[(bits & 63) as usize]);
                    bits = bits.rotate_right(5).wrapping_mul(31);
                }
                out.push(b'\n');
            }
            writeln!(out, "--b{count}--")?;
        }
    }
    if marked {
        writeln!(out, "{MARK}; access-type=URL")?;
    }
    writeln!(out)
}

fn word(numbers: &mut Numbers) -> &'static str {
    WORDS[numbers.below(WORDS.len() as u64) as usize]
}

fn prose(out: &mut Vec<u8>, numbers: &mut Numbers, lines: u64, depth: u64) -> io::Result<()> {
    for level in (0..=depth).rev() {
        for _ in 0..3 + numbers.below(lines) {
            for _ in 0..level {
                out.push(b'>');
            }
            if level == 0 {
                out.extend_from_slice(b"well");
            }
            for _ in 0..10 {
                out.push(b' ');
                out.extend_from_slice(word(numbers).as_bytes());
            }
            out.push(b'\n');
        }
        out.push(b'\n');
    }
    Ok(())
}
