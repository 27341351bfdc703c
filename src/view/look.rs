//! Runs the engine over a mail: first to find everything that the mail refers to, later to write the repaired mail.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::SystemTime;

use bytes::Bytes;

use crate::engine::policy::{Embed, Followed, Limits, Policy, Scheme};
use crate::engine::report::{Kind, Outcome, Provenance, Reason, Refusal, Row};
use crate::engine::{Answers, Content, Context, Engine, EngineOutcome, Need};

/// Files that the user chose, by the need that each one answers.
pub(super) type ChosenFiles = HashMap<Need, Content>;

/// Findings of the engine in a mail.
pub(super) struct LookResults {
    /// The mail after opening everything in it: forms such as winmail.dat, pictures of `data:` URLs, and the chosen
    /// files.
    pub(super) opened: Bytes,
    pub(super) rows: Vec<LookResult>,
}

/// A row of the report, and the need that a chosen file can answer.
pub(super) struct LookResult {
    pub(super) row: Row,
    pub(super) need: Option<Need>,
}

impl LookResult {
    /// Whether the content comes from a file that the user chose.
    pub(super) fn is_filled(&self) -> bool {
        self.row.outcome == Outcome::Expanded && self.row.from == Provenance::File
    }
}

/// Delimiter around the number of a need, which stands at the start of a row's detail. Text from the mail never starts
/// a detail, so it cannot forge a number.
const MARK: char = '\u{1}';

/// Limits for showing one mail: a chosen file may be large, and a mail may have many references.
fn limits() -> Limits {
    const MOST: u64 = 512 << 20;
    Limits::default()
        .with_body(MOST)
        .with_growth(MOST)
        .with_fetches(10_000)
}

/// Policy under which the engine lists every reference as a need. Nothing is retrieved: the needs are answered with chosen
/// files, or refused.
fn open_policy(embed: Embed) -> Policy {
    let everywhere = ["0.0.0.0/0", "::/0"].map(str::parse).into_iter().flatten();
    Policy::default()
        .with_follow(Followed::all())
        .with_fetch([Scheme::Https, Scheme::Http, Scheme::Ftp])
        .with_allow_nets(everywhere)
        .with_allow_userinfo(true)
        // This directory is never read. It only makes the engine list files by name as needs, including those of
        // `file:` URLs.
        .with_attachments([PathBuf::from("/")])
        .with_accept_mismatch(true)
        .with_embed(embed)
        .with_limits(limits())
}

/// Policy of the repaired mail if no file was chosen. It is that of `embody filter --follow all`.
fn plain_policy() -> Policy {
    Policy::default().with_follow(Followed::all())
}

pub(super) fn look(mail: &Bytes, now: SystemTime, chosen: &ChosenFiles) -> LookResults {
    let embed = Embed {
        data: true,
        remote: true,
        ..Embed::default()
    };
    let mut needs: Vec<Need> = Vec::new();
    let outcome = run(mail, now, open_policy(embed), |need| {
        if let Some(content) = chosen.get(need) {
            return Ok(content.clone());
        }
        // The engine copies the detail of a refusal into the row of the reference, so the number in it links the row to
        // its need.
        let detail = format!("{MARK}{}{MARK}", needs.len());
        needs.push(need.clone());
        Err(Refusal::lasting(Reason::FileNotReadable, detail))
    });
    let opened = if outcome.edits.is_empty() {
        mail.clone()
    } else {
        outcome.output().into_bytes().into_owned().into()
    };
    let rows = outcome.report.rows.into_iter().map(|row| {
        let need = number_in(&row).and_then(|number| needs.get(number).cloned());
        LookResult { row, need }
    });
    LookResults {
        opened,
        rows: rows.collect(),
    }
}

/// Returns the number of the need in the detail of a row that was refused by [`look`].
fn number_in(row: &Row) -> Option<usize> {
    let detail = row.detail.strip_prefix(MARK)?;
    let (number, _) = detail.split_once(MARK)?;
    number.parse().ok()
}

/// Returns the mail with its own content opened and the chosen files inserted. All other bytes stay the same.
pub(super) fn repaired(
    mail: &[u8],
    now: SystemTime,
    chosen: &ChosenFiles,
    filled: &[LookResult],
) -> Vec<u8> {
    let policy = if chosen.is_empty() {
        plain_policy()
    } else {
        let is_picture = |it: &LookResult| it.is_filled() && it.row.kind == Kind::Embed;
        open_policy(Embed {
            remote: filled.iter().any(is_picture),
            ..Embed::default()
        })
    };
    let outcome = run(mail, now, policy, |need| {
        let missing = || Refusal::lasting(Reason::FileNotReadable, "the file was not chosen");
        chosen.get(need).cloned().ok_or_else(missing)
    });
    outcome.output().into_bytes().into_owned()
}

/// Runs the engine until it needs nothing more.
fn run(
    mail: &[u8],
    now: SystemTime,
    policy: Policy,
    mut answer: impl FnMut(&Need) -> Result<Content, Refusal>,
) -> EngineOutcome<'_> {
    let engine = Engine::new(policy);
    let context = Context::new("1", now);
    let mut answers = Answers::new();
    let mut spent = 0_u64;
    loop {
        let mut outcome = engine.run(mail, &context, answers);
        let Some(needs) = outcome.needs.take() else {
            return outcome;
        };
        spent = spent.saturating_add(outcome.work);
        answers = std::mem::take(&mut outcome.answers);
        let judged = engine.judge_rounds(mail, spent);
        for need in needs.batch {
            let content = judged.clone().and_then(|()| answer(&need));
            answers.insert(need, content.map(Into::into));
        }
    }
}
