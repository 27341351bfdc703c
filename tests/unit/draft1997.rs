//! draft-fielding-url-syntax-05 (May 1997), appendix C: every row, under `Dialect::Draft1997`, and
//! the rows on which RFC 3986 says something else.
//!
//! Where the draft's table and its algorithm (§5.2) meet, they agree on every row. Three rows need
//! reading:
//! * `#s` and the empty reference are "(current document)": the algorithm ends at step 2 with the
//!   reference as it is, so that is what `resolve` gives back;
//! * `../../../g` shows what steps 6f and 6g leave open: the nothing before the first
//!   slash is not a segment;
//! * the last row of C.2 (`http://a/../b/c`) is an absolute reference: its dots stay.

use embody::link::url::{Dialect, resolve};

const BASE: &str = "http://a/b/c/d;p?q";

/// C.1, normal examples. `(current document)` is written as nothing.
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

/// C.2, abnormal examples. The last is printed the other way round, as what parsers must not do:
/// "strip a lead relative symbolic path element": `http://a/../b/c = http://a/b/c`.
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

/// The rows on which the dialects differ: reference, Draft1997, RFC 3986. The README prints them.
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
        let resolved = resolve(BASE, reference, Dialect::Draft1997);
        assert_eq!(resolved.as_deref(), Ok(*expected), "{reference:?}");
    }
}

#[test]
fn the_dialects_differ_on_these_rows_and_on_no_others() {
    let found: Vec<_> = NORMAL
        .iter()
        .chain(ABNORMAL)
        .filter_map(|(reference, _)| {
            let draft = resolve(BASE, reference, Dialect::Draft1997).unwrap();
            let today = resolve(BASE, reference, Dialect::Rfc3986).unwrap();
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
    // Another road to the same table: step 6 as the draft words it, replacing until nothing
    // matches, where the library keeps a stack. The table and the algorithm agree.
    for (reference, expected) in NORMAL.iter().chain(ABNORMAL) {
        let path_like =
            !reference.contains(':') && !reference.starts_with(['/', '#']) && !reference.is_empty();
        if path_like {
            assert_eq!(literal_step_6(reference), *expected, "{reference:?}");
        }
    }
}

/// Step 6 as written, for references that are relative paths under `BASE`.
fn literal_step_6(reference: &str) -> String {
    let (body, fragment) = reference.split_at(reference.find('#').unwrap_or(reference.len()));
    let mut buffer = format!("/b/c/{body}");
    while let Some(at) = buffer.find("/./") {
        buffer.replace_range(at + 1..at + 3, "");
    }
    if buffer.ends_with("/.") {
        buffer.pop();
    }
    // "<segment>/../" with a segment behind a slash; leftmost first.
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
