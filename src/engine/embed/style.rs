//! External style sheets: checks whether a retrieved sheet may become a part of the message.
//!
//! Sheets are compared after their URLs were made absolute. Equal sheets become one part, and the Content-ID is a hash of this
//! text. The id does not depend on the Content-IDs inside the sheet, so two sheets that import each other can refer to each
//! other.

use std::borrow::Cow;

use super::check::{decoded, label};
use super::pictures::{self, Pictures};
use super::wanted::{SHEET, SourceUrls};
use crate::detail::{QUOTED, excerpt};
use crate::engine::Content;
use crate::engine::plan::documents::absolute_sheet;
use crate::engine::policy::Policy;
use crate::engine::report::{Reason, Refusal};
use crate::mime::picture::{self, FileType};

pub(super) fn of_data(pictures: &mut Pictures<'_>, url: &str) -> Result<usize, Refusal> {
    let policy = pictures.policy;
    let (octets, declared, charset) = decoded(url, policy)?;
    admit(&octets, Some(&declared), policy)?;
    absolute_sheet(&octets, charset.as_deref(), None, policy.limits.body)?;
    Ok(pictures.add_text(Content::of_message(octets), (kind(), charset), None))
}

/// Adds a style sheet that a server sent. Relative URLs in the sheet are resolved against
/// the URL after all redirects.
pub(super) fn of_answer(
    pictures: &mut Pictures<'_>,
    answer: &Content,
    names: SourceUrls<'_>,
) -> Result<usize, Refusal> {
    let policy = pictures.policy;
    let octets = answer.clone();
    admit(octets.bytes(), answer.essence().as_deref(), policy)?;
    let charset = label(answer.charset().as_deref());
    // Relative URLs in the sheet refer to the URL in the document. If `--map` changed the URL of the request, the changed URL
    // is not used as their base.
    let base = if *answer.origin.url == *names.url {
        names.direct
    } else {
        &answer.origin.url
    };
    let sheet = absolute_sheet(
        octets.bytes(),
        charset.as_deref(),
        Some(base),
        policy.limits.body,
    )?;
    let absolute = match sheet {
        Cow::Borrowed(_) => octets,
        Cow::Owned(written) => Content::of_message(written),
    };
    let source = pictures::source(answer, names, policy);
    Ok(pictures.add_text(absolute, (kind(), charset), Some(source)))
}

pub(super) fn kind() -> FileType {
    FileType {
        essence: SHEET,
        extension: "css",
        size: None,
    }
}

fn admit(octets: &[u8], declared: Option<&str>, policy: &Policy) -> Result<(), Refusal> {
    policy.judge_size(octets.len() as u64)?;
    let refuse = |detail: String| Err(Refusal::lasting(Reason::TypeMismatch, detail));
    match declared {
        Some(SHEET) => {}
        Some(declared) => {
            let declared = excerpt(declared, QUOTED);
            return refuse(format!(
                "the content is not a style sheet (text/css), but {declared}"
            ));
        }
        None => {
            return refuse(
                "the content is not declared as text/css, so embody does not use it as a style sheet"
                    .to_owned(),
            );
        }
    }
    if looks_like_markup(octets) {
        return refuse("the content is declared as text/css, but is HTML".to_owned());
    }
    if memchr::memchr(0, octets).is_some() || picture::sniff(octets).is_some() {
        return refuse("the content is declared as text/css, but is not text".to_owned());
    }
    policy.judge_type(SHEET)
}

/// Returns true if the content is HTML and not CSS. HTML can begin with comments. CSS may also begin with `<!--`, but `<` has
/// no other meaning at the start of CSS.
fn looks_like_markup(octets: &[u8]) -> bool {
    let mut rest = octets.strip_prefix(b"\xef\xbb\xbf").unwrap_or(octets);
    loop {
        rest = rest.trim_ascii_start();
        let Some(comment) = rest.strip_prefix(b"<!--") else {
            return matches!(rest, [b'<', next, ..] if next.is_ascii_alphabetic() || matches!(next, b'!' | b'?' | b'/'));
        };
        if matches!(comment.trim_ascii_start(), [b'<', next, ..] if next.is_ascii_alphabetic()) {
            return true;
        }
        let Some(end) = memchr::memmem::find(comment, b"-->") else {
            return false;
        };
        rest = &comment[end + b"-->".len()..];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_is_told_from_style() {
        for markup in [
            "<!DOCTYPE html><p>",
            "\u{feff} <html>",
            "<?xml version='1.0'?>",
            "<!-- a page --><html><body>",
            "<!--<p>gone</p>-->",
            "\n<script>x()</script>",
        ] {
            assert!(looks_like_markup(markup.as_bytes()), "{markup}");
        }
        for style in [
            "",
            "p { color: red }",
            "<!-- p { color: red } -->",
            "<!--\np > b { color: red }",
            "/* <html> */ p {}",
            "@charset \"utf-8\"; a::before { content: '<b>' }",
        ] {
            assert!(!looks_like_markup(style.as_bytes()), "{style}");
        }
    }
}
