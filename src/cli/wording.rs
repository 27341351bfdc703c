//! The names of options, which the library does not know: what it says of a setting names the option here, and each
//! reason has the option that would have allowed it.

use std::borrow::Cow;
use std::error::Error as StdError;
use std::io;

use super::told::Row;
use crate::error::Error;
use crate::mailbox::Damage;
use crate::report::{Detail, Reason, Setting};

/// What the program says for a sentence.
pub(super) fn detail(detail: &Detail) -> String {
    detail.worded(option)
}

/// A row as it is told: its detail names options.
pub(super) fn row(row: &Row) -> Cow<'_, Row> {
    if row.detail.settings().next().is_none() {
        return Cow::Borrowed(row);
    }
    Cow::Owned(Row {
        detail: detail(&row.detail).into(),
        ..row.clone()
    })
}

/// What the program says for an error, without its causes.
pub(super) fn error(error: &(dyn StdError + 'static)) -> String {
    if let Some(error) = error.downcast_ref::<Error>() {
        return detail(&error.detail());
    }
    let held = error
        .downcast_ref::<io::Error>()
        .and_then(|it| it.get_ref());
    match held.and_then(|held| held.downcast_ref::<Damage>()) {
        Some(damage) => detail(&damage.detail()),
        None => error.to_string(),
    }
}

/// The option that a setting is given by.
fn option(setting: Setting) -> &'static str {
    match setting {
        Setting::Body => "--max-body",
        Setting::Growth => "--max-growth",
        Setting::Message => "--max-message",
        Setting::Fetches => "--max-fetches",
        Setting::Redirects => "--max-redirects",
        Setting::Timeout => "--timeout",
        Setting::Deadline => "--deadline",
        Setting::Depth => "--max-depth",
        Setting::Parts => "--max-parts",
        Setting::Header => "--max-header",
        Setting::Work => "--max-work",
        Setting::Fetch => "--fetch",
        Setting::AllowHost => "--allow-host",
        Setting::DenyHost => "--deny-host",
        Setting::DenyHostFile => "--deny-host-file",
        Setting::AllowType => "--allow-type",
        Setting::DenyType => "--deny-type",
        Setting::FileRoot => "--file-root",
        Setting::Proxy => "--proxy",
        Setting::Cache => "--cache",
        Setting::ArchiveWindow => "--archive-window",
        Setting::Expanded => "--max-expanded",
        Setting::Format => "--format",
        Setting::InPlace => "--in-place",
        Setting::Output => "--output",
        Setting::Range => "--range",
        Setting::Backup => "--backup",
        Setting::Expect => "--expect",
    }
}

/// The option that would have allowed what was left for a reason, with an example value; none where no option does.
pub(crate) fn would_allow(reason: Reason) -> Option<&'static str> {
    Some(match reason {
        Reason::SchemeNotAllowed | Reason::RedirectRefused => "--fetch SCHEME",
        Reason::SecretUrl => "--archive-any",
        Reason::HostNotAllowed => "--allow-host HOST",
        Reason::PrivateAddress => "--allow-net CIDR",
        Reason::PortNotAllowed => "--allow-port PORT",
        Reason::UserinfoNotAllowed => "--allow-userinfo",
        Reason::OutsideFileRoot => "--file-root DIR",
        Reason::TypeNotAllowed => "--allow-type TYPE",
        Reason::TypeMismatch => "--accept-mismatch",
        Reason::TooLarge => "--max-body SIZE",
        Reason::GrowthLimit => "--max-growth SIZE",
        Reason::MessageLimit => "--max-message SIZE",
        Reason::TooMuchWork => "--max-work N",
        Reason::TooManyFetches => "--max-fetches N",
        Reason::TooManyRedirects => "--max-redirects N",
        Reason::Timeout => "--timeout DURATION",
        Reason::Deadline => "--deadline DURATION",
        Reason::TlsFailed => "--ca-file PEM",
        Reason::Tracker => "--trackers fetch",
        Reason::Signed | Reason::Encrypted => "--signed rewrite",
        Reason::ShownInline => "--inline",
        Reason::TooDeep => "--max-depth N",
        Reason::TooManyParts => "--max-parts N",
        Reason::HeaderTooLarge => "--max-header SIZE",
        _ => return None,
    })
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
    fn each_setting_and_each_remedy_names_an_option_of_the_program() {
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
        let settings = Setting::ALL.iter().map(|setting| option(*setting));
        let remedies = Reason::ALL.iter().filter_map(|reason| would_allow(*reason));
        for words in settings.chain(remedies) {
            let name = words.strip_prefix("--").and_then(|it| it.split(' ').next());
            assert!(name.is_some_and(|name| known.contains(name)), "{words}");
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

    #[test]
    fn an_error_and_what_a_system_error_holds_name_options() {
        let named = || Detail::from("raise ").naming(Setting::Expanded);
        assert_eq!(error(&Error::Usage(named())), "raise --max-expanded");
        let damage = io::Error::other(Damage::of_archive(named(), true));
        assert_eq!(error(&damage), "raise --max-expanded");
        assert_eq!(error(&io::Error::other("x")), "x");
    }
}
