//! The type of a document, behind the name of its field.

use crate::plan::documents::subtypes;

/// So many octets behind the name are looked at.
pub(super) const LOOKED_AT: usize = 32;

/// Whether what stands behind the name of a Content-Type field may be the type of a document.
///
/// Blanks, folds and comments may stand in front of the type and around the slash (RFC 822 §3.1.4), and
/// [`MediaType::parse`](crate::mime::MediaType::parse) passes over them. Where there are some, it may be one. The lists of
/// fields that DKIM signs are none.
pub(super) fn is_document_type(behind: &[u8]) -> bool {
    let unblanked = |bytes: &mut &[u8]| *bytes = bytes.trim_ascii_start();
    let mut rest = behind.get(..LOOKED_AT).unwrap_or(behind);
    unblanked(&mut rest);
    match rest.split_first() {
        Some((b':', value)) => rest = value,
        // Talk about such a field; or the window ends here.
        Some(_) => return false,
        None => return true,
    }
    unblanked(&mut rest);
    let is_symbol = |byte: &u8| byte.is_ascii_alphanumeric() || b"-.+_".contains(byte);
    let main = rest.iter().take_while(|byte| is_symbol(byte)).count();
    let mut slash = rest.get(main..).unwrap_or_default();
    let is_apart = slash.first().is_some_and(u8::is_ascii_whitespace);
    unblanked(&mut slash);
    let subtype = match slash.split_first() {
        None | Some((b'(', _)) => return true,
        Some((b'/', _)) if is_apart => return true,
        Some((b'/', subtype)) if subtype.first().is_some_and(is_symbol) => subtype,
        Some((b'/', _)) => return true,
        Some(_) => return false,
    };
    subtypes().any(|wanted| {
        // Of what the window cuts off, the start must do.
        let length = wanted.len().min(subtype.len());
        let start = |bytes: &[u8]| bytes.get(..length).map(<[u8]>::to_ascii_lowercase);
        start(subtype) == start(wanted)
    })
}
