//! The messages of an mbox, an MMDF mailbox or a Eudora mailbox.

use std::ops::Range;
use std::sync::{Arc, Mutex};

use super::context::ReadContext;
use super::letters::{
    Letter, LetterFacts, LetterPlace, Letters, MboxEntryText, MboxPlace, SearchTouched, SeeLetter,
};
use crate::detail::Detail;
use crate::error::{Error, unpoisoned};
use crate::mailbox::archive::SkippedMember;
use crate::mailbox::compressed::not_encoded;
use crate::mailbox::event::{MailboxEvent, MailboxFact};
use crate::mailbox::failure::{LEFT_OUT, in_full, too_large, unreadable};
use crate::mailbox::find;
use crate::mailbox::forms::flags::FlagIndex;
use crate::mailbox::forms::mbox::MboxReadState;
use crate::mailbox::forms::{Division, eudora, rewrite};
use crate::mailbox::input::accounts::Accounts;
use crate::mailbox::input::quoted_twice::is_quoted_twice;
use crate::mailbox::input::source::InputSource;
use crate::mailbox::input::window::{WindowChunk, Windows};
use crate::mailbox::place::delivery::StoredState;
use crate::mailbox::read::cut;
use crate::mailbox::{Message, Program, Quoting, Summary};

/// A source that is divided into messages: an mbox, or one of the mboxes in an archive.
pub(crate) struct MboxPart {
    shared: Arc<SharedPart>,
    /// Number of messages of this part that were read.
    read: u64,
    windows: Windows,
    accounts: Accounts,
}

/// Values that all messages of a part share.
#[derive(Clone)]
struct SharedPart {
    context: Arc<ReadContext>,
    is_eudora: bool,
    quoting: Quoting,
    /// Number of messages in the parts before this one.
    before: u64,
    /// Flags from the index next to the mailbox. `None` if the mailbox has no index, or if its flags are not used.
    index: Option<Arc<FlagIndex>>,
    /// Members of the archive that is read, and the offset of this part in the archive. `None` if the source is no archive.
    members: Option<(Arc<Mutex<SkippedMember>>, u64)>,
}

/// Consecutive messages of an mbox.
pub(crate) struct MboxLetters {
    shared: Arc<SharedPart>,
    chunk: WindowChunk,
}

impl MboxPart {
    /// Begins with the first part of a source. `index` contains the flags of the messages.
    ///
    /// # Errors
    /// Returns an error if the source cannot be read, or if the options select a part of it that does not exist.
    pub(crate) fn first(
        context: &Arc<ReadContext>,
        is_eudora: bool,
        mut source: InputSource,
        index: Option<FlagIndex>,
    ) -> Result<Self, Error> {
        let mut quoting = quoting_of(context, is_eudora, &mut source)?;
        if context.is_for_other_format
            && quoting == Quoting::O
            && let Some(file) = source.as_file()
            && is_quoted_twice(file, &context.path)?
        {
            quoting = Quoting::Rd;
        }
        let shared = SharedPart {
            is_eudora,
            index: index.map(Arc::new),
            ..SharedPart::new(context, quoting)
        };
        Self::of(shared, source, MboxReadState::default())
    }

    /// Begins with a section of a source, after `before` messages that were already read. `counted` says whether the
    /// Content-Length fields of these messages were right, which decides whether those after them divide messages.
    ///
    /// # Errors
    /// Returns an error if the source cannot be read.
    pub(crate) fn of_section(
        context: &Arc<ReadContext>,
        quoting: Quoting,
        source: InputSource,
        (before, counted): (u64, MboxReadState),
    ) -> Result<Self, Error> {
        let shared = SharedPart {
            before,
            ..SharedPart::new(context, quoting)
        };
        Self::of(shared, source, counted)
    }

    fn of(shared: SharedPart, source: InputSource, counted: MboxReadState) -> Result<Self, Error> {
        let context = Arc::clone(&shared.context);
        let path = context.path.as_path();
        let archived = source.members();
        let members = archived.filter(|_| context.is_for_other_format);
        let mut windows = cut::windows(source, counted, &context.options.read, path)?;
        if shared.is_eudora {
            let start = windows.source.start(find::LOOKED_AT as usize);
            let has_cr = eudora::ends_lines_with_cr(&start.map_err(in_full(path))?);
            windows.division = Division::Eudora { has_cr };
        }
        Ok(Self {
            shared: Arc::new(SharedPart { members, ..shared }),
            read: 0,
            accounts: Accounts::of(&windows),
            windows,
        })
    }

    /// Returns the next messages. Returns `None` at the end of the part.
    ///
    /// # Errors
    /// Returns an error if the source cannot be read, or if a byte of it would belong to no message.
    pub(crate) fn next(&mut self) -> Result<Option<Box<MboxLetters>>, Error> {
        let path = self.shared.context.path.as_path();
        let Some(chunk) = self.windows.next_chunk().map_err(in_full(path))? else {
            self.accounts.end(&self.windows).map_err(unreadable(path))?;
            return Ok(None);
        };
        self.accounts.chunk(&chunk).map_err(unreadable(path))?;
        self.read += chunk.messages();
        Ok(Some(Box::new(MboxLetters {
            shared: Arc::clone(&self.shared),
            chunk,
        })))
    }

    /// Begins with the next part of the source. Returns the source if this part was the last one.
    ///
    /// # Errors
    /// Returns an error if the source cannot be read.
    pub(crate) fn following(self) -> Result<Result<Self, InputSource>, Error> {
        let mut source = self.windows.source;
        let mut shared = Arc::unwrap_or_clone(self.shared);
        // The offsets of a range count all bytes of the source. After damage, some bytes are missing, so reading ends there.
        if shared.context.options.read.range.is_some() || !source.go_on() {
            return Ok(Err(source));
        }
        shared.before += self.read;
        if shared.before == 0 {
            shared.quoting = quoting_of(&shared.context, shared.is_eudora, &mut source)?;
        }
        Self::of(shared, source, MboxReadState::default()).map(Ok)
    }

    /// Returns the state of reading after the last message, and the source.
    pub(crate) fn into_end(self) -> (MboxReadState, InputSource) {
        (self.windows.counted.elsewhere(), self.windows.source)
    }
}

impl SharedPart {
    fn new(context: &Arc<ReadContext>, quoting: Quoting) -> Self {
        Self {
            context: Arc::clone(context),
            is_eudora: false,
            quoting,
            before: 0,
            index: None,
            members: None,
        }
    }
}

impl MboxLetters {
    /// Returns the bytes of the messages, with their separators and with bytes that belong to no message.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.chunk.bytes()
    }

    /// Returns the place of a message and its separator in [`bytes`](Self::bytes).
    pub(crate) fn range(&self, index: usize) -> Range<usize> {
        let frame = self.chunk.frames[index];
        frame.start..frame.end
    }
}

/// Returns how a mailbox quotes lines: as the options say, or as its first messages show.
///
/// # Errors
/// Returns an error if the source cannot be read.
pub(crate) fn quoting_of(
    context: &ReadContext,
    is_eudora: bool,
    source: &mut InputSource,
) -> Result<Quoting, Error> {
    match context.options.read.quoting {
        _ if is_eudora => Ok(Quoting::None),
        Some(quoting) => Ok(quoting),
        None => source.quoting().map_err(in_full(&context.path)),
    }
}

impl Letters for MboxLetters {
    fn count(&self) -> usize {
        self.chunk.frames.len()
    }

    fn weight(&self) -> usize {
        self.chunk.weight()
    }

    fn open(&self, index: usize, see: SeeLetter<'_>) -> Result<LetterFacts, Error> {
        let SharedPart {
            context,
            is_eudora,
            quoting,
            before,
            index: flags,
            members,
        } = &*self.shared;
        let path = context.path.as_path();
        let text = self.chunk.text(index).map_err(unreadable(path))?;
        let number = before + self.chunk.first_number + index as u64;
        if let Some(why) = &text.refused
            && context.is_for_other_format
        {
            let why = Detail::from(format!("message {number}: {}", not_encoded(why.clone())));
            return Ok(LetterFacts::lost(path, why.then(LEFT_OUT)));
        }
        let (separator, content, _) = text.parts();
        let start = self.chunk.offset + self.chunk.frames[index].start as u64;
        let member = members.as_ref().and_then(|(members, base)| {
            let places = &unpoisoned(members.lock()).places;
            places.folder(base + start)
        });
        let flags = flags.as_ref().and_then(|flags| flags.get(&start).cloned());
        see(Letter {
            message: Message {
                number,
                source: path,
                content,
                at: self.chunk.place_of(content),
                quoting: rewrite::declared_quoting(separator, *quoting),
                beside: is_eudora.then_some(Program::Eudora),
            },
            stored: StoredState::new(flags, None),
            place: LetterPlace::Mbox(MboxPlace {
                separator,
                quoting: rewrite::quoting_in(&text.frame, separator, *quoting),
                member,
                entry: MboxEntryText {
                    text: &text,
                    raw: self.chunk.raw(index),
                    quoting: *quoting,
                },
            }),
        })?;
        self.chunk.appended();
        Ok(LetterFacts::default())
    }

    fn are_kept(&self) -> bool {
        true
    }

    fn are_of_eudora(&self) -> bool {
        self.shared.is_eudora
    }

    fn touched(&self, search: SearchTouched<'_>) -> Vec<usize> {
        // The search for data of other formats runs here, so that the thread that writes the messages need not run it.
        self.chunk.appended();
        if self.shared.is_eudora {
            return (0..self.count()).collect();
        }
        self.chunk.touched(search)
    }

    fn let_go(&mut self) -> Option<usize> {
        self.chunk.appended();
        self.chunk.let_go()
    }

    fn read_again(&mut self) -> Result<(), Error> {
        let path = self.shared.context.path.as_path();
        self.chunk.read_again().map_err(unreadable(path))
    }

    fn discard(&mut self) -> usize {
        self.chunk.appended();
        self.chunk.discard()
    }

    fn facts_after(&mut self) -> LetterFacts {
        let SharedPart {
            context, before, ..
        } = &*self.shared;
        let (messages, octets) = (self.chunk.messages(), self.chunk.length as u64);
        let oversized = self.chunk.oversized;
        let mut counts = Summary {
            oversized,
            messages,
            bytes_in: octets,
            bytes_out: octets,
            ..Summary::default()
        };
        let first = before + self.chunk.first_number;
        let mut events = Vec::new();
        if oversized > 0 && context.is_for_other_format {
            counts.damaged = oversized;
            let why = too_large(Some(first + self.count() as u64), &context.options.read);
            let lost = MailboxFact::Lost(context.path.clone(), why);
            events.push(MailboxEvent::Fact(lost));
        }
        for place in self.chunk.appended() {
            counts.damaged += 1;
            let message = format!("message {}", first + place.index as u64);
            let why = place.data.detail(&message, place.offset);
            let damaged = MailboxFact::Damaged(context.path.clone(), why);
            events.push(MailboxEvent::Fact(damaged));
        }
        let read = self.chunk.packed.unwrap_or(octets);
        events.push(MailboxEvent::Advance(read, messages));
        LetterFacts { counts, events }
    }
}
