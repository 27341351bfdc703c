//! What programs write into the HTML of a mail in place of an attachment, and the links in it: one table of marks.
//!
//! An id or a class counts only if it is the program's own. Mail programs put something in front of both in what they
//! quote (`x_`, `gmail-m_-123...`), and replies stand in `<blockquote>`: what is in there, the mail that is answered has.

use super::provider::HOSTS;
use crate::external_body::{Follow, Followed};
use crate::link::markup::{StartTag, Token, text_of, tokens};

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Marked {
    pub follow: Follow,
    pub link: String,
    pub name: Option<String>,
    pub size: Option<u64>,
    pub expires: Option<String>,
}

impl Marked {
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

/// What marks an element that stands for files: an attribute, and its value; and whether the element is one file, and its
/// first link the file's.
const MARKS: [(Follow, &str, &str, bool); 4] = [
    (Follow::Gmail, "class", "gmail_chip gmail_drive_chip", true),
    (Follow::Outlook, "id", "OwaReferenceAttachments", false),
    (Follow::MailDrop, "class", "x-apple-maildrop", true),
    (Follow::FileLink, "class", "cloudAttachmentItem", false),
];

/// Whether a document may show files, told by a search for words.
pub fn may_show(document: &[u8], forms: Followed) -> bool {
    let holds = |word: &str| memchr::memmem::find(document, word.as_bytes()).is_some();
    MARKS
        .iter()
        .any(|&(follow, _, value, _)| forms.contains(follow) && holds(value))
        || (forms.contains(Follow::Links) && HOSTS.iter().any(|host| holds(host)))
}

/// The files that a document shows, in order; one may be shown several times.
pub fn shown(document: &[u8], mut see: impl FnMut(Marked)) {
    let mut reader = Reader {
        quotes: 0,
        scope: None,
        text: None,
        see: &mut see,
    };
    tokens(document, |token| match token {
        Token::Start(tag) => reader.start(tag),
        Token::End(name) => reader.end(name),
        Token::Text(text) => reader.text(text),
    });
    reader.finish_text();
    reader.close();
}

/// A marked element that is not over.
struct Scope {
    is_one: bool,
    name: Vec<u8>,
    /// How many elements of this name are open.
    depth: usize,
    is_quoted: bool,
    /// What is known of the file, if it is one.
    file: Marked,
}

/// What the text of an element is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Said {
    /// The name in a link; whether the link is one of a FileLink's name.
    Link,
    Size,
    Expiry,
}

struct Gathered {
    part: Said,
    element: &'static [u8],
    /// The link it is in, and what it says of its name.
    link: String,
    label: Option<String>,
    is_name: bool,
    octets: Vec<u8>,
}

/// Octets of a name that are read.
const LONGEST: usize = 1 << 10;

struct Reader<'s> {
    quotes: usize,
    scope: Option<Scope>,
    text: Option<Gathered>,
    see: &'s mut dyn FnMut(Marked),
}

impl Reader<'_> {
    fn start(&mut self, tag: StartTag<'_>) {
        let is = |name: &[u8]| tag.name.eq_ignore_ascii_case(name);
        if is(b"blockquote") {
            self.quotes += 1;
        }
        if let Some((follow, is_one, is_prefixed)) = mark_of(&tag) {
            self.finish_text();
            self.close();
            let value = |name| tag.value(name).map(|value| text_of(&value));
            let size = value("data-size").and_then(|size| size.parse().ok());
            let is_file_link = follow == Follow::FileLink;
            let link = value("data-content-location").filter(|_| is_file_link);
            self.scope = Some(Scope {
                is_one,
                name: tag.name.to_ascii_lowercase(),
                depth: 1,
                is_quoted: is_prefixed || self.quotes > 0,
                file: Marked {
                    follow,
                    link: link.unwrap_or_default(),
                    name: value("data-filename").filter(|name| !name.is_empty()),
                    size: size.filter(|&size| size > 0),
                    expires: value("data-expiration").filter(|date| !date.is_empty()),
                },
            });
            return;
        }
        let scope = self.scope.as_mut();
        if let Some(scope) = scope {
            scope.depth += usize::from(is(&scope.name));
        }
        if is(b"a") {
            self.finish_text();
            if let Some(link) = tag.value("href") {
                let label = tag.value("aria-label").map(|label| text_of(&label));
                let link = String::from_utf8_lossy(&link).trim().to_owned();
                let is_name = has_class(&tag, "cloudfile-name");
                self.text = Some(Gathered {
                    part: Said::Link,
                    element: b"a",
                    link,
                    label: label.filter(|label| !label.is_empty()),
                    is_name,
                    octets: Vec::new(),
                });
            }
        } else if is(b"span") && self.is_file_link() {
            let part = match () {
                () if has_class(&tag, "cloudfile-size") => Said::Size,
                () if has_class(&tag, "cloudfile-expiry-date") => Said::Expiry,
                () => return,
            };
            self.finish_text();
            self.text = Some(Gathered {
                part,
                element: b"span",
                link: String::new(),
                label: None,
                is_name: false,
                octets: Vec::new(),
            });
        }
    }

    fn is_file_link(&self) -> bool {
        let scope = self.scope.as_ref();
        scope.is_some_and(|scope| scope.file.follow == Follow::FileLink)
    }

    fn text(&mut self, text: &[u8]) {
        if let Some(gathered) = &mut self.text {
            let room = LONGEST.saturating_sub(gathered.octets.len());
            let text = text.get(..room.min(text.len())).unwrap_or_default();
            gathered.octets.extend_from_slice(text);
        }
    }

    fn end(&mut self, name: &[u8]) {
        if self
            .text
            .as_ref()
            .is_some_and(|text| name.eq_ignore_ascii_case(text.element))
        {
            self.finish_text();
        }
        if name.eq_ignore_ascii_case(b"blockquote") {
            self.quotes = self.quotes.saturating_sub(1);
        }
        if let Some(scope) = &mut self.scope
            && name.eq_ignore_ascii_case(&scope.name)
        {
            scope.depth -= 1;
            if scope.depth == 0 {
                self.finish_text();
                self.close();
            }
        }
    }

    fn finish_text(&mut self) {
        let Some(text) = self.text.take() else { return };
        let said = Some(text_of(&text.octets)).filter(|said| !said.is_empty());
        let Some(scope) = &mut self.scope else {
            if self.quotes == 0 {
                (self.see)(Marked::link(Follow::Links, text.link, said));
            }
            return;
        };
        let name = text.label.or(said.clone());
        match (scope.file.follow, text.part) {
            (_, Said::Size) => scope.file.size = said.as_deref().and_then(bytes),
            (_, Said::Expiry) => scope.file.expires = said,
            (Follow::FileLink, Said::Link) => {
                if text.is_name && scope.file.name.is_none() {
                    scope.file.name = name;
                }
                if scope.file.link.is_empty() {
                    scope.file.link = text.link;
                }
            }
            (_, Said::Link) if scope.is_one => {
                if scope.file.link.is_empty() {
                    scope.file.link = text.link;
                    let file = &mut scope.file;
                    file.name = file.name.take().or(name);
                }
            }
            (follow, Said::Link) => {
                if !scope.is_quoted {
                    (self.see)(Marked::link(follow, text.link, name));
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

/// What an element is marked as, whether it is one file, and whether something stands in front of the mark.
fn mark_of(tag: &StartTag<'_>) -> Option<(Follow, bool, bool)> {
    let (class, id) = (tag.value("class"), tag.value("id"));
    MARKS
        .iter()
        .find_map(|&(follow, attribute, wanted, is_one)| {
            let value = match attribute {
                "class" => class.as_deref()?,
                _ => id.as_deref()?,
            };
            let value = value.trim_ascii();
            let mut words = value.split(u8::is_ascii_whitespace);
            let wanted = wanted.as_bytes();
            let is_own = match follow {
                Follow::FileLink => words.clone().any(|word| word == wanted),
                _ => value == wanted,
            };
            // The last word of a mark tells it; other words may stand behind.
            let last = wanted.rsplit(|&byte| byte == b' ').next()?;
            let is_prefixed = words.any(|word| word.len() > last.len() && word.ends_with(last));
            (is_own || is_prefixed).then_some((follow, is_one, !is_own))
        })
}

fn has_class(tag: &StartTag<'_>, class: &str) -> bool {
    let value = tag.value("class").unwrap_or_default();
    let mut words = value.split(u8::is_ascii_whitespace);
    words.any(|word| word == class.as_bytes())
}

/// `70 bytes`: other units are rounded, and say nothing exact.
fn bytes(size: &str) -> Option<u64> {
    let (number, unit) = size.split_once(' ')?;
    number.parse().ok().filter(|_| unit.starts_with("byte"))
}
