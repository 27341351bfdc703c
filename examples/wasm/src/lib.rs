//! A WebAssembly module with the engine of embody, and its readers of Outlook's files. `run.mjs` uses the module in Node.js:
//!
//! ```sh
//! cd examples/wasm
//! rustup target add wasm32-unknown-unknown
//! cargo build --release --target wasm32-unknown-unknown
//! node run.mjs ../../samples/postcard.in.eml
//! node run.mjs ../../samples/untouched/https.in.eml downloads > whole.eml
//! ```
//!
//! The first `node` command prints the references of a mail, and the content that the engine needs first, as JSON. The second
//! `node` command reads the content of `https://www.example.org/minutes.txt` from the file
//! `downloads/www.example.org/minutes.txt`, and writes the filled mail.
//!
//! The module has no imports. The host (the program that loads the module) and the module exchange text and content in a
//! [`Buffer`]. The host calls [`buffer_data`](buffer::buffer_data) for the address of the bytes, and writes or reads the
//! bytes there.
//!
//! If the host passes a `Box` to a function, the function frees the `Box`, so the host must not use the `Box` again. If a
//! function returns a `Box`, the host must free the `Box` or pass it to another function that takes a `Box`.

mod buffer;

use std::time::{Duration, SystemTime};

use embody::Policy;
use embody::engine::{Answers, Content, Context, Engine, EngineOutcome, Need};
use embody::outlook;
use embody::policy::{Embed, Scheme};
use embody::report::{Reason, Refusal};
use serde_json::{Value, json};

use self::buffer::Buffer;

/// State of the processing of one mail: the mail, and the answers that the host has given so far.
pub struct Session {
    engine: Engine,
    context: Context,
    mail: Vec<u8>,
    answers: Answers,
    /// The needs of the last call of [`session_run`]. A need that has an answer is replaced with `None`.
    needs: Vec<Option<Need>>,
    /// The filled mail. It is empty until a call of [`session_run`] returns no needs.
    output: Vec<u8>,
}

/// Creates a session for a mail, or for a file of Outlook that contains one message (`.msg`, `winmail.dat`). `now` is the current time in milliseconds since 1970, because the module has no clock.
///
/// If `remote` is not 0, the engine also needs content from https servers, and makes pictures that the HTML of the mail shows
/// parts of the mail, except tracking pictures.
#[unsafe(no_mangle)]
pub extern "C" fn session_new(mail: Box<Buffer>, now: f64, remote: u32) -> Box<Session> {
    let mut policy = Policy::default();
    if remote != 0 {
        policy = policy.with_fetch([Scheme::Https]);
        policy = policy.with_embed(Embed {
            data: true,
            remote: true,
            ..Embed::default()
        });
    }
    // `as` never fails: it converts negative numbers and NaN to 0, and numbers that are too large to the largest `u64`.
    let since = Duration::from_millis(now as u64);
    let now = SystemTime::UNIX_EPOCH.checked_add(since);
    let mail = match outlook::convert(&mail.0) {
        Some(Ok(converted)) => converted.content,
        _ => mail.0,
    };
    Box::new(Session {
        engine: Engine::new(policy),
        context: Context::new("mail", now.unwrap_or(SystemTime::UNIX_EPOCH)),
        mail,
        answers: Answers::new(),
        needs: Vec::new(),
        output: Vec::new(),
    })
}

/// Returns the references of the mail, and the expected outcome of each reference, as JSON. This function needs no content
/// from the host.
#[unsafe(no_mangle)]
pub extern "C" fn session_forecast(session: &Session) -> Box<Buffer> {
    let (engine, context) = (&session.engine, &session.context);
    let outcome = engine.forecast(&session.mail, context, Answers::new());
    text(&rows(&outcome))
}

/// Processes the mail as far as the answers allow, and returns a report as JSON.
///
/// The list `needs` in the report contains the content that the engine needs next. If the list is empty, the mail is complete,
/// and [`session_output`] returns it. Otherwise, the host must call [`session_answer`] or [`session_refuse`] for each need
/// before it calls this function again.
#[unsafe(no_mangle)]
pub extern "C" fn session_run(session: &mut Session) -> Box<Buffer> {
    let answers = std::mem::take(&mut session.answers);
    let mut outcome = session.engine.run(&session.mail, &session.context, answers);
    let mut report = rows(&outcome);
    let needs = outcome.needs.take();
    if needs.is_none() {
        session.output = outcome.output().into_bytes().into_owned();
    }
    let (batch, room) = needs.map_or((Vec::new(), 0), |needs| (needs.batch, needs.room));
    report["needs"] = batch.iter().map(need).collect();
    report["room"] = room.into();
    session.answers = std::mem::take(&mut outcome.answers);
    session.needs = batch.into_iter().map(Some).collect();
    text(&report)
}

/// Answers a need of the last report with content, and returns 1. `number` is the position of the need in the list `needs`,
/// from 0. If the source of the content declares no media type, `media_type` must be empty.
///
/// Returns 0 if the list has no need with this number, or if the need already has an answer.
#[unsafe(no_mangle)]
pub extern "C" fn session_answer(
    session: &mut Session,
    number: usize,
    media_type: Box<Buffer>,
    body: Box<Buffer>,
) -> u32 {
    let Some(need) = session.needs.get_mut(number).and_then(Option::take) else {
        return 0;
    };
    let media_type = String::from_utf8_lossy(&media_type.0).into_owned();
    let media_type = Some(media_type).filter(|declared| !declared.is_empty());
    let content = Content::new(need.url().unwrap_or_default(), media_type, body.0);
    session.answers.insert(need, Ok(content.into()));
    1
}

/// Answers a need of the last report with the reason why the content is not available. The engine leaves the part unchanged,
/// and its row in the report contains the reason. The number and the returned value are the same as for [`session_answer`].
#[unsafe(no_mangle)]
pub extern "C" fn session_refuse(session: &mut Session, number: usize, why: Box<Buffer>) -> u32 {
    let Some(need) = session.needs.get_mut(number).and_then(Option::take) else {
        return 0;
    };
    let why = String::from_utf8_lossy(&why.0).into_owned();
    let refusal = Refusal::lasting(Reason::FileNotReadable, why);
    session.answers.insert(need, Err(refusal));
    1
}

/// Returns the filled mail. The buffer is empty if [`session_run`] has not yet returned a report without needs.
#[unsafe(no_mangle)]
pub extern "C" fn session_output(session: &Session) -> Box<Buffer> {
    Box::new(Buffer(session.output.clone()))
}

/// Frees a session.
#[unsafe(no_mangle)]
pub extern "C" fn session_free(_: Box<Session>) {}

fn rows(outcome: &EngineOutcome<'_>) -> Value {
    json!({ "rows": outcome.report.rows, "gained": outcome.report.gained })
}

/// Returns a need as JSON. With the policy of this example, each need is the content of a URL.
fn need(need: &Need) -> Value {
    json!({ "url": need.url(), "accept": need.accept() })
}

fn text(value: &Value) -> Box<Buffer> {
    Box::new(Buffer(value.to_string().into_bytes()))
}
