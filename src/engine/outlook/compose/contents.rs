//! The content of an item, as parts of mail, and how the parts are combined into one body.

use super::super::report::Report;
use crate::engine::parts::{Body, Leaf, Part};

/// The content of an item, as parts of mail.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Contents<'a> {
    pub text: Option<Leaf<'a>>,
    pub html: Option<Leaf<'a>>,
    pub calendar: Option<Leaf<'a>>,
    pub report: Option<Report<'a>>,
    /// Pictures that the HTML displays.
    pub pictures: Vec<Leaf<'a>>,
    pub attachments: Vec<Leaf<'a>>,
    /// Text that was converted from RTF. It is used only if the mail has no other text.
    pub rtf_text: Option<Leaf<'a>>,
    /// A sentence for each piece of content that mail cannot contain, or that cannot be read.
    pub unmapped: Vec<String>,
    /// Names of properties for which mail has no header field.
    pub properties: Vec<&'static str>,
    /// Number of properties that are not in the table of known properties.
    pub unknown: usize,
}

impl<'a> Contents<'a> {
    /// Returns all parts of the content.
    pub fn leaves(&self) -> impl Iterator<Item = &Leaf<'a>> {
        [&self.text, &self.html, &self.calendar]
            .into_iter()
            .flatten()
            .chain(self.report.iter().map(|report| &report.leaf))
            .chain(&self.pictures)
            .chain(&self.attachments)
    }

    /// Combines the HTML and the pictures that it displays. If there are pictures, the result is a multipart/related.
    pub fn shown(html: Leaf<'a>, pictures: Vec<Leaf<'a>>) -> Part<'a> {
        if pictures.is_empty() {
            return Part::Leaf(html);
        }
        let parts = std::iter::once(html)
            .chain(pictures)
            .map(Part::Leaf)
            .collect();
        let root = vec![("type".to_owned(), "text/html".to_owned())];
        Part::Multipart("related", root, parts)
    }

    /// Combines all content into the body of one message.
    pub fn whole(mut self) -> Part<'a> {
        let mut alternatives = Vec::new();
        alternatives.extend(self.text.or(self.rtf_text).map(Part::Leaf));
        let mut pictures = self.pictures;
        if let Some(html) = self.html {
            alternatives.push(Self::shown(html, std::mem::take(&mut pictures)));
        }
        alternatives.extend(self.calendar.map(Part::Leaf));
        let mut parts: Vec<Part<'a>> = Vec::new();
        parts.extend(Part::joined("alternative", alternatives));
        if let Some(report) = self.report {
            let kind = vec![("report-type".to_owned(), report.kind.to_owned())];
            parts.push(Part::Leaf(report.leaf));
            // If a report has a single attached message, the report is about this message. So it becomes a part of the
            // multipart/report.
            if let [
                Leaf {
                    body: Body::Message(_),
                    ..
                },
            ] = self.attachments.as_slice()
            {
                parts.extend(self.attachments.pop().map(Part::Leaf));
            }
            parts = vec![Part::Multipart("report", kind, parts)];
        }
        parts.extend(pictures.into_iter().map(Part::Leaf));
        parts.extend(self.attachments.into_iter().map(Part::Leaf));
        let empty = || Part::Leaf(Leaf::text("text/plain", String::new()));
        Part::joined("mixed", parts).unwrap_or_else(empty)
    }
}
