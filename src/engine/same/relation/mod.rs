//! Compares two descriptions of a message. Finds what embody changed, or the reason why another program changed the message.

mod comparison;
mod outcome;

use self::comparison::Comparison;
use super::description::Description;

pub(crate) use self::outcome::{Altered, Changes};

/// Returns the changes by which embody turned the message `old` into the message `new`.
///
/// # Errors [`Altered`] if embody cannot have made the change.
pub(crate) fn changes(old: &Description, new: &Description) -> Result<Changes, Altered> {
    let direct = changes_of_parts(old, new);
    let Some(opened) = old.opened.as_ref().filter(|_| direct.is_err()) else {
        return direct;
    };
    let further = match changes_of_parts(opened, new) {
        // `Encoding` means that the unpacked message and the new one have the same content. So unpacking, for example
        // of a `winmail.dat`, was the only change.
        Err(Altered::Encoding) => Changes::default(),
        Err(_) => return direct,
        Ok(changes) => changes,
    };
    Ok(Changes {
        opened: 1,
        ..further
    })
}

fn changes_of_parts(old: &Description, new: &Description) -> Result<Changes, Altered> {
    if old.header != new.header {
        return Err(Altered::Header);
    }
    if new.unclosed > old.unclosed {
        return Err(Altered::Cut);
    }
    let mut comparison = Comparison::of(new);
    for item in &old.items {
        comparison.find(item)?;
    }
    comparison.finish()?;
    let changes = comparison.changes;
    if changes == Changes::default() {
        return Err(Altered::Encoding);
    }
    let only_links = Changes {
        embedded: changes.embedded,
        resolved: changes.resolved,
        ..Changes::default()
    };
    if changes == only_links && old.other_fields != new.other_fields {
        return Err(Altered::PartFields {
            number: "of the message".to_owned(),
        });
    }
    Ok(changes)
}
