//! Options of the command line that are repeated in the commands on a page, so that a later run is allowed to retrieve
//! the same content.

use std::ffi::OsString;

use super::words::quoted;
use crate::link::url::masked;

/// Options with a value that define what may be retrieved, from where, and within which limits.
const WITH_VALUE: [&str; 28] = [
    "config",
    "fetch",
    "allow-host",
    "deny-host",
    "deny-host-file",
    "allow-net",
    "allow-port",
    "file-root",
    "map",
    "proxy",
    "ca-file",
    "attachments",
    "copies",
    "resolver",
    "cache",
    "cache-max",
    "cache-ignore",
    "archive",
    "archive-window",
    "archive-cdx",
    "timeout",
    "deadline",
    "max-body",
    "max-growth",
    "max-message",
    "max-fetches",
    "max-redirects",
    "max-in-flight",
];

/// Options without a value that define what may be retrieved, and from where.
const FLAGS: [&str; 3] = ["allow-userinfo", "archive-first", "archive-any"];

/// Options with a value that define what else a run does. They are only repeated on the page about a run.
const OF_RUN: [&str; 26] = [
    "follow",
    "files",
    "embed",
    "embed-kinds",
    "trackers",
    "links",
    "signed",
    "allow-type",
    "deny-type",
    "format",
    "store",
    "base-url",
    "larger-than",
    "type",
    "form",
    "note-format",
    "max-work",
    "max-depth",
    "max-parts",
    "max-header",
    "max-expanded",
    "ignore",
    // The following options select the messages of an IMAP account.
    "since",
    "before",
    "folder",
    "not-folder",
];

const FLAGS_OF_RUN: [&str; 7] = [
    "unwrap",
    "accept-mismatch",
    "inline",
    "note",
    "provenance",
    "offline",
    "allow-plaintext",
];

#[derive(Clone, Default, Debug)]
pub(crate) struct RepeatedLinks {
    options: Vec<(String, Option<String>)>,
}

impl RepeatedLinks {
    /// Returns the options of this `inspect` command that a recommended `embed` or `recover` command must repeat to
    /// retrieve the same content.
    pub(crate) fn of_retrieval(arguments: &[OsString]) -> Self {
        Self::of(arguments, &[&WITH_VALUE], &[&FLAGS])
    }

    /// Returns the options of this run that a recommended further run must repeat.
    pub(crate) fn of_run(arguments: &[OsString]) -> Self {
        Self::of(arguments, &[&WITH_VALUE, &OF_RUN], &[&FLAGS, &FLAGS_OF_RUN])
    }

    fn of(arguments: &[OsString], with_value: &[&[&str]], flags: &[&[&str]]) -> Self {
        let is_among =
            |names: &[&[&str]], name: &str| names.iter().any(|names| names.contains(&name));
        let mut options = Vec::new();
        let mut words = arguments.iter().skip(2).map(|it| it.to_str());
        while let Some(word) = words.next() {
            let Some(option) = word.and_then(|it| it.strip_prefix("--")) else {
                continue;
            };
            if option.is_empty() {
                break;
            }
            let (name, value) = match option.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (option, None),
            };
            if is_among(with_value, name) {
                let value = value.or_else(|| words.next().flatten());
                // A page may be shown to other people, so an option with a password in its value is left out.
                if let Some(value) = value.filter(|value| masked(value) == *value) {
                    options.push((name.to_owned(), Some(value.to_owned())));
                }
            } else if is_among(flags, name) {
                options.push((name.to_owned(), None));
            }
        }
        Self { options }
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.options.iter().any(|(option, _)| option == name)
    }

    /// Returns the options as a part of a command line, except those with a name in `names`.
    pub(crate) fn without(&self, names: &[&str]) -> String {
        self.options
            .iter()
            .filter(|(name, _)| !names.contains(&name.as_str()))
            .map(|(name, value)| match value {
                // Without `=`, a value with a leading hyphen would be parsed as an option.
                Some(value) if value.starts_with('-') => format!(" --{name}={value}"),
                Some(value) => format!(" --{name} {}", quoted(value)),
                None => format!(" --{name}"),
            })
            .collect()
    }

    pub(crate) fn all(&self) -> String {
        self.without(&[])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn options_are_repeated_as_they_were_given() {
        let split = |line: &str| -> Vec<OsString> { line.split(' ').map(OsString::from).collect() };
        let words = split(
            "embody inspect --probe --fetch http --allow-net=127.0.0.0/8 box --map a=b --archive-any --html x",
        );
        let repeated = RepeatedLinks::of_retrieval(&words);
        assert_eq!(
            repeated.all(),
            " --fetch http --allow-net 127.0.0.0/8 --map a=b --archive-any"
        );
        assert_eq!(
            repeated.without(&["fetch", "map"]),
            " --allow-net 127.0.0.0/8 --archive-any"
        );
        assert!(repeated.has("fetch") && !repeated.has("probe"));
        let words = split("embody inspect --proxy http://user:secret@proxy.example/ box");
        assert_eq!(RepeatedLinks::of_retrieval(&words).all(), "");
        let words = ["embody", "embed", "--timeout", "5s", "--", "--map", "x"].map(OsString::from);
        assert_eq!(RepeatedLinks::of_run(&words).all(), " --timeout 5s");
    }

    /// Fails if an option is in none of the lists. A new option must be added to one of the lists at the start of this
    /// file. If a later run must not repeat it, it must be added to `NOT_REPEATED`.
    #[test]
    fn every_option_is_listed_as_repeated_or_not_repeated_by_a_later_run() {
        const NOT_REPEATED: &str = "output in-place backup output-format by-label jobs dry-run progress report quiet verbose \
            html no-resume mark record record-max on-failure probe help help-all version shortcuts range expect oauth-file \
            password-command password-file starttls user state trash replace imap-connections connections skip-deleted";
        let mut program = crate::cli::args::Cli::command();
        program.build();
        let lists: [&[&str]; 4] = [&WITH_VALUE, &FLAGS, &OF_RUN, &FLAGS_OF_RUN];
        let mut forgotten = Vec::new();
        for name in ["embed", "recover", "convert", "detach", "restore"] {
            let command = program.find_subcommand(name).unwrap();
            for option in command.get_arguments().filter_map(|it| it.get_long()) {
                let is_listed = lists.iter().any(|names| names.contains(&option));
                if !is_listed && !NOT_REPEATED.split_whitespace().any(|it| it == option) {
                    forgotten.push(format!("{name} --{option}"));
                }
            }
        }
        assert!(forgotten.is_empty(), "{forgotten:?}");
    }
}
