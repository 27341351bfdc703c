//! The texts of a mail that a mail program shows, and how it chooses between alternatives.

use super::source::{decoded, is_attached};
use crate::link::{html, label};
use crate::mime::{MediaType, MessageTree, PartId, PartKind, charset};

/// One text of a mail, in the order in which a mail program shows them. Most mails have one. A mailing list can add a footer
/// as a second one.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
#[non_exhaustive]
pub struct BodyView {
    /// Decoded HTML as the sender wrote it: it must be sanitised, and its requests blocked, before it is shown. `None`
    /// if the sender wrote plain text.
    pub html: Option<String>,
    /// The plain text. `None` if the sender wrote only HTML.
    pub text: Option<String>,
}

/// A displayed text, with the part that contains it.
pub(super) struct ShownBody {
    pub(super) body: BodyView,
    pub(super) parts: Vec<PartId>,
}

/// Returns the texts of the message at the root. Texts of messages inside it are not included.
pub(super) fn bodies(tree: &MessageTree<'_>) -> Vec<ShownBody> {
    of_part(tree, PartId::ROOT)
}

// The recursion is as deep as the parts are nested, which the scanner limits.
fn of_part(tree: &MessageTree<'_>, id: PartId) -> Vec<ShownBody> {
    let part = tree.part(id);
    match &part.content {
        PartKind::Leaf => of_leaf(tree, id).into_iter().collect(),
        PartKind::Message | PartKind::Opaque(_) => Vec::new(),
        PartKind::Multipart(multipart)
            if part.children.is_empty()
                && multipart.close.is_none()
                && multipart.overflow.is_none() =>
        {
            undivided(tree, id).into_iter().collect()
        }
        PartKind::Multipart(_) => {
            let mut children = part.children.iter().map(|child| of_part(tree, *child));
            match part.essence.as_str() {
                "multipart/alternative" => alternative(children.collect()),
                // Only the first part is text: the other parts of a multipart/related are its pictures, and the second
                // part of a multipart/signed is the signature.
                "multipart/related" | "multipart/signed" => {
                    children.find(|it| !it.is_empty()).unwrap_or_default()
                }
                _ => children.flatten().collect(),
            }
        }
    }
}

/// Returns the body of a multipart without a boundary line as its text. Eudora stores mail in this form, and keeps the header
/// of the multipart. HTML is in its element `x-html`.
fn undivided(tree: &MessageTree<'_>, id: PartId) -> Option<ShownBody> {
    let bytes = decoded(tree, id);
    let start = bytes.trim_ascii();
    if start.is_empty() {
        return None;
    }
    let is_html = start.starts_with(b"<x-html>");
    let shown = Some(text_of(&bytes, None, is_html));
    let (html, text) = if is_html {
        (shown, None)
    } else {
        (None, shown)
    };
    Some(ShownBody {
        body: BodyView { html, text },
        parts: vec![id],
    })
}

/// Chooses the richest alternative, which is the last one with HTML (RFC 2046 §5.1.4), and keeps the plain text for programs
/// and people that prefer it.
fn alternative(children: Vec<Vec<ShownBody>>) -> Vec<ShownBody> {
    let has_html = |bodies: &[ShownBody]| bodies.iter().any(|it| it.body.html.is_some());
    let best = children
        .iter()
        .rposition(|bodies| has_html(bodies))
        .or_else(|| children.iter().rposition(|bodies| !bodies.is_empty()));
    let mut texts: Vec<String> = Vec::new();
    let mut parts = Vec::new();
    let mut chosen = Vec::new();
    for (index, bodies) in children.into_iter().enumerate() {
        if Some(index) == best {
            chosen = bodies;
            continue;
        }
        for body in bodies {
            parts.extend(body.parts);
            texts.extend(body.body.text);
        }
    }
    if let Some(first) = chosen.first_mut() {
        first.parts.extend(parts);
        if first.body.text.is_none() && !texts.is_empty() {
            first.body.text = Some(texts.join("\n"));
        }
    }
    chosen
}

fn of_leaf(tree: &MessageTree<'_>, id: PartId) -> Option<ShownBody> {
    let part = tree.part(id);
    let is_html = matches!(part.essence.as_str(), "text/html" | "application/xhtml+xml");
    if !(is_html || part.essence == "text/plain") || is_attached(tree, id) {
        return None;
    }
    let bytes = decoded(tree, id);
    let declared = tree.value(id, "Content-Type").and_then(|value| {
        MediaType::parse(value)
            .parameter("charset")
            .map(|it| it.into_owned())
    });
    let text = text_of(&bytes, declared.as_deref(), is_html);
    let body = if is_html {
        BodyView {
            html: Some(text),
            text: None,
        }
    } else {
        BodyView {
            html: None,
            text: Some(text),
        }
    };
    Some(ShownBody {
        body,
        parts: vec![id],
    })
}

/// Decodes a text for display: in its declared charset, in that of its `<meta>`, in UTF-8, or in windows-1252.
fn text_of(bytes: &[u8], declared: Option<&[u8]>, is_html: bool) -> String {
    let named = |label: &[u8]| charset::decode_lossily(label, bytes).map(|it| it.into_owned());
    // A label that could be read as ASCII proves that the document is not UTF-16, whatever the label says.
    let in_document = || {
        html::locate_in(bytes, html::Syntax::Html)
            .charset
            .or_else(|| label::in_xml_declaration(bytes).map(<[u8]>::to_vec))
            .filter(|label| !charset::is_utf16_label(label))
    };
    declared
        .and_then(named)
        .or_else(|| charset::decode_undeclared(bytes).map(|it| it.into_owned()))
        .or_else(|| {
            is_html
                .then(in_document)
                .flatten()
                .and_then(|it| named(&it))
        })
        .unwrap_or_else(|| encoding_rs::WINDOWS_1252.decode(bytes).0.into_owned())
}
