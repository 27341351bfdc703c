//! Parses the responses of a server into values that borrow the bytes of the response.
//!
//! The parser accepts more than RFC 3501 allows, because servers send more: bytes above 127 and NUL in text, `]` in keywords,
//! dates with a one-digit day, extensions of Gmail, MYRIGHTS, and deeply nested MIME parts. The crate imap-codec 2.0.0-alpha.10
//! is not used: it rejects each of these, rejects MIME parts from the seventh level on, and does not keep an INTERNALDATE as
//! the server wrote it.
//!
//! Parsing takes linear time. Two limits in `values` bound the memory that one response can use.

mod values;

pub(crate) use values::{
    ResponseValue, announced, fetch_items, is_flag, number, permanent_flags, unclosed_fetch_items,
    values,
};

use crate::detail::{QUOTED, excerpt};

/// First word of a status response. In a tagged response, OK, NO or BAD is the result of the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Condition {
    Ok,
    No,
    Bad,
    Bye,
    PreAuth,
}

/// A status response: its condition, the response code in brackets, and the text after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StatusResponse<'a> {
    pub(crate) condition: Condition,
    /// Name of the response code in upper case. Empty if the response has no code.
    pub(crate) code: String,
    /// Text in the brackets after the name of the code, such as `38575` in `[UIDVALIDITY 38575]`.
    pub(crate) argument: &'a [u8],
    pub(crate) text: &'a [u8],
}

impl StatusResponse<'_> {
    /// Returns the text of the response for display: on one line, and only its start if it is long. Returns the response code if the text is empty.
    pub(crate) fn said(&self) -> String {
        let text = String::from_utf8_lossy(self.text).replace(char::is_control, " ");
        let said = match (text.trim(), self.code.as_str()) {
            ("", "") => "the server gives no reason",
            ("", code) => code,
            (text, _) => text,
        };
        excerpt(said, QUOTED).into_owned()
    }
}

/// One response of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ServerResponse<'a> {
    /// A continuation request, with the text after `+`.
    Continue(&'a [u8]),
    Tagged(&'a [u8], StatusResponse<'a>),
    Status(StatusResponse<'a>),
    /// An untagged response with a number, such as `* 23 EXISTS`: the number, the word in upper case, and the text
    /// after the word.
    Numbered(u32, String, &'a [u8]),
    /// An untagged response without a number, such as `* SEARCH 1 2`: the word in upper case, and the text after
    /// the word.
    Data(String, &'a [u8]),
}

/// Parses one response, which ends in CR LF and contains its literals.
///
/// # Errors
/// A description of the error in the response.
pub(crate) fn response(octets: &[u8]) -> Result<ServerResponse<'_>, &'static str> {
    let without_lf = octets.strip_suffix(b"\n").unwrap_or(octets);
    let line = without_lf.strip_suffix(b"\r").unwrap_or(without_lf);
    if let Some(rest) = line.strip_prefix(b"+") {
        return Ok(ServerResponse::Continue(rest.trim_ascii_start()));
    }
    let (tag, rest) = word(line);
    let (first, behind) = word(rest);
    if tag != b"*" {
        let status =
            status(first, behind).ok_or("the server sent a line that is not a response")?;
        if matches!(status.condition, Condition::Bye | Condition::PreAuth) {
            return Err("the server answered a command with something other than OK, NO or BAD");
        }
        return Ok(ServerResponse::Tagged(tag, status));
    }
    if let Some(status) = status(first, behind) {
        return Ok(ServerResponse::Status(status));
    }
    if let Some(number) = number(first) {
        let number = u32::try_from(number)
            .map_err(|_| "the server sent a message number that is too large")?;
        let (name, rest) = word(behind);
        return Ok(ServerResponse::Numbered(number, upper(name), rest));
    }
    match first {
        [] => Err("the server sent an empty response"),
        name => Ok(ServerResponse::Data(upper(name), behind)),
    }
}

fn upper(word: &[u8]) -> String {
    String::from_utf8_lossy(word).to_ascii_uppercase()
}

/// Splits a line after its first word. Returns the word, and the text after the space.
fn word(line: &[u8]) -> (&[u8], &[u8]) {
    match memchr::memchr(b' ', line) {
        Some(at) => (&line[..at], &line[at + 1..]),
        None => (line, &[]),
    }
}

fn status<'a>(word: &[u8], rest: &'a [u8]) -> Option<StatusResponse<'a>> {
    let condition = [
        ("OK", Condition::Ok),
        ("NO", Condition::No),
        ("BAD", Condition::Bad),
        ("BYE", Condition::Bye),
        ("PREAUTH", Condition::PreAuth),
    ];
    let is_meant = |(name, _): &&(&str, _)| word.eq_ignore_ascii_case(name.as_bytes());
    let (_, condition) = condition.iter().find(is_meant)?;
    let (code, argument, text) = code(rest).unwrap_or((&[], &[], rest));
    Some(StatusResponse {
        condition: *condition,
        code: upper(code),
        argument,
        text,
    })
}

/// Splits `[CODE argument] text` into its three parts. Flags in parentheses may contain a `]`, so the search for the closing
/// bracket starts after the list.
fn code(text: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let inner = text.strip_prefix(b"[")?;
    let behind_list = match memchr::memchr3(b'(', b']', b'\r', inner) {
        Some(at) if inner[at] == b'(' => at + memchr::memchr(b')', &inner[at..])?,
        _ => 0,
    };
    let end = behind_list + memchr::memchr(b']', &inner[behind_list..])?;
    let (code, argument) = word(&inner[..end]);
    Some((code, argument, inner[end + 1..].trim_ascii_start()))
}

/// Returns whether a line is a status response. Such a line ends in text for people. A `{310}` in this text does not
/// announce a literal.
pub(crate) fn is_status(line: &[u8]) -> bool {
    let (_, rest) = word(line);
    let (condition, _) = word(rest);
    ["OK", "NO", "BAD", "BYE", "PREAUTH"]
        .iter()
        .any(|name| condition.eq_ignore_ascii_case(name.as_bytes()))
}

/// Returns the first word of a line, without the line ending. In a response, this word is the tag.
pub(crate) fn tag(line: &[u8]) -> &[u8] {
    let line = line.trim_ascii_end();
    word(line).0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn responses_are_told_apart() {
        let ok = |code: &str, argument: &'static [u8], text: &'static [u8]| StatusResponse {
            condition: Condition::Ok,
            code: code.to_owned(),
            argument,
            text,
        };
        for (line, is) in [
            (
                b"+ go on\r\n".as_slice(),
                ServerResponse::Continue(b"go on"),
            ),
            (b"+\r\n", ServerResponse::Continue(b"")),
            (
                b"a1 ok done\r\n",
                ServerResponse::Tagged(b"a1", ok("", b"", b"done")),
            ),
            (
                b"* OK [UIDNEXT 7] next\r\n",
                ServerResponse::Status(ok("UIDNEXT", b"7", b"next")),
            ),
            (
                b"* OK [PERMANENTFLAGS (a]b \\*)] x\r\n",
                ServerResponse::Status(ok("PERMANENTFLAGS", b"(a]b \\*)", b"x")),
            ),
            (b"* OK\r\n", ServerResponse::Status(ok("", b"", b""))),
            (
                b"* OK caf\xe9 [x\r\n",
                ServerResponse::Status(ok("", b"", b"caf\xe9 [x")),
            ),
            (
                b"* 23 exists\r\n",
                ServerResponse::Numbered(23, "EXISTS".into(), b""),
            ),
            (
                b"* 1 FETCH (UID 5)\r\n",
                ServerResponse::Numbered(1, "FETCH".into(), b"(UID 5)"),
            ),
            (b"* SEARCH\r\n", ServerResponse::Data("SEARCH".into(), b"")),
            (
                b"* LIST () \"/\" a\r\n",
                ServerResponse::Data("LIST".into(), b"() \"/\" a"),
            ),
        ] {
            assert_eq!(response(line), Ok(is), "{}", line.escape_ascii());
        }
        for line in [
            b"\r\n".as_slice(),
            b"* \r\n",
            b"HTTP/1.1 200 OK\r\n",
            b"a1 BYE x\r\n",
            b"* 99999999999 EXISTS\r\n",
        ] {
            assert!(response(line).is_err(), "{}", line.escape_ascii());
        }
        assert_eq!(announced(b"* 1 FETCH (BODY[] {310}"), Some(310));
        assert_eq!(announced(b"x {99999999999999999999}"), Some(u64::MAX));
        assert_eq!(announced(b"x {}"), None);
        assert_eq!(announced(b"x {1a}"), None);
    }
}
