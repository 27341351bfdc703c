//! Query parameters of requests. They are named like the long options of the command line; only some of them are
//! allowed.
//!
//! The policy is set when the service starts. A request can only narrow it: it can lower a limit or exclude a host, but
//! not allow one.

use std::collections::BTreeSet;

use clap::error::ContextKind;
use clap::{Arg, ArgAction, Args, Command};

use crate::engine::policy::{Follow, Policy, Protected, Trackers};
use crate::serve::{Parameters, Problem};

/// Where an option may be set: in a request, or only at the start of the service.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Class {
    /// A request may set the option to any value.
    Request,
    /// A request may only set a value that is stricter than that of the start.
    Narrower,
    /// The option may only be set at the start.
    Start,
}

/// All long options of the program, in alphabetical order. A new option belongs in the class `Start`, unless every
/// value is harmless in a request: it must not open a file, send a request, or cause more work than the start allows.
pub(super) const OPTIONS: &[(&str, Class)] = &[
    ("accept-mismatch", Class::Narrower),
    ("all-mail-is-here", Class::Start),
    ("allow-host", Class::Start),
    ("allow-host-header", Class::Start),
    ("allow-net", Class::Start),
    ("allow-plaintext", Class::Start),
    ("allow-port", Class::Start),
    ("allow-type", Class::Narrower),
    ("allow-userinfo", Class::Start),
    ("archive", Class::Start),
    ("archive-any", Class::Start),
    ("archive-cdx", Class::Start),
    ("archive-first", Class::Start),
    ("archive-window", Class::Start),
    ("attachments", Class::Start),
    ("backup", Class::Start),
    ("base-url", Class::Start),
    ("before", Class::Start),
    ("by", Class::Start),
    ("by-label", Class::Start),
    ("ca-file", Class::Start),
    ("cache", Class::Start),
    ("cache-ignore", Class::Start),
    ("cache-max", Class::Start),
    ("check", Class::Start),
    ("config", Class::Start),
    ("connections", Class::Start),
    ("copies", Class::Start),
    ("count", Class::Start),
    ("deadline", Class::Narrower),
    ("delete", Class::Start),
    ("deny-host", Class::Narrower),
    ("deny-host-file", Class::Start),
    ("deny-type", Class::Narrower),
    ("dry-run", Class::Start),
    ("duplicates", Class::Start),
    ("embed", Class::Narrower),
    ("embed-kinds", Class::Narrower),
    ("expect", Class::Start),
    ("fetch", Class::Narrower),
    ("file-root", Class::Start),
    ("files", Class::Start),
    ("flat", Class::Start),
    ("folder", Class::Start),
    ("follow", Class::Narrower),
    ("form", Class::Request),
    ("format", Class::Request),
    ("help", Class::Start),
    ("help-all", Class::Start),
    ("html", Class::Start),
    ("ignore", Class::Start),
    ("in-place", Class::Start),
    ("inline", Class::Request),
    ("jobs", Class::Start),
    ("json", Class::Start),
    ("keys", Class::Start),
    ("larger-than", Class::Request),
    ("links", Class::Request),
    ("listen", Class::Start),
    ("map", Class::Start),
    ("mark", Class::Request),
    ("max-body", Class::Narrower),
    ("max-connections", Class::Start),
    ("max-depth", Class::Narrower),
    ("max-expanded", Class::Narrower),
    ("max-fetches", Class::Narrower),
    ("max-growth", Class::Narrower),
    ("max-header", Class::Narrower),
    ("max-in-flight", Class::Start),
    ("max-mailbox", Class::Start),
    ("max-message", Class::Narrower),
    ("max-parts", Class::Narrower),
    ("max-queue", Class::Start),
    ("max-redirects", Class::Narrower),
    ("max-request", Class::Start),
    ("max-work", Class::Narrower),
    ("merged", Class::Start),
    ("messages", Class::Start),
    ("metrics", Class::Start),
    ("no-resume", Class::Start),
    ("not-folder", Class::Start),
    ("note", Class::Request),
    ("note-format", Class::Request),
    ("offline", Class::Start),
    ("on-failure", Class::Request),
    ("order", Class::Start),
    ("output", Class::Start),
    ("output-format", Class::Start),
    ("password-command", Class::Start),
    ("probe", Class::Start),
    ("progress", Class::Start),
    ("provenance", Class::Request),
    ("proxy", Class::Start),
    ("quiet", Class::Start),
    ("range", Class::Start),
    ("record", Class::Start),
    ("record-max", Class::Start),
    ("replace", Class::Start),
    ("report", Class::Start),
    ("resolver", Class::Start),
    ("save-attachments", Class::Start),
    ("shortcuts", Class::Start),
    ("signed", Class::Narrower),
    ("since", Class::Start),
    ("size", Class::Start),
    ("skip-deleted", Class::Start),
    ("socket-group", Class::Start),
    ("socket-mode", Class::Start),
    ("spool", Class::Start),
    ("state", Class::Start),
    ("store", Class::Start),
    ("timeout", Class::Narrower),
    ("token-file", Class::Start),
    ("trackers", Class::Narrower),
    ("trash", Class::Start),
    ("type", Class::Request),
    ("unwrap", Class::Start),
    ("verbose", Class::Start),
    ("version", Class::Start),
];

fn class(name: &str) -> Option<Class> {
    let found = OPTIONS.iter().find(|(option, _)| *option == name);
    found.map(|(_, class)| *class)
}

/// Options of a command that only apply to runs over mailboxes or to opening the store. Requests cannot use them.
const OF_RUNS: &[(&str, &str)] = &[
    ("detach", "format"),
    ("detach", "max-expanded"),
    ("detach", "timeout"),
    ("inspect", "format"),
    ("inspect", "max-expanded"),
    ("restore", "format"),
    ("restore", "max-expanded"),
];

/// Parsed options of a request.
#[derive(Debug)]
pub(super) struct RequestOptions<T> {
    pub(super) args: T,
    /// Names of the options that the request contains.
    pub(super) names: BTreeSet<String>,
}

/// Parses the parameters as options of the command `name`. `more` contains options that are added to every request of
/// this command.
pub(super) fn parsed<T: Args>(
    name: &'static str,
    parameters: &Parameters,
    more: &[&str],
) -> Result<RequestOptions<T>, Problem> {
    let mut command = T::augment_args(Command::new(name))
        .no_binary_name(true)
        .disable_help_flag(true)
        .args_override_self(true);
    let mut words: Vec<String> = more.iter().map(|word| (*word).to_owned()).collect();
    let mut names = BTreeSet::new();
    for (option, value) in parameters {
        words.extend(word(&command, option, value)?);
        names.insert(option.clone());
    }
    let matches = command.try_get_matches_from_mut(words);
    let args = matches.and_then(|mut matches| T::from_arg_matches_mut(&mut matches));
    match args {
        Ok(args) => Ok(RequestOptions { args, names }),
        Err(problem) => Err(of_clap(&problem)),
    }
}

/// Converts a parameter to a command-line option. A flag with the value false is left out.
fn word(command: &Command, name: &str, value: &str) -> Result<Option<String>, Problem> {
    let verb = command.get_name();
    let wrong = |detail: String| Err(Problem::of_parameter(name, detail));
    match class(name) {
        None => return wrong(format!("'{name}' is not an option of embody; leave it out")),
        Some(Class::Start) => {
            return wrong(format!(
                "'{name}' can be set only when embody serve is started; leave it out"
            ));
        }
        Some(Class::Request | Class::Narrower) => {}
    }
    let has_name = |option: &&Arg| {
        let former = option.get_all_aliases().unwrap_or_default();
        option.get_long() == Some(name) || former.contains(&name)
    };
    let found = command.get_arguments().find(has_name);
    let Some(option) = found.filter(|_| !OF_RUNS.contains(&(verb, name))) else {
        return wrong(format!("'{name}' is not an option of {verb}; leave it out"));
    };
    if !matches!(option.get_action(), ArgAction::SetTrue) {
        return Ok(Some(format!("--{name}={value}")));
    }
    match value {
        "" | "1" | "true" => Ok(Some(format!("--{name}"))),
        "0" | "false" => Ok(None),
        _ => wrong(format!("'{name}' must be 1 or 0, not '{value}'")),
    }
}

/// Converts an error of clap to one sentence that names the parameter.
fn of_clap(problem: &clap::Error) -> Problem {
    let option = problem
        .get(ContextKind::InvalidArg)
        .map(ToString::to_string);
    let name = option
        .as_deref()
        .and_then(|option| option.strip_prefix("--"))
        .and_then(|option| option.split([' ', '=', '[']).next())
        .unwrap_or_default()
        .to_owned();
    let text = problem.to_string();
    let paragraph = text.split("\n\n").next().unwrap_or_default();
    let sentence = paragraph.trim_start_matches("error: ").replace('\n', " ");
    Problem::of_parameter(&name, sentence.trim_end())
}

fn wider(name: &str) -> Problem {
    let detail = format!(
        "'{name}' would allow more than the options with which embody serve was started; a request can only allow less. To allow it, start embody serve with another value of --{name}"
    );
    Problem::of_parameter(name, detail)
}

/// Returns the problem of `embed` with more than the start allows. The options say which of `data` and `remote` the request
/// contains.
fn wider_embed((data, remote): (bool, bool)) -> Problem {
    let kinds = [(data, "data"), (remote, "remote")];
    let words: Vec<&str> = kinds.iter().filter(|it| it.0).map(|it| it.1).collect();
    let detail = format!(
        "'embed' would allow more than the options with which embody serve was started; start embody serve with --embed {}, and the request can use it",
        words.join(",")
    );
    Problem::of_parameter("embed", detail)
}

fn at_most<T: PartialOrd>(name: &str, own: &mut T, asked: T) -> Result<(), Problem> {
    if asked > *own {
        return Err(wider(name));
    }
    *own = asked;
    Ok(())
}

/// Applies a request's limit on the decompressed size of a source, which can only be lower than that of the start.
pub(super) fn expanded(own: u64, asked: u64) -> Result<u64, Problem> {
    let mut most = own;
    at_most("max-expanded", &mut most, asked)?;
    Ok(most)
}

/// Narrows the start policy by the options of a request. `names` are the options that the request contains, and `asked`
/// has their values.
pub(super) fn narrowed(
    start: &Policy,
    asked: &Policy,
    names: &BTreeSet<String>,
) -> Result<Policy, Problem> {
    let mut policy = start.clone();
    let (own, limits) = (&mut policy.limits, &asked.limits);
    for name in names.iter().map(String::as_str) {
        match name {
            "max-body" => at_most(name, &mut own.body, limits.body)?,
            "max-growth" => at_most(name, &mut own.growth, limits.growth)?,
            "max-message" => {
                let mut most = own.message.unwrap_or(u64::MAX);
                at_most(name, &mut most, limits.message.unwrap_or(u64::MAX))?;
                own.message = Some(most);
            }
            "max-fetches" => at_most(name, &mut own.fetches, limits.fetches)?,
            "max-redirects" => at_most(name, &mut own.redirects, limits.redirects)?,
            "max-depth" => at_most(name, &mut own.depth, limits.depth)?,
            "max-parts" => at_most(name, &mut own.parts, limits.parts)?,
            "max-header" => at_most(name, &mut own.header, limits.header)?,
            "max-work" => at_most(name, &mut own.work, limits.work)?,
            "timeout" => at_most(name, &mut own.timeout, limits.timeout)?,
            "deadline" => at_most(name, &mut own.deadline, limits.deadline)?,
            "fetch" => {
                if !asked.fetch.is_subset(&start.fetch) {
                    return Err(wider(name));
                }
                policy.fetch = asked.fetch.clone();
            }
            "deny-host" => policy.deny_hosts.extend(asked.deny_hosts.iter().cloned()),
            "deny-type" => policy.deny_types.extend(asked.deny_types.iter().cloned()),
            "allow-type" => {
                let is_within = |asked| start.allow_types.iter().any(|own| own.includes(asked));
                if !start.allow_types.is_empty() && !asked.allow_types.iter().all(is_within) {
                    return Err(wider(name));
                }
                policy.allow_types = asked.allow_types.clone();
            }
            "follow" => {
                let is_new = |form| asked.follow.contains(form) && !start.follow.contains(form);
                if Follow::ALL.into_iter().any(is_new) {
                    return Err(wider(name));
                }
                policy.follow = asked.follow;
            }
            "embed" => {
                let (own, asked) = (&mut policy.embed, &asked.embed);
                if (asked.data && !own.data) || (asked.remote && !own.remote) {
                    return Err(wider_embed((asked.data, asked.remote)));
                }
                (own.data, own.remote) = (asked.data, asked.remote);
            }
            "embed-kinds" => {
                let (own, asked) = (&mut policy.embed, &asked.embed);
                at_most(name, &mut own.pictures, asked.pictures)?;
                at_most(name, &mut own.fonts, asked.fonts)?;
                at_most(name, &mut own.media, asked.media)?;
                at_most(name, &mut own.styles, asked.styles)?;
            }
            "trackers" => {
                let is_fetched = |policy: &Policy| policy.embed.trackers == Trackers::Fetch;
                if is_fetched(asked) && !is_fetched(start) {
                    return Err(wider(name));
                }
                policy.embed.trackers = asked.embed.trackers;
            }
            "signed" => {
                if asked.protected == Protected::Rewrite && start.protected != Protected::Rewrite {
                    return Err(wider(name));
                }
                policy.protected = asked.protected;
            }
            "accept-mismatch" => {
                at_most(name, &mut policy.accept_mismatch, asked.accept_mismatch)?;
            }
            "links" => policy.links = asked.links,
            "provenance" => policy.provenance = asked.provenance,
            "on-failure" => policy.on_failure = asked.on_failure,
            // The other options are not a part of the policy.
            _ => {}
        }
    }
    Ok(policy)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::super::args::{
        DetachArgs, FilterArgs, InspectArgs, MailboxArgs, RestoreArgs,
    };
    use super::super::super::help::program;
    use super::*;

    #[test]
    fn each_option_of_the_program_is_classified() {
        let mut program = program();
        program.build();
        let mut names = BTreeSet::new();
        for command in program.get_subcommands() {
            for option in command.get_arguments() {
                names.extend(option.get_long().map(str::to_owned));
                let former = option.get_all_aliases().unwrap_or_default();
                names.extend(former.into_iter().map(str::to_owned));
            }
        }
        let classified: BTreeSet<String> =
            OPTIONS.iter().map(|(name, _)| (*name).to_owned()).collect();
        let missing: Vec<_> = names.difference(&classified).collect();
        assert!(missing.is_empty(), "classify these options: {missing:?}");
        assert!(
            OPTIONS.is_sorted_by_key(|(name, _)| name),
            "the table is not sorted"
        );
        // Without all features, some of these options do not exist in the program.
        if cfg!(all(feature = "milter", feature = "imap")) {
            let gone: Vec<_> = classified.difference(&names).collect();
            assert!(gone.is_empty(), "no command has these options: {gone:?}");
        }
    }

    fn asked(parameters: &[(&str, &str)]) -> Result<RequestOptions<FilterArgs>, Problem> {
        let owned: Vec<(String, String)> = parameters
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        parsed("filter", &owned, &[])
    }

    fn judged(start: &str, parameters: &[(&str, &str)]) -> Result<Policy, String> {
        let start = super::super::super::policy_of(start);
        let asked = asked(parameters).map_err(|problem| problem.detail)?;
        narrowed(&start, &asked.args.policy(), &asked.names).map_err(|problem| {
            assert_eq!(problem.parameter.as_deref(), Some(parameters[0].0));
            problem.detail
        })
    }

    #[test]
    fn parameters_that_would_widen_the_policy_are_refused_and_named() {
        for (start, name, value) in [
            ("", "allow-net", "10.0.0.0/8"),
            ("", "file-root", "/"),
            ("", "store", "/"),
            ("", "resolver", "cat"),
            ("", "allow-host", "intranet"),
            ("", "config", "/etc/passwd"),
            ("", "deny-host-file", "/etc/passwd"),
            ("", "ca-file", "/etc/passwd"),
            ("", "report", "/tmp/x"),
            ("", "record", "/tmp/x"),
            ("", "cache", "/tmp/x"),
            ("", "attachments", "/"),
            ("", "copies", "/"),
            ("", "proxy", "http://evil"),
            ("", "map", "a:=b:"),
            ("", "archive", "/"),
            ("", "output", "/tmp/x"),
            ("", "fetch", "https"),
            ("--fetch https", "fetch", "http,https"),
            ("", "max-body", "26M"),
            ("--max-body 1M", "max-body", "2M"),
            ("", "timeout", "0"),
            ("", "deadline", "61s"),
            ("--max-message 1M", "max-message", "2M"),
            ("", "max-work", "33"),
            ("", "embed", "data"),
            ("--embed data", "embed", "data,remote"),
            ("--embed data", "embed-kinds", "font"),
            ("", "trackers", "fetch"),
            ("", "signed", "rewrite"),
            ("", "accept-mismatch", "1"),
            ("", "follow", "all"),
            ("", "follow", "mailman"),
            ("--allow-type image/*", "allow-type", "text/plain"),
            ("--allow-type image/*", "allow-type", "*"),
            ("", "nonsense", "1"),
            ("", "listen", "x"),
            ("", "token-file", "x"),
            ("", "larger-than", "1"),
            ("", "links", "nonsense"),
            ("", "max-body", "nonsense"),
            ("", "mark", "2"),
            ("", "", "x"),
            ("", "Links", "keep"),
            ("", "links keep --fetch", "https"),
        ] {
            let problem = judged(start, &[(name, value)]).expect_err(name);
            assert!(problem.contains(name), "{name}: {problem}");
        }
    }

    #[test]
    fn parameters_that_narrow_the_policy_are_applied() {
        let all = "--fetch http,https --embed data,remote --max-body 2M --signed rewrite \
            --trackers fetch --accept-mismatch --allow-type image/* --follow all";
        let policy = judged(
            all,
            &[
                ("max-body", "1M"),
                ("fetch", "https"),
                ("embed", "data"),
                ("signed", "leave"),
                ("trackers", "blank"),
                ("accept-mismatch", "0"),
                ("allow-type", "image/png,image/gif"),
                ("follow", "none,mailman"),
                ("deny-host", "a.example"),
                ("deny-host", "b.example"),
                ("max-message", "5M"),
                ("links", "keep"),
            ],
        )
        .unwrap();
        let expected = super::super::super::policy_of(
            "--fetch https --embed data --max-body 1M --trackers blank --allow-type image/png,image/gif \
            --follow none,mailman --deny-host a.example,b.example --max-message 5M --links keep",
        );
        assert_eq!(format!("{policy:?}"), format!("{expected:?}"));
    }

    #[test]
    fn parameters_of_each_verb_are_those_of_its_command() {
        let one = [("larger-than".to_owned(), "1M".to_owned())];
        assert!(parsed::<DetachArgs>("detach", &one, &["--store=x"]).is_ok());
        assert!(parsed::<InspectArgs>("inspect", &one, &[]).is_ok());
        assert!(parsed::<RestoreArgs>("restore", &one, &["--store=x"]).is_err());
        assert!(parsed::<MailboxArgs>("messages", &one, &[]).is_err());
        let format = [("format".to_owned(), "mbox".to_owned())];
        assert!(parsed::<MailboxArgs>("messages", &format, &[]).is_ok());
    }
}
