//! The WebAssembly module of `embody.html` and of the npm package: the module `embody::view` for JavaScript.
//!
//! The module has no imports. The host (`embody.js`) and the module exchange text and content in a [`Buffer`]. The host calls
//! [`buffer_data`](buffer::buffer_data) for the address of the bytes, and writes or reads the bytes there.
//!
//! If the host passes a `Box` to a function, the function frees the `Box`, so the host must not use the `Box` again. If a
//! function returns a `Box`, the host must free the `Box` or pass it to another function that takes a `Box`.
//!
//! A function that can fail returns an object that contains the failure. The JSON of such an object then has only the field
//! `error`, with a sentence for a person.

#[path = "../../../examples/wasm/src/buffer.rs"]
mod buffer;

use std::time::{Duration, SystemTime};

use embody::view::{MailFile, MailView, ViewError};
use serde_json::{Value, json};

use self::buffer::Buffer;

/// A file, or the reason why it cannot be opened.
pub struct OpenedFile(Result<MailFile, ViewError>);

/// A mail, or the reason why it cannot be shown.
pub struct OpenedMail(Result<MailView, ViewError>);

/// Opens a file with the name `name`.
#[unsafe(no_mangle)]
pub extern "C" fn file_open(bytes: Box<Buffer>, name: Box<Buffer>) -> Box<OpenedFile> {
    Box::new(OpenedFile(MailFile::open(bytes.0, &text(&name))))
}

/// Returns the format, the number of mails and the notes of a file, as JSON.
#[unsafe(no_mangle)]
pub extern "C" fn file_info(file: &OpenedFile) -> Box<Buffer> {
    written(file.0.as_ref().map(
        |file| json!({ "format": file.format(), "length": file.len(), "notes": file.notes() }),
    ))
}

/// Returns the summaries of `count` mails from position `from`, as a JSON list.
#[unsafe(no_mangle)]
pub extern "C" fn file_summaries(file: &OpenedFile, from: usize, count: usize) -> Box<Buffer> {
    written(file.0.as_ref().map(|file| {
        let indexes = from..from.saturating_add(count).min(file.len());
        indexes.map(|index| json!(file.summary(index))).collect()
    }))
}

/// Opens the mail at position `index` of a file. `now` is the current time in milliseconds since 1970.
#[unsafe(no_mangle)]
pub extern "C" fn file_mail(file: &OpenedFile, index: usize, now: f64) -> Box<OpenedMail> {
    let mail = file.0.as_ref().map_err(Clone::clone);
    Box::new(OpenedMail(
        mail.and_then(|file| file.mail(index, time(now))),
    ))
}

#[unsafe(no_mangle)]
pub extern "C" fn file_free(_: Box<OpenedFile>) {}

/// Opens a mail, for example a mail inside another one. `now` is the current time in milliseconds since 1970.
#[unsafe(no_mangle)]
pub extern "C" fn mail_new(mail: Box<Buffer>, now: f64) -> Box<OpenedMail> {
    Box::new(OpenedMail(Ok(MailView::new(mail.0, time(now)))))
}

/// Returns everything about a mail except the content of its parts, as JSON.
#[unsafe(no_mangle)]
pub extern "C" fn mail_info(mail: &OpenedMail) -> Box<Buffer> {
    written(mail.0.as_ref().map(|mail| {
        json!({
            "header": mail.header(),
            "date": mail.date(),
            "bodies": mail.bodies(),
            "protection": mail.protection(),
            "parts": mail.parts(),
            "references": mail.references(),
            "wrapped_links": mail.wrapped_links(),
            "notes": mail.notes(),
        })
    }))
}

/// Returns the decoded content of a part. It is empty if there is no such part.
#[unsafe(no_mangle)]
pub extern "C" fn mail_content(mail: &OpenedMail, part: usize) -> Box<Buffer> {
    let mail = mail.0.as_ref().ok();
    let content = mail.and_then(|mail| mail.content(part));
    Box::new(Buffer(content.unwrap_or_default()))
}

/// Puts a file in the place of a reference, and returns `{}` as JSON. If the type of the file is unknown, `media_type` must be
/// empty.
#[unsafe(no_mangle)]
pub extern "C" fn mail_fill(
    mail: &mut OpenedMail,
    reference: usize,
    bytes: Box<Buffer>,
    media_type: Box<Buffer>,
) -> Box<Buffer> {
    let filled = match &mut mail.0 {
        Ok(mail) => mail.fill(reference, bytes.0, Some(&text(&media_type))),
        Err(why) => Err(why.clone()),
    };
    written(filled.as_ref().map(|()| json!({})))
}

/// Returns the repaired mail.
#[unsafe(no_mangle)]
pub extern "C" fn mail_repaired(mail: &OpenedMail) -> Box<Buffer> {
    let mail = mail.0.as_ref().ok();
    Box::new(Buffer(mail.map(MailView::repaired).unwrap_or_default()))
}

/// Returns the mail as it was opened.
#[unsafe(no_mangle)]
pub extern "C" fn mail_original(mail: &OpenedMail) -> Box<Buffer> {
    let mail = mail.0.as_ref().ok();
    let original = mail.map(|mail| mail.original().to_vec());
    Box::new(Buffer(original.unwrap_or_default()))
}

#[unsafe(no_mangle)]
pub extern "C" fn mail_free(_: Box<OpenedMail>) {}

fn time(now: f64) -> SystemTime {
    // `as` never fails: it converts negative numbers and NaN to 0, and numbers that are too large to the largest `u64`.
    let since = Duration::from_millis(now as u64);
    SystemTime::UNIX_EPOCH
        .checked_add(since)
        .unwrap_or(SystemTime::UNIX_EPOCH)
}

fn text(buffer: &Buffer) -> String {
    String::from_utf8_lossy(&buffer.0).into_owned()
}

fn written(value: Result<Value, &ViewError>) -> Box<Buffer> {
    let value = value.unwrap_or_else(|why| json!({ "error": why.to_string() }));
    Box::new(Buffer(value.to_string().into_bytes()))
}
