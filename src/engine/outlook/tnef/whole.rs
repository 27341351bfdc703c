//! Reads a TNEF stream that is not part of a mail, such as a `winmail.dat` file on disk.

use super::super::properties::id;
use super::super::{calendar, report};
use super::{OutlookItem, SIGNATURE, TnefDamage};

/// An item, and a sentence for each fault of its stream.
#[derive(Debug)]
pub struct WholeStream<'a> {
    pub item: OutlookItem<'a>,
    pub damage: Vec<String>,
}

/// Reads a stream. Items that are nested more than `depth` levels deep are not read.
///
/// # Errors
/// Returns the reason if the bytes are not TNEF, or if nothing in them can be read.
pub fn read_whole(bytes: &[u8], depth: usize) -> Result<WholeStream<'_>, String> {
    if !bytes.starts_with(SIGNATURE) {
        return Err(TnefDamage::NoSignature.what().to_owned());
    }
    let super::TnefStream { item, damage } = super::read(bytes, depth);
    let is_empty = item.properties.0.iter().all(|it| it.is_empty())
        && item.recipients.is_empty()
        && item.attachments.is_empty();
    if is_empty {
        return Err(match damage.first() {
            Some(damage) => format!(
                "the file contains no Outlook message ({}); get an undamaged copy of the file",
                damage.what()
            ),
            None => "the file contains no Outlook message".to_owned(),
        });
    }
    let sentence = |damage: &TnefDamage| match damage {
        // The file is intact; embody only cannot read it completely. An undamaged copy would not help.
        TnefDamage::UnknownAttribute
        | TnefDamage::UnknownProperty
        | TnefDamage::TooDeep
        | TnefDamage::TooMany => damage.what().to_owned(),
        _ => format!("{}; get an undamaged copy of the file", damage.what()),
    };
    let mut damage: Vec<String> = damage.iter().map(sentence).collect();
    if damage.is_empty() && !has_content(&item) {
        damage.push(
            "embody found no text and no attachment in the file; if the mail has some, get another copy of the file"
                .to_owned(),
        );
    }
    Ok(WholeStream { item, damage })
}

/// Whether an item has more than a header. Outlook writes a text even for an empty mail, so a missing text is the only
/// sign that the stream was cut off between two attributes.
fn has_content(item: &OutlookItem<'_>) -> bool {
    let is_text = |id| item.properties.value(id).is_some();
    let class = item.class();
    [id::BODY, id::HTML, id::RTF].into_iter().any(is_text)
        || !item.attachments.is_empty()
        || calendar::is_meeting(&class)
        || report::is_report(&class)
}
