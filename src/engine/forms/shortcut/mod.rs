//! Reads `[InternetShortcut]` files (`.url`) as references.
//!
//! For a file that stays on its server, Exchange sends `message/external-body; name="x.url"` without an access type. Its body
//! is a shortcut file in base64, although RFC 2046 §5.2.3 does not allow this encoding. The format is that of Windows ini
//! files: sections in brackets, `KEY=VALUE` lines, names in any case, and comments after `;`. Only the key `URL` is read.

use std::borrow::Cow;

use encoding_rs::{Encoding, UTF_16BE, UTF_16LE};

use crate::engine::external_body::reference::Facts;
use crate::engine::external_body::reference::{ReferenceReader, bad_value, cut_off, missing_url};
use crate::engine::external_body::url::read_url;
use crate::engine::external_body::{ExternalBody, ReferenceShape, Referent};
use crate::engine::forms::reference_form::{Needles, ReferenceForm};
use crate::engine::policy::Follow;
use crate::engine::report::{Kind, Refusal};
use crate::engine::search_words::{PrefilterWord, word};
use crate::link::url::with_octets_escaped;
use crate::mime::PartKind;

const ESSENCES: [&str; 2] = [
    "application/internet-shortcut",
    "application/x-internet-shortcut",
];

/// Maximum length of a shortcut file in bytes. A real one contains a URL and a few other lines.
const LONGEST: usize = 64 << 10;

/// Facts about shortcut files. The name of a shortcut is the name of the file followed by `.url`.
static FACTS: Facts = of_shortcut(ReferenceShape::Shortcut, Follow::Exchange);

/// Facts about attached shortcut files.
static ATTACHED: Facts = of_shortcut(ReferenceShape::AttachedShortcut, Follow::Shortcuts);

const fn of_shortcut(shape: ReferenceShape, follow: Follow) -> Facts {
    Facts {
        suffix: Some(".url"),
        ..Facts::of_whole_part(shape, Kind::Shortcut, Some(follow))
    }
}

/// Shortcut files, in an external body or attached.
pub(crate) struct Shortcut;

impl ReferenceForm for Shortcut {
    fn needles(&self) -> Needles {
        // The media types of attached shortcuts end with this word.
        static WORDS: [PrefilterWord; 1] = [word("internet-shortcut", 8)];
        Needles::Words(&WORDS)
    }

    fn of_part<'a>(&self, reader: &ReferenceReader<'a, '_>) -> Option<ExternalBody<'a>> {
        reader.attached_shortcut()
    }

    fn of_external_body<'a>(&self, reader: &ReferenceReader<'a, '_>) -> Option<ExternalBody<'a>> {
        reader.shortcut(&FACTS)
    }

    fn is_reference_type(&self, essence: &str) -> bool {
        essence.ends_with("internet-shortcut")
    }
}

impl<'a> ReferenceReader<'a, '_> {
    fn attached_shortcut(&self) -> Option<ExternalBody<'a>> {
        let is_shortcut = ESSENCES.contains(&self.tree.part(self.part).essence.as_str());
        let is_read = is_shortcut && self.reading.forms.contains(Follow::Shortcuts);
        is_read.then(|| self.shortcut(&ATTACHED))?
    }

    fn shortcut(&self, facts: &'static Facts) -> Option<ExternalBody<'a>> {
        let entity = self.tree.part(self.part);
        let body = entity.body.of(self.tree.original);
        if entity.content != PartKind::Leaf || body.len() > LONGEST.min(self.reading.header_limit) {
            return None;
        }
        let decoded = entity.encoding.decode(body)?;
        let target = match target(&decoded)? {
            Ok(_) if self.tree.is_cut_off(self.part) => Err(cut_off("URL")),
            target => target,
        };
        Some(ExternalBody::bare(self.tree, self.part, facts, target))
    }
}

fn target(file: &[u8]) -> Option<Result<Referent<'static>, Refusal>> {
    let text = text_of(file);
    let mut section = "";
    let mut is_shortcut = false;
    for line in text.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix('[') {
            section = name.strip_suffix(']').unwrap_or(name).trim();
            is_shortcut |= section.eq_ignore_ascii_case("InternetShortcut");
            continue;
        }
        if !is_shortcut && !line.is_empty() && !line.starts_with(';') && section.is_empty() {
            // Before the first section, a shortcut file has only comments and empty lines. This file has other text, so it is
            // not a shortcut.
            return None;
        }
        if !section.eq_ignore_ascii_case("InternetShortcut") {
            continue;
        }
        if let Some((key, value)) = line.split_once('=')
            && key.trim().eq_ignore_ascii_case("URL")
        {
            // Lines are not folded in this format, so a blank inside the value is part of the URL.
            let url = value.trim().trim_matches('"').replace(' ', "%20");
            // U+FFFD shows that the file was damaged, for example that half of a UTF-16 character is missing. The
            // damaged URL would lead to another resource, so it is refused.
            if url.contains(char::REPLACEMENT_CHARACTER) {
                return Some(Err(bad_value(
                    "the URL in the shortcut file contains a damaged character",
                )));
            }
            return Some(read_url(Cow::Owned(url.into_bytes())));
        }
    }
    is_shortcut.then(|| Err(missing_url()))
}

/// Decodes a shortcut file: UTF-16 or UTF-8 if it has a byte order mark, otherwise ASCII with all other bytes escaped.
fn text_of(file: &[u8]) -> Cow<'_, str> {
    let wide = |octets: &[u8], charset: &'static Encoding| {
        let (pairs, _) = octets.as_chunks::<2>();
        let (text, _) = charset.decode_without_bom_handling(pairs.as_flattened());
        Cow::Owned(text.into_owned())
    };
    match file {
        [0xff, 0xfe, rest @ ..] => wide(rest, UTF_16LE),
        [0xfe, 0xff, rest @ ..] => wide(rest, UTF_16BE),
        [0xef, 0xbb, 0xbf, rest @ ..] => with_octets_escaped(rest),
        _ => with_octets_escaped(file),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(file: &[u8]) -> Option<String> {
        match target(file)? {
            Ok(Referent::Url(url)) => Some(url),
            other => Some(format!("{other:?}")),
        }
    }

    #[test]
    fn the_url_of_the_right_section_is_read() {
        for file in [
            "[InternetShortcut]\r\nURL=https://h/a%20b?c=d\r\n",
            "; written by hand\n\n[internetshortcut]\nIDList=\n url = https://h/a b?c=d",
            "[{000214A0-0000-0000-C000-000000000046}]\nProp3=19,2\nURL=https://other/\n[InternetShortcut]\nURL=\"https://h/a%20b?c=d\"\n",
            "\u{feff}[InternetShortcut]\nURL=https://h/a%20b?c=d\n[Other]\nURL=x",
        ] {
            assert_eq!(
                url(file.as_bytes()).as_deref(),
                Some("https://h/a%20b?c=d"),
                "{file:?}"
            );
        }
        let wide: Vec<u8> = [0xff, 0xfe]
            .into_iter()
            .chain(
                "[InternetShortcut]\r\nURL=https://h/\r\n"
                    .encode_utf16()
                    .flat_map(u16::to_le_bytes),
            )
            .collect();
        assert_eq!(url(&wide).as_deref(), Some("https://h/"));
    }

    #[test]
    fn what_is_no_shortcut_is_not_read_as_one() {
        for file in [
            "",
            "URL=https://h/",
            "Dear all,\n[InternetShortcut]\nURL=https://h/",
            "[Desktop Entry]\nURL=https://h/",
        ] {
            assert_eq!(url(file.as_bytes()), None, "{file:?}");
        }
        let missing = target(b"[InternetShortcut]\nIconIndex=0\n");
        assert_eq!(missing, Some(Err(missing_url())));
    }
}
