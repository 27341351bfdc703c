//! Chooses the mailboxes of a message by its labels (`--by-label`).

use std::collections::{HashMap, HashSet};

use super::prepared::{PreparedMail, identity, seconds};
use crate::error::Error;
use crate::mailbox::{ByLabel, Summary};

/// Maximum number of labels for which one mail is delivered. Labels are untrusted input, and each of them needs a copy
/// of the mail. Gmail users have a handful of labels.
const MOST_LABELS: usize = 100;
/// Maximum number of labels that get a mailbox. Labels are untrusted input, so without a limit a mailbox could create
/// any number of directories. Gmail allows this number of labels in an account.
const MOST_FOLDERS: usize = 10_000;
/// Maximum length of a label in bytes. A longer label gets no mailbox. Gmail's labels have at most 225 characters.
const LONGEST_LABEL: usize = 1000;

const UNLABELLED: &str = "No label";

/// Determines the mailboxes of a message from its labels.
pub(super) struct LabelMailboxes {
    by_label: ByLabel,
    /// Mailbox number of each label. The key `None` is for mail without a label.
    numbers: HashMap<Option<String>, usize>,
    /// Digests of the delivered mails, 16 bytes each, to find repeated mails: an archive can contain a mail once for
    /// each of its labels.
    known: HashSet<[u8; 16]>,
    /// Whether the caller guarantees that no mail occurs twice, as `merge` does, so that `known` is not needed. In a
    /// merge, the labels of a mail are the source folders that contained it, so [`MOST_LABELS`] and [`LONGEST_LABEL`]
    /// do not apply.
    pub(super) is_distinct: bool,
}

impl LabelMailboxes {
    pub(super) fn new(by_label: ByLabel) -> Self {
        Self {
            by_label,
            numbers: HashMap::new(),
            known: HashSet::new(),
            is_distinct: false,
        }
    }

    /// Returns whether the same message was delivered before.
    pub(super) fn is_repeated(&mut self, letter: &PreparedMail<'_>) -> bool {
        !self.is_distinct && {
            let seconds = seconds(letter.envelope.date);
            !self.known.insert(identity(letter, seconds))
        }
    }

    /// Returns the mailbox numbers for these labels. Labels that exceed a limit are left out, and the mail is counted
    /// in `summary`. If no label remains, the mailbox for mail without labels is used. `add` creates the mailbox of a
    /// label.
    pub(super) fn numbers(
        &mut self,
        labels: &[String],
        summary: &mut Summary,
        add: &mut dyn FnMut(&str) -> Result<(), Error>,
    ) -> Result<Vec<usize>, Error> {
        let most = match self.by_label {
            ByLabel::First => 1,
            ByLabel::All if self.is_distinct => usize::MAX,
            ByLabel::All => MOST_LABELS,
        };
        let is_distinct = self.is_distinct;
        let is_usable = |label: &&String| is_distinct || label.len() <= LONGEST_LABEL;
        let usable: Vec<&String> = labels.iter().filter(is_usable).take(most).collect();
        let is_cut = usable.len() < most.min(labels.len()) || labels.len() > most.max(MOST_LABELS);
        let given = usable
            .iter()
            .filter_map(|&label| self.number(Some(label.clone()), add).transpose());
        let mut numbers = given.collect::<Result<Vec<usize>, Error>>()?;
        summary.overlabelled += u64::from(is_cut) + u64::from(numbers.len() < usable.len());
        if numbers.is_empty() {
            numbers.extend(self.number(None, add)?);
        }
        Ok(numbers)
    }

    fn number(
        &mut self,
        label: Option<String>,
        add: &mut dyn FnMut(&str) -> Result<(), Error>,
    ) -> Result<Option<usize>, Error> {
        if let Some(number) = self.numbers.get(&label) {
            return Ok(Some(*number));
        }
        if label.is_some() && self.numbers.len() >= MOST_FOLDERS {
            return Ok(None);
        }
        add(label.as_deref().unwrap_or(UNLABELLED))?;
        let number = self.numbers.len();
        self.numbers.insert(label, number);
        Ok(Some(number))
    }
}
