//! Items of Outlook become parts of mail.
//!
//! [`of`] says what an item contains: its texts, its files, and what cannot be mapped. [`Part::write`] writes parts.
//! Boundaries are derived from the content, so the same item always gives the same bytes.

use std::borrow::Cow;
use std::collections::HashSet;

use percent_encoding::percent_decode;

use super::calendar;
use super::codepage;
use super::header;
use super::object::{self, Object};
use super::properties::{Attachment, Becomes, Content, Item, Property, Value, id, without_end};
use super::rtf::{self, Source};
use crate::link::html::{Syntax, locate_in};
use crate::mime::entity::{self, push_field};
use crate::mime::media_type::{self, is_composite};
use crate::mime::transfer::{
    encode_base64, encode_text, has_boundary, is_eight_bit, with_newlines,
};
use crate::mime::{MediaType, TransferEncoding, picture};
use crate::span::Newline;

const OCTETS: &str = "application/octet-stream";
const RTF: &str = "application/rtf";

/// A part that is not written yet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Leaf<'a> {
    pub essence: String,
    pub parameters: Vec<(String, String)>,
    pub is_attachment: bool,
    pub name: Option<String>,
    /// Parameters of Content-Disposition: dates.
    dates: Vec<(String, String)>,
    pub content_id: Option<String>,
    pub location: Option<String>,
    pub body: Body<'a>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Body<'a> {
    /// Octets that stay exactly what they are.
    Octets(Cow<'a, [u8]>),
    /// Text whose line ends become those of the message.
    Text(Cow<'a, [u8]>),
    /// A message, in lines that end with LF and need no encoding.
    Message(Vec<u8>),
    /// A whole entity with its own header, which is signed.
    Entity(Cow<'a, [u8]>),
}

impl<'a> Leaf<'a> {
    fn new(essence: &str, body: Body<'a>) -> Self {
        Self {
            essence: essence.to_owned(),
            parameters: Vec::new(),
            is_attachment: false,
            name: None,
            dates: Vec::new(),
            content_id: None,
            location: None,
            body,
        }
    }

    /// A text in UTF-8.
    pub fn text(essence: &str, text: String) -> Self {
        let charset = (!text.is_ascii()).then(|| "utf-8".to_owned());
        let charset = charset.map(|charset| ("charset".to_owned(), charset));
        let mut leaf = Self::new(essence, Body::Text(Cow::Owned(text.into_bytes())));
        leaf.parameters.extend(charset);
        leaf
    }

    /// A file, whose type its name and its first bytes tell.
    pub fn file(name: &str, octets: Vec<u8>) -> Self {
        let essence = guessed(Some(name), &octets);
        let parameters = charset(essence, &octets).into_iter().collect();
        Self {
            parameters,
            ..Self::new(essence, Body::Octets(Cow::Owned(octets)))
        }
        .attached(name)
    }

    pub fn octets(&self) -> &[u8] {
        match &self.body {
            Body::Octets(octets) | Body::Text(octets) | Body::Entity(octets) => octets,
            Body::Message(octets) => octets,
        }
    }

    /// The same as a file that programs do not display.
    #[must_use]
    pub fn attached(self, name: &str) -> Self {
        Self {
            is_attachment: true,
            name: Some(name.to_owned()),
            ..self
        }
    }
}

/// A part, or several.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Part<'a> {
    Leaf(Leaf<'a>),
    /// The subtype, parameters, and the parts.
    Multipart(&'static str, Vec<(String, String)>, Vec<Self>),
    /// Bytes of a part that stay as they are: its header, an empty line, and its body.
    Raw(Vec<u8>),
}

impl<'a> Part<'a> {
    /// One part is itself, and several are a multipart. `None` if there is none.
    pub fn joined(subtype: &'static str, mut parts: Vec<Self>) -> Option<Self> {
        match parts.len() {
            0 | 1 => parts.pop(),
            _ => Some(Self::Multipart(subtype, Vec::new(), parts)),
        }
    }

    /// Whether the part cannot stand between these boundaries.
    pub fn meets(&self, boundaries: &[&[u8]]) -> bool {
        match self {
            Self::Leaf(leaf) => match &leaf.body {
                Body::Message(octets) => has_boundary(octets, boundaries),
                Body::Entity(octets) => has_boundary(octets, boundaries),
                _ => false,
            },
            Self::Multipart(_, _, parts) => parts.iter().any(|part| part.meets(boundaries)),
            // It is between them already.
            Self::Raw(_) => false,
        }
    }

    /// The transfer encoding that a multipart around it must declare.
    fn domain(&self) -> Option<&'static str> {
        match self {
            Self::Leaf(_) => None,
            Self::Raw(octets) if octets.is_ascii() => None,
            Self::Raw(octets) if is_eight_bit(octets) => Some("8bit"),
            Self::Raw(_) => Some("binary"),
            // `binary` is the wider one.
            Self::Multipart(_, _, parts) => parts.iter().filter_map(Self::domain).max(),
        }
    }

    /// Writes the header, an empty line, and the body, without a line end after it.
    pub fn write(&self, newline: Newline, around: &[&[u8]]) -> Vec<u8> {
        let (fields, body) = self.written(newline, around);
        match self {
            Self::Raw(_)
            | Self::Leaf(Leaf {
                body: Body::Entity(_),
                ..
            }) => body,
            _ => [&fields, newline.bytes(), &body].concat(),
        }
    }

    /// The fields, and the body; of a part that is written as it is, all of it is the body.
    pub fn written(&self, newline: Newline, around: &[&[u8]]) -> (Vec<u8>, Vec<u8>) {
        let (subtype, parameters, parts) = match self {
            Self::Leaf(leaf) => return leaf.written(newline, around),
            Self::Raw(octets) => return (Vec::new(), octets.clone()),
            Self::Multipart(subtype, parameters, parts) => (subtype, parameters, parts),
        };
        let written = parts.iter().map(|it| it.write(newline, around));
        let written: Vec<Vec<u8>> = written.collect();
        let content = written.concat();
        let boundary = boundary(&content, newline, around);
        drop(content);
        let mut parameters = parameters.clone();
        parameters.insert(0, ("boundary".to_owned(), boundary.clone()));
        let essence = format!("multipart/{subtype}");
        let mut fields = media_type::write(&essence, &parameters);
        if let Some(domain) = self.domain() {
            let name = "Content-Transfer-Encoding";
            push_field(&mut fields, name, domain, Newline::CrLf);
        }
        let end = newline.bytes();
        let mut body = Vec::new();
        for part in written {
            body.extend_from_slice(&delimiter(&boundary, "", newline));
            body.extend_from_slice(&part);
            body.extend_from_slice(end);
        }
        body.extend_from_slice(&delimiter(&boundary, "--", newline));
        body.truncate(body.len() - end.len());
        (with_newlines(fields, newline), body)
    }
}

/// The boundary of a multipart. A message in LF and its twin in CRLF have the same one.
pub fn boundary(content: &[u8], newline: Newline, around: &[&[u8]]) -> String {
    match newline {
        Newline::Lf => entity::boundary(content, content, around),
        Newline::CrLf => {
            let seed = with_newlines(content.to_vec(), Newline::Lf);
            entity::boundary(&seed, content, around)
        }
    }
}

/// A boundary line with its line end.
pub fn delimiter(boundary: &str, close: &str, newline: Newline) -> Vec<u8> {
    [
        b"--",
        boundary.as_bytes(),
        close.as_bytes(),
        newline.bytes(),
    ]
    .concat()
}

impl Leaf<'_> {
    fn written(&self, newline: Newline, around: &[&[u8]]) -> (Vec<u8>, Vec<u8>) {
        let (encoding, body) = match &self.body {
            Body::Entity(octets) => return (Vec::new(), octets.to_vec()),
            Body::Message(octets) => {
                let body = with_newlines(octets.clone(), newline);
                (TransferEncoding::SevenBit, body)
            }
            Body::Octets(octets) => {
                let encoded = encode_base64(octets, newline);
                (encoded.encoding, encoded.body)
            }
            Body::Text(octets) => {
                let encoded = match is_ascii_compatible(&self.parameters) {
                    true => encode_text(octets.to_vec(), newline, around),
                    false => encode_base64(octets, newline),
                };
                (encoded.encoding, encoded.body)
            }
        };
        let mut fields = media_type::write(&self.essence, &self.parameters);
        if encoding != TransferEncoding::SevenBit {
            let name = "Content-Transfer-Encoding";
            push_field(&mut fields, name, encoding.as_str(), Newline::CrLf);
        }
        if self.is_attachment || self.name.is_some() {
            fields.extend_from_slice(match self.is_attachment {
                true => b"Content-Disposition: attachment".as_slice(),
                false => b"Content-Disposition: inline",
            });
            let name = self.name.clone().map(|name| ("filename".to_owned(), name));
            let parameters: Vec<_> = name.into_iter().chain(self.dates.clone()).collect();
            fields.extend_from_slice(&media_type::write_more(&parameters));
            fields.extend_from_slice(b"\r\n");
        }
        if let Some(id) = &self.content_id {
            push_field(&mut fields, "Content-ID", &format!("<{id}>"), Newline::CrLf);
        }
        if let Some(location) = &self.location {
            let field = entity::folded_url("Content-Location", location, Newline::CrLf);
            fields.extend_from_slice(&field);
        }
        (with_newlines(fields, newline), body)
    }
}

fn is_ascii_compatible(parameters: &[(String, String)]) -> bool {
    let mut charsets = parameters.iter().filter(|(name, _)| name == "charset");
    charsets.all(|(_, charset)| media_type::is_ascii_compatible(charset))
}

/// The content of an item.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Contents<'a> {
    pub text: Option<Leaf<'a>>,
    pub html: Option<Leaf<'a>>,
    pub calendar: Option<Leaf<'a>>,
    /// Pictures that the HTML displays.
    pub pictures: Vec<Leaf<'a>>,
    pub attachments: Vec<Leaf<'a>>,
    /// Text made from RTF, for a mail that has no other.
    pub rtf_text: Option<Leaf<'a>>,
    /// Content that mail cannot contain, or that cannot be read: a sentence for each.
    pub unmapped: Vec<String>,
    /// Names of properties that mail has no field for.
    pub properties: Vec<&'static str>,
    /// Number of properties that are not in the table.
    pub unknown: usize,
}

impl<'a> Contents<'a> {
    /// All leaves.
    pub fn leaves(&self) -> impl Iterator<Item = &Leaf<'a>> {
        let texts = [&self.text, &self.html, &self.calendar];
        let texts = texts.into_iter().flatten();
        texts.chain(&self.pictures).chain(&self.attachments)
    }

    /// The HTML with the pictures that it displays.
    pub fn shown(html: Leaf<'a>, pictures: Vec<Leaf<'a>>) -> Part<'a> {
        if pictures.is_empty() {
            return Part::Leaf(html);
        }
        let parts = std::iter::once(html).chain(pictures);
        let parts = parts.map(Part::Leaf).collect();
        let root = vec![("type".to_owned(), "text/html".to_owned())];
        Part::Multipart("related", root, parts)
    }

    /// All of it, as the body of a message.
    pub fn whole(self) -> Part<'a> {
        let mut alternatives = Vec::new();
        alternatives.extend(self.text.or(self.rtf_text).map(Part::Leaf));
        let mut pictures = self.pictures;
        if let Some(html) = self.html {
            alternatives.push(Self::shown(html, std::mem::take(&mut pictures)));
        }
        alternatives.extend(self.calendar.map(Part::Leaf));
        let mut parts: Vec<Part<'a>> = Vec::new();
        parts.extend(Part::joined("alternative", alternatives));
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
    let description = contents.text.as_ref().or(contents.rtf_text.as_ref());
    let description = description.map(|leaf| String::from_utf8_lossy(leaf.octets()).into_owned());
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
            .push("the meeting, which does not say when it begins".to_owned()),
    }
    let referred = contents.html.as_ref().map(|html| referred(html.octets()));
    let referred = referred.unwrap_or_default();
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
                match is_shown {
                    true => contents.pictures.push(Leaf {
                        is_attachment: false,
                        ..leaf
                    }),
                    false => contents.attachments.push(leaf),
                }
            }
            Err(why) => {
                let name = name(item, attachment).unwrap_or_else(|| format!("{}", index + 1));
                contents.unmapped.push(format!("attachment {name}: {why}"));
            }
        }
    }
    let lists = std::iter::once(&item.properties).chain(&item.recipients);
    let lists = lists.chain(item.attachments.iter().map(|it| &it.properties));
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

/// Items of other classes (contacts, tasks, notes) have content in properties that mail has no place for.
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
}

/// The only attachment of a signed or encrypted mail is the mail itself: its other text is only for programs that do not
/// know that.
fn signed<'a>(item: &Item<'a>, class: &str) -> Option<Leaf<'a>> {
    let [attachment] = item.attachments.as_slice() else {
        return None;
    };
    let Content::File(octets) = &attachment.content else {
        return None;
    };
    if class == "ipm.note.smime.multipartsigned" {
        let read = crate::mime::Header::of_message(octets, 64 << 10);
        let value = read.fields.value(octets, "Content-Type")?;
        let is_signed = MediaType::parse(value).essence == "multipart/signed";
        let is_fit = octets.is_ascii() && is_eight_bit(octets);
        return (is_signed && is_fit)
            .then(|| Leaf::new("multipart/signed", Body::Entity(octets.clone())));
    }
    if class != "ipm.note.smime" {
        return None;
    }
    let mut leaf = Leaf::new("application/pkcs7-mime", Body::Octets(octets.clone()));
    leaf.is_attachment = true;
    leaf.name = Some("smime.p7m".to_owned());
    Some(leaf)
}

fn bodies<'a>(item: &Item<'a>, contents: &mut Contents<'a>) {
    if let Some(text) = item.text(id::BODY) {
        contents.text = Some(Leaf::text("text/plain", lines(&text)));
    }
    contents.html = html(item);
    let Some(compressed) = item.properties.octets(id::RTF).filter(|it| !it.is_empty()) else {
        return;
    };
    // The HTML is what the RTF was made from.
    if contents.html.is_some() {
        return;
    }
    let (rtf, damage) = match rtf::decompress(compressed) {
        Ok((rtf, damage)) => (rtf, damage),
        Err(_) => {
            let what = "the RTF body, whose compression is unknown";
            contents.unmapped.push(what.to_owned());
            return;
        }
    };
    let Some(body) = rtf::read(&rtf) else {
        if !rtf.is_empty() {
            contents
                .unmapped
                .push("the RTF body, which is not RTF".to_owned());
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
            let leaf = Leaf::new(RTF, Body::Octets(Cow::Owned(rtf)));
            contents.attachments.push(leaf.attached("message.rtf"));
        }
    }
}

/// Line ends are LF.
fn lines(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\r', "\n")
}

fn html<'a>(item: &Item<'a>) -> Option<Leaf<'a>> {
    let page = item.properties.integer(id::INTERNET_CODEPAGE);
    let page = page.and_then(|page| u32::try_from(page).ok());
    match item.properties.value(id::HTML)? {
        Value::Text(text) if !text.is_empty() => Some(Leaf::text("text/html", text.clone())),
        Value::Octets(octets) | Value::Narrow(octets) => {
            let end = without_end(octets).len();
            let octets = match octets {
                Cow::Borrowed(octets) => Cow::Borrowed(octets.get(..end)?),
                Cow::Owned(octets) => Cow::Owned(octets.get(..end)?.to_vec()),
            };
            if octets.is_empty() {
                return None;
            }
            let charset = match page.or(Some(item.page)).and_then(codepage::label) {
                _ if octets.is_ascii() => None,
                Some(label) if page.is_some() => Some(label),
                _ if str::from_utf8(&octets).is_ok() => Some("utf-8".into()),
                label => label,
            };
            let mut leaf = Leaf::new("text/html", Body::Text(octets));
            let charset = charset.map(|it| ("charset".to_owned(), it.into_owned()));
            leaf.parameters.extend(charset);
            Some(leaf)
        }
        _ => None,
    }
}

/// URLs in the HTML, with their escapes undone.
fn referred(html: &[u8]) -> HashSet<String> {
    let links = locate_in(html, Syntax::Html).links;
    let links = links.iter().map(|link| {
        let url = link.decoded(html);
        let url = url.trim_ascii();
        let is_id = url
            .get(..4)
            .is_some_and(|it| it.eq_ignore_ascii_case(b"cid:"));
        let url = match is_id {
            true => [
                b"cid:".to_vec(),
                percent_decode(url.get(4..).unwrap_or_default()).collect(),
            ]
            .concat(),
            false => url.to_vec(),
        };
        String::from_utf8_lossy(&url).into_owned()
    });
    links.collect()
}

/// The name of a file is the last step of its path, without characters that no name has.
fn file_name(name: &str) -> Option<String> {
    let name = name.rsplit(['/', '\\']).next().unwrap_or(name);
    let name: String = name.chars().filter(|letter| !letter.is_control()).collect();
    let name = name.trim();
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
        // It is the subject of an item, not a path.
        let name = text(id::DISPLAY_NAME)?.replace(['/', '\\', ':'], "_");
        file_name(&name)
    };
    let name = name.or_else(display)?;
    let extension = text(id::EXTENSION).filter(|_| !name.contains('.'));
    let extension = extension.filter(|it| it.starts_with('.') && file_name(it).is_some());
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
                    format!("its content is not in the file, only a reference to {path}")
                }
                _ => "its content is not in the file".to_owned(),
            });
        }
        Content::Item(inner) => {
            let (message, missing) = message(inner);
            let called = name.as_deref().unwrap_or("without a name");
            let missing = missing.iter().map(|what| format!("in {called}: {what}"));
            unmapped.extend(missing);
            let mut leaf = Leaf::new("message/rfc822", Body::Message(message));
            leaf.name = name.map(|name| match name.to_ascii_lowercase().ends_with(".eml") {
                true => name,
                false => format!("{name}.eml"),
            });
            leaf
        }
        Content::Storage(storage) => return Ok(object(item, storage, name)),
        Content::File(octets) => {
            let essence = text(id::MIME_TAG).filter(|tag| is_type(tag));
            let essence = essence.map(|tag| tag.to_ascii_lowercase());
            // Only a part that is not encoded may have such a type.
            let essence = essence.filter(|it| !is_composite(it) && it != "application/ms-tnef");
            let essence = essence.unwrap_or_else(|| guessed(name.as_deref(), octets).to_owned());
            let mut leaf = Leaf::new(&essence, Body::Octets(octets.clone()));
            leaf.parameters.extend(charset(&essence, octets));
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
        let text = text.trim().trim_start_matches('<').trim_end_matches('>');
        let is_plain = |it: char| it.is_ascii_graphic() && it != '<' && it != '>';
        let is_fit = !text.is_empty() && text.len() < 500 && text.chars().all(is_plain);
        is_fit.then(|| text.to_owned())
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

fn charset(essence: &str, octets: &[u8]) -> Option<(String, String)> {
    let is_marked = essence.starts_with("text/") && !octets.is_ascii();
    let is_utf_8 = is_marked && str::from_utf8(octets).is_ok();
    is_utf_8.then(|| ("charset".to_owned(), "utf-8".to_owned()))
}

/// An OLE object becomes the file that it contains, or stays the compound file that it is.
fn object<'a>(item: &Item<'_>, storage: &Cow<'a, [u8]>, name: Option<String>) -> Leaf<'a> {
    match object::read(storage) {
        Object::File(inner) => {
            let inner_name = inner.name.as_deref().and_then(|name| {
                let page = item.page;
                file_name(&codepage::decode(page, name).0)
            });
            let essence = guessed(inner_name.as_deref(), &inner.octets);
            let name = inner_name.or(name).unwrap_or_else(|| "object".to_owned());
            let kind = picture::sniff(&inner.octets).filter(|_| !name.contains('.'));
            let extension = kind.map(|kind| format!(".{}", kind.extension));
            let name = name + &extension.unwrap_or_default();
            Leaf::new(essence, Body::Octets(Cow::Owned(inner.octets))).attached(&name)
        }
        Object::Document(essence, extension) => {
            let name = name.unwrap_or_else(|| "object".to_owned());
            let name = match name.contains('.') {
                true => name,
                false => format!("{name}.{extension}"),
            };
            Leaf::new(essence, Body::Octets(storage.clone())).attached(&name)
        }
        Object::Unknown => Leaf::new("application/x-ole-storage", Body::Octets(storage.clone()))
            .attached(&name.unwrap_or_else(|| "object.ole".to_owned())),
    }
}

/// An item within an item, as a message, and what of it is not in the message.
fn message(item: &Item<'_>) -> (Vec<u8>, Vec<String>) {
    let mut contents = of(item);
    let unmapped = std::mem::take(&mut contents.unmapped);
    let mut written = header::of(item);
    written.extend_from_slice(b"MIME-Version: 1.0\r\n");
    let mut written = with_newlines(written, Newline::Lf);
    written.extend_from_slice(&contents.whole().write(Newline::Lf, &[]));
    (written, unmapped)
}

/// The media type of a file.
pub fn guessed(name: Option<&str>, octets: &[u8]) -> &'static str {
    if let Some(kind) = picture::sniff(octets) {
        return kind.essence;
    }
    let extension = name.and_then(|name| Some(name.rsplit_once('.')?.1.to_ascii_lowercase()));
    match extension.as_deref().unwrap_or_default() {
        "csv" => "text/csv",
        "doc" | "dot" => "application/msword",
        "docx" => "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        "htm" | "html" => "text/html",
        "ics" => "text/calendar",
        "mp3" => "audio/mpeg",
        "mp4" => "video/mp4",
        "pdf" => "application/pdf",
        "ppt" | "pps" => "application/vnd.ms-powerpoint",
        "pptx" => "application/vnd.openxmlformats-officedocument.presentationml.presentation",
        "rtf" => RTF,
        "txt" => "text/plain",
        "vcf" => "text/vcard",
        "wav" => "audio/x-wav",
        "xls" => "application/vnd.ms-excel",
        "xlsx" => "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        "xml" => "application/xml",
        "zip" => "application/zip",
        _ if octets.starts_with(b"%PDF-") => "application/pdf",
        _ => OCTETS,
    }
}
