//! Whether an SVG document shows a picture and does nothing else: no script, events, HTML, or reference to the outside.
//!
//! "Yes" must hold in every reader, so only a strict subset of XML 1.0 is read. Words that would be dangerous in a
//! reader that takes it for HTML are looked for in all octets, comments included. "No" proves nothing: harmless
//! pictures with hyperlinks or linked profiles get it, too.
//!
//! Links within the document (`#gradient`) and `data:` pictures that are not SVG again do not refer to the outside, nor
//! does an external document type of the W3C's: nobody loads it. Linear in time; no recursion.

use std::borrow::Cow;

use memchr::{memchr, memchr2, memmem};

use super::css;
use super::entity;
use super::label;
use super::value::Markup;

/// Must stand nowhere; in lower case.
const WORDS: [&[u8]; 8] = [
    b"<script",
    b"<foreignobject",
    b"<iframe",
    b"<!entity",
    b"<?xml-stylesheet",
    b"javascript:",
    b"vbscript:",
    b"@import",
];

const PICTURES: [&[u8]; 7] = [b"png", b"gif", b"jpeg", b"jpg", b"webp", b"bmp", b"avif"];

const DOCUMENT_TYPES: [&[u8]; 2] = [b"http://www.w3.org/", b"https://www.w3.org/"];

pub fn is_harmless_svg(octets: &[u8]) -> bool {
    let document = Document {
        rest: octets.strip_prefix(b"\xef\xbb\xbf").unwrap_or(octets),
        depth: 0,
        has_root: false,
        style: None,
    };
    !has_dangerous_words(octets) && document.read().is_some()
}

fn has_dangerous_words(octets: &[u8]) -> bool {
    let lower = octets.to_ascii_lowercase();
    let holds = |word: &&[u8]| memmem::find(&lower, word).is_some();
    memchr(0, octets).is_some() || WORDS.iter().any(holds) || has_event_attribute(&lower)
}

/// `onload=` behind a blank, a quote or a slash, be it in a tag or not.
fn has_event_attribute(lower: &[u8]) -> bool {
    memmem::find_iter(lower, b"on").any(|at| {
        let separates =
            |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b'"' | b'\'' | b'/');
        let before = lower.get(..at).and_then(<[u8]>::last);
        // Letters are counted only there: in `ononon` each would be counted again and again.
        if !before.is_none_or(separates) {
            return false;
        }
        let behind = lower.get(at + 2..).unwrap_or_default();
        let (letters, behind) = behind.split_at(letters_in_front(behind));
        !letters.is_empty() && behind.trim_ascii_start().starts_with(b"=")
    })
}

fn letters_in_front(text: &[u8]) -> usize {
    text.iter()
        .take_while(|byte| byte.is_ascii_alphabetic())
        .count()
}

/// `None` is doubt.
struct Document<'a> {
    rest: &'a [u8],
    depth: usize,
    has_root: bool,
    style: Option<Vec<u8>>,
}

impl<'a> Document<'a> {
    fn read(mut self) -> Option<()> {
        self.declaration()?;
        loop {
            let text = self.up_to(memchr(b'<', self.rest).unwrap_or(self.rest.len()));
            self.text(text)?;
            if self.rest.is_empty() {
                return (self.has_root && self.depth == 0).then_some(());
            }
            if self.take(b"<!--").is_some() {
                let comment = self.behind(b"--")?;
                self.take(b">")?;
                // HTML ends these at once.
                if comment.starts_with(b">") || comment.starts_with(b"->") {
                    return None;
                }
                // The content of a `<style>` could be read with it or without.
                if self.style.is_some() {
                    is_quiet(comment)?;
                }
            } else if self.take(b"<![CDATA[").is_some() {
                let text = self.behind(b"]]>")?;
                // HTML knows no such sections, and ends the style element in one.
                if memchr(b'<', text).is_some() {
                    return None;
                }
                self.style.as_mut()?.extend_from_slice(text);
            } else if self.take(b"<!DOCTYPE").is_some() {
                self.document_type()?;
            } else if self.take(b"</").is_some() {
                self.end_tag()?;
            } else {
                self.take(b"<")?;
                self.start_tag()?;
            }
        }
    }

    fn declaration(&mut self) -> Option<()> {
        if !self.rest.starts_with(b"<?xml") {
            return Some(());
        }
        let whole = self.rest;
        let declaration = self.behind(b"?>")?;
        let names_one = memmem::find(&declaration.to_ascii_lowercase(), b"encoding").is_some();
        let label = label::in_xml_declaration(whole).unwrap_or_default();
        match label.to_ascii_lowercase().as_slice() {
            // In these encodings ASCII octets are ASCII characters, always.
            b"utf-8" | b"us-ascii" | b"ascii" => Some(()),
            b"iso-8859-1" | b"iso-8859-15" | b"windows-1252" => Some(()),
            _ => (!names_one).then_some(()),
        }
    }

    /// It must have no declarations of its own.
    fn document_type(&mut self) -> Option<()> {
        let declaration = self.behind(b">")?;
        if self.has_root || memchr2(b'[', b'&', declaration).is_some() {
            return None;
        }
        let is_known = |url: &[u8]| DOCUMENT_TYPES.iter().any(|known| url.starts_with(known));
        let mut pieces = declaration.split(|byte| matches!(byte, b'"' | b'\''));
        let are_known = pieces.all(|piece| memmem::find(piece, b":/").is_none() || is_known(piece));
        // The only relative one could be anything.
        let is_public = memmem::find(declaration, b"SYSTEM").is_none();
        (are_known && is_public).then_some(())
    }

    fn text(&mut self, text: &[u8]) -> Option<()> {
        if self.depth == 0 {
            return text.trim_ascii().is_empty().then_some(());
        }
        let text = decoded(text)?;
        if let Some(style) = &mut self.style {
            style.extend_from_slice(&text);
        }
        Some(())
    }

    fn end_tag(&mut self) -> Option<()> {
        let name = self.behind(b">")?.trim_ascii_end();
        is_name(name).then_some(())?;
        self.depth = self.depth.checked_sub(1)?;
        if let Some(style) = self.style.take() {
            is_quiet(&style)?;
            return (local(name) == b"style").then_some(());
        }
        Some(())
    }

    fn start_tag(&mut self) -> Option<()> {
        let name = self.name()?;
        let may_stand = match self.depth {
            0 => !self.has_root && name == b"svg",
            _ => self.style.is_none(),
        };
        may_stand.then_some(())?;
        self.has_root = true;
        let closes_itself = self.attributes()?;
        match local(name).as_slice() {
            // These run, load or hold something that is not SVG.
            b"animation" | b"applet" | b"audio" | b"base" | b"embed" | b"foreignobject"
            | b"frame" | b"handler" | b"iframe" | b"import" | b"include" | b"link"
            | b"listener" | b"meta" | b"object" | b"script" | b"video" => return None,
            // HTML would go on with CSS.
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
            is_harmless_attribute(name, &decoded(value)?)?;
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

/// Only XML's own references.
fn decoded(text: &[u8]) -> Option<Cow<'_, [u8]>> {
    for at in memchr::memchr_iter(b'&', text) {
        let rest = text.get(at + 1..)?;
        // The longest is `&#x10FFFF;`; leading zeros would be doubtful.
        let name = rest.get(..memchr(b';', rest.get(..10).unwrap_or(rest))?)?;
        let is_known = match name {
            b"amp" | b"lt" | b"gt" | b"quot" | b"apos" => true,
            [b'#', b'x', digits @ ..] => {
                !digits.is_empty() && digits.iter().all(u8::is_ascii_hexdigit)
            }
            [b'#', digits @ ..] => !digits.is_empty() && digits.iter().all(u8::is_ascii_digit),
            _ => false,
        };
        if !is_known {
            return None;
        }
    }
    Some(entity::text(text, entity::Within::Text))
}

fn is_harmless_attribute(name: &[u8], value: &[u8]) -> Option<()> {
    let local = local(name);
    let lower = value.to_ascii_lowercase();
    let contains = |word: &[u8]| memmem::find(&lower, word).is_some();
    if name == b"xmlns" || name.starts_with(b"xmlns:") {
        // MathML's links are `href` as well.
        let others = [&b"xhtml"[..], b"xml-events", b"xinclude", b"mathml"];
        return (!others.into_iter().any(contains)).then_some(());
    }
    // `<set attributeName="href" to="...">` sets what it names.
    let is_animated = local == b"attributename";
    let target = lower.rsplit(|&byte| byte == b':').next()?.trim_ascii();
    match if is_animated { target } else { &local } {
        // The whole value is a reference.
        b"action" | b"archive" | b"background" | b"cite" | b"codebase" | b"data"
        | b"formaction" | b"href" | b"http-equiv" | b"manifest" | b"ping" | b"poster" | b"src"
        | b"srcset" => return (!is_animated && is_inside(&lower)).then_some(()),
        b"base" if !is_animated => return None,
        [b'o', b'n', event @ ..] if is_animated || !event.is_empty() => return None,
        _ => {}
    }
    // Readers drop blanks in schemes.
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

/// Escapes, which only hide something, are doubt.
fn is_quiet(style: &[u8]) -> Option<()> {
    if memchr(b'\\', style).is_some()
        || memmem::find(&style.to_ascii_lowercase(), b"@import").is_some()
    {
        return None;
    }
    let mut is_quiet = true;
    css::scan(style, Markup::StyleSheet, |link| {
        is_quiet &= is_inside(&link.span.of(style).to_ascii_lowercase());
    });
    is_quiet.then_some(())
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
