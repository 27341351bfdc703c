//! Obtains a password or a token. The secret is kept in memory for further connections, and is never displayed.

use std::fmt;
use std::io::{self, IsTerminal as _};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Mutex;

use crate::error::{Error, unpoisoned};
use crate::platform;

/// Maximum length of a password or a token, in bytes. A longer output of a command is not a password.
const LONGEST: usize = 64 << 10;

/// Callback that asks the user for a password. The text is the prompt.
pub(crate) type Prompt = Box<dyn Fn(&str) -> io::Result<String> + Send + Sync>;

/// Source of a password or a token.
pub(crate) enum SecretFrom {
    /// The first line that a shell command prints.
    Command(String),
    /// The first line of a file.
    File(PathBuf),
    /// A prompt on the terminal.
    Prompt(Prompt),
}

/// A password or a token. It is obtained on first use.
pub(crate) struct Secret {
    from: SecretFrom,
    known: Mutex<Option<String>>,
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(...)")
    }
}

impl Secret {
    pub(crate) fn new(from: SecretFrom) -> Self {
        Self {
            from,
            known: Mutex::new(None),
        }
    }

    /// Returns the secret. The user or the command is asked only once in a run. `whose` is `user at host`, for the
    /// prompt and for errors.
    ///
    /// # Errors
    /// [`Error::Usage`], [`Error::Read`]. The messages contain neither the secret nor the output of the command.
    pub(crate) fn reveal(&self, whose: &str) -> Result<String, Error> {
        let mut known = unpoisoned(self.known.lock());
        if let Some(known) = known.as_ref() {
            return Ok(known.clone());
        }
        let asked = self.ask(whose)?;
        *known = Some(asked.clone());
        Ok(asked)
    }

    /// Replaces the secret after the server refused `refused`. Returns whether the secret is a different one now. Only a
    /// command can return another secret, for example a new token after the old one expired.
    pub(crate) fn renew(&self, refused: &str, whose: &str) -> Result<bool, Error> {
        if !matches!(self.from, SecretFrom::Command(_)) {
            return Ok(false);
        }
        let mut known = unpoisoned(self.known.lock());
        if known.as_deref().is_some_and(|known| known != refused) {
            // Another connection has already replaced the refused secret. The new secret was not refused yet, so it can
            // be tried at once.
            return Ok(true);
        }
        let asked = self.ask(whose)?;
        let is_new = asked != refused;
        *known = Some(asked);
        Ok(is_new)
    }

    fn ask(&self, whose: &str) -> Result<String, Error> {
        let text = match &self.from {
            SecretFrom::Command(command) => printed(command)?,
            SecretFrom::File(path) => {
                let what = format!("the password file {}", path.display());
                std::fs::read(path).map_err(Error::cannot_read(what))?
            }
            SecretFrom::Prompt(prompt) => match prompt(&format!("Password for {whose}: ")) {
                Err(why) if why.kind() == io::ErrorKind::Interrupted => {
                    return Err(Error::Interrupted);
                }
                asked => asked
                    .map_err(Error::cannot_read("a password from the terminal"))?
                    .into_bytes(),
            },
        };
        let first = text.split(|octet| *octet == b'\n').next().unwrap_or(&[]);
        let line = first.strip_suffix(b"\r").unwrap_or(first);
        let wrong = |what: &str| Error::Usage(format!("{what} for {whose}").into());
        if line.is_empty() {
            return Err(wrong("the password is empty"));
        }
        if line.len() > LONGEST {
            return Err(wrong("the password is longer than 64 KiB"));
        }
        if line.contains(&0) {
            return Err(wrong("the password contains a NUL byte"));
        }
        let line = String::from_utf8(line.to_vec());
        line.map_err(|_| wrong("the password is not UTF-8"))
    }
}

fn printed(command: &str) -> Result<Vec<u8>, Error> {
    let failed = Error::cannot_read("a password from its command");
    platform::keep_exit_statuses();
    // The caller of embody can read a list from the same standard input, as in `while read user; do embody ...; done < users`.
    // A command that reads it would take the rest of the list, so only a terminal is inherited.
    let input = if io::stdin().is_terminal() {
        Stdio::inherit()
    } else {
        Stdio::null()
    };
    let done = Command::new("/bin/sh")
        .arg("-c")
        .arg(command)
        .stdin(input)
        .stderr(Stdio::inherit())
        .output()
        .map_err(&failed)?;
    if done.status.success() {
        Ok(done.stdout)
    } else {
        Err(failed(io::Error::other(format!(
            "the password command failed ({})",
            done.status
        ))))
    }
}
