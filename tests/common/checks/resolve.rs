//! Checks that resolving a reference always gives a result or an error, works on text, and gives the same as
//! `Url::join` if the rules of browsers apply.

use embody::internals::link::base::Base;
use embody::internals::link::url::{
    Relation, Unresolvable, UrlReference, equivalence_key, masked, relation, resolve,
    resolve_as_browser, unwrapped, without_fragment,
};
use url::Url;

/// Checks a base URL (the first line) and a reference (the rest).
pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let (base, reference) = text.split_once('\n').unwrap_or(("", text));
    for one in [base, reference] {
        assert_eq!(UrlReference::split(one).recompose(), one);
        let _ = equivalence_key(one);
        let _ = (masked(one), unwrapped(one), without_fragment(one));
        let _ = Base::of_retrieval(one);
    }
    if let Ok(absolute) = resolve(base, reference) {
        assert!(
            !UrlReference::split(&absolute).is_relative(),
            "{absolute:?}"
        );
    }
    let _ = relation(None, reference);
    let _ = resolve_as_browser(base, reference);
    let Ok(parsed) = Url::parse(base) else {
        return;
    };
    if !["http", "https", "ftp", "file"].contains(&parsed.scheme()) || is_drive_only(&parsed) {
        return;
    }
    if let Err(difference) = agrees(base, &parsed, reference) {
        panic!("base {base:?} reference {reference:?}: {difference}");
    }
    if relation(Some(base), reference) == Relation::Absolute
        && let Ok(ours) = resolve_as_browser(base, reference)
    {
        assert_eq!(Url::parse(&ours).ok(), Url::parse(reference).ok());
    }
}

/// The result of the comparison with the crate `url`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Agreement {
    /// Both give the same URL.
    Joined,
    /// Both give an error.
    Refused,
    /// embody gives no result, because the standard, its history and the crate differ on drive letters.
    Uncertain,
}

/// Compares the result of embody with `Url::join`.
pub fn agrees(base: &str, parsed: &Url, reference: &str) -> Result<Agreement, String> {
    let expected =
        crate_refuses_three_slashes(parsed, reference).unwrap_or_else(|| parsed.join(reference));
    let ours = resolve_as_browser(base, reference);
    if ours == Err(Unresolvable::UncertainDrive) {
        assert!(parsed.scheme() == "file" || is_file(reference));
        assert!([base, reference].concat().contains([':', '|']));
        return Ok(Agreement::Uncertain);
    }
    let read = ours.as_deref().ok().and_then(|text| Url::parse(text).ok());
    if read == expected.clone().ok() {
        return Ok(match expected {
            Ok(_) => Agreement::Joined,
            Err(_) => Agreement::Refused,
        });
    }
    Err(format!(
        "{ours:?} reads {:?}, join gives {:?}",
        read.map(String::from),
        expected.map(String::from)
    ))
}

/// Returns whether the base consists only of a drive letter, such as `file:///C:`. With such a base, the crate (2.5.8)
/// panics in its own debug assertion if the reference begins with dots.
pub fn is_drive_only(base: &Url) -> bool {
    base.scheme() == "file" && base.path().ends_with(':')
}

/// Returns the result for a reference such as `///x` with a base on the network. The standard ignores all slashes after
/// the second one. The crate `url` (2.5) removes two slashes and then finds no host. It parses `http:///x` correctly,
/// so that URL is parsed instead.
fn crate_refuses_three_slashes(
    base: &Url,
    reference: &str,
) -> Option<Result<Url, url::ParseError>> {
    let trimmed = cleaned(reference);
    let scheme = format!("{}:", base.scheme());
    let rest = match trimmed.get(..scheme.len()) {
        Some(start) if start.eq_ignore_ascii_case(&scheme) => &trimmed[scheme.len()..],
        _ => &trimmed,
    };
    let many = rest.starts_with("///") || rest.starts_with("//\\");
    (base.scheme() != "file" && many).then(|| Url::parse(&format!("{scheme}{rest}")))
}

fn cleaned(reference: &str) -> String {
    let trimmed = reference.trim_matches(|one| one <= ' ');
    trimmed.replace(['\t', '\n', '\r'], "")
}

pub fn is_file(reference: &str) -> bool {
    cleaned(reference).to_ascii_lowercase().starts_with("file:")
}
