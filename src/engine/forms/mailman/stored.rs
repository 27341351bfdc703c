//! Converts what Mailman stored on its server to the attachment that it removed.

use std::borrow::Cow;

use super::escape::unescaped;
use crate::engine::content_source::{ContentSource, OCTETS};
use crate::engine::external_body::{ExternalBody, Scrap, TextNote};
use crate::engine::new_part::{AS_A_FILE, StoredContent};
use crate::engine::parts::guessed;
use crate::engine::policy::Policy;
use crate::engine::report::{Reason, Refusal};
use crate::mime::file_type::is_binary;
use crate::mime::media_type::{is_composite, is_page};
use crate::span::front;

/// First word of a stored message. Mailman writes this line before the message.
const ENVELOPE: &[u8] = b"From ";
const ESCAPED: &str = "escaped: the original could not be restored, so the page that Mailman stored, with escaped markup, was inserted";

/// Converts the content that Mailman stored to the attachment that it removed.
pub(super) fn attachment(
    body: &ExternalBody<'_>,
    note: &TextNote,
    mut obtained: ContentSource,
    policy: &Policy,
) -> Result<StoredContent, Refusal> {
    let octets = obtained.content.bytes();
    if !policy.accept_mismatch && is_page_instead(&obtained, note) {
        let detail = "the server returned a web page instead of the file";
        return Err(Refusal::lasting(Reason::TypeMismatch, detail));
    }
    let has_size = |octets: &[u8]| {
        let size = body.size.or(note.message_size);
        size.is_none_or(|size| size == octets.len() as u64)
    };
    let declared = body
        .declared
        .as_ref()
        .map_or(OCTETS, |declared| &*declared.essence);
    let is_message = |octets: &[u8]| has_size(octets) && octets.starts_with(ENVELOPE);
    let mut name = body.file_name.clone();
    let mut remark = None;
    let (essence, was) = match (note.scrap, unescaped(note.scrap, octets)) {
        (Scrap::Message, Some(was)) if is_message(&was) => {
            (declared, Some(without_first_line(was.into_owned())))
        }
        // Some translations of Mailman write From and Date fields into the notes of ordinary files, too. This file has
        // exactly the noted size and does not start with a `From ` line, so it is not a message.
        (Scrap::Message, _) if has_size(octets) => (OCTETS, None),
        (Scrap::Message, None) if octets.starts_with(ENVELOPE) => {
            remark = Some(ESCAPED);
            name = Some(note.stored_name.clone());
            ("text/html", None)
        }
        (Scrap::Html, None) => {
            remark = Some(ESCAPED);
            name = Some(note.stored_name.clone());
            (declared, None)
        }
        (Scrap::Html, Some(Cow::Owned(was))) => (declared, Some(was)),
        (Scrap::File, _) if has_size(octets) && is_composite(declared) => {
            remark = Some(AS_A_FILE);
            (OCTETS, None)
        }
        (Scrap::File, _) if has_size(octets) => (declared, None),
        (Scrap::Html | Scrap::Text, _) => (declared, None),
        (Scrap::File | Scrap::Message | Scrap::Removed, _) => {
            let size = body.size.or(note.message_size).unwrap_or_default();
            let found = octets.len();
            let detail = format!(
                "the note of Mailman in the mail gives a size of {size} bytes, but the content has {found} bytes"
            );
            return Err(Refusal::lasting(Reason::SizeMismatch, detail));
        }
    };
    // The file may be a PDF or a picture, which must not be labelled as text, whatever the server declares.
    let octets = was.as_deref().unwrap_or(octets);
    let is_other = matches!(note.scrap, Scrap::Html | Scrap::Text) && is_binary(octets);
    let essence = match is_other.then(|| guessed(None, octets)) {
        Some(found) if !policy.accept_mismatch => {
            let noted = match note.scrap {
                Scrap::Html => "an HTML attachment",
                _ => "a text",
            };
            let detail =
                format!("the note in the mail describes {noted}, but the content is {found}");
            return Err(Refusal::lasting(Reason::TypeMismatch, detail));
        }
        Some(found) => found,
        None => essence,
    };
    policy.judge_type(essence)?;
    obtained.essence = essence.to_owned();
    if let Some(was) = was {
        obtained.content = obtained.content.with_bytes(was);
    }
    obtained.notes.extend(remark.map(str::to_owned));
    Ok(StoredContent {
        name,
        description: note.description.clone(),
        ..StoredContent::nameless(obtained)
    })
}

fn without_first_line(mut message: Vec<u8>) -> Vec<u8> {
    let end = memchr::memchr(b'\n', &message).map_or(message.len(), |end| end + 1);
    message.drain(..end);
    message
}

/// Returns true if the server sent a page for signing in instead of the file. This is HTML although neither the note nor the
/// name says so, or HTML with the password form of a private archive.
fn is_page_instead(obtained: &ContentSource, note: &TextNote) -> bool {
    let is_html = obtained.source_type.as_deref().is_some_and(is_page);
    let extension = note.stored_name.rsplit('.').next().unwrap_or_default();
    let is_named_so = ["html", "htm", "shtml", "mht"].contains(&extension);
    let is_expected = note.scrap == Scrap::Html || is_named_so;
    is_html && (!is_expected || asks_for_password(obtained.content.bytes()))
}

fn asks_for_password(page: &[u8]) -> bool {
    const LONGEST: usize = 64 << 10;
    let page = front(page, LONGEST).to_ascii_lowercase();
    let holds = |words: &str| memchr::memmem::find(&page, words.as_bytes()).is_some();
    holds("<form") && holds("/private/") && holds("password")
}
