//! Attachments that the sender's program uploaded to cloud storage and linked in the HTML, and bare links to such files. No
//! document describes these forms, so the following is what the programs write.
//!
//! Name, size and expiry date are claims of the sender. Links to the same file count as one reference. A file is not retrieved
//! if the Content-Location of a part says that the message already contains it.

mod marks;
pub(crate) mod provider;
pub(in crate::engine) mod response;

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::time::{Duration, UNIX_EPOCH};

use self::marks::{MarkResult, may_show, shown};
pub(crate) use self::provider::Provider;
#[cfg(feature = "cli")]
use self::provider::hosts;
use self::provider::{ProviderLink, known, shared};
use crate::engine::external_body::reference::{Facts, Insertion};
use crate::engine::external_body::reference::{declared_charset, limit_notes};
use crate::engine::external_body::texts::{extension_of, file_name_in};
use crate::engine::external_body::url::read_url;
use crate::engine::external_body::{ExternalBody, ReferenceShape};
use crate::engine::forms::reference_form::{Needles, ReferenceForm};
use crate::engine::policy::{Follow, ReferenceParse};
use crate::engine::report::{HostedFile, Kind, rfc3339};
use crate::link::html::{Syntax, locate_in};
use crate::link::label::in_xml_declaration;
use crate::link::server_url::ServerUrl;
#[cfg(feature = "cli")]
use crate::link::url::masked;
#[cfg(feature = "cli")]
use crate::link::wrapper::each_url;
use crate::link::wrapper::unwrapped_link;
use crate::mime::charset::{self, Charset, is_ascii_label, is_utf16_label};
use crate::mime::entity::uri;
use crate::mime::{MessageTree, PartId, PartKind};

/// Facts about a link to a file in cloud storage. `Follow::Links` is only the default: the parser selects the
/// `--follow` word of the mail program that wrote the link.
static FACTS: Facts = Facts {
    insertion: Insertion::Attachment,
    ..Facts::of_whole_part(ReferenceShape::Hosted, Kind::Hosted, Some(Follow::Links))
};

/// Links to files in cloud storage.
pub(crate) struct HostedForm;

impl ReferenceForm for HostedForm {
    fn needles(&self) -> Needles {
        Needles::Documents(&Follow::HOSTED, may_show)
    }

    fn in_texts<'a>(
        &self,
        tree: &MessageTree<'a>,
        reading: &ReferenceParse,
        known: &HashSet<PartId>,
    ) -> Vec<ExternalBody<'a>> {
        hosted(tree, reading, known)
    }
}

/// Returns the links to hosted files in all documents. The parts in `known` are skipped, because they are references
/// themselves.
fn hosted<'a>(
    tree: &MessageTree<'a>,
    reading: &ReferenceParse,
    known: &HashSet<PartId>,
) -> Vec<ExternalBody<'a>> {
    let mut forms = Follow::HOSTED.into_iter();
    if !forms.any(|form| reading.forms.contains(form)) {
        return Vec::new();
    }
    let mut bodies: Vec<ExternalBody<'a>> = Vec::new();
    // Index in `bodies` of the reference to each file. The key is the message and the URL of the file. If a second link
    // leads to the same file, it finds the reference here and does not become another one.
    let mut found: HashMap<(PartId, String), usize> = HashMap::new();
    // An attached HTML page is a file and not the text of the mail, so its links are not read.
    let is_read = |&part: &PartId| {
        let entity = tree.part(part);
        ["text/html", "application/xhtml+xml"].contains(&&*entity.essence)
            && entity.content == PartKind::Leaf
            && !tree.has_disposition(part, "attachment")
            && !known.contains(&part)
    };
    for part in tree.ids().filter(is_read) {
        let entity = tree.part(part);
        let Some(document) = entity.encoding.decode(entity.body.of(tree.original)) else {
            continue;
        };
        let is_shown = may_show(&document, reading.forms);
        let declared = declared_charset(tree, part)
            .filter(|label| !is_ascii_label(label) && (!is_shown || !is_utf16_label(label)));
        let is_wide = || matches!(*document, [0xff, 0xfe, ..] | [0xfe, 0xff, ..]);
        let may_hide = || is_wide() || declared.as_deref().is_some_and(is_other);
        if !is_shown && !may_hide() {
            continue;
        }
        let text = DecodedDocument::of(declared, &document);
        if !may_show(&text.octets, reading.forms) {
            continue;
        }
        let message = tree.message_of(part);
        shown(&text.octets, |mut shown| {
            shown.name = shown.name.filter(|name| text.has_name(name));
            // One reference more than the limit is kept. `limit_notes` refuses this additional reference, and its row
            // in the report says that the limit was exceeded.
            let is_told =
                reading.forms.contains(shown.follow) && bodies.len() <= reading.most_notes;
            let Some((url, provider, place)) = place_of(&shown).filter(|_| is_told) else {
                return;
            };
            let key = place.plain.as_ref().map_or(url.as_str(), String::as_str);
            let name = name_of(&shown, &place);
            let number = *found
                .entry((message, key.to_owned()))
                .or_insert(bodies.len());
            if let Some(body) = bodies.get_mut(number) {
                // A file is often linked twice: by a picture and by its name. The second link completes the facts of
                // the first reference, such as the file name, instead of becoming another reference.
                let is_bare = body.selected_by == Some(Follow::Links);
                if is_bare && shown.follow != Follow::Links {
                    // The earlier link was an ordinary link. This one is marked as an attachment, so its facts are
                    // better and replace the earlier ones.
                    body.selected_by = Some(shown.follow);
                    body.size = shown.size.or(body.size);
                    body.file_name = name.or(body.file_name.take());
                } else {
                    body.file_name = body.file_name.take().or(name);
                }
            } else {
                bodies.push(body(tree, part, &shown, &url, (provider, place), name));
            }
        });
    }
    for body in &mut bodies {
        if let Some(hosted) = &mut body.linked {
            hosted.name.clone_from(&body.file_name);
        }
    }
    limit_notes(&mut bodies, reading);
    if !bodies.is_empty() {
        let there = locations(tree);
        bodies.retain(|body| {
            let link = body.linked.as_ref().map(|hosted| hosted.link.as_bytes());
            !link.is_some_and(|link| there.contains(&(tree.message_of(body.part), link.to_vec())))
        });
    }
    bodies
}

/// A document converted to UTF-8. If its charset is not supported, the bytes are not converted, and `unreadable` is the name of
/// the charset.
struct DecodedDocument<'d> {
    octets: Cow<'d, [u8]>,
    unreadable: Option<Vec<u8>>,
}

impl<'d> DecodedDocument<'d> {
    /// Decodes a document. Its charset is the one that the part declares; if there is none, that of a byte order mark,
    /// or that of `<meta>`. A document without a charset is UTF-8 if its bytes are valid UTF-8, but ISO-2022-JP if they
    /// contain its escape sequences. Otherwise it is windows-1252, as in browsers.
    fn of(declared: Option<Cow<'_, [u8]>>, document: &'d [u8]) -> Self {
        let known = |octets| Self {
            octets,
            unreadable: None,
        };
        let mark: Option<Cow<'_, [u8]>> = match document {
            [0xef, 0xbb, 0xbf, ..] => Some(Cow::Borrowed(b"utf-8")),
            [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => Some(Cow::Borrowed(b"utf-16")),
            _ => None,
        };
        let own = || {
            let syntax = Syntax::Html;
            locate_in(document, syntax)
                .charset
                .or_else(|| Some(in_xml_declaration(document)?.to_vec()))
                // Two labels are useless here. The label was found by reading the document as ASCII, so it cannot be
                // UTF-16. US-ASCII says nothing about non-ASCII bytes, and is often wrong.
                .filter(|label| !is_ascii_label(label) && !is_utf16_label(label))
                .map(Cow::Owned)
        };
        let undeclared = || match std::str::from_utf8(document) {
            Ok(_) if memchr::memmem::find(document, b"\x1b$").is_some() => {
                b"iso-2022-jp".as_slice()
            }
            Ok(_) => b"utf-8",
            Err(_) => b"windows-1252",
        };
        let label = declared
            .or(mark)
            .or_else(own)
            .unwrap_or_else(|| Cow::Borrowed(undeclared()));
        match charset::decode_lossily(&label, document) {
            Some(Cow::Borrowed(text)) => known(Cow::Borrowed(text.as_bytes())),
            Some(Cow::Owned(text)) => known(Cow::Owned(text.into_bytes())),
            None => Self {
                octets: Cow::Borrowed(document),
                unreadable: Some(label.into_owned()),
            },
        }
    }

    /// Whether the name was decoded without loss. Only then is it the name that the sender gave to the file.
    fn has_name(&self, name: &str) -> bool {
        let is_read = |label: &Vec<u8>| charset::decode(label, name.as_bytes()).is_some();
        !name.contains(char::REPLACEMENT_CHARACTER) && self.unreadable.as_ref().is_none_or(is_read)
    }
}

fn is_other(label: &[u8]) -> bool {
    Charset::of_label(label) == Some(Charset::Other)
}

/// Returns the URL of a page in cloud storage, and the file to which it leads. If a mail filter wrapped the link, this is its
/// original.
fn place_of(shown: &MarkResult) -> Option<(ServerUrl, &'static Provider, ProviderLink)> {
    let original = unwrapped_link(&shown.link).map(|unwrapped| unwrapped.original);
    let url = ServerUrl::parse(original.as_ref().unwrap_or(&shown.link)).ok()?;
    if !["http", "https"].contains(&url.scheme()) {
        return None;
    }
    let found = known(&url, shown.name.as_deref());
    let (provider, link) = match shown.follow {
        Follow::FileLink => found.unwrap_or_else(|| shared(&url)),
        _ => found?,
    };
    (provider.accepts(shown.follow, &link)).then_some((url, provider, link))
}

/// A link in a plain text to a file in cloud storage. embody does not follow such links.
#[cfg(feature = "cli")]
pub(crate) struct TextLink {
    pub(crate) provider: &'static Provider,
    /// The URL, with the password masked. If a mail filter wrapped the link, its original.
    pub(crate) link: String,
    pub(crate) name: Option<String>,
}

/// Returns the links in a plain text to different files in cloud storage, in the order of the text.
#[cfg(feature = "cli")]
pub(crate) fn links_in_text(text: &[u8]) -> Vec<TextLink> {
    let mut known = HashSet::new();
    let mut links = Vec::new();
    each_url(text, |_, url| {
        // Most URLs are on other hosts, so they are not parsed. The original of a wrapped URL can be encoded.
        if !hosts().any(|host| url.contains(host)) && unwrapped_link(url).is_none() {
            return;
        }
        let shown = MarkResult {
            follow: Follow::Links,
            link: url.to_owned(),
            name: None,
            size: None,
            expires: None,
        };
        if let Some((url, provider, place)) = place_of(&shown)
            && known.insert(url.as_str().to_owned())
        {
            links.push(TextLink {
                provider,
                link: uri(&masked(url.as_str())),
                name: name_of(&shown, &place),
            });
        }
    });
    links
}

/// Returns the name of the file. The text of a bare link can be any words, so it is used only if it looks like a file
/// name.
fn name_of(shown: &MarkResult, place: &ProviderLink) -> Option<String> {
    let said = shown.name.as_deref();
    let name = match shown.follow {
        Follow::Links => {
            let is_name = |name: &&str| extension_of(name).is_some() && !name.contains("://");
            place.name.as_deref().or(said.filter(is_name))
        }
        _ => said.or(place.name.as_deref()),
    };
    name.and_then(file_name_in)
}

fn body<'a>(
    tree: &MessageTree<'a>,
    part: PartId,
    shown: &MarkResult,
    url: &ServerUrl,
    (provider, place): (&Provider, ProviderLink),
    name: Option<String>,
) -> ExternalBody<'a> {
    /// First second of the year 10000, since 1970. Later dates cannot be written.
    const LAST: u64 = 253_402_300_800;
    let target = place
        .plain
        .and_then(|plain| read_url(plain.into_bytes().into()));
    let mut body = ExternalBody::bare(tree, part, &FACTS, target);
    body.selected_by = Some(shown.follow);
    let ends = place
        .ends
        .filter(|&ends| ends < LAST)
        .map(|ends| rfc3339(UNIX_EPOCH + Duration::from_secs(ends)));
    body.size = shown.size.or(place.size);
    body.file_name = name;
    // The new part gets the URL in the mail, even a wrapped one, as its Content-Location, so that the link in the
    // document still matches.
    let wrapped = unwrapped_link(&shown.link).and_then(|_| ServerUrl::parse(&shown.link).ok());
    body.linked = Some(Box::new(HostedFile {
        provider: provider.word,
        name: None,
        original: wrapped.as_ref().map(|_| uri(url.as_str())),
        link: uri(wrapped.as_ref().unwrap_or(url).as_str()),
        expires: ends.or_else(|| shown.expires.clone()),
    }));
    body
}

fn locations(tree: &MessageTree<'_>) -> HashSet<(PartId, Vec<u8>)> {
    let located = tree.ids().filter_map(|part| {
        let url: Vec<u8> = tree
            .value(part, "Content-Location")?
            .iter()
            .copied()
            .filter(|byte| !byte.is_ascii_whitespace())
            .collect();
        Some((tree.message_of(part), url))
    });
    located.collect()
}
