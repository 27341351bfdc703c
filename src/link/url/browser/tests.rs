use super::*;

#[track_caller]
fn gives(base: &str, reference: &str, expected: &str) {
    assert_eq!(resolve_as_browser(base, reference).as_deref(), Ok(expected));
}

#[test]
fn references_are_cleaned_as_browsers_do() {
    gives("http://h/a/b", " \t x\ny \u{1}", "http://h/a/xy");
    gives("http://h/a/b", "..\\x?a\\b", "http://h/x?a\\b");
    gives("http://h/a/b", "http:g", "http://h/a/g");
    gives("http://h/a/b", "HTTP:/g", "http://h/g");
    gives("http://h/a/b", "https:g", "https://g");
    gives("http://h/a/b", "\\\\g\\x", "http://g/x");
    gives("http://h/a/b", "///g", "http://g");
    gives("http://h/a/b", "%2e%2E/x", "http://h/x");
    gives("http://h/a/b", "mailto:a\\b", "mailto:a\\b");
}

#[test]
fn resolved_url_keeps_all_characters_that_need_no_encoding() {
    gives(
        "HTTP://U@H:80/Ä b/%41",
        "é \"<>?ü|#ß",
        "HTTP://U@H:80/Ä b/é \"<>?ü|#ß",
    );
    gives("http://h", "?q", "http://h?q");
    gives("http://h/a#f", "", "http://h/a");
    gives("http://h/a?q#f", "#", "http://h/a?q#");
}

#[test]
fn blanks_at_the_end_of_a_resolved_url_are_encoded() {
    gives("http://h/a #f", "", "http://h/a%20");
    gives("http://h/a #f", "?", "http://h/a ?");
}

#[test]
fn a_base_that_ends_in_dots_is_a_folder() {
    gives("http://h/a/b/..", "x", "http://h/a/x");
    gives("http://h/a/b/.", "x", "http://h/a/b/x");
    gives("http://h/a/b/%2e%2e", "../x", "http://h/x");
}

#[test]
fn dot_segments_do_not_remove_the_drive_of_a_file_url() {
    gives("file:///C:/a/b", "../../../x", "file:///C:/x");
    gives("file:///C:/a/b", "/x", "file:///C:/x");
    gives("file://C:/a/b", "x", "file:///C:/a/x");
    gives("file:///C:", "x", "file:///C:/x");
    assert_eq!(
        resolve_as_browser("file:///a/b", "c|/x"),
        Err(Unresolvable::UncertainDrive)
    );
}

#[test]
fn other_schemes_follow_rfc_3986() {
    gives("thismessage:/a/b", "../x", "thismessage:/x");
    gives("x://h/a/b", "//g", "x://g");
    gives("mailto:a@b", "#f", "mailto:a@b#f");
    assert_eq!(
        resolve_as_browser("mailto:a@b", "x"),
        Err(Unresolvable::OpaqueBase)
    );
    assert_eq!(
        resolve_as_browser("a/b", "x"),
        Err(Unresolvable::BaseNotAbsolute)
    );
    assert_eq!(
        resolve_as_browser("http:///", "x"),
        Err(Unresolvable::BaseWithoutHost)
    );
}

#[test]
fn reference_with_only_the_scheme_of_its_base_is_relative() {
    let base = Some("http://h/");
    assert_eq!(relation(base, "http:g"), Relation::Relative);
    assert_eq!(relation(base, "ht\ntp:/g"), Relation::Relative);
    assert_eq!(relation(base, "http://g"), Relation::Absolute);
    assert_eq!(relation(None, "http:g"), Relation::Absolute);
    assert_eq!(relation(Some("https://h/"), "http:g"), Relation::Absolute);
    assert_eq!(relation(base, "cid:x"), Relation::Absolute);
    assert_eq!(relation(base, "//g"), Relation::Relative);
    assert_eq!(relation(base, " \n"), Relation::SameDocument);
    assert_eq!(relation(base, " #x"), Relation::SameDocument);
    assert_eq!(relation(base, "1:x"), Relation::Relative);
}
