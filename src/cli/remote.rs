//! Sources that are accounts on IMAP servers, including accounts that are changed in place.

use std::fs::File;
use std::io::{self, BufReader, IsTerminal as _, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::{self, Signal};
use rustix::termios::{self, LocalModes, OptionalActions, SpecialCodeIndex};
use serde::Serialize;

use super::args::ImapArgs;
use super::report_file::json;
use super::reporter::Reporter;
use super::say;
use super::streams::{is_standard, print, write_error};
use super::verb::VerbReport;
use crate::engine::policy::{Follow, Limits, Policy};
use crate::engine::report::{Detail, Reason};
use crate::error::{Error, unpoisoned};
use crate::imap::account::{Account, UrlLocation, is_url, masked};
use crate::imap::candidates::Candidates;
use crate::imap::failure::ImapFailure;
use crate::imap::in_place::InPlaceObserver;
use crate::imap::overview::{FolderOverview, Overview};
use crate::imap::place::MessagePlace;
use crate::imap::replace::ReplaceResult;
use crate::imap::secret::{Secret, SecretFrom};
use crate::mailbox::{Format, Options, Stop, names_a_file};

/// Environment variable with the name of a file that contains the password. No option contains the password itself,
/// because other users could see it in the list of processes.
const PASSWORD_FILE: &str = "EMBODY_IMAP_PASSWORD_FILE";
const LONGEST_PASSWORD: usize = 4096;

/// Maximum number of messages that lines name because the server refused to replace them.
const NAMED_REFUSALS: u64 = 10;

pub(super) fn is_remote(source: &Path) -> bool {
    source.to_str().is_some_and(is_url)
}

pub(super) fn are_remote(sources: &[PathBuf], args: &ImapArgs) -> Result<bool, Error> {
    let count = sources.iter().filter(|source| is_remote(source)).count();
    let what = match count {
        0 if *args != ImapArgs::default() => {
            "--password-command, --connections, --since, --before, --folder, --not-folder and --allow-plaintext work only with imaps: or imap: sources"
        }
        count if count > 0 && count < sources.len() => {
            "mail on a server and mail in files cannot be converted in the same run"
        }
        count => return Ok(count > 0),
    };
    Err(Error::Usage(what.into()))
}

pub(super) fn account(
    source: &Path,
    args: &ImapArgs,
    policy: &Policy,
) -> Result<Option<Account>, Error> {
    let Some(url) = source.to_str().filter(|url| is_url(url)) else {
        return Ok(None);
    };
    let location = UrlLocation::of(url, args.allow_plaintext)?;
    let from = match (
        args.password_command.as_deref(),
        std::env::var_os(PASSWORD_FILE),
    ) {
        (Some(command), _) => SecretFrom::Command(command.to_owned()),
        (None, Some(file)) => SecretFrom::File(file.into()),
        (None, None) if io::stderr().is_terminal() => SecretFrom::Prompt(Box::new(ask)),
        (None, None) => {
            let what = format!(
                "cannot prompt for the password, because there is no terminal; use --password-command, or set {PASSWORD_FILE} to the name of a file"
            );
            return Err(Error::Usage(what.into()));
        }
    };
    let timeout = policy.limits.timeout;
    let mut account = location.with(Secret::new(from), policy.ca_file.clone());
    if timeout != Limits::default().timeout {
        // A timeout of zero would mean no timeout, and the operating system rejects very long ones. The timeout is
        // therefore limited to the range from half a second to one day.
        account.silence = timeout.clamp(Duration::from_millis(500), Duration::from_secs(86_400));
    }
    Ok(Some(args.added_to(account)))
}

pub(super) fn check_file(source: &Path) -> Result<(), Error> {
    if !is_remote(source) {
        return Ok(());
    }
    let url = masked(&source.to_string_lossy());
    let what = format!(
        "{url}: this command reads only one message; to process mail on a server, use embody detach, restore or embed with --in-place, or with --output FOLDER for a changed copy"
    );
    Err(Error::Usage(what.into()))
}

/// Asks for a password on the terminal, without echo. Ctrl-C is read as a character and not as a signal: the signal
/// handler would only request a stop, and this function would continue to wait for input.
fn ask(text: &str) -> io::Result<String> {
    let mut terminal = File::options().read(true).write(true).open("/dev/tty")?;
    let before = termios::tcgetattr(&terminal)?;
    let mut silent = before.clone();
    let modes = LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG;
    silent.local_modes.remove(modes);
    silent.special_codes[SpecialCodeIndex::VMIN] = 1;
    silent.special_codes[SpecialCodeIndex::VTIME] = 0;
    termios::tcsetattr(&terminal, OptionalActions::Now, &silent)?;
    let asked = terminal.write_all(text.as_bytes());
    let answer = asked.and_then(|()| typed(&terminal));
    termios::tcsetattr(&terminal, OptionalActions::Now, &before)?;
    terminal.write_all(b"\n")?;
    answer
}

fn typed(terminal: &File) -> io::Result<String> {
    let mut line = Vec::new();
    for octet in BufReader::new(terminal).bytes() {
        match octet? {
            b'\r' | b'\n' | 0x04 => break,
            0x03 | 0x1c => {
                process::kill_process(process::getpid(), Signal::INT)?;
                return Err(io::ErrorKind::Interrupted.into());
            }
            0x15 => line.clear(),
            0x08 | 0x7f => while line.pop().is_some_and(|octet| octet & 0xc0 == 0x80) {},
            octet if line.len() < LONGEST_PASSWORD => line.push(octet),
            _ => {}
        }
    }
    String::from_utf8(line).map_err(|_| io::ErrorKind::InvalidData.into())
}

pub(super) fn check(options: &Options, target: &Path) -> Result<(), Error> {
    let what = match options.output_format {
        _ if is_standard(target) => {
            "mail on a server is saved as a folder of Maildirs; name a folder with --output"
        }
        Format::Auto | Format::Maildir
            if options.by_label.is_none()
                && options.read.range.is_none()
                && !options.skip_deleted
                && options.read.format == Format::Auto =>
        {
            return Ok(());
        }
        _ => {
            "--format, --output-format, --by-label, --skip-deleted and --range do not work with mail on a server: save the mail as Maildirs first, and then convert these"
        }
    };
    Err(Error::Usage(what.into()))
}

/// Rejects an output name that means a file, such as `all.mbox`, because the result is a directory. An existing
/// directory with such a name is accepted: it is the backup of an earlier run.
pub(super) fn check_name(target: &Path) -> Result<(), Error> {
    if !names_a_file(target) || target.is_dir() {
        return Ok(());
    }
    let what = format!(
        "{} is the name of a file, but mail on a server is saved as a directory of Maildirs; name a directory (embody convert can then write its mail to a file)",
        target.display()
    );
    Err(Error::Usage(what.into()))
}

pub(super) fn candidates(policy: &Policy, is_marked: bool) -> Candidates {
    // Some references can be in the text of any message. The server cannot search for them, so all messages are
    // downloaded.
    let may_be_anywhere = |form: &Follow| form.is_in_any_message() && policy.follow.contains(*form);
    // `--copies` can fill in parts of any kind. The structure that the server reports does not show which parts lack
    // their content, so all messages are downloaded.
    let has_copies = !policy.copies.is_empty();
    if is_marked || has_copies || Follow::ALL.iter().any(may_be_anywhere) {
        Candidates::All
    } else {
        Candidates::Documents
    }
}

impl InPlaceObserver<VerbReport> for Reporter<'_> {
    fn message_at(&self, mut said: VerbReport, place: MessagePlace, fate: Option<ReplaceResult>) {
        match fate {
            Some(ReplaceResult::Left(reason, why)) => {
                // These reasons make the exit status 1, so a line names the message.
                if matches!(reason, Reason::ServerRefused | Reason::QuotaFull) {
                    self.name_refused(&place, &why);
                }
                said.leave(reason, &Detail::from(why));
            }
            Some(ReplaceResult::Both(reason, why)) => {
                let why = self.name_message(&place, &why);
                said.leave(reason, &Detail::from(why));
            }
            Some(ReplaceResult::Doubled(_, why)) => {
                let why = self.name_message(&place, &why);
                for row in &mut said.report.rows {
                    row.detail.push(format!("; {why}"));
                }
            }
            Some(ReplaceResult::Replaced(_, Some(remark))) => {
                for row in &mut said.report.rows {
                    row.detail.push(format!("; {remark}"));
                }
            }
            Some(ReplaceResult::Replaced(_, None)) | None => {}
        }
        if let Some(origin) = &mut said.origin {
            origin.place = Some(place);
        }
        self.message(said, false);
    }

    fn resumed(&self, folder: &Path, uid: u32, fate: &ReplaceResult) {
        let what = match fate {
            ReplaceResult::Replaced(new, _) => {
                format!("the replacement is now complete, and the message has the UID {new}")
            }
            ReplaceResult::Left(_, why)
            | ReplaceResult::Both(_, why)
            | ReplaceResult::Doubled(_, why) => say::harmless_sentence(why).into_owned(),
        };
        let folder = say::shown(folder);
        self.display.say(&format!(
            "{folder}, UID {uid}: an earlier run was stopped while it replaced this message; {what}"
        ));
    }

    fn unsettled(&self, folder: &Path, why: &str) {
        let (folder, why) = (say::shown(folder), say::harmless_sentence(why));
        self.display.say(&format!(
            "{folder}: an earlier run was stopped while it replaced a message, and embody could not finish the replacement now: {why}; run the same command again later"
        ));
    }
}

impl Reporter<'_> {
    /// Prints the folder and UID of a message that the server refused to replace. If the server refuses many messages, only
    /// the first ones are named, because the account may be full or read-only.
    fn name_refused(&self, place: &MessagePlace, why: &str) {
        let refused = {
            let mut counts = unpoisoned(self.counts.lock());
            counts.refused_replacements += 1;
            counts.refused_replacements
        };
        if refused <= NAMED_REFUSALS {
            self.name_message(place, &format!("the message was not changed: {why}"));
        } else if refused == NAMED_REFUSALS + 1 {
            self.display.say(
                "the server refused more messages; --report FILE writes a row with folder and UID for each",
            );
        }
    }

    /// Prints the folder and UID of a message, and the reason `why`. Returns `why` without control characters.
    fn name_message(&self, place: &MessagePlace, why: &str) -> String {
        let why = say::harmless_sentence(why).into_owned();
        let folder = say::harmless(&place.folder);
        self.display
            .say(&format!("{folder}, UID {}: {why}", place.uid));
        why
    }
}

/// Converts the error that ended a run on an account, and adds advice for the user.
pub(super) fn error(why: ImapFailure, account: &Account) -> Error {
    let is_untrusted =
        |why: &str| why.contains("UnknownIssuer") || why.contains("CaUsedAsEndEntity");
    let remedy = match &why {
        ImapFailure::NoStartTls { .. } => {
            " (use imaps: if the server expects TLS from the start, usually on port 993, or --allow-plaintext for a server on this computer)"
        }
        ImapFailure::Tls { why, .. } if is_untrusted(why) => {
            " (to trust the certificate of the server or of its authority, name the certificate with --ca-file)"
        }
        _ => "",
    };
    why.into_error(&account.url(""), remedy)
}

/// JSON line about a folder for `inspect --json`.
#[derive(Serialize)]
struct FolderRow<'f> {
    kind: &'static str,
    #[serde(flatten)]
    folder: &'f FolderOverview,
}

/// Prints the number and size of the messages in each folder without downloading them.
pub(super) fn overview(
    account: &Account,
    larger_than: u64,
    as_json: bool,
    stop: &Stop,
) -> Result<bool, Error> {
    let overview = Overview {
        account,
        larger_than,
        stop,
    };
    let whole = overview.run(&mut |folder| {
        let told = if as_json {
            let row = FolderRow {
                kind: "folder",
                folder,
            };
            json(&row).map_err(write_error)?
        } else {
            line(folder, &say::harmless(&folder.folder)).into_bytes()
        };
        print(&told).map_err(Into::into)
    });
    let whole = whole.map_err(|why| error(why, account))?;
    if !as_json {
        let mut text = line(&whole.sum, "sum");
        if let Some((used, most)) = whole.quota {
            let share = whole.sum.detachable_bytes as f64 * 100.0 / used.max(1) as f64;
            text.push_str(&format!(
                "{used} of {most} bytes of the quota are used; detach would free up to {share:.0} % of the used bytes\n"
            ));
        }
        print(text.as_bytes())?;
    }
    for (url, why) in &whole.failed {
        say::tell(&say::damaged(url, why));
    }
    Ok(whole.failed.is_empty())
}

fn line(folder: &FolderOverview, name: &str) -> String {
    format!(
        "{name}: {} messages, {} bytes; detach would move {} attachments ({} bytes) from {} messages\n",
        folder.messages,
        folder.bytes,
        folder.detachable_attachments,
        folder.detachable_bytes,
        folder.detachable_messages
    )
}
