//! Surveys single messages, in parallel. The sums are made later, in the order of the messages.

use std::collections::HashMap;
use std::time::SystemTime;

use mail_parser::parsers::MessageStream;

use super::super::tally::{CountedRow, TallyCounts as _, distinct_rows};
use super::answer::ProbeAnswer;
use super::at_risk::{self, AtRisk, LargestWeights};
use super::broken::{LARGEST, Large, SourcePlace, UnreadableMessage};
use super::json::{JsonList, ListedLink, ListedPart};
use super::missing::{self, RecoveryWay};
use super::shown_pictures::ShownPictures;
use super::sum::{SIZES, Survey, day};
use super::tally::CopyTally;
use crate::edit::Edits;
use crate::engine::detach::{Choice, Planner, Refused, is_attachment};
use crate::engine::plan::documents::{DocumentText, shown_inline};
use crate::engine::policy::countable;
use crate::engine::report::{Kind, Reason, Report, Row};
use crate::engine::{Mode, date};
use crate::expand::{Expander, LookTarget, envelope};
use crate::fetch::store::Key;
use crate::link::value::LinkRole;
use crate::mailbox::Message;
use crate::mime::encoded_words::decoded_text;
use crate::mime::header::unfold;
use crate::mime::{MediaType, MessageTree, PartId, ScanLimits};
use crate::span::front;

/// Maximum length of a From field that is parsed, in bytes. Longer fields are not from normal mail, and parsing them
/// takes a long time.
const LONGEST_FROM: usize = 4 << 10;

/// Maximum length of a subject or sender on the page, in characters.
const LONGEST_TEXT: usize = 100;

/// Surveys single messages. It remembers which messages are among the largest, so that only these are described.
pub(crate) struct MessageSurveyor {
    planner: Planner,
    now: SystemTime,
    /// Whether servers were asked for the content of the rows.
    is_probed: bool,
    /// Whether the attachments of each message are listed.
    lists_attachments: bool,
    largest: LargestWeights,
    at_risk: LargestWeights,
}

impl MessageSurveyor {
    /// `larger_than` and `base_url` are options of `detach`, whose savings the survey predicts.
    pub(crate) fn new(larger_than: u64, base_url: String) -> Self {
        let choice = Choice {
            larger_than,
            ..Choice::default()
        };
        Self {
            planner: Planner::new(choice, base_url, Mode::DryRun),
            now: SystemTime::now(),
            is_probed: false,
            lists_attachments: false,
            largest: LargestWeights::new(LARGEST),
            at_risk: LargestWeights::new(at_risk::LISTED),
        }
    }

    pub(crate) fn with_probe(mut self, is_probed: bool) -> Self {
        self.is_probed = is_probed;
        self
    }

    pub(crate) fn with_list(mut self, lists_attachments: bool) -> Self {
        self.lists_attachments = lists_attachments;
        self
    }

    /// Returns the edits with which `detach` would move attachments, the survey of the message, and the list of its
    /// attachments and of its links to files in cloud storage, which is empty unless it is wanted.
    pub(crate) fn survey(
        &self,
        expander: &Expander,
        mail: &Message<'_>,
        (tree, limits): (&MessageTree<'_>, &ScanLimits),
        report: &Report,
    ) -> (Edits, Box<Survey>, Vec<JsonList>) {
        let message = mail.content;
        let mut survey = Box::<Survey>::default();
        survey.mail.messages = 1;
        survey.mail.octets = message.len() as u64;
        let is_attachment = |part: &PartId| is_attachment(tree, *part, limits);
        let attachments: Vec<PartId> = tree.ids().filter(is_attachment).collect();
        let shown = shown_inline(tree, expander.policy(), &attachments);
        for &id in &attachments {
            let part = tree.part(id);
            let is_shown = shown.contains_key(&id);
            survey.attachment(&part.essence, part.body.len() as u64, is_shown);
        }
        let (edits, keys) = self.detach((tree, limits), &mut survey);
        let known = |part: &PartId| (shown.get(part).copied(), keys.get(&tree.number(*part)));
        let of = |part: &PartId| JsonList::Part(ListedPart::of(tree, *part, known(part)));
        let mut listed: Vec<JsonList> = if self.lists_attachments {
            attachments.iter().map(of).collect()
        } else {
            Vec::new()
        };
        let mut pictures = ShownPictures::default();
        (survey.links.documents, survey.links.unread) = expander.look(tree, |shown, target| {
            survey.link(shown, &target);
            if shown.link.role == LinkRole::Picture {
                pictures.add(shown, &target);
            }
        });
        pictures.count_in(&mut survey);
        let text_links = expander.cloud_links_in_texts(tree);
        survey.links.cloud_in_text = text_links.len() as u64;
        for (part, link) in &text_links {
            let linked = missing::linked_by_text(link.provider);
            survey.missing.count(linked, 0);
            if self.lists_attachments {
                listed.push(JsonList::Link(ListedLink::of(tree, *part, link)));
            }
        }
        let doubtful = expander.notes_without_proof(tree) as u64;
        survey.missing.count_several(missing::DOUBTFUL, doubtful);
        expander.look_for_wrapped(tree, |service| {
            *survey.wrapped.entry(service).or_default() += 1
        });
        for row in distinct_rows(&report.rows) {
            survey.row(row, self.is_probed);
        }
        let is_piece = |part: &PartId| tree.part(*part).essence == "message/partial";
        let pieces = tree.ids().filter(is_piece).count() as u64;
        survey.missing.count_several(missing::PIECE, pieces);
        survey.copies = CopyTally::of(tree);
        survey.sender = Some(sender(tree).into());
        let date = tree.value(PartId::ROOT, "Date");
        match date.map(|date| date::sane(date, self.now)) {
            None => survey.dates.missing += 1,
            Some(None) => survey.dates.implausible += 1,
            Some(Some(date)) => survey.dates.count(date),
        }
        let place = || SourcePlace {
            source: mail.source.display().to_string(),
            index: Some(mail.number),
        };
        survey.broken = UnreadableMessage::of(tree, place);
        let described = |date| large(tree, place(), date);
        if self.largest.may_contain(survey.mail.octets) {
            survey.largest = vec![described(survey.dates.first.map(day))];
        }
        let pictures = survey.pictures.remote;
        let attachments = missing::sum(&survey.missing, &[RecoveryWay::Web, RecoveryWay::Ftp]);
        let weight = at_risk::weight(pictures, attachments);
        if weight > 0 && self.at_risk.may_contain(weight) {
            survey.at_risk = vec![AtRisk {
                pictures,
                attachments,
                message: described(survey.dates.first.map(day)),
            }];
        }
        if tree.value(PartId::ROOT, "X-Gmail-Labels").is_some() {
            for label in envelope::of(b"", message).labels {
                *survey.labels.exactly(label) += 1;
            }
        }
        (edits, survey, listed)
    }

    /// Adds the attachments that `detach` would move to the counts of `survey`. `parts` is the parsed message, with the limits
    /// that its parser had. Returns the edits that would move the attachments, and a map from the number of each moved part,
    /// such as `1.2`, to its key in the store.
    fn detach(
        &self,
        parts: (&MessageTree<'_>, &ScanLimits),
        survey: &mut Survey,
    ) -> (Edits, HashMap<String, Key>) {
        let detachment = self.planner.plan_parsed(parts, "", &Refused::new());
        let mut keys = HashMap::new();
        for (row, attachment) in detachment.report.rows.iter().zip(&detachment.attachments) {
            let detach = &mut survey.detach;
            let media_type = row.media_type.as_deref().unwrap_or_default();
            let of_type = survey.types.of(media_type);
            detach.large.count(attachment.octets);
            of_type.large += 1;
            of_type.large_octets += attachment.octets;
            if let Some(key) = attachment.key {
                keys.insert(row.part.clone(), key);
                let content = row.bytes.unwrap_or(0);
                detach.leave.count(attachment.octets);
                detach.content_octets += content;
                detach.contents.compare((key, content));
                of_type.leave += 1;
                of_type.leave_octets += attachment.octets;
                continue;
            }
            let reason = row.reason.unwrap_or(Reason::NotRestorable);
            if reason == Reason::ShownInline {
                detach.shown_inline.count(attachment.octets);
            }
            *detach.stay.entry(reason.as_str()).or_default() += 1;
        }
        survey.detach.saves = -detachment.report.gained;
        (detachment.edits, keys)
    }
}

impl Survey {
    fn attachment(&mut self, essence: &str, octets: u64, is_shown: bool) {
        self.attachments.count(octets);
        let of_type = self.types.of(essence);
        of_type.attachments += 1;
        of_type.octets += octets;
        if is_shown {
            of_type.inline += 1;
            of_type.inline_octets += octets;
        }
        let classes = self.sizes.iter_mut().zip(&mut self.inline).zip(SIZES);
        if let Some(((all, inline), _)) = classes.rev().find(|(_, from)| octets >= *from) {
            all.count(octets);
            if is_shown {
                inline.count(octets);
            }
        }
    }

    fn link(&mut self, shown: &DocumentText<'_>, target: &LookTarget<'_>) {
        let links = &mut self.links;
        links.count += 1;
        *self.link_roles.entry(shown.link.role).or_default() += 1;
        let is_part = *target == LookTarget::Part;
        match (shown.relative, target) {
            (Some(has_base), _) => {
                links.relative += 1;
                links.to_parts += u64::from(is_part);
                links.with_base += u64::from(has_base && !is_part);
            }
            (None, LookTarget::Web { scheme, .. }) => *self.link_schemes.of(scheme) += 1,
            (None, LookTarget::Data(_)) => *self.link_schemes.of("data") += 1,
            (None, LookTarget::Scheme(scheme)) => *self.link_schemes.of(scheme) += 1,
            (None, LookTarget::Part | LookTarget::MissingPart) => {
                *self.link_schemes.of("cid") += 1;
            }
            (None, LookTarget::Nowhere) => {}
        }
    }

    fn row(&mut self, row: &Row, is_probed: bool) {
        let counted = CountedRow::of(row);
        let (reference, host) = (&counted.reference, counted.host_of_absolute());
        let octets = counted.octets();
        self.outcomes.count(row.outcome_and_reason(), octets);
        if !matches!(row.kind, Kind::Link | Kind::Wrapped | Kind::Embed) {
            self.references += 1;
            let scheme = reference.scheme.unwrap_or("none");
            *self.kinds.entry(row.kind.as_str()).or_default().of(scheme) += 1;
            if let Some(host) = host {
                self.hosts.of(host).references += 1;
            }
        }
        let mut schemes = ["http", "https", "ftp", "file"].into_iter();
        let is_asked_for = host.is_some() || schemes.any(|scheme| reference.has_scheme(scheme));
        if let Some(missing) = missing::of(row) {
            self.missing.count(missing, octets);
            let is_on_server = matches!(missing.0, RecoveryWay::Web | RecoveryWay::Ftp);
            self.in_directories += u64::from(is_on_server && row.sources.directory);
        }
        if is_probed && !row.kind.is_of_links() && is_asked_for {
            let answer = ProbeAnswer::of(row);
            let probe = answer.probe(row);
            self.probe.add(&probe);
            if let Some(host) = host {
                self.hosts.of(host).answered(&probe);
            }
            match row.kind {
                _ if row.reason == Some(Reason::Tracker) => {}
                Kind::Embed => self.answers.pictures.add(&answer.counted()),
                _ => self.answers.attachments.add(&answer.counted()),
            }
        }
    }
}

/// Shortens a text to [`LONGEST_TEXT`] characters, of which the last one is an ellipsis.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(LONGEST_TEXT) {
        None => text.to_owned(),
        Some(_) => {
            let shown: String = text.chars().take(LONGEST_TEXT - 1).collect();
            format!("{}…", shown.trim_end())
        }
    }
}

fn large(tree: &MessageTree<'_>, place: SourcePlace, date: Option<String>) -> Large {
    let content_type = tree.value(PartId::ROOT, "Content-Type");
    let label = content_type.and_then(|value| MediaType::parse(value).parameter("charset"));
    let value = |name| {
        let value = front(tree.value(PartId::ROOT, name)?, LONGEST_FROM);
        let decoded = decoded_text(&unfold(value), label.as_deref());
        let text = shortened(decoded.trim());
        (!text.is_empty()).then_some(text)
    };
    Large {
        octets: tree.original.len() as u64,
        place,
        subject: value("Subject"),
        sender: value("From"),
        date,
    }
}

fn sender(tree: &MessageTree<'_>) -> String {
    let value = tree.value(PartId::ROOT, "From").unwrap_or_default();
    let domain = match plain_sender(value) {
        Some(domain) => countable(domain),
        None if !value.contains(&b'@') => sender_at(value).or_else(|| {
            let is_encoded = value.contains(&b'=');
            let parsed = parsed_sender(value).filter(|_| is_encoded);
            parsed.as_deref().and_then(countable)
        }),
        None => parsed_sender(value).as_deref().and_then(countable),
    };
    domain.unwrap_or_else(|| "none".to_owned())
}

/// Returns the domain of a sender in the form of mailing list archives, `anna at example.org (Anna)`.
fn sender_at(value: &[u8]) -> Option<String> {
    let value = str::from_utf8(front(value, LONGEST_FROM)).ok()?;
    let address = match value.rsplit_once('<') {
        Some((_, address)) => address.split_once('>')?.0,
        None => value.split('(').next().unwrap_or(value),
    };
    let words: Vec<&str> = address.split_whitespace().collect();
    match words.as_slice() {
        [_, at, domain] if at.eq_ignore_ascii_case("at") => countable(domain),
        _ => None,
    }
}

fn parsed_sender(value: &[u8]) -> Option<String> {
    let line = [front(value, LONGEST_FROM), b"\n"].concat();
    let address = MessageStream::new(&line).parse_address();
    let first = address.as_address().and_then(|it| it.first());
    let address = first.and_then(|it| it.address.as_deref());
    Some(address?.rsplit_once('@')?.1.to_owned())
}

/// Parses the usual form of a From field: plain or quoted words, then one address in angle brackets. Other forms are
/// parsed by mail-parser, which is slower.
fn plain_sender(value: &[u8]) -> Option<&str> {
    let value = str::from_utf8(value).ok()?.trim_ascii();
    let (name, address) = value.strip_suffix('>')?.split_once('<')?;
    let name = name.trim_ascii();
    let quoted = name.strip_prefix('"').and_then(|it| it.strip_suffix('"'));
    let is_plain = |symbol: char| symbol.is_ascii_alphanumeric() || " .-_'".contains(symbol);
    let is_name = match quoted {
        Some(text) => text.chars().all(|it| is_plain(it) || ",@()".contains(it)),
        None => name.chars().all(is_plain),
    };
    let (local, domain) = address.split_once('@')?;
    let is_word = |word: &str| {
        let is_atom = |it: char| it.is_ascii_alphanumeric() || ".-_+".contains(it);
        !word.is_empty() && word.chars().all(is_atom)
    };
    (is_name && is_word(local) && is_word(domain)).then_some(domain)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn fast_and_full_parsers_read_the_same_sender(
            name in "([A-Za-z.'_-]{1,6} ?){0,3}|\"[A-Za-z ,@()._]{0,12}\"|=\\?[a-z]{2}\\?q\\?[a-z]{2}\\?=|[ -~]{0,9}",
            address in "[a-z.+_-]{0,5}@[A-Za-z0-9.-]{0,12}|[ -~]{0,9}",
            end in ">|>,?|> \\(x\\)|",
        ) {
            let value = format!(" {name} <{address}{end}");
            if let Some(domain) = plain_sender(value.as_bytes()) {
                let parsed = parsed_sender(value.as_bytes());
                prop_assert_eq!(Some(domain), parsed.as_deref(), "{}", value);
            }
            let hidden = value.replace(['@', '='], " at ");
            prop_assert_eq!(parsed_sender(hidden.as_bytes()), None, "{}", hidden);
        }
    }
}
