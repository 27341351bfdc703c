//! Reads RTF bodies, and extracts the HTML or text that they encapsulate (MS-OXRTFEX).
//!
//! The result is UTF-8. `\'hh` is decoded with the code page of the current font, and `\uN` can be half of a surrogate pair.
//! Any input is accepted, and the output is at most about ten times as long as the input.

mod reader;
mod token;

use self::token::{RtfToken, Tokens};

pub use self::reader::read;

/// Reason why RTF is incomplete or damaged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RtfDamage {
    /// The header of the compressed RTF is missing or unknown.
    Header,
    /// The checksum in the header does not match the bytes.
    Checksum,
    /// The content is shorter than the header declares, or its last group is not closed.
    Truncated,
    /// A character does not exist in its code page, or the code page is unknown.
    Charset,
}

/// Source format from which a mail program generated the RTF.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RtfOrigin {
    /// The RTF encapsulates this HTML (`\fromhtml1`).
    Html,
    /// The RTF encapsulates this text (`\fromtext`).
    Text,
    /// The RTF encapsulates nothing. The result is the text that the RTF displays, without formatting.
    Rtf,
}

/// The text that was extracted from RTF.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RtfText {
    pub source: RtfOrigin,
    /// The text, with LF line endings.
    pub text: String,
    pub damage: Option<RtfDamage>,
}

/// Returns the source format of the RTF. Its control word is in the first group, before the tables (MS-OXRTFEX 2.1.3.1).
fn source(rtf: &[u8]) -> RtfOrigin {
    const LOOKED_AT: usize = 64;
    for token in Tokens::of(rtf).take(LOOKED_AT) {
        match token {
            RtfToken::Word(b"fromhtml", parameter) if parameter != Some(0) => {
                return RtfOrigin::Html;
            }
            RtfToken::Word(b"fromtext", _) => return RtfOrigin::Text,
            RtfToken::Word(b"fonttbl", _) => break,
            _ => {}
        }
    }
    RtfOrigin::Rtf
}
