//! Which folders there are, and which of them are meant (RFC 3501 §6.3.8, RFC 2342, RFC 6154).

use std::collections::BTreeMap;

use super::account::Choice;
use super::command::ImapCommand;
use super::failure::ImapFailure;
use super::names;
use super::response::{Response, Value, values};
use super::session::{ImapSession, RemoteFolder};
use crate::error::Error;

/// Folders that a server may have; hostile ones could name folders without end.
const MOST_FOLDERS: usize = 100_000;

impl ImapSession {
    /// All folders that a choice means, in the order of their names: those that can be selected, that of all mail and shared
    /// ones only if they are named.
    ///
    /// # Errors
    /// [`Error::Usage`] within [`ImapFailure::Run`] if there is none.
    pub(crate) fn folders(&mut self, choice: &Choice) -> Result<Vec<RemoteFolder>, ImapFailure> {
        let is_named = |pattern: &String, folder: &RemoteFolder| {
            names::means(pattern, &folder.name, folder.delimiter)
        };
        let mut all = self.list("*")?;
        if let Some(name) = &choice.folder
            && !all.iter().any(|folder| is_named(name, folder))
        {
            // Shared folders are often not listed before they are named.
            all.extend(self.list(&names::encoded(name))?);
        }
        let can_be_selected = |folder: &RemoteFolder| {
            let not = ["\\noselect", "\\nonexistent"];
            !folder
                .attributes
                .iter()
                .any(|attribute| not.contains(&attribute.as_str()))
        };
        all.retain(can_be_selected);
        let is_all = |folder: &RemoteFolder| folder.attributes.iter().any(|it| it == "\\all");
        let has_others = all.iter().any(|folder| !is_all(folder));
        all.retain(|folder| {
            let named = choice.folder.iter().any(|name| is_named(name, folder));
            let chosen = choice.folders.iter().any(|name| is_named(name, folder));
            // A pattern in a URL means what LIST gives for it; a name means that one.
            let exactly = named
                && choice
                    .folder
                    .as_deref()
                    .is_some_and(|name| !name.contains(['*', '%']))
                || chosen;
            (choice.folder.is_none() || named)
                && (choice.folders.is_empty() || chosen)
                && !choice.not_folders.iter().any(|name| is_named(name, folder))
                && (exactly || !folder.is_shared)
                && (exactly || !has_others || !is_all(folder))
        });
        if all.is_empty() {
            let what = match &choice.folder {
                Some(name) => format!("the server has no folder {name} that can be read"),
                None => "no folder is left to read; embody inspect names those that there are"
                    .to_owned(),
            };
            return Err(Error::Usage(what.into()).into());
        }
        Ok(all)
    }

    /// All folders that LIST gives for a pattern, which is in modified UTF-7; in the order of their names, each once.
    pub(crate) fn list(&mut self, pattern: &str) -> Result<Vec<RemoteFolder>, ImapFailure> {
        let shared = self.shared_namespaces()?;
        let mut command = ImapCommand::new("LIST", "LIST \"\" ").string(pattern);
        if self.has("SPECIAL-USE") && self.has("LIST-EXTENDED") {
            command = command.text(" RETURN (SPECIAL-USE)");
        }
        let mut found: BTreeMap<String, RemoteFolder> = BTreeMap::new();
        self.exchange.run(command, &mut |read| {
            let Response::Data(word, rest) = read else {
                return Ok(false);
            };
            if word != "LIST" {
                return Ok(false);
            }
            let values = values(rest).map_err(ImapFailure::Protocol)?;
            let [attributes, delimiter, name, ..] = values.as_slice() else {
                return Err(ImapFailure::Protocol("LIST without a name"));
            };
            let name = name.text().unwrap_or_default().into_owned();
            let is_usable =
                !name.is_empty() && name.len() <= 4096 && !name.contains(char::is_control);
            if is_usable && found.len() < MOST_FOLDERS {
                let attributes = attributes.list().unwrap_or_default().iter();
                let folder = RemoteFolder {
                    delimiter: delimiter.text().and_then(|text| text.chars().next()),
                    attributes: attributes
                        .filter_map(|it| Some(it.text()?.to_ascii_lowercase()))
                        .collect(),
                    is_shared: shared.iter().any(|prefix| name.starts_with(prefix)),
                    name: name.clone(),
                };
                found.insert(name, folder);
            }
            Ok(true)
        })?;
        Ok(found.into_values().collect())
    }

    /// What the names of folders of other users, and of shared ones, start with.
    fn shared_namespaces(&mut self) -> Result<Vec<String>, ImapFailure> {
        let mut prefixes = Vec::new();
        if !self.has("NAMESPACE") {
            return Ok(prefixes);
        }
        self.exchange
            .run(ImapCommand::new("NAMESPACE", "NAMESPACE"), &mut |read| {
                let Response::Data(word, rest) = read else {
                    return Ok(false);
                };
                if word != "NAMESPACE" {
                    return Ok(false);
                }
                let values = values(rest).map_err(ImapFailure::Protocol)?;
                for namespace in values.iter().skip(1).filter_map(Value::list).flatten() {
                    let prefix = namespace.list().and_then(|it| it.first()?.text());
                    prefixes.extend(prefix.filter(|it| !it.is_empty()).map(|it| it.into_owned()));
                }
                Ok(true)
            })?;
        Ok(prefixes)
    }
}
