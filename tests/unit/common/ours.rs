//! Reads messages with the scanner of embody.

use embody::mime::{self, PartKind, ScanLimits};

use super::mail::Leaf;

/// Returns the leaf parts that the scanner of embody finds.
pub fn our_leaves(message: &[u8]) -> Vec<Leaf> {
    let tree = mime::scan(message, &ScanLimits::default());
    tree.ids()
        .map(|id| tree.part(id))
        .filter(|part| part.content == PartKind::Leaf)
        .map(|part| {
            let body = part.body.of(message);
            let octets = part
                .encoding
                .decode(body)
                .unwrap_or(std::borrow::Cow::Borrowed(body));
            Leaf::new(&part.essence, &octets)
        })
        .collect()
}
