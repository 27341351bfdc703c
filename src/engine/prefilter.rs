//! Decides whether bytes can contain anything that embody changes, without parsing them.

mod data;
mod hidden;
pub(super) mod kinds;
mod notes;

use std::sync::LazyLock;

use super::search_words::{PrefilterWord, PrefilterWords, word};
use crate::engine::forms::reference_form::{Needles, Search};
use crate::engine::forms::references::TABLE;
use crate::engine::forms::{ContentForm, FORMS, first_of_any};
use crate::engine::plan::documents::{mentions_original_source, subtypes};
use crate::engine::policy::{Embed, Follow, Followed, Links, Policy};
use crate::engine::protection::opaque_parts;
use crate::mime::{self, MessageTree, PartId, ScanLimits, TransferEncoding};
use crate::span::{front, split_while};
pub(super) use data::may_show_data;
use hidden::may_spell_base;

/// Searches for the few words that occur in every message that embody changes, in upper or lower case.
///
/// If [`Prefilter::any`] finds nothing in a message, [`Expander`](crate::Expander) would return the message unchanged. The
/// search runs at memory speed. A word can also occur in a message that needs no change.
#[derive(Clone, Debug)]
pub struct Prefilter {
    links: Links,
    /// Whether `--unwrap` is set. Wrapped links can be in any text in any encoding, so no word can rule out a message.
    unwrap: bool,
    embed: Embed,
    references: &'static PrefilterWords,
    forms: Followed,
    limits: ScanLimits,
}

impl Prefilter {
    /// Overlap of two search windows, in bytes: a word can be cut at the end of a window, so the next window starts
    /// earlier.
    #[cfg_attr(not(feature = "cli"), allow(dead_code))]
    pub const OVERLAP: usize = 2 * LOOKED_AT;

    /// Returns the search for everything that `policy` processes.
    pub fn new(policy: &Policy) -> Self {
        Self {
            links: policy.links,
            unwrap: policy.unwrap,
            embed: policy.embed,
            references: &REFERENCES,
            forms: policy.reading_to_tell().forms,
            limits: policy.limits.scan(),
        }
    }

    /// Returns the search for attachments, which have a Content-Type or a Content-Disposition field.
    #[cfg(feature = "cli")]
    pub fn of_attachments() -> Self {
        Self {
            references: &ATTACHMENTS,
            ..Self::of_detached()
        }
    }

    /// Returns the search for parts that embody detached.
    pub fn of_detached() -> Self {
        Self {
            links: Links::Keep,
            unwrap: false,
            embed: Embed::default(),
            references: &DETACHED,
            forms: Followed::none(),
            limits: ScanLimits::default(),
        }
    }

    /// Returns true if `bytes` contains any of the words.
    #[cfg(any(test, feature = "cli", feature = "internals"))]
    pub fn any(&self, bytes: &[u8]) -> bool {
        self.first(bytes).is_some()
    }

    /// Returns the position of the first word in `bytes`.
    pub fn first(&self, bytes: &[u8]) -> Option<usize> {
        self.or_note(bytes, self.words().first(bytes))
    }

    fn words(&self) -> &'static PrefilterWords {
        if self.looks_at_documents() {
            &ALL
        } else {
            self.references
        }
    }

    pub(crate) fn first_or_mark(&self, bytes: &[u8]) -> Option<usize> {
        self.or_note(bytes, MARKED.first(bytes))
    }

    fn or_note(&self, bytes: &[u8], word: Option<usize>) -> Option<usize> {
        if self.unwrap && !bytes.is_empty() {
            return Some(0);
        }
        let front = bytes.get(..word.unwrap_or(bytes.len()));
        front.and_then(|front| self.first_note(front)).or(word)
    }

    fn first_note(&self, bytes: &[u8]) -> Option<usize> {
        let searches = self.searches().chain(self.search_of_marks());
        searches.filter_map(|search| search(bytes, 0)).min()
    }

    /// Returns the searches for forms of references that [`words`](Self::words) does not find, such as notes in texts. Some
    /// references are links in documents. For these, the media types of documents are searched for, unless they are already
    /// among the words.
    fn searches(&self) -> impl Iterator<Item = Search> {
        TABLE.iter().filter_map(|form| match form.needles() {
            Needles::Header(kinds, search) | Needles::Body(kinds, search) => {
                self.reads_any(kinds).then_some(search)
            }
            Needles::Documents(kinds, _) if !self.looks_at_documents() => {
                self.reads_any(kinds).then_some(document as Search)
            }
            Needles::Documents(..) | Needles::Words(_) | Needles::Beside(..) => None,
        })
    }

    /// Returns the forms of parts that the policy opens, such as winmail.dat.
    fn opened_forms(&self) -> impl Iterator<Item = &'static ContentForm> {
        FORMS.iter().filter(|form| self.forms.contains(form.follow))
    }

    /// Returns the search for the marks of all forms that the policy opens, such as the first bytes of an encoded
    /// winmail.dat.
    fn search_of_marks(&self) -> Option<Search> {
        let mut forms = self.opened_forms();
        match (forms.next(), forms.next()) {
            (Some(form), None) => Some(form.first),
            (Some(_), Some(_)) => Some(first_of_any),
            (None, _) => None,
        }
    }

    /// Whether a word of [`FORM_TYPES`] is in the header of every part that the policy opens (winmail.dat, for
    /// example). If so, messages without such a word need no search for marks.
    #[cfg(any(test, feature = "mailbox", feature = "internals"))]
    fn types_show_forms(&self) -> bool {
        self.opened_forms().all(|form| !form.types.is_empty())
    }

    /// Whether a complete message may have a part that the policy opens, such as winmail.dat. Media types are searched
    /// first: that is faster than the search for marks, and few messages contain them.
    #[cfg(any(test, feature = "mailbox", feature = "internals"))]
    fn may_have_form(&self, message: &[u8]) -> bool {
        self.search_of_marks().is_some_and(|search| {
            let is_possible = !self.types_show_forms() || FORM_TYPES.first(message).is_some();
            is_possible && search(message, 0).is_some()
        })
    }

    /// Whether retrieved content may contain references in texts and documents, for which another pass is needed.
    pub(super) fn notes(&self, bytes: &[u8]) -> bool {
        let may_show = |needles| match needles {
            Needles::Documents(kinds, may_show) => {
                self.reads_any(kinds)
                    && (DOCUMENTS.first(bytes).is_some() || may_show(bytes, self.forms))
            }
            _ => false,
        };
        self.first_note(bytes).is_some() || TABLE.iter().any(|form| may_show(form.needles()))
    }

    fn reads_any(&self, forms: &[Follow]) -> bool {
        forms.iter().any(|form| self.forms.contains(*form))
    }

    /// Whether the body of a message without parts must be searched, because it may have a form that its header does
    /// not show, such as uuencode.
    #[cfg(feature = "milter")]
    pub(crate) fn looks_at_bodies(&self) -> bool {
        self.unwrap
            || self.looks_at_texts()
            || FORMS.iter().any(|form| self.forms.contains(form.follow))
    }

    #[cfg(feature = "milter")]
    fn looks_at_texts(&self) -> bool {
        let is_sought = |needles| match needles {
            Needles::Body(kinds, _) => self.reads_any(kinds),
            _ => false,
        };
        TABLE.iter().any(|form| is_sought(form.needles()))
    }

    /// Returns the indexes of the messages that may have to be changed. One search over all messages is faster than one
    /// for each. Only messages with a match are examined more closely. A property test compares the result with that of
    /// `in_message`.
    #[cfg(any(test, feature = "mailbox"))]
    pub(crate) fn messages(&self, bytes: &[u8], ends: &[usize]) -> Vec<usize> {
        if self.unwrap {
            return (0..ends.len()).collect();
        }
        let mut found = Vec::new();
        let is_quick = self.types_show_forms();
        let sought: &PrefilterWords = match (self.search_of_marks(), self.looks_at_documents()) {
            (Some(_), true) if is_quick => &ALL_AND_FORM_TYPES,
            (Some(_), false) if is_quick => &REFERENCES_AND_FORM_TYPES,
            _ => self.words(),
        };
        let words = |from| sought.find_from(bytes, from).map(|(at, _)| at);
        let matters = |message| {
            let message = bytes.get(message).unwrap_or_default();
            self.has_word_that_matters(message) || is_quick && self.may_have_form(message)
        };
        notes::add_messages(words, ends, matters, &mut found);
        let marks = self.search_of_marks().filter(|_| !is_quick);
        for search in self.searches().chain(marks) {
            notes::add_messages(|from| search(bytes, from), ends, |_| true, &mut found);
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    fn looks_at_documents(&self) -> bool {
        self.links == Links::Resolve || self.embed.is_on()
    }

    /// Returns true if a complete message may have to be changed. The check is stricter than [`any`](Self::any).
    #[cfg(any(test, feature = "internals"))]
    pub fn in_message(&self, message: &[u8]) -> bool {
        self.has_word_that_matters(message)
            || self.searches().any(|search| search(message, 0).is_some())
            || self.may_have_form(message)
    }

    /// Returns true if the message has a document that may need a change. Most HTML has no base for relative links, neither in
    /// the header of the message nor in the document, so this check excludes most messages.
    fn has_document(&self, message: &[u8]) -> bool {
        // In an MMDF mailbox, a line of four Ctrl-A bytes precedes each message. It is not a header field.
        let opening = message.strip_prefix(b"\x01\x01\x01\x01");
        let behind = opening.map(|rest| rest.strip_prefix(b"\r").unwrap_or(rest));
        let message = behind
            .and_then(|rest| rest.strip_prefix(b"\n"))
            .unwrap_or(message);
        let tree = mime::scan(message, &self.limits);
        let is_related = |part| {
            let mut fields = ["Content-Base", "Content-Location"].iter();
            fields.any(|name| tree.value(part, name).is_some())
        };
        opaque_parts(&tree).next().is_some()
            || tree.ids().any(is_related)
            || tree.ids().any(|part| self.is_sought(&tree, part))
    }

    fn is_sought(&self, tree: &MessageTree<'_>, part: PartId) -> bool {
        let part = tree.part(part);
        let (essence, body) = (part.essence.as_bytes(), part.body.of(tree.original));
        if !subtypes().any(|subtype| essence.ends_with(subtype)) {
            return false;
        }
        let seeks_base = self.links == Links::Resolve;
        let seeks_data = self.embed.is_only_data();
        if part.encoding == TransferEncoding::QuotedPrintable && !seeks_data {
            // The encoded body is searched without decoding it, which is faster. A soft line break can split the
            // attribute name, so finding either half is enough.
            let may_be_original = || {
                let halves = ["origin", "nalsrc", "nalSrc"];
                let is_there = |half: &str| memchr::memmem::find(body, half.as_bytes()).is_some();
                halves.into_iter().any(is_there)
                    && part
                        .encoding
                        .decode(body)
                        .is_none_or(|text| mentions_original_source(&text))
            };
            return seeks_base && (may_spell_base(body) || may_be_original());
        }
        part.encoding.decode(body).is_none_or(|text| {
            let may_change = || BASE.first(&text).is_some() || mentions_original_source(&text);
            seeks_base && may_change() || seeks_data && may_show_data(&text)
        })
    }

    /// Returns true if `bytes` may contain external bodies or other forms of references.
    pub fn external_bodies(&self, bytes: &[u8]) -> bool {
        self.references.first(bytes).is_some()
    }

    /// Returns true if `bytes` may contain HTML or CSS whose links must be resolved.
    pub fn documents(&self, bytes: &[u8]) -> bool {
        self.unwrap || self.looks_at_documents() && DOCUMENTS.first(bytes).is_some()
    }
}

fn document(bytes: &[u8], from: usize) -> Option<usize> {
    DOCUMENTS.find_from(bytes, from).map(|(at, _)| at)
}

const LOOKED_AT: usize = 32;

/// Returns true if the bytes after "content-type" may be the media type of a document. Blanks, folds and comments may
/// precede the type and surround the slash (RFC 822 §3.1.4), and [`MediaType::parse`](crate::mime::MediaType::parse)
/// accepts them, so they also count as a document type here. A DKIM signature contains "content-type" in its list of
/// signed fields. No media type follows there, so it does not count.
fn is_document_type(behind: &[u8]) -> bool {
    let unblanked = |bytes: &mut &[u8]| *bytes = bytes.trim_ascii_start();
    let mut rest = front(behind, LOOKED_AT);
    unblanked(&mut rest);
    match rest.split_first() {
        Some((b':', value)) => rest = value,
        // Without a colon, "content-type" is only a word in a text. At the end of the searched bytes the rest is
        // unknown, so there it counts as a document.
        Some(_) => return false,
        None => return true,
    }
    unblanked(&mut rest);
    let is_symbol = |byte: &u8| byte.is_ascii_alphanumeric() || b"-.+_".contains(byte);
    let (_, mut slash) = split_while(rest, is_symbol);
    let is_apart = slash.first().is_some_and(u8::is_ascii_whitespace);
    unblanked(&mut slash);
    let subtype = match slash.split_first() {
        None | Some((b'(', _)) => return true,
        Some((b'/', _)) if is_apart => return true,
        Some((b'/', subtype)) if subtype.first().is_some_and(is_symbol) => subtype,
        Some((b'/', _)) => return true,
        Some(_) => return false,
    };
    subtypes().any(|wanted| {
        // At the end of the searched window, a matching prefix of the subtype is enough.
        let length = wanted.len().min(subtype.len());
        let start = |bytes: &[u8]| bytes.get(..length).map(<[u8]>::to_ascii_lowercase);
        start(subtype) == start(wanted)
    })
}

/// Start of the field `X-Embody`, by which an earlier run marked the message. A sender can also have written it.
const OF_MARKS: PrefilterWord = word("x-embody", 1);

/// Header field that declares an HTML or CSS document.
const OF_DOCUMENTS: PrefilterWord = word("content-type", 7).before(is_document_type);

/// Words of the media types of parts that a form opens: `ms-tnef` and `octet-stream` for winmail.dat.
#[cfg(any(test, feature = "mailbox", feature = "internals"))]
static FORM_TYPES: LazyLock<PrefilterWords> =
    LazyLock::new(|| PrefilterWords::new(types_of_forms(), b'-'));

#[cfg(any(test, feature = "mailbox", feature = "internals"))]
fn types_of_forms() -> impl Iterator<Item = PrefilterWord> {
    FORMS.iter().flat_map(|form| form.types).copied()
}

/// Returns the words in the headers of parts that are references: `message/external-body`, and the words of all forms.
fn of_references() -> Vec<PrefilterWord> {
    let mut words = vec![word("external-body", 8)];
    for form in TABLE {
        if let Needles::Words(of_form) = form.needles() {
            words.extend(of_form);
        }
    }
    words.extend(FORMS.iter().flat_map(|form| form.words));
    words
}

static REFERENCES: LazyLock<PrefilterWords> =
    LazyLock::new(|| PrefilterWords::new(of_references(), b'-'));

#[cfg(feature = "cli")]
static ATTACHMENTS: LazyLock<PrefilterWords> = LazyLock::new(|| {
    let words = [word("content-type", 7), word("content-disposition", 7)];
    PrefilterWords::new(words, b'-')
});

/// Words for the mailboxes of a single mail program, with the kind of reference.
static BESIDE: LazyLock<Vec<(Follow, PrefilterWords)>> = LazyLock::new(|| {
    let beside = TABLE.iter().filter_map(|form| match form.needles() {
        Needles::Beside(kind, words) => {
            Some((kind, PrefilterWords::new(words.iter().copied(), b'-')))
        }
        _ => None,
    });
    beside.collect()
});

static DETACHED: LazyLock<PrefilterWords> =
    LazyLock::new(|| PrefilterWords::new([word("x-embody-detached", 1)], b'-'));

static DOCUMENTS: LazyLock<PrefilterWords> =
    LazyLock::new(|| PrefilterWords::new([OF_DOCUMENTS], b'-'));

/// The words of references and of documents, in one search.
static ALL: LazyLock<PrefilterWords> = LazyLock::new(|| {
    let words = of_references().into_iter().chain([OF_DOCUMENTS]);
    PrefilterWords::new(words, b'-')
});

/// The words of references, and the media types of forms, in one search. Most messages of a mailbox contain none of them.
#[cfg(any(test, feature = "mailbox", feature = "internals"))]
static REFERENCES_AND_FORM_TYPES: LazyLock<PrefilterWords> = LazyLock::new(|| {
    PrefilterWords::new(of_references().into_iter().chain(types_of_forms()), b'-')
});

/// The words of [`ALL`], and the media types of forms, in one search.
#[cfg(any(test, feature = "mailbox", feature = "internals"))]
static ALL_AND_FORM_TYPES: LazyLock<PrefilterWords> = LazyLock::new(|| {
    let words = of_references().into_iter().chain([OF_DOCUMENTS]);
    PrefilterWords::new(words.chain(types_of_forms()), b'-')
});

static MARKED: LazyLock<PrefilterWords> = LazyLock::new(|| {
    let words = [OF_MARKS].into_iter().chain(of_references());
    PrefilterWords::new(words.chain([OF_DOCUMENTS]), b'-')
});

static BASE: LazyLock<PrefilterWords> =
    LazyLock::new(|| PrefilterWords::new([word("<base", 0)], b'<'));

/// Returns every word list of the prefilter, for the tests.
#[cfg(test)]
pub(in crate::engine) fn all_searches() -> Vec<&'static PrefilterWords> {
    let beside = BESIDE.iter().map(|(_, words)| words);
    let searches: [&'static PrefilterWords; 8] = [
        &REFERENCES,
        &DOCUMENTS,
        &ALL,
        &MARKED,
        &BASE,
        &FORM_TYPES,
        &REFERENCES_AND_FORM_TYPES,
        &ALL_AND_FORM_TYPES,
    ];
    searches.into_iter().chain(beside).collect()
}

#[cfg(test)]
mod tests;
