//! The URLs of references to detached attachments.

use std::collections::HashSet;

use super::difference::Difference;
use crate::engine::detach::base_url_problem;
use crate::engine::external_body::Referent;
use crate::engine::forms::references;
use crate::engine::policy::Policy;
use crate::mime::{self, MessageTree, PartId};

/// Returns the difference for the first reference to a detached attachment in the new mail whose URL `embody detach` cannot
/// have written. References with a URL of the old mail are not examined: they are compared byte by byte.
pub(super) fn foreign_url(
    old: &MessageTree<'_>,
    new: &[u8],
    policy: &Policy,
) -> Option<Difference> {
    memchr::memmem::find(new, b"X-Embody-Detached")?;
    let tree = mime::scan(new, &policy.limits.scan());
    let known: HashSet<String> = old
        .ids()
        .filter_map(|part| url_of_note(old, part, policy))
        .collect();
    let is_foreign = |part: &PartId| {
        let url = url_of_note(&tree, *part, policy);
        url.is_some_and(|url| {
            let is_usable =
                base_url_problem(&url).is_none() && is_folded_between_lines(&tree, *part);
            !is_usable && !known.contains(&url)
        })
    };
    let part = tree.ids().find(is_foreign)?;
    Some(Difference::of_url(&tree, part))
}

fn url_of_note(tree: &MessageTree<'_>, part: PartId, policy: &Policy) -> Option<String> {
    let body = references::read(tree, part, &policy.reading())?;
    body.note()?;
    match &body.target {
        Ok(Referent::Url(url)) => Some(url.clone()),
        _ => None,
    }
}

/// Returns whether the URL in the Content-Type field contains no white space except between lines: a line ending and one
/// blank or tab.
fn is_folded_between_lines(tree: &MessageTree<'_>, part: PartId) -> bool {
    const START: &[u8] = b"URL=\"";

    let Some(field) = tree.fields(part).first(tree.original, "Content-Type") else {
        return true;
    };
    let value = field.value.of(tree.original);
    let Some(start) = memchr::memmem::find(value, START) else {
        return true;
    };
    let from_url = value.get(start + START.len()..).unwrap_or_default();
    let mut quoted = from_url.split(|byte| *byte == b'"');
    let mut lines = quoted
        .next()
        .unwrap_or_default()
        .split(|byte| *byte == b'\n');
    let first = lines.next().unwrap_or_default();
    let has_blank = |text: &[u8]| {
        let text = text.strip_suffix(b"\r").unwrap_or(text);
        text.iter().any(u8::is_ascii_whitespace)
    };
    !has_blank(first)
        && lines.all(|line| match line {
            [b' ' | b'\t', rest @ ..] => !has_blank(rest),
            _ => false,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_urls_that_detach_can_write_are_accepted() {
        let policy = Policy::default();
        let old = mime::scan(b"Subject: a\n\nx\n", &policy.limits.scan());
        for (url, is_accepted) in [
            ("https://files.example.org/aa/12/aa12", true),
            ("https://files.example.org/aa\n /12/\r\n\taa12", true),
            ("file:///srv/store/aa12", true),
            ("ftp://h/aa12", true),
            ("javascript:alert(1)//aa12", false),
            ("tftp://x/aa12", false),
            ("/aa/12/aa12", false),
            ("https://u:p@h/aa12", false),
            ("https://files.example.org/a a/aa12", false),
            ("https://files.example.org/aa\n  /aa12", false),
            ("https://files.example.org/?aa12", false),
        ] {
            let digest = "aa".repeat(32);
            let mail = format!(
                "Content-Type: message/external-body; access-type=URL; URL=\"{url}\"\n\n\
                 Content-Type: image/png\nX-Embody-Detached: sha256={digest};\n size=3; encoding=base64; line=76\n\n"
            );
            let found = foreign_url(&old, mail.as_bytes(), &policy);
            assert_eq!(found.is_none(), is_accepted, "{url}: {found:?}");
        }
    }
}
