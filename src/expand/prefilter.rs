//! Whether bytes can hold anything that embody works on, told without parsing.

mod base64;
mod bases;
mod data;
mod document_type;
mod hidden;
mod words;

use crate::policy::{Embed, Links, Policy};
use bases::{Documents, Sought};
pub(super) use data::may_show_data;
use document_type::{LOOKED_AT, is_document_type};
use words::{Word, Words, word};

/// A search for the few words that any work needs, in any case.
///
/// A message in which [`Prefilter::any`] finds nothing comes out of [`Expander`](super::Expander)
/// as it went in. The search runs at memory speed; finding something proves nothing.
#[derive(Clone)]
pub struct Prefilter {
    links: Links,
    embeds: Embeds,
    /// What references need.
    references: &'static Words,
}

/// Of which documents something may be embedded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Embeds {
    Nothing,
    /// Those that may show something from a `data:` URL.
    Data,
    /// Any.
    Remote,
}

impl Embeds {
    fn of(embed: &Embed) -> Self {
        match embed.is_on() {
            false => Self::Nothing,
            true if embed.is_only_data() => Self::Data,
            true => Self::Remote,
        }
    }
}

impl std::fmt::Debug for Prefilter {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Prefilter")
            .field("links", &self.links)
            .field("embeds", &self.embeds)
            .finish_non_exhaustive()
    }
}

impl Prefilter {
    /// How many bytes of one window a search of the next one has to see again.
    #[cfg_attr(not(feature = "cli"), allow(dead_code))]
    pub const OVERLAP: usize = 2 * LOOKED_AT;

    /// The search for what this policy works on.
    #[must_use]
    pub fn new(policy: &Policy) -> Self {
        Self {
            links: policy.links,
            embeds: Embeds::of(&policy.embed),
            references: &REFERENCES,
        }
    }

    /// The search for what makes a part an attachment: one has a field that says its type or its disposition.
    #[cfg(feature = "cli")]
    #[must_use]
    pub fn of_attachments() -> Self {
        Self {
            references: &ATTACHMENTS,
            ..Self::of_detached()
        }
    }

    /// The search for what embody detached.
    #[cfg(feature = "cli")]
    #[must_use]
    pub fn of_detached() -> Self {
        Self {
            links: Links::Keep,
            embeds: Embeds::Nothing,
            references: &DETACHED,
        }
    }

    /// Whether any of the words is there.
    #[cfg(any(test, feature = "cli", feature = "internals"))]
    #[must_use]
    pub fn any(&self, bytes: &[u8]) -> bool {
        self.first(bytes).is_some()
    }

    /// Where the first of the words is.
    #[must_use]
    pub fn first(&self, bytes: &[u8]) -> Option<usize> {
        match self.looks_at_documents() {
            true => ALL.first(bytes),
            false => self.references.first(bytes),
        }
    }

    /// Which of the messages in `bytes` may have to be changed, as [`in_message`](Self::in_message) says: those
    /// that end at the places given, in order; they are numbered from 0.
    ///
    /// All are searched at once, and none is looked at more closely before something was found in it.
    #[cfg(any(test, feature = "mailbox"))]
    #[must_use]
    pub(crate) fn messages(&self, bytes: &[u8], ends: &[usize]) -> Vec<usize> {
        let words = match self.looks_at_documents() {
            true => &EVERYTHING,
            false => self.references,
        };
        let mut found = Vec::new();
        let (mut from, mut number) = (0, 0);
        // What was found in the last message.
        let mut asked = None;
        let mut documents = Documents::default();
        let (mut has_document, mut has_base) = (false, false);
        while let Some((at, word)) = words.find_from(bytes, from) {
            number += ends
                .get(number..)
                .map_or(0, |behind| behind.partition_point(|&end| end <= at));
            let Some(&end) = ends.get(number) else {
                break;
            };
            let start = number.checked_sub(1).and_then(|before| ends.get(before));
            let start = start.copied().unwrap_or_default();
            if asked != Some(number) {
                asked = Some(number);
                documents = Documents::default();
                (has_document, has_base) = (false, false);
            }
            let matters = if word < OF_REFERENCES {
                true
            } else if word < OF_REFERENCES + OF_DOCUMENTS {
                let message = bytes.get(start..end).unwrap_or_default();
                has_document = true;
                has_base
                    || self.embeds == Embeds::Remote
                    || documents.matters(message, at - start, self.sought())
            } else {
                has_base = true;
                has_document
            };
            if matters {
                found.push(number);
                number += 1;
                from = end;
            } else {
                from = at + words.words.get(word).map_or(1, |word| word.text.len());
            }
        }
        found
    }

    fn looks_at_documents(&self) -> bool {
        self.links == Links::Resolve || self.embeds != Embeds::Nothing
    }

    fn sought(&self) -> Sought {
        Sought {
            base: self.links == Links::Resolve,
            data: self.embeds == Embeds::Data,
        }
    }

    /// Whether a whole message may have to be changed: what [`any`](Self::any) says, looked at
    /// more closely. Most HTML has no base, in its message's header or in itself, and is done
    /// with here.
    #[must_use]
    pub fn in_message(&self, message: &[u8]) -> bool {
        self.external_bodies(message)
            || (self.documents(message)
                && (self.embeds == Embeds::Remote
                    || declares_base(message)
                    || has_document(message, self.sought())))
    }

    /// Whether there may be external bodies, or other forms of references.
    #[must_use]
    pub fn external_bodies(&self, bytes: &[u8]) -> bool {
        self.references.first(bytes).is_some()
    }

    /// Whether there may be HTML or CSS whose links are to be resolved.
    #[must_use]
    pub fn documents(&self, bytes: &[u8]) -> bool {
        self.looks_at_documents() && DOCUMENTS.first(bytes).is_some()
    }
}

/// Whether a document of a message may have what is sought.
fn has_document(message: &[u8], sought: Sought) -> bool {
    let mut documents = Documents::default();
    let mut from = 0;
    while let Some((at, word)) = DOCUMENTS.find_from(message, from) {
        if documents.matters(message, at, sought) {
            return true;
        }
        from = at + DOCUMENTS.words.get(word).map_or(1, |word| word.text.len());
    }
    false
}

/// Whether a message may have a base in a field, or siblings that links mean.
fn declares_base(message: &[u8]) -> bool {
    BASES.first(message).is_some()
}

/// What references need, the first [`OF_REFERENCES`]; what the type of a document begins with, [`OF_DOCUMENTS`]; and
/// the fields that give documents a base or a sibling.
static WORDS: [Word; 9] = [
    word("external-body", 8),
    // What else makes a part a reference, and what says that one was deleted.
    word("x-mozilla-external-attachment-url", 1),
    word("x-mozilla-altered", 1),
    word("x-mozilla-cloud-part", 1),
    word("x-moz-deleted", 1),
    // The end of the media types of attached shortcuts.
    word("internet-shortcut", 8),
    // One fragment for three names.
    word("content-type", 7)
        .fragment_at(4)
        .before(is_document_type),
    word("content-base", 7).fragment_at(4),
    word("content-location", 7).fragment_at(4),
];

const OF_REFERENCES: usize = 6;
const OF_DOCUMENTS: usize = 1;

static REFERENCES: Words = Words::new(WORDS.split_at(OF_REFERENCES).0, *b"---");

/// What every attachment has.
#[cfg(feature = "cli")]
static ATTACHMENTS: Words = Words::new(
    &[word("content-type", 7), word("content-disposition", 7)],
    *b"---",
);

/// What every part has that embody detached.
#[cfg(feature = "cli")]
static DETACHED: Words = Words::new(&[word("x-embody-detached", 1)], *b"---");

static DOCUMENTS: Words = Words::new(
    WORDS.split_at(OF_REFERENCES).1.split_at(OF_DOCUMENTS).0,
    *b"---",
);

/// Both.
static ALL: Words = Words::new(WORDS.split_at(OF_REFERENCES + OF_DOCUMENTS).0, *b"---");

/// The fields that give documents a base or a sibling.
static BASES: Words = Words::new(WORDS.split_at(OF_REFERENCES + OF_DOCUMENTS).1, *b"---");

#[cfg(any(test, feature = "mailbox"))]
static EVERYTHING: Words = Words::new(&WORDS, *b"---");

#[cfg(test)]
static SEARCHES: [&Words; 8] = {
    let [base64, quoted, base] = bases::SEARCHES;
    [
        &REFERENCES,
        &DOCUMENTS,
        &ALL,
        &BASES,
        &EVERYTHING,
        base64,
        quoted,
        base,
    ]
};

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::words::SHORT;
    use super::*;
    use crate::expand::Expander;
    use crate::policy::Embed;

    #[test]
    fn the_word_is_found_in_any_case() {
        let candidates = Prefilter::new(&Policy::default());
        assert_eq!(candidates.first(b"x message/eXternal-BODY"), Some(10));
        assert_eq!(
            candidates.first(b"-body External-body external-Body"),
            Some(6)
        );
        assert_eq!(candidates.first(b"x\nContent-Type: TEXT/HTML"), Some(2));
        assert!(!candidates.any(b"external-bod y -body text/plain"));
    }

    #[test]
    fn the_words_of_the_other_forms_are_found_in_any_case() {
        let candidates = Prefilter::new(&Policy::default());
        for text in [
            "X-Mozilla-External-Attachment-URL: file:///x",
            "x-mozilla-altered: AttachmentDeleted",
            "X-MOZILLA-CLOUD-PART: cloudFile",
            "text/X-Moz-Deleted",
            "application/Internet-Shortcut",
        ] {
            assert!(candidates.any(text.as_bytes()), "{text}");
            assert!(candidates.external_bodies(text.as_bytes()), "{text}");
        }
        for text in ["X-Mozilla-Status: 0001", "x-mozilla-external", "a-a", "-"] {
            assert!(!candidates.external_bodies(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn a_subtype_is_found_behind_blanks_folds_and_comments() {
        let candidates = Prefilter::new(&Policy::default());
        let far = format!("text/{}html", " ".repeat(100));
        for text in [
            "text/ html",
            "TEXT /\tHTML",
            "text/\r\n html",
            "text/\n\tcss",
            "application/ (not (only) HTML) xhtml+xml",
            "text/(a comment)html",
            &far,
        ] {
            let essence = crate::mime::MediaType::parse(text.as_bytes()).essence;
            assert!(
                essence.ends_with("html") || essence == "text/css" || essence.ends_with("+xml")
            );
            for name in ["Content-Type: ", "content-TYPE :\r\n\t"] {
                let field = [name, text].concat();
                for filler in [0, SHORT] {
                    let bytes = [&vec![b'/'; filler], field.as_bytes()].concat();
                    assert!(candidates.documents(&bytes), "{field}");
                    let message = [bytes.as_slice(), b" Content-Base: "].concat();
                    assert!(candidates.in_message(&message), "{field}");
                    assert_eq!(candidates.first(&bytes), Some(filler), "{field}");
                }
            }
        }
        for text in [
            "Content-Type: text/plain\n",
            "Content-Type: text/richtext; x=/html",
            "Content-Type: multipart/mixed;\n boundary=/",
            "h=Subject:Content-Type:MIME-Version:Content-Type:\n\tDate:Content-Type; b=x",
            "Content-Type: text\nSubject: /html",
            "Content-Type: text x/html",
            "a content-type, and text/ html",
            "text/html",
            "and / or",
            "http://h/\r\nhttp://h/\n",
            "</p>\n",
        ] {
            assert!(!candidates.any(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn a_type_that_the_window_cuts_off_may_be_a_document_s() {
        let candidates = Prefilter::new(&Policy::default());
        for essence in ["text/html", "application/xhtml+xml", "Text/CSS"] {
            for blanks in [1, 9, 20, 40] {
                let field = format!("Content-Type:{}{essence}", " ".repeat(blanks));
                for cut in "Content-Type".len()..=field.len() {
                    let found = candidates.any(&field.as_bytes()[..cut]);
                    assert!(found, "{field} cut at {cut}");
                }
                let further = format!("{field}; charset=us-ascii\n");
                assert!(candidates.any(further.as_bytes()), "{further}");
            }
        }
    }

    #[test]
    fn documents_do_not_matter_when_links_are_kept() {
        let policy = Policy {
            links: Links::Keep,
            ..Policy::default()
        };
        assert!(!Prefilter::new(&policy).any(b"Content-Type: text/html"));
    }

    #[test]
    fn a_document_matters_where_a_base_may_be() {
        let candidates = Prefilter::new(&Policy::default());
        for (message, may) in [
            ("Content-Type: text/html\n\n<a href=x>", false),
            ("Content-Type: text/html\n\n<BASE href=x>", true),
            ("Content-base: x\nContent-Type: text/html\n\n", true),
            ("Content-Base: x\nContent-Type: text/plain\n\n", false),
            ("content-LOCATION: x\nContent-Type: text/css\n\n", true),
            (
                "quoted-printable content-type: text/html <a href=3Dx> =3Cb =\nx",
                false,
            ),
            (
                "quoted-printable content-type: text/html =3cB=41=\n=53e",
                true,
            ),
            ("quoted-printable content-type: text/html <=\r\nbase ", true),
            (
                "quoted-printable content-type: text/html <BA= \t\r\n=\nSE ",
                true,
            ),
            (
                "quoted-printable content-type: text/html <BA= x\r\nSE ",
                false,
            ),
            (
                "Content-Transfer-Encoding: Base64\nContent-Type: text/html\n\nPGJhc2Ug",
                true,
            ),
            (
                "x\n--b\nContent-Transfer-Encoding: base64\nContent-Type: text/html\n\nPGJ-h\nc2Ug",
                true,
            ),
            (
                "x\n--b\nContent-Transfer-Encoding: base64\nContent-Type: text/html\n\nPGJhcg==",
                false,
            ),
            (
                "Content-Type: text/html\n\nx\n\nContent-Transfer-Encoding: base64\n\n",
                false,
            ),
            ("Content-Type: message/external-body\n\n", true),
        ] {
            assert_eq!(candidates.in_message(message.as_bytes()), may, "{message}");
        }
    }

    /// Messages of what the searches look for and what only looks like it.
    fn messages() -> impl Strategy<Value = Vec<String>> {
        let piece = prop_oneof![
            Just("Content-Type: text/html\n"),
            Just("Content-Type: text/plain\n"),
            Just("content-type: text/ html\n"),
            Just("Content-Type: Message/External-Body\n"),
            Just("Content-Type: message/external-body; access-type=URL; URL=\"data:,x\"\n\n"),
            Just("content-type :\r\n\tAPPLICATION/(a (b)) xhtml+XML\n"),
            Just("CONTENT-TYPE: Text/(c)Css\n"),
            Just("Content-Type: multipart/mixed; boundary=b\n\n--b\n"),
            Just("\n--b\n"),
            Just("<a href=x>\n"),
            Just("Content-Transfer-Encoding: base64\n"),
            // `<base href=http://h/><a href=x>`
            Just(
                "Content-Type: text/html\nContent-Transfer-Encoding: base64\n\nPGJhc2UgaHJlZj1odHRwOi8vaC8+PGEgaHJlZj14Pg==\n"
            ),
            Just("Content-Transfer-Encoding: quoted-printable\n"),
            Just("Content-Location: x\n"),
            Just("X-Mozilla-Status: 0001\n"),
            Just("X-Mozilla-Altered: x\n"),
            Just("\n"),
            Just("<html><a href=3Dx>\n"),
            Just("<BASE href=x>\n"),
            Just("=3Cbase href=3Dx>\n"),
            Just("<ba=\nse href=3Dx>\n"),
            Just(
                "<img src=data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7>\n"
            ),
            Just(
                "<img src='dat\na&colon;image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7'>\n"
            ),
            Just(
                "<p style='x:url(&#100;\\61 ta:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7)'>\n"
            ),
            Just(
                "<img src=3Dda=\nta=3Aimage/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7>\n"
            ),
            Just("/html /css content-type l-bo se64 <bas =3c=\n"),
        ];
        let piece = piece.prop_map(str::to_owned);
        let message = prop::collection::vec(piece, 1..12).prop_map(|pieces| pieces.concat());
        prop::collection::vec(message, 0..12)
    }

    proptest! {
        #[test]
        fn no_type_of_a_document_is_taken_for_another(
            main in prop_oneof![Just("text"), Just("APPLICATION"), Just("x")],
            sub in prop_oneof![Just("html"), Just("CSS"), Just("xhtml+xml"), Just("htm")],
            gaps in prop::collection::vec(
                prop_oneof![4 => Just(""), 1 => Just(" "), 1 => Just("\r\n\t"), 1 => Just("(a / (b))"), 1 => Just("(")],
                3,
            ),
            slash in prop_oneof![4 => Just("/"), 1 => Just(":"), 1 => Just("")],
            behind in prop_oneof![Just(""), Just(";"), Just(" (c)"), Just("\""), Just(":")],
        ) {
            let [first, second, third] = gaps[..] else { unreachable!() };
            let value = [first, main, second, slash, third, sub, behind].concat();
            let essence = crate::mime::MediaType::parse(value.as_bytes()).essence;
            let is_document = ["text/html", "application/xhtml+xml", "text/css"].contains(&&*essence);
            let field = format!("Content-Type:{value}");
            prop_assert!(!is_document || DOCUMENTS.first(field.as_bytes()) == Some(0), "{field:?}");
        }

        #[test]
        fn of_many_messages_those_are_found_that_are_found_one_by_one(
            messages in messages(), keep in any::<bool>(), data in any::<bool>(), long in any::<bool>(),
        ) {
            let policy = Policy {
                links: if keep { Links::Keep } else { Links::Resolve },
                embed: Embed { data, ..Embed::default() },
                ..Policy::default()
            };
            let prefilter = Prefilter::new(&policy);
            let mut bytes = Vec::new();
            let mut ends = Vec::new();
            if long {
                bytes.extend(vec![b'x'; SHORT]);
                ends.push(bytes.len());
            }
            for message in &messages {
                bytes.extend(message.bytes());
                ends.push(bytes.len());
            }
            let one_by_one: Vec<usize> = messages
                .iter()
                .enumerate()
                .filter(|(_, message)| prefilter.in_message(message.as_bytes()))
                .map(|(number, _)| number + usize::from(long))
                .collect();
            prop_assert_eq!(prefilter.messages(&bytes, &ends), one_by_one);
        }
    }

    #[test]
    fn escapes_by_the_million_are_looked_at_once_each() {
        // Each of these took minutes when every `=` was read on from.
        for unit in ["=", "=\n", "= ", "<=\n", "=3c=\n"] {
            let body = format!(
                "content-type: text/html quoted-printable {}",
                unit.repeat(1 << 20)
            );
            let candidates = Prefilter::new(&Policy::default());
            assert!(!candidates.in_message(body.as_bytes()), "{unit:?}");
        }
    }

    proptest! {
        #[test]
        fn what_the_planner_acts_on_was_found_before(
            messages in messages(), keep in any::<bool>(), data in any::<bool>(),
        ) {
            let policy = Policy {
                links: if keep { Links::Keep } else { Links::Resolve },
                embed: Embed { data, ..Embed::default() },
                ..Policy::default()
            };
            let expander = Expander::new(policy).expect("it retrieves nothing");
            for message in messages {
                let head = "From: a\nMIME-Version: 1.0\n";
                let message = format!("{head}{message}");
                // The session asks for halves of what is looked for, so it must not ask the whole of itself.
                let tree = crate::mime::scan(message.as_bytes(), &expander.scan_limits());
                let is_document = |id| {
                    let essence = tree.part(id).essence.as_str();
                    ["text/html", "application/xhtml+xml", "text/css"].contains(&essence)
                };
                let found = expander.prefilter().documents(message.as_bytes()) || (keep && !data);
                prop_assert!(found || !tree.ids().any(is_document), "{message:?}");
                let is_reference = |id| tree.part(id).essence == "message/external-body";
                let found = expander.prefilter().external_bodies(message.as_bytes());
                prop_assert!(found || !tree.ids().any(is_reference), "{message:?}");
                let report = expander.forecast(message.as_bytes(), "1");
                let found = expander.prefilter().in_message(message.as_bytes());
                prop_assert!(found || report.rows.is_empty(), "{message:?}: {:?}", report.rows);
            }
        }
    }

    #[test]
    fn each_half_has_its_own_words() {
        let is_of_documents = |word: &Word| word.text == b"content-type";
        assert!(!REFERENCES.words.iter().any(is_of_documents));
        assert!(DOCUMENTS.words.iter().all(is_of_documents));
        assert_eq!(
            ALL.words.len(),
            REFERENCES.words.len() + DOCUMENTS.words.len()
        );
    }
}
