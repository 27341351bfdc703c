//! Accounts that are changed in place: how a verb is run over one, and what is said of it.

use std::path::Path;

use super::args::{ReplacingArgs, Volume};
use super::reporter::Reporter;
use super::say;
use super::survey::in_units;
use super::verb::Said;
use crate::error::Error;
use crate::imap::account::Account;
use crate::imap::candidates::Candidates;
use crate::imap::in_place::{InPlace, InPlaceObserver};
use crate::imap::place::MessagePlace;
use crate::imap::replace::Fate;
use crate::mailbox::{Effect, Observer as _, Options, Stop, Summary, Transform};
use crate::policy::{Follow, Policy};
use crate::report::Detail;

pub(super) fn in_place(
    account: &Account,
    candidates: &Candidates,
    replacing: &ReplacingArgs,
    options: &Options,
    transform: &dyn Transform<Said>,
    reporter: &Reporter<'_>,
    stop: &Stop,
) -> Result<Summary, Error> {
    let state = match options.effect {
        Effect::Write => replacing.state()?,
        Effect::DryRun => Default::default(),
    };
    let in_place = InPlace {
        account,
        candidates,
        effect: options.effect,
        trash: replacing.trash.as_deref(),
        by_replace: replacing.replace,
        state: &state,
        jobs: options.max_in_flight.max(options.jobs),
        max_message: options.max_message,
        transform,
        observer: reporter,
        stop,
    };
    let done = in_place
        .run()
        .map_err(|failure| failure.into_error(&account.url("")))?;
    if reporter.volume >= Volume::Normal
        && options.effect == Effect::Write
        && let Some((before, after)) = done.quota
    {
        let change = match before.checked_sub(after) {
            Some(gained) => format!("{} less", in_units(gained)),
            None => format!("{} more", in_units(after - before)),
        };
        let now = in_units(after);
        let text = format!("the account takes {now} of its quota now, {change} than before");
        reporter.display.say(&text);
    }
    Ok(done.summary)
}

pub(super) fn candidates(policy: &Policy, is_marked: bool) -> Candidates {
    let is_seen = |form: &Follow| {
        // Notes of other forms may stand in any text. Apple's and Eudora's are of mail that lies in their folders.
        matches!(
            form,
            Follow::Thunderbird | Follow::Exchange | Follow::Apple | Follow::Eudora
        )
    };
    let mut others = Follow::ALL.iter().filter(|form| !is_seen(form));
    match is_marked || others.any(|form| policy.follow.contains(*form)) {
        true => Candidates::All,
        false => Candidates::Documents,
    }
}

impl InPlaceObserver<Said> for Reporter<'_> {
    fn message_at(&self, mut said: Said, place: MessagePlace, fate: Option<Fate>) {
        match fate {
            Some(Fate::Left(reason, why)) => said.leave(reason, &Detail::from(why)),
            Some(Fate::Replaced(_, Some(remark))) => {
                for row in &mut said.report.rows {
                    row.detail.push(format!("; {remark}"));
                }
            }
            Some(Fate::Replaced(_, None)) | None => {}
        }
        if let Some(origin) = &mut said.origin {
            origin.place = Some(place);
        }
        self.message(said, false);
    }

    fn resumed(&self, folder: &Path, uid: u32, fate: &Fate) {
        let what = match fate {
            Fate::Replaced(new, _) => {
                format!(
                    "an earlier run was stopped while it replaced it; finished, it is {new} now"
                )
            }
            Fate::Left(_, why) => {
                format!(
                    "an earlier run was stopped while it replaced it; {}",
                    say::harmless(why)
                )
            }
        };
        let folder = say::shown(folder);
        self.display.say(&format!("{folder}, UID {uid}: {what}"));
    }
}
