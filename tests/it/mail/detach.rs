//! `embody detach` and `embody restore` as programs: filters, mboxes, Maildirs, kills, and mail clients.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::common::bounded::ended;
use crate::common::mail::{assert_bytes, crlf};
use crate::common::programs::{embody, fed, program, skipped, stderr};

/// Returns bytes that differ for each seed.
fn octets(length: usize, seed: usize) -> Vec<u8> {
    let mut state = seed as u32 + 1;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    (0..length).map(|_| next()).collect()
}

fn base64(octets: &[u8], columns: usize) -> String {
    let symbols = STANDARD.encode(octets);
    let lines = symbols.as_bytes().chunks(columns);
    lines
        .map(|line| String::from_utf8_lossy(line) + "\n")
        .collect()
}

/// Returns a mail with two attachments. The second one is the same in all mails with an even or an odd number.
fn mail(number: usize) -> String {
    let own = base64(&octets(3000 + number, number), 76);
    let shared = base64(&octets(2500, 1000 + number % 2), 60);
    format!(
        "From: a@example.org\nSubject: {number}\nMessage-ID: <{number}@example.org>\nMIME-Version: 1.0\n\
         Content-Type: multipart/mixed; boundary=b{number}\n\n--b{number}\n\nText {number}\n\
         >From here on\n--b{number}\nContent-Type: application/pdf; name=\"{number} a.pdf\"\n\
         Content-Transfer-Encoding: base64\nContent-Disposition: attachment\n\n{own}--b{number}\n\
         Content-Type: image/png\nContent-Transfer-Encoding: BASE64\n\n{shared}\n--b{number}--\n"
    )
}

/// Returns a mail that consists of an attachment.
fn whole(number: usize) -> String {
    let body = base64(&octets(2000, number), 76);
    format!(
        "From: a@example.org\nContent-Type: application/zip\nSubject: {number}\n\
         Content-Length: {}\nContent-Transfer-Encoding: base64\nStatus: RO\n\n{body}",
        body.len()
    )
}

fn mbox(count: usize) -> String {
    let message = |number| match number % 5 {
        4 => whole(number),
        _ => mail(number),
    };
    let framed = |number: usize| {
        format!(
            "From a@example.org Sat Jan  1 00:00:{:02} 2000\n{}\n",
            number % 60,
            message(number)
        )
    };
    (0..count).map(framed).collect()
}

/// A working directory.
struct Work(tempfile::TempDir);

impl Work {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn run(&self, arguments: &str) -> Output {
        let mut command = embody();
        command
            .args(arguments.split(' '))
            .current_dir(self.0.path());
        command.output().unwrap()
    }

    #[track_caller]
    fn succeeds(&self, arguments: &str) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "{arguments}: {}", stderr(&output));
        stderr(&output)
    }

    fn objects(&self) -> usize {
        count(&self.path("store"))
    }
}

/// Returns the number of files whose names are hashes, except the list of users of a store.
fn count(folder: &Path) -> usize {
    let entries = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    entries
        .filter(|path| !path.ends_with(".users"))
        .map(|path| {
            if path.is_dir() {
                count(&path)
            } else {
                usize::from(path.file_name().unwrap().len() == 64)
            }
        })
        .sum()
}

#[test]
fn an_mbox_loses_its_attachments_and_gets_them_back() {
    let work = Work::new();
    let before = mbox(20);
    for (name, before) in [
        ("lf", before.clone().into_bytes()),
        ("crlf", crlf(before.as_bytes())),
    ] {
        fs::write(work.path(name), &before).unwrap();
        let said = work.succeeds(&format!(
            "detach --store store --larger-than 1k --in-place {name}"
        ));
        assert!(said.contains("20 messages read, 20 changed"), "{said}");
        assert!(
            said.contains("36 attachments moved into the store"),
            "{said}"
        );
        let detached = fs::read(work.path(name)).unwrap();
        assert!(detached.len() * 2 < before.len());
        work.succeeds(&format!(
            "detach --store store --larger-than 1k --in-place {name}"
        ));
        assert_bytes(
            &fs::read(work.path(name)).unwrap(),
            &detached,
            "twice is once",
        );
        work.succeeds(&format!(
            "restore --store store {name} --output {name}.back"
        ));
        assert_bytes(
            &fs::read(work.path(&format!("{name}.back"))).unwrap(),
            &before,
            name,
        );
        // `convert` restores the attachments, too. It also corrects line counts, which are wrong in the mailbox with CRLF.
        work.succeeds(&format!(
            "convert --store store --links keep --quiet {name} --output {name}.convert"
        ));
        let converted = fs::read(work.path(&format!("{name}.convert"))).unwrap();
        let miscounted = String::from_utf8(before).unwrap();
        let counted = match name {
            "crlf" => miscounted.replace("Content-Length: 2704", "Content-Length: 2740"),
            _ => miscounted,
        };
        assert_bytes(&converted, counted.as_bytes(), name);
    }
    // 16 unique, 2 shared and 4 whole attachments. With LF and CRLF they have the same content.
    assert_eq!(work.objects(), 16 + 2 + 4);
}

fn maildir(work: &Work, count: usize) -> BTreeMap<String, Vec<u8>> {
    for folder in ["cur", "new", "tmp"] {
        fs::create_dir_all(work.path("maildir").join(folder)).unwrap();
    }
    for number in 0..count {
        let folder = if number % 3 == 0 { "new" } else { "cur" };
        let text = if number % 5 == 4 {
            whole(number)
        } else {
            mail(number)
        };
        fs::write(
            work.path("maildir")
                .join(folder)
                .join(format!("{number}.host:2,S")),
            text,
        )
        .unwrap();
    }
    messages(work)
}

fn messages(work: &Work) -> BTreeMap<String, Vec<u8>> {
    let folders = ["cur", "new"].map(|name| work.path("maildir").join(name));
    let files = folders
        .iter()
        .flat_map(|folder| fs::read_dir(folder).unwrap());
    files
        .map(|entry| {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            (name, fs::read(path).unwrap())
        })
        .collect()
}

#[test]
fn a_maildir_loses_its_attachments_and_gets_them_back() {
    let work = Work::new();
    let before = maildir(&work, 15);
    for form in ["external-body", "thunderbird --note"] {
        work.succeeds(&format!(
            "detach --store store --larger-than 1k --note-format {form} --in-place maildir"
        ));
        let detached = messages(&work);
        assert!(
            detached
                .iter()
                .all(|(name, bytes)| bytes.len() < before[name].len())
        );
        work.succeeds("restore --store store --in-place maildir");
        assert!(messages(&work) == before, "{form}");
    }
}

/// A picture that the HTML shows is kept in the mail, which the summary reports. An option detaches it, too.
#[test]
fn summary_of_detach_counts_parts_kept_because_they_are_displayed() {
    let work = Work::new();
    let picture = base64(&octets(3000, 1), 76);
    let message = |number: usize| {
        format!(
            "From a@example.org Sat Jan  1 00:00:0{number} 2000\nFrom: a@example.org\nMIME-Version: 1.0\n\
             Content-Type: multipart/related; boundary=b\n\n--b\nContent-Type: text/html\n\n<img src=\"cid:p@x\">\n\
             --b\nContent-Type: image/png\nContent-ID: <p@x>\nContent-Transfer-Encoding: base64\n\n{picture}\n\
             --b\nContent-Type: application/pdf\nContent-Transfer-Encoding: base64\n\n{picture}\n--b--\n\n"
        )
    };
    let before: String = (0..3).map(message).collect();
    fs::write(work.path("mbox"), &before).unwrap();
    let sum = "kept: 3 displayed by the mail (--inline moves them). The attachments that the mail displays have 9 kB together.";
    for dry in ["--dry-run", "--in-place"] {
        let said = work.succeeds(&format!(
            "detach --store store --larger-than 1k {dry} --report rows mbox"
        ));
        assert!(said.contains(sum), "{said}");
        assert!(!said.contains("message 1"), "{said}");
    }
    let rows = fs::read_to_string(work.path("rows")).unwrap();
    assert_eq!(
        rows.matches("\"reason\":\"shown-inline\"").count(),
        6,
        "{rows}"
    );
    let kept = fs::read_to_string(work.path("mbox")).unwrap();
    assert_eq!(kept.matches(picture.as_str()).count(), 3);
    let said = work.succeeds("detach --store store --larger-than 1k --inline --in-place mbox");
    assert!(
        said.contains("3 attachments moved into the store"),
        "{said}"
    );
    let kept = fs::read_to_string(work.path("mbox")).unwrap();
    assert!(!kept.contains(&picture));
    work.succeeds("restore --store store --in-place mbox");
    assert_bytes(
        &fs::read(work.path("mbox")).unwrap(),
        before.as_bytes(),
        "all back",
    );
    // For a single message, a filter prints the name of the picture and of the option.
    let mut filter = embody();
    filter
        .args("detach --store store --larger-than 1k".split(' '))
        .current_dir(work.path(""));
    let mail = message(0);
    let output = fed(&mut filter, mail.split_once('\n').unwrap().1.as_bytes());
    let said = stderr(&output);
    assert!(
        said.contains(
            "part 2: unchanged: shown-inline: part 1 refers to this part; --inline would allow it"
        ),
        "{said}"
    );
}

/// Whenever the run is killed, each message is unchanged or refers to objects in the store.
#[test]
fn killed_detach_or_restore_loses_no_attachment() {
    let work = Work::new();
    let mbox = mbox(60).into_bytes();
    fs::write(work.path("mbox"), &mbox).unwrap();
    let before = maildir(&work, 60);
    let mut stopped = 0;
    for round in 0..100_u64 {
        for (source, extra) in [("maildir", "--jobs 2"), ("mbox", "--jobs 1")] {
            let verb = match round % 4 {
                3 => "restore",
                _ => "detach --larger-than 1k",
            };
            let mut child = embody()
                .args(
                    format!("{verb} --store store --quiet {extra} --in-place {source}").split(' '),
                )
                .current_dir(work.path(""))
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            std::thread::sleep(Duration::from_micros(500 + round * 977 % 60_000));
            let _ = child.kill();
            stopped += usize::from(!ended(&mut child).success());
        }
    }
    assert!(
        stopped > 50,
        "only {stopped} of 200 were stopped before their end"
    );
    let leftover = work.path("mbox.lock");
    let _ = fs::remove_file(leftover);
    let said = work.succeeds("restore --store store --in-place mbox maildir");
    assert!(!said.contains("left:"), "{said}");
    assert_bytes(&fs::read(work.path("mbox")).unwrap(), &mbox, "the mbox");
    assert!(messages(&work) == before, "the Maildir");
}

#[test]
fn a_dry_run_writes_nothing_and_says_what_would_be_saved() {
    let work = Work::new();
    let before = mbox(10);
    fs::write(work.path("mbox"), &before).unwrap();
    let said = work.succeeds("detach --store store --larger-than 1k --dry-run mbox");
    assert!(
        said.contains("dry run, nothing was written: 10 messages read, 10 would be changed"),
        "{said}"
    );
    assert!(
        said.contains("The store would contain 12 objects with these attachments: "),
        "{said}"
    );
    assert!(!work.path("store").exists());
    assert_eq!(fs::read_to_string(work.path("mbox")).unwrap(), before);
    work.succeeds("detach --store store --larger-than 1k --in-place mbox");
    let detached = fs::read(work.path("mbox")).unwrap();
    let said = work.succeeds("restore --store store --dry-run --report rows mbox");
    assert!(
        said.contains("18 attachments would be put back from the store"),
        "{said}"
    );
    assert_bytes(
        &fs::read(work.path("mbox")).unwrap(),
        &detached,
        "a dry run",
    );
    let rows = fs::read_to_string(work.path("rows")).unwrap();
    assert_eq!(
        rows.matches("\"outcome\":\"would-restore\"").count(),
        18,
        "{rows}"
    );
    assert_eq!(rows.matches("\"kind\":\"attachment\"").count(), 18);
}

#[test]
fn a_store_that_lacks_an_object_leaves_the_part_or_defers() {
    let work = Work::new();
    let mail = mail(1);
    let detached = fed(
        embody()
            .args(["detach", "--store", "store", "--larger-than", "1k"])
            .current_dir(work.path("")),
        mail.as_bytes(),
    );
    assert!(detached.status.success(), "{}", stderr(&detached));
    fs::create_dir(work.path("other")).unwrap();
    let restored = fed(
        embody()
            .args(["restore", "--store", "other"])
            .current_dir(work.path("")),
        &detached.stdout,
    );
    assert!(restored.status.success());
    assert_bytes(&restored.stdout, &detached.stdout, "left");
    assert!(
        stderr(&restored).contains("unchanged: not-in-store"),
        "{}",
        stderr(&restored)
    );
    // A directory in place of an object is an error.
    fs::write(work.path("file"), "").unwrap();
    let refused = fed(
        embody()
            .args(["detach", "--store", "file", "--larger-than", "1k"])
            .current_dir(work.path("")),
        mail.as_bytes(),
    );
    assert_eq!(refused.status.code(), Some(75));
    assert!(refused.stdout.is_empty());
}

#[test]
fn a_moved_store_and_one_behind_a_web_server_are_found() {
    let work = Work::new();
    let mail = mail(2);
    let mut detach = embody();
    detach
        .args(
            "detach --store store --larger-than 1k --base-url https://files.example.org/a"
                .split(' '),
        )
        .current_dir(work.path(""));
    let detached = fed(&mut detach, mail.as_bytes());
    let text = String::from_utf8_lossy(&detached.stdout).into_owned();
    assert!(
        text.contains("URL=\"\n https://files.example.org/a/"),
        "{text}"
    );
    fs::rename(work.path("store"), work.path("moved")).unwrap();
    let moved = work.path("moved").display().to_string();
    for arguments in [
        "restore --store moved".to_owned(),
        format!(
            "restore --fetch file --file-root moved --map https://files.example.org/a/=file://{moved}/"
        ),
        "filter --links keep --store moved --base-url https://files.example.org/a/".to_owned(),
    ] {
        let mut command = embody();
        command
            .args(arguments.split(' '))
            .current_dir(work.path(""));
        let restored = fed(&mut command, &detached.stdout);
        assert!(restored.status.success(), "{}", stderr(&restored));
        assert_bytes(&restored.stdout, mail.as_bytes(), &arguments);
    }
}

#[test]
fn python_reads_what_was_detached() {
    const TEST: &str = "python_reads_what_was_detached";
    let Some(python) = program("python3") else {
        return skipped(TEST, "python3");
    };
    let work = Work::new();
    let mut detach = embody();
    detach
        .args("detach --store store --larger-than 1k".split(' '))
        .current_dir(work.path(""));
    let mail = mail(3);
    let detached = fed(&mut detach, mail.as_bytes());
    let script = "
import base64, email, hashlib, sys, urllib.request
mail = email.message_from_bytes(sys.stdin.buffer.read())
for part in mail.walk():
    if part.get_content_type() == 'message/external-body':
        assert part.get_param('access-type') == 'URL'
        url = ''.join(part.get_param('URL').split())
        octets = urllib.request.urlopen(url).read()
        assert len(octets) == int(part.get_param('size'))
        inner = part.get_payload(0)
        digest = base64.b64encode(hashlib.md5(octets).digest()).decode()
        assert inner['Content-MD5'] == digest, (inner['Content-MD5'], digest)
        print(inner.get_content_type(), hashlib.sha256(octets).hexdigest())
";
    let mut command = std::process::Command::new(python);
    let read = fed(command.args(["-c", script]), &detached.stdout);
    assert!(read.status.success(), "{}", stderr(&read));
    let text = String::from_utf8_lossy(&read.stdout).into_owned();
    let notes = String::from_utf8_lossy(&detached.stdout).into_owned();
    let mut lines = 0;
    for line in text.lines() {
        let (essence, digest) = line.split_once(' ').unwrap();
        assert!(["application/pdf", "image/png"].contains(&essence));
        assert!(notes.contains(&format!("sha256={digest};")));
        lines += 1;
    }
    assert_eq!(lines, 2);
}

/// Detaches and restores all samples, with attachments of any size.
#[test]
fn every_sample_is_restored_exactly_after_detach() {
    let mut compared = 0;
    let mut folders = vec![crate::common::mail::samples_folder()];
    let work = Work::new();
    fs::create_dir(work.path("in")).unwrap();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                // The samples of detach are already detached, so they would be restored.
                folders.extend((!path.ends_with("detach")).then_some(path));
            } else if path.extension().is_some_and(|suffix| suffix == "eml") {
                fs::copy(&path, work.path(&format!("in/{compared}.eml"))).unwrap();
                compared += 1;
            }
        }
    }
    assert!(compared > 100, "only {compared} samples");
    for form in ["external-body", "thunderbird"] {
        let options = format!("--store store --larger-than 0 --quiet --note-format {form}");
        work.succeeds(&format!("detach {options} in --output {form}"));
        work.succeeds(&format!(
            "restore --store store --quiet {form} --output {form}.back"
        ));
        // A file without mail is not copied.
        let mut back = 0;
        for entry in fs::read_dir(work.path(&format!("{form}.back"))).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap();
            let before = fs::read(work.path("in").join(name)).unwrap();
            assert_bytes(&fs::read(&path).unwrap(), &before, &name.to_string_lossy());
            back += 1;
        }
        assert!(
            back + 20 > compared,
            "only {back} of {compared} samples came out"
        );
    }
}

/// A signature over header and body is independent evidence, unlike a comparison of bytes by the author of the program.
#[test]
fn a_dkim_signature_verifies_again() {
    const TEST: &str = "a_dkim_signature_verifies_again";
    const SCRIPT: &str = "
import dkim, subprocess, sys
key = subprocess.run(['openssl', 'genrsa', '-traditional', '1024'], capture_output=True).stdout
public = subprocess.run(['openssl', 'rsa', '-pubout', '-outform', 'DER'], input=key, capture_output=True).stdout
import base64
record = b'v=DKIM1; k=rsa; p=' + base64.b64encode(public)
mail = sys.stdin.buffer.read()
run = lambda verb, mail: subprocess.run([sys.argv[1], verb, '--store', sys.argv[2], '--quiet'] + sys.argv[3:][:2 if verb == 'detach' else 0], input=mail, capture_output=True, check=True).stdout
verify = lambda mail: dkim.verify(mail, dnsfunc=lambda name, timeout=5: record)
for canonical in (b'simple', b'relaxed'):
    signed = dkim.sign(mail, b's', b'example.org', key, canonicalize=(canonical, canonical)) + mail
    assert verify(signed)
    detached = run('detach', signed)
    assert len(detached) < len(signed) and not verify(detached)
    assert verify(run('restore', detached))
print('verified')
";
    let Some(python) = program("python3") else {
        return skipped(TEST, "python3");
    };
    let has_dkim = std::process::Command::new(&python)
        .args(["-c", "import dkim"])
        .output()
        .is_ok_and(|ran| ran.status.success());
    if !has_dkim || program("openssl").is_none() {
        return skipped(TEST, "dkimpy, openssl");
    }
    let work = Work::new();
    let program = embody().get_program().to_owned();
    let mut command = std::process::Command::new(python);
    command
        .args(["-c", SCRIPT])
        .arg(program)
        .arg(work.path("store"));
    command.args(["--larger-than", "1k"]);
    for mail in [mail(1), whole(2)] {
        let ran = fed(&mut command, &crlf(mail.as_bytes()));
        assert_eq!(ran.stdout, b"verified\n", "{}", stderr(&ran));
    }
}

#[test]
fn detached_samples_match_the_expected_files_and_are_restored() {
    let work = Work::new();
    let folder = crate::common::mail::samples_folder().join("detach");
    let mut compared = 0;
    for (name, form, after) in [
        ("attachment", "external-body", "out"),
        ("attachment", "thunderbird --note", "thunderbird.out"),
        ("whole-message", "external-body", "out"),
        ("whole-message", "thunderbird", "thunderbird.out"),
    ] {
        let read = |kind: &str| fs::read(folder.join(format!("{name}.{kind}.eml"))).unwrap();
        for twin in [|bytes: Vec<u8>| bytes, |bytes: Vec<u8>| crlf(&bytes)] {
            let (before, after) = (twin(read("in")), twin(read(after)));
            let options = format!(
                "detach --store store --larger-than 1k --base-url https://files.example.org/ --note-format {form}"
            );
            let mut detach = embody();
            detach.args(options.split(' ')).current_dir(work.path(""));
            assert_bytes(&fed(&mut detach, &before).stdout, &after, name);
            let mut restore = embody();
            restore
                .args(["restore", "--store", "store"])
                .current_dir(work.path(""));
            assert_bytes(&fed(&mut restore, &after).stdout, &before, name);
            compared += 1;
        }
    }
    assert_eq!(compared, 8);
    let eml = fs::read_dir(folder).unwrap().count();
    assert_eq!(eml, 6, "each sample is compared");
}
