//! A scripted server with any folders and messages, which a test can change between two runs or answer itself.

use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::sync::{Arc, Mutex, MutexGuard};

use tempfile::TempDir;

use super::hostile::mails;
use super::scripted::{Scripted, plain};
use crate::common::bounded::finished;
use crate::common::programs::{embody, stderr};

pub(super) const JANUARY: &str = " 3-Jan-2020 10:00:00 +0100";
pub(super) const MAY: &str = " 4-May-2023 10:00:00 +0000";

#[derive(Clone)]
pub(super) struct Mail {
    pub(super) uid: u32,
    pub(super) text: String,
    pub(super) date: &'static str,
    pub(super) flags: &'static str,
    /// Announced size in bytes. `None` for the size of the text.
    pub(super) size: Option<usize>,
}

/// Returns a mail whose size depends only on `more`.
pub(super) fn mail(uid: u32, number: u32, more: usize) -> Mail {
    let rest = "x".repeat(more);
    Mail {
        uid,
        text: format!(
            "From: a@example.org\r\nSubject: {number:04}\r\nMessage-ID: <{number:04}@example.org>\r\nDate: Fri, 3 Jan 2020 10:00:00 +0100\r\n\r\nMail {number:04} {rest}\r\n"
        ),
        date: JANUARY,
        flags: "\\Seen",
        size: None,
    }
}

pub(super) struct Folders {
    pub(super) all: Vec<(String, Vec<Mail>)>,
    pub(super) uidvalidity: u32,
    selected: String,
}

impl Folders {
    pub(super) fn of(&mut self, name: &str) -> &mut Vec<Mail> {
        let found = self.all.iter_mut().find(|(it, _)| it == name);
        &mut found.unwrap_or_else(|| panic!("no folder {name}")).1
    }

    pub(super) fn selected(&self) -> &str {
        &self.selected
    }

    fn uidnext(mails: &[Mail]) -> u32 {
        mails.iter().map(|mail| mail.uid).max().unwrap_or(0) + 1
    }

    /// Returns the messages of the selected folder that a command names.
    pub(super) fn asked(&self, command: &str) -> Vec<(usize, Mail)> {
        let set = command.split(' ').nth(2).unwrap_or_default();
        let is_asked = |uid: u32| {
            set.split(',').any(|range| {
                let (first, last) = range.split_once(':').unwrap_or((range, range));
                let number = |text: &str| text.parse().unwrap_or(0);
                (number(first)..=number(last)).contains(&uid)
            })
        };
        let selected = self.all.iter().find(|(name, _)| *name == self.selected);
        let mails = selected.map(|(_, mails)| mails.clone()).unwrap_or_default();
        let numbered = (1..).zip(mails);
        numbered.filter(|(_, mail)| is_asked(mail.uid)).collect()
    }

    pub(super) fn answer(&mut self, command: &str) -> Option<String> {
        let named = |command: &str| {
            let rest = command.split_once(' ').unwrap_or_default().1;
            let name = rest.split(" (").next().unwrap_or_default();
            name.trim_matches('"').to_owned()
        };
        let untagged = match command.split(' ').next().unwrap_or_default() {
            "LIST" => {
                let lines = self.all.iter();
                lines
                    .map(|(name, _)| format!("* LIST () \"/\" \"{name}\"\r\n"))
                    .collect()
            }
            word @ ("EXAMINE" | "SELECT" | "STATUS") => {
                let name = named(command);
                let Some((_, mails)) = self.all.iter().find(|(it, _)| *it == name) else {
                    return Some("TAG NO no such folder\r\n".to_owned());
                };
                let (count, next, valid) = (mails.len(), Self::uidnext(mails), self.uidvalidity);
                if word == "STATUS" {
                    format!(
                        "* STATUS \"{name}\" (MESSAGES {count} UIDNEXT {next} UIDVALIDITY {valid})\r\n"
                    )
                } else {
                    self.selected = name;
                    format!(
                        "* {count} EXISTS\r\n* OK [UIDVALIDITY {valid}] x\r\n* OK [UIDNEXT {next}] x\r\n* OK [PERMANENTFLAGS (\\Deleted \\Seen \\*)] x\r\n"
                    )
                }
            }
            "UID" if command.starts_with("UID SEARCH") => {
                let words: Vec<&str> = command.split(' ').collect();
                let at = words.iter().skip(2).position(|word| *word == "UID");
                let only: Option<u32> = at.and_then(|at| words.get(at + 3)?.parse().ok());
                let selected = self.selected.clone();
                let uids = self.of(&selected).iter().map(|mail| mail.uid);
                let found: Vec<String> = uids
                    .filter(|uid| only.is_none_or(|only| only == *uid))
                    .map(|uid| uid.to_string())
                    .collect();
                format!("* SEARCH {}\r\n", found.join(" "))
            }
            "UID" if command.contains("BODY.PEEK[]<") => {
                let range = command.split_once("[]<").unwrap().1;
                let from: usize = range.split_once('.').unwrap().0.parse().unwrap();
                let body = |(at, mail): (usize, Mail)| {
                    let rest = mail.text.get(from..).unwrap_or_default();
                    let text = &rest[..rest.len().min(1 << 20)];
                    let (uid, length) = (mail.uid, text.len());
                    format!("* {at} FETCH (UID {uid} BODY[]<{from}> {{{length}}}\r\n{text})\r\n")
                };
                self.asked(command).into_iter().map(body).collect()
            }
            "UID" if command.starts_with("UID FETCH") => {
                let data = |(at, mail): (usize, Mail)| {
                    let Mail {
                        uid,
                        text,
                        date,
                        flags,
                        size,
                    } = mail;
                    let size = size.unwrap_or(text.len());
                    format!(
                        "* {at} FETCH (UID {uid} FLAGS ({flags}) INTERNALDATE \"{date}\" RFC822.SIZE {size} BODYSTRUCTURE (\"text\" \"plain\" NIL NIL NIL \"7bit\" 7 1))\r\n"
                    )
                };
                self.asked(command).into_iter().map(data).collect()
            }
            _ => return None,
        };
        Some(format!("{untagged}TAG OK done\r\n"))
    }
}

pub(super) struct Account {
    folders: Arc<Mutex<Folders>>,
    pub(super) server: Scripted,
}

impl Account {
    pub(super) fn of(all: &[(&str, Vec<Mail>)]) -> Self {
        Self::answering(all, |_, _| None)
    }

    /// Starts a server. `answer` returns its own response to a command, or `None` for that of the folders.
    pub(super) fn answering(
        all: &[(&str, Vec<Mail>)],
        answer: impl Fn(&str, &mut Folders) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        let folders = Arc::new(Mutex::new(Folders {
            all: all
                .iter()
                .map(|(name, mails)| ((*name).to_owned(), mails.clone()))
                .collect(),
            uidvalidity: 7,
            selected: String::new(),
        }));
        let state = Arc::clone(&folders);
        let server = Scripted::answering(move |command| {
            let mut state = state.lock().unwrap();
            let own = answer(command, &mut state);
            own.or_else(|| state.answer(command))
                .or_else(|| match command {
                    "greeting" => {
                        Some("* OK [CAPABILITY IMAP4rev1 AUTH=PLAIN SASL-IR UIDPLUS] hi\r\n".into())
                    }
                    "CAPABILITY" => Some(
                        "* CAPABILITY IMAP4rev1 AUTH=PLAIN SASL-IR UIDPLUS\r\nTAG OK done\r\n"
                            .into(),
                    ),
                    _ => Some(plain(command)),
                })
        });
        Self { folders, server }
    }

    pub(super) fn folders(&self) -> MutexGuard<'_, Folders> {
        self.folders.lock().unwrap()
    }
}

/// A directory in which the program runs.
pub(super) struct Place {
    pub(super) folder: TempDir,
}

/// Result of a run.
pub(super) struct Ended {
    pub(super) code: Option<i32>,
    pub(super) said: String,
    pub(super) printed: String,
}

impl Place {
    pub(super) fn new() -> Self {
        Self {
            folder: TempDir::new().unwrap(),
        }
    }

    pub(super) fn out(&self) -> PathBuf {
        self.folder.path().join("out")
    }

    /// Runs a command over the URL of an account.
    pub(super) fn run(&self, verb: &str, url: &str, more: &[&str]) -> Ended {
        let path = |name: &str| self.folder.path().join(name).into_os_string();
        let mut program = embody();
        program.args([verb, "--allow-plaintext", "--connections", "1"]);
        program
            .args(["--password-command", "echo secret"])
            .args(more);
        match verb {
            "convert" => drop(program.args([url, "--output"]).arg(path("out"))),
            "detach" => drop(
                program
                    .args([url, "--in-place", "--larger-than", "10", "--store"])
                    .arg(path("store"))
                    .arg("--state")
                    .arg(path("state")),
            ),
            "compare" => drop(program.arg(url).arg(path("out"))),
            "merge" => drop(program.arg(url).arg("--output").arg(path("merged"))),
            _ => drop(program.arg(url)),
        }
        let child = program
            .current_dir(self.folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let output: Output = finished(child);
        Ended {
            code: output.status.code(),
            said: stderr(&output),
            printed: String::from_utf8_lossy(&output.stdout).into_owned(),
        }
    }

    /// Returns the names and texts of the mails in the backup.
    pub(super) fn saved(&self) -> Vec<(String, String)> {
        mails(&self.out())
            .iter()
            .map(|path: &PathBuf| (named(path), std::fs::read_to_string(path).unwrap()))
            .collect()
    }

    /// Returns the texts of the mails in the backup, sorted.
    pub(super) fn texts(&self) -> Vec<String> {
        let mut texts: Vec<String> = self.saved().into_iter().map(|(_, text)| text).collect();
        texts.sort();
        texts
    }
}

fn named(path: &Path) -> String {
    path.file_name().unwrap().to_str().unwrap().to_owned()
}

/// Returns the texts of mails, sorted.
pub(super) fn texts<'m>(mails: impl IntoIterator<Item = &'m Mail>) -> Vec<String> {
    let mut texts: Vec<String> = mails.into_iter().map(|mail| mail.text.clone()).collect();
    texts.sort();
    texts
}
