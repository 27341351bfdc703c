//! Parses the values in a response: words, numbers, strings, literals and lists, and the items of FETCH.

use std::borrow::Cow;

use crate::span::split_while;

/// Maximum number of values in one response. A longer response, for example a huge BODYSTRUCTURE, is an error.
const MOST_VALUES: usize = 200_000;
/// Maximum nesting depth of lists. Deeper lists are skipped.
const DEEPEST: usize = 120;

/// One value in a response of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ResponseValue<'a> {
    /// A word or a number without quotes. `NIL`, which means that there is no value, is a word too.
    Atom(&'a [u8]),
    /// A quoted string or a literal.
    Text(Cow<'a, [u8]>),
    List(Vec<ResponseValue<'a>>),
    /// A list that is nested deeper than [`DEEPEST`]. Its contents were skipped.
    Deep,
}

impl<'a> ResponseValue<'a> {
    /// Returns the bytes of a word or a string, or `None` for `NIL` and lists.
    pub(crate) fn octets(&self) -> Option<&[u8]> {
        match self {
            Self::Atom(atom) if atom.eq_ignore_ascii_case(b"NIL") => None,
            Self::Atom(atom) => Some(atom),
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the bytes of a word or a string as text. Invalid UTF-8 is replaced. `None` for `NIL` and lists.
    pub(crate) fn text(&self) -> Option<Cow<'_, str>> {
        self.octets().map(String::from_utf8_lossy)
    }

    pub(crate) fn number(&self) -> Option<u64> {
        match self {
            Self::Atom(atom) => number(atom),
            _ => None,
        }
    }

    /// Returns a size in bytes that the server announces, at most [`LARGEST_SIZE`].
    pub(crate) fn size(&self) -> Option<u64> {
        self.number().map(|size| size.min(LARGEST_SIZE))
    }

    pub(crate) fn list(&self) -> Option<&[ResponseValue<'a>]> {
        match self {
            Self::List(values) => Some(values),
            _ => None,
        }
    }
}

/// Maximum size of a message or a part, in bytes (256 GiB). A server can announce any number, so a larger one counts as
/// this size. The sum over all messages of a folder then cannot overflow.
const LARGEST_SIZE: u64 = 1 << 38;

/// Parses an unsigned number that consists of digits only.
pub(crate) fn number(digits: &[u8]) -> Option<u64> {
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    if !is_number {
        return None;
    }
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// Returns the length of the literal that a line announces at its end, such as `{310}` or `{310+}`.
pub(crate) fn announced(line: &[u8]) -> Option<u64> {
    let inner = line.strip_suffix(b"}")?;
    let open = memchr::memrchr(b'{', inner)?;
    let length = &inner[open + 1..];
    let digits = length.strip_suffix(b"+").unwrap_or(length);
    let are_digits = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    // A length that does not fit into `u64` becomes the maximum, so that the caller rejects it as too long.
    are_digits.then(|| number(digits).unwrap_or(u64::MAX))
}

/// Parses all values of a line, which may contain literals.
///
/// # Errors
/// A description of the first malformed value.
pub(crate) fn values(octets: &[u8]) -> Result<Vec<ResponseValue<'_>>, &'static str> {
    let mut reader = ValueParser::of(octets);
    let mut values = Vec::new();
    loop {
        match reader.next()? {
            Next::Value(value) => values.push(value),
            Next::Close => return Err(CLOSES_NOTHING),
            Next::End => return Ok(values),
        }
    }
}

/// Parses the items of a FETCH response, such as `(UID 5 FLAGS (\Seen))`, into pairs of a name and a value.
///
/// Other programs choose the keywords of a message, and servers send them unchanged, with parentheses, quotation marks and
/// bytes above 127 in them. So the list of FLAGS is split only at spaces. It ends where another item or the end of the response
/// follows. A syntax error anywhere else makes the whole response unreadable: the text after it could come from a file name
/// that the sender of the mail chose, and must not be parsed as an item.
///
/// # Errors
/// A description of the syntax error.
pub(crate) fn fetch_items(octets: &[u8]) -> Result<Vec<[ResponseValue<'_>; 2]>, &'static str> {
    match unclosed_fetch_items(octets)? {
        (items, true) => Ok(items),
        (_, false) => Err(NOT_CLOSED),
    }
}

/// Does the same as [`fetch_items`], but accepts a list without its closing parenthesis, because some servers send a
/// line ending before it. Also returns whether the list is closed. The items are complete in both cases.
///
/// # Errors
/// A description of any other syntax error.
#[allow(clippy::type_complexity)] // items, and whether these are all
pub(crate) fn unclosed_fetch_items(
    octets: &[u8],
) -> Result<(Vec<[ResponseValue<'_>; 2]>, bool), &'static str> {
    const NO_LIST: &str = "the server sent a FETCH response without a list";
    let list = octets
        .trim_ascii_start()
        .strip_prefix(b"(")
        .ok_or(NO_LIST)?;
    let mut reader = ValueParser::of(list);
    let mut items = Vec::new();
    loop {
        let name = match reader.next()? {
            Next::Value(name) => name,
            Next::Close => break,
            Next::End => return Ok((items, false)),
        };
        let is_flags =
            matches!(&name, ResponseValue::Atom(name) if name.eq_ignore_ascii_case(b"FLAGS"));
        let value = if is_flags {
            reader.flags()?
        } else {
            reader.next()?
        };
        match value {
            Next::Value(value) => items.push([name, value]),
            Next::Close => break,
            Next::End => return Err(NOT_CLOSED),
        }
    }
    match reader.next()? {
        Next::Close => Err(CLOSES_NOTHING),
        _ => Ok((items, true)),
    }
}

/// Parses the flags of PERMANENTFLAGS by the rules of [`fetch_items`]. Returns `None` if the argument is not a list.
pub(crate) fn permanent_flags(argument: &[u8]) -> Option<ResponseValue<'_>> {
    let mut reader = ValueParser::of(argument);
    match reader.flags().ok()? {
        Next::Value(list @ ResponseValue::List(_)) => Some(list),
        _ => None,
    }
}

const CLOSES_NOTHING: &str = "the server sent a closing parenthesis without an opening parenthesis";
const NOT_CLOSED: &str = "the server sent an opening parenthesis without a closing parenthesis";

/// Parser that reads the values of a response one after the other.
struct ValueParser<'a> {
    octets: &'a [u8],
    at: usize,
    /// Number of values that were parsed. The response is rejected if it has more than [`MOST_VALUES`].
    count: usize,
}

enum Next<'a> {
    Value(ResponseValue<'a>),
    /// A closing parenthesis: the end of the list that the caller is parsing.
    Close,
    End,
}

impl<'a> ValueParser<'a> {
    fn of(octets: &'a [u8]) -> Self {
        Self {
            octets,
            at: 0,
            count: 0,
        }
    }

    fn count(&mut self) -> Result<(), &'static str> {
        self.count += 1;
        if self.count > MOST_VALUES {
            Err("the server sent a response with too many values")
        } else {
            Ok(())
        }
    }

    fn next(&mut self) -> Result<Next<'a>, &'static str> {
        let mut open: Vec<Vec<ResponseValue<'a>>> = Vec::new();
        // Number of open lists that are nested deeper than [`DEEPEST`]. Their values are skipped.
        let mut deep = 0_usize;
        loop {
            let rest = &self.octets[self.at..];
            let value = match rest.first() {
                None | Some(b'\r' | b'\n') => {
                    return if open.is_empty() && deep == 0 {
                        Ok(Next::End)
                    } else {
                        Err(NOT_CLOSED)
                    };
                }
                Some(b' ') => {
                    self.at += 1;
                    continue;
                }
                Some(b'(') => {
                    self.at += 1;
                    if open.len() >= DEEPEST {
                        deep += 1
                    } else {
                        open.push(Vec::new())
                    }
                    continue;
                }
                Some(b')') if deep > 0 => {
                    self.at += 1;
                    deep -= 1;
                    match deep {
                        0 => ResponseValue::Deep,
                        _ => continue,
                    }
                }
                Some(b')') => {
                    self.at += 1;
                    match open.pop() {
                        Some(list) => ResponseValue::List(list),
                        None => return Ok(Next::Close),
                    }
                }
                Some(b'"') => {
                    let (text, length) = quoted(rest)?;
                    self.at += length;
                    ResponseValue::Text(text)
                }
                Some(_) => match literal(rest)? {
                    Some((text, length)) => {
                        self.at += length;
                        ResponseValue::Text(Cow::Borrowed(text))
                    }
                    None => {
                        let length = atom(rest);
                        self.at += length;
                        ResponseValue::Atom(&rest[..length])
                    }
                },
            };
            if deep > 0 {
                continue;
            }
            self.count()?;
            match open.last_mut() {
                Some(list) => list.push(value),
                None => return Ok(Next::Value(value)),
            }
        }
    }

    /// Parses a list of flags. A flag may contain any characters, even parentheses and quotation marks. If the next
    /// value is not a list, it is parsed like any other value.
    fn flags(&mut self) -> Result<Next<'a>, &'static str> {
        let rest = &self.octets[self.at..];
        let blanks = rest.len() - rest.trim_ascii_start().len();
        if rest.get(blanks) != Some(&b'(') {
            return self.next();
        }
        self.at += blanks + 1;
        let mut flags = Vec::new();
        loop {
            let rest = &self.octets[self.at..];
            match rest.first() {
                None | Some(b'\r' | b'\n') => return Err(NOT_CLOSED),
                Some(b' ') => {
                    self.at += 1;
                    continue;
                }
                Some(b')') if is_end_of_flags(&rest[1..]) => {
                    self.at += 1;
                    return Ok(Next::Value(ResponseValue::List(flags)));
                }
                Some(_) => {}
            }
            let string = match quoted_flag(rest) {
                None => literal(rest)?.map(|(text, length)| (Cow::Borrowed(text), length)),
                quoted => quoted,
            };
            let value = match string {
                Some((text, length)) => {
                    self.at += length;
                    ResponseValue::Text(text)
                }
                None => {
                    let is_end = |at: &usize| match rest[*at] {
                        b' ' | b'\r' | b'\n' => true,
                        b')' => is_end_of_flags(&rest[at + 1..]),
                        _ => false,
                    };
                    let length = (1..rest.len()).find(is_end).unwrap_or(rest.len());
                    self.at += length;
                    ResponseValue::Atom(&rest[..length])
                }
            };
            self.count()?;
            flags.push(value);
        }
    }
}

/// Parses a flag that is a quoted string as a whole, and returns its text and its length. Returns `None` if the flag is
/// a keyword with a quotation mark in it, which is only part of its name.
fn quoted_flag(octets: &[u8]) -> Option<(Cow<'_, [u8]>, usize)> {
    if octets.first() != Some(&b'"') {
        return None;
    }
    let (text, length) = quoted(octets).ok()?;
    matches!(octets.get(length), Some(b' ' | b')')).then_some((text, length))
}

/// Returns whether a closing parenthesis ends the list of flags, according to the text after it (`behind`). It must be
/// followed by another FETCH item or by the end of the response. Otherwise the parenthesis belongs to a flag.
fn is_end_of_flags(behind: &[u8]) -> bool {
    const ITEMS: [&str; 13] = [
        "UID",
        "FLAGS",
        "INTERNALDATE",
        "RFC822",
        "MODSEQ",
        "BODY",
        "BINARY",
        "ENVELOPE",
        "X-GM-",
        "EMAILID",
        "THREADID",
        "SAVEDATE",
        "PREVIEW",
    ];
    let is_over = |rest: &[u8]| matches!(rest, [] | [b'\r' | b'\n', ..]);
    match behind.iter().position(|octet| *octet != b' ') {
        None => true,
        Some(at) if behind[at] == b')' => {
            let rest = &behind[at + 1..];
            is_over(&rest[rest.iter().take_while(|octet| **octet == b' ').count()..])
        }
        Some(at) if is_over(&behind[at..]) => true,
        Some(0) => false,
        Some(at) => ITEMS.iter().any(|item| {
            let name = behind.get(at..at + item.len());
            name.is_some_and(|name| name.eq_ignore_ascii_case(item.as_bytes()))
        }),
    }
}

/// Returns whether a flag is a plain word. Only such a flag can be sent back to the server, because other characters
/// would break the syntax of the command.
pub(crate) fn is_flag(flag: &str) -> bool {
    let word = flag.strip_prefix('\\').unwrap_or(flag);
    let is_plain =
        |octet: u8| !octet.is_ascii_control() && octet != b' ' && !b"(){%*\"\\".contains(&octet);
    !word.is_empty() && word.bytes().all(is_plain)
}

/// Parses the quoted string at the start. Returns its text without the quotation marks, and its length with them.
fn quoted(octets: &[u8]) -> Result<(Cow<'_, [u8]>, usize), &'static str> {
    const OPEN: &str = "the server sent a quoted string without a closing quote";
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

/// Parses the literal at the start, such as `{3}` with a line ending and three bytes. Returns the bytes, and the length
/// including the `{3}`. Returns `None` if the text does not start with a literal.
#[allow(clippy::type_complexity)] // one of the three results that the comment above lists
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
    let length =
        usize::try_from(length).map_err(|_| "the server sent a literal that is too long")?;
    let text = rest
        .get(..length)
        .ok_or("the server sent a literal without its end")?;
    let before = octets.len() - rest.len();
    Ok(Some((text, before + length)))
}

/// Returns the length of the word at the start. `BODY[HEADER.FIELDS (DATE)]<0>` is one word.
fn atom(octets: &[u8]) -> usize {
    let is_end = |octet: &u8| matches!(octet, b' ' | b'(' | b')' | b'"' | b'\r' | b'\n');
    let end = |from: usize| {
        let (word, _) = split_while(&octets[from..], |octet| !is_end(octet));
        from + word.len()
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
        // Without `BODY[...]`, the word ends at the first separator. It has at least one byte even if it starts with
        // one, because the parser would otherwise stay at this position forever.
        _ => end(0).max(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(octets: &[u8]) -> String {
        match values(octets) {
            Ok(values) => values.iter().map(of).collect::<Vec<_>>().join(" "),
            Err(why) => why.to_owned(),
        }
    }

    fn of(value: &ResponseValue<'_>) -> String {
        match value {
            ResponseValue::Atom(atom) => String::from_utf8_lossy(atom).into_owned(),
            ResponseValue::Text(text) => format!("'{}'", text.escape_ascii()),
            ResponseValue::List(list) => {
                let inner: Vec<String> = list.iter().map(of).collect();
                format!("[{}]", inner.join(","))
            }
            ResponseValue::Deep => "deep".to_owned(),
        }
    }

    #[test]
    fn fetch_items_with_odd_keywords_keep_what_follows_them() {
        for (list, is) in [
            (
                &b"(UID 5 FLAGS (\\Seen kw) MODSEQ (7))\r\n"[..],
                "UID 5 FLAGS [\\Seen,kw] MODSEQ [7]",
            ),
            (b"(FLAGS () UID 5)", "FLAGS [] UID 5"),
            (b"(FLAGS NIL UID 5)", "FLAGS NIL UID 5"),
            (
                b"(FLAGS (a(b c)d )e \"f g\" \"h {3} NIL caf\xe9 \x01) UID 5)",
                "FLAGS [a(b,c)d,)e,'f g',\"h,{3},NIL,caf\u{fffd},\u{1}] UID 5",
            ),
            (b"(UID 5 FLAGS (a)))\r\n", "UID 5 FLAGS [a)]"),
            (b"(UID 5 FLAGS (a) b) )\r\n", "UID 5 FLAGS [a),b]"),
            (b"(FLAGS ({3}\r\na b c) UID 5)", "FLAGS ['a b',c] UID 5"),
            (b"UID 5", "the server sent a FETCH response without a list"),
            (b"(UID 5", NOT_CLOSED),
            (b"(FLAGS (a b UID 5)", NOT_CLOSED),
            (b"(UID 5)) x", CLOSES_NOTHING),
            (b"(UID 5 BODYSTRUCTURE (\"a\" \"b\"", NOT_CLOSED),
        ] {
            let read = match fetch_items(list) {
                Ok(items) => items.iter().flatten().map(of).collect::<Vec<_>>().join(" "),
                Err(why) => why.to_owned(),
            };
            assert_eq!(read, is, "{}", list.escape_ascii());
        }
        let many = [b"(FLAGS (".as_slice(), &b"a ) ".repeat(MOST_VALUES), b"))"].concat();
        assert!(fetch_items(&many).is_err());
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
            (
                b"(",
                "the server sent an opening parenthesis without a closing parenthesis",
            ),
            (
                b")",
                "the server sent a closing parenthesis without an opening parenthesis",
            ),
            (
                b"(()",
                "the server sent an opening parenthesis without a closing parenthesis",
            ),
            (
                b"\"a",
                "the server sent a quoted string without a closing quote",
            ),
            (
                b"\"a\\",
                "the server sent a quoted string without a closing quote",
            ),
            (b"{4}\r\nabc", "the server sent a literal without its end"),
            (
                b"{99999999999999999999}\r\nabc",
                "the server sent a literal without its end",
            ),
            (b"", ""),
        ] {
            assert_eq!(shown(octets), is, "{}", octets.escape_ascii());
        }
    }

    #[test]
    fn nesting_depth_and_number_of_values_in_a_response_are_bounded() {
        let nested = |depth: usize| [vec![b'('; depth], vec![b')'; depth]].concat();
        assert!(shown(&nested(DEEPEST)).ends_with(&"]".repeat(DEEPEST)));
        assert!(shown(&nested(DEEPEST + 1)).contains("deep"));
        assert!(shown(&nested(1_000_000)).contains("deep"));
        assert!(shown(&b"x ".repeat(MOST_VALUES + 1)).contains("too many"));
    }
}
