//! The names of options, which the library does not know: what it says of a setting names the option here.

use std::borrow::Cow;
use std::error::Error as StdError;
use std::io;

use crate::error::Error;
use crate::mailbox::Damage;
use crate::report::{Detail, Reason, Row, Setting};

pub(super) fn detail(detail: &Detail) -> String {
    detail.worded(option)
}

pub(super) fn rows(rows: &[Row]) -> impl Iterator<Item = Cow<'_, Row>> {
    rows.iter().map(|row| match row.detail.settings().next() {
        None => Cow::Borrowed(row),
        Some(_) => Cow::Owned(Row {
            detail: detail(&row.detail).into(),
            ..row.clone()
        }),
    })
}

pub(super) fn error(error: &(dyn StdError + 'static)) -> String {
    if let Some(error) = error.downcast_ref::<Error>() {
        return detail(&error.detail());
    }
    let failed = error.downcast_ref::<io::Error>();
    let held = failed.and_then(io::Error::get_ref);
    match held.and_then(|held| held.downcast_ref::<Damage>()) {
        Some(damage) => detail(&damage.detail()),
        None => error.to_string(),
    }
}

/// The option that each setting is given by, and a value as it may stand behind it.
fn words(setting: Setting) -> &'static str {
    match setting {
        Setting::Body => "--max-body SIZE",
        Setting::Growth => "--max-growth SIZE",
        Setting::Message => "--max-message SIZE",
        Setting::Fetches => "--max-fetches N",
        Setting::Redirects => "--max-redirects N",
        Setting::Timeout => "--timeout DURATION",
        Setting::Deadline => "--deadline DURATION",
        Setting::Depth => "--max-depth N",
        Setting::Parts => "--max-parts N",
        Setting::Header => "--max-header SIZE",
        Setting::Work => "--max-work N",
        Setting::Fetch => "--fetch SCHEME",
        Setting::AllowHost => "--allow-host HOST",
        Setting::DenyHost => "--deny-host HOST",
        Setting::DenyHostFile => "--deny-host-file FILE",
        Setting::AllowNet => "--allow-net CIDR",
        Setting::AllowPort => "--allow-port PORT",
        Setting::AllowUserinfo => "--allow-userinfo",
        Setting::CaFile => "--ca-file PEM",
        Setting::AllowType => "--allow-type TYPE",
        Setting::DenyType => "--deny-type TYPE",
        Setting::AcceptMismatch => "--accept-mismatch",
        Setting::Protected => "--signed rewrite",
        Setting::Trackers => "--trackers fetch",
        Setting::Inline => "--inline",
        Setting::Follow => "--follow NAME",
        Setting::FileRoot => "--file-root DIR",
        Setting::Attachments => "--attachments DIR",
        Setting::Resolver => "--resolver CMD",
        Setting::Proxy => "--proxy URL",
        Setting::Cache => "--cache DIR",
        Setting::ArchiveAny => "--archive-any",
        Setting::ArchiveWindow => "--archive-window BEFORE,AFTER",
        Setting::Expanded => "--max-expanded SIZE",
        Setting::Format => "--format WHAT",
        Setting::OutputFormat => "--output-format WHAT",
        Setting::InPlace => "--in-place",
        Setting::Output => "--output DEST",
        Setting::Range => "--range A-B",
        Setting::Backup => "--backup SUFFIX",
        Setting::Expect => "--expect LENGTH",
    }
}

pub(super) fn option(setting: Setting) -> &'static str {
    let words = words(setting);
    words.split_once(' ').map_or(words, |(option, _)| option)
}

/// The option that would have allowed what was left, with an example value.
pub(crate) fn would_allow(reason: Reason) -> Option<&'static str> {
    reason.remedy().map(words)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

    use clap::CommandFactory as _;

    use super::*;
    use crate::cli::args::Cli;

    #[test]
    fn each_setting_names_an_option_of_the_program() {
        let mut known = BTreeSet::new();
        let mut program = Cli::command();
        program.build();
        for command in program.get_subcommands() {
            known.extend(
                command
                    .get_arguments()
                    .filter_map(|it| it.get_long().map(str::to_owned)),
            );
        }
        for setting in Setting::ALL {
            let name = option(*setting).strip_prefix("--");
            assert!(name.is_some_and(|name| known.contains(name)), "{name:?}");
        }
    }

    #[test]
    fn the_table_of_reasons_is_the_list_of_reasons() {
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reasons.md");
        let page = fs::read_to_string(page).unwrap();
        let shown: Vec<&str> = page
            .lines()
            .skip_while(|line| !line.starts_with("| reason |"))
            .skip(2)
            .take_while(|line| line.starts_with('|'))
            .collect();
        let row = |reason: &Reason| {
            let remedy = would_allow(*reason).map_or_else(String::new, |it| format!("`{it}`"));
            let (word, meaning) = (reason.as_str(), reason.meaning());
            format!("| `{word}` | {meaning} | {remedy} |")
        };
        let rows: Vec<String> = Reason::ALL.iter().map(row).collect();
        assert_eq!(shown, rows);
    }
}
