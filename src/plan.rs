//! Tree + Policy → [`Plan`]: what would be done with every reference, and why not with the others.
//!
//! No I/O, nothing decoded: `inspect` prints exactly this. The plan cannot know whether a
//! retrieval will succeed or what it will bring; [`expand`](crate::expand) finds out.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::rc::Rc;

use crate::external_body::{ExternalBody, Form, Reading, Target, Unusable};
use crate::link::base::Base;
use crate::link::url::{self, Dialect};
use crate::mime::header::End;
use crate::mime::{Content, Limit, PartId, Tree};
use crate::policy::{Policy, Protected, Scheme};
use crate::report::{Kind, Outcome, Reason, Refusal, Row};
use crate::span::Span;

/// How many characters of a `data:` URL a report shows.
const SHOWN_DATA: usize = 48;

/// Everything that would be done with one message.
#[derive(Clone, Debug, Default)]
pub struct Plan<'a> {
    /// One per reference, in the order of the message.
    pub items: Vec<Item<'a>>,
    /// Items (by their position in `items`) that offer the same object in one
    /// multipart/alternative, in the order in which they are tried.
    pub rivals: Vec<Vec<usize>>,
}

/// One reference and what to do with it.
#[derive(Clone, Debug)]
pub struct Item<'a> {
    /// The reference.
    pub body: ExternalBody<'a>,
    /// The part's number, as reports write it.
    pub number: String,
    /// What kind of reference.
    pub kind: Kind,
    /// The URL as reports show it: absolute if possible, password masked, `data:` shortened.
    pub shown_url: Option<String>,
    /// What to do.
    pub step: Step,
}

/// What to do with a reference.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Step {
    /// Decode the `data:` URL.
    Decode,
    /// Copy the content of another part.
    Copy(PartId),
    /// Retrieve this URL (absolute, mapped); asking for the declared type.
    Retrieve {
        /// The URL to give to [`Fetch`](crate::fetch::Fetch).
        url: String,
        /// The phantom header's `type/subtype`.
        accept: Option<String>,
    },
    /// Leave the part.
    Leave(Refusal),
}

impl Item<'_> {
    /// What the report says before anything was done.
    #[must_use]
    pub fn forecast(&self, message: &str) -> Row {
        let (outcome, reason, detail) = match &self.step {
            Step::Decode => (
                Outcome::WouldExpand,
                None,
                "the content is in the data: URL".to_owned(),
            ),
            Step::Copy(_) => (
                Outcome::WouldExpand,
                None,
                "the content is in another part".to_owned(),
            ),
            Step::Retrieve { url, .. } => (
                Outcome::WouldFetch,
                None,
                format!("would retrieve {}", url::masked(url)),
            ),
            Step::Leave(refusal) => (Outcome::Left, Some(refusal.reason), refusal.detail.clone()),
        };
        let declared = self.body.declared.as_ref();
        Row {
            message: message.to_owned(),
            part: self.number.clone(),
            kind: self.kind,
            url: self.shown_url.clone(),
            outcome,
            reason,
            detail,
            media_type: declared.map(|declared| declared.essence.to_string()),
            bytes: self.body.size,
            ms: None,
            links: None,
        }
    }
}

/// Plans one message.
#[must_use]
pub fn plan<'a>(original: &'a [u8], tree: &Tree, policy: &Policy) -> Plan<'a> {
    let reading = Reading {
        header_limit: policy.limits.header,
        shortcuts: policy.shortcuts,
    };
    let bodies: Vec<ExternalBody<'a>> = tree
        .ids()
        .filter_map(|part| ExternalBody::read(original, tree, part, &reading))
        .collect();
    let mut planner = Planner {
        bases: Bases::default(),
        original,
        tree,
        policy,
        by_content_id: parts_by_content_id(original, tree),
        references: bodies.iter().map(|body| body.part).collect(),
    };
    let mut plan = Plan::default();
    plan.items
        .extend(bodies.into_iter().map(|body| planner.item(body)));
    plan.rivals = rivals(tree, &plan.items);
    plan
}

/// The bases that hold for the parts of one message, each found once.
#[derive(Clone, Debug, Default)]
pub struct Bases {
    /// One base may hold for ten thousand parts.
    known: HashMap<PartId, Option<Rc<Base>>>,
}

impl Bases {
    /// The base that holds for a part: its own Content-Base or Content-Location, else that of what
    /// it stands in, outwards (the draft, 5.1.2 and 5.1.3).
    pub fn of(&mut self, original: &[u8], tree: &Tree, part: PartId) -> Option<Rc<Base>> {
        let mut chain = vec![part];
        for above in tree.ancestors(part) {
            if self.known.contains_key(&above) {
                break;
            }
            chain.push(above);
        }
        for &entity in chain.iter().rev() {
            if self.known.contains_key(&entity) {
                continue;
            }
            let enclosing = tree.part(entity).parent;
            let enclosing = enclosing.and_then(|above| self.known.get(&above)?.clone());
            let content_base = tree.value(original, entity, "Content-Base");
            let content_location = tree.value(original, entity, "Content-Location");
            let base = if content_base.is_none() && content_location.is_none() {
                enclosing
            } else {
                let own = Base::of_entity(
                    enclosing.as_deref(),
                    content_base,
                    content_location,
                    &tree.number(entity),
                    Dialect::default(),
                );
                match enclosing {
                    Some(enclosing) if own.as_ref() == Some(&*enclosing) => Some(enclosing),
                    _ => own.map(Rc::new),
                }
            };
            self.known.insert(entity, base);
        }
        self.known.get(&part).cloned().flatten()
    }
}

/// Why a part may not be touched although the policy might allow its URL: what it stands in.
#[must_use]
pub fn protection(tree: &Tree, part: PartId, policy: &Policy) -> Option<Refusal> {
    tree.ancestors(part).find_map(|above| {
        let essence = tree.part(above).essence.as_str();
        let refuse = |reason| {
            let number = tree.number(above);
            let place = if number.is_empty() {
                "the message"
            } else {
                &number
            };
            Some(Refusal::lasting(
                reason,
                format!("it is inside {place}, a {essence}"),
            ))
        };
        match essence {
            "multipart/report" => refuse(Reason::InsideReport),
            _ if policy.protected == Protected::Rewrite => None,
            "multipart/signed" => refuse(Reason::Signed),
            "multipart/encrypted" => refuse(Reason::Encrypted),
            _ => None,
        }
    })
}

struct Planner<'p> {
    bases: Bases,
    original: &'p [u8],
    tree: &'p Tree,
    policy: &'p Policy,
    by_content_id: HashMap<String, Vec<PartId>>,
    /// Parts that refer elsewhere themselves.
    references: HashSet<PartId>,
}

impl Planner<'_> {
    fn item<'a>(&mut self, body: ExternalBody<'a>) -> Item<'a> {
        let (shown_url, step) = match self.step(&body) {
            Ok((shown, step)) => (shown, step),
            Err((shown, refusal)) => (shown, Step::Leave(refusal)),
        };
        let step = if self.is_cut(&body) {
            // What stands behind the limit was not read: the URL, the type or the digest may be cut.
            let detail = "its header, or the phantom header, is larger than --max-header";
            Step::Leave(Refusal::lasting(Reason::HeaderTooLarge, detail))
        } else {
            step
        };
        let step = match protection(self.tree, body.part, self.policy) {
            Some(refusal) => Step::Leave(refusal),
            None => step,
        };
        Item {
            number: self.tree.number(body.part),
            kind: match body.form {
                Form::ExternalBody => Kind::ExternalBody,
                Form::Detached | Form::Enclosure | Form::CloudFile => Kind::Detached,
                Form::Shortcut => Kind::Shortcut,
            },
            shown_url,
            step,
            body,
        }
    }

    fn is_cut(&self, body: &ExternalBody<'_>) -> bool {
        let content = &self.tree.part(body.part).content;
        *content == Content::Opaque(Limit::HeaderTooLarge) || body.phantom.end == End::TooLarge
    }

    /// The URL to show and what to do; or the URL to show and why nothing is done.
    fn step(
        &mut self,
        body: &ExternalBody<'_>,
    ) -> Result<(Option<String>, Step), (Option<String>, Refusal)> {
        let (shown, step) = match &body.target {
            Err(unusable) => return Err((None, refusal_of(unusable))),
            Ok(Target::Data(url)) => (shorten(url), Ok(Step::Decode)),
            Ok(Target::ContentId {
                content_id,
                message_id,
            }) => (
                format!("cid:{content_id}"),
                self.copy(body, content_id, message_id.as_deref()),
            ),
            Ok(Target::Url(reference)) => self.retrieve(body, reference),
        };
        let declared = body.declared.as_ref().map(|declared| &declared.essence);
        let allowed = declared.map_or(Ok(()), |essence| self.policy.judge_type(essence));
        match step.and_then(|step| allowed.map(|()| step)) {
            Ok(step) => Ok((Some(shown), step)),
            Err(refusal) => Err((Some(shown), refusal)),
        }
    }

    fn retrieve(
        &mut self,
        body: &ExternalBody<'_>,
        reference: &str,
    ) -> (String, Result<Step, Refusal>) {
        let absolute = match self.absolute(body.part, reference) {
            Ok(absolute) => absolute,
            Err(refusal) => return (url::masked(reference).into_owned(), Err(refusal)),
        };
        let shown = url::masked(&absolute).into_owned();
        let mapped = self.policy.map(&absolute).into_owned();
        let step = self.policy.judge_url(&mapped).and_then(|target| {
            self.policy.judge_size(body.size.unwrap_or(0))?;
            // Only http can be asked for a type, and fragments are never sent: what is retrieved
            // once does not depend on either.
            let negotiates = matches!(target.scheme(), Scheme::Http | Scheme::Https);
            Ok(Step::Retrieve {
                url: url::without_fragment(&mapped).to_owned(),
                accept: body
                    .declared
                    .as_ref()
                    .filter(|_| negotiates)
                    .map(|declared| declared.essence.to_string()),
            })
        });
        (shown, step)
    }

    fn absolute(&mut self, part: PartId, reference: &str) -> Result<String, Refusal> {
        if !url::Reference::split(reference).is_relative() {
            return Ok(reference.to_owned());
        }
        let base = self.bases.of(self.original, self.tree, part);
        let Some(base) = base.filter(|base| !base.is_within_message()) else {
            return Err(Refusal::lasting(
                Reason::NoBase,
                format!(
                    "'{}' is relative, and no Content-Base or Content-Location holds",
                    url::masked(reference)
                ),
            ));
        };
        url::resolve(&base.url, reference, Dialect::default()).map_err(|problem| {
            Refusal::lasting(
                Reason::BadUrl,
                format!(
                    "'{}' against {}: {problem}",
                    url::masked(reference),
                    url::masked(&base.url)
                ),
            )
        })
    }

    fn copy(
        &self,
        body: &ExternalBody<'_>,
        content_id: &str,
        message_id: Option<&str>,
    ) -> Result<Step, Refusal> {
        if let Some(wanted) = message_id {
            let own = self.tree.value(self.original, PartId::ROOT, "Message-ID");
            if own.map(crate::external_body::identifier).as_deref() != Some(wanted) {
                return Err(Refusal::lasting(
                    Reason::ContentIdNotFound,
                    format!("mid: names another message, <{wanted}>"),
                ));
            }
        }
        let bearers = self.by_content_id.get(content_id);
        let others: Vec<PartId> = bearers
            .into_iter()
            .flatten()
            .copied()
            .filter(|&bearer| bearer != body.part)
            .collect();
        // RFC 1873 writes the id it looks for on the part itself; a cid: URL that names the part
        // it stands in is a circle.
        let cites_itself = !body.access_type.eq_ignore_ascii_case("content-id")
            && bearers.is_some_and(|bearers| bearers.contains(&body.part));
        let within = |&bearer: &PartId| self.tree.ancestors(body.part).any(|above| above == bearer);
        let outside = || others.iter().filter(|bearer| !within(bearer));
        let is_content = |bearer: &&PartId| !self.references.contains(*bearer);
        // Of several external bodies with one id, each refers to what is no reference itself.
        match outside().find(is_content).or_else(|| outside().next()) {
            Some(&bearer) if is_composite(&self.tree.part(bearer).essence) => {
                Err(Refusal::lasting(
                    Reason::CompositeTarget,
                    format!("<{content_id}> is a {}", self.tree.part(bearer).essence),
                ))
            }
            Some(&bearer) if self.tree.is_cut_off(bearer) => {
                let number = self.tree.number(bearer);
                let detail = format!("no boundary line ends part {number}: it was cut off");
                Err(Refusal::lasting(Reason::IncompleteBody, detail))
            }
            Some(&bearer) => Ok(Step::Copy(bearer)),
            None if !others.is_empty() || cites_itself => Err(Refusal::lasting(
                Reason::ReferenceLoop,
                format!("<{content_id}> is the part itself, or one that it stands in"),
            )),
            None => Err(Refusal::lasting(
                Reason::ContentIdNotFound,
                format!("no other part has the Content-ID <{content_id}>"),
            )),
        }
    }
}

/// Whether a type holds parts of its own. An external body counts as what it stands for.
fn is_composite(essence: &str) -> bool {
    essence != crate::external_body::ESSENCE
        && (essence.starts_with("multipart/") || essence.starts_with("message/"))
}

fn parts_by_content_id(original: &[u8], tree: &Tree) -> HashMap<String, Vec<PartId>> {
    let mut parts: HashMap<String, Vec<PartId>> = HashMap::new();
    for part in tree.ids() {
        if let Some(value) = tree.value(original, part, "Content-ID") {
            let content_id = crate::external_body::identifier(value);
            parts.entry(content_id).or_default().push(part);
        }
    }
    parts
}

fn refusal_of(unusable: &Unusable) -> Refusal {
    let (reason, detail) = match unusable {
        Unusable::Encoded => (
            Reason::EncodedReference,
            "the part has a Content-Transfer-Encoding that RFC 2046 forbids for it".to_owned(),
        ),
        Unusable::NoAccessType => (
            Reason::NoAccessType,
            "the part does not say how its content is to be had".to_owned(),
        ),
        Unusable::Unsupported(name) => (
            Reason::UnsupportedAccessType,
            format!("access-type={name} is not retrieved"),
        ),
        Unusable::Unknown(name) => (
            Reason::UnknownAccessType,
            format!("access-type={name} is not known"),
        ),
        Unusable::MissingUrl => (Reason::MissingUrl, "there is no URL".to_owned()),
        Unusable::MissingParameter(name, None) => (
            Reason::MissingParameter,
            format!("the parameter '{name}' is missing"),
        ),
        Unusable::MissingParameter(name, Some(section)) => (
            Reason::MissingParameter,
            format!("the section {name}*{section} is missing"),
        ),
        Unusable::MissingContentId => (
            Reason::MissingParameter,
            "access-type=CONTENT-ID, but the part has no Content-ID".to_owned(),
        ),
        Unusable::BadValue(what) => (Reason::BadUrl, what.clone()),
        Unusable::CutOff(name) => (
            Reason::BadUrl,
            format!("'{name}' was cut off on the way: a closing quote or what follows is missing"),
        ),
        Unusable::RelativeFile(name) => (
            Reason::OutsideFileRoot,
            format!("'{name}' is not an absolute path"),
        ),
        Unusable::Deleted => (
            Reason::Deleted,
            "the content was deleted on purpose".to_owned(),
        ),
        Unusable::OwnContent(what) => (
            Reason::UnsupportedAccessType,
            format!("it refers elsewhere, but {what}"),
        ),
    };
    Refusal::lasting(reason, detail)
}

/// The start of a `data:` URL without its folds, for a report.
fn shorten(url: &[u8]) -> String {
    let start: Vec<u8> = url
        .iter()
        .copied()
        .filter(|byte| !byte.is_ascii_whitespace())
        .take(SHOWN_DATA + 1)
        .collect();
    let text: String = String::from_utf8_lossy(&start)
        .chars()
        .take(SHOWN_DATA)
        .collect();
    if start.len() > SHOWN_DATA {
        format!("{text}... ({} octets)", url.len())
    } else {
        text
    }
}

/// RFC 2046 §5.1.4 with §5.2.3: external bodies in a multipart/alternative that have one phantom
/// Content-ID, or none and one phantom type, are several sources of one object. An alternative
/// that also holds a real part offers a choice of formats, and nothing in it is a rival.
fn rivals(tree: &Tree, items: &[Item<'_>]) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut group_of: HashMap<(PartId, Option<&str>, Option<&str>), usize> = HashMap::new();
    let mut is_choice: HashMap<PartId, bool> = HashMap::new();
    let documented = items
        .iter()
        .enumerate()
        .filter(|(_, item)| item.body.form == Form::ExternalBody);
    for (index, item) in documented {
        let Some(parent) = tree.part(item.body.part).parent else {
            continue;
        };
        let choice = *is_choice.entry(parent).or_insert_with(|| {
            let alternative = tree.part(parent);
            let external =
                |&child: &PartId| tree.part(child).essence == crate::external_body::ESSENCE;
            alternative.essence == "multipart/alternative"
                && alternative.children.iter().all(external)
        });
        if !choice {
            continue;
        }
        let content_id = item.body.content_id.as_deref();
        let declared = item.body.declared.as_ref();
        let essence = declared.map(|declared| declared.essence.as_ref());
        let key = match content_id {
            Some(_) => (parent, content_id, None),
            None => (parent, None, essence),
        };
        let group = *group_of.entry(key).or_insert_with(|| {
            groups.push(Vec::new());
            groups.len() - 1
        });
        if let Some(members) = groups.get_mut(group) {
            members.push(index);
        }
    }
    groups.retain(|members| members.len() > 1);
    for members in &mut groups {
        members.sort_by_key(|&index| items.get(index).map_or(u8::MAX, usefulness));
    }
    groups
}

/// In which order rivals are tried: what is surest and nearest first.
fn usefulness(item: &Item<'_>) -> u8 {
    match &item.step {
        Step::Copy(_) => 0,
        Step::Decode => 1,
        Step::Retrieve { url, .. } => match url::Reference::split(url) {
            reference if reference.has_scheme("file") => 2,
            reference if reference.has_scheme("https") => 3,
            reference if reference.has_scheme("http") => 4,
            _ => 5,
        },
        Step::Leave(_) => 6,
    }
}

/// A part that was not looked into, or not to its end, because of a bound.
#[derive(Clone, Debug)]
pub struct OpaquePart {
    /// The part.
    pub part: PartId,
    /// Its number; empty for the message itself.
    pub number: String,
    /// What was not looked into.
    pub span: Span,
    /// The bound.
    pub refusal: Refusal,
}

impl fmt::Display for OpaquePart {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = match self.number.as_str() {
            "" => "the message",
            number => number,
        };
        write!(formatter, "{place}: {}", self.refusal.detail)
    }
}

/// The parts that were not looked into because of a bound.
#[must_use]
pub fn opaque_parts(tree: &Tree) -> Vec<OpaquePart> {
    tree.ids()
        .filter_map(|id| {
            let part = tree.part(id);
            let (limit, span) = match &part.content {
                Content::Opaque(Limit::HeaderTooLarge) => (Limit::HeaderTooLarge, part.span),
                Content::Opaque(limit) => (*limit, part.body),
                Content::Multipart(multipart) => (multipart.overflow?, multipart.epilogue),
                Content::Leaf | Content::Message => return None,
            };
            let (reason, what, option) = match limit {
                Limit::TooDeep => (Reason::TooDeep, "is nested too deep", "--max-depth"),
                Limit::TooManyParts => (Reason::TooManyParts, "has too many parts", "--max-parts"),
                Limit::HeaderTooLarge => (
                    Reason::HeaderTooLarge,
                    "has too large a header",
                    "--max-header",
                ),
            };
            let detail = format!("{what} and was not looked into further; {option} is the limit");
            Some(OpaquePart {
                part: id,
                number: tree.number(id),
                span,
                refusal: Refusal::lasting(reason, detail),
            })
        })
        .collect()
}
