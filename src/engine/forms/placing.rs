//! Creates the edits that insert new parts, for each kind of place: in a list of parts, in one branch of a
//! multipart/alternative, and as the body of a message.

use crate::edit::{Edit, Group};
use crate::engine::outlook::compose::ItemParts;
use crate::engine::parts::{NewBody, NewLeaf, NewMimePart, boundary, delimiter};
use crate::engine::report::{Reason, Refusal};
use crate::mime::transfer::with_newlines;
use crate::mime::{MessageTree, PartId, PartKind, entity};
use crate::span::{Newline, Span};

pub(super) struct FormInserter<'t> {
    pub(super) tree: &'t MessageTree<'t>,
    pub(super) part: PartId,
    pub(super) keeps: bool,
    pub(super) around: Vec<&'t [u8]>,
    pub(super) host: Option<PartId>,
}

impl FormInserter<'_> {
    fn newline(&self) -> Newline {
        self.tree.newline
    }

    pub(super) fn edits(
        &mut self,
        contents: ItemParts<'_>,
        texts: &[PartId],
    ) -> Result<Group, Refusal> {
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

    fn judge(&self, parts: &[NewMimePart<'_>]) -> Result<(), Refusal> {
        if !parts.iter().any(|part| part.meets(&self.around)) {
            Ok(())
        } else {
            let detail = "an attached message in the content contains a line that is also a boundary line of the mail";
            Err(Refusal::lasting(Reason::BoundaryCollision, detail))
        }
    }

    fn written(&self, part: &NewMimePart<'_>) -> Vec<u8> {
        part.write(self.newline(), &self.around)
    }

    /// Creates the edits for a part in a multipart that is a list of parts, such as multipart/mixed.
    fn list(
        &mut self,
        mut contents: ItemParts<'_>,
        above: PartId,
        texts: &[PartId],
    ) -> Result<Group, Refusal> {
        let tree = self.tree;
        let mut group = Group::new();
        let mut alternatives = Vec::new();
        if let Some(html) = contents.html.take() {
            let pictures = std::mem::take(&mut contents.pictures);
            alternatives.push(ItemParts::shown(html, pictures));
        }
        alternatives.extend(contents.calendar.take().map(NewMimePart::Leaf));
        let text = contents.text.take().or(contents.rtf_text.take());
        let mut parts: Vec<NewMimePart<'_>> = Vec::new();
        match self.host(above, texts) {
            Some(host) if !alternatives.is_empty() => {
                self.judge(&alternatives)?;
                self.host = Some(host);
                group.extend(self.beside(host, &alternatives));
                parts.extend(text.map(NewMimePart::Leaf));
            }
            _ => {
                let all = text.map(NewMimePart::Leaf).into_iter().chain(alternatives);
                parts.extend(NewMimePart::joined("alternative", all.collect()));
            }
        }
        parts.extend(contents.report.map(|report| NewMimePart::Leaf(report.leaf)));
        parts.extend(contents.pictures.into_iter().map(NewMimePart::Leaf));
        parts.extend(contents.attachments.into_iter().map(NewMimePart::Leaf));
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

    fn beside(&self, host: PartId, alternatives: &[NewMimePart<'_>]) -> Group {
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

    fn raw(&self) -> NewMimePart<'static> {
        let own = self.tree.part(self.part);
        NewMimePart::Raw(own.span.of(self.tree.original).to_vec())
    }

    /// Creates the edits for a part that is one branch of a multipart/alternative. The new parts must stay together in one
    /// branch.
    fn one(&self, contents: ItemParts<'_>) -> Result<Group, Refusal> {
        let tree = self.tree;
        let own = tree.part(self.part);
        let is_empty = contents.leaves().next().is_none() && contents.rtf_text.is_none();
        let new = match (is_empty, self.keeps) {
            (true, true) => return Ok(Group::new()),
            (true, false) => return Ok(vec![Edit::remove(tree.removal(self.part, 0))]),
            (false, true) => {
                NewMimePart::Multipart("mixed", Vec::new(), vec![contents.whole(), self.raw()])
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
    fn body(&self, contents: ItemParts<'_>) -> Result<Group, Refusal> {
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
            new = NewMimePart::Multipart("mixed", Vec::new(), vec![new, NewMimePart::Raw(raw)]);
        }
        self.judge(std::slice::from_ref(&new))?;
        if let NewMimePart::Leaf(NewLeaf {
            body: NewBody::Entity(_),
            ..
        }) = &new
        {
            new = NewMimePart::Multipart("mixed", Vec::new(), vec![new]);
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
