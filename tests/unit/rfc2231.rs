//! RFC 2231, parameter value continuations and extensions, in the parameters of external bodies.

use super::common::mail::{assert_left, expand, second_part, with_external_body, with_url};
use embody::Policy;

/// Returns the text that a reference with these parameters gives.
fn text(parameters: &str) -> String {
    let mail = with_external_body(parameters, "Content-Type: text/plain\n");
    let (output, report) = expand(&mail);
    assert_eq!(report.expanded(), 1, "{parameters}: {report:?}");
    let part = second_part(&output);
    let (_, body) = part.split_once("\n\n").unwrap();
    body.to_owned()
}

#[test]
fn sections_are_joined_without_anything_between() {
    assert_eq!(
        text("access-type=URL; URL*0=\"data:text/pl\"; URL*1=\"ain,abc\"; URL*2=\"def\""),
        "abcdef"
    );
}

#[test]
fn sections_may_come_in_any_order_among_other_parameters() {
    assert_eq!(
        text("URL*2=three; URL*0=\"data:text/plain,one\"; access-type=URL; URL*1=two; size=1"),
        "onetwothree"
    );
    assert_eq!(
        text("ACCESS-TYPE*1=L; url*0=\"data:text/plain,x\"; access-type*0=UR"),
        "x"
    );
}

#[test]
fn more_than_ten_sections_count_as_numbers() {
    let sections: String = (1..30)
        .rev()
        .map(|section| format!("; URL*{section}=\".{section}\""))
        .collect();
    let expected: String = (1..30).map(|section| format!(".{section}")).collect();
    assert_eq!(
        text(&format!(
            "access-type=URL; URL*0=\"data:text/plain,\"{sections}"
        )),
        expected
    );
}

#[test]
fn the_encoded_layer_is_decoded_exactly_once() {
    assert_eq!(
        text("access-type=URL; URL*=us-ascii''data%3atext%2fplain%2ca%2520b"),
        "a b"
    );
    assert_eq!(
        text("access-type=URL; URL*=us-ascii'en'data:text/plain%2c%252541"),
        "%41"
    );
}

#[test]
fn sections_may_be_encoded_and_plain() {
    assert_eq!(
        text("access-type=URL; URL*0*=''data%3atext%2fplain; URL*1=\",%2541\"; URL*2*=%42"),
        "%41B"
    );
}

#[test]
fn url_parameter_with_a_missing_section_leaves_the_part_unchanged() {
    for parameters in [
        "access-type=URL; URL*0=\"data:text/plain,a\"; URL*2=\"c\"",
        "access-type=URL; URL*1=\"data:text/plain,a\"",
    ] {
        let mail = with_external_body(parameters, "Content-Type: text/plain\n");
        assert_left(Policy::default(), &mail, "missing-parameter");
    }
}

#[test]
fn folded_words_inside_sections_lose_their_blanks() {
    assert_eq!(
        text("access-type=URL;\n\tURL*0=\"data:text/plain,\n\t ab\";\n\tURL*1=\"c\n d\""),
        "abcd"
    );
}

#[test]
fn a_parameter_that_needs_it_is_written_encoded_and_reads_back() {
    let mail = with_url("data:text/plain;charset=utf-8;name=Gr%C3%BC%C3%9Fe,x", "");
    let (output, report) = expand(&mail);
    assert_eq!(report.expanded(), 1);
    let part = second_part(&output);
    assert!(part.is_ascii(), "{part}");
    let field = part.split_once("\nContent-Transfer").unwrap().0;
    let value = field.strip_prefix("Content-Type:").unwrap();
    let read = embody::mime::MediaType::parse(value.as_bytes());
    assert_eq!(
        read.parameter("name").as_deref(),
        Some("Grüße".as_bytes()),
        "{part}"
    );
}

#[test]
fn ten_thousand_sections_are_no_trouble() {
    let sections: String = (1..10_000)
        .rev()
        .map(|at| format!(";\n URL*{at}=x"))
        .collect();
    let joined = text(&format!(
        "access-type=URL; URL*0=\"data:text/plain,\"{sections}"
    ));
    let unfolded = joined.replace("=\n", "");
    assert_eq!(unfolded.len(), 9_999);
}
