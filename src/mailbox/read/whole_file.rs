//! Reads every byte of a file for `store gc`, and names data of other formats in its messages, which contain mail that the
//! search for references does not see.
//!
//! A file with many messages is read in windows, and each message is searched on its own, as a conversion does. The single
//! messages of an archive become entries of its mbox. They are searched before, and the entries declare binary data, so that no
//! message is searched as a part of another one.

use std::fs::File;
use std::io;
use std::sync::{Arc, Mutex};

use crate::error::unpoisoned;
use crate::mailbox::appended::AppendedData;
use crate::mailbox::archive::{
    self, EntryMaker, MboxEntry, MemberRules, MemberVerdict, SkippedMember,
};
use crate::mailbox::compressed::{CompressionDamage, Decoder, Method};
use crate::mailbox::file::{PackedFile, PackedReader};
use crate::mailbox::find::LOOKED_AT;
use crate::mailbox::flag_losses::FlagLosses;
use crate::mailbox::forms::kind::StartKind;
use crate::mailbox::forms::rewrite::{MBOXRD_SEPARATOR, for_mbox};
use crate::mailbox::forms::{Division, MboxVariant, eudora, mmdf};
use crate::mailbox::input::source::InputSource;
use crate::mailbox::input::window::Windows;
use crate::mailbox::not_mail::NotMail;
use crate::mailbox::start::kind_of_start;
use crate::mailbox::{ReadOptions, Stop};
use crate::span::front;

/// Number of bytes that are read at once.
const PIECE: usize = 1 << 20;

/// A file of which every byte is read.
pub(crate) struct WholeFile {
    source: InputSource,
    start: Vec<u8>,
    is_archive: bool,
}

impl WholeFile {
    /// Opens a file. `judge` recognises the members of an archive. Data of other formats in a member are an error at the end
    /// of the archive, like a member that cannot be read.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, or if its compressed data are damaged.
    pub(crate) fn open(
        file: File,
        judge: fn(&[u8], &[u8]) -> MemberVerdict,
        options: &ReadOptions,
        stop: &Stop,
    ) -> io::Result<Self> {
        let file = Arc::new(file);
        let most = options.max_expanded;
        let rules = MemberRules {
            judge,
            entries: || Box::new(SearchedEntries),
        };
        let packed = PackedFile::new(&file, stop);
        let skipped: Arc<Mutex<SkippedMember>> = Arc::default();
        let mut source = match archive::unpacked(&packed, most, rules, &skipped)? {
            Some(reader) => InputSource::stream(reader, None, Arc::clone(&skipped)),
            None => InputSource::file(&file),
        };
        let mut start = source.start(LOOKED_AT as usize)?;
        let is_file = source.as_file().is_some();
        if let Some(method) = Method::of_text(&start).filter(|_| is_file) {
            let decoder = Decoder::new(method, PackedReader::new(&packed), most);
            source = InputSource::stream(decoder, None, Arc::clone(&skipped)).of_utf16();
            start = source.start(LOOKED_AT as usize)?;
        }
        if start.is_empty() {
            check_damage(&source)?;
        }
        let is_archive = unpoisoned(skipped.lock()).files.total() > 0;
        Ok(Self {
            source,
            start,
            is_archive,
        })
    }

    /// Returns the first bytes of the mail in the file.
    pub(crate) fn start(&self) -> &[u8] {
        &self.start
    }

    /// Reads the file. `visit` is called with each piece of the content and its offset. `name` is called with a sentence about
    /// each place at which a message contains data of another format.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, or if its compressed data are damaged.
    pub(crate) fn read(
        mut self,
        options: &ReadOptions,
        stop: &Stop,
        visit: &mut dyn FnMut(u64, &[u8]),
        name: &mut dyn FnMut(String),
    ) -> io::Result<()> {
        let kind = kind_of_start(&self.start);
        match kind {
            _ if self.is_archive => self.messages(options, stop, visit, name),
            Ok(StartKind::Mbox) => self.messages(options, stop, visit, name),
            Ok(StartKind::Eml) | Err(NotMail::Text) => {
                self.single(kind.is_ok(), options.max_message, stop, visit, name)
            }
            // A picture or an index contains no messages.
            _ => self.messages(options, stop, visit, &mut |_| {}),
        }
    }

    fn messages(
        self,
        options: &ReadOptions,
        stop: &Stop,
        visit: &mut dyn FnMut(u64, &[u8]),
        name: &mut dyn FnMut(String),
    ) -> io::Result<()> {
        let is_eudora = self.source.as_file().is_some() && eudora::starts(&self.start);
        let mut windows = Windows::new(self.source, PIECE, options.max_message);
        if is_eudora {
            let has_cr = eudora::ends_lines_with_cr(&self.start);
            windows.division = Division::Eudora { has_cr };
        }
        search_messages(&mut windows, options, stop, visit, name)?;
        check_damage(&windows.source)
    }

    fn single(
        &mut self,
        is_mail: bool,
        most: usize,
        stop: &Stop,
        visit: &mut dyn FnMut(u64, &[u8]),
        name: &mut dyn FnMut(String),
    ) -> io::Result<()> {
        let (mut content, mut is_whole) = (Vec::new(), true);
        let mut piece = vec![0; PIECE];
        let mut at = 0;
        loop {
            stop.check().map_err(io::Error::other)?;
            let filled = self.source.fill(&mut piece)?;
            let bytes = piece.get(..filled).unwrap_or_default();
            if bytes.is_empty() {
                break;
            }
            visit(at, bytes);
            at += bytes.len() as u64;
            is_whole &= at <= most as u64;
            if is_whole {
                content.extend_from_slice(bytes);
            } else {
                content = Vec::new();
            }
        }
        check_damage(&self.source)?;
        if is_whole {
            let is_plain = self.source.as_file().is_some();
            let data = AppendedData::in_file(&content);
            if let Some(data) = data.filter(|it| !it.is_text() && !self.source.is_utf16()) {
                name(data.advice_for_search("the message", is_plain.then_some(0)));
            }
        } else if is_mail {
            name(too_large(most));
        }
        Ok(())
    }
}

fn search_messages(
    windows: &mut Windows,
    options: &ReadOptions,
    stop: &Stop,
    visit: &mut dyn FnMut(u64, &[u8]),
    name: &mut dyn FnMut(String),
) -> io::Result<()> {
    while let Some(chunk) = windows.next_chunk()? {
        stop.check().map_err(io::Error::other)?;
        visit(chunk.offset, chunk.bytes());
        for place in chunk.appended() {
            if place.data.is_text() {
                continue;
            }
            let message = format!("message {}", chunk.first_number + place.index as u64);
            name(place.data.advice_for_search(&message, place.offset));
        }
        if chunk.oversized > 0 {
            name(too_large(options.max_message));
        }
    }
    Ok(())
}

fn too_large(most: usize) -> String {
    format!(
        "a message is larger than {most} bytes, so it was not searched for data of another format; move this message out of \
         the mailbox, or keep the objects"
    )
}

fn check_damage(source: &InputSource) -> io::Result<()> {
    match source.damage() {
        Some(damage) => Err(CompressionDamage::clone(damage).into()),
        None => Ok(()),
    }
}

/// Header of an entry whose body is searched already.
const SEARCHED: &[u8] =
    b"\nContent-Type: application/octet-stream\nContent-Transfer-Encoding: binary\n\n";

/// Searches the single messages of an archive, and makes entries of them that contain all of their bytes.
struct SearchedEntries;

impl EntryMaker for SearchedEntries {
    fn entry(&mut self, _: &str, content: &[u8], _: StartKind) -> Result<MboxEntry, String> {
        let mut missing = Vec::new();
        match kind_of_start(front(content, LOOKED_AT as usize)) {
            Ok(StartKind::Mbox) if mmdf::starts(content) => {
                let bytes = io::Cursor::new(content.to_vec());
                let source = InputSource::stream(bytes, None, Arc::default());
                let options = ReadOptions::default();
                let mut windows = Windows::new(source, PIECE, options.max_message);
                let searched = search_messages(
                    &mut windows,
                    &options,
                    &Stop::default(),
                    &mut |_, _| {},
                    &mut |sentence| missing.push(sentence),
                );
                searched.map_err(|error| error.to_string())?;
            }
            Ok(_) | Err(NotMail::Text) => {
                let data = AppendedData::in_file(content).filter(|data| !data.is_text());
                missing.extend(data.map(|data| data.advice_for_search("the message", None)));
            }
            Err(_) => {}
        }
        let quoted = for_mbox(content, MboxVariant::Rd);
        Ok(MboxEntry {
            bytes: [MBOXRD_SEPARATOR, SEARCHED, &quoted].concat(),
            missing,
            lost: Vec::new(),
            had_prologue: false,
        })
    }

    fn uses_keyword_files(&self, _: &str) -> bool {
        false
    }

    fn is_keyword_file(&self, _: &str) -> bool {
        false
    }

    fn add_keyword_file(&mut self, _: &str, _: &[u8], _: &mut FlagLosses) {}

    fn unused_flags(&self, _: &str, _: &[u8]) -> Option<&'static str> {
        None
    }
}
