//! Checks whether an SVG document only displays a picture: it must have no scripts, no event handlers, no HTML, and
//! no references to other files.
//!
//! A positive result must be true for every program that displays the SVG, so only a strict subset of XML 1.0 is
//! accepted. A program could also parse it as HTML, so words that would then be dangerous are searched for in the
//! whole document, including comments. A negative result does not mean that the SVG is dangerous: SVG with hyperlinks
//! or linked colour profiles is also rejected.
//!
//! Allowed are links within the document (`#gradient`), `data:` pictures other than SVG, and the external document
//! types of the W3C, which programs do not load. Entities that the document type declares are expanded, because
//! Illustrator uses them for namespaces, and the result is checked like any other text. External entities, parameter
//! entities and default attributes are rejected. UTF-16 with a BOM is converted to UTF-8.
//!
//! The time is linear. Nested entities can expand to [`GROWTH`] times the length of the document, and the recursion
//! for them is limited to [`NESTED`].

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::HashMap;

use memchr::{memchr, memchr2, memmem};

use super::css;
use super::entity::{self, Within};
use super::label;
use super::value::Markup;
use crate::mime::charset::Charset;
use crate::mime::picture::in_utf_8;

/// Words that must not occur anywhere in the document, in lower case. With them, a document could run a script or load another
/// file.
const WORDS: [&[u8]; 6] = [
    b"<script",
    b"<iframe",
    b"<?xml-stylesheet",
    b"javascript:",
    b"vbscript:",
    b"@import",
];

/// Limit for the expansion of entities, without which a small document could exhaust the memory: the number of bytes of
/// expanded text for each byte of the document. In small documents, [`LEAST_GROWTH`] bytes are allowed.
const GROWTH: usize = 4;
const LEAST_GROWTH: usize = 64 << 10;

/// Maximum depth of entities that contain references to other entities, because each level is a recursive call.
const NESTED: usize = 16;

const PICTURES: [&[u8]; 7] = [b"png", b"gif", b"jpeg", b"jpg", b"webp", b"bmp", b"avif"];

const DOCUMENT_TYPES: [&[u8]; 2] = [b"http://www.w3.org/", b"https://www.w3.org/"];

pub fn is_harmless_svg(octets: &[u8]) -> bool {
    let Some(octets) = in_utf_8(octets) else {
        return false;
    };
    let is_wide = matches!(octets, Cow::Owned(_));
    let room = Cell::new(octets.len().saturating_mul(GROWTH).max(LEAST_GROWTH));
    let mut document = SvgParser::new(
        octets.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&octets),
        &room,
    );
    !has_dangerous_words(&octets)
        && document.declaration(is_wide).is_some()
        && document.read().is_some()
}

fn has_dangerous_words(octets: &[u8]) -> bool {
    let lower = octets.to_ascii_lowercase();
    let holds = |word: &&[u8]| memmem::find(&lower, word).is_some();
    memchr(0, octets).is_some() || WORDS.iter().any(holds) || has_event_attribute(&lower)
}

/// Returns whether the text contains an event attribute such as `onload=` after white space, a quote or a slash,
/// inside or outside of a tag.
fn has_event_attribute(lower: &[u8]) -> bool {
    memmem::find_iter(lower, b"on").any(|at| {
        let separates =
            |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b'"' | b'\'' | b'/');
        let before = lower.get(..at).and_then(<[u8]>::last);
        // The byte before `on` is checked first, because the letters after `on` are counted. Otherwise, each `on` in a
        // text such as `ononon` would cost a count up to its end, which takes quadratic time.
        if !before.is_none_or(separates) {
            return false;
        }
        let behind = &lower[at + b"on".len()..];
        let (letters, behind) = behind.split_at(letters_in_front(behind));
        !letters.is_empty() && behind.trim_ascii_start().starts_with(b"=")
    })
}

fn letters_in_front(text: &[u8]) -> usize {
    text.iter()
        .take_while(|byte| byte.is_ascii_alphabetic())
        .count()
}

/// Replacement texts of entities, by name (XML 1.0 §4.5). Character references in these texts are already expanded.
/// References to other entities are expanded where the entity is used.
type Entities = HashMap<Vec<u8>, Vec<u8>>;

/// Parser for SVG. The methods return `None` if the document is malformed or may be dangerous, so that it is rejected.
struct SvgParser<'a> {
    rest: &'a [u8],
    depth: usize,
    has_root: bool,
    style: Option<Vec<u8>>,
    entities: Cow<'a, Entities>,
    /// Number of bytes to which further references to entities may expand. Each expansion is subtracted. The document
    /// is rejected if not enough bytes remain.
    room: &'a Cell<usize>,
    nested: usize,
    /// Nesting depth of the elements directly inside the current `<foreignObject>`. At a smaller depth, this element
    /// has ended. `None` outside of a `<foreignObject>`.
    foreign: Option<usize>,
    /// Whether the current start tag has the attribute `requiredExtensions`. Browsers do not display a
    /// `<foreignObject>` with it.
    requires_extensions: bool,
}

impl<'a> SvgParser<'a> {
    fn new(rest: &'a [u8], room: &'a Cell<usize>) -> Self {
        Self {
            rest,
            depth: 0,
            has_root: false,
            style: None,
            entities: Cow::default(),
            room,
            nested: 0,
            foreign: None,
            requires_extensions: false,
        }
    }

    fn read(mut self) -> Option<()> {
        loop {
            let text = self.up_to(memchr(b'<', self.rest).unwrap_or(self.rest.len()));
            self.text(text)?;
            if self.rest.is_empty() {
                return (self.has_root && self.depth == 0).then_some(());
            }
            if self.take(b"<!--").is_some() {
                let comment = self.behind(b"--")?;
                self.take(b">")?;
                // A comment that begins with `>` or `->` is rejected: an HTML parser would end it immediately, and read
                // the rest of it as markup.
                if comment.starts_with(b">") || comment.starts_with(b"->") {
                    return None;
                }
                // Some programs read a comment in a `<style>` as part of the style sheet. So the comment must not
                // contain links to other files either.
                if self.style.is_some() {
                    is_quiet(comment)?;
                }
            } else if self.take(b"<![CDATA[").is_some() {
                let text = self.behind(b"]]>")?;
                // CDATA is accepted only in a `<style>`. An HTML parser ignores the start of a CDATA section there. A
                // tag in the section could then end the `<style>`, so a `<` in it is rejected.
                if memchr(b'<', text).is_some() {
                    return None;
                }
                self.style.as_mut()?.extend_from_slice(text);
            } else if self.take(b"<!DOCTYPE").is_some() {
                self.document_type()?;
            } else if self.take(b"<?").is_some() {
                self.instruction()?;
            } else if self.take(b"</").is_some() {
                self.end_tag()?;
            } else {
                self.take(b"<")?;
                self.start_tag()?;
            }
        }
    }

    /// Reads a processing instruction (`<?name ... ?>`). Drawing programs write harmless ones. An HTML parser ends the
    /// instruction at its first `>` and reads the rest as markup, so an instruction that contains a `<` or `>` is
    /// rejected.
    fn instruction(&mut self) -> Option<()> {
        let instruction = self.behind(b"?>")?;
        let name = instruction.split(u8::is_ascii_whitespace).next()?;
        let lower = name.to_ascii_lowercase();
        let runs = lower.starts_with(b"xml") || lower.starts_with(b"php");
        let is_plain = memchr2(b'<', b'>', instruction).is_none();
        (is_name(name) && is_plain && !runs && self.style.is_none()).then_some(())
    }

    fn declaration(&mut self, is_wide: bool) -> Option<()> {
        if !self.rest.starts_with(b"<?xml") {
            return Some(());
        }
        let whole = self.rest;
        let declaration = self.behind(b"?>")?;
        let names_one = memmem::find(&declaration.to_ascii_lowercase(), b"encoding").is_some();
        let label = label::in_xml_declaration(whole).unwrap_or_default();
        if !names_one {
            return Some(());
        }
        if is_wide {
            return label
                .to_ascii_lowercase()
                .starts_with(b"utf-16")
                .then_some(());
        }
        // The text is checked without decoding it. This is safe in the charsets that the match accepts, because in these
        // a byte with the value of `<`, `>` or a quote is never part of another character. This is also safe in Chromium,
        // which reads every SVG as UTF-8.
        match Charset::of_label(label)? {
            Charset::Superset | Charset::ShiftJis | Charset::DoubleByte => Some(()),
            Charset::Other => None,
        }
    }

    fn document_type(&mut self) -> Option<()> {
        let declaration = self.up_to(memchr2(b'[', b'>', self.rest)?);
        let quotes = declaration
            .iter()
            .filter(|byte| matches!(byte, b'"' | b'\''));
        if self.has_root || memchr(b'&', declaration).is_some() || quotes.count() % 2 == 1 {
            return None;
        }
        if self.take(b"[").is_some() {
            self.internal_subset()?;
            self.rest = self.rest.trim_ascii_start();
        }
        self.take(b">")?;
        let is_known = |url: &[u8]| DOCUMENT_TYPES.iter().any(|known| url.starts_with(known));
        let mut pieces = declaration.split(|byte| matches!(byte, b'"' | b'\''));
        let are_known = pieces.all(|piece| memmem::find(piece, b":/").is_none() || is_known(piece));
        // A document type with `SYSTEM` can refer to any file by a relative URL, so it is rejected.
        let is_public = memmem::find(declaration, b"SYSTEM").is_none();
        (are_known && is_public).then_some(())
    }

    /// Reads the declarations inside the document type (the internal subset, XML 1.0 §2.8). Entities, elements and
    /// comments are accepted. All other declarations are rejected. For example, a declaration of attributes can contain
    /// a script as a default value.
    fn internal_subset(&mut self) -> Option<()> {
        loop {
            self.rest = self.rest.trim_ascii_start();
            if self.take(b"]").is_some() {
                // An HTML parser does not know entities: it reads elements in a declaration as elements of the
                // document. So the text of every entity is checked, even if the entity is not used.
                let mut values = self.entities.values();
                let is_read = |value: &Vec<u8>| {
                    self.pay(value.len())?;
                    self.elements(value, 1)
                };
                let is_harmless =
                    |value: &Vec<u8>| !value.contains(&b'<') || is_read(value).is_some();
                return values.all(is_harmless).then_some(());
            }
            if self.take(b"<!--").is_some() {
                self.behind(b"--")?;
                self.take(b">")?;
            } else if self.take(b"<!ENTITY").is_some() {
                self.entity()?;
            } else {
                self.take(b"<!ELEMENT")?;
                let declaration = self.behind(b">")?;
                let is_plain = |byte: &u8| !matches!(byte, b'<' | b'"' | b'\'' | b'%');
                declaration.iter().all(is_plain).then_some(())?;
            }
        }
    }

    /// Reads the declaration of an entity, `<!ENTITY name "text">`. An external entity (a word instead of the quote)
    /// and a parameter entity (`%` before the name) are rejected.
    fn entity(&mut self) -> Option<()> {
        self.rest.first()?.is_ascii_whitespace().then_some(())?;
        self.rest = self.rest.trim_ascii_start();
        let length = self.rest.iter().position(u8::is_ascii_whitespace)?;
        let name = self.up_to(length);
        is_name(name).then_some(())?;
        self.rest = self.rest.trim_ascii_start();
        let (&quote, rest) = self.rest.split_first()?;
        matches!(quote, b'"' | b'\'').then_some(())?;
        self.rest = rest;
        let value = self.behind(&[quote])?;
        if memchr(b'%', value).is_some() {
            return None;
        }
        self.rest = self.rest.trim_ascii_start();
        self.take(b">")?;
        self.pay(value.len())?;
        let value = with_characters(value)?;
        // If an entity is declared twice, the first declaration counts (XML 1.0 §4.2). A declaration of `amp`, `lt`,
        // `gt`, `quot` or `apos` is ignored, because these entities cannot be changed (§4.6).
        if !is_predefined(name) && !self.entities.contains_key(name) {
            self.entities.to_mut().insert(name.to_vec(), value);
        }
        Some(())
    }

    fn pay(&self, bytes: usize) -> Option<()> {
        self.room.set(self.room.get().checked_sub(bytes + 1)?);
        Some(())
    }

    /// Expands references in text. If the text of an entity contains elements, they are checked like those of a
    /// document.
    fn decoded<'t>(&self, text: &'t [u8], within: Within, nested: usize) -> Option<Cow<'t, [u8]>> {
        let mut written: Option<Vec<u8>> = None;
        let mut copied = 0;
        let mut from = 0;
        while let Some(at) = memchr(b'&', text.get(from..)?).map(|at| from + at) {
            let rest = text.get(at + 1..)?;
            let name = rest.get(..memchr(b';', rest)?)?;
            from = at + name.len() + 2;
            if is_predefined(name) || is_character(name) {
                continue;
            }
            let value = self.entities.get(name).filter(|_| nested < NESTED)?;
            self.pay(value.len())?;
            let written = written.get_or_insert_default();
            let piece = text.get(copied..at)?;
            written.extend_from_slice(&entity::text(piece, Within::Text));
            copied = from;
            if memchr(b'<', value).is_none() {
                written.extend_from_slice(&self.decoded(value, within, nested + 1)?);
            } else {
                // In the value of an attribute and in a style sheet, an entity must not contain elements. Otherwise the
                // document is rejected.
                (within == Within::Text && self.style.is_none()).then_some(())?;
                self.elements(value, nested + 1)?;
            }
        }
        let rest = entity::text(text.get(copied..)?, Within::Text);
        Some(match written {
            None => rest,
            Some(mut written) => {
                written.extend_from_slice(&rest);
                written.into()
            }
        })
    }

    /// Checks the text of an entity that contains elements, as if it were a document of its own.
    fn elements(&self, value: &[u8], nested: usize) -> Option<()> {
        let element = [b"<svg>", value, b"</svg>"].concat();
        let document = SvgParser {
            entities: Cow::Borrowed(&*self.entities),
            nested,
            foreign: self.foreign.map(|_| 0),
            ..SvgParser::new(&element, self.room)
        };
        document.read()
    }

    fn text(&mut self, text: &[u8]) -> Option<()> {
        if self.depth == 0 {
            return text.trim_ascii().is_empty().then_some(());
        }
        let text = self.decoded(text, Within::Text, self.nested)?;
        if let Some(style) = &mut self.style {
            style.extend_from_slice(&text);
        }
        Some(())
    }

    fn end_tag(&mut self) -> Option<()> {
        let name = self.behind(b">")?.trim_ascii_end();
        is_name(name).then_some(())?;
        self.depth = self.depth.checked_sub(1)?;
        self.foreign = self.foreign.filter(|&depth| self.depth >= depth);
        if let Some(style) = self.style.take() {
            is_quiet(&style)?;
            return (local(name) == b"style").then_some(());
        }
        Some(())
    }

    fn start_tag(&mut self) -> Option<()> {
        let name = self.name()?;
        let is_prefixed = memchr(b':', name).is_some();
        let is_root = || name.rsplit(|&byte| byte == b':').next() == Some(b"svg");
        let may_stand = match self.depth {
            0 => !self.has_root && is_root(),
            // In a `<foreignObject>`, an HTML parser reads an element as HTML, unless its name has a prefix such as
            // `i:`.
            _ => self.style.is_none() && (self.foreign.is_none() || is_prefixed),
        };
        may_stand.then_some(())?;
        self.has_root = true;
        self.requires_extensions = false;
        let closes_itself = self.attributes()?;
        match local(name).as_slice() {
            // Illustrator stores its own data in a `<foreignObject>`. Browsers do not display this element, because it
            // requires an extension that they do not have.
            b"foreignobject" if self.requires_extensions => {
                let inside = (!closes_itself).then_some(self.depth + 1);
                self.foreign = self.foreign.or(inside);
            }
            // Elements that run code, load a file, or contain data that is not SVG.
            b"animation" | b"applet" | b"audio" | b"base" | b"embed" | b"foreignobject"
            | b"frame" | b"handler" | b"iframe" | b"import" | b"include" | b"link"
            | b"listener" | b"meta" | b"object" | b"script" | b"video" => return None,
            // An HTML parser ignores the `/` in `<style/>`, so it would read the text after the tag as a style sheet.
            b"style" if closes_itself => return None,
            b"style" => self.style = Some(Vec::new()),
            _ => {}
        }
        self.depth += usize::from(!closes_itself);
        Some(())
    }

    fn attributes(&mut self) -> Option<bool> {
        loop {
            let has_blank = self.rest.first().is_some_and(u8::is_ascii_whitespace);
            self.rest = self.rest.trim_ascii_start();
            let closes_itself = self.take(b"/>").is_some();
            if closes_itself || self.take(b">").is_some() {
                return Some(closes_itself);
            }
            if !has_blank {
                return None;
            }
            let name = self.name()?;
            let value = self.rest.trim_ascii_start().strip_prefix(b"=")?;
            let (quote, value) = value.trim_ascii_start().split_first()?;
            if !matches!(quote, b'"' | b'\'') {
                return None;
            }
            self.rest = value;
            let value = self.behind(&[*quote])?;
            if memchr(b'<', value).is_some() {
                return None;
            }
            let value = self.decoded(value, Within::Attribute, self.nested)?;
            self.requires_extensions |= name == b"requiredExtensions" && !value.is_empty();
            is_harmless_attribute(name, &value)?;
        }
    }

    fn name(&mut self) -> Option<&'a [u8]> {
        let ends = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b'=' | b'/' | b'>');
        let name = self.up_to(self.rest.iter().position(ends)?);
        is_name(name).then_some(name)
    }

    fn take(&mut self, token: &[u8]) -> Option<()> {
        self.rest = self.rest.strip_prefix(token)?;
        Some(())
    }

    fn up_to(&mut self, length: usize) -> &'a [u8] {
        let (text, rest) = self.rest.split_at(length.min(self.rest.len()));
        self.rest = rest;
        text
    }

    fn behind(&mut self, end: &[u8]) -> Option<&'a [u8]> {
        let text = self.up_to(memmem::find(self.rest, end)?);
        self.rest = self.rest.get(end.len()..)?;
        Some(text)
    }
}

fn is_name(name: &[u8]) -> bool {
    name.first()
        .is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'_' || *byte >= 0x80)
        && name.iter().all(|&byte| {
            byte.is_ascii_alphanumeric()
                || matches!(byte, b'_' | b'-' | b'.' | b':')
                || byte >= 0x80
        })
        && name.iter().filter(|&&byte| byte == b':').count() <= 1
}

fn local(name: &[u8]) -> Vec<u8> {
    name.rsplit(|&byte| byte == b':')
        .next()
        .unwrap_or_default()
        .to_ascii_lowercase()
}

/// Returns whether XML defines the entity, so that no declaration is needed.
fn is_predefined(name: &[u8]) -> bool {
    matches!(name, b"amp" | b"lt" | b"gt" | b"quot" | b"apos")
}

/// Returns whether a reference is that of a character, such as `#xE9` in `&#xE9;`. A name of more than 8 characters is
/// rejected: the highest character, `#x10FFFF`, is not longer, and leading zeros are not needed.
fn is_character(name: &[u8]) -> bool {
    name.len() <= 8
        && match name {
            [b'#', b'x', digits @ ..] => {
                !digits.is_empty() && digits.iter().all(u8::is_ascii_hexdigit)
            }
            [b'#', digits @ ..] => !digits.is_empty() && digits.iter().all(u8::is_ascii_digit),
            _ => false,
        }
}

/// Returns the replacement text of an entity from its declaration. Only character references are expanded. References
/// to other entities are expanded where the entity is used (XML 1.0 §4.5).
fn with_characters(value: &[u8]) -> Option<Vec<u8>> {
    let mut written = Vec::with_capacity(value.len());
    let mut rest = value;
    while let Some(at) = memchr(b'&', rest) {
        let (front, behind) = rest.split_at(at);
        written.extend_from_slice(front);
        let name = behind.get(1..memchr(b';', behind)?)?;
        let (reference, after) = behind.split_at(name.len() + 2);
        if is_character(name) {
            written.extend_from_slice(&entity::shown(reference, Within::Text))
        } else {
            written.extend_from_slice(reference)
        }
        rest = after;
    }
    written.extend_from_slice(rest);
    Some(written)
}

fn is_harmless_attribute(name: &[u8], value: &[u8]) -> Option<()> {
    let local = local(name);
    let lower = value.to_ascii_lowercase();
    let contains = |word: &[u8]| memmem::find(&lower, word).is_some();
    if name == b"xmlns" || name.starts_with(b"xmlns:") {
        // The namespaces of XHTML, XML Events, XInclude and MathML contain one of these words. Elements of these languages
        // can run scripts or load files. In MathML, for example, any element can have a link in `href`.
        let others = [&b"xhtml"[..], b"xml-events", b"xinclude", b"mathml"];
        return (!others.into_iter().any(contains)).then_some(());
    }
    // `<set attributeName="href" to="...">` changes the attribute `href`. So an animated attribute is checked by its
    // name too.
    let is_animated = local == b"attributename";
    let target = lower.rsplit(|&byte| byte == b':').next()?.trim_ascii();
    match if is_animated { target } else { &local } {
        // Attributes whose value is a URL. It must refer to a place in the document itself, or be a picture in a `data:`
        // URL.
        b"action" | b"archive" | b"background" | b"cite" | b"codebase" | b"data"
        | b"formaction" | b"href" | b"http-equiv" | b"manifest" | b"ping" | b"poster" | b"src"
        | b"srcset" => return (!is_animated && is_inside(&lower)).then_some(()),
        b"base" if !is_animated => return None,
        [b'o', b'n', event @ ..] if is_animated || !event.is_empty() => return None,
        _ => {}
    }
    // Browsers ignore white space in the scheme of a URL. So `java script:` also runs a script.
    let mut packed = lower.clone();
    packed.retain(|byte| *byte > b' ');
    let runs = |scheme: &&[u8]| memmem::find(&packed, scheme).is_some();
    if [&b"javascript:"[..], b"vbscript:"].iter().any(runs) {
        return None;
    }
    if local == b"style" || memchr2(b'(', b'\\', value).is_some() {
        is_quiet(value)?;
    }
    Some(())
}

/// Checks that a style sheet does not refer to other files. An escape could hide a URL, so every style sheet with a
/// backslash is rejected. Drawing programs do not write escapes.
fn is_quiet(style: &[u8]) -> Option<()> {
    if memchr(b'\\', style).is_some()
        || memmem::find(&style.to_ascii_lowercase(), b"@import").is_some()
    {
        return None;
    }
    let mut is_quiet = true;
    css::scan(style, Markup::StyleSheet, |link| {
        let url = link.span.of(style).to_ascii_lowercase();
        is_quiet &= is_inside(&url) || is_font(&url);
    });
    is_quiet.then_some(())
}

/// Returns whether the URL is a `data:` URL of a font. A style sheet may contain such URLs, but an attribute must not.
fn is_font(url: &[u8]) -> bool {
    let fonts: [&[u8]; 4] = [
        b"font/",
        b"application/font-",
        b"application/x-font-",
        b"application/vnd.ms-fontobject",
    ];
    let data = url.trim_ascii().strip_prefix(b"data:");
    data.is_some_and(|data| fonts.iter().any(|font| data.starts_with(font)))
}

fn is_inside(url: &[u8]) -> bool {
    let url = url.trim_ascii();
    let is_picture = |rest: &[u8]| {
        let (kind, behind) = rest.split_at(letters_in_front(rest));
        PICTURES.contains(&kind) && matches!(behind.first(), Some(b';' | b','))
    };
    url.is_empty()
        || url.starts_with(b"#")
        || url.strip_prefix(b"data:image/").is_some_and(is_picture)
}
