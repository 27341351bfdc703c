//! How mail was looked at, and the page's commands: each works on these sources; mail as it was stays, or as a backup.

use std::collections::HashSet;
use std::path::Path;

use clap::ValueEnum;

const SOURCES: usize = 20;

const ENDINGS: [&str; 8] = ["zip", "tgz", "tar", "gz", "zst", "bz2", "xz", "mbox"];

/// What numbers are grouped by.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Group {
    /// The hosts that mail refers to
    Host,
    /// The media types of attachments
    Type,
    /// The years of the Date fields
    Year,
    /// The domains of the From fields
    Sender,
    /// What would become of references and documents
    Outcome,
}

pub struct NamedSource {
    pub name: String,
    pub kind: SourceKind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum SourceKind {
    File,
    Archive,
    Folder,
    /// Standard input, or a name that no command line of text can hold.
    Nameless,
}

pub struct Looked<'l> {
    pub larger_than: u64,
    pub base_url: &'l str,
    pub is_probed: bool,
    pub has_archive: bool,
    pub by: &'l [Group],
    pub sources: Vec<NamedSource>,
    pub store: Option<(String, Option<&'l str>)>,
    pub format: String,
    pub start: &'l str,
}

impl Looked<'_> {
    /// A command up to the sources, and what becomes of them, in a word: a line for each result that is written beside.
    pub(super) fn commands(&self, command: &str, purpose: &str) -> Vec<String> {
        let command = format!("{command}{}", self.format);
        let in_place = format!("{command} --in-place --backup .before-{purpose}");
        let Some(sources) = self.named() else {
            return vec![format!("{in_place} MAILBOX...")];
        };
        let (files, others): (Vec<&NamedSource>, Vec<&NamedSource>) =
            sources.iter().partition(|it| it.kind == SourceKind::File);
        let mut lines = Vec::new();
        if !files.is_empty() {
            lines.push(format!("{in_place} {}", all_quoted(files)));
        }
        let mut taken = HashSet::new();
        for source in others {
            let new = quoted(&result(source, purpose, &mut taken));
            let name = quoted(&source.name);
            lines.push(format!("{command} {name} --output {new}"));
        }
        lines
    }

    pub(super) fn reading(&self, command: &str) -> Vec<String> {
        let sources = self.named().map(all_quoted);
        let sources = sources.unwrap_or_else(|| "MAILBOX...".to_owned());
        vec![format!("{command}{} {sources}", self.format)]
    }

    /// By default, a folder beside the results, which `detach` makes.
    pub(super) fn storing(&self) -> String {
        match &self.store {
            None => "--store mail-attachments".to_owned(),
            Some((store, None)) => format!("--store {}", quoted(store)),
            Some((store, Some(url))) => {
                format!("--store {} --base-url {}", quoted(store), quoted(url))
            }
        }
    }

    fn named(&self) -> Option<&[NamedSource]> {
        let is_nameless = |it: &NamedSource| it.kind == SourceKind::Nameless;
        let is_few = (1..=SOURCES).contains(&self.sources.len());
        (is_few && !self.sources.iter().any(is_nameless)).then_some(&self.sources)
    }
}

fn result(source: &NamedSource, purpose: &str, taken: &mut HashSet<String>) -> String {
    let mut path = Path::new(&source.name);
    while let (Some(stem), Some(ending)) = (path.file_stem(), path.extension())
        && source.kind != SourceKind::Folder
        && ENDINGS.iter().any(|it| ending.eq_ignore_ascii_case(it))
    {
        path = Path::new(stem);
    }
    let name = path.file_name().map(|name| name.to_string_lossy());
    let name = name.as_deref().unwrap_or("mail");
    let ending = match source.kind {
        SourceKind::Folder => "",
        _ => ".mbox",
    };
    let number = |number: usize| match number {
        1 => format!("{name}-{purpose}{ending}"),
        _ => format!("{name}-{purpose}-{number}{ending}"),
    };
    let free = (1..).map(number).find(|name| taken.insert(name.clone()));
    free.unwrap_or_default()
}

fn all_quoted<'s>(sources: impl IntoIterator<Item = &'s NamedSource>) -> String {
    let names = sources.into_iter().map(|it| quoted(&it.name));
    names.collect::<Vec<String>>().join(" ")
}

fn quoted(name: &str) -> String {
    let name = match name.starts_with('-') {
        true => format!("./{name}"),
        false => name.to_owned(),
    };
    let is_plain = |symbol: char| symbol.is_ascii_alphanumeric() || "/._-+:@,".contains(symbol);
    match !name.is_empty() && name.chars().all(is_plain) {
        true => name,
        false => format!("'{}'", name.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_takes_a_name_as_one_word_and_embody_as_no_option() {
        assert_eq!(quoted("/srv/mail/a.mbox"), "/srv/mail/a.mbox");
        assert_eq!(quoted("a b; rm -rf ~"), "'a b; rm -rf ~'");
        assert_eq!(quoted("it's"), "'it'\\''s'");
        assert_eq!(quoted("-rf"), "./-rf");
        assert_eq!(quoted("- x"), "'./- x'");
    }

    #[test]
    fn results_stand_beside_and_have_names_of_their_own() {
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
    }
}
