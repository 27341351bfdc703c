//! HTML as far as a locator must know it: start tags with the spans of their attribute values, the contents of `<style>`, and
//! conditional comments. The tokenizer of the HTML standard (§13.2.5), driven by `<`: text between tags is searched, not
//! read. A tokenizer that decodes every character costs more than all the rest of the work; html5gum is the oracle.
//!
//! Where the standard lets the tree builder switch the tokenizer, the element's name alone decides. Deviations:
//! * a `<base>` that does not count for the document ([`Scopes`]) is skipped;
//! * `<title>` and the like inside of `<svg>` or `<math>` are raw text as elsewhere; `<style>` is markup there, as in
//!   XHTML: its text ends at the next tag, whatever that is;
//! * `<noscript>` holds markup, as in a reader without scripts, which mail readers are;
//! * `<![CDATA[` ends at `]]>` if there is one, also outside of foreign content; else it is a bogus comment that ends at `>`.

use std::borrow::Cow;

use memchr::{memchr, memchr2, memmem};

use super::entity::{self, Within};
use super::names::{Element, LONGEST_NAME, Name, Raw, Syntax, attribute_name, element, lower_case};
use super::scopes::Scopes;
use super::value::Markup;
use crate::span::Span;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Event {
    Start(Element),
    Style(Span, Markup),
    Conditional(Span),
}

/// An attribute with a value, or `hidden`. Repeated ones and those of no interest are not kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Attribute {
    pub(super) name: Name,
    pub(super) value: Span,
    pub(super) quote: Option<u8>,
}

/// Without its quotes, and which those are.
pub(super) type Value = (Span, Option<u8>);

pub(super) fn text_of<'d>(
    document: &'d [u8],
    attributes: &[Attribute],
    name: Name,
) -> Option<Cow<'d, [u8]>> {
    let attribute = attributes.iter().find(|attribute| attribute.name == name)?;
    let raw = attribute.value.of(document);
    Some(entity::split_text(raw, Within::Attribute))
}

pub(super) struct Tags<'a> {
    document: &'a [u8],
    at: usize,
    end: usize,
    syntax: Syntax,
    inside: Option<Raw>,
    is_styling: bool,
    scopes: Scopes,
    tag_start: usize,
    /// Blanks between the attributes of a start tag, if wanted: how far behind its start. A tag may be all blanks.
    blanks: Option<Vec<u32>>,
    /// Behind this offset there is no `]]>`; so that a million `<![CDATA[` search only once.
    no_section_end_from: usize,
    /// Of the start tag last found. At most one of each [`Name`].
    pub(super) attributes: Vec<Attribute>,
}

impl<'a> Tags<'a> {
    pub(super) fn new(document: &'a [u8], within: Span, syntax: Syntax) -> Self {
        Self {
            document,
            at: within.start,
            end: within.end.min(document.len()),
            syntax,
            inside: None,
            is_styling: false,
            scopes: Scopes::new(syntax),
            tag_start: within.start,
            blanks: None,
            no_section_end_from: usize::MAX,
            attributes: Vec::new(),
        }
    }

    pub(super) fn with_blanks(document: &'a [u8], within: Span, syntax: Syntax) -> Self {
        Self {
            blanks: Some(Vec::new()),
            ..Self::new(document, within, syntax)
        }
    }

    /// From behind its `<` to behind its `>`; valid until the next event.
    pub(super) fn tag(&self) -> Span {
        Span::new(self.tag_start, self.at)
    }

    pub(super) fn blank(&self, index: usize) -> Option<usize> {
        let distance = *self.blanks.as_ref()?.get(index)?;
        Some(self.tag_start + distance as usize)
    }

    /// Offsets that a number of 32 bits cannot hold are passed over.
    fn remember_blanks(&mut self, places: std::ops::Range<usize>) {
        let tag_start = self.tag_start;
        if let Some(blanks) = &mut self.blanks {
            blanks.extend(places.map_while(|at| u32::try_from(at - tag_start).ok()));
        }
    }

    pub(super) fn next(&mut self) -> Option<Event> {
        if let Some(raw) = self.inside.take() {
            let start = self.at;
            match raw {
                Raw::Style => self.text_of(b"style"),
                Raw::Iframe => self.text_of(b"iframe"),
                Raw::Text(name) => self.text_of(name),
                Raw::Script => self.script(),
                Raw::Plain => self.at = self.end,
            }
            if raw == Raw::Style {
                let content = Span::new(start, self.at);
                return Some(Event::Style(content, Markup::StyleElement));
            }
        }
        loop {
            let next = memchr(b'<', self.rest());
            if self.is_styling && next != Some(0) {
                let text = Span::new(self.at, next.map_or(self.end, |length| self.at + length));
                self.at = text.end;
                self.is_styling = next.is_some();
                return Some(Event::Style(text, Markup::StyleText));
            }
            self.at += next? + 1;
            match self.peek()? {
                b'!' => {
                    if let Some(event) = self.declaration() {
                        return Some(event);
                    }
                }
                b'?' => self.skip_behind(b'>'),
                b'/' => {
                    self.at += 1;
                    match self.peek()? {
                        name if name.is_ascii_alphabetic() => self.end_tag()?,
                        _ => self.skip_behind(b'>'),
                    }
                }
                name if name.is_ascii_alphabetic() => match self.start_tag()? {
                    Event::Start(Element::Base) if self.scopes.hides_base() => {}
                    event => return Some(event),
                },
                _ => {}
            }
        }
    }

    fn start_tag(&mut self) -> Option<Event> {
        self.tag_start = self.at;
        let mut buffer = [0; LONGEST_NAME];
        let name = lower_case(self.tag_name(), &mut buffer).unwrap_or_default();
        let element = element(name);
        self.attributes.clear();
        if let Some(blanks) = &mut self.blanks {
            blanks.clear();
        }
        let closes_itself = self.tag_rest(true)?;
        if element == Element::Scope || !self.scopes.is_outside() {
            self.scopes.open(name, closes_itself);
        }
        self.is_styling = false;
        if let Element::Raw(raw) = element {
            let is_markup = self.syntax == Syntax::Xhtml || self.scopes.is_foreign();
            match raw {
                _ if is_markup && closes_itself => {}
                Raw::Style if is_markup => self.is_styling = true,
                _ => self.inside = Some(raw),
            }
        }
        Some(Event::Start(element))
    }

    fn end_tag(&mut self) -> Option<()> {
        let name = self.tag_name();
        self.tag_rest(false)?;
        self.is_styling = false;
        let mut buffer = [0; LONGEST_NAME];
        if !self.scopes.is_outside()
            && let Some(name) = lower_case(name, &mut buffer)
        {
            self.scopes.close(name);
        }
        Some(())
    }

    fn tag_name(&mut self) -> &'a [u8] {
        self.skip_until(|byte| byte.is_ascii_whitespace() || matches!(byte, b'/' | b'>'))
            .of(self.document)
    }

    /// Whether the tag closes itself; `None` at the end of the span. Only the attributes of a start tag are kept.
    fn tag_rest(&mut self, is_start: bool) -> Option<bool> {
        let mut seen = 0_u32;
        let mut closes_itself = false;
        loop {
            let byte = self.peek()?;
            match byte {
                b'>' => {
                    self.at += 1;
                    return Some(closes_itself);
                }
                b'/' => self.at += 1,
                _ if byte.is_ascii_whitespace() => {
                    if is_start {
                        self.remember_blanks(self.at..self.at + 1);
                    }
                    self.at += 1;
                }
                _ => self.attribute(is_start, &mut seen)?,
            }
            closes_itself = byte == b'/';
        }
    }

    fn attribute(&mut self, is_start: bool, seen: &mut u32) -> Option<()> {
        let (name, value) = self.name_and_value(is_start)?;
        if is_start && let Some(name) = attribute_name(name.of(self.document)) {
            let bit = 1_u32 << (name as u32);
            // A repeated attribute is dropped by parsers, even if the first had no value.
            let value = match name {
                Name::Hidden => value.or(Some((Span::empty_at(self.at), None))),
                _ => value,
            };
            if let (0, Some((value, quote))) = (*seen & bit, value) {
                self.attributes.push(Attribute { name, value, quote });
            }
            *seen |= bit;
        }
        Some(())
    }

    #[inline]
    pub(super) fn name_and_value(&mut self, is_start: bool) -> Option<(Span, Option<Value>)> {
        let start = self.at;
        self.at += 1; // whatever it is, a leading `=` included, it is part of the name
        self.skip_until(|byte| byte.is_ascii_whitespace() || matches!(byte, b'/' | b'>' | b'='));
        let name = Span::new(start, self.at);
        self.skip_until(|byte| !byte.is_ascii_whitespace());
        let value = if self.peek()? == b'=' {
            self.at += 1;
            self.value()?
        } else {
            // Nobody asks for the places in an end tag.
            if is_start {
                self.remember_blanks(name.end..self.at);
            }
            None
        };
        Some((name, value))
    }

    /// The outer `None` is the end of the span, the inner one a missing value.
    fn value(&mut self) -> Option<Option<Value>> {
        self.skip_until(|byte| !byte.is_ascii_whitespace());
        let quote = match self.peek()? {
            quote @ (b'"' | b'\'') => quote,
            b'>' => return Some(None),
            _ => {
                let value = self.skip_until(|byte| byte.is_ascii_whitespace() || byte == b'>');
                return Some(Some((value, None)));
            }
        };
        self.at += 1;
        let start = self.at;
        self.at += memchr(quote, self.rest())?;
        let value = Span::new(start, self.at);
        self.at += 1;
        Some(Some((value, Some(quote))))
    }

    /// Behind `<`, at `!`. Yields what a conditional comment holds, and style in a section.
    fn declaration(&mut self) -> Option<Event> {
        if self.rest().starts_with(b"!--") {
            self.at += 3;
            let start = self.at;
            let content = Span::new(start, self.comment_end());
            return conditional(self.document, content).map(Event::Conditional);
        }
        if self.rest().starts_with(b"![CDATA[") && self.at < self.no_section_end_from {
            match memmem::find(self.rest(), b"]]>") {
                Some(length) => {
                    let content = Span::new(self.at + b"![CDATA[".len(), self.at + length);
                    self.at += length + 3;
                    let style = Event::Style(content, Markup::StyleSection);
                    return self.is_styling.then_some(style);
                }
                None => self.no_section_end_from = self.at,
            }
        }
        self.skip_behind(b'>');
        None
    }

    fn comment_end(&mut self) -> usize {
        let start = self.at;
        if let [b'>', ..] | [b'-', b'>', ..] = self.rest() {
            self.skip_behind(b'>');
            return start;
        }
        let dashes = memmem::Finder::new(b"--");
        while let Some(length) = dashes.find(self.rest()) {
            let content_end = self.at + length;
            self.at = content_end + 2;
            match self.rest() {
                [b'>', ..] => self.at += 1,
                [b'!', b'>', ..] if self.syntax == Syntax::Html => self.at += 2,
                _ => {
                    self.at -= 1; // `--->` ends it as well
                    continue;
                }
            }
            return content_end;
        }
        self.at = self.end;
        self.end
    }

    fn text_of(&mut self, element: &[u8]) {
        while let Some(length) = memchr(b'<', self.rest()) {
            self.at += length;
            if self.is_tag(b"</", element) {
                return;
            }
            self.at += 1;
        }
        self.at = self.end;
    }

    /// The script data states (§13.2.5.15 to §13.2.5.31): `<!-- <script>` hides an end tag.
    fn script(&mut self) {
        let mut hidden = Hidden::No;
        while let Some(length) = memchr2(b'<', b'-', self.rest()) {
            self.at += length;
            let end_tag = self.is_tag(b"</", b"script");
            match hidden {
                Hidden::No | Hidden::Comment if end_tag => return,
                // The dashes count for the end, too: `<!-->` is a whole comment.
                Hidden::No if self.rest().starts_with(b"<!--") => {
                    hidden = Hidden::Comment;
                    self.at += 1;
                }
                Hidden::Comment | Hidden::Script if self.rest().starts_with(b"-->") => {
                    hidden = Hidden::No;
                    self.at += 2;
                }
                Hidden::Comment if self.is_tag(b"<", b"script") => hidden = Hidden::Script,
                Hidden::Script if end_tag => hidden = Hidden::Comment,
                _ => {}
            }
            self.at += 1;
        }
        self.at = self.end;
    }

    fn is_tag(&self, opening: &[u8], name: &[u8]) -> bool {
        let rest = self.rest().strip_prefix(opening);
        let found = rest.and_then(|rest| rest.split_at_checked(name.len()));
        let ends = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b'/' | b'>');
        found.is_some_and(|(found, behind)| {
            found.eq_ignore_ascii_case(name) && behind.first().is_some_and(ends)
        })
    }

    fn rest(&self) -> &'a [u8] {
        self.document.get(self.at..self.end).unwrap_or_default()
    }

    fn peek(&self) -> Option<u8> {
        self.rest().first().copied()
    }

    pub(super) fn skip_until(&mut self, stop: impl Fn(u8) -> bool) -> Span {
        let (start, rest) = (self.at, self.rest());
        let length = rest.iter().position(|&byte| stop(byte));
        self.at += length.unwrap_or(rest.len());
        Span::new(start, self.at)
    }

    fn skip_behind(&mut self, byte: u8) {
        self.at = memchr(byte, self.rest()).map_or(self.end, |length| self.at + length + 1);
    }
}

#[derive(Clone, Copy)]
enum Hidden {
    No,
    Comment,
    Script,
}

/// `<!--[if ...]> markup <![endif]-->`: some readers show the markup.
fn conditional(document: &[u8], content: Span) -> Option<Span> {
    let bytes = content.of(document);
    if !bytes.get(..3)?.eq_ignore_ascii_case(b"[if") {
        return None;
    }
    let behind = memmem::find(bytes, b"]>")? + 2;
    Some(Span::new(content.start + behind, content.end))
}
