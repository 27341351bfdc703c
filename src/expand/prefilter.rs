//! Whether bytes can hold anything that embody works on, told without parsing.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use aho_corasick::packed;
use memchr::{memchr, memchr3_iter};

use crate::mime::quoted_printable::Sign;
use crate::policy::{Links, Policy};

/// A search for the few words that any work needs, in any case.
///
/// A message in which [`Prefilter::any`] finds nothing comes out of [`Expander`](super::Expander)
/// as it went in. The search runs at memory speed; finding something proves nothing.
#[derive(Clone)]
pub struct Prefilter {
    links: Links,
    embeds: bool,
    /// What references need.
    references: &'static Words,
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
    pub const OVERLAP: usize = 64;

    /// The search for what this policy works on.
    #[must_use]
    pub fn new(policy: &Policy) -> Self {
        Self {
            links: policy.links,
            embeds: policy.embed.is_on(),
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
            embeds: false,
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
        match self.links {
            Links::Keep if !self.embeds => self.references.first(bytes),
            _ => ALL.first(bytes),
        }
    }

    /// Whether a whole message may have to be changed: what [`any`](Self::any) says, looked at
    /// more closely. Most HTML has no base, in its message's header or in itself, and is done
    /// with here.
    #[must_use]
    pub fn in_message(&self, message: &[u8]) -> bool {
        self.external_bodies(message)
            || self.documents_with_base(message)
            || (self.embeds && self.documents(message))
    }

    /// Whether there may be external bodies, or other forms of references.
    #[must_use]
    pub fn external_bodies(&self, bytes: &[u8]) -> bool {
        self.references.first(bytes).is_some()
    }

    /// Whether there may be HTML or CSS whose links are to be resolved.
    #[must_use]
    pub fn documents(&self, bytes: &[u8]) -> bool {
        (self.links == Links::Resolve || self.embeds) && DOCUMENTS.first(bytes).is_some()
    }

    /// The same for a whole message, where a base or a sibling must be declared as well.
    fn documents_with_base(&self, message: &[u8]) -> bool {
        self.documents(message)
            && (BASES.first(message).is_some()
                || (QUOTED.first(message).is_some() && escapes_base(message)))
    }
}

/// What references need, the first [`OF_REFERENCES`], and the subtypes of documents. They are looked for where they are alike: with
/// more than 32 fragments in all the search takes twice the time.
static WORDS: [Word; 10] = [
    word("external-body", 8),
    // What else makes a part a reference, and what says that one was deleted.
    word("x-mozilla-external-attachment-url", 1),
    word("x-mozilla-altered", 1),
    word("x-mozilla-cloud-part", 1),
    word("x-moz-deleted", 1),
    // The end of the media types of attached shortcuts.
    word("internet-shortcut", 8),
    word("/html", 0),
    word("/xhtml+xml", 0),
    word("/css", 0),
    TYPE_IN_PIECES,
];

const OF_REFERENCES: usize = 6;

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

static DOCUMENTS: Words = Words::new(WORDS.split_at(OF_REFERENCES).1, *b"/-/");

/// Both.
static ALL: Words = Words::new(&WORDS, *b"-/-");

/// A field whose type is not written in one piece: blanks, folds and comments may stand around its
/// slash (RFC 822 §3.1.4), and [`MediaType::parse`](crate::mime::MediaType::parse) passes over them.
const TYPE_IN_PIECES: Word = Word {
    behind: is_no_plain_type,
    ..word("content-type", 7)
};

/// Whether what stands behind the name of a Content-Type field is not simply `: type/subtype`.
fn is_no_plain_type(behind: &[u8]) -> bool {
    let unblanked = |bytes: &mut &[u8]| *bytes = bytes.trim_ascii_start();
    let mut rest = behind.get(..Prefilter::OVERLAP / 2).unwrap_or(behind);
    unblanked(&mut rest);
    match rest.split_first() {
        Some((b':', value)) => rest = value,
        // Talk about such a field; or the window ends here.
        Some(_) => return false,
        None => return true,
    }
    unblanked(&mut rest);
    let is_symbol = |byte: &u8| byte.is_ascii_alphanumeric() || b"-.+_".contains(byte);
    let main = rest.iter().take_while(|byte| is_symbol(byte)).count();
    rest.get(main) != Some(&b'/') || !rest.get(main + 1).is_some_and(is_symbol)
}

/// What gives documents a base or a sibling; base64 is here because it may hide a `<base`.
static BASES: Words = Words::new(
    &[
        word("content-base", 7),
        word("content-location", 7),
        word("<base", 0),
        word("base64", 4),
    ],
    *b"-<6",
);

/// The encoding that may hide a `<base` from [`BASES`], but not from [`escapes_base`].
static QUOTED: Words = Words::new(&[word("quoted-printable", 6)], *b"---");

/// Whether bytes of a quoted-printable body spell `<base` with an escape or a soft line break.
///
/// Each byte is read once: what stands between two `=` matters only at its ends, because what is all
/// literal was searched for before.
fn escapes_base(bytes: &[u8]) -> bool {
    let mut spelling = Spelling::default();
    let mut rest = bytes;
    while let Some(at) = memchr(b'=', rest) {
        let (literal, escape) = rest.split_at(at);
        spelling.literal(literal);
        if spelling.is_whole() {
            return true;
        }
        let behind = escape.get(1..).unwrap_or_default();
        let (sign, length) = Sign::read(behind);
        match sign {
            Sign::Escape(octet) => spelling.octet(octet),
            Sign::SoftBreak => {}
            Sign::Bare => spelling.octet(b'='),
        }
        if spelling.is_whole() {
            return true;
        }
        rest = behind.get(length..).unwrap_or_default();
    }
    spelling.literal(rest);
    spelling.is_whole()
}

/// How much of `<base` the octets so far end in. The `<` stands nowhere else in it, so that one number
/// says all.
#[derive(Default)]
struct Spelling {
    spelled: usize,
}

impl Spelling {
    const NAME: &[u8] = b"<base";

    fn octet(&mut self, octet: u8) {
        if self.is_whole() {
            return;
        }
        let wanted = Self::NAME.get(self.spelled);
        self.spelled = match wanted.is_some_and(|wanted| octet.eq_ignore_ascii_case(wanted)) {
            true => self.spelled + 1,
            false => usize::from(octet == b'<'),
        };
    }

    /// Octets that stand for themselves: of many of them, those that may end a word and those that may
    /// begin one.
    fn literal(&mut self, octets: &[u8]) {
        let ends = Self::NAME.len();
        let (front, back) = octets.split_at(octets.len().min(ends));
        front.iter().for_each(|&octet| self.octet(octet));
        let last = back.get(back.len().saturating_sub(ends)..);
        if back.len() > ends && !self.is_whole() {
            self.spelled = 0;
        }
        for &octet in last.unwrap_or_default() {
            self.octet(octet);
        }
    }

    fn is_whole(&self) -> bool {
        self.spelled == Self::NAME.len()
    }
}

/// A word in lower case, and where in it the byte that is no letter stands, which is looked for.
struct Word {
    text: &'static [u8],
    anchor: usize,
    /// Whether what stands behind the word makes it count.
    behind: fn(&[u8]) -> bool,
}

const fn word(text: &'static str, anchor: usize) -> Word {
    Word {
        text: text.as_bytes(),
        anchor,
        behind: |_| true,
    }
}

impl Word {
    /// Where the bytes around the anchor start that a vector search looks for.
    fn fragment(&self) -> usize {
        self.anchor.saturating_sub(1)
    }
}

/// How many bytes those are.
const FRAGMENT: usize = 3;

/// Below this many bytes it does not pay to build the tables for a vector search.
const SHORT: usize = 16 << 10;

/// Words to look for, together.
struct Words {
    words: &'static [Word],
    /// The bytes that are anchors; fewer than three are named again.
    anchors: [u8; 3],
    /// A search for the fragments in every case; none where the processor has no vectors for it.
    packed: OnceLock<Option<packed::Searcher>>,
}

impl Words {
    const fn new(words: &'static [Word], anchors: [u8; 3]) -> Self {
        Self {
            words,
            anchors,
            packed: OnceLock::new(),
        }
    }

    /// Where the first of the words stands.
    fn first(&self, bytes: &[u8]) -> Option<usize> {
        if bytes.len() >= SHORT
            && let Some(packed) = self.packed.get_or_init(|| searcher(self.words))
        {
            return self.first_by_fragment(packed, bytes);
        }
        let [a, b, c] = self.anchors;
        memchr3_iter(a, b, c, bytes).find_map(|at| self.around(bytes, at, |word| word.anchor))
    }

    fn first_by_fragment(&self, packed: &packed::Searcher, bytes: &[u8]) -> Option<usize> {
        let mut from = 0;
        while let Some(hit) = packed.find_in(bytes, (from..bytes.len()).into()) {
            let found = self.around(bytes, hit.start(), Word::fragment);
            if found.is_some() {
                return found;
            }
            from = hit.start() + 1;
        }
        None
    }

    /// Where the word stands of which the byte at `at` is the one that `offset` tells.
    fn around(&self, bytes: &[u8], at: usize, offset: fn(&Word) -> usize) -> Option<usize> {
        self.words.iter().find_map(|word| {
            let start = at.checked_sub(offset(word))?;
            let (there, behind) = bytes.get(start..)?.split_at_checked(word.text.len())?;
            (there.eq_ignore_ascii_case(word.text) && (word.behind)(behind)).then_some(start)
        })
    }
}

/// A search for the fragments of all words, each in every case.
fn searcher(words: &[Word]) -> Option<packed::Searcher> {
    let mut patterns = BTreeSet::new();
    for word in words {
        let fragment = word.text.get(word.fragment()..word.fragment() + FRAGMENT)?;
        for upper in 0..1_u8 << FRAGMENT {
            let mut pattern = fragment.to_vec();
            for (place, byte) in pattern.iter_mut().enumerate() {
                if upper & 1 << place != 0 {
                    byte.make_ascii_uppercase();
                }
            }
            patterns.insert(pattern);
        }
    }
    packed::Searcher::new(patterns)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::mime::TransferEncoding;

    #[test]
    fn the_word_is_found_in_any_case() {
        let candidates = Prefilter::new(&Policy::default());
        assert_eq!(candidates.first(b"x message/eXternal-BODY"), Some(10));
        assert_eq!(
            candidates.first(b"-body External-body external-Body"),
            Some(6)
        );
        assert_eq!(candidates.first(b"Content-Type: TEXT/HTML"), Some(18));
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
                    let message = [bytes.as_slice(), b" text/html"].concat();
                    assert_eq!(candidates.first(&message), Some(filler), "{field}");
                }
            }
        }
        for text in [
            "Content-Type: text/plain\n",
            "Content-Type: multipart/mixed;\n boundary=/",
            "a content-type, and text/ html",
            "and / or",
            "http://h/\r\nhttp://h/\n",
            "</p>\n",
        ] {
            assert!(!candidates.any(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn documents_do_not_matter_when_links_are_kept() {
        let policy = Policy {
            links: Links::Keep,
            ..Policy::default()
        };
        assert!(!Prefilter::new(&policy).any(b"text/html"));
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
            ("quoted-printable text/html <a href=3Dx> =3Cb =\nx", false),
            ("quoted-printable text/html =3cB=41=\n=53e", true),
            ("quoted-printable text/html <=\r\nbase ", true),
            ("quoted-printable text/html <BA= \t\r\n=\nSE ", true),
            ("quoted-printable text/html <BA= x\r\nSE ", false),
            (
                "Content-Transfer-Encoding: Base64\nContent-Type: text/html\n\n",
                true,
            ),
            ("Content-Type: message/external-body\n\n", true),
        ] {
            assert_eq!(candidates.in_message(message.as_bytes()), may, "{message}");
        }
    }

    proptest! {
        #[test]
        fn what_quoted_printable_decodes_to_is_seen_before(
            escapes in prop::collection::vec((any::<bool>(), 0_u8..6, any::<bool>()), 5),
            around in "[<bB=3C \n]{0,12}",
        ) {
            let mut body = around.clone().into_bytes();
            for (&byte, (upper, form, lower_digits)) in b"<base".iter().zip(escapes) {
                let byte = if upper { byte.to_ascii_uppercase() } else { byte };
                match form {
                    0 if lower_digits => body.extend(format!("={byte:02x}").bytes()),
                    0 => body.extend(format!("={byte:02X}").bytes()),
                    1 => body.extend([b'=', b' ', b'\n', byte]),
                    2 => body.extend([b'=', b'\r', b'\n', byte]),
                    _ => body.push(byte),
                }
            }
            body.extend(around.bytes());
            let octets = TransferEncoding::QuotedPrintable.decode(&body).expect("any body");
            let spelled = octets.windows(5).any(|there| there.eq_ignore_ascii_case(b"<base"));
            let seen = BASES.first(&body).is_some() || escapes_base(&body);
            prop_assert!(seen || !spelled, "{}", body.escape_ascii());
        }
    }

    proptest! {
        #[test]
        fn escapes_are_read_once_as_the_decoder_reads_them(
            body in "(=|=3[cC]|=62|=\r?\n|= \t\n|=[4-6][1-5]|[<bBaAsSeE]|<b|as|e|\n| |x{1,12}){0,16}",
        ) {
            let octets = TransferEncoding::QuotedPrintable.decode(body.as_bytes()).expect("any body");
            let is_base = |there: &[u8]| there.eq_ignore_ascii_case(b"<base");
            let spelled = octets.windows(5).any(is_base);
            let literal = body.as_bytes().windows(5).any(is_base);
            prop_assert_eq!(escapes_base(body.as_bytes()) || literal, spelled, "{:?}", body);
        }
    }

    #[test]
    fn escapes_by_the_million_are_looked_at_once_each() {
        // Each of these took minutes when every `=` was read on from.
        for unit in ["=", "=\n", "= ", "<=\n", "=3c=\n"] {
            let body = format!("text/html quoted-printable {}", unit.repeat(1 << 20));
            let candidates = Prefilter::new(&Policy::default());
            assert!(!candidates.in_message(body.as_bytes()), "{unit:?}");
        }
    }

    #[test]
    fn each_half_has_its_own_words() {
        let is_of_documents = |word: &Word| word.text[0] == b'/' || word.text == b"content-type";
        assert!(!REFERENCES.words.iter().any(is_of_documents));
        assert!(DOCUMENTS.words.iter().all(is_of_documents));
    }

    #[test]
    fn both_searches_find_every_word_at_every_place_in_every_case() {
        for words in [&REFERENCES, &DOCUMENTS, &ALL, &BASES] {
            for word in words.words {
                for (place, upper) in (0..70)
                    .step_by(3)
                    .flat_map(|place| [(place, false), (place, true)])
                {
                    let mut text = word.text.to_vec();
                    if upper {
                        text.make_ascii_uppercase();
                    }
                    for filler in ["-", "/", "l-", "t-l", "/h"] {
                        let mut bytes = filler.repeat(SHORT + 70).into_bytes();
                        bytes.truncate(SHORT + place);
                        bytes.extend_from_slice(&text);
                        bytes.push(b':');
                        let found = words.first(&bytes);
                        assert_eq!(
                            found,
                            Some(SHORT + place),
                            "{filler} {}",
                            text.escape_ascii()
                        );
                        let short = &bytes[SHORT - 5..];
                        assert_eq!(words.first(short), Some(place + 5));
                    }
                }
            }
        }
    }
}
