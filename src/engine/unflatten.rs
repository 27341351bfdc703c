//! Converts messages of Eudora's mailboxes back to MIME, before any other work on them. Text that Eudora marked as HTML
//! becomes a part of this type, and lines that name files are replaced by the files. Everything else stays text.
//!
//! The Content-Type in the header describes the message before Eudora took it apart, and the declared transfer encoding was
//! already removed. Both fields are replaced if they are wrong. If the boundary lines of a multipart are still present, Eudora
//! did not take the message apart, and it stays unchanged.
//!
//! Files become attachments in base64. Text files with uniform line endings (on the Mac a bare CR) become text with the line
//! endings of the message. If the HTML shows a file, the file becomes part of a multipart/related. Eudora recorded a hash of
//! the file's id or URL, which identifies the link.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use percent_encoding::percent_decode;

use crate::edit::Edit;
use crate::engine::content_source::{ContentSource, OCTETS};
use crate::engine::context::NamedFile;
use crate::engine::forms::eudora::compose::EudoraFile;
use crate::engine::forms::eudora::flattened::{FlattenedMessage, token};
use crate::engine::forms::eudora::notes::{EudoraNote, EudoraText, Wrapper, hash};
use crate::engine::new_part::StoredContent;
use crate::engine::pass::Pass;
use crate::engine::policy::Follow;
use crate::engine::report::{Detail, Kind, Outcome, Reason, Refusal, Row, Setting};
use crate::engine::session::Session;
use crate::engine::{Need, Neighbour};
use crate::link::html::{Syntax, locate_in};
use crate::mime::transfer::{encode_base64, encode_text};
use crate::mime::{entity, picture};
use crate::span::{Newline, starts_like};

const AROUND: usize = 200;

/// Links in the HTML texts whose target may be one of the attached files. The key is Eudora's hash of the target, which
/// the note of the file also contains. The value is the index of the text with the link, and the target: a Content-ID
/// (`Ok`) or a URL that must match a Content-Location (`Err`).
type Referred = HashMap<u32, Link>;
type Link = (usize, Result<String, String>);

pub(super) fn unflatten(session: &mut Session<'_>, message: &[u8]) -> Pass {
    let mut done = Pass::default();
    let policy = session.policy();
    let beside = session.context.beside.as_ref();
    let Some(files) = beside.and_then(|beside| beside.named_files.as_deref()) else {
        return done;
    };
    let is_told = policy.reading_to_tell().forms.contains(Follow::Eudora);
    if session.settings.detached_only || !is_told {
        return done;
    }
    // Every message may be read once, so this work is counted without checking the limit.
    session.ledger.spend(message.len().saturating_mul(2));
    let Some(mut flattened) = FlattenedMessage::read(message, policy) else {
        return done;
    };
    let row = |outcome| {
        Row::new(
            session.context.name(),
            "1".to_owned(),
            Kind::Eudora,
            outcome,
        )
    };
    let of_note = |note: &EudoraNote| Row {
        media_type: note.essence().map(str::to_owned),
        ..row(Outcome::Left)
    };
    if let Err(refusal) = policy.judge_form(Follow::Eudora) {
        done.report.rows.extend(flattened.notes().map(of_note));
        if done.report.rows.is_empty() && flattened.is_marked() {
            done.report.rows.push(row(Outcome::Left));
        }
        for row in &mut done.report.rows {
            row.tell_refusal(refusal.clone());
        }
        return done;
    }
    let body = flattened.body.of(message);
    flattened.boundary = entity::boundary(body, body, &[]);
    let outer = flattened.boundary.as_bytes();
    flattened.inner = entity::boundary(outer, body, &[outer]);
    let flattened = &flattened;
    let boundaries = [flattened.boundary.as_bytes(), flattened.inner.as_bytes()];
    let in_body = flattened.notes().count() - flattened.named.len();
    read_named(session, files);
    if session.is_stopped() {
        return done;
    }
    let mut shown: Option<Referred> = None;
    let mut found: Vec<Option<EudoraFile>> = Vec::new();
    for (index, (note, named)) in flattened.notes().zip(files).enumerate() {
        let mut row = of_note(note);
        if note.is_embedded {
            shown.get_or_insert_with(|| links(flattened));
        }
        let file = named.as_ref().map_err(Clone::clone).and_then(|named| {
            file(
                session,
                named,
                note,
                shown.as_mut().filter(|_| note.is_embedded),
                (flattened.newline, &boundaries),
                &mut row,
            )
        });
        // Sent mail names files anywhere on the sender's disk. They are usually missing, which is no loss for the mail,
        // so a missing one gets no row.
        let is_row = index < in_body || file.is_ok();
        found.push(match file {
            Ok(file) => Some(file),
            Err(refusal) => {
                row.bytes = None;
                row.tell_refusal(refusal);
                None
            }
        });
        if is_row {
            done.report.rows.push(row);
        }
    }
    if flattened.is_cut {
        let mut row = row(Outcome::Left);
        let most = policy.limits.parts;
        let detail = Detail::from("the message has more texts and files than half of ")
            .naming(Setting::Parts)
            .then(format!(", {most}; the remaining files stay in the text"));
        row.tell_refusal(Refusal::lasting(Reason::TooManyParts, detail));
        done.report.rows.push(row);
    }
    let (edits, what) = flattened.edits(&found).unwrap_or_else(|refusal| {
        let rows = done.report.rows.iter_mut();
        for row in rows.filter(|row| row.outcome != Outcome::Left) {
            (row.bytes, row.proved) = (None, false);
            row.tell_refusal(refusal.clone());
        }
        Default::default()
    });
    let gained: i64 = edits.iter().map(Edit::growth).sum();
    if let Some(what) = what.filter(|_| done.report.rows.is_empty()) {
        let mut row = row(Outcome::Rewritten);
        row.detail = what.into();
        done.report.rows.push(row);
    }
    session.ledger.restore_gained(gained);
    session.ledger.keep();
    done.edits = edits;
    done
}

/// Requests the files that the message names, as far as the limit on growth allows. The engine itself performs no I/O: if a
/// file was not read yet, this round ends, the driver reads the file, and the next round finds it in `answers`.
fn read_named(session: &mut Session<'_>, files: &[Result<NamedFile, Refusal>]) {
    if session.last.is_some() {
        return;
    }
    let mut missing = Vec::new();
    let mut room = session.ledger.room();
    for named in files.iter().flatten() {
        let length = length(session, named);
        let left = length.ok().and_then(|length| room.checked_sub(length));
        if let Some(left) = left {
            room = left;
            let file = need(named);
            missing.extend((session.answers.get(&file).is_none()).then_some(file));
        }
    }
    session.lack(missing);
}

/// Returns the length of a file in bytes. For a file that was already read, this is the length of the content that was
/// read, because the file may have changed since then.
fn length(session: &Session<'_>, named: &NamedFile) -> Result<u64, Refusal> {
    if let Some(Ok(Some(answer))) = session.answers.get(&need(named)) {
        return Ok(answer.len() as u64);
    }
    let length = named.length.clone()?;
    session.policy().judge_size(length)?;
    Ok(length)
}

fn file(
    session: &mut Session<'_>,
    named: &NamedFile,
    note: &EudoraNote,
    shown: Option<&mut Referred>,
    (newline, boundaries): (Newline, &[&[u8]]),
    row: &mut Row,
) -> Result<EudoraFile, Refusal> {
    let policy = session.policy();
    let length = length(session, named)?;
    session
        .ledger
        .would_fit(i64::try_from(length).unwrap_or(i64::MAX))?;
    let Some(answer) = session.read(need(named))? else {
        return Err(not_read());
    };
    session.ledger.hold(answer.len());
    session.ledger.work(answer.len().saturating_mul(3))?;
    let essence = essence_of(note, answer.bytes());
    let obtained = ContentSource::of(essence, answer);
    obtained.describe(row);
    row.detail = Detail::from(format!("{}: ", note.name)).then(row.detail.clone());
    row.media_type = Some(obtained.essence.clone());
    policy.judge_type(&obtained.essence)?;
    let link = shown.and_then(|links| take(links, note.hashes));
    let is_text = obtained.essence.starts_with("text/");
    let octets = obtained.content.bytes();
    let encoded = match is_text.then(|| lines_of(octets)).flatten() {
        // A text with lines that begin with `From ` is encoded in base64 below. Otherwise an mbox would quote these lines
        // and thereby change the file.
        Some(text) if !holds_from(&text) => encode_text(text, newline, boundaries),
        Some(text) => encode_base64(&text, newline),
        None => encode_base64(octets, newline),
    };
    let (shown_in, shown_by) = link.unzip();
    if shown_in.is_some() {
        row.remark("verified: the text refers to this file by a hash that Eudora recorded");
        row.proved = true;
    }
    let stored = StoredContent {
        name: Some(note.name.replace('/', ":")),
        is_inline: shown_by.is_some(),
        content_id: shown_by.clone().and_then(Result::ok),
        link: shown_by.and_then(Result::err),
        ..StoredContent::nameless(obtained)
    };
    let new = stored.written(encoded, newline);
    let gained = (new.len() + AROUND).saturating_sub(note.whole.len());
    session
        .ledger
        .grow(i64::try_from(gained).unwrap_or(i64::MAX))?;
    Ok(EudoraFile { new, shown_in })
}

/// Returns the refusal for a file that the driver has not read yet. The results of this round are discarded, so the user never
/// sees this refusal.
fn not_read() -> Refusal {
    Refusal::temporary(
        Reason::FileNotReadable,
        "the file of the attachment was not read yet",
    )
}

fn essence_of(note: &EudoraNote, octets: &[u8]) -> &'static str {
    let sniffed = || picture::sniff(octets).map(|kind| kind.essence);
    let is_text = memchr::memchr(0, octets).is_none();
    note.essence()
        .filter(|essence| is_text || !essence.starts_with("text/"))
        .or_else(sniffed)
        .unwrap_or(OCTETS)
}

fn holds_from(text: &[u8]) -> bool {
    text.starts_with(b"From ") || memchr::memmem::find(text, b"\nFrom ").is_some()
}

/// Returns a text with its bare CRs (line endings of the Mac) replaced by LF. Returns `None` if the file cannot be treated as
/// text: it contains several kinds of line endings, or a NUL.
fn lines_of(octets: &[u8]) -> Option<Vec<u8>> {
    let count = |octet| memchr::memchr_iter(octet, octets).count();
    let (cr, lf) = (count(b'\r'), count(b'\n'));
    let both = memchr::memmem::find_iter(octets, b"\r\n").count();
    let is_text = memchr::memchr(0, octets).is_none();
    match (cr, lf) {
        _ if !is_text => None,
        (0, _) => Some(octets.to_vec()),
        (_, 0) => {
            let to_lf = |&it| if it == b'\r' { b'\n' } else { it };
            Some(octets.iter().map(to_lf).collect())
        }
        _ if cr == both && lf == both => Some(octets.to_vec()),
        _ => None,
    }
}

fn links(flattened: &FlattenedMessage<'_>) -> Referred {
    let notes = flattened.notes();
    let hashes = notes.flat_map(|note| [note.hashes.0, note.hashes.1]);
    let wanted: HashSet<u32> = hashes.collect();
    let mut links = HashMap::new();
    let is_html = |(_, text): &(usize, &EudoraText)| text.wrapper == Some(Wrapper::Html);
    for (text, html) in flattened.texts().filter(is_html) {
        let document = html.span.of(flattened.message);
        for link in locate_in(document, Syntax::Html).links.iter() {
            let url = link.decoded(document);
            let is_id = starts_like(&url, b"cid:");
            let text_of: Cow<'_, [u8]> = if is_id {
                percent_decode(&url[b"cid:".len()..]).into()
            } else {
                url
            };
            let hash = hash(&text_of);
            if !wanted.contains(&hash) {
                continue;
            }
            let content_id = if is_id {
                token(&text_of, b"<>()\"\\,;:").map(Ok)
            } else {
                token(&text_of, b"<>\"").map(Err)
            };
            if let Some(content_id) = content_id {
                links.entry(hash).or_insert((text, content_id));
            }
        }
    }
    links
}

fn take(links: &mut Referred, (content_id, location): (u32, u32)) -> Option<Link> {
    let is = |hash: u32, by_id: bool| {
        let link = links.get(&hash).filter(|_| hash > 1);
        link.is_some_and(|(_, content_id)| content_id.is_ok() == by_id)
    };
    let hash = if is(content_id, true) {
        content_id
    } else {
        Some(location).filter(|&hash| is(hash, false))?
    };
    links.remove(&hash)
}

fn need(named: &NamedFile) -> Need {
    Need::Neighbour(Neighbour::OfMailbox {
        folder: named.folder,
        name: named.name.clone(),
    })
}
