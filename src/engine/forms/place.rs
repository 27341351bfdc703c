//! Inserts new parts in the place of a part that mail programs cannot read.
//!
//! The text of the mail stays. HTML becomes an alternative to this text. Everything else replaces the part, or is inserted
//! before it if the part stays.

use std::collections::HashSet;

use sha2::{Digest as _, Sha256};

use crate::edit::{Edit, Group};
use crate::engine::outlook::compose::Contents;
use crate::engine::parts::{Body, Leaf, Part, boundary, delimiter};
use crate::engine::report::{Reason, Refusal};
use crate::mime::charset;
use crate::mime::header::unfold;
use crate::mime::transfer::with_newlines;
use crate::mime::{MediaType, PartId, PartKind, Tree, entity};
use crate::span::{Newline, Span};

type Digest = [u8; 32];

/// Digests and ids of everything in a message, to recognise content that the message already contains.
pub(super) struct Known {
    digests: HashSet<Digest>,
    ids: HashSet<Vec<u8>>,
}

impl Known {
    pub(super) fn of(tree: &Tree<'_>) -> Self {
        let mut known = Self {
            digests: HashSet::new(),
            ids: HashSet::new(),
        };
        for id in tree.ids() {
            if let Some(value) = tree.value(id, "Content-ID") {
                let unfolded = unfold(value);
                let content_id = unfolded.trim_ascii();
                let opened = content_id.strip_prefix(b"<").unwrap_or(content_id);
                let bare = opened.strip_suffix(b">").unwrap_or(opened);
                known.ids.insert(bare.to_vec());
            }
            let part = tree.part(id);
            let body = part.body.of(tree.original);
            match &part.content {
                PartKind::Message => {
                    known.digests.insert(text_digest(body));
                }
                PartKind::Multipart(_) if part.essence == "multipart/signed" => {
                    known
                        .digests
                        .insert(text_digest(part.span.of(tree.original)));
                }
                PartKind::Leaf => {
                    let Some(bytes) = part.encoding.decode(body) else {
                        continue;
                    };
                    known
                        .digests
                        .insert(digest(&bytes, name_of(tree, id).as_deref()));
                    // Line endings make no difference for texts. Parts of the type `message/*`, such as delivery reports, are
                    // text, too.
                    if part.essence.starts_with("text/") || part.essence.starts_with("message/") {
                        known.digests.insert(text_digest(&bytes));
                    }
                }
                PartKind::Multipart(_) | PartKind::Opaque(_) => {}
            }
        }
        known
    }

    /// Returns true if the message already contains the content. Equal bytes prove this. A Content-ID does not, because the
    /// sender can forge it; it is accepted only if the opened part stays in the message, so that nothing can be lost.
    pub(super) fn has(&self, leaf: &Leaf<'_>, stays: bool) -> bool {
        if stays && self.ids.contains(made_id(leaf).as_bytes()) {
            return true;
        }
        let digest = match &leaf.body {
            Body::Bytes(bytes) => digest(bytes, leaf.name.as_deref()),
            Body::Text(bytes) | Body::Entity(bytes) => text_digest(bytes),
            Body::Message(bytes) => text_digest(bytes),
        };
        self.digests.contains(&digest)
    }
}

/// Returns the digest of a file. For an empty file it includes the name, because empty files with different names are
/// different.
fn digest(bytes: &[u8], name: Option<&str>) -> Digest {
    match (bytes, name) {
        ([], Some(name)) => Sha256::digest(["empty: ", name].concat()).into(),
        _ => Sha256::digest(bytes).into(),
    }
}

/// Returns the digest of a text. The kind of line endings, and line endings at the end, make no difference.
fn text_digest(text: &[u8]) -> Digest {
    let normalized = with_newlines(text.to_vec(), Newline::Lf);
    let mut lines = normalized.as_slice();
    while let [before @ .., b'\n'] = lines {
        lines = before;
    }
    Sha256::digest([b"text: ", lines].concat()).into()
}

fn name_of(tree: &Tree<'_>, id: PartId) -> Option<String> {
    let value = tree.value(id, "Content-Disposition")?;
    MediaType::parse(value).name("filename").text()
}

/// Returns a Content-ID that contains the hash of a document. Links in the document may be changed later. Its bytes then
/// differ, but it is still recognized by this id.
fn made_id(leaf: &Leaf<'_>) -> String {
    let hash = entity::sha256(leaf.bytes());
    format!("{hash:.32}@embody.invalid")
}

/// Returns the texts of the message that contains `part`, except attachments, empty texts and `part` itself.
fn own_texts(tree: &Tree<'_>, part: PartId) -> Vec<PartId> {
    let message = tree.message_of(part);
    let is_text = |id: &PartId| {
        let text = tree.part(*id);
        *id != part
            && text.content == PartKind::Leaf
            && matches!(text.essence.as_str(), "text/plain" | "text/html")
            && !tree.has_disposition(*id, "attachment")
            && tree.message_of(*id) == message
            && !text.body.of(tree.original).trim_ascii().is_empty()
    };
    tree.ids().filter(is_text).collect()
}

/// Returns true if the mail has a text other than the part.
pub(super) fn has_text(tree: &Tree<'_>, part: PartId) -> bool {
    !own_texts(tree, part).is_empty()
}

/// Returns the words of a text, separated by single blanks, so that texts are compared without regard to white space.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn says_the_same(tree: &Tree<'_>, texts: &[PartId], leaf: &Leaf<'_>) -> bool {
    let wanted = words(&String::from_utf8_lossy(leaf.bytes()));
    texts.iter().any(|id| {
        let part = tree.part(*id);
        let body = part.body.of(tree.original);
        let Some(bytes) = part.encoding.decode(body) else {
            return false;
        };
        let value = tree.value(*id, "Content-Type").unwrap_or_default();
        let charset = MediaType::parse(value).parameter("charset");
        let label = charset.as_deref().unwrap_or(b"us-ascii");
        let text = charset::decode_lossily(label, &bytes)
            .unwrap_or_else(|| String::from_utf8_lossy(&bytes));
        words(&text).contains(&wanted)
    })
}

/// The edits that insert the content of a part into the message.
pub(super) struct Placed {
    pub edits: Group,
    /// Number of new parts.
    pub parts: usize,
    /// The text of the mail to which an alternative was added. `None` if the new parts are separate.
    pub host: Option<PartId>,
}

/// Inserts `contents` in the place of `part`. If `keeps` is true, the part stays, and the new parts are inserted before it.
///
/// # Errors
/// Returns [`Reason::BoundaryCollision`] if a new part contains a boundary line of the message.
pub(super) fn place(
    tree: &Tree<'_>,
    part: PartId,
    mut contents: Contents<'_>,
    known: &Known,
    keeps: bool,
) -> Result<Placed, Refusal> {
    let texts = own_texts(tree, part);
    let has_html = contents.html.is_some();
    let is_new = |leaf: &Leaf<'_>| !known.has(leaf, keeps);
    for text in [
        &mut contents.text,
        &mut contents.html,
        &mut contents.calendar,
    ] {
        *text = text.take().filter(is_new);
    }
    contents.report = contents.report.take_if(|report| is_new(&report.leaf));
    contents.pictures.retain(is_new);
    contents.attachments.retain(is_new);
    if !texts.is_empty() {
        contents.rtf_text = None;
        // If there is new HTML, the existing text of the mail becomes its alternative, so the new text is not needed.
        // Otherwise the new text is inserted only if its words differ from those of the existing texts.
        contents.text = contents
            .text
            .take_if(|text| !has_html && !says_the_same(tree, &texts, text));
    }
    if texts.iter().any(|id| tree.part(*id).essence == "text/html")
        && let Some(html) = contents.html.take()
    {
        contents
            .attachments
            .insert(0, html.attached("message.html"));
        contents.attachments.append(&mut contents.pictures);
    }
    if keeps {
        identify(&mut contents);
    }
    let parts = contents.leaves().count() + usize::from(contents.rtf_text.is_some());
    let mut placing = Placing {
        tree,
        part,
        keeps,
        around: tree.boundaries(),
        host: None,
    };
    let edits = placing.edits(contents, &texts)?;
    Ok(Placed {
        edits,
        parts,
        host: placing.host,
    })
}

fn identify(contents: &mut Contents<'_>) {
    let texts = [&mut contents.text, &mut contents.html];
    let leaves = texts.into_iter().flatten();
    for leaf in leaves.chain(&mut contents.attachments) {
        let may_change = match &leaf.body {
            Body::Text(_) | Body::Message(_) => true,
            Body::Bytes(_) => leaf.essence.starts_with("text/"),
            Body::Entity(_) => false,
        };
        if may_change && leaf.content_id.is_none() {
            leaf.content_id = Some(made_id(leaf));
        }
    }
}

struct Placing<'t> {
    tree: &'t Tree<'t>,
    part: PartId,
    keeps: bool,
    around: Vec<&'t [u8]>,
    host: Option<PartId>,
}

impl Placing<'_> {
    fn newline(&self) -> Newline {
        self.tree.newline
    }

    fn edits(&mut self, contents: Contents<'_>, texts: &[PartId]) -> Result<Group, Refusal> {
        let parent = self.tree.part(self.part).parent;
        match parent.map(|parent| (parent, self.tree.part(parent))) {
            Some((id, above)) if matches!(above.content, PartKind::Multipart(_)) => {
                match above.essence.as_str() {
                    "multipart/alternative" => self.one(contents),
                    _ => self.list(contents, id, texts),
                }
            }
            _ => self.body(contents),
        }
    }

    fn judge(&self, parts: &[Part<'_>]) -> Result<(), Refusal> {
        if !parts.iter().any(|part| part.meets(&self.around)) {
            Ok(())
        } else {
            let detail = "an attached message in the content contains a line that is also a boundary line of the mail";
            Err(Refusal::lasting(Reason::BoundaryCollision, detail))
        }
    }

    fn written(&self, part: &Part<'_>) -> Vec<u8> {
        part.write(self.newline(), &self.around)
    }

    /// Creates the edits for a part in a multipart that is a list of parts, such as multipart/mixed.
    fn list(
        &mut self,
        mut contents: Contents<'_>,
        above: PartId,
        texts: &[PartId],
    ) -> Result<Group, Refusal> {
        let tree = self.tree;
        let mut group = Group::new();
        let mut alternatives = Vec::new();
        if let Some(html) = contents.html.take() {
            let pictures = std::mem::take(&mut contents.pictures);
            alternatives.push(Contents::shown(html, pictures));
        }
        alternatives.extend(contents.calendar.take().map(Part::Leaf));
        let text = contents.text.take().or(contents.rtf_text.take());
        let mut parts: Vec<Part<'_>> = Vec::new();
        match self.host(above, texts) {
            Some(host) if !alternatives.is_empty() => {
                self.judge(&alternatives)?;
                self.host = Some(host);
                group.extend(self.beside(host, &alternatives));
                parts.extend(text.map(Part::Leaf));
            }
            _ => {
                let all = text.map(Part::Leaf).into_iter().chain(alternatives);
                parts.extend(Part::joined("alternative", all.collect()));
            }
        }
        parts.extend(contents.report.map(|report| Part::Leaf(report.leaf)));
        parts.extend(contents.pictures.into_iter().map(Part::Leaf));
        parts.extend(contents.attachments.into_iter().map(Part::Leaf));
        self.judge(&parts)?;
        let own = tree.part(self.part);
        let boundary = tree.part(above).content.boundary().unwrap_or_default();
        let end = self.newline().bytes();
        let line = [end, b"--", boundary, end].concat();
        match (parts.is_empty(), self.keeps) {
            (true, true) => {}
            (true, false) => group.push(Edit::remove(tree.removal(self.part, 0))),
            (false, true) => {
                let mut new = Vec::new();
                for part in &parts {
                    new.extend_from_slice(&self.written(part));
                    new.extend_from_slice(&line);
                }
                group.push(Edit::insert(own.span.start, new));
            }
            (false, false) => {
                let written: Vec<Vec<u8>> = parts.iter().map(|it| self.written(it)).collect();
                let mut new = written.join(line.as_slice());
                if tree.abuts_boundary(self.part) {
                    new.extend_from_slice(end);
                }
                group.push(Edit::replace(own.span, new));
            }
        }
        Ok(group)
    }

    /// Returns the text to which the HTML becomes an alternative. This is a part in the same multipart, or a
    /// multipart/alternative in it.
    fn host(&self, above: PartId, texts: &[PartId]) -> Option<PartId> {
        let tree = self.tree;
        let text = *texts.first()?;
        let host = std::iter::once(text)
            .chain(tree.ancestors(text))
            .find(|id| tree.part(*id).parent == Some(above))?;
        let part = tree.part(host);
        let last = part.children.last().copied();
        let is_fit = match part.essence.as_str() {
            "multipart/alternative" => {
                last.is_some_and(|last| !tree.abuts_boundary(last)) && !is_cut(part)
            }
            _ => host == text && !tree.abuts_boundary(host),
        };
        let is_protected = part.essence == "multipart/signed";
        let is_before = part.span.end <= tree.part(self.part).span.start;
        (is_fit && is_before && !is_protected).then_some(host)
    }

    fn beside(&self, host: PartId, alternatives: &[Part<'_>]) -> Group {
        let tree = self.tree;
        let part = tree.part(host);
        let end = self.newline().bytes();
        if let PartKind::Multipart(multipart) = &part.content {
            let boundary = &multipart.boundary;
            let mut new = Vec::new();
            for alternative in alternatives {
                new.extend([end, b"--", boundary, end].concat());
                new.extend_from_slice(&self.written(alternative));
            }
            let at = multipart.close.map_or(part.span.end, |close| close.start);
            return vec![Edit::insert(at, new)];
        }
        let own = part.span.of(tree.original);
        let written: Vec<Vec<u8>> = alternatives.iter().map(|it| self.written(it)).collect();
        let mut content = written.concat();
        content.extend_from_slice(own);
        let boundary = boundary(&content, self.newline(), &self.around);
        drop(content);
        let parameters = [("boundary".to_owned(), boundary.clone())];
        let mut before = crate::mime::media_type::write("multipart/alternative", &parameters);
        if !own.is_ascii() {
            let name = "Content-Transfer-Encoding";
            entity::push_field(&mut before, name, "8bit", Newline::CrLf);
        }
        let mut before = with_newlines(before, self.newline());
        before.extend_from_slice(end);
        before.extend_from_slice(&delimiter(&boundary, "", self.newline()));
        let mut after = Vec::new();
        for alternative in written {
            after.extend_from_slice(end);
            after.extend_from_slice(&delimiter(&boundary, "", self.newline()));
            after.extend_from_slice(&alternative);
        }
        after.extend_from_slice(end);
        after.extend_from_slice(&delimiter(&boundary, "--", self.newline()));
        after.truncate(after.len() - end.len());
        vec![
            Edit::insert(part.span.start, before),
            Edit::insert(part.span.end, after),
        ]
    }

    fn raw(&self) -> Part<'static> {
        let own = self.tree.part(self.part);
        Part::Raw(own.span.of(self.tree.original).to_vec())
    }

    /// Creates the edits for a part that is one branch of a multipart/alternative. The new parts must stay together in one
    /// branch.
    fn one(&self, contents: Contents<'_>) -> Result<Group, Refusal> {
        let tree = self.tree;
        let own = tree.part(self.part);
        let is_empty = contents.leaves().next().is_none() && contents.rtf_text.is_none();
        let new = match (is_empty, self.keeps) {
            (true, true) => return Ok(Group::new()),
            (true, false) => return Ok(vec![Edit::remove(tree.removal(self.part, 0))]),
            (false, true) => {
                Part::Multipart("mixed", Vec::new(), vec![contents.whole(), self.raw()])
            }
            (false, false) => contents.whole(),
        };
        self.judge(std::slice::from_ref(&new))?;
        let mut written = self.written(&new);
        if tree.abuts_boundary(self.part) {
            written.extend_from_slice(self.newline().bytes());
        }
        Ok(vec![Edit::replace(own.span, written)])
    }

    /// Creates the edits for a part that is the whole body of a message. The Content-* fields of the header change too.
    fn body(&self, contents: Contents<'_>) -> Result<Group, Refusal> {
        let tree = self.tree;
        let own = tree.part(self.part);
        let original = tree.original;
        let is_empty = contents.leaves().next().is_none() && contents.rtf_text.is_none();
        if is_empty && self.keeps {
            return Ok(Group::new());
        }
        let describes = |field: &crate::mime::Field| {
            field.is_content(original) && !field.is(original, "Content-Language")
        };
        let fields = tree.fields(self.part);
        let mut new = contents.whole();
        if self.keeps {
            let mut raw = Vec::new();
            for field in fields.iter(original).filter(|it| describes(it)) {
                let is_length = field.is(original, "Content-Length");
                if !is_length {
                    raw.extend_from_slice(field.whole.of(original));
                }
            }
            raw.extend_from_slice(self.newline().bytes());
            raw.extend_from_slice(own.body.of(original));
            new = Part::Multipart("mixed", Vec::new(), vec![new, Part::Raw(raw)]);
        }
        self.judge(std::slice::from_ref(&new))?;
        if let Part::Leaf(Leaf {
            body: Body::Entity(_),
            ..
        }) = &new
        {
            new = Part::Multipart("mixed", Vec::new(), vec![new]);
        }
        let (mut header, mut body) = new.written(self.newline(), &self.around);
        let mut group = Group::new();
        let mut place = None;
        for field in fields.iter(original) {
            let is_length = field.is(original, "Content-Length");
            if describes(&field) && !is_length {
                match place {
                    None => place = Some(field.whole),
                    Some(_) => group.push(Edit::remove(field.whole)),
                }
            }
        }
        if fields.first(original, "MIME-Version").is_none() {
            let version = [b"MIME-Version: 1.0", self.newline().bytes()].concat();
            header.splice(..0, version);
        }
        let place = place.unwrap_or(Span::empty_at(own.agreed_end));
        group.push(Edit::replace(place, header));
        let has_end = own.body.of(original).ends_with(b"\n");
        if has_end || tree.abuts_boundary(self.part) {
            body.extend_from_slice(self.newline().bytes());
        }
        group.push(Edit::replace(own.body, body));
        Ok(group)
    }
}

fn is_cut(part: &crate::mime::message::Part) -> bool {
    match &part.content {
        PartKind::Multipart(multipart) => multipart.overflow.is_some(),
        _ => false,
    }
}
