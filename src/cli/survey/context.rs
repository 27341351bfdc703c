//! The sources and options of a survey, and the commands that it recommends. Each command reads the same sources and
//! writes a new mailbox, so that the original mail is not changed.

use std::borrow::Cow;
use std::collections::HashSet;
use std::path::Path;

use super::super::args::SurveyGroup;
use super::repeated::RepeatedLinks;
use super::words::quoted;
use crate::mailbox::SuffixClass;

/// Maximum number of sources for which commands are printed. With more sources, the commands would be too long to read.
const SOURCES: usize = 20;

#[derive(Clone, Debug)]
pub(crate) struct NamedSource {
    pub name: String,
    pub kind: SourceKind,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SourceKind {
    /// One mbox, which can be compressed.
    File,
    /// A single message in a file.
    Message,
    Archive,
    Folder,
    /// A source that no command can name: standard input, or a path that is not text or contains control characters.
    Nameless,
}

pub(crate) struct SurveyContext<'l> {
    pub larger_than: u64,
    pub base_url: &'l str,
    pub is_probed: bool,
    /// Whether requests were sent, and no server responded in the whole run.
    pub has_no_response: bool,
    pub has_archive: bool,
    pub by: &'l [SurveyGroup],
    pub sources: Vec<NamedSource>,
    pub store: Option<(String, Option<&'l str>)>,
    /// The option `--format` of this run with a blank before it, which each recommended command repeats. Empty if the
    /// option was not used.
    pub format: String,
    /// Options of this run about requests, which a recommended command must repeat if it makes requests.
    pub repeated: RepeatedLinks,
    /// Path of the HTML page that this run writes. A recommended `inspect --probe` command writes its page to the same
    /// path.
    pub page: Option<String>,
    /// Options that would have allowed the requests that the options of a probe refused.
    pub remedy: Option<String>,
    pub start: &'l str,
}

impl SurveyContext<'_> {
    /// Returns the commands `embody VERB SOURCE... --output RESULT OPTIONS`: one for all sources, whose results are then
    /// in one directory, or one for each source if two of these results would have the same name.
    pub(crate) fn commands(&self, verb: &str, options: &str, purpose: &str) -> Vec<String> {
        let options = format!("{options}{}", self.format);
        match self.named() {
            None => vec![format!("embody {verb} MAILBOX --output NEW{options}")],
            Some(sources) => match together(sources, purpose) {
                Some(result) => vec![command(verb, &all_quoted(sources), &result, &options)],
                None => commands(verb, &names(sources), &results(sources, purpose), &options),
            },
        }
    }

    /// Returns the commands of a later step. They read the results of the step with the purpose `first`. Returns `None` if
    /// there are too many sources, or if a source has no name.
    pub(crate) fn commands_after(
        &self,
        first: &str,
        verb: &str,
        options: &str,
        purpose: &str,
    ) -> Option<Vec<String>> {
        let sources = self.named()?;
        let options = format!("{options}{}", self.format);
        let [one, other] = [first, purpose].map(|purpose| together(sources, purpose));
        Some(match (one, other) {
            (Some(from), Some(to)) => vec![command(verb, &from, &to, &options)],
            _ => {
                let [from, to] = [first, purpose].map(|purpose| results(sources, purpose));
                commands(verb, &from, &to, &options)
            }
        })
    }

    /// Returns the sentence about the results of the commands that write.
    pub(crate) fn result_is_new(&self) -> &'static str {
        let is_message = |source: &NamedSource| source.kind == SourceKind::Message;
        match self.sources.as_slice() {
            [source] if is_message(source) => {
                "The result is a new file, and your message is not changed."
            }
            [_] | [] => "The result is a new mailbox, and your mailbox is not changed.",
            sources if sources.iter().all(is_message) => {
                "The results are new files, and your messages are not changed."
            }
            _ => "The results are new mailboxes, and your mailboxes are not changed.",
        }
    }

    /// Returns the commands of [`commands`](Self::commands), followed by one `embody compare` command for each source.
    /// The user checks the result against the source with this command.
    pub(crate) fn compared(&self, verb: &str, options: &str, purpose: &str) -> Vec<String> {
        let mut lines = self.commands(verb, options, purpose);
        lines.extend(self.compares(purpose));
        lines
    }

    /// Returns the commands that check the results of a step against the sources.
    pub(crate) fn compares(&self, purpose: &str) -> Vec<String> {
        let sources = self.named().unwrap_or_default();
        let results = match together(sources, purpose) {
            Some(result) => vec![result; sources.len()],
            None => results(sources, purpose),
        };
        let pairs = sources.iter().zip(results);
        let compare = |(source, result): (&NamedSource, String)| {
            let (name, result) = (quoted(&source.name), quoted(&result));
            format!("embody compare {name} {result}{}", self.format)
        };
        pairs.map(compare).collect()
    }

    /// Returns the command with all sources as its arguments. The command only reads the sources, so one command is
    /// sufficient.
    pub(crate) fn reading(&self, command: &str) -> Vec<String> {
        let sources = self
            .named()
            .map_or_else(|| "MAILBOX".to_owned(), all_quoted);
        vec![format!("{command}{} {sources}", self.format)]
    }

    /// Returns the options for the store. The default is a new directory next to the results.
    pub(crate) fn storing(&self) -> String {
        match &self.store {
            None => " --store mail-attachments".to_owned(),
            Some((store, None)) => format!(" --store {}", quoted(store)),
            Some((store, Some(url))) => {
                format!(" --store {} --base-url {}", quoted(store), quoted(url))
            }
        }
    }

    pub(crate) fn named(&self) -> Option<&[NamedSource]> {
        let is_nameless = |it: &NamedSource| it.kind == SourceKind::Nameless;
        let is_few = (1..=SOURCES).contains(&self.sources.len());
        (is_few && !self.sources.iter().any(is_nameless)).then_some(&self.sources)
    }
}

fn names(sources: &[NamedSource]) -> Vec<String> {
    sources.iter().map(|source| source.name.clone()).collect()
}

fn commands(verb: &str, from: &[String], to: &[String], options: &str) -> Vec<String> {
    let lines = from
        .iter()
        .zip(to)
        .map(|(from, to)| command(verb, &quoted(from), &quoted(to), options));
    lines.collect()
}

/// `sources` and `result` are words of a shell.
fn command(verb: &str, sources: &str, result: &str, options: &str) -> String {
    format!("embody {verb} {sources} --output {result}{options}")
}

/// Returns the directory for the results of all sources. Returns `None` for a single source, and if the results of two
/// sources could have the same name.
fn together(sources: &[NamedSource], purpose: &str) -> Option<String> {
    let mut taken = HashSet::new();
    let is_free = |source: &NamedSource| {
        let name = plain_name(source);
        name.is_some_and(|name| taken.insert(name.to_lowercase()))
    };
    if sources.len() < 2 || !sources.iter().all(is_free) {
        return None;
    }
    let numbered = (2..).map(|number| format!("{purpose}-{number}"));
    let mut results = std::iter::once(purpose.to_owned()).chain(numbered);
    results.find(|name| !taken.contains(name))
}

fn results(sources: &[NamedSource], purpose: &str) -> Vec<String> {
    let mut taken = HashSet::new();
    let result = |source| result(source, purpose, &mut taken);
    sources.iter().map(result).collect()
}

/// Returns the name of a source without its directory and without the endings of archives and mailboxes.
fn plain_name(source: &NamedSource) -> Option<Cow<'_, str>> {
    let mut path = Path::new(&source.name);
    while let (Some(stem), Some(ending)) = (path.file_stem(), path.extension())
        && source.kind != SourceKind::Folder
        && SuffixClass::of(ending).is_some_and(is_dropped)
    {
        path = Path::new(stem);
    }
    path.file_name().map(|name| name.to_string_lossy())
}

/// Returns whether the name of a result does not contain the suffix of its source.
fn is_dropped(class: SuffixClass) -> bool {
    let is_archive = matches!(class, SuffixClass::Archive | SuffixClass::Compressed);
    is_archive || class.is_mbox() || class == SuffixClass::Message
}

fn result(source: &NamedSource, purpose: &str, taken: &mut HashSet<String>) -> String {
    let name = plain_name(source).unwrap_or(Cow::Borrowed("mail"));
    let ending = match source.kind {
        SourceKind::Folder => "",
        SourceKind::Message => ".eml",
        _ => ".mbox",
    };
    let number = |number: usize| match number {
        1 => format!("{name}-{purpose}{ending}"),
        _ => format!("{name}-{purpose}-{number}{ending}"),
    };
    let free = (1..).map(number).find(|name| taken.insert(name.clone()));
    free.unwrap_or_default()
}

pub(super) fn all_quoted<'s>(sources: impl IntoIterator<Item = &'s NamedSource>) -> String {
    let names = sources.into_iter().map(|it| quoted(&it.name));
    names.collect::<Vec<String>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_the_current_directory_and_have_names_of_their_own() {
        let mut taken = HashSet::new();
        let mut of = |name: &str, kind| {
            let name = name.to_owned();
            result(&NamedSource { name, kind }, "embedded", &mut taken)
        };
        assert_eq!(
            of("/a/takeout-1.tar.gz", SourceKind::Archive),
            "takeout-1-embedded.mbox"
        );
        assert_eq!(
            of("takeout-1.zip", SourceKind::Archive),
            "takeout-1-embedded-2.mbox"
        );
        assert_eq!(of("Mail.zip/", SourceKind::Folder), "Mail.zip-embedded");
        assert_eq!(of("..", SourceKind::Folder), "mail-embedded");
        assert_eq!(of("a.eml", SourceKind::Message), "a-embedded.eml");
    }
}
