//! `--attachments`: folders with attachments that a mail names by a URL of elsewhere.
//!
//! The longest end of the URL's path that exists beneath a folder is the file. Folders are opened like those of
//! `--file-root`: whatever path and links say, what is read is beneath them.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use percent_encoding::percent_decode_str;

use super::allowance::Allowance;
use super::request::{Fetch, Request, of_file};
use super::system::file::Roots;
use crate::engine::{Answer, Content, Mode, Need};
use crate::error::Error;
use crate::platform::is_device;
use crate::policy::Policy;
use crate::report::{Detail, Reason, Refusal, Setting};

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
            let end = components.iter().skip(components.len() - count);
            let end: PathBuf = end.collect();
            let mut found = Vec::new();
            for folder in &self.policy.attachments {
                let path = folder.join(&end);
                // One folder may be named twice.
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

    /// The file of one of the folders, or the answer of `others`.
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
            let allowance = Allowance::starting_now(self.policy.limits.timeout, request.deadline);
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

/// The refusal of another source, for a file that no folder has. By the setting that is named a summary counts such files.
fn refused_and_missing(refusal: Refusal) -> Refusal {
    Refusal {
        detail: match refusal.detail.is_empty() {
            true => missing(),
            false => missing().then("; ").then(refusal.detail),
        },
        ..refusal
    }
}

fn missing() -> Detail {
    Detail::from("it is not in ").naming(Setting::Attachments)
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
    let detail = format!("it may be {} or {}", first.display(), second.display());
    Refusal::lasting(Reason::AmbiguousFile, detail)
}

/// Each is decoded once, and none leads elsewhere.
fn components(url: &str) -> Vec<String> {
    let end = url.find(['?', '#']).unwrap_or(url.len());
    let path = url.get(..end).unwrap_or_default();
    let scheme = path.split_once(':');
    let scheme = scheme.filter(|(front, _)| !front.contains('/'));
    let path = scheme.map_or(path, |(_, path)| path);
    let path = match path.strip_prefix("//") {
        Some(rest) => rest.split_once('/').unwrap_or_default().1,
        None => path,
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
