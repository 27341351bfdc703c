//! Compares the default values in the help texts with the defaults of the code.

use super::*;
use crate::engine::policy::Policy;
use clap::CommandFactory as _;

/// Words that a help text uses as a default but that are not values of the option. The test cannot parse them, so it
/// skips them.
const WORDS: [&str; 6] = [
    "off",
    "none",
    "all public",
    "all",
    "one for each core",
    "the port of the scheme",
];

pub(crate) fn policy_of(options: &str) -> Policy {
    let words = ["filter"].into_iter().chain(options.split_whitespace());
    let args = FilterArgs::try_parse_from(words).expect("these are options");
    args.policy()
}

#[test]
fn the_defaults_are_those_of_the_policy() {
    assert_eq!(
        format!("{:?}", policy_of("")),
        format!("{:?}", Policy::default())
    );
}

#[test]
fn no_options_are_the_defaults() {
    let parsed = FilterArgs::try_parse_from(["filter"]).expect("no options");
    assert_eq!(
        format!("{parsed:?}"),
        format!("{:?}", FilterArgs::default())
    );
}

/// The help texts contain the defaults as text, because the options have no `default_value` from which clap could print
/// them.
#[test]
fn the_help_says_the_defaults() {
    let mut said = 0;
    for option in FilterArgs::command().get_arguments() {
        let help = option
            .get_help()
            .map(ToString::to_string)
            .unwrap_or_default();
        let Some((_, behind)) = help.split_once("[default: ") else {
            let is_setting = option
                .get_long()
                // The default of `--max-message` is not tested here: `filter` has none, and the next test covers that
                // of `milter`.
                .is_some_and(|name| name.starts_with("max-") && name != "max-message");
            let name = option.get_id();
            assert!(
                !is_setting,
                "the help of --{name} must name the default value"
            );
            continue;
        };
        let (value, _) = behind.split_once(']').expect("a bracket is closed");
        // The source is not an option. Its default is a phrase, and no value of the policy.
        let Some(name) = option.get_long() else {
            continue;
        };
        // Words such as `off` cannot be parsed as values. The defaults of the archive and the cache are not in the
        // policy, so other tests compare them (archive_args.rs and cache_args.rs).
        if WORDS.contains(&value) || ["archive-window", "cache-max"].contains(&name) {
            continue;
        }
        assert_eq!(
            format!("{:?}", policy_of(&format!("--{name} {value}"))),
            format!("{:?}", Policy::default()),
            "--{name} {value}"
        );
        said += 1;
    }
    assert_eq!(said, 17);
}

#[cfg(all(unix, feature = "milter"))]
#[test]
fn the_help_says_how_large_a_message_may_become() {
    let command = <MilterArgs as Args>::augment_args(clap::Command::new("x"));
    let mut options = command.get_arguments();
    let option = options.find(|it| it.get_long() == Some("max-message"));
    let help = option.unwrap().get_help().unwrap().to_string();
    let (_, behind) = help.split_once("[default: ").unwrap();
    let (value, _) = behind.split_once(']').unwrap();
    let message = |words: &[&str]| {
        let matches = command.clone().get_matches_from(words);
        let args = MilterArgs::from_arg_matches(&matches).unwrap();
        args.policy().unwrap().limits.message
    };
    let most = message(&["x"]);
    assert!(most.is_some());
    assert_eq!(message(&["x", "--max-message", value]), most);
}

#[test]
fn shared_paragraphs_replace_every_placeholder_in_help_pages() {
    let mut pages = 0;
    for command in Cli::command().get_subcommands() {
        let page = command
            .get_after_long_help()
            .map(ToString::to_string)
            .unwrap_or_default();
        assert!(!page.contains(['{', '}']), "{page}");
        pages += usize::from(page.contains("kB and MB are powers of ten"));
    }
    assert!(pages >= 7, "{pages}");
}

#[test]
fn form_means_the_same_as_note_format() {
    for name in ["--note-format", "--form"] {
        let words = ["embody", "detach", "--store", "x", name, "thunderbird"];
        let parsed = Cli::try_parse_from(words).expect(name);
        let SubcommandArgs::Detach(DeferredArgs(args)) = parsed.command else {
            panic!("{name}");
        };
        assert_eq!(
            args.selection.note_format,
            Some(crate::expand::detach::Stub::Thunderbird)
        );
    }
}
