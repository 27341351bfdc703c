//! `rtf-body.rtf`: RTF that readpst and Emailchemy attach in place of the HTML or text that it encapsulates.
//!
//! RTF that encapsulates HTML or text becomes that. Other RTF stays an attachment; if the mail has no text, the text of the
//! RTF becomes the body as well.

use super::handled::Handled;
use super::place::{Known, has_text, place};
use crate::edit::{Edit, Edits};
use crate::engine::outlook::compose::{Contents, Leaf};
use crate::engine::outlook::rtf::{self, Body, Damage, Source};
use crate::external_body::Follow;
use crate::ledger::Ledger;
use crate::mime::{Content, MediaType, PartId, Tree, entity};
use crate::plan::protection;
use crate::policy::Policy;
use crate::report::{Kind, Outcome, Provenance, Reason, Refusal, Row};

/// The name that readpst and Emailchemy give to the RTF of a mail.
pub const NAME: &[u8] = b"rtf-body.rtf";

const TYPES: [&str; 3] = ["application/rtf", "text/rtf", "text/richtext"];

fn is_rtf(tree: &Tree<'_>, id: PartId) -> bool {
    let part = tree.part(id);
    let named = |field: &str, parameter: &str| {
        let value = tree.value(id, field)?;
        MediaType::parse(value).name(parameter).text()
    };
    let name = named("Content-Disposition", "filename").or_else(|| named("Content-Type", "name"));
    let name = name.unwrap_or_default().to_ascii_lowercase();
    let is_type = TYPES.contains(&part.essence.as_str())
        || part.essence == "application/octet-stream" && name.ends_with(".rtf");
    let is_body = name.as_bytes() == NAME || !tree.has_disposition(id, "attachment");
    part.content == Content::Leaf && is_type && is_body
}

/// Opens the parts of a message. `handled` has those that an earlier pass opened.
pub fn open(
    tree: &Tree<'_>,
    policy: &Policy,
    ledger: &mut Ledger,
    name: &str,
    handled: &mut Handled,
) -> (Edits, Vec<Row>) {
    let mut edits = Edits::new();
    let mut rows = Vec::new();
    for part in tree.ids().filter(|id| is_rtf(tree, *id)) {
        let mut row = Row::new(name, tree.number(part), Kind::Rtf, Outcome::Left);
        row.media_type = Some(tree.part(part).essence.clone());
        row.bytes = Some(tree.part(part).body.len() as u64);
        match run(tree, part, (policy, ledger), &mut edits, &mut row, handled) {
            Ok(true) => rows.push(row),
            Ok(false) => {}
            Err(refusal) => {
                row.tell_refusal(refusal);
                rows.push(row);
            }
        }
    }
    (edits, rows)
}

/// `Ok(false)`: the RTF is an ordinary attachment, or an earlier pass has told about it.
fn run(
    tree: &Tree<'_>,
    id: PartId,
    (policy, ledger): (&Policy, &mut Ledger),
    edits: &mut Edits,
    row: &mut Row,
    handled: &mut Handled,
) -> Result<bool, Refusal> {
    let part = tree.part(id);
    let body = part.body.of(tree.original);
    ledger.work(body.len())?;
    let Some(octets) = part.encoding.decode(body) else {
        return Ok(false);
    };
    let digest = entity::sha256(&octets);
    if handled.has(&digest) {
        return Ok(false);
    }
    ledger.work(octets.len().saturating_mul(2))?;
    let Some(rtf) = rtf::read(&octets) else {
        return Ok(false);
    };
    let keeps = rtf.source == Source::Rtf || rtf.damage.is_some();
    if rtf.source == Source::Rtf && (has_text(tree, id) || rtf.text.trim().is_empty()) {
        return Ok(false);
    }
    if let Some(refusal) = protection(tree, id, policy) {
        return Err(refusal);
    }
    policy.judge_form(Follow::RtfBody)?;
    row.bytes = Some(octets.len() as u64);
    let what = what(&rtf);
    let damage = damage(&rtf);
    let known = Known::of(tree, id);
    let placed = place(tree, id, contents(rtf), &known, keeps)?;
    if placed.edits.is_empty() {
        let detail =
            format!("embody put everything that it could read from the RTF into the mail{damage}");
        return Err(Refusal::lasting(Reason::AlreadyInMail, detail));
    }
    if handled.waits_for(placed.host) {
        return Ok(false);
    }
    let growth: i64 = placed.edits.iter().map(Edit::growth).sum();
    ledger.grow(growth)?;
    if edits.add(placed.edits).is_err() {
        ledger.lose(growth);
        let detail = "it overlaps with another change of the message";
        return Err(Refusal::lasting(Reason::BoundaryCollision, detail));
    }
    handled.add(digest, placed.host, keeps);
    row.outcome = Outcome::Expanded;
    row.from = Provenance::Message;
    row.detail = match placed.parts {
        0 => "the text that it was made from is in the mail already".into(),
        _ => format!("{what}{damage}").into(),
    };
    Ok(true)
}

fn what(rtf: &Body) -> &'static str {
    match rtf.source {
        Source::Html => "Outlook stored this HTML as RTF; embody converted it back to HTML",
        Source::Text => "Outlook stored this text as RTF; embody converted it back to plain text",
        Source::Rtf => {
            "the mail had no text: the text of the RTF is its body, and the RTF stays attached"
        }
    }
}

fn damage(rtf: &Body) -> &'static str {
    match rtf.damage {
        None => "",
        Some(Damage::Charset) => {
            "; the RTF stays, because some of its characters do not exist in their charset"
        }
        Some(_) => "; the RTF stays, because its end is missing",
    }
}

fn contents(rtf: Body) -> Contents<'static> {
    let mut contents = Contents::default();
    let leaf = |essence, text: String| Some(Leaf::text(essence, text));
    match rtf.source {
        Source::Html => contents.html = leaf("text/html", rtf.text),
        Source::Text => contents.text = leaf("text/plain", rtf.text),
        Source::Rtf => contents.rtf_text = leaf("text/plain", rtf.text),
    }
    contents
}
