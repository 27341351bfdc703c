//! Finds the HTML that mail programs write in place of an attachment, and the links in it.
//!
//! An id or a class counts only if it is exactly the one that the program writes. Mail programs add a prefix to ids and
//! classes in quoted mail (`x_`, `gmail-m_-123...`), and a reply contains the original mail in a `<blockquote>`. Files in
//! quoted mail are attachments of the original mail and are not retrieved again.

use std::sync::LazyLock;

use aho_corasick::AhoCorasick;

use super::provider::hosts;
use crate::engine::policy::{Follow, Followed};
use crate::link::markup::{MarkupToken, StartTag, text_of, tokens};

pub(super) struct MarkResult {
    pub follow: Follow,
    pub link: String,
    pub name: Option<String>,
    pub size: Option<u64>,
    pub expires: Option<String>,
}

impl MarkResult {
    fn link(follow: Follow, link: String, name: Option<String>) -> Self {
        Self {
            follow,
            link,
            name,
            size: None,
            expires: None,
        }
    }
}

/// For each program, the HTML attribute and its value by which an attachment is recognised. The last value is true if
/// each marked element is a single file, to which the first link in the element leads.
const MARKS: [(Follow, &str, &str, bool); 4] = [
    (Follow::Gmail, "class", "gmail_chip gmail_drive_chip", true),
    (Follow::Outlook, "id", "OwaReferenceAttachments", false),
    (Follow::MailDrop, "class", "x-apple-maildrop", true),
    (Follow::FileLink, "class", "cloudAttachmentItem", false),
];

pub(super) fn may_show(document: &[u8], forms: Followed) -> bool {
    let holds = |word: &str| memchr::memmem::find(document, word.as_bytes()).is_some();
    MARKS
        .iter()
        .any(|&(follow, _, value, _)| forms.contains(follow) && holds(value))
        || (forms.contains(Follow::Links) && holds_host(document))
}

/// Returns whether a document contains the name of a host of a provider, in upper or lower case.
fn holds_host(document: &[u8]) -> bool {
    static SEARCH: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
        let mut builder = AhoCorasick::builder();
        builder.ascii_case_insensitive(true).build(hosts()).ok()
    });
    SEARCH
        .as_ref()
        .is_none_or(|search| search.is_match(document))
}

/// Calls `see` for each file that the document shows. A file can occur several times.
pub(super) fn shown(document: &[u8], mut see: impl FnMut(MarkResult)) {
    let mut reader = MarkReader {
        quotes: 0,
        scope: None,
        text: None,
        see: &mut see,
    };
    tokens(document, |token| match token {
        MarkupToken::Start(tag) => reader.start(tag),
        MarkupToken::End(name) => reader.end(name),
        MarkupToken::Text(text) => {
            if let Some((_, octets)) = &mut reader.text {
                let room = LONGEST.saturating_sub(octets.len());
                octets.extend(text.iter().take(room));
            }
        }
    });
    reader.finish_text();
    reader.close();
}

struct Scope {
    is_one: bool,
    name: Vec<u8>,
    depth: usize,
    is_quoted: bool,
    file: MarkResult,
}

enum MarkText {
    Link {
        url: String,
        label: Option<String>,
        is_name: bool,
    },
    Size,
    Expiry,
}

const LONGEST: usize = 1 << 10;

struct MarkReader<'s> {
    quotes: usize,
    scope: Option<Scope>,
    text: Option<(MarkText, Vec<u8>)>,
    see: &'s mut dyn FnMut(MarkResult),
}

impl MarkReader<'_> {
    fn start(&mut self, tag: StartTag<'_>) {
        let is = |name: &[u8]| tag.name.eq_ignore_ascii_case(name);
        let value = |name| {
            let text = text_of(&tag.value(name)?);
            (!text.is_empty()).then_some(text)
        };
        let has_class = |class: &str| {
            let value = tag.value("class").unwrap_or_default();
            let mut words = value.split(u8::is_ascii_whitespace);
            words.any(|word| word == class.as_bytes())
        };
        if is(b"blockquote") {
            self.quotes += 1;
        }
        if let Some((follow, is_one, is_prefixed)) = mark_of(&tag) {
            self.finish_text();
            self.close();
            let size = value("data-size").and_then(|size| size.parse().ok());
            let is_file_link = follow == Follow::FileLink;
            let link = value("data-content-location").filter(|_| is_file_link);
            let name = value("data-filename");
            self.scope = Some(Scope {
                is_one,
                name: tag.name.to_ascii_lowercase(),
                depth: 1,
                is_quoted: is_prefixed || self.quotes > 0,
                file: MarkResult {
                    size: size.filter(|&size| size > 0),
                    expires: value("data-expiration"),
                    ..MarkResult::link(follow, link.unwrap_or_default(), name)
                },
            });
            return;
        }
        let mut is_file_link = false;
        if let Some(scope) = &mut self.scope {
            scope.depth += usize::from(is(&scope.name));
            is_file_link = scope.file.follow == Follow::FileLink;
        }
        let said = if is(b"a") {
            self.finish_text();
            tag.value("href").map(|link| MarkText::Link {
                url: String::from_utf8_lossy(&link).trim().to_owned(),
                label: value("aria-label"),
                is_name: has_class("cloudfile-name"),
            })
        } else if !is_file_link || !is(b"span") {
            None
        } else if has_class("cloudfile-size") {
            Some(MarkText::Size)
        } else {
            has_class("cloudfile-expiry-date").then_some(MarkText::Expiry)
        };
        if let Some(said) = said {
            self.finish_text();
            self.text = Some((said, Vec::new()));
        }
    }

    fn end(&mut self, name: &[u8]) {
        let is = |other: &[u8]| name.eq_ignore_ascii_case(other);
        if let Some((said, _)) = &self.text
            && is(match said {
                MarkText::Link { .. } => b"a",
                MarkText::Size | MarkText::Expiry => b"span",
            })
        {
            self.finish_text();
        }
        if is(b"blockquote") {
            self.quotes = self.quotes.saturating_sub(1);
        }
        if let Some(scope) = &mut self.scope
            && is(&scope.name)
        {
            scope.depth -= 1;
            if scope.depth == 0 {
                self.finish_text();
                self.close();
            }
        }
    }

    fn finish_text(&mut self) {
        let Some((said, octets)) = self.text.take() else {
            return;
        };
        let text = Some(text_of(&octets)).filter(|text| !text.is_empty());
        match (said, &mut self.scope) {
            (MarkText::Size, Some(scope)) => scope.file.size = text.as_deref().and_then(bytes),
            (MarkText::Expiry, Some(scope)) => scope.file.expires = text,
            (MarkText::Size | MarkText::Expiry, None) => {}
            (MarkText::Link { url, .. }, None) => {
                if self.quotes == 0 {
                    (self.see)(MarkResult::link(Follow::Links, url, text));
                }
            }
            (
                MarkText::Link {
                    url,
                    label,
                    is_name,
                },
                Some(scope),
            ) => {
                let name = label.or(text);
                let file = &mut scope.file;
                let is_first = file.link.is_empty();
                let is_file_link = file.follow == Follow::FileLink;
                if !is_file_link && !scope.is_one {
                    if !scope.is_quoted {
                        (self.see)(MarkResult::link(file.follow, url, name));
                    }
                    return;
                }
                if is_first {
                    file.link = url;
                }
                if (is_file_link && is_name) || (!is_file_link && is_first) {
                    file.name = file.name.take().or(name);
                }
            }
        }
    }

    fn close(&mut self) {
        let Some(scope) = self.scope.take() else {
            return;
        };
        if !scope.is_quoted && !scope.file.link.is_empty() {
            (self.see)(scope.file);
        }
    }
}

fn mark_of(tag: &StartTag<'_>) -> Option<(Follow, bool, bool)> {
    let (class, id) = (tag.value("class"), tag.value("id"));
    MARKS
        .iter()
        .find_map(|&(follow, attribute, wanted, is_one)| {
            let value = match attribute {
                "class" => class.as_deref()?,
                _ => id.as_deref()?,
            }
            .trim_ascii();
            let mut words = value.split(u8::is_ascii_whitespace);
            let wanted = wanted.as_bytes();
            let is_own = match follow {
                Follow::FileLink => words.clone().any(|word| word == wanted),
                _ => value == wanted,
            };
            // When a mail is quoted, programs put a prefix before each word of the value and may append other words. The
            // mark is then recognised by its last word: a word of the value must consist of a prefix and this word.
            let last = wanted.rsplit(|&byte| byte == b' ').next()?;
            let is_prefixed = words.any(|word| word.len() > last.len() && word.ends_with(last));
            (is_own || is_prefixed).then_some((follow, is_one, !is_own))
        })
}

/// Reads a size such as `70 bytes`. Sizes in other units are rounded and not useful.
fn bytes(size: &str) -> Option<u64> {
    let (number, unit) = size.split_once(' ')?;
    number.parse().ok().filter(|_| unit.starts_with("byte"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn document_with_the_host_of_a_provider_in_any_case_may_show_a_file() {
        let links = Followed::none().with(Follow::Links);
        for (document, expected) in [
            ("<a href=\"https://docs.google.com/file/d/1/edit\">", true),
            ("<A HREF=\"HTTPS://DOCS.GOOGLE.COM/file/d/1/edit\">", true),
            ("<a href=\"https://We.tl/t-AbC\">", true),
            ("<a href=\"https://docs.example.org/\">", false),
        ] {
            assert_eq!(may_show(document.as_bytes(), links), expected, "{document}");
            assert!(!may_show(document.as_bytes(), Followed::none()));
        }
    }
}
