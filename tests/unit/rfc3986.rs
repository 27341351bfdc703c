//! RFC 3986 §5.4: every row of both tables.

use embody::link::url::{UrlReference, resolve};

const BASE: &str = "http://a/b/c/d;p?q";

/// §5.4.1, normal examples.
const NORMAL: &[(&str, &str)] = &[
    ("g:h", "g:h"),
    ("g", "http://a/b/c/g"),
    ("./g", "http://a/b/c/g"),
    ("g/", "http://a/b/c/g/"),
    ("/g", "http://a/g"),
    ("//g", "http://g"),
    ("?y", "http://a/b/c/d;p?y"),
    ("g?y", "http://a/b/c/g?y"),
    ("#s", "http://a/b/c/d;p?q#s"),
    ("g#s", "http://a/b/c/g#s"),
    ("g?y#s", "http://a/b/c/g?y#s"),
    (";x", "http://a/b/c/;x"),
    ("g;x", "http://a/b/c/g;x"),
    ("g;x?y#s", "http://a/b/c/g;x?y#s"),
    ("", "http://a/b/c/d;p?q"),
    (".", "http://a/b/c/"),
    ("./", "http://a/b/c/"),
    ("..", "http://a/b/"),
    ("../", "http://a/b/"),
    ("../g", "http://a/b/g"),
    ("../..", "http://a/"),
    ("../../", "http://a/"),
    ("../../g", "http://a/g"),
];

/// §5.4.2, abnormal examples. For `http:g` the RFC gives two results; this is the strict one.
const ABNORMAL: &[(&str, &str)] = &[
    ("../../../g", "http://a/g"),
    ("../../../../g", "http://a/g"),
    ("/./g", "http://a/g"),
    ("/../g", "http://a/g"),
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
    ("g?y/./x", "http://a/b/c/g?y/./x"),
    ("g?y/../x", "http://a/b/c/g?y/../x"),
    ("g#s/./x", "http://a/b/c/g#s/./x"),
    ("g#s/../x", "http://a/b/c/g#s/../x"),
    ("http:g", "http:g"),
];

#[test]
fn every_row_of_section_5_4_holds() {
    assert_eq!((NORMAL.len(), ABNORMAL.len()), (23, 19));
    for (reference, expected) in NORMAL.iter().chain(ABNORMAL) {
        let resolved = resolve(BASE, reference);
        assert_eq!(resolved.as_deref(), Ok(*expected), "{reference:?}");
    }
}

#[test]
fn url_crate_resolves_the_examples_of_rfc_3986_alike() {
    // The `url` crate is not strict: it resolves `http:g` as a relative reference.
    let base = url::Url::parse(BASE).unwrap();
    for (reference, expected) in NORMAL.iter().chain(ABNORMAL) {
        if *reference != "http:g" {
            let expected = url::Url::parse(expected).unwrap();
            assert_eq!(base.join(reference).unwrap(), expected, "{reference:?}");
        }
    }
}

#[test]
fn the_example_of_appendix_b_comes_apart_as_printed() {
    let reference = UrlReference::split("http://www.ics.uci.edu/pub/ietf/uri/#Related");
    assert_eq!(
        (reference.scheme, reference.authority, reference.path),
        (Some("http"), Some("www.ics.uci.edu"), "/pub/ietf/uri/")
    );
    assert_eq!(
        (reference.query, reference.fragment),
        (None, Some("Related"))
    );
}
