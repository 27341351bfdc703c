//! The options about the help, and the level of help (`-h`, `--help` or `--help-all`) at which each option is first shown
//! (`cli/help.rs`).

use clap::{Arg, ArgAction, Command};

/// Place of the options that every command has, in the lists of the help.
const LAST: usize = 900;

/// Options that most users need. `-h` lists them.
const USUAL: &[&str] = &[
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

/// Sets which help shows each option. The options in `USUAL` and `usual` appear in `-h` and `--help`. The options in
/// `PARTICULAR` and `particular` appear only in `--help`. Only `--help-all` shows the others.
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

/// Adds the options `-h`, `--help`, `--help-all` and `-V` after all other options of a command. If the help of the command
/// has sections, they have a section of their own, which is the last one because sections are in the order of their first
/// options. Global options would come first: clap passes them on to a command before the deferred options of the command
/// are defined.
pub(crate) fn with_flags(command: Command) -> Command {
    let help = Arg::new("help")
        .short('h')
        .long("help")
        .action(ArgAction::HelpShort)
        .help("Print the usual options with -h, more options with --help");
    let help_all = Arg::new("help_all")
        .long("help-all")
        .action(ArgAction::HelpLong)
        .help("Print all options, with their values and the exit statuses");
    let version = Arg::new("version")
        .short('V')
        .long("version")
        .action(ArgAction::Version)
        .help("Print version");
    let has_sections = command
        .get_arguments()
        .any(|option| option.get_help_heading().is_some());
    let heading = has_sections.then_some("Help");
    let flags =
        [help, help_all, version].map(|flag| flag.help_heading(heading).display_order(LAST));
    let command = command.disable_help_flag(true).disable_version_flag(true);
    command.args(flags)
}
