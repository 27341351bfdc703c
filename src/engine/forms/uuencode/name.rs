//! Names of uuencoded files. The format declares no charset, so the charset of the text is used.

use crate::engine::report::{Reason, Refusal};
use crate::mime::charset::{decode, decode_undeclared, decode_western};
use crate::mime::encoded_words::decoded_name;

/// Maximum length of a file name in bytes.
const LONGEST: usize = 255;

/// Returns the name of a file without its directory. Returns `None` if it cannot be decoded, or if it is no name of a file.
pub(super) fn decoded(octets: &[u8], charset: Option<&[u8]>) -> Option<String> {
    let text = text(octets, charset)?;
    let name = text.trim().rsplit(['/', '\\']).next()?.trim();
    let is_fit = !name.is_empty()
        && name.len() <= LONGEST
        && name != "."
        && name != ".."
        && !name.contains(char::REPLACEMENT_CHARACTER)
        && !name.chars().any(char::is_control);
    is_fit.then(|| name.to_owned())
}

/// Decodes a name: RFC 2047, then the declared charset of the text, then UTF-8. If no charset is declared, or a wrong one, a
/// name with a few letters that are not ASCII is Western European.
fn text(octets: &[u8], charset: Option<&[u8]>) -> Option<String> {
    if octets.is_ascii() && memchr::memmem::find(octets, b"=?").is_some() {
        return decoded_name(octets);
    }
    let declared = charset.and_then(|charset| decode(charset, octets));
    declared
        .or_else(|| decode_undeclared(octets))
        .or_else(|| decode_western(octets))
        .map(std::borrow::Cow::into_owned)
}

pub(super) fn refused() -> Refusal {
    let detail = "the name of a uuencoded file cannot be decoded, so the file stays in the text";
    Refusal::lasting(Reason::CharsetNotSupported, detail)
}
