//! A list of labels with commas between them, as in the field `X-Gmail-Labels` of a Google Takeout.
//!
//! No standard describes the list. A label that contains a comma is in quotation marks: `"a, b",c`. Other labels are
//! written as they are, so a quotation mark can also be a character of a label: `12" vinyl,Play`. The rules are
//! therefore those of CSV, and stricter than those of a quoted string in a header field:
//! * A quotation mark opens a label only at the start of the label.
//! * It needs a second one, with nothing but blanks between this one and the next comma or the end of the list.
//! * `\"` and `\\` in such a label are `"` and `\`. Any other backslash is a character.
//!
//! Every other quotation mark is a character. [`written_label`] writes any label so that [`labels`] reads it back.

#[cfg(any(test, feature = "cli"))]
use std::borrow::Cow;

/// Returns the labels in a list, without the blanks around them. Empty labels are left out. `text` must be decoded
/// (RFC 2047). If only the start of the list is known (`is_cut`), the incomplete last label is left out.
pub(crate) fn labels(text: &str, is_cut: bool) -> Vec<String> {
    let mut labels = Vec::new();
    let mut push = |label: &str| {
        let label = label.trim();
        if !label.is_empty() {
            labels.push(label.to_owned());
        }
    };
    let mut list = Some(text);
    while let Some(rest) = list {
        let rest = rest.trim_start();
        list = match quoted(rest) {
            QuotedLabel::Complete(label, behind) => {
                push(&label);
                behind
            }
            QuotedLabel::Unclosed if is_cut => None,
            QuotedLabel::Unclosed | QuotedLabel::None => match rest.split_once(',') {
                Some((label, behind)) => {
                    push(label);
                    Some(behind)
                }
                None => {
                    if !is_cut {
                        push(rest);
                    }
                    None
                }
            },
        };
    }
    labels
}

/// Returns the label as it is written in a list: in quotation marks if it contains a comma or if it would otherwise
/// start like a label in quotation marks.
#[cfg(any(test, feature = "cli"))]
pub(crate) fn written_label(label: &str) -> Cow<'_, str> {
    if !label.contains(',') && !label.starts_with('"') {
        return Cow::Borrowed(label);
    }
    let mut written = String::with_capacity(label.len() + 2);
    written.push('"');
    for symbol in label.chars() {
        if matches!(symbol, '"' | '\\') {
            written.push('\\');
        }
        written.push(symbol);
    }
    written.push('"');
    Cow::Owned(written)
}

/// A label in quotation marks at the start of a list.
enum QuotedLabel<'t> {
    /// The label, and the rest of the list after its comma. The rest is `None` at the end of the list.
    Complete(String, Option<&'t str>),
    /// The list ends before a second quotation mark.
    Unclosed,
    /// The list does not start with a label in quotation marks.
    None,
}

/// Reads a label in quotation marks. The search ends at the next quotation mark, so all searches in a list take linear
/// time together.
fn quoted(text: &str) -> QuotedLabel<'_> {
    let Some(text) = text.strip_prefix('"') else {
        return QuotedLabel::None;
    };
    let mut label = String::new();
    let mut symbols = text.chars();
    while let Some(symbol) = symbols.next() {
        let rest = symbols.as_str();
        match symbol {
            '"' => {
                let behind = rest.trim_start();
                return match behind.strip_prefix(',') {
                    Some(next) => QuotedLabel::Complete(label, Some(next)),
                    None if behind.is_empty() => QuotedLabel::Complete(label, None),
                    None => QuotedLabel::None,
                };
            }
            '\\' if rest.starts_with(['"', '\\']) => label.extend(symbols.next()),
            symbol => label.push(symbol),
        }
    }
    QuotedLabel::Unclosed
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn labels_of_a_list_are_between_commas_that_are_not_in_quotation_marks() {
        for (list, expected) in [
            ("Inbox", &["Inbox"][..]),
            (" Inbox , ,Work,", &["Inbox", "Work"]),
            ("\"a, b\",c", &["a, b", "c"]),
            ("\"a,b\" , c", &["a,b", "c"]),
            ("12\" vinyl,Play", &["12\" vinyl", "Play"]),
            ("Play,12\"", &["Play", "12\""]),
            ("12\" vinyl,7\" single", &["12\" vinyl", "7\" single"]),
            ("\"never closed, a", &["\"never closed", "a"]),
            ("\"a\" b,c", &["\"a\" b", "c"]),
            ("\"a, b\" c,\"d\"", &["\"a", "b\" c", "d"]),
            ("say \"hi\",x", &["say \"hi\"", "x"]),
            ("\",a", &["\"", "a"]),
            ("\"a \\\"b\\\", c\",d\\e", &["a \"b\", c", "d\\e"]),
            ("\"a\\b, \\\\\"", &["a\\b, \\"]),
            ("\"\",\" \",,", &[]),
            ("", &[]),
        ] {
            assert_eq!(labels(list, false), expected, "{list}");
        }
    }

    #[test]
    fn incomplete_last_label_of_a_cut_list_is_left_out() {
        for (list, expected) in [
            ("a,b,c", &["a", "b"][..]),
            ("a,\"b, c", &["a"]),
            ("a,\"b, c\"", &["a", "b, c"]),
            ("a,12\" v,c", &["a", "12\" v"]),
        ] {
            assert_eq!(labels(list, true), expected, "{list}");
        }
    }

    proptest! {
        #[test]
        fn any_labels_in_a_list_are_read_back(
            labels in prop::collection::vec("[a-c,\"\\\\ =?é\u{a0}]{0,9}", 0..9),
        ) {
            let labels: Vec<&str> = labels.iter().map(|it| it.trim()).filter(|it| !it.is_empty()).collect();
            let list: Vec<_> = labels.iter().map(|label| written_label(label)).collect();
            prop_assert_eq!(super::labels(&list.join(","), false), labels);
        }
    }
}
