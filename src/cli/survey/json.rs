//! The survey as JSON, and the list of all attachments and pictures in the mail (docs/survey.md).

use std::collections::BTreeMap;

use serde::Serialize;

use super::super::args::SurveyGroup;
use super::super::report_file::ReportFields;
use super::super::tally::{LONGEST_NAME, NAMES, TallyCounts, TallyNames};
use super::context::SurveyContext;
use super::missing::RecoveryWay;
use super::numbers::companies;
use super::sum::{SIZES, Survey};
use crate::engine::external_body::shown_name;
use crate::engine::forms::TextLink;
use crate::engine::plan::documents::DisplayState;
use crate::fetch::store::Key;
use crate::mime::{MessageTree, PartId};

/// Returns the last line of `inspect --json`.
pub(crate) fn as_json(
    survey: &Survey,
    context: &SurveyContext<'_>,
    embed: Option<ReportFields>,
) -> ReportFields {
    ReportFields::default()
        .with("kind", &"survey")
        .with("survey", &survey_fields(survey, context, embed))
}

/// Returns the fields of a survey (docs/survey.md). `embed` is what a run with the same options would embed.
pub(crate) fn survey_fields(
    survey: &Survey,
    context: &SurveyContext<'_>,
    embed: Option<ReportFields>,
) -> ReportFields {
    let hosts: BTreeMap<&str, u64> = survey
        .hosts
        .names()
        .map(|(name, host)| (name, host.pictures))
        .filter(|(_, pictures)| *pictures > 0)
        .collect();
    let others = survey.hosts.others();
    let pictures = with_all(ReportFields::default(), &survey.pictures)
        .with("hosts", &hosts)
        .with_some("other_hosts", others.map(|others| others.pictures));
    let links = with_all(ReportFields::default(), &survey.links)
        .with("schemes", &survey.link_schemes)
        .with_some("other_schemes", survey.link_schemes.others())
        .with("roles", &survey.link_roles)
        .with("wrapped", &survey.wrapped);
    let references = ReportFields::default()
        .with("count", &survey.references)
        .with("kinds", &survey.kinds);
    // Number of probe counts that are printed. The last two are about the web archive, and would be zero if none was
    // used.
    let told = if context.has_archive { 6 } else { 4 };
    let probe = || with_first(told, ReportFields::default(), &survey.probe);
    with_all(ReportFields::default(), &survey.mail)
        .with("files", &survey.files)
        .with("dates", &survey.dates)
        .with("attachments", &attachments(survey))
        .with("detach", &detach(survey, context))
        .with("pictures", &pictures)
        .with("links", &links)
        .with("references", &references)
        .with("repeated", &survey.copies)
        .with("outcomes", &survey.outcomes)
        .with("missing", &missing(survey))
        .with("trackers", &trackers(survey))
        .with("largest", &survey.largest)
        .with("labels", &survey.labels)
        .with_some("other_labels", survey.labels.others())
        .with("broken", &survey.broken)
        .with_some("answers", context.is_probed.then_some(&survey.answers))
        .with_some("probe", context.is_probed.then(probe))
        .with_some(
            "by",
            (!context.by.is_empty()).then(|| by(survey, context.by)),
        )
        .with_some("embed", embed)
}

fn with_all(fields: ReportFields, counts: &impl TallyCounts) -> ReportFields {
    with_first(usize::MAX, fields, counts)
}

fn with_first<C: TallyCounts>(most: usize, fields: ReportFields, counts: &C) -> ReportFields {
    let columns = C::NAMES.iter().zip(counts.columns()).take(most);
    columns.fold(fields, |fields, (name, count)| fields.with(name, &count))
}

fn attachments(survey: &Survey) -> ReportFields {
    let sizes: Vec<ReportFields> = SIZES
        .iter()
        .zip(&survey.sizes)
        .map(|(from, size)| with_all(ReportFields::default().with("from", from), size))
        .collect();
    with_all(ReportFields::default(), &survey.attachments)
        .with("inline", &survey.shown())
        .with("sizes", &sizes)
}

fn detach(survey: &Survey, context: &SurveyContext<'_>) -> ReportFields {
    let detach = &survey.detach;
    let fields = ReportFields::default()
        .with("larger_than", &context.larger_than)
        .with("base_url", &context.base_url);
    with_all(fields, &detach.large)
        .with("leave", &detach.leave)
        .with("shown_inline", &detach.shown_inline)
        .with("stay", &detach.stay)
        .with("content_octets", &detach.content_octets)
        .with("objects", &detach.objects())
        .with("duplicates", &detach.contents.repeated)
        .with("uncompared", &detach.contents.uncompared)
        .with("saves", &detach.saves)
}

fn missing(survey: &Survey) -> Vec<ReportFields> {
    let row = |((way, names), count): (&(RecoveryWay, super::missing::MissingNames), u64)| {
        ReportFields::default()
            .with("what", &names.many)
            .with("way", way)
            .with("count", &count)
    };
    survey.missing.classes().map(row).collect()
}

/// Returns the number of trackers of each company, by registrable domain.
fn trackers(survey: &Survey) -> ReportFields {
    let companies: BTreeMap<String, u64> = companies(survey).into_iter().collect();
    ReportFields::default().with("companies", &companies)
}

fn by(survey: &Survey, groups: &[SurveyGroup]) -> ReportFields {
    let wants = |group| groups.contains(&group);
    let senders = wants(SurveyGroup::Sender).then(|| group(&survey.senders));
    ReportFields::default()
        .with_some(
            "host",
            wants(SurveyGroup::Host).then(|| group(&survey.hosts)),
        )
        .with_some(
            "type",
            wants(SurveyGroup::Type).then(|| group(&survey.types)),
        )
        .with_some(
            "year",
            wants(SurveyGroup::Year).then(|| group(&survey.years)),
        )
        .with_some("sender", senders)
        .with_some(
            "outcome",
            wants(SurveyGroup::Outcome).then_some(&survey.outcomes),
        )
}

fn group(named: &TallyNames<impl TallyCounts + Serialize>) -> ReportFields {
    let fields = ReportFields::default().with("names", named);
    fields.with_some("others", named.others())
}

pub(super) fn bound() -> String {
    format!("after the first {NAMES} names, or with names of more than {LONGEST_NAME} bytes")
}

/// An object of a list in the JSON output.
#[derive(Serialize, Debug)]
#[serde(untagged)]
pub(crate) enum JsonList {
    Part(ListedPart),
    Link(ListedLink),
}

impl JsonList {
    /// Sets the name of the message.
    pub(crate) fn name(&mut self, message: &str) {
        message.clone_into(match self {
            Self::Part(part) => &mut part.message,
            Self::Link(link) => &mut link.message,
        });
    }
}

/// A link in a plain text to a file in cloud storage.
#[derive(Serialize, Debug)]
pub(crate) struct ListedLink {
    message: String,
    part: String,
    kind: &'static str,
    provider: &'static str,
    link: String,
    name: Option<String>,
}

impl ListedLink {
    pub(crate) fn of(tree: &MessageTree<'_>, part: PartId, link: &TextLink) -> Self {
        Self {
            message: String::new(),
            part: tree.number(part),
            kind: "text-link",
            provider: link.provider.word,
            link: link.link.clone(),
            name: link.name.clone(),
        }
    }
}

#[derive(Serialize, Debug)]
pub(crate) struct ListedPart {
    message: String,
    part: String,
    kind: &'static str,
    media_type: String,
    name: Option<String>,
    /// Decoded size, in bytes.
    bytes: Option<u64>,
    sha256: Option<String>,
    disposition: Option<String>,
    shown_by: Option<String>,
}

impl ListedPart {
    pub(crate) fn of(
        tree: &MessageTree<'_>,
        part: PartId,
        (shown, key): (Option<DisplayState>, Option<&Key>),
    ) -> Self {
        let entity = tree.part(part);
        let octets = entity.encoding.decode(entity.body.of(tree.original));
        let key = match (key, &octets) {
            (Some(known), Some(_)) => Some(*known),
            (_, octets) => octets.as_deref().map(Key::of),
        };
        let disposition = String::from_utf8_lossy(tree.disposition(part));
        Self {
            message: String::new(),
            part: tree.number(part),
            kind: "part",
            media_type: entity.essence.clone(),
            name: shown_name(tree.original, tree.fields(part)),
            bytes: octets.map(|octets| octets.len() as u64),
            sha256: key.map(|key| key.to_string()),
            disposition: (!disposition.is_empty()).then(|| disposition.to_ascii_lowercase()),
            shown_by: match shown {
                Some(DisplayState::By(document)) => Some(tree.number(document)),
                _ => None,
            },
        }
    }
}
