//! Compact list of header fields that stores only the start of each field. A mail can consist of fields of two bytes,
//! `:` and a line feed. If three spans were stored for each of them, they would take thirty times the size of the
//! mail.

use memchr::memchr;

use crate::span::{Span, SpanLines, starts_like};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Field {
    /// The name, without spaces before the colon. It is empty for a continuation line without a field before it.
    pub name: Span,
    /// The value, including folds, up to the line ending of its last line.
    pub value: Span,
    /// The whole field including its last line ending. The next field of the section begins where it ends.
    pub whole: Span,
}

impl Field {
    pub fn is(&self, original: &[u8], name: &str) -> bool {
        self.name.len() == name.len()
            && self.name.of(original).eq_ignore_ascii_case(name.as_bytes())
    }

    pub fn is_content(&self, original: &[u8]) -> bool {
        starts_like(self.name.of(original), b"content-")
    }

    pub(crate) fn of(original: &[u8], whole: Span) -> Self {
        let bytes = whole.of(original);
        let content = [&b"\r\n"[..], b"\n"]
            .iter()
            .find_map(|end| bytes.strip_suffix(*end))
            .unwrap_or(bytes);
        let (start, end) = (whole.start, whole.start + content.len());
        let is_stray = matches!(bytes.first(), Some(b' ' | b'\t'));
        let colon = memchr(b':', content).filter(|_| !is_stray);
        let name = &content[..colon.unwrap_or(0)];
        Self {
            name: Span::new(start, start + name.trim_ascii_end().len()),
            value: Span::new(colon.map_or(start, |colon| start + colon + 1), end),
            whole,
        }
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fields {
    origin: usize,
    end: usize,
    starts: Vec<u32>,
    has_gaps: bool,
}

impl Fields {
    /// Maximum distance in bytes between the first field and any other field. Offsets are stored in 32 bits.
    pub const LONGEST: usize = u32::MAX as usize;

    pub fn none_at(origin: usize) -> Self {
        Self {
            origin,
            end: origin,
            starts: Vec::new(),
            has_gaps: false,
        }
    }

    pub(super) fn reserve(&mut self, fields: usize) {
        self.starts.reserve(fields);
    }

    pub fn one(field: &Field) -> Self {
        let mut fields = Self::none_at(field.whole.start);
        fields.push(field.whole);
        fields
    }

    /// Appends a field. A field that begins more than [`Fields::LONGEST`] bytes after the first one is dropped.
    pub(super) fn push(&mut self, whole: Span) {
        let offset = whole.start.checked_sub(self.origin);
        if let Some(Ok(offset)) = offset.map(u32::try_from) {
            self.has_gaps |= !self.is_empty() && whole.start != self.end;
            self.starts.push(offset);
            self.end = whole.end;
        }
    }

    pub(super) fn extend_last(&mut self, end: usize) {
        self.end = end;
    }

    /// Appends other fields. Returns false if some of them begin too far from the first field to be stored.
    pub fn append(&mut self, others: &Self) -> bool {
        let before = self.len();
        if self.is_empty() {
            self.origin = others.origin;
        }
        for whole in others.wholes() {
            self.push(whole);
        }
        self.has_gaps |= others.has_gaps;
        self.len() == before + others.len()
    }

    pub fn len(&self) -> usize {
        self.starts.len()
    }

    pub fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }

    pub fn iter<'f>(&'f self, original: &'f [u8]) -> impl DoubleEndedIterator<Item = Field> + 'f {
        (0..self.len()).filter_map(|index| self.at(original, index))
    }

    /// Returns the first field with this name. If a message repeats a field that must be unique, most programs use
    /// the first one. Only the names are read, not the values.
    pub fn first(&self, original: &[u8], name: &str) -> Option<Field> {
        let name = name.as_bytes();
        let is_named = |&offset: &u32| {
            let field = original.get(self.origin + offset as usize..);
            let halves = field.and_then(|field| field.split_at_checked(name.len()));
            halves.is_some_and(|(start, behind)| {
                let is_blank = |byte: &&u8| byte.is_ascii_whitespace() && **byte != b'\n';
                start.eq_ignore_ascii_case(name)
                    && behind.iter().find(|byte| !is_blank(byte)) == Some(&b':')
            })
        };
        self.at(original, self.starts.iter().position(is_named)?)
    }

    pub fn value<'a>(&self, original: &'a [u8], name: &str) -> Option<&'a [u8]> {
        self.first(original, name)
            .map(|field| field.value.of(original))
    }

    pub fn last(&self, original: &[u8]) -> Option<Field> {
        self.at(original, self.len().checked_sub(1)?)
    }

    fn at(&self, original: &[u8], index: usize) -> Option<Field> {
        let mut whole = self.whole(index)?;
        if self.has_gaps {
            let continues = |line: &Span| {
                let is_first = line.start == whole.start;
                is_first || matches!(line.of(original).first(), Some(b' ' | b'\t'))
            };
            let lines = SpanLines::new(original, whole).map(|line| line.whole);
            let last = lines.take_while(continues).last();
            whole.end = last.map_or(whole.start, |last| last.end);
        }
        Some(Field::of(original, whole))
    }

    /// Returns the span of a field including any bytes between it and the next field.
    fn whole(&self, index: usize) -> Option<Span> {
        let place = |index: usize| Some(self.origin + *self.starts.get(index)? as usize);
        Some(Span::new(
            place(index)?,
            place(index + 1).unwrap_or(self.end),
        ))
    }

    /// Returns the span of each field including its line ending. The spans follow each other without gaps.
    pub fn wholes(&self) -> impl Iterator<Item = Span> + '_ {
        (0..self.len()).filter_map(|index| self.whole(index))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mime::header::Header;
    use proptest::prelude::*;

    fn reference(section: &[u8]) -> Vec<Field> {
        let mut fields: Vec<Field> = Vec::new();
        for line in SpanLines::new(section, Span::new(0, section.len())) {
            let text = line.content.of(section);
            match (text.first(), fields.last_mut()) {
                (Some(b' ' | b'\t'), Some(field)) => {
                    field.value.end = line.content.end;
                    field.whole.end = line.whole.end;
                }
                (Some(b' ' | b'\t'), None) => fields.push(Field {
                    name: Span::empty_at(line.content.start),
                    value: line.content,
                    whole: line.whole,
                }),
                _ => {
                    let colon = text.iter().position(|&byte| byte == b':').expect("a field");
                    let name = text[..colon].trim_ascii_end().len();
                    fields.push(Field {
                        name: Span::new(line.content.start, line.content.start + name),
                        value: Span::new(line.content.start + colon + 1, line.content.end),
                        whole: line.whole,
                    });
                }
            }
        }
        fields
    }

    proptest! {
        #[test]
        fn fields_that_are_found_are_those_that_a_slow_reader_sees(
            section in "( [a:]{0,3}\r?\n){0,2}(([aA]|ab|B|)[ \t\r\u{c}]{0,2}:[ -~\r]{0,5}\r?\n([ \t][ -~]{0,4}\r?\n){0,2}){0,8}(a:b)?",
        ) {
            let bytes = section.as_bytes();
            let header = Header::read(bytes, Span::new(0, bytes.len()), 1 << 20);
            let wanted = reference(bytes);
            let found: Vec<Field> = header.fields.iter(bytes).collect();
            prop_assert_eq!(&found, &wanted);
            prop_assert_eq!(header.fields.last(bytes), wanted.last().copied());
            prop_assert!(header.fields.wholes().eq(wanted.iter().map(|field| field.whole)));
            for name in ["a", "AB", "b", "abc", "c"] {
                let first = wanted.iter().find(|field| field.is(bytes, name));
                prop_assert_eq!(header.fields.first(bytes, name), first.copied(), "{}", name);
            }
        }

        #[test]
        fn fields_of_appended_header_blocks_end_before_the_gap_between_blocks(
            blocks in prop::collection::vec(("(a: ?b\r?\n([ \t]c\n)?){1,3}", "\r?\n([ \t]{0,2}\n){0,2}"), 1..4),
        ) {
            let mut mail = String::from("front");
            let mut all = Fields::none_at(0);
            let mut wanted = Vec::new();
            for (block, gap) in &blocks {
                let start = mail.len();
                mail.push_str(block);
                let within = Span::new(start, mail.len());
                let header = Header::read(mail.as_bytes(), within, 1 << 20);
                wanted.extend(header.fields.iter(mail.as_bytes()));
                prop_assert!(all.append(&header.fields));
                mail.push_str(gap);
            }
            let found: Vec<Field> = all.iter(mail.as_bytes()).collect();
            prop_assert_eq!(found, wanted);
        }
    }

    #[test]
    fn index_of_a_field_takes_four_octets_of_memory() {
        let section = b":\n".repeat(1 << 16);
        let within = Span::new(0, section.len());
        let header = Header::read(&section, within, usize::MAX);
        assert_eq!(header.fields.len(), 1 << 16);
        assert_eq!(size_of_val(header.fields.starts.as_slice()), 4 << 16);
    }
}
