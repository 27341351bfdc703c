//! Command line of the run, and the commands that its page recommends.

use std::path::{Path, PathBuf};

use super::super::repeated::RepeatedLinks;
use super::super::steps::ARCHIVE;
use super::super::words::quoted;

/// Data about the run that is not in the rows of its report.
pub(crate) struct RunContext<'r> {
    /// Name of the command: `embed`, `recover`, `convert`, `detach` or `restore`.
    pub verb: &'r str,
    pub sources: &'r [PathBuf],
    pub output: Option<&'r Path>,
    /// Options of this run that recommended commands must repeat.
    pub repeated: RepeatedLinks,
    pub start: &'r str,
    pub is_stopped: bool,
    /// `embody compare` commands that compare the sources with the results.
    pub proofs: &'r [String],
    /// One of the retrieved pictures, as a data: URL.
    pub thumbnail: Option<String>,
}

impl RunContext<'_> {
    /// Returns the paths of the mailboxes that the run wrote, or `None` if a path cannot be written in a command.
    fn results(&self) -> Option<Vec<String>> {
        let paths = match self.output {
            Some(output) => vec![output],
            None => self.sources.iter().map(PathBuf::as_path).collect(),
        };
        let names = paths.into_iter().map(|path| {
            let name = path.to_str().filter(|name| *name != "-")?;
            let is_harmless = crate::cli::say::harmless_within(name) == name;
            is_harmless.then(|| name.to_owned())
        });
        names.collect()
    }

    /// Returns a command that runs again, with the result of this run as its source.
    pub(crate) fn again(&self) -> Option<String> {
        self.further("")
    }

    /// Returns a command that runs again with a web archive. `None` if this run already used one, or if its command
    /// does not use the web.
    pub(crate) fn archived(&self) -> Option<String> {
        let is_of_web = matches!(self.verb, "embed" | "recover" | "convert");
        let can_use = is_of_web && !self.repeated.has("archive") && !self.repeated.has("offline");
        let more = can_use.then(|| format!(" --archive {}", quoted(ARCHIVE)))?;
        self.further(&more)
    }

    fn further(&self, more: &str) -> Option<String> {
        let results = self.results()?;
        let names: Vec<String> = results.iter().map(|name| quoted(name)).collect();
        let (verb, options) = (self.verb, self.repeated.all());
        let names = names.join(" ");
        let to = match (self.output, results.as_slice()) {
            (Some(_), [name]) => format!("--output {}", quoted(&further_name(name))),
            _ => "--in-place".to_owned(),
        };
        Some(format!("embody {verb} {names} {to}{options}{more}"))
    }
}

/// Returns a file name for the next result: `kept.mbox` becomes `kept-2.mbox`.
pub(crate) fn further_name(name: &str) -> String {
    let path = Path::new(name);
    let file_name = path.file_name().map(|it| it.to_string_lossy());
    let file = file_name.as_deref().unwrap_or("mail");
    // All extensions are kept (`.mbox.gz`), so that the next result is compressed too.
    let (stem, endings) = match file.split_once('.') {
        Some((stem, endings)) if !stem.is_empty() => (stem, format!(".{endings}")),
        _ => (file, String::new()),
    };
    let further = match stem
        .rsplit_once('-')
        .map(|(name, number)| (name, number.parse::<u32>()))
    {
        Some((name, Ok(number))) => format!("{name}-{}{endings}", number.saturating_add(1)),
        _ => format!("{stem}-2{endings}"),
    };
    path.with_file_name(further).display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn result_of_another_run_has_a_name_of_its_own() {
        for (name, expected) in [
            ("kept.mbox", "kept-2.mbox"),
            ("/a/kept-2.mbox.gz", "/a/kept-3.mbox.gz"),
            ("Mail", "Mail-2"),
            (".mail", ".mail-2"),
            ("a-b", "a-b-2"),
        ] {
            assert_eq!(further_name(name), expected);
        }
    }
}
