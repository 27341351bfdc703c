//! Reads a TNEF stream that is not part of a mail, such as a `winmail.dat` file on disk.

use super::{Damage, Item, SIGNATURE};

/// An item, and a sentence for each fault of its stream.
#[derive(Debug)]
pub struct WholeStream<'a> {
    pub item: Item<'a>,
    pub damage: Vec<String>,
}

/// Reads a stream. Items that are nested more than `depth` levels deep are not read.
///
/// # Errors
/// Returns the reason if the bytes are not TNEF, or if nothing in them can be read.
pub fn read_whole(bytes: &[u8], depth: usize) -> Result<WholeStream<'_>, String> {
    if !bytes.starts_with(SIGNATURE) {
        return Err(Damage::NoSignature.what().to_owned());
    }
    let super::Stream { item, damage } = super::read(bytes, depth);
    let is_empty = item.properties.0.iter().all(|it| it.is_empty())
        && item.recipients.is_empty()
        && item.attachments.is_empty();
    if is_empty {
        return Err(match damage.first() {
            Some(damage) => format!(
                "the file contains no message of Outlook ({}); get an undamaged copy of the file",
                damage.what()
            ),
            None => "the file contains no message of Outlook".to_owned(),
        });
    }
    let sentence = |damage: &Damage| match damage {
        // These files are intact.
        Damage::UnknownAttribute | Damage::UnknownProperty | Damage::TooDeep | Damage::TooMany => {
            damage.what().to_owned()
        }
        _ => format!("{}; get an undamaged copy of the file", damage.what()),
    };
    Ok(WholeStream {
        item,
        damage: damage.iter().map(sentence).collect(),
    })
}
