//! Checks all rows of appendix C of draft-fielding-url-syntax-05 (May 1997) with the algorithm of its §5.2, and the
//! rows for which RFC 3986 gives another result. embody follows RFC 3986.
//!
//! The table of the draft and its algorithm agree on every row that both cover. Three rows need an explanation:
//! * `#s` and the empty reference are "(current document)": the algorithm ends at step 2 with the reference as it is,
//!   so that is the result here.
//! * `../../../g` decides what steps 6f and 6g leave open: the empty text before the first slash is not a segment.
//! * The last row of C.2 (`http://a/../b/c`) is an absolute reference, so its dots stay.

use embody::link::url::{UrlReference, resolve};

const BASE: &str = "http://a/b/c/d;p?q";

/// C.1, normal examples. `(current document)` is an empty text here.
const NORMAL: &[(&str, &str)] = &[
    ("g:h", "g:h"),
    ("g", "http://a/b/c/g"),
    ("./g", "http://a/b/c/g"),
    ("g/", "http://a/b/c/g/"),
    ("/g", "http://a/g"),
    ("//g", "http://g"),
    ("?y", "http://a/b/c/?y"),
    ("g?y", "http://a/b/c/g?y"),
    ("#s", "#s"),
    ("g#s", "http://a/b/c/g#s"),
    ("g?y#s", "http://a/b/c/g?y#s"),
    (";x", "http://a/b/c/;x"),
    ("g;x", "http://a/b/c/g;x"),
    ("g;x?y#s", "http://a/b/c/g;x?y#s"),
    (".", "http://a/b/c/"),
    ("./", "http://a/b/c/"),
    ("..", "http://a/b/"),
    ("../", "http://a/b/"),
    ("../g", "http://a/b/g"),
    ("../..", "http://a/"),
    ("../../", "http://a/"),
    ("../../g", "http://a/g"),
];

/// C.2, abnormal examples. The draft prints the last row as a counterexample, because parsers must not "strip a lead
/// relative symbolic path element": `http://a/../b/c = http://a/b/c`.
const ABNORMAL: &[(&str, &str)] = &[
    ("", ""),
    ("../../../g", "http://a/../g"),
    ("../../../../g", "http://a/../../g"),
    ("/./g", "http://a/./g"),
    ("/../g", "http://a/../g"),
    ("g.", "http://a/b/c/g."),
    (".g", "http://a/b/c/.g"),
    ("g..", "http://a/b/c/g.."),
    ("..g", "http://a/b/c/..g"),
    ("./../g", "http://a/b/g"),
    ("./g/.", "http://a/b/c/g/"),
    ("g/./h", "http://a/b/c/g/h"),
    ("g/../h", "http://a/b/c/h"),
    ("g;x=1/./y", "http://a/b/c/g;x=1/y"),
    ("g;x=1/../y", "http://a/b/c/y"),
    ("g?y/./x", "http://a/b/c/g?y/x"),
    ("g?y/../x", "http://a/b/c/x"),
    ("g#s/./x", "http://a/b/c/g#s/./x"),
    ("g#s/../x", "http://a/b/c/g#s/../x"),
    ("http:g", "http:g"),
    ("http:", "http:"),
    ("http://a/../b/c", "http://a/../b/c"),
];

/// The rows with different results: reference, draft, RFC 3986. docs/url-references.md contains the same table.
const DIFFERENT: &[(&str, &str, &str)] = &[
    ("?y", "http://a/b/c/?y", "http://a/b/c/d;p?y"),
    ("#s", "#s", "http://a/b/c/d;p?q#s"),
    ("", "", "http://a/b/c/d;p?q"),
    ("../../../g", "http://a/../g", "http://a/g"),
    ("../../../../g", "http://a/../../g", "http://a/g"),
    ("/./g", "http://a/./g", "http://a/g"),
    ("/../g", "http://a/../g", "http://a/g"),
    ("g?y/./x", "http://a/b/c/g?y/x", "http://a/b/c/g?y/./x"),
    ("g?y/../x", "http://a/b/c/x", "http://a/b/c/g?y/../x"),
    ("http://a/../b/c", "http://a/../b/c", "http://a/b/c"),
];

#[test]
fn every_row_of_appendix_c_holds() {
    assert_eq!((NORMAL.len(), ABNORMAL.len()), (22, 22));
    for (reference, expected) in NORMAL.iter().chain(ABNORMAL) {
        assert_eq!(resolved(BASE, reference), *expected, "{reference:?}");
    }
}

#[test]
fn the_draft_and_rfc_3986_differ_on_these_rows_and_on_no_others() {
    let found: Vec<_> = NORMAL
        .iter()
        .chain(ABNORMAL)
        .filter_map(|(reference, _)| {
            let draft = resolved(BASE, reference);
            let today = resolve(BASE, reference).unwrap();
            (draft != today).then_some((*reference, draft, today))
        })
        .collect();
    let expected: Vec<_> = DIFFERENT
        .iter()
        .map(|(reference, draft, today)| (*reference, (*draft).to_owned(), (*today).to_owned()))
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn the_rows_with_relative_paths_hold_by_literal_string_replacement_too() {
    // This implements step 6 literally, by replacing text until nothing matches. `collapsed` uses a stack instead. Both
    // must give the results of the table.
    for (reference, expected) in NORMAL.iter().chain(ABNORMAL) {
        let path_like =
            !reference.contains(':') && !reference.starts_with(['/', '#']) && !reference.is_empty();
        if path_like {
            assert_eq!(literal_step_6(reference), *expected, "{reference:?}");
        }
    }
}

/// Step 6 as the draft describes it, for references that are relative paths below `BASE`.
fn literal_step_6(reference: &str) -> String {
    let (body, fragment) = reference.split_at(reference.find('#').unwrap_or(reference.len()));
    let mut buffer = format!("/b/c/{body}");
    while let Some(at) = buffer.find("/./") {
        buffer.replace_range(at + 1..at + 3, "");
    }
    if buffer.ends_with("/.") {
        buffer.pop();
    }
    // "<segment>/../" with a segment after a slash, the leftmost one first.
    let mut from = 0;
    while let Some(at) = buffer[from..].find("/../").map(|at| from + at) {
        let start = buffer[..at].rfind('/').map(|slash| slash + 1);
        match start {
            Some(start) if &buffer[start..at] != ".." => {
                buffer.replace_range(start..at + 4, "");
                from = 0;
            }
            _ => from = at + 1,
        }
    }
    if let Some(body) = buffer.strip_suffix("/..")
        && let Some(slash) = body.rfind('/')
        && &body[slash + 1..] != ".."
    {
        buffer.truncate(slash + 1);
    }
    format!("http://a{buffer}{fragment}")
}

#[test]
fn a_base_without_path_gets_its_slash() {
    assert_eq!(resolved("http://a", "g"), "http://a/g");
    assert_eq!(resolved("http://a?q", "g"), "http://a/g");
}

/// Returns whether the reference is empty or only a fragment.
fn is_same_document(reference: &UrlReference<'_>) -> bool {
    let before = (reference.scheme, reference.authority, reference.query);
    before == (None, None, None) && reference.path.is_empty()
}

/// The algorithm of §5.2 in the draft. A reference to the current document (empty, or only a fragment) is returned
/// unchanged, because the algorithm ends at step 2. Steps 6f and 6g do not define whether the empty text before a
/// leading `/` is a segment. In the table (`../../../g`) it is not.
fn resolved(base: &str, reference: &str) -> String {
    let (base, reference) = (UrlReference::split(base), UrlReference::split(reference));
    // Steps 2 and 3.
    if is_same_document(&reference) || reference.scheme.is_some() {
        return reference.recompose();
    }
    assert!(base.scheme.is_some(), "the base is not absolute");
    // Step 4.
    let mut target = UrlReference {
        scheme: base.scheme,
        ..reference
    };
    if reference.authority.is_some() {
        return target.recompose();
    }
    target.authority = base.authority;
    // Step 5.
    if reference.path.starts_with('/') {
        return target.recompose();
    }
    // Step 6. A base such as http://a has an empty path, so nothing is copied, and the result would lack its slash. The
    // draft does not cover this case. RFC 3986 §5.2.3 adds the slash, and so does this function.
    let mut buffer = match (base.authority, base.path) {
        (Some(_), "") => "/".to_owned(),
        (_, path) => path[..path.rfind('/').map_or(0, |at| at + 1)].to_owned(),
    };
    buffer.push_str(reference.path);
    if let Some(query) = reference.query {
        buffer.push('?');
        buffer.push_str(query);
    }
    let buffer = collapsed(&buffer);
    let (path, query) = match buffer.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (buffer.as_str(), None),
    };
    target.path = path;
    target.query = query;
    target.recompose()
}

/// Steps 6d to 6g of the draft. "The leftmost match, until there is none" is the same as using a stack.
fn collapsed(buffer: &str) -> String {
    let (root, rest) = match buffer.strip_prefix('/') {
        Some(rest) => ("/", rest),
        None => ("", buffer),
    };
    let mut kept: Vec<&str> = Vec::new();
    let mut segments = rest.split('/').peekable();
    while let Some(segment) = segments.next() {
        let removed = match segment {
            "." => true,
            ".." if kept.last().is_some_and(|last| *last != "..") => {
                kept.pop();
                true
            }
            _ => false,
        };
        if !removed {
            kept.push(segment);
        } else if segments.peek().is_none() {
            // If the last segment is removed, the slash before it stays.
            kept.push("");
        }
    }
    format!("{root}{}", kept.join("/"))
}
