//! Checks before the first source is read: whether the sources, the output and the other files fit together.

#[cfg(all(unix, feature = "imap"))]
use super::super::remote;
use super::super::report_file;
use super::super::streams::{is_folder, is_standard};
use super::super::survey::check_page;
use super::Walk;
use crate::error::Error;
use crate::mailbox::check_early;
use crate::mailbox::find::{StartKind, not_in_place};

impl Walk<'_> {
    pub(crate) fn check(&self) -> Result<(), Error> {
        self.check_standard_streams()?;
        if let Some(page) = &self.args.html {
            if is_standard(page) {
                let what = "--html cannot write to standard output here; name a file";
                return Err(Error::Usage(what.into()));
            }
            report_file::check_apart("--html", page, &self.sources, self.targets()?)?;
            check_page(page)?;
        }
        #[cfg(all(unix, feature = "imap"))]
        {
            let are_remote = remote::are_remote(&self.sources, &self.args.imap)?;
            self.args.check_replacing(are_remote)?;
            if are_remote {
                // Only the URL of the account is checked now. Its folders are listed later.
                for source in &self.sources {
                    remote::account(source, &self.args.imap, self.policy)?;
                }
                let targets = self.targets()?;
                if let [target] = targets {
                    remote::check_name(target)?;
                }
                for target in targets {
                    remote::check(&self.options, target)?;
                }
                return report_file::check(self.saying.report.as_deref(), &self.sources, targets);
            }
        }
        let sources = self.known_sources().iter();
        for source in sources.clone().filter(|_| self.args.in_place) {
            // An archive cannot be changed in place. This is checked for all sources before the first one is changed.
            // Unreadable sources are reported later.
            if source.kind() == Some(StartKind::Archive) {
                return Err(Error::Usage(not_in_place(source.path()).detail()));
            }
        }
        let targets = self.targets()?;
        for (source, target) in sources.zip(targets) {
            if !is_standard(source.path()) {
                let target = Some(target.as_path()).filter(|target| !is_standard(target));
                check_early(source, target, &self.options)?;
            }
        }
        report_file::check(self.saying.report.as_deref(), &self.sources, targets)
    }

    fn check_standard_streams(&self) -> Result<(), Error> {
        let from_standard = self.sources.iter().filter(|path| is_standard(path)).count();
        let (is_several, form) = (self.sources.len() > 1, self.options.output_format);
        let problem = match self.output {
            None if from_standard > 0 && !self.args.in_place => {
                "standard input cannot be combined with other sources; use it as the only source"
            }
            None if from_standard > 0 => {
                "standard input cannot be replaced; name a file, or --output instead of --in-place"
            }
            _ if from_standard > 1 => "standard input can be read only once",
            Some(output) if is_standard(output) && is_several => {
                "--output - works with only one source; for several sources, name a folder"
            }
            Some(_) if from_standard > 0 && is_several => {
                "standard input has no name for a file in the output folder; convert it separately"
            }
            Some(output) if !is_standard(output) => return Ok(()),
            Some(_) if self.options.by_label.is_some() || form.is_directory() => {
                "standard output can receive only one mbox or message; name a directory with --output for the result"
            }
            Some(_) if !form.is_file() && self.sources.iter().any(|path| is_folder(path)) => {
                "a folder cannot be written to standard output; name a new folder, or use --output-format mbox"
            }
            _ => return Ok(()),
        };
        Err(Error::Usage(problem.into()))
    }
}
