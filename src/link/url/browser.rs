//! What a browser makes of a reference in HTML: the WHATWG URL parser's decisions about where
//! components begin and end, without its rewriting of what is in them.
//!
//! The measure is the `url` crate: parsing what [`resolve_as_browser`] gives must equal
//! `Url::join` (`tests/unit/url_property.rs`).

use std::borrow::Cow;

use percent_encoding::percent_encode_byte;

use super::resolve::{Unresolvable, resolve, up_to_last_slash};
use super::split::Reference;

/// How a reference in a document stands to the document's base.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Relation {
    /// Nothing but blanks and control characters.
    Empty,
    SameDocument,
    /// It means the same under every base.
    Absolute,
    /// What it means depends on the base.
    Relative,
}

/// How `reference` stands to `base`, as browsers see it: `http:g` is relative under an http base,
/// and absolute under any other or none.
pub fn relation(base: Option<&str>, reference: &str) -> Relation {
    let reference = cleaned(reference);
    match scheme_and_rest(&reference) {
        _ if reference.is_empty() => Relation::Empty,
        _ if reference.starts_with('#') => Relation::SameDocument,
        None => Relation::Relative,
        Some((scheme, rest)) => {
            let base = base.map(cleaned);
            let same = base
                .as_deref()
                .and_then(scheme_and_rest)
                .is_some_and(|(base_scheme, _)| base_scheme.eq_ignore_ascii_case(scheme));
            let relative = same
                && match Family::of(scheme) {
                    Family::Network => leading_slashes(rest) < 2,
                    Family::File => leading_slashes(rest) < 2 && !starts_with_drive(rest),
                    Family::Other => false,
                };
            if relative {
                Relation::Relative
            } else {
                Relation::Absolute
            }
        }
    }
}

/// The absolute form of a reference that stands in a document with this base, as a browser
/// understands it (WHATWG URL, basic URL parser), but textual.
///
/// Both texts are cleaned first: control characters and blanks at the ends go, TAB, LF and CR go
/// everywhere. Under http, https, ftp, ws, wss and file, `\` is `/` in front of `?` and `#`, any
/// number of slashes from two up introduces a host, and `%2e` is a dot in dot segments. `http:g` under an
/// http base is `g`. An absolute reference comes back cleaned, its dot segments untouched.
///
/// For such bases, `Url::parse` of the result equals `Url::parse(base).join(reference)`. If join
/// fails, the result is an error or a text that does not parse: hosts and ports are not judged
/// here.
///
/// Deviations:
/// * `///x` under a network base is host `x`, as the standard has it; the `url` crate 2.5 refuses
///   it;
/// * dot segments stay in a path of a network URL that has a segment like `c:`: the standard does
///   not care about drives there, the `url` crate does; the parser of the result decides;
/// * a `file:` path with drive letters where the standard, its history and the crate differ is
///   [`Unresolvable::UncertainDrive`]: a drive elsewhere than first, `c|`, a drive behind a host, a
///   drive in the reference, a segment like `c:x`;
/// * other schemes (`thismessage:/`, `x://h/p`): RFC 3986 on the cleaned texts; `mailto:x` and the
///   like are a base for fragments only;
/// * blanks at the end of the base's path or query become visible when the fragment goes; they
///   are percent-encoded then, the only encoding done here.
pub fn resolve_as_browser(base: &str, reference: &str) -> Result<String, Unresolvable> {
    let base = cleaned(base);
    let reference = cleaned(reference);
    let Some((base_scheme, base_rest)) = scheme_and_rest(&base) else {
        return Err(Unresolvable::BaseNotAbsolute);
    };
    let mut relative: &str = &reference;
    if let Some((scheme, rest)) = scheme_and_rest(&reference) {
        let same = scheme.eq_ignore_ascii_case(base_scheme);
        match Family::of(scheme) {
            Family::Other => return Ok(reference.into_owned()),
            Family::Network if !same || leading_slashes(rest) >= 2 => {
                return Ok(with_host(scheme, rest));
            }
            Family::File if !same => return certain(format!("{scheme}:{}", forward(rest))),
            Family::Network | Family::File => relative = rest,
        }
    }
    match Family::of(base_scheme) {
        Family::Network => under_network(base_scheme, base_rest, relative),
        Family::File => under_file(base_scheme, base_rest, relative),
        Family::Other if relative.starts_with('#') => {
            Ok(format!("{}{relative}", super::without_fragment(&base)))
        }
        Family::Other if !base_rest.starts_with('/') => Err(Unresolvable::OpaqueBase),
        Family::Other => resolve(&base, relative),
    }
}

/// A reference that is [`Relation::Absolute`] as browsers read it: behind `https:`, whatever slashes there are
/// introduce a host.
pub fn absolute_as_browser(reference: Cow<'_, str>) -> Cow<'_, str> {
    let trimmed = reference.trim_matches(is_c0_or_space);
    match scheme_and_rest(trimmed) {
        Some((scheme, rest)) if Family::of(scheme) == Family::Network => {
            let front = rest.split(['?', '#']).next().unwrap_or_default();
            let is_plain = leading_slashes(rest) == 2 && !front.contains('\\');
            if is_plain && trimmed.len() == reference.len() {
                return reference;
            }
            Cow::Owned(with_host(scheme, rest))
        }
        _ => reference,
    }
}

/// What stands behind the slashes of a reference that names a host and no scheme.
pub fn behind_slashes(reference: &str) -> Option<Cow<'_, str>> {
    let slashes = leading_slashes(reference);
    (slashes >= 2).then(|| forward(&reference[slashes..]))
}

/// The kinds of schemes that the standard tells apart.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Family {
    /// "Special", with a host: a reference may begin with the scheme and still be relative.
    Network,
    File,
    Other,
}

impl Family {
    fn of(scheme: &str) -> Self {
        let is = |name: &&str| scheme.eq_ignore_ascii_case(name);
        if ["http", "https", "ftp", "ws", "wss"].iter().any(is) {
            Self::Network
        } else if is(&"file") {
            Self::File
        } else {
            Self::Other
        }
    }
}

fn under_network(scheme: &str, rest: &str, relative: &str) -> Result<String, Unresolvable> {
    let base = with_host(scheme, rest);
    let base = Reference::split(&base);
    if base.authority.is_none_or(str::is_empty) {
        return Err(Unresolvable::BaseWithoutHost);
    }
    if let Some(result) = without_path(base, relative) {
        return Ok(result);
    }
    let relative = forward(relative);
    let slashes = leading_slashes(&relative);
    if slashes >= 2 {
        return Ok(with_host(scheme, &relative));
    }
    let reference = split_relative(&relative);
    let text = if slashes == 1 {
        reference.path.to_owned()
    } else {
        format!("{}{}", folder(base.path, 0), reference.path)
    };
    let path = if text.split('/').any(is_drive) {
        text
    } else {
        remove_dot_segments(&text, 0)
    };
    Ok(combine(base, &path, reference))
}

fn under_file(scheme: &str, rest: &str, relative: &str) -> Result<String, Unresolvable> {
    let rest = forward(rest);
    let slashes = leading_slashes(&rest);
    // The host of file://C:/x is a drive; with fewer slashes than two there is no host at all.
    let drive_for_host = slashes == 2 && starts_with_drive(&rest[2..]);
    let base = match slashes {
        0 => format!("{scheme}:///{rest}"),
        1 => format!("{scheme}://{rest}"),
        _ if drive_for_host => format!("{scheme}:///{}", &rest[2..]),
        _ => format!("{scheme}:{rest}"),
    };
    let base = Reference::split(&base);
    let first = base.path.split('/').nth(1).unwrap_or_default();
    let drive = is_drive(first);
    let has_host = base.authority.is_some_and(|host| !host.is_empty());
    let odd_drive = base.path.split('/').skip(2).any(is_drive)
        || base.path.split('/').any(is_drive_and_more)
        || drive && (has_host || first.ends_with('|'));
    if odd_drive {
        return Err(Unresolvable::UncertainDrive);
    }
    if let Some(result) = without_path(base, relative) {
        return Ok(result);
    }
    let relative = forward(relative);
    let slashes = leading_slashes(&relative);
    if slashes >= 2 {
        return certain(format!("{scheme}:{relative}"));
    }
    let reference = split_relative(&relative);
    let mut segments = reference.path.split('/');
    if segments.any(|segment| is_drive(segment) || is_drive_and_more(segment)) {
        return Err(Unresolvable::UncertainDrive);
    }
    let floor = usize::from(drive);
    let text = match (slashes, drive) {
        (1, true) => format!("/{first}{}", reference.path),
        (1, false) => reference.path.to_owned(),
        _ => format!("{}{}", folder(base.path, floor), reference.path),
    };
    let path = remove_dot_segments(&text, floor);
    Ok(combine(base, &path, reference))
}

/// Refuses a `file:` URL with a segment like `C:x`: to the standard that is no drive, to Windows
/// it is, and the crate sometimes makes `C:/x` of it.
fn certain(url: String) -> Result<String, Unresolvable> {
    if Reference::split(&url)
        .path
        .split('/')
        .any(is_drive_and_more)
    {
        Err(Unresolvable::UncertainDrive)
    } else {
        Ok(url)
    }
}

/// The result where the base's path stays: for an empty reference, a query, a fragment.
fn without_path(base: Reference<'_>, relative: &str) -> Option<String> {
    let unchanged = match relative.as_bytes().first() {
        None => Reference {
            fragment: None,
            ..base
        },
        Some(b'#') => Reference {
            fragment: Some(&relative[1..]),
            ..base
        },
        Some(b'?') => {
            let reference = split_relative(relative);
            Reference {
                query: reference.query,
                fragment: reference.fragment,
                ..base
            }
        }
        Some(_) => return None,
    };
    let mut text = unchanged.recompose();
    // Without the fragment, blanks in front of it stand at the end, where a parser trims them.
    let kept = text.trim_end_matches(is_c0_or_space).len();
    if kept < text.len() {
        let blanks = text.split_off(kept);
        text.extend(blanks.bytes().map(percent_encode_byte));
    }
    Some(text)
}

fn combine(base: Reference<'_>, path: &str, reference: Reference<'_>) -> String {
    Reference {
        path,
        query: reference.query,
        fragment: reference.fragment,
        ..base
    }
    .recompose()
}

/// Path, query and fragment of a text that has neither scheme nor authority, whatever it looks
/// like: behind `http:`, a text such as `a:b` is a path.
fn split_relative(text: &str) -> Reference<'_> {
    let end = text.find(['?', '#']).unwrap_or(text.len());
    Reference {
        path: &text[..end],
        ..Reference::split(&text[end..])
    }
}

/// `scheme://` and what follows, whatever slashes it began with.
fn with_host(scheme: &str, rest: &str) -> String {
    let rest = rest.trim_start_matches(['/', '\\']);
    format!("{scheme}://{}", forward(rest))
}

/// The text with `/` for every `\` in front of its query and fragment.
fn forward(text: &str) -> Cow<'_, str> {
    let end = text.find(['?', '#']).unwrap_or(text.len());
    let (path, tail) = text.split_at(end);
    if path.contains('\\') {
        Cow::Owned(path.replace('\\', "/") + tail)
    } else {
        Cow::Borrowed(text)
    }
}

/// What a relative path is appended to: the base's path up to its last slash. A last segment that
/// is a dot segment names a folder, and so does a drive that is the whole path.
fn folder(path: &str, floor: usize) -> Cow<'_, str> {
    let kept = up_to_last_slash(path);
    let last = &path[kept.len()..];
    if path.is_empty() {
        Cow::Borrowed("/")
    } else if dots(last) > 0 || (floor > 0 && kept == "/") {
        Cow::Owned(format!("{path}/"))
    } else {
        Cow::Borrowed(kept)
    }
}

/// Takes the dot segments out of a path that begins with a slash (WHATWG URL, path state). The first `floor` segments,
/// a drive, stay.
fn remove_dot_segments(path: &str, floor: usize) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let mut segments = path.strip_prefix('/').unwrap_or(path).split('/').peekable();
    while let Some(segment) = segments.next() {
        match dots(segment) {
            0 => {
                kept.push(segment);
                continue;
            }
            2 if kept.len() > floor => {
                kept.pop();
            }
            _ => {}
        }
        if segments.peek().is_none() {
            kept.push("");
        }
    }
    format!("/{}", kept.join("/"))
}

/// How many dots a dot segment has: `.` and `..`, each dot also as `%2e`; none of other segments.
fn dots(segment: &str) -> usize {
    let after_dot = |text: &'_ str| match text.as_bytes() {
        [b'.', ..] => Some(1),
        [b'%', b'2', b'e' | b'E', ..] => Some(3),
        _ => None,
    };
    let (mut dots, mut rest) = (0, segment);
    while let Some(length) = after_dot(rest) {
        dots += 1;
        rest = rest.get(length..).unwrap_or_default();
    }
    if rest.is_empty() && dots <= 2 {
        dots
    } else {
        0
    }
}

/// Whether a segment looks like a drive: a letter and `:` or `|`.
fn is_drive(segment: &str) -> bool {
    matches!(segment.as_bytes(), [letter, b':' | b'|'] if letter.is_ascii_alphabetic())
}

/// `C:x`: neither a plain name nor a drive.
fn is_drive_and_more(segment: &str) -> bool {
    segment.len() > 2 && segment.get(..2).is_some_and(is_drive)
}

fn starts_with_drive(text: &str) -> bool {
    let end = text.find(['/', '\\', '?', '#']).unwrap_or(text.len());
    is_drive(&text[..end])
}

fn leading_slashes(text: &str) -> usize {
    text.len() - text.trim_start_matches(['/', '\\']).len()
}

/// The scheme (RFC 3986 §3.1: a letter, then letters, digits, `+`, `-`, `.`) and what follows its
/// colon.
pub(crate) fn scheme_and_rest(text: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = text.split_once(':')?;
    let mut bytes = scheme.bytes();
    let valid = bytes.next().is_some_and(|byte| byte.is_ascii_alphabetic())
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'));
    valid.then_some((scheme, rest))
}

/// Without blanks and control characters at the ends, and TAB, LF, CR anywhere.
fn cleaned(text: &str) -> Cow<'_, str> {
    let text = text.trim_matches(is_c0_or_space);
    let dropped = ['\t', '\n', '\r'];
    if text.contains(dropped) {
        Cow::Owned(text.replace(dropped, ""))
    } else {
        Cow::Borrowed(text)
    }
}

fn is_c0_or_space(character: char) -> bool {
    character <= ' '
}

#[cfg(test)]
mod tests;
