//! Undoes the escaping that Mailman's archiver applied to HTML and attached messages. The result is used only if escaping it
//! again gives the same file, because escaping loses information since version 2.1.13: entities that are in the text stay as
//! they are, and a tab becomes blanks.

use std::borrow::Cow;

use crate::engine::external_body::Scrap;

/// Returns the original content of a file. Returns `None` if the file was escaped and this cannot be undone.
pub(super) fn unescaped(scrap: Scrap, file: &[u8]) -> Option<Cow<'_, [u8]>> {
    let was = match scrap {
        Scrap::Html if file.starts_with(FRONT) => page(file),
        Scrap::Message => proved(file, &[]),
        Scrap::Html | Scrap::File | Scrap::Text | Scrap::Removed => return Some(file.into()),
    };
    was.map(Cow::Owned)
}

fn page(file: &[u8]) -> Option<Vec<u8>> {
    proved(file.strip_prefix(FRONT)?.strip_suffix(BEHIND)?, &OF_PAGES)
}

const FRONT: &[u8] = b"<tt>\n";
const BEHIND: &[u8] = b"\n</tt>\n";
const TAB: &[u8] = b"&nbsp&nbsp&nbsp&nbsp&nbsp&nbsp&nbsp&nbsp";

type Escape = (&'static [u8], &'static [u8]);

const OF_PAGES: [Escape; 3] = [(b"<br>\n", b"\n"), (TAB, b"\t"), (b"&nbsp;", b" ")];
const ENTITIES: [Escape; 4] = [
    (b"&lt;", b"<"),
    (b"&gt;", b">"),
    (b"&quot;", b"\""),
    (b"&amp;", b"&"),
];

/// Returns the unescaped text, or `None` if escaping it again would not give the same file.
fn proved(file: &[u8], more: &[Escape]) -> Option<Vec<u8>> {
    let mut text = Vec::with_capacity(file.len());
    let mut rest = file;
    while let Some((byte, behind)) = rest.split_first() {
        let found = more
            .iter()
            .chain(&ENTITIES)
            .find_map(|&(escape, character)| {
                let behind = rest.strip_prefix(escape)?;
                (escape != TAB || !behind.starts_with(b";")).then_some((character, behind))
            });
        let (character, behind) = found.unwrap_or((std::slice::from_ref(byte), behind));
        text.extend_from_slice(character);
        rest = behind;
    }
    (escaped(&text, more) == file).then_some(text)
}

fn escaped(text: &[u8], more: &[Escape]) -> Vec<u8> {
    let mut escaped = Vec::with_capacity(text.len());
    for byte in text {
        let mut escapes = more.iter().chain(&ENTITIES);
        match escapes.find(|(_, character)| *character == [*byte]) {
            Some((escape, _)) => escaped.extend_from_slice(escape),
            None => escaped.push(*byte),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn message(file: &[u8]) -> Option<Vec<u8>> {
        unescaped(Scrap::Message, file).map(Cow::into_owned)
    }

    #[test]
    fn unescaping_a_stored_page_restores_the_original() {
        let file = b"<tt>\n&lt;p&gt;a&nbsp;&amp;amp;&nbsp;b&nbsp&nbsp&nbsp&nbsp&nbsp&nbsp&nbsp&nbspc\r<br>\n\n</tt>\n";
        assert_eq!(page(file).unwrap(), b"<p>a &amp; b\tc\r\n");
    }

    #[test]
    fn text_not_escaped_by_mailman_is_not_unescaped() {
        for file in [
            "<p>plain</p>",
            "<tt>\na blank\n</tt>\n",
            "<tt>\n&eacute;\n</tt>\n",
            "<tt>\n<br>\n",
            "<tt>\n&lt;p&gt;\n</tt>",
        ] {
            assert_eq!(page(file.as_bytes()), None, "{file}");
        }
        assert_eq!(message(b"From nobody\n&eacute;"), None);
        assert_eq!(message(b"a < b"), None);
        assert_eq!(message(b"a &lt; b").unwrap(), b"a < b");
    }

    proptest! {
        #[test]
        fn whatever_was_escaped_comes_back(text in "([ -~\\t\\r\\n]|&nbsp|&nbsp;|&amp;){0,200}") {
            let text = text.as_bytes();
            prop_assert_eq!(message(&escaped(text, &[])).unwrap(), text);
            // Not every page can be restored: eight `&nbsp` without semicolons, followed by a semicolon, look like an escaped
            // tab. `page` returns `None` for such a page.
            let stored = [FRONT, &escaped(text, &OF_PAGES), BEHIND].concat();
            if let Some(undone) = page(&stored) {
                prop_assert_eq!(undone, text);
            }
        }
    }
}
