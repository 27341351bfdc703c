//! `winmail.dat`: a part in TNEF becomes what it carries (MS-OXTNEF; the page docs/outlook.md).
//!
//! The part goes only if all of its content came out. A file that is damaged, or that contains something that mail
//! cannot contain, stays next to what came out, and the row says why. Nothing that is signed or encrypted is changed.

use super::handled::Handled;
use super::place::{Known, place};
use crate::edit::{Edit, Edits};
use crate::engine::outlook::compose::{self, Contents, Leaf};
use crate::engine::outlook::tnef;
use crate::external_body::Follow;
use crate::ledger::Ledger;
use crate::mime::{Content, PartId, TransferEncoding, Tree, entity};
use crate::plan::protection;
use crate::policy::Policy;
use crate::report::{Detail, Kind, Outcome, Provenance, Reason, Refusal, Row, Setting};

/// The start of a body in which TNEF is: in base64 (of which the last letter of a group depends on the next byte),
/// quoted-printable, and without an encoding.
pub const STARTS: [&[u8]; 4] = [b"eJ8+I", b"x=9F>\"", b"x=9f>\"", tnef::SIGNATURE];

/// Levels of a tree of parts that an item within an item takes.
const LEVELS: usize = 3;
/// Items in items, at most.
const DEEPEST: usize = 20;

/// Whether the part is TNEF by its type, or by its first bytes.
fn is_tnef(tree: &Tree<'_>, id: PartId) -> bool {
    let part = tree.part(id);
    let is_declared = matches!(
        part.essence.as_str(),
        "application/ms-tnef" | "application/vnd.ms-tnef"
    );
    let starts = || {
        let body = part.body.of(tree.original);
        let body = match part.encoding {
            TransferEncoding::Base64 => body.trim_ascii_start(),
            _ => body,
        };
        STARTS.iter().any(|start| body.starts_with(start))
    };
    part.content == Content::Leaf
        && (is_declared || part.essence == "application/octet-stream" && starts())
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
    for part in tree.ids().filter(|id| is_tnef(tree, *id)) {
        let mut row = Row::new(name, tree.number(part), Kind::Tnef, Outcome::Left);
        row.media_type = Some(tree.part(part).essence.clone());
        row.bytes = Some(tree.part(part).body.len() as u64);
        let opening = Opening { tree, part, policy };
        match opening.run(ledger, &mut edits, &mut row, handled) {
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

struct Opening<'t> {
    tree: &'t Tree<'t>,
    part: PartId,
    policy: &'t Policy,
}

impl Opening<'_> {
    /// `Ok(false)`: an earlier pass has told about the part.
    fn run(
        &self,
        ledger: &mut Ledger,
        edits: &mut Edits,
        row: &mut Row,
        handled: &mut Handled,
    ) -> Result<bool, Refusal> {
        let (tree, policy) = (self.tree, self.policy);
        if let Some(refusal) = protection(tree, self.part, policy) {
            return Err(refusal);
        }
        policy.judge_form(Follow::Winmail)?;
        let part = tree.part(self.part);
        let body = part.body.of(tree.original);
        ledger.work(body.len())?;
        let octets = part.encoding.decode(body).ok_or_else(|| {
            let detail = "the transfer encoding of winmail.dat is damaged or not supported";
            Refusal::lasting(Reason::UndecodableBody, detail)
        })?;
        row.bytes = Some(octets.len() as u64);
        let digest = entity::sha256(&octets);
        if handled.has(&digest) {
            return Ok(false);
        }
        // Each enclosed item is written once for each item around it.
        ledger.work(octets.len().saturating_mul(2))?;
        let depth = (policy.limits.depth.saturating_sub(part.depth) / LEVELS).min(DEEPEST);
        let stream = tnef::read(&octets, depth);
        let mut contents = compose::of(&stream.item);
        contents
            .unmapped
            .extend(self.refused(&mut contents.pictures));
        let refused = self.refused(&mut contents.attachments);
        contents.unmapped.extend(refused);
        let keeps = !contents.unmapped.is_empty() || !stream.damage.is_empty();
        let told = told(&contents, &stream.damage);
        let had = contents.leaves().count() + usize::from(contents.rtf_text.is_some());
        if had == 0 && keeps {
            let reason = match stream.damage.is_empty() {
                true => Reason::NoCounterpart,
                false => Reason::DamagedFile,
            };
            return Err(Refusal::lasting(reason, told.kept));
        }
        if tree.ids().count() + had > policy.limits.parts {
            let detail = Detail::from("the parts within it are more than ").naming(Setting::Parts);
            return Err(Refusal::lasting(Reason::TooManyParts, detail));
        }
        ledger.work(tree.original.len())?;
        let known = Known::of(tree, self.part);
        let placed = place(tree, self.part, contents, &known, keeps)?;
        if placed.edits.is_empty() {
            let detail = format!(
                "embody put everything that it could read from the file into the mail; {}",
                told.kept
            );
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
            0 => "everything in it is in the mail already".into(),
            _ => told.content.into(),
        };
        if keeps {
            row.remark(&told.kept);
        }
        if !told.properties.is_empty() {
            row.remark(&told.properties);
        }
        Ok(true)
    }

    /// Removes the leaves whose type the policy does not allow, and returns a sentence for each.
    fn refused(&self, leaves: &mut Vec<Leaf<'_>>) -> Vec<String> {
        let mut refused = Vec::new();
        leaves.retain(|leaf| match self.policy.judge_type(&leaf.essence) {
            Ok(()) => true,
            Err(refusal) => {
                let name = leaf.name.as_deref().unwrap_or("without a name");
                refused.push(format!("attachment {name}: {}", refusal.detail));
                false
            }
        });
        refused
    }
}

/// Sentences about a file.
struct Told {
    content: String,
    kept: String,
    properties: String,
}

fn told(contents: &Contents<'_>, damage: &[tnef::Damage]) -> Told {
    let mut words = Vec::new();
    let texts = [
        (&contents.text, "text"),
        (&contents.html, "HTML"),
        (&contents.calendar, "a calendar"),
    ];
    words.extend(
        texts
            .into_iter()
            .filter(|it| it.0.is_some())
            .map(|it| it.1.to_owned()),
    );
    let counted = |count: usize, name: &str| match count {
        0 => None,
        1 => Some(format!("1 {name}")),
        _ => Some(format!("{count} {name}s")),
    };
    words.extend(counted(contents.pictures.len(), "picture"));
    words.extend(counted(contents.attachments.len(), "attachment"));
    let content = match words.is_empty() {
        true => "it contained nothing".to_owned(),
        false => format!("it contained {}", words.join(", ")),
    };
    let mut kept: Vec<String> = damage
        .iter()
        .map(|it| format!("it {}", it.what()))
        .collect();
    // A hostile file may have thousands.
    const MOST: usize = 10;
    kept.extend(contents.unmapped.iter().take(MOST).cloned());
    let more = contents.unmapped.len().saturating_sub(MOST);
    kept.extend(counted(more, "further item"));
    let properties = match contents.properties.as_slice() {
        [] => String::new(),
        names => format!("mail has no field for: {}", names.join(", ")),
    };
    Told {
        content,
        kept: format!("winmail.dat is kept: {}", kept.join("; ")),
        properties,
    }
}
