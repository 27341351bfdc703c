use super::*;

#[test]
fn in_the_text_of_an_element_a_reference_needs_no_end() {
    for (raw, attribute, element) in [
        ("x?a&amp;b", "x?a&b", "x?a&b"),
        ("x?a&ampb", "x?a&ampb", "x?a&b"),
        ("x?a&lt=b", "x?a&lt=b", "x?a<=b"),
        ("x?a&b=c&d", "x?a&b=c&d", "x?a&b=c&d"),
        ("&notit;&notin;", "&notit;%E2%88%89", "%C2%ACit;%E2%88%89"),
        ("&amp", "&", "&"),
        ("&#38;&#x26&", "&&&", "&&&"),
    ] {
        let read = |within| String::from_utf8(text(raw.as_bytes(), within).into_owned());
        assert_eq!(read(Within::Attribute).as_deref(), Ok(attribute), "{raw}");
        assert_eq!(read(Within::Text).as_deref(), Ok(element), "{raw}");
    }
}

#[test]
fn every_name_of_the_standard_is_found() {
    let mut count = 0;
    for (&written, &value) in htmlize::ENTITIES.entries() {
        assert_eq!(
            named(written),
            Some(value),
            "{}",
            String::from_utf8_lossy(written)
        );
        let characters = std::str::from_utf8(value).expect("UTF-8").chars();
        assert!((1..=2).contains(&characters.count()));
        count += 1;
    }
    assert_eq!(count, 2231);
    let open = htmlize::ENTITIES
        .keys()
        .filter(|name| !name.ends_with(b";"));
    assert_eq!(
        open.map(|name| name.len() - 1).max(),
        Some(LONGEST_OPEN_NAME)
    );
    for unknown in [b"&nothing;".as_slice(), b"&", b"&;", b"amp;", b"&am"] {
        assert_eq!(named(unknown), None);
    }
}
