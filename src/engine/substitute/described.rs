use super::Substitute;
use crate::engine::content_source::ContentSource;
use crate::mime::MediaType;
use crate::mime::header::{Field, Fields};
use crate::mime::media_type::{self, NamedType};
use crate::mime::transfer::with_newlines;
use crate::span::Span;

fn named<'p>(parameters: &'p [(String, String)], name: &str) -> Option<&'p str> {
    let mut parameters = parameters.iter();
    let found = parameters.find(|(known, _)| known.eq_ignore_ascii_case(name));
    found.map(|(_, value)| value.as_str())
}

impl Substitute<'_> {
    pub(super) fn content_type_field(&self) -> Vec<u8> {
        let obtained = &self.obtained;
        let find = |fields: &Fields| fields.first(self.tree.original, "Content-Type");
        let phantom = find(&self.body.phantom.fields);
        let is_detached = self.facts().quotes_header;
        let own = || find(self.tree.fields(self.body.part)).filter(|_| is_detached);
        let Some(field) = phantom.or_else(own) else {
            // The attachment had no Content-Type field before it was detached, so it gets none, and has the default
            // type again.
            return if is_detached {
                Vec::new()
            } else {
                self.written_type(obtained)
            };
        };
        let declared = MediaType::parse(field.value.of(self.tree.original));
        let is_multipart = declared.main() == "multipart";
        let source_boundary = named(&obtained.parameters, "boundary");
        if is_multipart
            && source_boundary.is_some()
            && declared.parameter("boundary").as_deref() != source_boundary.map(str::as_bytes)
        {
            // The phantom header (the header in the mail for the content) declares another boundary than the source. With
            // the wrong boundary, the parts would not be found, so the Content-Type of the source is used.
            return self.written_type(obtained);
        }
        let main = declared.main();
        // The charset parameter applies to XML types too (RFC 7303 §3).
        let has_charset = main == "text" || declared.essence.ends_with("+xml");
        let carries_all = obtained.location.is_none();
        let more: Vec<(String, String)> = obtained
            .parameters
            .iter()
            .filter(|(name, _)| {
                let wanted = (name == "charset" && has_charset)
                    || (name == "boundary" && is_multipart)
                    || (carries_all && obtained.source_type.as_deref() == Some(&*declared.essence));
                wanted && declared.parameter(name).is_none()
            })
            .cloned()
            .collect();
        let written = Span::new(field.whole.start, field.value.end).of(self.tree.original);
        if more.is_empty() {
            return [written, self.newline.bytes()].concat();
        }
        let trimmed = written.trim_ascii_end();
        let before = trimmed.strip_suffix(b";").unwrap_or(trimmed);
        let added = with_newlines(media_type::write_more(&more), self.newline);
        [before, &added, self.newline.bytes()].concat()
    }

    fn written_type(&self, obtained: &ContentSource) -> Vec<u8> {
        let mut parameters = obtained.parameters.to_vec();
        let mut as_written = Vec::new();
        if named(&parameters, "name").is_none() {
            match self.own_name("Content-Type", "name") {
                NamedType::Text(name) => parameters.push(("name".to_owned(), name)),
                // The name is kept in its original bytes, because a mail client that knows the charset can still decode it.
                NamedType::Undecodable(_) => {
                    let value = self.tree.value(self.body.part, "Content-Type");
                    as_written = MediaType::parse(value.unwrap_or_default()).written("name");
                }
                NamedType::None => {}
            }
        }
        let mut field = media_type::write(&obtained.essence, &parameters);
        if !as_written.is_empty() {
            let end = field.trim_ascii_end().len();
            field.splice(end..end, as_written);
        }
        with_newlines(field, self.newline)
    }

    fn own_name(&self, field: &str, parameter: &str) -> NamedType {
        let value = self.tree.value(self.body.part, field);
        let (Some(suffix), Some(value)) = (self.suffix, value) else {
            return NamedType::None;
        };
        let name = match MediaType::parse(value).name(parameter) {
            NamedType::Text(name) => name,
            other => return other,
        };
        let stem = name.len().checked_sub(suffix.len());
        NamedType::Text(match stem.and_then(|stem| name.split_at_checked(stem)) {
            Some((stem, end)) if !stem.is_empty() && end.eq_ignore_ascii_case(suffix) => {
                stem.to_owned()
            }
            _ => name,
        })
    }

    /// Returns the Content-Disposition field with the name of the content. The old name was that of a shortcut or a page, and
    /// the other parameters (size, dates) described it too, so they are removed. Returns `None` if the name cannot be decoded:
    /// then the field stays unchanged.
    pub(super) fn written_disposition(&self, field: &Field) -> Option<Vec<u8>> {
        let name = self.own_name("Content-Disposition", "filename").text()?;
        let value = field.value.of(self.tree.original);
        let end = memchr::memchr(b';', value)?;
        let written = Span::new(field.whole.start, field.value.start + end).of(self.tree.original);
        let parameter = with_newlines(
            media_type::write_more(&[("filename".to_owned(), name)]),
            self.newline,
        );
        Some([written, &parameter, self.newline.bytes()].concat())
    }
}
