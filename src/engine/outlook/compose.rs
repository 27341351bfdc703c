//! Converts Outlook items to parts of mail.
//!
//! [`of`] returns the content of an item: its texts, its files, and a sentence for each value that cannot be converted.

use std::borrow::Cow;
use std::collections::HashSet;

use percent_encoding::percent_decode;

use super::calendar;
use super::codepage;
use super::compressed_rtf;
use super::header;
use super::object::{self, Object};
use super::properties::{Attachment, Becomes, Content, Item, Property, Value, id, without_end};
use super::report::{self, Report};
use super::rtf::{self, Source};
use crate::engine::parts::{Body, Leaf, Part, charset, guessed};
use crate::link::html::{Syntax, locate_in};
use crate::mime::media_type::is_composite;
use crate::mime::transfer::{is_eight_bit, with_newlines};
use crate::mime::{MediaType, picture};
use crate::span::Newline;

const RTF: &str = "application/rtf";

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

/// Returns the content of an item as parts of mail.
pub fn of<'a>(item: &Item<'a>) -> Contents<'a> {
    let mut contents = Contents::default();
    let class = item.class();
    if let Some(entity) = signed(item, &class) {
        contents.attachments.push(entity);
        return contents;
    }
    if !is_mail(&class) {
        let what = format!("the item is of the class {class:?}, which is not a mail");
        contents.unmapped.push(what);
    }
    bodies(item, &mut contents);
    match report::of(item, &class) {
        Ok(None) => {}
        Ok(Some(read)) => {
            if contents.text.is_none() && contents.html.is_none() && contents.rtf_text.is_none() {
                contents.text = Some(Leaf::text("text/plain", read.text));
            }
            contents.report = Some(read.report);
        }
        Err(()) => contents
            .unmapped
            .push("the report, which does not name a recipient".to_owned()),
    }
    let description = contents
        .text
        .as_ref()
        .or(contents.rtf_text.as_ref())
        .map(|leaf| String::from_utf8_lossy(leaf.bytes()).into_owned());
    match calendar::of(item, description.as_deref()) {
        Ok(None) => {}
        Ok(Some(calendar)) => {
            let mut leaf = Leaf::text("text/calendar", calendar.text);
            leaf.parameters.retain(|(name, _)| name != "charset");
            for (name, value) in [("method", calendar.method), ("charset", "utf-8")] {
                leaf.parameters.push((name.to_owned(), value.to_owned()));
            }
            contents.calendar = Some(leaf);
            let missing = calendar.missing.into_iter().map(str::to_owned);
            contents.unmapped.extend(missing);
        }
        Err(()) => contents
            .unmapped
            .push("the meeting, which has no start time".to_owned()),
    }
    let referred = contents
        .html
        .as_ref()
        .map(|html| referred(html.bytes()))
        .unwrap_or_default();
    for (index, attachment) in item.attachments.iter().enumerate() {
        match leaf(item, attachment, &mut contents.unmapped) {
            Ok(leaf) => {
                let is_shown = [
                    leaf.content_id.as_ref().map(|id| format!("cid:{id}")),
                    leaf.location.clone(),
                ]
                .into_iter()
                .flatten()
                .any(|url| referred.contains(&url));
                if is_shown {
                    contents.pictures.push(Leaf {
                        is_attachment: false,
                        ..leaf
                    })
                } else {
                    contents.attachments.push(leaf)
                }
            }
            Err(why) => {
                let name = name(item, attachment).unwrap_or_else(|| format!("{}", index + 1));
                contents.unmapped.push(format!("attachment {name}: {why}"));
            }
        }
    }
    let lists = std::iter::once(&item.properties)
        .chain(&item.recipients)
        .chain(item.attachments.iter().map(|it| &it.properties));
    let mut named = HashSet::new();
    for property in lists.flat_map(|list| &list.0) {
        tell(property, &mut contents, &mut named);
    }
    contents
}

fn tell(property: &Property<'_>, contents: &mut Contents<'_>, named: &mut HashSet<&'static str>) {
    if property.is_empty() {
        return;
    }
    match property.becomes() {
        Some(Becomes::Unmapped(name)) => {
            if named.insert(name) {
                contents.properties.push(name);
            }
        }
        Some(_) => {}
        None => contents.unknown += 1,
    }
}

/// Returns true if the class of an item is a kind of mail. Contacts, tasks and notes store their content in properties for
/// which mail has no place.
fn is_mail(class: &str) -> bool {
    let is = |known: &str| {
        let rest = class.strip_prefix(known);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    class.is_empty()
        || class == "ipm"
        || is("ipm.note")
        || is("ipm.post")
        || calendar::is_meeting(class)
        || report::is_report(class)
}

/// Returns the original MIME entity of a signed or encrypted mail, which Outlook stores as the only attachment of the
/// item. The text of the item is a substitute for programs that do not support signed mail, so it is ignored.
fn signed<'a>(item: &Item<'a>, class: &str) -> Option<Leaf<'a>> {
    let [attachment] = item.attachments.as_slice() else {
        return None;
    };
    let Content::File(bytes) = &attachment.content else {
        return None;
    };
    if class == "ipm.note.smime.multipartsigned" {
        let read = crate::mime::Header::of_message(bytes, 64 << 10);
        let value = read.fields.value(bytes, "Content-Type")?;
        let is_signed = MediaType::parse(value).essence == "multipart/signed";
        let is_fit = bytes.is_ascii() && is_eight_bit(bytes);
        return (is_signed && is_fit)
            .then(|| Leaf::new("multipart/signed", Body::Entity(bytes.clone())));
    }
    if class != "ipm.note.smime" {
        return None;
    }
    let mut leaf = Leaf::new("application/pkcs7-mime", Body::Bytes(bytes.clone()));
    leaf.is_attachment = true;
    leaf.name = Some("smime.p7m".to_owned());
    Some(leaf)
}

fn bodies<'a>(item: &Item<'a>, contents: &mut Contents<'a>) {
    if let Some(text) = item.text(id::BODY) {
        contents.text = Some(Leaf::text("text/plain", lines(&text)));
    }
    contents.html = html(item);
    let Some(compressed) = item.properties.bytes(id::RTF).filter(|it| !it.is_empty()) else {
        return;
    };
    // The RTF was generated from the HTML, so it is not needed.
    if contents.html.is_some() {
        return;
    }
    let (rtf, damage) = match compressed_rtf::decompress(compressed) {
        Ok((rtf, damage)) => (rtf, damage),
        Err(_) => {
            let what = "the RTF body, which has an unknown compression";
            contents.unmapped.push(what.to_owned());
            return;
        }
    };
    let Some(body) = rtf::read(&rtf) else {
        if !rtf.is_empty() {
            contents
                .unmapped
                .push("the RTF body, which does not contain RTF".to_owned());
        }
        return;
    };
    if damage.is_some() || body.damage.is_some() && body.source != Source::Rtf {
        contents
            .unmapped
            .push("the RTF body, which is damaged".to_owned());
    }
    match body.source {
        Source::Html => contents.html = Some(Leaf::text("text/html", body.text)),
        Source::Text => {
            if contents.text.is_none() {
                contents.text = Some(Leaf::text("text/plain", body.text));
            }
        }
        Source::Rtf => {
            if contents.text.is_none() && !body.text.trim().is_empty() {
                contents.rtf_text = Some(Leaf::text("text/plain", body.text));
            }
            let leaf = Leaf::new(RTF, Body::Bytes(Cow::Owned(rtf)));
            contents.attachments.push(leaf.attached("message.rtf"));
        }
    }
}

/// Replaces all line endings by LF.
fn lines(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\r', "\n")
}

fn html<'a>(item: &Item<'a>) -> Option<Leaf<'a>> {
    let page = item
        .properties
        .integer(id::INTERNET_CODEPAGE)
        .and_then(|page| u32::try_from(page).ok());
    match item.properties.value(id::HTML)? {
        Value::Text(text) if !text.is_empty() => Some(Leaf::text("text/html", text.clone())),
        Value::Bytes(bytes) | Value::Narrow(bytes) => {
            let end = without_end(bytes).len();
            let bytes = match bytes {
                Cow::Borrowed(bytes) => Cow::Borrowed(bytes.get(..end)?),
                Cow::Owned(bytes) => Cow::Owned(bytes.get(..end)?.to_vec()),
            };
            if bytes.is_empty() {
                return None;
            }
            let charset = match page.or(Some(item.page)).and_then(codepage::label) {
                _ if bytes.is_ascii() => None,
                Some(label) if page.is_some() => Some(label),
                _ if str::from_utf8(&bytes).is_ok() => Some("utf-8".into()),
                label => label,
            };
            let mut leaf = Leaf::new("text/html", Body::Text(bytes));
            leaf.parameters
                .extend(charset.map(|it| ("charset".to_owned(), it.into_owned())));
            Some(leaf)
        }
        _ => None,
    }
}

/// Returns the URLs in the HTML. Percent escapes are decoded in `cid:` URLs, so that these can be compared with
/// Content-IDs.
fn referred(html: &[u8]) -> HashSet<String> {
    let links = locate_in(html, Syntax::Html).links;
    let urls = links.iter().map(|link| {
        let decoded = link.decoded(html);
        let url = decoded.trim_ascii();
        let comparable = match url.split_at_checked(b"cid:".len()) {
            Some((scheme, id)) if scheme.eq_ignore_ascii_case(b"cid:") => {
                [b"cid:".to_vec(), percent_decode(id).collect()].concat()
            }
            _ => url.to_vec(),
        };
        String::from_utf8_lossy(&comparable).into_owned()
    });
    urls.collect()
}

/// Returns the last component of a path without control characters. Returns `None` if this is not a valid file name.
fn file_name(name: &str) -> Option<String> {
    let last = name.rsplit(['/', '\\']).next().unwrap_or(name);
    let printable: String = last.chars().filter(|letter| !letter.is_control()).collect();
    let name = printable.trim();
    (!name.is_empty() && name != "." && name != "..").then(|| name.to_owned())
}

fn name(item: &Item<'_>, attachment: &Attachment<'_>) -> Option<String> {
    let text = |id| attachment.properties.text(id, item.page);
    let names = [
        id::LONG_FILE_NAME,
        id::LONG_PATH_NAME,
        id::FILE_NAME,
        id::PATH_NAME,
    ];
    let name = names.into_iter().find_map(|id| file_name(&text(id)?));
    let display = || {
        // The name of an attached item is its subject. A slash or a colon in a subject does not separate directories, so it is
        // replaced.
        let name = text(id::DISPLAY_NAME)?.replace(['/', '\\', ':'], "_");
        file_name(&name)
    };
    let name = name.or_else(display)?;
    let extension = text(id::EXTENSION)
        .filter(|_| !name.contains('.'))
        .filter(|it| it.starts_with('.') && file_name(it).is_some());
    Some(name + &extension.unwrap_or_default())
}

fn leaf<'a>(
    item: &Item<'a>,
    attachment: &Attachment<'a>,
    unmapped: &mut Vec<String>,
) -> Result<Leaf<'a>, String> {
    let properties = &attachment.properties;
    let text = |id| properties.text(id, item.page);
    let name = name(item, attachment);
    let mut leaf = match &attachment.content {
        Content::None => {
            let path = text(id::LONG_PATH_NAME).or_else(|| text(id::PATH_NAME));
            return Err(match (properties.integer(id::METHOD), path) {
                (Some(2..=4 | 7), Some(path)) => {
                    format!(
                        "the content is not in the file, which contains only a reference to {path}"
                    )
                }
                _ => "the content is not in the file".to_owned(),
            });
        }
        Content::Item(inner) => {
            let (message, missing) = message(inner);
            let called = name.as_deref().unwrap_or("without a name");
            let missing = missing.iter().map(|what| format!("in {called}: {what}"));
            unmapped.extend(missing);
            let mut leaf = Leaf::new("message/rfc822", Body::Message(message));
            leaf.name = name.map(|name| {
                if name.to_ascii_lowercase().ends_with(".eml") {
                    name
                } else {
                    format!("{name}.eml")
                }
            });
            leaf
        }
        Content::Storage(storage) => return Ok(object(item, storage, name)),
        Content::File(bytes) => {
            // The part is written as a file in base64. A type of `message/*`, `multipart/*` or TNEF would contradict
            // this, because programs parse such parts instead of offering them as files. If the file declares one of
            // these types, its type is guessed instead.
            let essence = text(id::MIME_TAG)
                .filter(|tag| is_type(tag))
                .map(|tag| tag.to_ascii_lowercase())
                .filter(|it| !is_composite(it) && it != "application/ms-tnef")
                .unwrap_or_else(|| guessed(name.as_deref(), bytes).to_owned());
            let mut leaf = Leaf::new(&essence, Body::Bytes(bytes.clone()));
            leaf.parameters.extend(charset(&essence, bytes));
            leaf.name = name;
            leaf
        }
    };
    leaf.is_attachment = true;
    for (parameter, id) in [
        ("creation-date", id::CREATION_TIME),
        ("modification-date", id::MODIFICATION_TIME),
    ] {
        if let Some(time) = properties.time(id).and_then(header::seconds) {
            leaf.dates.push((parameter.to_owned(), header::date(time)));
        }
    }
    let token = |id| {
        let text = text(id)?;
        let token = text.trim().trim_start_matches('<').trim_end_matches('>');
        let is_plain = |it: char| it.is_ascii_graphic() && it != '<' && it != '>';
        let is_fit = !token.is_empty() && token.len() < 500 && token.chars().all(is_plain);
        is_fit.then(|| token.to_owned())
    };
    leaf.content_id = token(id::CONTENT_ID);
    leaf.location = token(id::CONTENT_LOCATION);
    Ok(leaf)
}

fn is_type(tag: &str) -> bool {
    let is_token = |word: &str| {
        let is_plain = |it: char| it.is_ascii_alphanumeric() || "!#$&-^_.+".contains(it);
        !word.is_empty() && word.len() < 100 && word.chars().all(is_plain)
    };
    let words = tag.split_once('/');
    words.is_some_and(|(main, sub)| is_token(main) && is_token(sub))
}

/// Converts an OLE object. If it contains a file that can be extracted, the part is that file. Otherwise the part is the
/// compound file itself.
fn object<'a>(item: &Item<'_>, storage: &Cow<'a, [u8]>, name: Option<String>) -> Leaf<'a> {
    match object::read(storage) {
        Object::File(inner) => {
            let inner_name = inner.name.as_deref().and_then(|name| {
                let page = item.page;
                file_name(&codepage::decode(page, name).0)
            });
            let essence = guessed(inner_name.as_deref(), &inner.bytes);
            let mut name = inner_name.or(name).unwrap_or_else(|| "object".to_owned());
            if !name.contains('.')
                && let Some(kind) = picture::sniff(&inner.bytes)
            {
                name = format!("{name}.{}", kind.extension);
            }
            Leaf::new(essence, Body::Bytes(Cow::Owned(inner.bytes))).attached(&name)
        }
        Object::Document(essence, extension) => {
            let mut name = name.unwrap_or_else(|| "object".to_owned());
            if !name.contains('.') {
                name = format!("{name}.{extension}");
            }
            Leaf::new(essence, Body::Bytes(storage.clone())).attached(&name)
        }
        Object::Unknown => Leaf::new("application/x-ole-storage", Body::Bytes(storage.clone()))
            .attached(&name.unwrap_or_else(|| "object.ole".to_owned())),
    }
}

/// Converts an item to a message with LF line endings. Also returns one sentence for each piece of content that could not be
/// written into the message.
pub fn message(item: &Item<'_>) -> (Vec<u8>, Vec<String>) {
    let mut contents = of(item);
    let unmapped = std::mem::take(&mut contents.unmapped);
    let mut header = header::of(item);
    header.extend_from_slice(b"MIME-Version: 1.0\r\n");
    let mut written = with_newlines(header, Newline::Lf);
    written.extend_from_slice(&contents.whole().write(Newline::Lf, &[]));
    (written, unmapped)
}
