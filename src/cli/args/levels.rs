//! The level of help (`-h`, `--help` or `--help-all`) at which each option is first shown (`cli/help.rs`).

use clap::Arg;

/// Options that most users need. `-h` lists them.
const USUAL: &[&str] = &[
    "help",
    "help_all",
    "version",
    "output",
    "in_place",
    "dry_run",
    "report",
    "quiet",
    "verbose",
    "config",
    "fetch",
    "allow_host",
];

/// Options for special cases. `--help` also lists them.
const PARTICULAR: &[&str] = &[
    "attachments",
    "backup",
    "by_label",
    "cache",
    "embed",
    "embed_kinds",
    "folder",
    "follow",
    "format",
    "jobs",
    "max_body",
    "max_growth",
    "offline",
    "output_format",
    "password_command",
    "probe",
    "proxy",
    "timeout",
    "trackers",
];

/// Sets the level of help of each option. `usual` are further options for `-h`, and `particular` are further options
/// for `--help`.
pub(super) fn levels(
    usual: &'static [&'static str],
    particular: &'static [&'static str],
) -> impl FnMut(Arg) -> Arg {
    move |option| {
        let name = option.get_id().as_str();
        let is_usual = option.is_positional() || USUAL.contains(&name) || usual.contains(&name);
        let is_particular = is_usual || PARTICULAR.contains(&name) || particular.contains(&name);
        option
            .hide_short_help(!is_usual)
            .hide_long_help(!is_particular)
    }
}
