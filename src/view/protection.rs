//! Texts that need a key, or a program with S/MIME.

use super::bodies::ShownBody;
use super::source::decoded;
use crate::detail::words;
use crate::engine::external_body::shown_name;
use crate::mime::{MediaType, MessageTree, PartId};
use crate::span::front;

words! {
    /// The form of a text that the view cannot show, although the mail contains the text.
    #[derive(serde::Serialize)]
    #[serde(rename_all = "kebab-case")]
    #[non_exhaustive]
    pub enum TextProtection {
        Smime "smime" "Encrypted with S/MIME. The recipient's private key is necessary.";
        Openpgp "openpgp" "Encrypted with OpenPGP, as PGP/MIME or inside the text. The recipient's private key is necessary.";
        Rights "rights" "Encrypted by a Microsoft server (Rights Management). The recipient's Microsoft account is necessary.";
        SmimeSigned "smime-signed" "Signed with S/MIME, not encrypted. The signature contains the text, so a program with S/MIME is necessary.";
    }
}

/// Content types of the Cryptographic Message Syntax, as DER object identifiers (RFC 5652, RFC 5083).
const SIGNED_DATA: &[u8] = b"\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x07\x02";
const ENVELOPED_DATA: &[u8] = b"\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x07\x03";
const AUTH_ENVELOPED_DATA: &[u8] = b"\x06\x0b\x2a\x86\x48\x86\xf7\x0d\x01\x09\x10\x01\x17";
/// Number of bytes in which the object identifier begins. Only the tag and the length of the outer sequence precede it.
const CMS_START: usize = 32;

/// Returns the form of the first protected text. Texts of mails inside the mail are not included.
pub(super) fn protection(tree: &MessageTree<'_>, bodies: &[ShownBody]) -> Option<TextProtection> {
    let mut parts = tree.ids().filter(|id| tree.message_of(*id) == PartId::ROOT);
    parts.find_map(|id| of_part(tree, id)).or_else(|| {
        bodies
            .iter()
            .any(has_armor)
            .then_some(TextProtection::Openpgp)
    })
}

fn of_part(tree: &MessageTree<'_>, id: PartId) -> Option<TextProtection> {
    match tree.part(id).essence.as_str() {
        "application/pkcs7-mime" | "application/x-pkcs7-mime" => of_cms(tree, id),
        // Servers change the type of the multipart, so the control part counts as well.
        "multipart/encrypted" | "application/pgp-encrypted" => Some(TextProtection::Openpgp),
        "application/x-microsoft-rpmsg-message" => Some(TextProtection::Rights),
        // Some servers replace the type by this one, and keep the name.
        "application/octet-stream" if is_named_p7m(tree, id) => of_cms(tree, id),
        _ => None,
    }
}

fn is_named_p7m(tree: &MessageTree<'_>, id: PartId) -> bool {
    shown_name(tree.original, tree.fields(id))
        .is_some_and(|name| name.to_ascii_lowercase().ends_with(".p7m"))
}

/// Returns the form of an S/MIME part by its content, otherwise by its `smime-type`. Outlook stores a part without this
/// parameter.
fn of_cms(tree: &MessageTree<'_>, id: PartId) -> Option<TextProtection> {
    let content = decoded(tree, id);
    let start = front(&content, CMS_START);
    let contains = |identifier: &[u8]| memchr::memmem::find(start, identifier).is_some();
    if contains(ENVELOPED_DATA) || contains(AUTH_ENVELOPED_DATA) {
        return Some(TextProtection::Smime);
    }
    if contains(SIGNED_DATA) {
        return Some(TextProtection::SmimeSigned);
    }
    let value = tree.value(id, "Content-Type")?;
    let declared = MediaType::parse(value).parameter("smime-type")?;
    match declared.trim_ascii().to_ascii_lowercase().as_slice() {
        b"enveloped-data" | b"authenveloped-data" => Some(TextProtection::Smime),
        b"signed-data" => Some(TextProtection::SmimeSigned),
        _ => None,
    }
}

/// Whether a text contains a message in the ASCII armor of OpenPGP (RFC 9580 section 6.2). A line of prose can mention the
/// first line, so the last line must follow.
fn has_armor(shown: &ShownBody) -> bool {
    let texts = [&shown.body.text, &shown.body.html];
    texts.into_iter().flatten().any(|text| {
        let begin = text.split_once("-----BEGIN PGP MESSAGE-----");
        begin.is_some_and(|(_, rest)| rest.contains("-----END PGP MESSAGE-----"))
    })
}
