//! Files in the directories of `--attachments`, for attachments to which a mail links with a URL on a server or another
//! machine.
//!
//! The last components of the URL's path are compared with the files in the directories, and the longest match is used. Files
//! are opened as in `--file-root`: whatever the path and symbolic links are, the file is inside the directory.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use percent_encoding::percent_decode_str;

use super::allowance::RequestAllowance;
use super::request::{Fetch, Request, of_file};
use super::system::file::Roots;
use crate::engine::policy::Policy;
use crate::engine::report::{Detail, Reason, Refusal, Setting};
use crate::engine::{Answer, Content, Mode, Need};
use crate::error::Error;
use crate::platform::is_device;

const MOST: usize = 16;

pub(crate) struct Attachments {
    policy: Arc<Policy>,
    roots: Roots,
    others: Arc<dyn Fetch>,
}

impl Attachments {
    pub(crate) fn open(policy: &Arc<Policy>, others: Arc<dyn Fetch>) -> Result<Self, Error> {
        Ok(Self {
            roots: Roots::open(&policy.attachments)?,
            policy: Arc::clone(policy),
            others,
        })
    }

    fn file(&self, url: &str, least: usize) -> Result<Option<PathBuf>, Refusal> {
        let components = components(url);
        for count in (least..=components.len()).rev() {
            let end: PathBuf = components.iter().skip(components.len() - count).collect();
            let mut found = Vec::new();
            for folder in &self.policy.attachments {
                let path = folder.join(&end);
                // The option may name a directory twice. The same path is counted once; otherwise the file would look
                // ambiguous.
                if self.roots.holds_file(&path) && !found.contains(&path) {
                    found.push(path);
                }
            }
            match found.as_slice() {
                [] => {}
                [file] => return Ok(Some(file.clone())),
                [first, second, ..] => return Err(ambiguous(first, second)),
            }
        }
        Ok(None)
    }

    /// Returns the file, if a directory of `--attachments` contains it, and otherwise the result of the other sources
    /// (`others`). A refusal is extended by the remark that the directories lack the file. `also_missing` adds this
    /// remark to an answer: only a probe needs this, because its answers merely announce content.
    fn file_or<T: From<Content>>(
        &self,
        request: &Request,
        others: impl Fn(&Request) -> Result<T, Refusal>,
        also_missing: impl Fn(T) -> T,
    ) -> Result<T, Refusal> {
        let Need::Attachment {
            url,
            accept,
            components,
        } = &request.need
        else {
            return others(request);
        };
        let begun = Instant::now();
        if let Some(path) = self.file(url, *components)? {
            let allowance =
                RequestAllowance::starting_now(self.policy.limits.timeout, request.deadline);
            allowance.remaining()?;
            let body = self.roots.read(&self.policy, &path, allowance)?;
            return Ok(of_file(&path, body, begun).into());
        }
        let request = Request {
            need: Need::of_url(url, accept.as_deref()),
            ..request.clone()
        };
        let judged = self.policy.judge_url(url);
        let answer = judged.and_then(|_| others(&request));
        answer.map(also_missing).map_err(refused_and_missing)
    }
}

/// Adds to the refusal of another source that no directory contains the file. The detail names the option
/// `--attachments`, because the summary of a run counts refusals by the option that would help.
fn refused_and_missing(refusal: Refusal) -> Refusal {
    Refusal {
        detail: if refusal.detail.is_empty() {
            missing()
        } else {
            missing().then("; ").then(refusal.detail)
        },
        ..refusal
    }
}

fn missing() -> Detail {
    Detail::from("the file is not in ").naming(Setting::Attachments)
}

impl Fetch for Attachments {
    fn fetch(&self, request: &Request) -> Result<Content, Refusal> {
        let others = |request: &Request| self.others.fetch(request);
        self.file_or(request, others, |content| content)
    }

    fn answer(&self, request: &Request, mode: Mode) -> Result<Answer, Refusal> {
        let others = |request: &Request| self.others.answer(request, mode);
        self.file_or(request, others, |answer| match answer {
            Answer::Announced(announcement) => Answer::Announced(announcement.after(missing())),
            content => content,
        })
    }

    fn heeds_date(&self) -> bool {
        self.others.heeds_date()
    }
}

pub(super) fn ambiguous(first: &Path, second: &Path) -> Refusal {
    let detail = format!(
        "two files match the reference: {} and {}",
        first.display(),
        second.display()
    );
    Refusal::lasting(Reason::AmbiguousFile, detail)
}

/// Returns the components of the path as file names, from the end back to the first invalid one. Each is percent-decoded once,
/// and none can lead to another directory.
fn components(url: &str) -> Vec<String> {
    let front = url.split_once(['?', '#']).map_or(url, |(front, _)| front);
    let without_scheme = match front.split_once(':') {
        Some((scheme, rest)) if !scheme.contains('/') => rest,
        _ => front,
    };
    let path = match without_scheme.strip_prefix("//") {
        Some(rest) => rest.split_once('/').unwrap_or_default().1,
        None => without_scheme,
    };
    let mut components: Vec<String> = path
        .rsplit('/')
        .map_while(|component| {
            let octets: Vec<u8> = percent_decode_str(component).collect();
            String::from_utf8(octets).ok().filter(|name| is_name(name))
        })
        .take(MOST)
        .collect();
    components.reverse();
    components
}

fn is_name(name: &str) -> bool {
    let leads_elsewhere = |letter: char| matches!(letter, '/' | '\\') || letter.is_control();
    let is_special = cfg!(windows) && (is_device(name) || name.contains(':'));
    !matches!(name, "" | "." | "..") && !name.contains(leads_elsewhere) && !is_special
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn components_are_names_from_the_end_of_the_path() {
        let of = |url| components(url).join("|");
        assert_eq!(of("http://h/a/b%20c/d.png?x/y#z"), "a|b c|d.png");
        assert_eq!(of("file:///C:/Users/me/a.png"), "C:|Users|me|a.png");
        assert_eq!(of("file:/srv/a"), "srv|a");
        assert_eq!(of("//h/a"), "a");
        assert_eq!(of("http://h/a/../b/c"), "b|c");
        assert_eq!(of("http://h/a/%2e%2e/b"), "b");
        assert_eq!(of("http://h/a%2f..%2fb/c"), "c");
        assert_eq!(of("http://h/a/b%00c"), "");
        assert_eq!(of("http://h/a/b%ff"), "");
        assert_eq!(of("http://h/a/"), "");
        assert_eq!(of("http://h"), "");
        assert_eq!(of(&format!("http://h/{}", "x/".repeat(99) + "y")).len(), 31);
    }
}
