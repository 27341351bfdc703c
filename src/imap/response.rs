//! What a server says, read into values that borrow its octets.
//!
//! It takes more than RFC 3501 allows, because servers say more: octets above 127 and NUL in text, `]` in keywords, days of one
//! digit, extensions of Gmail, MYRIGHTS, parts within parts to any depth. The crate imap-codec 2.0.0-alpha.10 was tried: it refuses
//! each of these, parts from the seventh level on, and does not keep an INTERNALDATE as the server wrote it.
//!
//! Reading is linear, and what one response may cost has a bound: [`MOST_VALUES`], [`DEEPEST`].

use std::borrow::Cow;

/// Values in one response; a BODYSTRUCTURE with more is none that is read.
const MOST_VALUES: usize = 200_000;
/// Lists within lists that are kept; deeper ones are passed over.
const DEEPEST: usize = 120;

/// A piece of what a server says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value<'a> {
    /// A word or a number; `NIL` is one.
    Atom(&'a [u8]),
    /// A quoted string, or a literal.
    Text(Cow<'a, [u8]>),
    List(Vec<Value<'a>>),
    /// A list that lies too deep.
    Deep,
}

impl<'a> Value<'a> {
    /// The octets of a word or a string; none of NIL.
    pub(crate) fn octets(&self) -> Option<&[u8]> {
        match self {
            Self::Atom(atom) if atom.eq_ignore_ascii_case(b"NIL") => None,
            Self::Atom(atom) => Some(atom),
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The same as text.
    pub(crate) fn text(&self) -> Option<Cow<'_, str>> {
        self.octets().map(String::from_utf8_lossy)
    }

    pub(crate) fn number(&self) -> Option<u64> {
        match self {
            Self::Atom(atom) => number(atom),
            _ => None,
        }
    }

    pub(crate) fn list(&self) -> Option<&[Value<'a>]> {
        match self {
            Self::List(values) => Some(values),
            _ => None,
        }
    }
}

/// A number without sign, of digits alone.
pub(crate) fn number(digits: &[u8]) -> Option<u64> {
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    if !is_number {
        return None;
    }
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// The octets of a literal that a line announces at its end: `{310}`, or `{310+}`, in brackets.
pub(crate) fn announced(line: &[u8]) -> Option<u64> {
    let inner = line.strip_suffix(b"}")?;
    let open = memchr::memrchr(b'{', inner)?;
    let digits = &inner[open + 1..];
    let digits = digits.strip_suffix(b"+").unwrap_or(digits);
    let are_digits = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    // A number that is too large for us is a literal that is too large.
    are_digits.then(|| number(digits).unwrap_or(u64::MAX))
}

/// How a command ended, or what a server says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Condition {
    Ok,
    No,
    Bad,
    Bye,
    PreAuth,
}

/// The text behind a condition, and the code in brackets before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Status<'a> {
    pub(crate) condition: Condition,
    /// In upper case; empty if there is none.
    pub(crate) code: String,
    /// What stands behind the code's name within the brackets.
    pub(crate) argument: &'a [u8],
    pub(crate) text: &'a [u8],
}

impl Status<'_> {
    /// What it says to people, cut, on one line.
    pub(crate) fn said(&self) -> String {
        let text: String = String::from_utf8_lossy(self.text)
            .chars()
            .map(|symbol| if symbol.is_control() { ' ' } else { symbol })
            .take(200)
            .collect();
        match (text.trim(), self.code.as_str()) {
            ("", "") => "it says no reason".to_owned(),
            ("", code) => code.to_owned(),
            (text, _) => text.to_owned(),
        }
    }
}

/// One response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Response<'a> {
    /// `+`, and what stands behind it.
    Continue(&'a [u8]),
    Tagged(&'a [u8], Status<'a>),
    Status(Status<'a>),
    /// `* 23 EXISTS`: the number, the word in upper case, and what stands behind it.
    Numbered(u32, String, &'a [u8]),
    /// `* SEARCH 1 2`: the word in upper case, and what stands behind it.
    Data(String, &'a [u8]),
}

/// Reads one response, which ends in CR LF and has its literals in it.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn response(octets: &[u8]) -> Result<Response<'_>, &'static str> {
    let line = octets.strip_suffix(b"\n").unwrap_or(octets);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if let Some(rest) = line.strip_prefix(b"+") {
        return Ok(Response::Continue(rest.trim_ascii_start()));
    }
    let (tag, rest) = word(line);
    let (first, behind) = word(rest);
    if tag != b"*" {
        let status = status(first, behind).ok_or("a line that is no response")?;
        if matches!(status.condition, Condition::Bye | Condition::PreAuth) {
            return Err("a command that ends in another way than OK, NO or BAD");
        }
        return Ok(Response::Tagged(tag, status));
    }
    if let Some(status) = status(first, behind) {
        return Ok(Response::Status(status));
    }
    if let Some(number) = number(first) {
        let number =
            u32::try_from(number).map_err(|_| "a number of a message that is too large")?;
        let (name, rest) = word(behind);
        return Ok(Response::Numbered(number, upper(name), rest));
    }
    match first {
        [] => Err("an empty response"),
        name => Ok(Response::Data(upper(name), behind)),
    }
}

fn upper(word: &[u8]) -> String {
    String::from_utf8_lossy(word).to_ascii_uppercase()
}

/// The word that a line starts with, and what stands behind the space.
fn word(line: &[u8]) -> (&[u8], &[u8]) {
    match memchr::memchr(b' ', line) {
        Some(at) => (&line[..at], &line[at + 1..]),
        None => (line, &[]),
    }
}

fn status<'a>(word: &[u8], rest: &'a [u8]) -> Option<Status<'a>> {
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
    Some(Status {
        condition: *condition,
        code: upper(code),
        argument,
        text,
    })
}

/// `[CODE argument] text` in its parts. Flags in parentheses may have a `]` in them.
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

/// All values of a line, which may have literals in it.
///
/// # Errors
/// What is wrong with them.
pub(crate) fn values(octets: &[u8]) -> Result<Vec<Value<'_>>, &'static str> {
    let mut open: Vec<Vec<Value<'_>>> = vec![Vec::new()];
    // Lists that lie too deep, and are open.
    let mut deep = 0_usize;
    let mut count = 0;
    let mut at = 0;
    while let Some(&octet) = octets.get(at) {
        let rest = &octets[at..];
        let value = match octet {
            b' ' => {
                at += 1;
                continue;
            }
            b'(' => {
                at += 1;
                match open.len() > DEEPEST {
                    true => deep += 1,
                    false => open.push(Vec::new()),
                }
                continue;
            }
            b')' if deep > 0 => {
                at += 1;
                deep -= 1;
                match deep {
                    0 => Value::Deep,
                    _ => continue,
                }
            }
            b')' => {
                at += 1;
                match (open.pop(), open.is_empty()) {
                    (Some(list), false) => Value::List(list),
                    _ => return Err("a parenthesis that closes nothing"),
                }
            }
            b'"' => {
                let (text, length) = quoted(rest)?;
                at += length;
                Value::Text(text)
            }
            b'\r' | b'\n' => break,
            _ => match literal(rest)? {
                Some((text, length)) => {
                    at += length;
                    Value::Text(Cow::Borrowed(text))
                }
                None => {
                    let length = atom(rest);
                    at += length;
                    Value::Atom(&rest[..length])
                }
            },
        };
        if deep > 0 {
            continue;
        }
        count += 1;
        if count > MOST_VALUES {
            return Err("a response with too much in it");
        }
        if let Some(list) = open.last_mut() {
            list.push(value);
        }
    }
    match (open.pop(), open.is_empty() && deep == 0) {
        (Some(values), true) => Ok(values),
        _ => Err("a parenthesis that is not closed"),
    }
}

/// A quoted string at the start, without its marks, and its length with them.
fn quoted(octets: &[u8]) -> Result<(Cow<'_, [u8]>, usize), &'static str> {
    const OPEN: &str = "a quoted string without an end";
    let mut text = Cow::Borrowed(&[][..]);
    let mut from = 1;
    loop {
        let rest = octets.get(from..).ok_or(OPEN)?;
        let at = memchr::memchr3(b'"', b'\\', b'\n', rest).ok_or(OPEN)?;
        let plain = &rest[..at];
        match &mut text {
            Cow::Borrowed([]) => text = Cow::Borrowed(plain),
            text => text.to_mut().extend_from_slice(plain),
        }
        match rest[at] {
            b'"' => return Ok((text, from + at + 1)),
            b'\\' => {
                text.to_mut().push(*rest.get(at + 1).ok_or(OPEN)?);
                from += at + 2;
            }
            _ => return Err(OPEN),
        }
    }
}

/// A literal at the start, and its length with what announces it; none if there is something else.
#[allow(clippy::type_complexity)] // a literal, perhaps, or none, or a broken one
fn literal(octets: &[u8]) -> Result<Option<(&[u8], usize)>, &'static str> {
    let start = octets.strip_prefix(b"~").unwrap_or(octets);
    if !start.starts_with(b"{") {
        return Ok(None);
    }
    let head = &start[..start.len().min(32)];
    let Some(end) = memchr::memchr(b'}', head) else {
        return Ok(None);
    };
    let Some(length) = announced(&start[..=end]) else {
        return Ok(None);
    };
    let Some(rest) = start[end + 1..]
        .strip_prefix(b"\r\n")
        .or_else(|| start[end + 1..].strip_prefix(b"\n"))
    else {
        return Ok(None);
    };
    let length = usize::try_from(length).map_err(|_| "a literal that is too long")?;
    let text = rest.get(..length).ok_or("a literal without its end")?;
    let before = octets.len() - rest.len();
    Ok(Some((text, before + length)))
}

/// How long the word at the start is: `BODY[HEADER.FIELDS (DATE)]<0>` is one.
fn atom(octets: &[u8]) -> usize {
    let is_end = |octet: &u8| matches!(octet, b' ' | b'(' | b')' | b'"' | b'\r' | b'\n');
    let end = |from: usize| {
        let rest = octets.get(from..).unwrap_or_default();
        from + rest.iter().position(is_end).unwrap_or(rest.len())
    };
    let section = octets
        .get(..7)
        .unwrap_or(octets)
        .iter()
        .position(|octet| *octet == b'[')
        .filter(|at| {
            let name = &octets[..*at];
            name.eq_ignore_ascii_case(b"BODY") || name.eq_ignore_ascii_case(b"BINARY")
        });
    match section.and_then(|at| memchr::memchr2(b']', b'\n', &octets[at..]).map(|end| at + end)) {
        Some(close) if octets[close] == b']' => end(close + 1),
        // Never of no length, whatever stands there.
        _ => end(0).max(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(octets: &[u8]) -> String {
        fn of(value: &Value<'_>) -> String {
            match value {
                Value::Atom(atom) => String::from_utf8_lossy(atom).into_owned(),
                Value::Text(text) => format!("'{}'", text.escape_ascii()),
                Value::List(list) => {
                    let inner: Vec<String> = list.iter().map(of).collect();
                    format!("[{}]", inner.join(","))
                }
                Value::Deep => "deep".to_owned(),
            }
        }
        match values(octets) {
            Ok(values) => values.iter().map(of).collect::<Vec<_>>().join(" "),
            Err(why) => why.to_owned(),
        }
    }

    #[test]
    fn values_of_all_kinds_are_read_as_they_stand() {
        for (octets, is) in [
            (b"a (b  c)\r\n".as_slice(), "a [b,c]"),
            (b"(UID 1 X \"a\\\"b\\\\\") ", "[UID,1,X,'a\\\"b\\\\']"),
            (b"{3}\r\na\0) x", "'a\\x00)' x"),
            (b"~{1+}\r\n( x", "'(' x"),
            (b"{3} x", "{3} x"),
            (
                b"BODY[HEADER.FIELDS (A B)]<0> NIL",
                "BODY[HEADER.FIELDS (A B)]<0> NIL",
            ),
            (b"body[]<0> {0}\r\n", "body[]<0> ''"),
            (b"(a]b x[ \xff)", "[a]b,x[,\u{fffd}]"),
            (b"\"caf\xc3\xa9\"", "'caf\\xc3\\xa9'"),
            (b"(", "a parenthesis that is not closed"),
            (b")", "a parenthesis that closes nothing"),
            (b"(()", "a parenthesis that is not closed"),
            (b"\"a", "a quoted string without an end"),
            (b"\"a\\", "a quoted string without an end"),
            (b"{4}\r\nabc", "a literal without its end"),
            (
                b"{99999999999999999999}\r\nabc",
                "a literal without its end",
            ),
            (b"", ""),
        ] {
            assert_eq!(shown(octets), is, "{}", octets.escape_ascii());
        }
    }

    #[test]
    fn depth_and_number_have_a_bound() {
        let nested = |depth: usize| [vec![b'('; depth], vec![b')'; depth]].concat();
        assert!(shown(&nested(DEEPEST)).ends_with(&"]".repeat(DEEPEST)));
        assert!(shown(&nested(DEEPEST + 1)).contains("deep"));
        assert!(shown(&nested(1_000_000)).contains("deep"));
        assert!(shown(&b"x ".repeat(MOST_VALUES + 1)).contains("too much"));
    }

    #[test]
    fn responses_are_told_apart() {
        let ok = |code: &str, argument: &'static [u8], text: &'static [u8]| Status {
            condition: Condition::Ok,
            code: code.to_owned(),
            argument,
            text,
        };
        for (line, is) in [
            (b"+ go on\r\n".as_slice(), Response::Continue(b"go on")),
            (b"+\r\n", Response::Continue(b"")),
            (
                b"a1 ok done\r\n",
                Response::Tagged(b"a1", ok("", b"", b"done")),
            ),
            (
                b"* OK [UIDNEXT 7] next\r\n",
                Response::Status(ok("UIDNEXT", b"7", b"next")),
            ),
            (
                b"* OK [PERMANENTFLAGS (a]b \\*)] x\r\n",
                Response::Status(ok("PERMANENTFLAGS", b"(a]b \\*)", b"x")),
            ),
            (b"* OK\r\n", Response::Status(ok("", b"", b""))),
            (
                b"* OK caf\xe9 [x\r\n",
                Response::Status(ok("", b"", b"caf\xe9 [x")),
            ),
            (
                b"* 23 exists\r\n",
                Response::Numbered(23, "EXISTS".into(), b""),
            ),
            (
                b"* 1 FETCH (UID 5)\r\n",
                Response::Numbered(1, "FETCH".into(), b"(UID 5)"),
            ),
            (b"* SEARCH\r\n", Response::Data("SEARCH".into(), b"")),
            (
                b"* LIST () \"/\" a\r\n",
                Response::Data("LIST".into(), b"() \"/\" a"),
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
