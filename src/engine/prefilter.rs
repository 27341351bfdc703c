//! Whether bytes can hold anything that embody works on, told without parsing.

mod data;
mod hidden;
pub(super) mod kinds;
mod notes;
mod words;

use crate::engine::forms::{FORMS, first_of_any};
use crate::engine::plan::documents::subtypes;
use crate::engine::plan::opaque_parts;
use crate::external_body::may_hold_hosted;
use crate::mime::{self, PartId, ScanLimits, TransferEncoding, Tree};
use crate::policy::{Embed, Follow, Followed, Links, Policy};
pub(super) use data::may_show_data;
use hidden::may_spell_base;
use words::{Word, Words, word};

/// A search for the few words that any work needs, in any case.
///
/// A message in which [`Prefilter::any`] finds nothing comes out of [`Expander`](super::Expander)
/// as it went in. The search runs at memory speed; finding something proves nothing.
#[derive(Clone, Debug)]
pub struct Prefilter {
    links: Links,
    embed: Embed,
    references: &'static Words,
    forms: Followed,
    limits: ScanLimits,
}

impl Prefilter {
    /// Bytes of one window that a search of the next one has to see again.
    #[cfg_attr(not(feature = "cli"), allow(dead_code))]
    pub const OVERLAP: usize = 2 * LOOKED_AT;

    /// The search for what this policy works on.
    pub fn new(policy: &Policy) -> Self {
        Self {
            links: policy.links,
            embed: policy.embed,
            references: &REFERENCES,
            forms: policy.reading_to_tell().forms,
            limits: policy.limits.scan(),
        }
    }

    /// The search for parts that are attachments: a field says their type or their disposition.
    #[cfg(feature = "cli")]
    pub fn of_attachments() -> Self {
        Self {
            references: &ATTACHMENTS,
            ..Self::of_detached()
        }
    }

    /// The search for what embody detached.
    pub fn of_detached() -> Self {
        Self {
            links: Links::Keep,
            embed: Embed::default(),
            references: &DETACHED,
            forms: Followed::none(),
            limits: ScanLimits::default(),
        }
    }

    /// Whether any of the words is there.
    #[cfg(any(test, feature = "cli", feature = "internals"))]
    pub fn any(&self, bytes: &[u8]) -> bool {
        self.first(bytes).is_some()
    }

    /// Where the first of the words is.
    pub fn first(&self, bytes: &[u8]) -> Option<usize> {
        self.or_note(bytes, self.words().first(bytes))
    }

    fn words(&self) -> &'static Words {
        match self.looks_at_documents() {
            true => &ALL,
            false => self.references,
        }
    }

    pub(crate) fn first_or_mark(&self, bytes: &[u8]) -> Option<usize> {
        self.or_note(bytes, MARKED.first(bytes))
    }

    fn or_note(&self, bytes: &[u8], word: Option<usize>) -> Option<usize> {
        let front = bytes.get(..word.unwrap_or(bytes.len()));
        front.and_then(|front| self.first_note(front)).or(word)
    }

    fn first_note(&self, bytes: &[u8]) -> Option<usize> {
        let found = self.searches().filter_map(|search| search(bytes, 0));
        found.min()
    }

    /// Documents are searched where no other note tells them.
    fn searches(&self) -> impl Iterator<Item = notes::Search> {
        let is_untold = self.reads_any(&Follow::HOSTED) && !self.looks_at_documents();
        let searches: [(bool, notes::Search); 3] = [
            (self.looks_at_texts(), notes::mailman),
            (self.forms.contains(Follow::Sympa), notes::sympa),
            (is_untold, document),
        ];
        let mut forms = FORMS.iter().filter(|form| self.forms.contains(form.follow));
        let form: Option<notes::Search> = match (forms.next(), forms.next()) {
            (Some(form), None) => Some(form.first),
            (Some(_), Some(_)) => Some(first_of_any),
            (None, _) => None,
        };
        let wanted = searches.into_iter().filter(|(is_wanted, _)| *is_wanted);
        wanted.map(|(_, search)| search).chain(form)
    }

    /// A later look at the message would take the notes.
    pub(super) fn notes(&self, bytes: &[u8]) -> bool {
        let holds = || DOCUMENTS.first(bytes).is_some() || may_hold_hosted(bytes, self.forms);
        self.first_note(bytes).is_some() || self.reads_any(&Follow::HOSTED) && holds()
    }

    fn reads_any(&self, forms: &[Follow]) -> bool {
        forms.iter().any(|form| self.forms.contains(*form))
    }

    /// Whether the body of a part that has no parts may be in a form that its header does not tell.
    #[cfg(feature = "milter")]
    pub(crate) fn looks_at_bodies(&self) -> bool {
        self.looks_at_texts() || FORMS.iter().any(|form| self.forms.contains(form.follow))
    }

    pub(super) fn looks_at_texts(&self) -> bool {
        self.reads_any(&[Follow::Mailman, Follow::MailmanDigests])
    }

    /// Messages that may have to be changed, as [`in_message`](Self::in_message) says. All are searched at once, and
    /// none is looked at more closely before something was found in it.
    #[cfg(any(test, feature = "mailbox"))]
    pub(crate) fn messages(&self, bytes: &[u8], ends: &[usize]) -> Vec<usize> {
        let mut found = Vec::new();
        let words = |from| self.words().find_from(bytes, from).map(|(at, _)| at);
        let matters = |message| self.in_message(bytes.get(message).unwrap_or_default());
        notes::add_messages(words, ends, matters, &mut found);
        for search in self.searches() {
            notes::add_messages(|from| search(bytes, from), ends, |_| true, &mut found);
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    fn looks_at_documents(&self) -> bool {
        self.links == Links::Resolve || self.embed.is_on()
    }

    /// Whether a whole message may have to be changed: a closer look than [`any`](Self::any).
    #[cfg(any(test, feature = "mailbox", feature = "internals"))]
    pub fn in_message(&self, message: &[u8]) -> bool {
        self.matters(message, self.kinds(message))
    }

    /// Most HTML has no base, in its message's header or in itself, and is done with here.
    fn has_document(&self, message: &[u8]) -> bool {
        // In MMDF a line of its own opens each message; it is no header field.
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

    fn is_sought(&self, tree: &Tree<'_>, part: PartId) -> bool {
        let part = tree.part(part);
        let (essence, body) = (part.essence.as_bytes(), part.body.of(tree.original));
        if !subtypes().any(|subtype| essence.ends_with(subtype)) {
            return false;
        }
        let seeks_base = self.links == Links::Resolve;
        let seeks_data = self.embed.is_only_data();
        if part.encoding == TransferEncoding::QuotedPrintable && !seeks_data {
            // Searching costs less than decoding.
            return seeks_base && may_spell_base(body);
        }
        part.encoding.decode(body).is_none_or(|text| {
            seeks_base && BASE.first(&text).is_some() || seeks_data && may_show_data(&text)
        })
    }

    /// Whether there may be external bodies, or other forms of references.
    pub fn external_bodies(&self, bytes: &[u8]) -> bool {
        self.references.first(bytes).is_some()
    }

    /// Whether there may be HTML or CSS whose links are to be resolved.
    pub fn documents(&self, bytes: &[u8]) -> bool {
        self.looks_at_documents() && DOCUMENTS.first(bytes).is_some()
    }
}

fn document(bytes: &[u8], from: usize) -> Option<usize> {
    DOCUMENTS.find_from(bytes, from).map(|(at, _)| at)
}

const LOOKED_AT: usize = 32;

/// Blanks, folds and comments may stand in front of the type and around the slash (RFC 822 §3.1.4), and
/// [`MediaType::parse`](crate::mime::MediaType::parse) passes over them. Where there are some, this may be the type of
/// a document. The lists of fields that DKIM signs are none.
fn is_document_type(behind: &[u8]) -> bool {
    let unblanked = |bytes: &mut &[u8]| *bytes = bytes.trim_ascii_start();
    let mut rest = behind.get(..LOOKED_AT).unwrap_or(behind);
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
    let mut slash = rest.get(main..).unwrap_or_default();
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
        // Of what the window cuts off, the start must do.
        let length = wanted.len().min(subtype.len());
        let start = |bytes: &[u8]| bytes.get(..length).map(<[u8]>::to_ascii_lowercase);
        start(subtype) == start(wanted)
    })
}

/// Marks, the first [`OF_MARKS`]; what references need, [`OF_REFERENCES`]; and what the type of a document begins with.
static WORDS: [Word; 9] = [
    // A mark of an earlier run begins so, and one that a stranger wrote.
    word("x-embody", 1),
    word("external-body", 8),
    // Other fields that make a part a reference, and one that says that a reference was deleted.
    word("x-mozilla-external-attachment-url", 1),
    word("x-mozilla-altered", 1),
    word("x-mozilla-cloud-part", 1),
    word("x-moz-deleted", 1),
    // The end of the media types of attached shortcuts.
    word("internet-shortcut", 8),
    // Outlook's winmail.dat.
    word("ms-tnef", 2),
    word("content-type", 7).before(is_document_type),
];

const OF_MARKS: usize = 1;
const OF_REFERENCES: usize = 7;

const WORK: &[Word] = WORDS.split_at(OF_MARKS).1;

static REFERENCES: Words = Words::new(WORK.split_at(OF_REFERENCES).0, b'-');

#[cfg(feature = "cli")]
static ATTACHMENTS: Words = Words::new(
    &[word("content-type", 7), word("content-disposition", 7)],
    b'-',
);

/// Apple's Mail keeps the content of parts with this field elsewhere.
static APPLE: Words = Words::new(&[word("x-apple-content-length", 1)], b'-');

static DETACHED: Words = Words::new(&[word("x-embody-detached", 1)], b'-');

static DOCUMENTS: Words = Words::new(WORK.split_at(OF_REFERENCES).1, b'-');

static ALL: Words = Words::new(WORK, b'-');

static MARKED: Words = Words::new(&WORDS, b'-');

static BASE: Words = Words::new(&[word("<base", 0)], b'<');

#[cfg(test)]
static SEARCHES: [&Words; 6] = [&REFERENCES, &DOCUMENTS, &ALL, &MARKED, &APPLE, &BASE];

#[cfg(test)]
mod tests;
