//! Builds the new body of a Eudora message: a single text, or a multipart of texts and files.

use std::collections::HashMap;

use super::flattened::{FlattenedMessage, token};
use crate::edit::{Edit, Edits};
use crate::engine::forms::eudora::notes::{EudoraPiece, EudoraText, Wrapper};
use crate::engine::new_part::NewPart;
use crate::engine::part_edits::overlapping;
use crate::engine::report::Refusal;
use crate::mime::header::unfold;
use crate::mime::transfer::{encode_text, has_long_line, with_newlines};
use crate::mime::{MediaType, TransferEncoding, entity, media_type};
use crate::span::{Newline, Span};

pub(in crate::engine) struct EudoraFile {
    pub(in crate::engine) new: NewPart,
    pub(in crate::engine) shown_in: Option<usize>,
}

enum ComposeSlot<'f> {
    Text(EudoraText, Vec<&'f EudoraFile>),
    File(&'f EudoraFile),
}

impl FlattenedMessage<'_> {
    /// Returns the edits for the message, and a sentence for the report if the message has no files. Returns a
    /// [`Refusal`] if the message must stay unchanged.
    pub(in crate::engine) fn edits(
        &self,
        found: &[Option<EudoraFile>],
    ) -> Result<(Edits, Option<&'static str>), Refusal> {
        let slots = self.slots(found);
        let is_multipart = self
            .media_type
            .is_some_and(|it| MediaType::parse(it).main() == "multipart");
        let plain = EudoraText::plain(self.body);
        let mut group = Vec::new();
        let what = match slots.as_slice() {
            [] | [ComposeSlot::Text(EudoraText { wrapper: None, .. }, _)] if is_multipart => {
                group.extend(self.header(self.fields(&plain, None), &plain, true));
                "the Content-Type was changed to text/plain, because Eudora had already removed the multipart that it describes"
            }
            [] | [ComposeSlot::Text(EudoraText { wrapper: None, .. }, _)] => {
                if !self.is_decoded() {
                    return Ok((Edits::new(), None));
                }
                group.extend(self.header(Vec::new(), &plain, false));
                "the Content-Transfer-Encoding was removed, because Eudora had already decoded the body"
            }
            [ComposeSlot::Text(text, files)] if files.is_empty() => {
                let octets = self.encoded(text);
                let fields = self.fields(text, octets.as_ref().map(|it| it.0));
                group.extend(self.header(fields, text, true));
                match octets {
                    Some((_, encoded)) => group.push(Edit::replace(self.body, encoded)),
                    None => group.extend([
                        Edit::remove(Span::new(self.body.start, text.span.start)),
                        Edit::remove(Span::new(text.span.end, self.body.end)),
                    ]),
                }
                match text.wrapper {
                    Some(Wrapper::Html) => {
                        "the text that Eudora marked as HTML now has the type text/html"
                    }
                    Some(Wrapper::Rich) => {
                        "the text that Eudora marked as rich text now has the type text/enriched"
                    }
                    _ => {
                        "the text that Eudora marked as flowed now has the type text/plain; format=flowed"
                    }
                }
            }
            slots => {
                self.multipart(slots, &mut group);
                "the texts that Eudora marked as HTML or rich text are now separate MIME parts"
            }
        };
        group.retain(|edit: &Edit| !(edit.span.is_empty() && edit.replacement.is_empty()));
        group.retain(|edit| edit.span.of(self.message) != &*edit.replacement);
        let edits = Edits::of(group).map_err(overlapping)?;
        let what = Some(what).filter(|_| !edits.is_empty());
        Ok((edits, what))
    }

    /// Divides the body into texts and files. A line that names a missing file stays in the text.
    fn slots<'f>(&self, found: &'f [Option<EudoraFile>]) -> Vec<ComposeSlot<'f>> {
        let message = self.message;
        let mut slots: Vec<ComposeSlot<'f>> = Vec::new();
        let mut plain: Option<Span> = None;
        let mut files = found.iter();
        let mut shown: HashMap<usize, Vec<&EudoraFile>> = HashMap::new();
        for file in found.iter().flatten() {
            if let Some(number) = file.shown_in {
                shown.entry(number).or_default().push(file);
            }
        }
        let is_blank = |span: Span| span.of(message).iter().all(u8::is_ascii_whitespace);
        let flush = |slots: &mut Vec<ComposeSlot<'f>>, plain: &mut Option<Span>| {
            if let Some(span) = plain.take().filter(|span| !is_blank(*span)) {
                slots.push(ComposeSlot::Text(EudoraText::plain(span), Vec::new()));
            }
        };
        let push_file = |slots: &mut Vec<ComposeSlot<'f>>, file: &'f EudoraFile| {
            if file.shown_in.is_none() {
                slots.push(ComposeSlot::File(file));
            }
        };
        for (number, piece) in self.pieces.iter().enumerate() {
            let span = match piece {
                EudoraPiece::Text(text) if text.wrapper.is_some() => {
                    flush(&mut slots, &mut plain);
                    let shown = shown.remove(&number).unwrap_or_default();
                    slots.push(ComposeSlot::Text(text.clone(), shown));
                    continue;
                }
                EudoraPiece::Text(text) => text.span,
                EudoraPiece::Note(note) => match files.next() {
                    Some(Some(file)) => {
                        flush(&mut slots, &mut plain);
                        push_file(&mut slots, file);
                        continue;
                    }
                    _ => note.whole,
                },
            };
            let start = plain.map_or(span.start, |plain| plain.start);
            plain = Some(Span::new(start, span.end));
        }
        flush(&mut slots, &mut plain);
        for file in files.flatten() {
            push_file(&mut slots, file);
        }
        slots
    }

    /// Encodes the text if mail cannot contain it as it is: it has an overlong line, a NUL or a bare CR. Returns `None`
    /// for any other text.
    fn encoded(&self, text: &EudoraText) -> Option<(TransferEncoding, Vec<u8>)> {
        let octets = text.span.of(self.message);
        let is_bare = |at: usize| octets.get(at + 1) != Some(&b'\n');
        let is_fit = !has_long_line(octets)
            && memchr::memchr(0, octets).is_none()
            && !memchr::memchr_iter(b'\r', octets).any(is_bare);
        if is_fit {
            return None;
        }
        let boundaries = [self.boundary.as_bytes(), self.inner.as_bytes()];
        let encoded = encode_text(octets.to_vec(), self.newline, &boundaries);
        Some((encoded.encoding, encoded.body))
    }

    fn fields(&self, text: &EudoraText, encoding: Option<TransferEncoding>) -> Vec<u8> {
        let mut fields = b"Content-Type:".to_vec();
        let header = self
            .media_type
            .filter(|it| MediaType::parse(it).main() == "text");
        match (text.wrapper, header) {
            // The text has no mark of Eudora (HTML or rich text), and the header declares a text type, so this type is
            // kept.
            (None, Some(value)) => {
                fields.extend_from_slice(value);
                let is_named = MediaType::parse(value).parameter("charset").is_some();
                if let Some(charset) = self.charset(text).filter(|_| !is_named) {
                    fields.extend_from_slice(b"; charset=");
                    fields.extend_from_slice(charset.as_bytes());
                }
                fields.extend_from_slice(b"\r\n");
            }
            (wrapper, _) => {
                let charset = self
                    .charset(text)
                    .map(|charset| ("charset".to_owned(), charset));
                let flowed = wrapper
                    .filter(|&it| it == Wrapper::Flowed)
                    .map(|_| ("format".to_owned(), "flowed".to_owned()));
                let parameters: Vec<_> = charset.into_iter().chain(flowed).collect();
                let essence = wrapper.map_or("text/plain", Wrapper::essence);
                fields = media_type::write(essence, &parameters);
            }
        }
        let is_ascii = text.span.of(self.message).is_ascii();
        let encoding = encoding.unwrap_or(if is_ascii {
            TransferEncoding::SevenBit
        } else {
            TransferEncoding::EightBit
        });
        // If a message consists only of HTML and has no Content-Transfer-Encoding field, some browsers show an empty page. So
        // text that Eudora marked (`wrapper`) always gets this field.
        if encoding != TransferEncoding::SevenBit || text.wrapper.is_some() {
            let name = "Content-Transfer-Encoding";
            entity::push_field(&mut fields, name, encoding.as_str(), Newline::CrLf);
        }
        let own = self.header.fields.first(self.message, "Content-Location");
        let base = text.base.filter(|_| own.is_none());
        if let Some(base) = base.and_then(|base| token(base.of(self.message), b"<>\"")) {
            let field = entity::folded_url("Content-Location", &base, Newline::CrLf);
            fields.extend_from_slice(&field);
        }
        with_newlines(fields, self.newline)
    }

    /// Replaces the header fields that describe the body by `new`. `text` is the body if it is a single part. `is_new` is true
    /// if the media type changes.
    fn header(&self, mut new: Vec<u8>, text: &EudoraText, is_new: bool) -> Vec<Edit> {
        if !is_new && !text.span.of(self.message).is_ascii() {
            entity::push_field(&mut new, "Content-Transfer-Encoding", "8bit", self.newline);
        }
        let mut is_versioned = false;
        let mut group = Vec::new();
        let mut place = None;
        for field in self.header.fields.iter(self.message) {
            let is = |name: &str| field.is(self.message, name);
            let is_type = is("Content-Type") && is_new;
            let is_inline = || {
                let value = unfold(field.value.of(self.message));
                let disposition = value.trim_ascii().to_ascii_lowercase();
                disposition.starts_with(b"inline")
            };
            let mut stale = ["Content-MD5", "Content-Length", "Lines"].iter();
            let is_stale =
                stale.any(|name| is(name)) || is("Content-Disposition") && is_new && !is_inline();
            if is("MIME-Version") {
                if std::mem::replace(&mut is_versioned, true) {
                    group.push(Edit::remove(field.whole));
                }
            } else if is_type || is("Content-Transfer-Encoding") {
                match place {
                    None => place = Some(field.whole),
                    Some(_) => group.push(Edit::remove(field.whole)),
                }
            } else if is_stale {
                group.push(Edit::remove(field.whole));
            }
        }
        if !is_versioned {
            let version = [b"MIME-Version: 1.0", self.newline.bytes()].concat();
            new.splice(..0, version);
        }
        let place = place.unwrap_or(Span::empty_at(self.header.span.end));
        let is_cut_off =
            !self.header.span.is_empty() && !self.header.span.of(self.message).ends_with(b"\n");
        if place.is_empty() && is_cut_off {
            new.splice(..0, self.newline.bytes().iter().copied());
        }
        group.push(Edit::replace(place, new));
        if self.header.separator.is_empty() {
            group.push(Edit::insert(self.header.span.end, self.newline.bytes()));
        }
        group
    }

    fn multipart(&self, slots: &[ComposeSlot<'_>], group: &mut Vec<Edit>) {
        let end = self.newline.bytes();
        let line = |boundary: &str, close: &str| {
            [b"--", boundary.as_bytes(), close.as_bytes(), end].concat()
        };
        let is_related = matches!(slots, [ComposeSlot::Text(_, files)] if !files.is_empty());
        let multipart = |essence: &str, boundary: &str, wrapper: Option<Wrapper>| {
            let mut parameters = vec![("boundary".to_owned(), boundary.to_owned())];
            parameters.extend(wrapper.map(|it| ("type".to_owned(), it.essence().to_owned())));
            with_newlines(media_type::write(essence, &parameters), self.newline)
        };
        let is_ascii = |text: &EudoraText| {
            text.span.of(self.message).is_ascii() || self.encoded(text).is_some()
        };
        let mut eight_bit = Vec::new();
        entity::push_field(
            &mut eight_bit,
            "Content-Transfer-Encoding",
            "8bit",
            self.newline,
        );
        let (mut at, mut new) = (self.body.start, Vec::new());
        let mut edits = Vec::new();
        let mut has_eight_bit = false;
        let mut is_first = true;
        for slot in slots {
            if !is_related {
                if !std::mem::take(&mut is_first) {
                    new.extend_from_slice(end);
                }
                new.extend_from_slice(&line(&self.boundary, ""));
            }
            match slot {
                ComposeSlot::File(file) => file.new.append_to(&mut new, end),
                ComposeSlot::Text(text, files) => {
                    let boundary = if is_related {
                        &self.boundary
                    } else {
                        &self.inner
                    };
                    has_eight_bit |= !is_ascii(text);
                    if !files.is_empty() {
                        if !is_related {
                            let field = multipart("multipart/related", boundary, text.wrapper);
                            new.extend_from_slice(&field);
                            if !is_ascii(text) {
                                new.extend_from_slice(&eight_bit);
                            }
                            new.extend_from_slice(end);
                        }
                        new.extend_from_slice(&line(boundary, ""));
                    }
                    let encoded = self.encoded(text);
                    let fields = self.fields(text, encoded.as_ref().map(|it| it.0));
                    new.extend([&fields, end].concat());
                    let until = match encoded {
                        Some((_, octets)) => {
                            new.extend_from_slice(&octets);
                            text.span.end
                        }
                        None => text.span.start,
                    };
                    let before = Span::new(at, until);
                    edits.push(Edit::replace(before, std::mem::take(&mut new)));
                    at = text.span.end;
                    for file in files {
                        new.extend_from_slice(end);
                        new.extend_from_slice(&line(boundary, ""));
                        file.new.append_to(&mut new, end);
                    }
                    if !files.is_empty() && !is_related {
                        new.extend_from_slice(end);
                        new.extend_from_slice(&line(boundary, "--"));
                        new.truncate(new.len() - end.len());
                    }
                }
            }
        }
        new.extend_from_slice(end);
        new.extend_from_slice(&line(&self.boundary, "--"));
        edits.push(Edit::replace(Span::new(at, self.body.end), new));
        let (essence, wrapper) = match slots {
            [ComposeSlot::Text(text, ..)] if is_related => ("multipart/related", text.wrapper),
            _ => ("multipart/mixed", None),
        };
        let mut fields = multipart(essence, &self.boundary, wrapper);
        if has_eight_bit {
            fields.extend_from_slice(&eight_bit);
        }
        group.extend(self.header(fields, &EudoraText::plain(self.body), true));
        group.extend(edits);
    }
}
