//! Resolves references in HTML as the WHATWG URL parser does, but keeps the spelling of their components. If the result
//! of [`resolve_as_browser`] is parsed, the URL must be the same as that of `Url::join` in the `url` crate.
//! `tests/unit/url_property.rs` checks this.

use std::borrow::Cow;

use memchr::{memchr, memchr2, memchr3};
use percent_encoding::{AsciiSet, CONTROLS, percent_encode_byte, utf8_percent_encode};

use super::split::{Unresolvable, UrlReference};
use super::split::{equivalence_key, remove_dot_segments, resolve, up_to_last_slash};

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Relation {
    /// The reference is empty or only a fragment (`#part`), so it refers to the document itself.
    SameDocument,
    /// The reference has the same meaning with any base.
    Absolute,
    Relative,
}

/// Returns whether a reference is absolute, relative, or refers to the document itself, as browsers decide it. For
/// example, `http:g` is relative to a base with the scheme http, and absolute with any other base.
pub fn relation(base: Option<&str>, reference: &str) -> Relation {
    let reference = cleaned(reference);
    let Some((scheme, rest)) = scheme_and_rest(&reference) else {
        return match reference.as_bytes().first() {
            None | Some(b'#') => Relation::SameDocument,
            Some(_) => Relation::Relative,
        };
    };
    let base = base.map(cleaned);
    let is_of_base = base
        .as_deref()
        .and_then(scheme_and_rest)
        .is_some_and(|(base_scheme, _)| base_scheme.eq_ignore_ascii_case(scheme));
    match Family::of(scheme) {
        _ if !is_of_base || leading_slashes(rest) >= 2 => Relation::Absolute,
        Family::Network => Relation::Relative,
        Family::File if !starts_with_drive(rest) => Relation::Relative,
        Family::File | Family::Other => Relation::Absolute,
    }
}

/// Resolves a reference against a base as a browser does (WHATWG URL, basic URL parser), and returns the absolute URL as text.
///
/// First both texts are cleaned: control characters and spaces at their ends are removed, and TAB, LF and CR
/// everywhere. With the schemes http, https, ftp, ws, wss and file, `\` before `?` and `#` equals `/`, two or more
/// slashes are followed by a host, and `%2e` is a dot in dot segments. If the reference is absolute, it is returned
/// cleaned, with its dot segments. Hosts and ports are not checked.
///
/// Deviations:
/// * `///x` with an http base has the host `x`, as in the standard. Version 2.5 of the `url` crate rejects it.
/// * Dot segments are kept in a path that has a segment like `c:`, except in file URLs. The standard does not treat it
///   as a drive there, but the `url` crate does, so the parser of the result decides.
/// * A `file:` path with drive letters is [`Unresolvable::UncertainDrive`] where the standard, its older versions and
///   the crate differ: a drive that is not the first segment, `c|`, a drive after a host, a drive in the reference, or a
///   segment like `c:x`.
/// * Other schemes (`thismessage:/`, `x://h/p`) follow RFC 3986 on the cleaned texts. Only a fragment can be relative to
///   `mailto:x`.
/// * Spaces at the end of the path or query of the base would become trailing spaces when the fragment is removed. Only
///   these are percent-encoded.
pub fn resolve_as_browser(base: &str, reference: &str) -> Result<String, Unresolvable> {
    let base = cleaned(base);
    let reference = cleaned(reference);
    let Some((base_scheme, base_rest)) = scheme_and_rest(&base) else {
        return Err(Unresolvable::BaseNotAbsolute);
    };
    let mut relative: &str = &reference;
    if let Some((scheme, rest)) = scheme_and_rest(&reference) {
        let is_of_base = scheme.eq_ignore_ascii_case(base_scheme);
        match Family::of(scheme) {
            Family::Other => return Ok(reference.into_owned()),
            Family::Network if !is_of_base || leading_slashes(rest) >= 2 => {
                return Ok(with_host(scheme, rest));
            }
            Family::File if !is_of_base => return certain(format!("{scheme}:{}", forward(rest))),
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

/// Changes an absolute reference to the form in which a browser understands it: after `https:`, the host follows,
/// whatever the number of slashes. `reference` must be [`Relation::Absolute`].
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

/// Characters that browsers percent-encode in a path. All characters outside ASCII are encoded, too.
const ESCAPED: AsciiSet = CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'<')
    .add(b'>')
    .add(b'`')
    .add(b'{')
    .add(b'}');

/// Returns a key for comparing absolute URLs: two URLs with equal keys are the same URL for a browser, which removes
/// dot segments and percent-encodes blanks and characters outside ASCII. Existing escapes are not decoded, as in
/// [`equivalence_key`].
pub fn browser_key(url: &str) -> String {
    let key = equivalence_key(&absolute_as_browser(Cow::Borrowed(url)));
    let reference = UrlReference::split(&key);
    let path = if reference.path.starts_with('/') {
        remove_dot_segments(reference.path, 0, dots)
    } else {
        reference.path.to_owned()
    };
    let escaped = |text: &str| utf8_percent_encode(text, &ESCAPED).to_string();
    let (path, query) = (escaped(&path), reference.query.map(escaped));
    UrlReference {
        path: &path,
        query: query.as_deref(),
        ..reference
    }
    .recompose()
}

/// Returns the host and the path of a reference without a scheme, such as `//host/path`. Returns `None` if the
/// reference has no host.
pub fn behind_slashes(reference: &str) -> Option<Cow<'_, str>> {
    let slashes = leading_slashes(reference);
    (slashes >= 2).then(|| forward(&reference[slashes..]))
}

/// Schemes whose URLs always have a host. Together with `file`, they are the "special" schemes of the URL standard. A
/// reference with such a scheme can be relative, as in `http:g`.
pub(crate) const NETWORK_SCHEMES: [&str; 5] = ["http", "https", "ftp", "ws", "wss"];

#[derive(PartialEq)]
enum Family {
    Network,
    File,
    Other,
}

impl Family {
    fn of(scheme: &str) -> Self {
        let is = |name: &&str| scheme.eq_ignore_ascii_case(name);
        if NETWORK_SCHEMES.iter().any(is) {
            Self::Network
        } else if is(&"file") {
            Self::File
        } else {
            Self::Other
        }
    }
}

fn under_network(scheme: &str, rest: &str, relative: &str) -> Result<String, Unresolvable> {
    let base_url = with_host(scheme, rest);
    let base = UrlReference::split(&base_url);
    if base.authority.is_none_or(str::is_empty) {
        return Err(Unresolvable::BaseWithoutHost);
    }
    if let Some(result) = without_path(base, relative) {
        return Ok(result);
    }
    let relative = forward(relative);
    if leading_slashes(&relative) >= 2 {
        return Ok(with_host(scheme, &relative));
    }
    let joined = joined(base.path, "", path_of(&relative));
    let may_have_drive = memchr2(b':', b'|', joined.as_bytes()).is_some();
    let path = if may_have_drive && joined.split('/').any(is_drive) {
        joined
    } else {
        remove_dot_segments(&joined, 0, dots)
    };
    Ok(with_path(base, &path, &relative))
}

fn under_file(scheme: &str, rest: &str, relative: &str) -> Result<String, Unresolvable> {
    let rest = forward(rest);
    let slashes = leading_slashes(&rest);
    // `file://C:/x` has a drive in the place of the host. With fewer than two slashes, a `file:` URL has no host.
    let drive_for_host = slashes == 2 && starts_with_drive(&rest[2..]);
    let base_url = match slashes {
        0 => format!("{scheme}:///{rest}"),
        1 => format!("{scheme}://{rest}"),
        _ if drive_for_host => format!("{scheme}:///{}", &rest[2..]),
        _ => format!("{scheme}:{rest}"),
    };
    let base = UrlReference::split(&base_url);
    let first = base.path.split('/').nth(1).unwrap_or_default();
    let has_drive = is_drive(first);
    let has_host = base.authority.is_some_and(|host| !host.is_empty());
    let is_odd = base.path.split('/').skip(2).any(is_drive)
        || base.path.split('/').any(is_drive_and_more)
        || has_drive && (has_host || first.ends_with('|'));
    if is_odd {
        return Err(Unresolvable::UncertainDrive);
    }
    if let Some(result) = without_path(base, relative) {
        return Ok(result);
    }
    let relative = forward(relative);
    if leading_slashes(&relative) >= 2 {
        return certain(format!("{scheme}:{relative}"));
    }
    let relative_path = path_of(&relative);
    let mut segments = relative_path.split('/');
    if segments.any(|segment| is_drive(segment) || is_drive_and_more(segment)) {
        return Err(Unresolvable::UncertainDrive);
    }
    let drive = base
        .path
        .get(..=first.len())
        .filter(|_| has_drive)
        .unwrap_or_default();
    let path = remove_dot_segments(&joined(base.path, drive, relative_path), drive.len(), dots);
    Ok(with_path(base, &path, &relative))
}

/// Returns an error if a segment of the path looks like `C:x`, because programs disagree about its meaning. The URL
/// standard reads it as an ordinary name, Windows as a drive, and the `url` crate sometimes changes it to `C:/x`.
fn certain(url: String) -> Result<String, Unresolvable> {
    let mut segments = UrlReference::split(&url).path.split('/');
    if segments.any(is_drive_and_more) {
        Err(Unresolvable::UncertainDrive)
    } else {
        Ok(url)
    }
}

fn without_path(base: UrlReference<'_>, relative: &str) -> Option<String> {
    if !path_of(relative).is_empty() {
        return None;
    }
    let UrlReference {
        query, fragment, ..
    } = UrlReference::split(relative);
    let unchanged = UrlReference {
        query: query.or(base.query),
        fragment,
        ..base
    };
    let mut text = unchanged.recompose();
    // A URL parser removes spaces at the end of a URL. Here they belong to the path or the query of the base, so they
    // are percent-encoded.
    let blanks = text.split_off(text.trim_end_matches(is_c0_or_space).len());
    text.extend(blanks.bytes().map(percent_encode_byte));
    Some(text)
}

fn with_path(base: UrlReference<'_>, path: &str, relative: &str) -> String {
    let behind = &relative[path_of(relative).len()..];
    let site = UrlReference {
        path,
        query: None,
        fragment: None,
        ..base
    };
    site.recompose() + behind
}

/// Returns the path of a text that has no scheme and no host. The text may only seem to have a scheme: in `http:a:b`,
/// the text after `http:` is the path `a:b`.
fn path_of(text: &str) -> &str {
    memchr2(b'?', b'#', text.as_bytes()).map_or(text, |end| &text[..end])
}

fn with_host(scheme: &str, rest: &str) -> String {
    let rest = &rest[leading_slashes(rest)..];
    [scheme, "://", &forward(rest)].concat()
}

fn forward(text: &str) -> Cow<'_, str> {
    let (path, tail) = text.split_at(path_of(text).len());
    if memchr(b'\\', path.as_bytes()).is_some() {
        Cow::Owned(path.replace('\\', "/") + tail)
    } else {
        Cow::Borrowed(text)
    }
}

/// Joins the directory of the base path with a relative path. The directory usually ends at the last slash. If the last
/// segment of the base is `.` or `..`, or if the base is only a drive, the whole base is the directory.
fn joined(base: &str, drive: &str, path: &str) -> String {
    let folder = up_to_last_slash(base);
    if path.starts_with('/') {
        [drive, path].concat()
    } else if base.is_empty() || base == drive || dots(&base[folder.len()..]) > 0 {
        [base, "/", path].concat()
    } else {
        [folder, path].concat()
    }
}

/// Returns 1 for `.`, 2 for `..`, and 0 for other segments. Each dot may also be written as `%2e`.
fn dots(segment: &str) -> usize {
    let mut dots = 0;
    let mut rest = segment.as_bytes();
    while let [b'.', behind @ ..] | [b'%', b'2', b'e' | b'E', behind @ ..] = rest {
        dots += 1;
        rest = behind;
    }
    match rest {
        [] if dots <= 2 => dots,
        _ => 0,
    }
}

fn is_drive(segment: &str) -> bool {
    matches!(segment.as_bytes(), [letter, b':' | b'|'] if letter.is_ascii_alphabetic())
}

/// Returns whether a segment begins with a drive and continues, such as `C:x`.
fn is_drive_and_more(segment: &str) -> bool {
    segment.len() > 2 && segment.get(..2).is_some_and(is_drive)
}

fn starts_with_drive(text: &str) -> bool {
    let end = text.find(['/', '\\', '?', '#']).unwrap_or(text.len());
    is_drive(&text[..end])
}

fn leading_slashes(text: &str) -> usize {
    let is_slash = |byte: &u8| matches!(byte, b'/' | b'\\');
    text.bytes().take_while(is_slash).count()
}

/// Splits a URL into scheme and rest. A scheme is a letter, followed by letters, digits, `+`, `-` and `.` (RFC 3986 §3.1).
pub(crate) fn scheme_and_rest(text: &str) -> Option<(&str, &str)> {
    let is_valid = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    let end = text.bytes().position(|byte| !is_valid(byte))?;
    let (scheme, rest) = text.split_at(end);
    let rest = rest.strip_prefix(':')?;
    scheme
        .starts_with(|first: char| first.is_ascii_alphabetic())
        .then_some((scheme, rest))
}

fn cleaned(text: &str) -> Cow<'_, str> {
    let text = text.trim_matches(is_c0_or_space);
    if memchr3(b'\t', b'\n', b'\r', text.as_bytes()).is_some() {
        Cow::Owned(text.replace(['\t', '\n', '\r'], ""))
    } else {
        Cow::Borrowed(text)
    }
}

fn is_c0_or_space(character: char) -> bool {
    character <= ' '
}

#[cfg(test)]
mod tests;
