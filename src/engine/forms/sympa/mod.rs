//! Attachments that Sympa stores on its server ("urlized"). A text part replaces the attachment.
//!
//! The text is a sentence in the language of the list that ends with a colon and contains the file name, followed by a
//! URL of the form `.../attach/LIST/FOLDER/FILE`. Up to version 6.2, FILE is the name of the file, and the sentence
//! contains this name with underscores instead of dots.

use std::borrow::Cow;
use std::sync::LazyLock;

use memchr::memmem::Finder;
use percent_encoding::percent_decode_str;

use crate::engine::external_body::reference::Facts;
use crate::engine::external_body::reference::{
    ReferenceReader, declared_charset, text_in, undecodable_name,
};
use crate::engine::external_body::texts::{extension_of, file_name_in};
use crate::engine::external_body::url::read_url;
use crate::engine::external_body::{ExternalBody, ReferenceShape};
use crate::engine::forms::reference_form::{Needles, ReferenceForm};
use crate::engine::policy::Follow;
use crate::engine::report::{HostedFile, Kind};
use crate::mime::entity::uri;
use crate::mime::{MediaType, PartKind, charset};

/// Maximum length in bytes of a text that Sympa writes in place of an attachment. It consists of a sentence and a URL,
/// a few hundred bytes. Longer text is not from Sympa.
const LONGEST: usize = 4 << 10;

const UNKNOWN: &[u8] = b"unknown-8bit";

const PATH: &str = "/attach/";

const ENGLISH: [&str; 2] = ["The ", " file that was initially attached to this message"];

/// Facts about text parts that Sympa left in place of an attachment. Files on different lists often have the same name, so a
/// file in `--attachments` must also be in a directory with the right name.
static FACTS: Facts = Facts {
    attachment_components: Some(2),
    may_be_in_copies: true,
    wrote_disposition: true,
    ..Facts::of_whole_part(ReferenceShape::Sympa, Kind::Hosted, Some(Follow::Sympa))
};

/// Texts that Sympa put in place of attachments.
pub(crate) struct Sympa;

impl ReferenceForm for Sympa {
    fn needles(&self) -> Needles {
        Needles::Header(&[Follow::Sympa], flowed)
    }

    fn of_part<'a>(&self, reader: &ReferenceReader<'a, '_>) -> Option<ExternalBody<'a>> {
        reader.sympa()
    }
}

static FLOWED: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("flowed"));

/// Returns the position of `flowed`. Sympa's notes are in a text part with `format=flowed`. Their bodies can be encoded, so
/// only the header is searched for.
fn flowed(bytes: &[u8], from: usize) -> Option<usize> {
    Some(from + FLOWED.find(bytes.get(from..)?)?)
}

impl<'a> ReferenceReader<'a, '_> {
    fn sympa(&self) -> Option<ExternalBody<'a>> {
        let (tree, part) = (self.tree, self.part);
        let entity = tree.part(part);
        if !self.reading.forms.contains(Follow::Sympa)
            || entity.essence != "text/plain"
            || entity.content != PartKind::Leaf
            || entity.body.len() > LONGEST
            || !tree.is_under_multipart(part)
            || !tree.has_disposition(part, "inline")
        {
            return None;
        }
        let value = tree.value(part, "Content-Type")?;
        let format = MediaType::parse(value).parameter("format")?;
        if !format.eq_ignore_ascii_case(b"flowed") {
            return None;
        }
        let text = entity.encoding.decode(entity.body.of(tree.original))?;
        let charset = declared_charset(tree, part);
        let label = charset.as_deref();
        let decoded = text_in(label, &text);
        let is_decoded = decoded.is_some();
        let (name, url) = note(&decoded.unwrap_or_else(|| String::from_utf8_lossy(&text)))?;
        // ASCII names can be read even in an unknown charset, unless the text contains a shift byte, after which ASCII
        // bytes mean other characters.
        let has_shifts = text.iter().any(|byte| matches!(byte, 0x0e | 0x0f | 0x1b));
        let is_plain = || !has_shifts && charset::decode(UNKNOWN, name.as_bytes()).is_some();
        let is_known = is_decoded || is_plain();
        let target = if is_known && !name.contains(char::REPLACEMENT_CHARACTER) {
            read_url(Cow::Owned(url.clone().into_bytes()))
        } else {
            Err(undecodable_name(label))
        };
        let name = target.is_ok().then_some(name);
        let mut body = ExternalBody::bare(tree, part, &FACTS, target);
        body.linked = Some(Box::new(HostedFile {
            original: None,
            provider: "sympa",
            name: name.clone(),
            link: uri(&url),
            expires: None,
        }));
        body.file_name = name;
        Some(body)
    }
}

fn note(text: &str) -> Option<(String, String)> {
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    let (url, words) = lines.split_last()?;
    let is_url = url.starts_with("http://") || url.starts_with("https://");
    let is_one = !url.contains(char::is_whitespace) && url.contains(PATH);
    let joined = words.join(" ");
    if !is_url || !is_one || joined.contains("://") {
        return None;
    }
    let sentence = joined.strip_suffix([':', '\u{ff1a}'])?.trim_end();
    let segment = url.rsplit('/').next().unwrap_or_default();
    let kept = percent_decode_str(segment).decode_utf8_lossy();
    if !kept.is_empty() && sentence.contains(&kept.replace('.', "_")) {
        return Some((file_name_in(&kept)?, (*url).to_owned()));
    }
    let english = sentence
        .strip_prefix(ENGLISH[0])
        .and_then(|rest| Some(rest.split_once(ENGLISH[1])?.0));
    let first_name = || {
        let around =
            |letter: char| "\"'`\u{ab}\u{bb}\u{201c}\u{201d}\u{201e}()<>,".contains(letter);
        let mut words = sentence
            .split_whitespace()
            .map(|word| word.trim_matches(around));
        words.find(|word| extension_of(word).is_some_and(|it| it.len() + 1 < word.len()))
    };
    Some((
        file_name_in(english.or_else(first_name)?)?,
        (*url).to_owned(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_known_by_its_shape_in_any_language() {
        const URL: &str = "https://l.example/sympa/attach/team/AbC/msg.0.bin";
        const OLD: &str = "https://l.example/wws/attach/team/12.AbC/coast%2E1.mp4";
        let rest = "file that was initially attached to this message has been stored on the mailing lists server:";
        for (text, expected) in [
            (
                format!("The coast 1.mp4 {rest}\n{URL}\n"),
                Some("coast 1.mp4"),
            ),
            (
                format!("The README {rest}\r\n\r\n{URL}\r\n"),
                Some("README"),
            ),
            (
                format!(
                    "Le fichier \u{ab}c\u{f4}te.mp4\u{bb} initialement attach\u{e9} \n\u{e0} ce message a \u{e9}t\u{e9} stock\u{e9} :\n{URL}"
                ),
                Some("c\u{f4}te.mp4"),
            ),
            (
                format!("La coast_1_mp4 estas tie \u{109}i :\n{OLD}"),
                Some("coast.1.mp4"),
            ),
            (format!("The ../../a.mp4 {rest}\n{URL}"), Some("a.mp4")),
            (format!("The coast.mp4 {rest}\n{URL}\nRegards, Ann\n"), None),
            (format!("The coast.mp4 {rest}\n> {URL}\n"), None),
            (format!("My film is here:\n{URL}\n"), None),
            (format!("See coast.mp4.\n{URL}\n"), None),
            (
                format!("The coast.mp4 {rest}\nhttps://l.example/a.bin\n"),
                None,
            ),
            (format!("The coast.mp4 {rest}\n"), None),
            (String::new(), None),
        ] {
            let found = note(&text).map(|(name, url)| {
                assert!([URL, OLD].contains(&&*url), "{url}");
                name
            });
            assert_eq!(found.as_deref(), expected, "{text}");
        }
    }
}
