//! Format of the journal: JSON lines with a checksum. Reading a file combines its lines into the list of unfinished
//! replacements.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::step::Replacement;
use crate::key::Key;

/// Account to which a journal belongs. Each line contains it, so that a copied or renamed journal cannot delete messages of
/// another account.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(in crate::imap) struct JournalAccount {
    pub(in crate::imap) user: String,
    pub(in crate::imap) host: String,
    pub(in crate::imap) port: u16,
}

/// One line of the journal: the current state of the replacement with the number `id`.
#[derive(Serialize, Deserialize, Debug)]
pub(super) struct JournalLine {
    pub(super) id: u64,
    /// The replacement with its last step, as long as it is unfinished. `None` means that it was finished or undone.
    pub(super) open: Option<Replacement>,
    /// Why the message may exist twice, if the replacement ended in this way. The line is kept until a run has named the
    /// message and has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) named: Option<String>,
    /// Account to which the journal belongs. `None` in a journal of version 0.3.0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) account: Option<JournalAccount>,
    /// Name of the server software (RFC 2971), if the server sends one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) server: Option<String>,
}

/// Start of the checksum at the end of a line. The checksum consists of the first digits of the SHA-256 of the line without it.
const CHECKSUM: &str = ",\"sum\":\"";
pub(super) const CHECKSUM_DIGITS: usize = 16;

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct NotedReplacement {
    pub(super) replacement: Replacement,
    pub(super) server: Option<String>,
    pub(super) doubt: Option<String>,
    /// Why the message may exist twice. `None` if the replacement is unfinished.
    pub(super) named: Option<String>,
}

fn checksum(line: &[u8]) -> String {
    let mut digits = Key::of(line).to_string();
    digits.truncate(CHECKSUM_DIGITS);
    digits
}

/// Appends the checksum and the line ending to a line.
pub(super) fn with_checksum(line: &str) -> Vec<u8> {
    let sum = checksum(line.as_bytes());
    let inner = line.strip_suffix('}').unwrap_or(line);
    format!("{inner}{CHECKSUM}{sum}\"}}\n").into_bytes()
}

/// Parses a line without its line ending. Returns `None` if the line is malformed or its checksum is wrong. Lines of version
/// 0.3.0 have no checksum.
fn line(text: &[u8]) -> Option<JournalLine> {
    let sum_length = CHECKSUM.len() + CHECKSUM_DIGITS + "\"}".len();
    let split = text.len().checked_sub(sum_length);
    if let Some((inner, sum)) = split.and_then(|at| text.split_at_checked(at))
        && let Some(sum) = sum.strip_prefix(CHECKSUM.as_bytes())
    {
        let whole = [inner, b"}"].concat();
        let is_right = sum.strip_suffix(b"\"}") == Some(checksum(&whole).as_bytes());
        return is_right.then(|| serde_json::from_slice(&whole).ok())?;
    }
    let line: JournalLine = serde_json::from_slice(text).ok()?;
    // Only lines of version 0.3.0 have no checksum, and they contain no account. A line with an account but without a
    // checksum is damaged, so it counts as unreadable.
    line.account.is_none().then_some(line)
}

/// Returns the account in the last readable line of a journal that has one.
pub(super) fn account_of(text: &[u8]) -> Option<JournalAccount> {
    let lines = text.split(|octet| *octet == b'\n').rev();
    lines.filter_map(|text| line(text)?.account).next()
}

/// Returns the unfinished replacements, and the length of the readable part in bytes.
///
/// Unreadable lines at the end are the result of a crash: the steps that they announce were not taken. An unreadable line
/// before a readable one means that the file is damaged, so no entry in the file is trusted.
pub(super) fn unfinished(
    text: &[u8],
    account: &JournalAccount,
) -> (BTreeMap<u64, NotedReplacement>, u64) {
    let mut open = BTreeMap::new();
    let (mut whole, mut at) = (0, 0);
    let (mut unreadable, mut damaged) = (None, None);
    for (number, read) in text.split_inclusive(|octet| *octet == b'\n').enumerate() {
        at += read.len() as u64;
        let Some(line) = read.strip_suffix(b"\n").and_then(line) else {
            unreadable = unreadable.or(Some(number + 1));
            continue;
        };
        damaged = damaged.or(unreadable);
        whole = at;
        let Some(replacement) = line.open else {
            open.remove(&line.id);
            continue;
        };
        let doubt = line.account.filter(|of| of != account).map(|of| {
            format!(
                "the journal belongs to a different account, {} on {}, port {}; nothing was deleted, so the folder may contain the message twice",
                of.user, of.host, of.port
            )
        });
        let noted = NotedReplacement {
            replacement,
            server: line.server,
            doubt,
            named: line.named,
        };
        open.insert(line.id, noted);
    }
    if let Some(number) = damaged {
        for noted in open.values_mut() {
            noted.doubt = Some(format!(
                "line {number} of the journal is damaged; nothing was deleted, so the folder may contain the message twice"
            ));
        }
    }
    (open, whole)
}
