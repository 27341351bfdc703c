//! The content of an item, as parts of mail, and how the parts are combined into one body.

use super::super::report::DeliveryReport;
use crate::engine::parts::{NewBody, NewLeaf, NewMimePart};

/// The content of an item, as parts of mail.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct ItemParts<'a> {
    pub text: Option<NewLeaf<'a>>,
    pub html: Option<NewLeaf<'a>>,
    pub calendar: Option<NewLeaf<'a>>,
    pub report: Option<DeliveryReport<'a>>,
    /// Pictures that the HTML displays.
    pub pictures: Vec<NewLeaf<'a>>,
    pub attachments: Vec<NewLeaf<'a>>,
    /// Text that was converted from RTF. It is used only if the mail has no other text.
    pub rtf_text: Option<NewLeaf<'a>>,
    /// A sentence for each piece of content that mail cannot contain, or that cannot be read.
    pub unmapped: Vec<String>,
    /// Names of properties for which mail has no header field.
    pub properties: Vec<&'static str>,
    /// Number of properties that are not in the table of known properties.
    pub unknown: usize,
}

impl<'a> ItemParts<'a> {
    /// Returns all parts of the content.
    pub fn leaves(&self) -> impl Iterator<Item = &NewLeaf<'a>> {
        [&self.text, &self.html, &self.calendar]
            .into_iter()
            .flatten()
            .chain(self.report.iter().map(|report| &report.leaf))
            .chain(&self.pictures)
            .chain(&self.attachments)
    }

    /// Combines the HTML and the pictures that it displays. If there are pictures, the result is a multipart/related.
    pub fn shown(html: NewLeaf<'a>, pictures: Vec<NewLeaf<'a>>) -> NewMimePart<'a> {
        if pictures.is_empty() {
            return NewMimePart::Leaf(html);
        }
        let parts = std::iter::once(html)
            .chain(pictures)
            .map(NewMimePart::Leaf)
            .collect();
        let root = vec![("type".to_owned(), "text/html".to_owned())];
        NewMimePart::Multipart("related", root, parts)
    }

    /// Combines all content into the body of one message.
    pub fn whole(mut self) -> NewMimePart<'a> {
        let mut alternatives = Vec::new();
        alternatives.extend(self.text.or(self.rtf_text).map(NewMimePart::Leaf));
        let mut pictures = self.pictures;
        if let Some(html) = self.html {
            alternatives.push(Self::shown(html, std::mem::take(&mut pictures)));
        }
        alternatives.extend(self.calendar.map(NewMimePart::Leaf));
        let mut parts: Vec<NewMimePart<'a>> = Vec::new();
        parts.extend(NewMimePart::joined("alternative", alternatives));
        if let Some(report) = self.report {
            let kind = vec![("report-type".to_owned(), report.kind.to_owned())];
            parts.push(NewMimePart::Leaf(report.leaf));
            // A report with a single attached message is about this message, so the message becomes a part of the
            // multipart/report.
            if let [
                NewLeaf {
                    body: NewBody::Message(_),
                    ..
                },
            ] = self.attachments.as_slice()
            {
                parts.extend(self.attachments.pop().map(NewMimePart::Leaf));
            }
            parts = vec![NewMimePart::Multipart("report", kind, parts)];
        }
        parts.extend(pictures.into_iter().map(NewMimePart::Leaf));
        parts.extend(self.attachments.into_iter().map(NewMimePart::Leaf));
        let empty = || NewMimePart::Leaf(NewLeaf::text("text/plain", String::new()));
        NewMimePart::joined("mixed", parts).unwrap_or_else(empty)
    }
}
