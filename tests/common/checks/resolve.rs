//! Resolving: total, textual, and as `Url::join` where browsers are meant.

use embody::internals::link::base::Base;
use embody::internals::link::url::{
    Reference, Relation, Unresolvable, equivalence_key, masked, relation, resolve,
    resolve_as_browser, unwrapped, without_fragment,
};
use url::Url;

/// The first line is the base, the rest the reference.
pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let (base, reference) = text.split_once('\n').unwrap_or(("", text));
    for one in [base, reference] {
        assert_eq!(Reference::split(one).recompose(), one);
        let _ = equivalence_key(one);
        let _ = (masked(one), unwrapped(one), without_fragment(one));
        let _ = Base::of_retrieval(one);
    }
    if let Ok(absolute) = resolve(base, reference) {
        assert!(!Reference::split(&absolute).is_relative(), "{absolute:?}");
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

/// What a comparison with the crate came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Agreement {
    /// Both give this URL.
    Joined,
    /// Neither gives one.
    Refused,
    /// We do not say, for drive letters on which the standard, its history and the crate differ.
    Uncertain,
}

/// Whether parsing our result is joining.
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

/// Bases on which the crate (2.5.8) trips over its own debug assertion when it joins a reference
/// that begins with dots: `file:///C:`.
pub fn is_drive_only(base: &Url) -> bool {
    base.scheme() == "file" && base.path().ends_with(':')
}

/// `///x` under a network base: the standard ignores slashes from two up, the `url` crate (2.5)
/// takes two and then misses the host. Parsing `http:///x` it gets it right, so that is asked
/// instead.
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
