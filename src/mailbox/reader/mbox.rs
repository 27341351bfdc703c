//! The messages of an mbox, an MMDF mailbox or a mailbox of Eudora.

use std::sync::{Arc, Mutex};

use super::context::ReadContext;
use super::letters::{Letter, LetterFacts, LetterPlace, Letters, MboxPlace, SeeLetter};
use crate::detail::Detail;
use crate::error::{Error, unpoisoned};
use crate::mailbox::archive::SkippedMember;
use crate::mailbox::begin::MailboxJob;
use crate::mailbox::compressed::not_encoded;
use crate::mailbox::event::{EventLog, MailboxEvent, MailboxFact};
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
pub(super) struct MboxPart {
    shared: Arc<SharedPart>,
    /// Number of messages of this part that were read.
    read: u64,
    windows: Windows,
    accounts: Accounts,
}

/// What the messages of a part have in common.
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

struct MboxLetters {
    shared: Arc<SharedPart>,
    chunk: WindowChunk,
}

impl MboxPart {
    /// Begins with the first part of a source. `index` contains the flags of the messages.
    ///
    /// # Errors
    /// Returns an error if the source cannot be read, or if the options select a part of it that does not exist.
    pub(super) fn first(
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
            context: Arc::clone(context),
            is_eudora,
            quoting,
            before: 0,
            index: index.map(Arc::new),
            members: None,
        };
        Self::of(shared, source)
    }

    fn of(shared: SharedPart, source: InputSource) -> Result<Self, Error> {
        let context = Arc::clone(&shared.context);
        let path = context.path.as_path();
        let members = source.members();
        let state = MboxReadState::default();
        let mut windows = cut::windows(source, state, &context.options, path)?;
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
    pub(super) fn next(&mut self) -> Result<Option<Box<dyn Letters>>, Error> {
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
    pub(super) fn following(self) -> Result<Result<Self, InputSource>, Error> {
        let mut source = self.windows.source;
        let mut shared = Arc::unwrap_or_clone(self.shared);
        // The offsets of a range count all bytes of the source. After damage, some bytes are missing, so reading ends there.
        if shared.context.options.range.is_some() || !source.go_on() {
            return Ok(Err(source));
        }
        shared.before += self.read;
        if shared.before == 0 {
            shared.quoting = quoting_of(&shared.context, shared.is_eudora, &mut source)?;
        }
        Self::of(shared, source).map(Ok)
    }
}

fn quoting_of(
    context: &ReadContext,
    is_eudora: bool,
    source: &mut InputSource,
) -> Result<Quoting, Error> {
    let log = EventLog::new();
    let job = context.job(&log);
    MailboxJob { is_eudora, ..job }.quoting(source)
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
            let lost = MailboxFact::Lost(path.to_owned(), why.then(LEFT_OUT));
            return Ok(LetterFacts::damaged(lost));
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
            }),
        })?;
        let mut appended = self.chunk.appended().iter();
        Ok(match appended.find(|place| place.index == index) {
            None => LetterFacts::default(),
            Some(place) => {
                let message = format!("message {number}");
                let why = place.data.detail(&message, place.offset);
                LetterFacts::damaged(MailboxFact::Damaged(path.to_owned(), why))
            }
        })
    }

    fn are_kept(&self) -> bool {
        true
    }

    fn are_of_eudora(&self) -> bool {
        self.shared.is_eudora
    }

    fn touched(&self, search: &dyn Fn(&[u8], &[usize]) -> Vec<usize>) -> Vec<usize> {
        // Also searches for data of other formats, so that the thread that delivers the messages need not do so.
        self.chunk.appended();
        if self.shared.is_eudora {
            return (0..self.count()).collect();
        }
        self.chunk.touched(search)
    }

    fn let_go(&mut self) -> Option<usize> {
        self.chunk.let_go()
    }

    fn read_again(&mut self) -> Result<(), Error> {
        let path = self.shared.context.path.as_path();
        self.chunk.read_again().map_err(unreadable(path))
    }

    fn discard(&mut self) -> usize {
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
        let read = self.chunk.packed.unwrap_or(octets);
        let mut events = vec![MailboxEvent::Advance(read, messages)];
        if oversized > 0 && context.is_for_other_format {
            counts.damaged = oversized;
            let number = before + self.chunk.first_number + self.chunk.frames.len() as u64;
            let why = too_large(Some(number), &context.options);
            let lost = MailboxFact::Lost(context.path.clone(), why);
            events.insert(0, MailboxEvent::Fact(lost));
        }
        LetterFacts { counts, events }
    }
}
