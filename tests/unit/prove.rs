//! Runs of the engine over the samples, with many options and in chains, are proved. Results of damaged mail, and damaged
//! results, are not.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::engine::detach::{Choice, Planner, Refused, Stub};
use crate::engine::mark::Mark;
use crate::engine::policy::{Embed, Followed, Limits, Links, Policy, Protected, Scheme, Trackers};
use crate::engine::prove::{Budget, Proof, Unproven, prove};
use crate::engine::report::{Reason, Refusal, Retry};
use crate::engine::same::plain;
use crate::engine::{Answers, Content, Context, Engine, Mode, Need};
use crate::mime::transfer::with_newlines;
use crate::span::Newline;

/// A generator of numbers that are the same in each run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % end.max(1) as u64).unwrap()
    }
}

pub(super) fn gif(width: u8, more: u8) -> Vec<u8> {
    let mut gif =
        b"GIF89a\x09\0\x09\0\x80\0\0\0\0\0\xff\xff\xff,\0\0\0\0\x01\0\x01\0\0\x02\x02D\x01\0;"
            .to_vec();
    gif[6] = width;
    gif.push(more);
    gif
}

/// Returns what the servers of the tests send. The answer depends only on the URL.
fn served(need: &Need) -> Result<Content, Refusal> {
    let refused = || Err(Refusal::lasting(Reason::HttpStatus, "404"));
    let Some(url) = need.url() else {
        return refused();
    };
    let sum = url
        .bytes()
        .fold(7_u8, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte));
    let content = |essence: &str, bytes: Vec<u8>| {
        let mut content = Content::new(url, Some(essence.to_owned()), bytes);
        content.origin.status = Some(200);
        content.origin.at =
            Some(SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_700_000_000));
        Ok(content)
    };
    match (sum % 8, need.accept()) {
        (0, _) => refused(),
        (1, _) => Err(Refusal {
            retry: Retry::Later,
            ..Refusal::lasting(Reason::Timeout, "timeout")
        }),
        (2, Some("image/*")) => content("image/gif", gif(1, sum)),
        (_, Some("image/*")) => content("image/gif", gif(9, sum % 3)),
        (_, Some("text/css")) => content(
            "text/css",
            format!(
                "@import url(more.css);\na {{ background: url(img/{sum}.gif) }}\nb {{ background: url(https://img.example.net/{sum}.gif) }}\n"
            )
            .into_bytes(),
        ),
        (3, Some(accept)) => content(accept, format!("text of {sum}\r\nand a line\r\n").into_bytes()),
        (4, Some(accept)) => content(accept, [b"%PDF-1.4\n\0".as_slice(), &[sum; 90]].concat()),
        (5, _) => content("text/plain; charset=utf-8", format!("gr\u{fc}n {sum}\n").into_bytes()),
        _ => content("application/pdf", [b"%PDF-1.4\n\0".as_slice(), &[sum; 300]].concat()),
    }
}

pub(super) fn drive(
    engine: &Engine,
    mail: &[u8],
    source: &dyn Fn(&Need) -> Result<Content, Refusal>,
) -> Vec<u8> {
    let context = Context::new("", SystemTime::UNIX_EPOCH);
    let mut answers = Answers::new();
    loop {
        let mut outcome = engine.run(mail, &context, answers);
        let Some(needs) = outcome.needs.take() else {
            return outcome.output().into_bytes().into_owned();
        };
        answers = outcome.answers;
        for need in needs.batch {
            let answer = source(&need);
            answers.insert(need, answer.map(Into::into));
        }
    }
}

pub(super) fn all_kinds(trackers: Trackers) -> Embed {
    Embed {
        data: true,
        remote: true,
        pictures: true,
        fonts: true,
        media: true,
        styles: true,
        trackers,
    }
}

/// Returns the runs that are tried: a name, and an engine.
fn runs() -> Vec<(String, Engine)> {
    let online = || {
        Policy::default()
            .with_fetch(Scheme::ALL)
            .with_allow_userinfo(true)
            .with_follow(Followed::all())
    };
    let embedding = |embed| online().with_embed(embed);
    let few = |limits: Limits| limits.with_fetches(2);
    let mut policies = vec![
        ("default", Policy::default()),
        (
            "nothing followed",
            Policy::default().with_follow(Followed::none()),
        ),
        (
            "everything followed",
            Policy::default().with_follow(Followed::all()),
        ),
        ("links kept", Policy::default().with_links(Links::Keep)),
        ("online", online()),
        ("online, links kept", online().with_links(Links::Keep)),
        ("online, mismatch", online().with_accept_mismatch(true)),
        (
            "online, protected",
            online().with_protected(Protected::Rewrite),
        ),
        ("online, provenance", online().with_provenance(true)),
        ("online, few", online().map_limits(few)),
        (
            "online, small",
            online().map_limits(|it| it.with_growth(400)),
        ),
        ("online, short", online().map_limits(|it| it.with_body(100))),
        ("everything", embedding(all_kinds(Trackers::Leave))),
        ("everything, blank", embedding(all_kinds(Trackers::Blank))),
        ("everything, fetch", embedding(all_kinds(Trackers::Fetch))),
        (
            "everything, provenance",
            embedding(all_kinds(Trackers::Fetch)).with_provenance(true),
        ),
        (
            "everything, links kept",
            embedding(all_kinds(Trackers::Leave)).with_links(Links::Keep),
        ),
        (
            "everything, few",
            embedding(all_kinds(Trackers::Leave)).map_limits(few),
        ),
        (
            "everything, small",
            embedding(all_kinds(Trackers::Leave)).map_limits(|it| it.with_growth(900)),
        ),
    ];
    for bits in 0..8_u8 {
        let embed = Embed {
            data: true,
            remote: bits % 2 == 0,
            pictures: bits & 1 != 0,
            fonts: bits & 2 != 0,
            styles: bits & 4 != 0,
            ..Embed::default()
        };
        policies.push(("some kinds", embedding(embed)));
    }
    policies.push((
        "data",
        Policy::default().with_embed(Embed {
            data: true,
            ..Embed::default()
        }),
    ));
    let mut runs: Vec<(String, Engine)> = policies
        .into_iter()
        .map(|(name, policy)| (name.to_owned(), Engine::new(policy)))
        .collect();
    runs.push((
        "marked".to_owned(),
        Engine::new(Policy::default()).mark(Mark::Field),
    ));
    runs
}

fn mails_in(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            mails_in(&path, found);
        } else if path.to_string_lossy().ends_with(".eml") {
            found.push(path);
        }
    }
}

/// Returns the samples, with LF and with CRLF line endings.
fn samples() -> Vec<(String, Vec<u8>)> {
    let mut paths = Vec::new();
    mails_in(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("samples"),
        &mut paths,
    );
    let mut mails = Vec::new();
    for (at, path) in paths.iter().enumerate() {
        let mail = std::fs::read(path).unwrap();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if at % 3 == 0 {
            let crlf = with_newlines(mail.clone(), Newline::CrLf);
            mails.push((format!("{name} with CRLF"), crlf));
        }
        mails.push((name, mail));
    }
    mails
}

pub(super) fn proved(old: &[u8], new: &[u8]) -> Result<Proof, Unproven> {
    prove(old, new, &mut Budget::of(old.len(), new.len()))
}

/// Proves all pairs, and reports those that are not proved together.
#[track_caller]
fn assert_all_proved(pairs: impl Iterator<Item = (String, Vec<u8>, Vec<u8>)>) {
    let (mut failed, mut count) = (Vec::new(), 0);
    for (name, old, new) in pairs {
        count += 1;
        if let Err(why) = proved(&old, &new) {
            failed.push(format!("{name}: {why}"));
        }
    }
    assert!(
        failed.is_empty(),
        "{} of {count}:\n{}",
        failed.len(),
        failed.join("\n")
    );
}

#[test]
fn result_of_each_run_over_each_sample_is_proved() {
    let (runs, samples) = (runs(), samples());
    let pairs = samples.iter().flat_map(|(name, old)| {
        runs.iter().map(move |(run, engine)| {
            let new = drive(engine, old, &served);
            (format!("{name}, {run}"), old.clone(), new)
        })
    });
    assert_all_proved(pairs);
}

/// Detaches the attachments of a mail, and adds their contents to `store`.
pub(super) fn detached(
    mail: &[u8],
    (form, text): (Stub, bool),
    store: &mut HashMap<String, Vec<u8>>,
) -> Vec<u8> {
    let choice = Choice {
        larger_than: 1 << 10,
        types: Vec::new(),
        takes_shown: true,
    };
    let url = "https://attachments.example.org/store/".to_owned();
    let planner = Planner::new(choice, url, Mode::Run).leaving(form, text);
    let plan = planner.plan(mail, "", &Refused::new());
    for object in &plan.objects {
        store.insert(object.key.to_string(), object.content(mail).unwrap());
    }
    plan.edits.splice(mail).into_bytes().into_owned()
}

pub(super) fn restored(mail: &[u8], store: &HashMap<String, Vec<u8>>) -> Vec<u8> {
    let engine = Engine::new(Policy::default()).with_store().restoring();
    drive(&engine, mail, &|need| match need {
        Need::Object { sha256 } if store.contains_key(sha256) => {
            Ok(Content::new("", None, store[sha256].clone()))
        }
        _ => Err(Refusal::lasting(Reason::Offline, "it is not in the store")),
    })
}

/// Returns a mail with text, HTML with pictures, attachments in several encodings, and an attached mail.
pub(super) fn letter() -> Vec<u8> {
    use base64::Engine as _;

    let encode = |bytes: &[u8]| {
        let text = base64::engine::general_purpose::STANDARD.encode(bytes);
        let lines: Vec<&str> = text
            .as_bytes()
            .chunks(76)
            .map(|line| std::str::from_utf8(line).unwrap())
            .collect();
        lines.join("\n")
    };
    let picture = encode(&gif(9, 77)).replace('\n', "");
    let large: Vec<u8> = (0..4000_u32).map(|it| (it * 7 % 251) as u8).collect();
    let lines = "a line of a table;1;2;3\n".repeat(80);
    format!(
        "From: Ann <ann@example.org>\nSubject: a letter\nDate: Mon, 6 May 2024 10:00:00 +0200\nMessage-ID: <letter@example.org>\n\
         MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=AAA\n\n--AAA\nContent-Type: multipart/alternative; boundary=BBB\n\n\
         --BBB\nContent-Type: text/plain\n\nplain\n\n--BBB\nContent-Type: text/html; charset=utf-8\n\n\
         <p>Hello <img src=\"data:image/gif;base64,{picture}\">\n<img src=\"https://img.example.net/one.gif\" srcset=\"https://img.example.net/two.gif 2x, https://img.example.net/three.gif 3x\">\n\
         <link rel=stylesheet href=\"https://css.example.net/a.css\"><a href=\"https://example.org/\">x</a></p>\n\n--BBB--\n\n\
         --AAA\nContent-Type: application/octet-stream; name=large.bin\nContent-Disposition: attachment; filename=large.bin\nContent-Transfer-Encoding: base64\n\n{}\n\
         --AAA\nContent-Type: text/csv; name=table.csv\nContent-Disposition: attachment; filename=table.csv\n\n{lines}\n\
         --AAA\nContent-Type: message/external-body; access-type=URL; URL=\"https://files.example.net/f.pdf\"\n\nContent-Type: application/pdf\nContent-ID: <f@example.org>\n\n\n\
         --AAA\nContent-Type: application/octet-stream; name=large.bin\nContent-Disposition: attachment; filename=again.bin\nContent-Transfer-Encoding: base64\n\n{}\n\
         --AAA\nContent-Type: message/rfc822\n\nFrom: Bob <bob@example.org>\nSubject: inner\nMIME-Version: 1.0\nContent-Type: text/html\n\n<img src=\"data:image/gif;base64,{picture}\">\n\n--AAA--\n",
        encode(&large),
        encode(&large)
    )
    .into_bytes()
}

/// Returns the mails for chains of runs: the letter, and the samples with attachments.
fn letters() -> Vec<(String, Vec<u8>)> {
    let letter = letter();
    let mut letters = vec![
        (
            "letter with CRLF".to_owned(),
            with_newlines(letter.clone(), Newline::CrLf),
        ),
        ("letter".to_owned(), letter),
    ];
    letters.extend(samples().into_iter().filter(|(_, mail)| mail.len() > 1500));
    letters
}

#[test]
fn chains_of_runs_are_proved() {
    let embedding = Engine::new(
        Policy::default()
            .with_fetch(Scheme::ALL)
            .with_follow(Followed::all())
            .with_embed(all_kinds(Trackers::Leave)),
    );
    let offline = Engine::new(Policy::default());
    let following = Engine::new(Policy::default().with_follow(Followed::all()));
    let mut pairs = Vec::new();
    for (name, old) in letters() {
        let mut add = |what: &str, old: &[u8], new: &[u8]| {
            pairs.push((format!("{name}, {what}"), old.to_vec(), new.to_vec()));
        };
        let embedded = drive(&embedding, &old, &served);
        let again = drive(&embedding, &drive(&offline, &old, &served), &served);
        add("two runs", &old, &again);
        let opened = drive(&following, &old, &served);
        add(
            "opened and embedded",
            &old,
            &drive(&embedding, &opened, &served),
        );
        for how in [
            (Stub::ExternalBody, false),
            (Stub::ExternalBody, true),
            (Stub::Thunderbird, false),
            (Stub::Thunderbird, true),
        ] {
            let mut store = HashMap::new();
            let without = detached(&old, how, &mut store);
            add("detached", &old, &without);
            add("restored", &without, &restored(&without, &store));
            add(
                "detached and embedded",
                &old,
                &drive(&embedding, &without, &served),
            );
            let both = detached(&embedded, how, &mut store);
            add("embedded and detached", &old, &both);
            add(
                "embedded, detached and restored",
                &both,
                &restored(&both, &store),
            );
            add("all of it", &old, &restored(&both, &store));
            add(
                "opened and detached",
                &old,
                &detached(&opened, how, &mut store),
            );
            store.retain(|key, _| key.as_str() < "8");
            add("restored in part", &without, &restored(&without, &store));
        }
    }
    assert_all_proved(pairs.into_iter());
}

/// Changes a mail at one place.
fn damaged(mail: &[u8], numbers: &mut Numbers) -> Vec<u8> {
    let mut mail = mail.to_vec();
    let at = numbers.below(mail.len());
    match numbers.below(4) {
        0 => mail[at] = b"aZ0 =\n<"[numbers.below(7)],
        1 => drop(mail.remove(at)),
        2 => mail.insert(at, b'x'),
        _ => {
            // Removes a line.
            let start = memchr::memrchr(b'\n', &mail[..at]).map_or(0, |end| end + 1);
            let end = memchr::memchr(b'\n', &mail[at..]).map_or(mail.len(), |end| at + end + 1);
            mail.drain(start..end);
        }
    }
    mail
}

#[test]
fn results_of_damaged_mail_are_never_proved() {
    let (runs, letters) = (runs(), letters());
    let mut numbers = Numbers(5);
    let (mut tried, mut wrong) = (0, Vec::new());
    while tried < 300 {
        let (name, old) = &letters[numbers.below(letters.len())];
        let (run, engine) = &runs[numbers.below(runs.len())];
        let other = damaged(old, &mut numbers);
        let [right, new] = [old, &other].map(|mail| drive(engine, mail, &served));
        if plain(&new) == plain(&right) || plain(&new) == plain(old) {
            continue;
        }
        tried += 1;
        if proved(old, &new).is_ok() {
            let (one, other) = (
                String::from_utf8_lossy(&right),
                String::from_utf8_lossy(&new),
            );
            let is_other = |(one, other): &(&str, &str)| one != other;
            let line = one.lines().zip(other.lines()).find(is_other);
            wrong.push(format!("{name}, {run}: {line:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn damaged_results_are_never_proved_except_content_that_only_servers_had() {
    let (runs, letters) = (runs(), letters());
    let mut numbers = Numbers(6);
    let (mut tried, mut wrong, mut allowed) = (0, Vec::new(), 0);
    while tried < 500 {
        let (name, old) = &letters[numbers.below(letters.len())];
        let (run, engine) = &runs[numbers.below(runs.len())];
        let right = drive(engine, old, &served);
        let new = damaged(&right, &mut numbers);
        if plain(&new) == plain(&right) || plain(&new) == plain(old) {
            continue;
        }
        tried += 1;
        if let Ok(proof) = proved(old, &new) {
            if proof.unchecked > 0 {
                allowed += 1;
                continue;
            }
            let (one, other) = (
                String::from_utf8_lossy(&right),
                String::from_utf8_lossy(&new),
            );
            let is_other = |(one, other): &(&str, &str)| one != other;
            let line = one.lines().zip(other.lines()).find(is_other);
            wrong.push(format!("{name}, {run}: {line:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(allowed < 30, "{allowed}");
}
