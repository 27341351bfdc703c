//! The engine of embody in WebAssembly. `run.mjs` drives it in Node.js:
//!
//! ```sh
//! cd examples/wasm
//! rustup target add wasm32-unknown-unknown
//! cargo build --release --target wasm32-unknown-unknown
//! node run.mjs ../../samples/postcard.in.eml
//! node run.mjs ../../samples/untouched/https.in.eml downloads > whole.eml
//! ```
//!
//! The first `node` command prints the references and the needs of a mail as JSON. The second one takes the content of
//! `https://www.example.org/minutes.txt` from the file `downloads/www.example.org/minutes.txt`, and writes the filled mail.
//!
//! The module has no imports. Text and content cross its border in a [`Buffer`], which the host fills or reads: it asks for the
//! address with [`buffer_data`]. Functions that take a `Box` own what they get, so the host must not use it again; a `Box` that a
//! function returns belongs to the host, which frees it or hands it to another function.

use std::time::{Duration, SystemTime};

use embody::Policy;
use embody::engine::{Answers, Content, Context, Engine, Need, Outcome};
use embody::policy::{Embed, Scheme};
use embody::report::{Reason, Refusal};
use serde_json::{Value, json};

/// Bytes in the memory of the module.
pub struct Buffer(Vec<u8>);

/// One mail, and the answers so far.
pub struct Session {
    engine: Engine,
    context: Context,
    mail: Vec<u8>,
    answers: Answers,
    /// The needs of the last round that have no answer yet.
    needs: Vec<Option<Need>>,
    /// The filled mail, after a round without needs.
    output: Vec<u8>,
}

#[unsafe(no_mangle)]
pub extern "C" fn buffer_new(length: usize) -> Box<Buffer> {
    Box::new(Buffer(vec![0; length]))
}

#[unsafe(no_mangle)]
pub extern "C" fn buffer_data(buffer: &mut Buffer) -> *mut u8 {
    buffer.0.as_mut_ptr()
}

#[unsafe(no_mangle)]
pub extern "C" fn buffer_length(buffer: &Buffer) -> usize {
    buffer.0.len()
}

#[unsafe(no_mangle)]
pub extern "C" fn buffer_free(_: Box<Buffer>) {}

/// Begins to work on a mail. `now` is the time in milliseconds since 1970, because a module has no clock. If `remote` is not 0,
/// content on https servers is needed too, and every picture that the mail shows becomes a part of it.
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
    // The conversion of a number that is negative, too large or not a number gives the nearest time.
    let since = Duration::from_millis(now as u64);
    let now = SystemTime::UNIX_EPOCH.checked_add(since);
    Box::new(Session {
        engine: Engine::new(policy),
        context: Context::new("mail", now.unwrap_or(SystemTime::UNIX_EPOCH)),
        mail: mail.0,
        answers: Answers::new(),
        needs: Vec::new(),
        output: Vec::new(),
    })
}

/// Returns the references of the mail, and what would become of each, as JSON. Nothing is needed for it.
#[unsafe(no_mangle)]
pub extern "C" fn session_forecast(session: &Session) -> Box<Buffer> {
    let (engine, context) = (&session.engine, &session.context);
    let outcome = engine.forecast(&session.mail, context, Answers::new());
    text(&rows(&outcome))
}

/// Works on the mail as far as the answers allow, and returns a report as JSON: `needs` is empty if the mail is done, and
/// [`session_output`] has it. Each need must be answered or refused before the next call.
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

/// Answers a need of the last report with content. `number` is its place in the report, counted from 0. An empty `media_type`
/// means that the source declares none. Returns 0 if there is no such need, or it was answered before.
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

/// Answers a need of the last report with the reason why there is no content. The part stays as it is, and its row has the
/// reason. Returns 0 as [`session_answer`] does.
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

/// Returns the filled mail. It is empty as long as the last report has needs.
#[unsafe(no_mangle)]
pub extern "C" fn session_output(session: &Session) -> Box<Buffer> {
    Box::new(Buffer(session.output.clone()))
}

/// Ends the work on a mail.
#[unsafe(no_mangle)]
pub extern "C" fn session_free(_: Box<Session>) {}

fn rows(outcome: &Outcome<'_>) -> Value {
    json!({ "rows": outcome.report.rows, "gained": outcome.report.gained })
}

/// With the policy of this example, each need is the content of a URL.
fn need(need: &Need) -> Value {
    json!({ "url": need.url(), "accept": need.accept() })
}

fn text(value: &Value) -> Box<Buffer> {
    Box::new(Buffer(value.to_string().into_bytes()))
}
