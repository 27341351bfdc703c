//! Lists the folders of an account and selects those to read (RFC 3501 §6.3.8, RFC 2342, RFC 6154).
//!
//! LIST has a parser of its own, because servers send names that violate the grammar of RFC 3501: unquoted names with a space
//! or a TAB, quoted names with a quotation mark inside, names in Latin-1. Such names can still be read, because the name is the
//! last item on its line. A name that cannot be read is reported. Otherwise its folder would be missing silently.

use std::collections::BTreeMap;

use super::account::FolderChoice;
use super::command::ImapCommand;
use super::failure::ImapFailure;
use super::names::{self, INBOX};
use super::response::{ResponseValue, ServerResponse, announced, values};
use super::session::{ImapSession, RemoteFolder};
use crate::detail::excerpt;
use crate::error::Error;
use crate::mailbox::modified_utf7::encoded;

/// Maximum number of folders of an account. Without a limit, a hostile server could fill the memory.
const MOST_FOLDERS: usize = 100_000;
/// Maximum length of the name of a folder, in bytes.
const LONGEST_NAME: usize = 4096;
/// Maximum number of unreadable names that are reported individually.
const MOST_UNREADABLE: usize = 100;
/// Maximum number of characters of an unreadable response in a report.
const MOST_QUOTED: usize = 120;

/// Result of LIST.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FolderList {
    /// Folders sorted by name, without duplicates.
    pub(crate) folders: Vec<RemoteFolder>,
    /// Unreadable LIST responses, as messages for the user.
    pub(crate) unreadable: Vec<String>,
}

/// Selected folders, and what else a run needs to know about the folders of the account.
#[derive(Clone, Debug, Default)]
pub(crate) struct ChosenFolders {
    /// Folders to read, sorted by name.
    pub(crate) folders: Vec<RemoteFolder>,
    /// All folders of the account that can be selected, sorted by name. Directories are assigned to all of them, so
    /// that a folder gets the same directory in each run, regardless of the selection.
    pub(crate) all: Vec<RemoteFolder>,
    /// Texts for the report about LIST responses that cannot be read. The folder in such a response may be one that
    /// the user selected.
    pub(crate) unreadable: Vec<String>,
    /// Texts for the report about names of `--folder` that the server does not have.
    pub(crate) absent: Vec<String>,
}

impl ImapSession {
    /// Returns the selected folders, sorted by name. Folders that cannot be opened are skipped. Shared folders and the folder
    /// with all mail (`\All`) are included only if the user named them.
    ///
    /// # Errors
    /// [`Error::Usage`] within [`ImapFailure::Run`] if no folder is selected.
    pub(crate) fn folders(&mut self, choice: &FolderChoice) -> Result<ChosenFolders, ImapFailure> {
        let is_named = |pattern: &String, folder: &RemoteFolder| {
            names::means(pattern, &folder.name, folder.delimiter)
        };
        let has_wildcard = |name: &str| name.contains(['*', '%']);
        let mut list = self.list("*")?;
        let exact = choice.folders.iter().filter(|name| !has_wildcard(name));
        for name in choice.folder.iter().chain(exact.clone()) {
            if list.folders.iter().any(|folder| is_named(name, folder)) {
                continue;
            }
            // Servers often list a shared folder only if LIST contains its name. So a folder that the user named is requested
            // by its name.
            let named = self.list(&encoded(name))?;
            list.folders.extend(named.folders);
            list.unreadable.extend(named.unreadable);
        }
        // A server that ignores the pattern lists all folders again.
        let mut all = list.folders;
        all.sort_by(|one, other| one.name.cmp(&other.name));
        all.dedup_by(|later, first| later.name == first.name);
        all.retain(RemoteFolder::can_be_selected);
        let absent: Vec<&String> = exact
            .filter(|name| !all.iter().any(|folder| is_named(name, folder)))
            .collect();
        let is_all = |folder: &RemoteFolder| folder.attributes.iter().any(|it| it == "\\all");
        let has_others = all.iter().any(|folder| !is_all(folder));
        let is_exact = choice
            .folder
            .as_deref()
            .is_some_and(|name| !has_wildcard(name));
        let is_chosen = |folder: &RemoteFolder| {
            let named = choice.folder.iter().any(|name| is_named(name, folder));
            let chosen = choice.folders.iter().any(|name| is_named(name, folder));
            // Shared folders and `\All` are selected only by their exact name in the URL or by a pattern of `--folder`. A
            // pattern in the URL, such as `*`, does not select them, although LIST would.
            let exactly = named && is_exact || chosen;
            (choice.folder.is_none() || named)
                && (choice.folders.is_empty() || chosen)
                && !choice.not_folders.iter().any(|name| is_named(name, folder))
                && (exactly || !folder.is_shared)
                && (exactly || !has_others || !is_all(folder))
        };
        let folders: Vec<RemoteFolder> = all.iter().filter(|it| is_chosen(it)).cloned().collect();
        // The named folder was found, so an unreadable response is about another folder and is not reported.
        let is_found = is_exact && !folders.is_empty();
        let unreadable = if is_found {
            Vec::new()
        } else {
            list.unreadable
        };
        if folders.is_empty() && unreadable.is_empty() {
            let what = match &choice.folder {
                Some(name) => no_folder(name),
                None if !absent.is_empty() => {
                    let absent: Vec<&str> = absent.iter().map(|name| name.as_str()).collect();
                    no_folder(&absent.join(", "))
                }
                None if all.is_empty() => {
                    "the server lists no folders; if the account has mail, name a folder in the URL, such as INBOX".to_owned()
                }
                None => "the options exclude all folders; embody inspect lists the folders of the account"
                    .to_owned(),
            };
            return Err(Error::Usage(what.into()).into());
        }
        Ok(ChosenFolders {
            folders,
            all,
            unreadable,
            absent: absent.into_iter().map(|name| no_folder(name)).collect(),
        })
    }

    /// Returns all folders that match a pattern. The pattern is in modified UTF-7.
    pub(crate) fn list(&mut self, pattern: &str) -> Result<FolderList, ImapFailure> {
        let shared = self.shared_namespaces()?;
        let plain = || ImapCommand::new("LIST", "LIST \"\" ").string(pattern);
        let first = if self.has("SPECIAL-USE") && self.has("LIST-EXTENDED") {
            plain().text(" RETURN (SPECIAL-USE)")
        } else {
            plain()
        };
        let odd = self.exchange.odd();
        let listed = match self.listed(first, &shared) {
            // Some servers announce LIST options and then refuse them, so a plain LIST follows. If a plain LIST was
            // refused, it is repeated: without the list of folders, the account cannot be read.
            Err(ImapFailure::Refused { .. }) => self.listed(plain(), &shared)?,
            other => other?,
        };
        if self.exchange.odd() == odd {
            return Ok(listed);
        }
        // An unreadable response may be a garbled LIST response, so the command is repeated.
        let again = self.listed(plain(), &shared)?;
        let both = listed.folders.into_iter().chain(again.folders);
        let both: BTreeMap<String, RemoteFolder> =
            both.map(|folder| (folder.name.clone(), folder)).collect();
        Ok(FolderList {
            folders: both.into_values().collect(),
            unreadable: again.unreadable,
        })
    }

    fn listed(
        &mut self,
        command: ImapCommand<'_>,
        shared: &[String],
    ) -> Result<FolderList, ImapFailure> {
        let mut found: BTreeMap<String, RemoteFolder> = BTreeMap::new();
        let mut unreadable = Vec::new();
        let mut more = 0_u64;
        self.exchange.run(command, &mut |read| {
            let ServerResponse::Data(word, rest) = read else {
                return Ok(false);
            };
            if word != "LIST" {
                return Ok(false);
            }
            if let Some(mut folder) = listed_folder(rest) {
                let is_plain = !folder.name.is_empty()
                    && folder.name.len() <= LONGEST_NAME
                    && !folder.name.contains(['\0', '\r', '\n']);
                if is_plain && found.len() < MOST_FOLDERS {
                    folder.is_shared = shared.iter().any(|prefix| folder.name.starts_with(prefix));
                    found.insert(folder.name.clone(), folder);
                    return Ok(true);
                }
                if !folder.can_be_selected() {
                    return Ok(true);
                }
            }
            if unreadable.len() < MOST_UNREADABLE {
                unreadable.push(quoted_response(rest))
            } else {
                more += 1
            }
            Ok(true)
        })?;
        if more > 0 {
            unreadable.push(format!(
                "the server lists {more} more folders in responses that embody cannot read; the mail in these folders was not processed"
            ));
        }
        Ok(FolderList {
            folders: found.into_values().collect(),
            unreadable,
        })
    }

    /// Returns the prefixes of the names of other users' folders and of shared folders. If the server refuses NAMESPACE, no
    /// prefix is returned. Shared folders are then read as well, so no mail is missed.
    fn shared_namespaces(&mut self) -> Result<Vec<String>, ImapFailure> {
        let mut prefixes = Vec::new();
        if !self.has("NAMESPACE") {
            return Ok(prefixes);
        }
        let done = self
            .exchange
            .run(ImapCommand::new("NAMESPACE", "NAMESPACE"), &mut |read| {
                let ServerResponse::Data(word, rest) = read else {
                    return Ok(false);
                };
                if word != "NAMESPACE" {
                    return Ok(false);
                }
                let values = values(rest).unwrap_or_default();
                for namespace in values
                    .iter()
                    .skip(1)
                    .filter_map(ResponseValue::list)
                    .flatten()
                {
                    let prefix = namespace.list().and_then(|it| it.first()?.text());
                    prefixes.extend(prefix.filter(|it| !it.is_empty()).map(|it| it.into_owned()));
                }
                Ok(true)
            });
        match done {
            Ok(_) | Err(ImapFailure::Refused { .. }) => Ok(prefixes),
            Err(why) => Err(why),
        }
    }
}

/// Returns the report about a folder that the user named.
fn no_folder(name: &str) -> String {
    format!(
        "the server does not have a folder {name} that can be opened; check the name (embody inspect lists the folders of the account)"
    )
}

impl RemoteFolder {
    fn can_be_selected(&self) -> bool {
        let not = ["\\noselect", "\\nonexistent"];
        !self.attributes.iter().any(|it| not.contains(&it.as_str()))
    }
}

/// Parses a LIST response after the word `LIST`: attributes, delimiter and name. Returns `None` if the attributes are not in
/// parentheses, or if the name is an incomplete literal or quoted string.
fn listed_folder(line: &[u8]) -> Option<RemoteFolder> {
    let rest = line.trim_ascii_start().strip_prefix(b"(")?;
    let end = memchr::memchr2(b')', b'\r', rest).filter(|at| rest[*at] == b')')?;
    let (attributes, rest) = (&rest[..end], rest[end + 1..].trim_ascii_start());
    let (delimiter, rest) = listed_delimiter(rest)?;
    let name = listed_name(rest.strip_prefix(b" ").unwrap_or(rest))?;
    let attributes = String::from_utf8_lossy(attributes).to_ascii_lowercase();
    let name = names::from_wire(&name);
    Some(RemoteFolder {
        name: if names::is_inbox(&name) {
            INBOX.to_owned()
        } else {
            name
        },
        delimiter,
        attributes: attributes
            .split_ascii_whitespace()
            .map(str::to_owned)
            .collect(),
        is_shared: false,
    })
}

/// Parses the delimiter between the levels of a name. Returns the delimiter, and the text after it on the line.
/// Accepts `"\"` too, a backslash that the server did not escape.
fn listed_delimiter(line: &[u8]) -> Option<(Option<char>, &[u8])> {
    if let Some(rest) = line.strip_prefix(b"\"") {
        for (spelt, delimiter) in [(&b"\\\\\" "[..], '\\'), (b"\\\"\" ", '"'), (b"\\\" ", '\\')] {
            if rest.starts_with(spelt) {
                return Some((Some(delimiter), &rest[spelt.len() - 1..]));
            }
        }
        let end = memchr::memchr(b'"', rest)?;
        let inner = std::str::from_utf8(&rest[..end]).ok()?;
        return Some((inner.chars().next(), &rest[end + 1..]));
    }
    if let Some((text, length)) = literal(line) {
        let inner = std::str::from_utf8(text).ok()?;
        return Some((inner.chars().next(), &line[length..]));
    }
    let end = memchr::memchr(b' ', line)?;
    let word = std::str::from_utf8(&line[..end]).ok()?;
    let delimiter = if word.eq_ignore_ascii_case("NIL") {
        None
    } else {
        word.chars().next()
    };
    Some((delimiter, &line[end..]))
}

/// Parses the name, which is the last item on the line except for the extended data of RFC 5258.
fn listed_name(line: &[u8]) -> Option<Vec<u8>> {
    if let Some((text, _)) = literal(line) {
        return Some(text.to_vec());
    }
    // The line contains an incomplete literal, so the name cannot be read.
    if line.starts_with(b"{") && line.contains(&b'\n') {
        return None;
    }
    let line = line.trim_ascii_end();
    let Some(quoted) = line.strip_prefix(b"\"") else {
        let mut ends = memchr::memmem::find_iter(line, b" (");
        let end = ends.find(|at| is_extended_data(&line[*at..]));
        let atom = &line[..end.unwrap_or(line.len())];
        return Some(atom.trim_ascii_end().to_vec());
    };
    let mut name = Vec::with_capacity(quoted.len());
    let mut at = 0;
    while let Some(&byte) = quoted.get(at) {
        match (byte, quoted.get(at + 1)) {
            (b'\\', Some(next @ (b'"' | b'\\'))) => {
                name.push(*next);
                at += 2;
            }
            (b'"', rest) => {
                let is_end = rest.is_none() || is_extended_data(&quoted[at + 1..]);
                if is_end {
                    return Some(name);
                }
                break;
            }
            _ => {
                name.push(byte);
                at += 1;
            }
        }
    }
    // The server did not escape a quotation mark or a backslash in the name. The name ends at the last quotation mark of the
    // line.
    let last = memchr::memrchr(b'"', quoted)?;
    Some(quoted[..last].to_vec())
}

/// Returns whether the rest of a LIST response is extended data (RFC 5258, RFC 9051 §6.3.9), such as
/// `("CHILDINFO" ("SUBSCRIBED"))` or `(OLDNAME ("Old"))`. Servers that send names with blanks without quotes can send names such
/// as `Photos (2020)`, so a tag that is not in quotes must be a known one.
fn is_extended_data(rest: &[u8]) -> bool {
    const TAGS: [&[u8]; 2] = [b"CHILDINFO (", b"OLDNAME ("];
    let Some(data) = rest.strip_prefix(b" (").filter(|it| it.ends_with(b")")) else {
        return false;
    };
    let is_tag = |tag: &&[u8]| {
        let start = data.get(..tag.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(tag))
    };
    data.starts_with(b"\"") || TAGS.iter().any(is_tag)
}

/// Parses a literal at the start. Returns its contents, and its length including the `{N}` before it.
fn literal(line: &[u8]) -> Option<(&[u8], usize)> {
    let end = memchr::memchr(b'\n', line)?;
    let length = announced(line[..end].trim_ascii_end()).filter(|_| line.starts_with(b"{"))?;
    let text = line.get(end + 1..)?.get(..usize::try_from(length).ok()?)?;
    Some((text, end + 1 + text.len()))
}

/// Formats an unreadable response as a message for the user, with the start of the response.
fn quoted_response(rest: &[u8]) -> String {
    let response = String::from_utf8_lossy(rest);
    format!(
        "the server lists a folder in a response that embody cannot read; the mail in this folder was not processed: LIST {}",
        excerpt(response.trim(), MOST_QUOTED).escape_debug()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_list_are_read_although_servers_spell_them_wrongly() {
        for (line, delimiter, name) in [
            (&br#"() "/" INBOX"#[..], Some('/'), "INBOX"),
            (br#"(\HasNoChildren \Sent) "." "Sent""#, Some('.'), "Sent"),
            (br#"() NIL INBOX"#, None, "INBOX"),
            (br#"() "/" "Inbox""#, Some('/'), "INBOX"),
            (br#"() "/" "Inbox/Sub""#, Some('/'), "Inbox/Sub"),
            (br#"() "" INBOX"#, None, "INBOX"),
            (br#"() "\\" "a\\b""#, Some('\\'), "a\\b"),
            (br#"() "\" "INBOX""#, Some('\\'), "INBOX"),
            (br#"() "\" INBOX"#, Some('\\'), "INBOX"),
            (br#"() "\"" x"#, Some('"'), "x"),
            (br#"() "/" NIL"#, Some('/'), "NIL"),
            (br#"() "/" "NIL""#, Some('/'), "NIL"),
            (
                b"() \"/\" INBOX/Da\tOggetto\tRicevuto",
                Some('/'),
                "INBOX/Da\tOggetto\tRicevuto",
            ),
            (b"() \"/\" \"a\tb\"", Some('/'), "a\tb"),
            (
                br#"() "\" Folder Subfolder 1"#,
                Some('\\'),
                "Folder Subfolder 1",
            ),
            (br#"() "/" "ab"cd""#, Some('/'), "ab\"cd"),
            (br#"() "/" "ab\"cd""#, Some('/'), "ab\"cd"),
            (br#"() "/" "a\b""#, Some('/'), "a\\b"),
            (br#"() "/" "a\""#, Some('/'), "a\\"),
            (br#"() "/" " Archive ""#, Some('/'), " Archive "),
            (b"() \"/\" {3}\r\na\tb", Some('/'), "a\tb"),
            (b"() \"/\" {0}\r\n", Some('/'), ""),
            (br#"() "/" """#, Some('/'), ""),
            (br#"() "/" a ("CHILDINFO" ("SUBSCRIBED"))"#, Some('/'), "a"),
            (
                br#"() "/" "a b" ("CHILDINFO" ("SUBSCRIBED"))"#,
                Some('/'),
                "a b",
            ),
            (br#"() "/" a (OLDNAME ("b"))"#, Some('/'), "a"),
            (
                br#"() "/" a b (childinfo ("SUBSCRIBED"))"#,
                Some('/'),
                "a b",
            ),
            (br#"() "/" "a b" (OLDNAME ("b"))"#, Some('/'), "a b"),
            (br#"() "/" Photos (2020)"#, Some('/'), "Photos (2020)"),
            (br#"() "/" "Photos (2020)""#, Some('/'), "Photos (2020)"),
            (
                br#"() "/" Photos (2020) ("CHILDINFO" ("SUBSCRIBED"))"#,
                Some('/'),
                "Photos (2020)",
            ),
            (b"() \"/\" \"Entw\xfcrfe\"", Some('/'), "Entw\u{f7fc}rfe"),
            (
                "() \"/\" \"Entw\u{fc}rfe\"".as_bytes(),
                Some('/'),
                "Entw\u{fc}rfe",
            ),
        ] {
            let read = listed_folder(line).unwrap_or_else(|| panic!("{}", line.escape_ascii()));
            assert_eq!(
                (read.delimiter, &*read.name),
                (delimiter, name),
                "{}",
                line.escape_ascii()
            );
        }
        for line in [
            &b""[..],
            b"INBOX",
            b"(",
            b"() ",
            b"() \"/\"",
            b"() \"/",
            b"() \"/\" \"abc",
            b"() \"/\" {9}\r\nabc",
            b"(\\x \"/\" INBOX",
        ] {
            let read = listed_folder(line);
            assert!(
                read.is_none() || read.unwrap().name.is_empty(),
                "{}",
                line.escape_ascii()
            );
        }
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_of_list_are_read_without_a_panic(line in proptest::collection::vec(proptest::prop_oneof![
            proptest::prelude::any::<u8>(), proptest::prelude::Just(b'"'), proptest::prelude::Just(b' '),
            proptest::prelude::Just(b'('), proptest::prelude::Just(b')'), proptest::prelude::Just(b'\\')], 0..40)) {
            let _ = listed_folder(&line);
            let _ = listed_folder(&[b"() \"/\" ", line.as_slice()].concat());
        }
    }
}
