//! Files next to the mailbox, as the new mail contains them.

use std::collections::HashSet;
use std::ffi::OsString;

use crate::engine::context::{NamedFile, NeighbourDirectories};
use crate::engine::forms::eudora::FlattenedMessage;
use crate::engine::guide::{Guide, not_in_mail};
use crate::engine::needs::Answers;
use crate::engine::policy::{Follow, Policy};
use crate::engine::{Need, Neighbour};

/// Returns the directory of a message of Apple Mail. Its files are looked up by the guide.
pub(super) fn of_apple() -> NeighbourDirectories {
    NeighbourDirectories {
        form: Follow::Apple,
        named_files: None,
    }
}

/// Returns the files that a Eudora message names, as far as the new mail contains a part with such a name, and adds their
/// content to `answers`.
pub(super) fn files(
    mail: &[u8],
    policy: &Policy,
    guide: &Guide,
    answers: &mut Answers,
) -> NeighbourDirectories {
    let mut taken = HashSet::new();
    let flattened = FlattenedMessage::read(mail, policy);
    let notes = flattened.iter().flat_map(FlattenedMessage::notes);
    let files = notes.enumerate().map(|(index, note)| {
        let wanted = note.name.replace('/', ":");
        let is_file = |(at, part): &(usize, &crate::engine::guide::GuidePart)| {
            part.is_new && part.name.as_deref() == Some(&*wanted) && !taken.contains(at)
        };
        let (at, part) = guide
            .parts
            .iter()
            .enumerate()
            .find(is_file)
            .ok_or_else(not_in_mail)?;
        taken.insert(at);
        let file = NamedFile {
            folder: 0,
            name: OsString::from(index.to_string()),
            length: Ok(part.content().len() as u64),
        };
        let need = Need::Neighbour(Neighbour::OfMailbox {
            folder: file.folder,
            name: file.name.clone(),
        });
        answers.insert(need, Ok(part.retrieved("").into()));
        Ok(file)
    });
    NeighbourDirectories {
        form: Follow::Eudora,
        named_files: Some(files.collect()),
    }
}
