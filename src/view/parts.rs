//! The parts of a mail as a person sees them: attachments, pictures, mails inside the mail.

use std::collections::{HashMap, HashSet};

use super::bodies::ShownBody;
use super::source::{PartSource, decoded, field_text};
use crate::detail::words;
use crate::engine::external_body::shown_name;
use crate::engine::forms::references;
use crate::engine::outlook::compose::RTF_BODY;
use crate::engine::policy::{Follow, Followed, Policy, ReferenceParse};
use crate::mime::header::unfold;
use crate::mime::{MessageTree, PartId, PartKind, picture};

words! {
    /// Role of a part for the user.
    #[derive(serde::Serialize)]
    #[serde(rename_all = "kebab-case")]
    #[non_exhaustive]
    pub enum PartRole {
        Body "body" "A text that is shown, or an alternative of it.";
        Picture "picture" "A picture that the HTML shows in the text.";
        Attachment "attachment" "A file.";
        RichText "rich-text" "The text of a message of Outlook with its formatting, as RTF. The plain text is a body.";
        Message "message" "A mail inside the mail. It can be opened as a mail of its own.";
        Note "note" "A note for programs. It is in place of content that is elsewhere, which the list of references describes, or precedes encrypted content.";
    }
}

/// A part of a mail that is not a multipart.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
#[non_exhaustive]
pub struct PartView {
    /// Number of the part, as in IMAP, in the mail after its forms were opened.
    pub number: String,
    /// Role of the part for the user.
    pub role: PartRole,
    /// Name of the file. A part without a name gets one.
    pub name: String,
    /// The media type, as `type/subtype` in lower case. Pictures have the type of their first bytes.
    pub media_type: String,
    /// Size of the decoded content, in bytes.
    pub size: u64,
    /// The Content-ID without `<` and `>`, which a `cid:` URL in the HTML names.
    pub content_id: Option<String>,
    /// The Content-Location, by which the HTML can name the part too.
    pub location: Option<String>,
    /// For a part of an enclosed mail, the position of that mail in the list. `None` for parts of the mail itself.
    pub inside: Option<usize>,
}

/// Returns the parts of a mail that are not multiparts, and where their content is.
pub(super) fn parts(tree: &MessageTree<'_>, bodies: &[ShownBody]) -> Vec<(PartSource, PartView)> {
    let shown: HashSet<PartId> = bodies
        .iter()
        .flat_map(|it| it.parts.iter().copied())
        .collect();
    let named: HashSet<String> = bodies
        .iter()
        .filter_map(|it| it.body.html.as_deref())
        .flat_map(content_ids)
        .collect();
    let mut found: Vec<(PartSource, PartView)> = Vec::new();
    let reading = Policy::default().with_follow(Followed::all()).reading();
    // Positions of the enclosed mails in the list, by the id of their root part.
    let mut messages: HashMap<PartId, usize> = HashMap::new();
    for id in tree.ids() {
        let part = tree.part(id);
        let is_message = part.content == PartKind::Message;
        // An enclosed mail is in the list as the part that contains it, so parts of this mail refer to that position.
        let inside = messages.get(&tree.message_of(id)).copied();
        if matches!(part.content, PartKind::Multipart(_)) {
            continue;
        }
        let content = decoded(tree, id);
        let is_encoded_message = part.essence == "message/rfc822";
        let media_type = picture::sniff(&content)
            .map_or_else(|| part.essence.clone(), |it| it.essence.to_owned());
        let content_id = tree.value(id, "Content-ID").map(content_id);
        let is_named = content_id.as_ref().is_some_and(|id| named.contains(id));
        let role = if is_message || is_encoded_message {
            PartRole::Message
        } else if shown.contains(&id) {
            PartRole::Body
        } else if part.essence == "application/pgp-encrypted" || is_note(tree, id, &reading) {
            PartRole::Note
        } else if is_rich_text(tree, id) {
            PartRole::RichText
        } else if is_named && media_type.starts_with("image/") {
            PartRole::Picture
        } else {
            PartRole::Attachment
        };
        let number = tree.number(id);
        let name = shown_name(tree.original, tree.fields(id))
            .unwrap_or_else(|| name_for(tree, id, role, &number, &media_type));
        if is_message && let Some(root) = part.children.first() {
            messages.insert(*root, found.len());
        }
        found.push((
            PartSource::of(part),
            PartView {
                number,
                role,
                name: safe_name(&name),
                media_type,
                size: content.len() as u64,
                content_id,
                location: tree
                    .value(id, "Content-Location")
                    .map(|it| String::from_utf8_lossy(&unfold(it)).trim().to_owned()),
                inside,
            },
        ));
    }
    found
}

/// Whether the part is only a note that a program left in place of an attachment. Such a part is not a file for the
/// user.
fn is_note(tree: &MessageTree<'_>, id: PartId, reading: &ReferenceParse) -> bool {
    references::read(tree, id, reading)
        .is_some_and(|body| body.follow().is_none_or(Follow::is_attachment))
}

/// Whether the part is the RTF body of a message of Outlook. A mail cannot have an RTF body, so the part is attached under
/// this name, by embody and by other programs that convert such messages.
fn is_rich_text(tree: &MessageTree<'_>, id: PartId) -> bool {
    matches!(
        tree.part(id).essence.as_str(),
        "application/rtf" | "text/rtf"
    ) && shown_name(tree.original, tree.fields(id)).as_deref() == Some(RTF_BODY)
}

/// Returns a name for a part without one: the subject of a mail, or the number of the part.
fn name_for(
    tree: &MessageTree<'_>,
    id: PartId,
    role: PartRole,
    number: &str,
    media_type: &str,
) -> String {
    const LONGEST: usize = 80;
    if role == PartRole::Message {
        let child = tree.part(id).children.first();
        let subject = child
            .and_then(|child| tree.value(*child, "Subject"))
            .map(|it| field_text(it, None))
            .filter(|it| !it.trim().is_empty());
        let stem: String = subject
            .as_deref()
            .map_or("mail", str::trim)
            .chars()
            .take(LONGEST)
            .collect();
        return format!("{stem}.eml");
    }
    let suffix = match media_type {
        "text/plain" => "txt",
        "text/html" => "html",
        "text/calendar" => "ics",
        "image/jpeg" => "jpg",
        "image/svg+xml" => "svg",
        "application/pdf" => "pdf",
        "application/pkcs7-signature" => "p7s",
        "application/pgp-signature" => "asc",
        "application/octet-stream" => "bin",
        other => {
            let subtype = other.split('/').nth(1).unwrap_or_default();
            let is_suffix =
                |it: &&str| it.len() <= 5 && it.bytes().all(|b| b.is_ascii_alphanumeric());
            Some(subtype)
                .filter(is_suffix)
                .filter(|it| !it.is_empty())
                .unwrap_or("bin")
        }
    };
    let number = if number.is_empty() { "1" } else { number };
    format!("part-{number}.{suffix}")
}

/// Returns a name without characters that a file name must not contain, and without a path.
pub(super) fn safe_name(name: &str) -> String {
    const LONGEST: usize = 200;
    let is_bad = |it: char| it.is_control() || "/\\:*?\"<>|".contains(it) || is_reordering(it);
    let safe: String = name
        .chars()
        .take(LONGEST)
        .map(|it| if is_bad(it) { '_' } else { it })
        .collect();
    match safe.trim_matches(|it: char| it == '.' || it.is_whitespace()) {
        "" => "file".to_owned(),
        trimmed => trimmed.to_owned(),
    }
}

/// Returns whether a character changes the order in which a name is shown, which can disguise its suffix: `annexe.txt` can be
/// shown for a file that ends in `.exe`.
fn is_reordering(character: char) -> bool {
    matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}')
}

fn content_id(value: &[u8]) -> String {
    let unfolded = String::from_utf8_lossy(&unfold(value)).into_owned();
    let trimmed = unfolded.trim();
    let opened = trimmed.strip_prefix('<').unwrap_or(trimmed);
    opened.strip_suffix('>').unwrap_or(opened).to_owned()
}

/// Returns the Content-IDs that the `cid:` URLs of a document name, decoded.
fn content_ids(html: &str) -> impl Iterator<Item = String> {
    memchr::memmem::find_iter(html.as_bytes(), b"cid:").map(|at| {
        let rest = html.get(at + 4..).unwrap_or_default();
        let ends = |it: char| it.is_whitespace() || "\"'()<>&;,".contains(it);
        let id = rest.split(ends).next().unwrap_or_default();
        percent_encoding::percent_decode_str(id)
            .decode_utf8_lossy()
            .into_owned()
    })
}
