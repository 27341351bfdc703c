//! The tokenizer of the HTML standard (§13.2.5), as far as it is needed to find links: start tags with the spans of
//! their attribute values, the contents of `<style>`, and conditional comments. Text between tags is not decoded but
//! only searched for `<`, because a tokenizer that decodes each character would take most of the time. The tests
//! compare this tokenizer with html5gum.
//!
//! In the standard, the tree builder can change the state of the tokenizer. Here only the name of the element does. Deviations:
//! * A `<base>` that does not apply to the document ([`Scopes`]) is skipped.
//! * `<title>` and similar elements contain raw text also inside of `<svg>` and `<math>`. A `<style>` there contains
//!   markup, as in XHTML: its text ends at the next tag of any kind.
//! * `<noscript>` contains markup, as in a browser without scripts. Mail clients do not run scripts.
//! * `<![CDATA[` ends at the next `]]>`, also outside of SVG and MathML. Without a `]]>`, it is a bogus comment that
//!   ends at `>`.

use std::borrow::Cow;

use memchr::{memchr, memchr2, memmem};

use super::entity::{self, Within};
use super::names::{Element, LONGEST_NAME, Name, Raw, Syntax, attribute_name, element, lower_case};
use super::scopes::Scopes;
use super::value::Markup;
use crate::span::Span;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum TagEvent {
    Start(Element),
    Style(Span, Markup),
    Conditional(Span),
}

/// An attribute of a start tag that has a value, or the attribute `hidden`, which needs no value. Repeated attributes
/// and attributes without relevance for links are not stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Attribute {
    pub(super) name: Name,
    pub(super) value: Span,
    pub(super) quote: Option<u8>,
}

/// An attribute value: its span without quotes, and the quote character. The latter is `None` if the value is not
/// quoted.
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
    /// Offsets of the spaces between the attributes of the current start tag, relative to the start of the tag. `None`
    /// if the caller does not need them. They have only 32 bits, because a tag can contain millions of spaces.
    blanks: Option<Vec<u32>>,
    /// Offset after which the document contains no `]]>`. Without it, a document with a million `<![CDATA[` and no
    /// `]]>` would be searched to its end a million times.
    no_section_end_from: usize,
    /// Attributes of the last start tag, with at most one of each [`Name`].
    pub(super) attributes: Vec<Attribute>,
}

impl<'a> Tags<'a> {
    pub(super) fn new(document: &'a [u8], within: Span, syntax: Syntax) -> Self {
        let end = within.end.min(document.len());
        Self {
            document,
            at: within.start.min(end),
            end,
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

    /// Returns the span of the current tag without the `<` but with the `>`. It is valid until the next event.
    pub(super) fn tag(&self) -> Span {
        Span::new(self.tag_start, self.at)
    }

    pub(super) fn blank(&self, index: usize) -> Option<usize> {
        let distance = *self.blanks.as_ref()?.get(index)?;
        Some(self.tag_start + distance as usize)
    }

    /// Stores the offsets of spaces in the current tag. Spaces more than 4 GiB after its start are ignored.
    fn remember_blanks(&mut self, places: std::ops::Range<usize>) {
        let tag_start = self.tag_start;
        if let Some(blanks) = &mut self.blanks {
            blanks.extend(places.map_while(|at| u32::try_from(at - tag_start).ok()));
        }
    }

    pub(super) fn next(&mut self) -> Option<TagEvent> {
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
                return Some(TagEvent::Style(content, Markup::StyleElement));
            }
        }
        loop {
            let next = memchr(b'<', self.rest());
            if self.is_styling && next != Some(0) {
                let text = Span::new(self.at, next.map_or(self.end, |length| self.at + length));
                self.at = text.end;
                self.is_styling = next.is_some();
                return Some(TagEvent::Style(text, Markup::StyleText));
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
                    TagEvent::Start(Element::Base) if self.scopes.hides_base() => {}
                    event => return Some(event),
                },
                _ => {}
            }
        }
    }

    fn start_tag(&mut self) -> Option<TagEvent> {
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
        Some(TagEvent::Start(element))
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

    /// Reads the rest of a tag after its name. Returns whether the tag ends with `/>`, or `None` if it has no end.
    /// Attributes are stored only for start tags.
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
            // Browsers use the first attribute with a name, even if it has no value. So a name is marked as seen even
            // if the attribute is not stored, and later attributes with this name are ignored.
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
            // The offsets of spaces show where a line ending can be inserted. Only start tags are changed, so spaces in
            // end tags are not stored.
            if is_start {
                self.remember_blanks(name.end..self.at);
            }
            None
        };
        Some((name, value))
    }

    /// Reads an attribute value after the `=`. The outer `None` means that the document ends in the value. The inner
    /// `None` means that the value is missing.
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

    /// Reads a comment, a CDATA section or a declaration, whose `<` was already read. Returns an event for a conditional
    /// comment. In a `<style>` whose content is markup (in XHTML and SVG), also returns an event for a CDATA section.
    fn declaration(&mut self) -> Option<TagEvent> {
        if self.rest().starts_with(b"!--") {
            self.at += 3;
            let start = self.at;
            let content = Span::new(start, self.comment_end());
            return conditional(self.document, content).map(TagEvent::Conditional);
        }
        if self.rest().starts_with(b"![CDATA[") && self.at < self.no_section_end_from {
            match memmem::find(self.rest(), b"]]>") {
                Some(length) => {
                    let content = Span::new(self.at + b"![CDATA[".len(), self.at + length);
                    self.at += length + 3;
                    let style = TagEvent::Style(content, Markup::StyleSection);
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

    /// Skips the content of a `<script>` (script data states of the HTML standard, §13.2.5.15 to §13.2.5.31). A
    /// `</script>` after `<!-- <script>` does not end the outer script.
    fn script(&mut self) {
        let mut hidden = HiddenContent::No;
        while let Some(length) = memchr2(b'<', b'-', self.rest()) {
            self.at += length;
            let end_tag = self.is_tag(b"</", b"script");
            match hidden {
                HiddenContent::No | HiddenContent::Comment if end_tag => return,
                // `<!-->` is a complete comment: its dashes belong to both `<!--` and `-->`. So only the `<!` is
                // skipped here.
                HiddenContent::No if self.rest().starts_with(b"<!--") => {
                    hidden = HiddenContent::Comment;
                    self.at += 1;
                }
                HiddenContent::Comment | HiddenContent::Script
                    if self.rest().starts_with(b"-->") =>
                {
                    hidden = HiddenContent::No;
                    self.at += 2;
                }
                HiddenContent::Comment if self.is_tag(b"<", b"script") => {
                    hidden = HiddenContent::Script
                }
                HiddenContent::Script if end_tag => hidden = HiddenContent::Comment,
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
        &self.document[self.at..self.end]
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
enum HiddenContent {
    No,
    Comment,
    Script,
}

/// Returns the span of the markup in a conditional comment, `<!--[if ...]> markup <![endif]-->`. The markup is searched
/// for links, because some programs display it.
fn conditional(document: &[u8], content: Span) -> Option<Span> {
    let bytes = content.of(document);
    if !bytes.get(..3)?.eq_ignore_ascii_case(b"[if") {
        return None;
    }
    let behind = memmem::find(bytes, b"]>")? + 2;
    Some(Span::new(content.start + behind, content.end))
}
