//! Writes mail to a mailbox of another format, or to one mailbox for each label. Mailboxes that already have the format
//! of the result are copied.
//!
//! **The bytes of a message are kept**, except for the changes that the mbox format requires. Lines of the body that
//! start with `From ` are quoted (mboxrd) when a message is written to an mbox, and unquoted when it is read from one.
//! A last line without a line ending gets one, and a wrong Content-Length is corrected. The flags of a Maildir file
//! name are written to header fields of an mbox if the fields have other values. In the other direction, the fields are
//! kept and the flags are derived from them.
//!
//! **Dates** come from the time of the message file or from the separator line. A date without a zone is read as UTC
//! (RFC 4155).
//!
//! A message that is too large or damaged is reported and omitted.

use std::borrow::Cow;
use std::fs::{self, File};
use std::iter;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use memchr::memmem;

use crate::detail::Detail;
use crate::error::Error;
use crate::mailbox::archive::Inner;
use crate::mailbox::begin::{Job, begun, sweep};
use crate::mailbox::compressed::{Content, content_of, method_of};
use crate::mailbox::failure::{cannot_read, cannot_write, in_full, unread, unreadable};
use crate::mailbox::find::{Finds, Kind};
use crate::mailbox::forms::flags::Flags;
use crate::mailbox::forms::refused::refused_message;
use crate::mailbox::forms::separator::{self, own_separator};
use crate::mailbox::forms::{mmdf, rewrite};
use crate::mailbox::place::delivery::{Delivery, Handler, Letter};
use crate::mailbox::place::folder::{MessageFolder, noted_in_name};
use crate::mailbox::place::journal::Record;
use crate::mailbox::place::{listing, temporary};
use crate::mailbox::read::accounts::Accounts;
use crate::mailbox::read::file::PackedFile;
use crate::mailbox::read::messages::Transformed;
use crate::mailbox::read::sink::Output;
use crate::mailbox::read::window::{Chunk, Windows};
use crate::mailbox::result_folders::{ResultFolder, result_folders};
use crate::mailbox::result_form::form;
use crate::mailbox::{Envelope, ExternalMessage, Format, Options, Quoting, Summary, Transform};
use crate::platform::{self, FileExt as _, OsStrExt as _};
use crate::pool;

impl<S: Send> Job<'_, S> {
    /// Converts all mailboxes to `destination`, or to one mbox in the file `open`, which is standard output.
    pub(crate) fn transfer(
        &self,
        finds: &Finds,
        destination: &Path,
        mut open: Option<File>,
    ) -> Result<Summary, Error> {
        let options = self.options;
        let writes = options.mode.writes();
        if writes {
            sweep(finds, options.format);
        }
        let mut summary = begun(finds, self.observer);
        if let ([found], None) = (finds.mailboxes.as_slice(), &open)
            && found.is_packed()
            && found.relative.as_os_str().is_empty()
        {
            let folder = temporary::folder_of(destination);
            if writes {
                fs::create_dir_all(folder).map_err(cannot_write(folder))?;
                temporary::sweep(folder);
            }
            if self.is_made(&found.path) {
                summary.add(&self.made());
                return Ok(summary);
            }
            let like = fs::metadata(found.file()).ok();
            let places = (destination, destination);
            let unpacked = self.unpack(found.kind, places, like.as_ref(), |job, output| {
                let mut output = Some(output);
                job.each([found], |job, kind| match output.take() {
                    Some(output) => job.file_to(kind, output),
                    None => Ok(Summary::default()),
                })
            });
            summary.add(&unpacked?);
            return Ok(summary);
        }
        let folds =
            || writes && platform::folds_names(temporary::folder_of(destination)).unwrap_or(false);
        let folders = result_folders(finds, options, folds);
        if options.output_format == Format::Thunderbird {
            let moved = self.to_tree(&folders, destination)?;
            summary.add(&moved);
            return Ok(summary);
        }
        let is_one = matches!(folders.as_slice(), [folder] if folder.path.as_os_str().is_empty());
        let mut at_work_in = PathBuf::new();
        for folder in &folders {
            let Some(first) = folder.founds.first() else {
                continue;
            };
            self.stop.check()?;
            let target = if is_one {
                destination.to_owned()
            } else {
                destination.join(&folder.path)
            };
            let parent = temporary::folder_of(&target);
            if writes && open.is_none() && parent != at_work_in {
                fs::create_dir_all(parent).map_err(cannot_write(parent))?;
                temporary::sweep(parent);
                at_work_in = parent.to_owned();
            }
            let founds = folder.founds.iter().copied();
            if first.is_packed() {
                let unpacked = self.each(founds, |job, kind| {
                    if job.is_made(job.path) {
                        return Ok(job.made());
                    }
                    let like = fs::metadata(job.path).ok();
                    let directory = destination.join(&folder.directory);
                    let places = (target.as_path(), directory.as_path());
                    job.unpack(kind, places, like.as_ref(), |job, output| {
                        job.file_to(kind, output)
                    })
                });
                summary.add(&unpacked?);
                continue;
            }
            if !folder.is_moved {
                let done = self.each(founds, |job, kind| match kind.is_folder() {
                    true => job.folder(kind, Some(&target)),
                    false if job.is_made(job.path) => Ok(job.made()),
                    false if is_one => job.file_to(kind, Output::Path(&target)),
                    false => job.file_to(kind, Output::InFolder(&target)),
                });
                summary.add(&done?);
                continue;
            }
            let open = open.take();
            let record = match open {
                None => self.record_of_group(founds.clone()),
                Some(_) => None,
            };
            if record.as_ref().is_some_and(Record::is_made) {
                self.observer.begin(&first.path);
                summary.add(&self.made());
                continue;
            }
            let (form, like) = (form(first.kind, options), fs::metadata(first.file()).ok());
            let like = like.as_ref();
            let mut delivery = Delivery::start(form, options, open, &target, like, self.journal)?;
            let moved = self.each(founds, |job, kind| {
                if kind.is_folder() {
                    job.folder_to(kind, &mut delivery)
                } else {
                    job.file_to(kind, Output::Delivery(&mut delivery))
                }
            })?;
            // An Outlook folder that contains only contacts or appointments has no messages, so no mailbox is created
            // for it.
            if first.kind != Kind::Pst || moved.messages > 0 {
                delivery.finish_unless_damaged(&moved, record)?;
            }
            summary.add(&moved);
        }
        Ok(summary)
    }

    /// Converts all mailboxes to folders below the Thunderbird folder at `destination`. If the source is a single
    /// mailbox, its messages become the messages of that folder.
    fn to_tree(&self, folders: &[ResultFolder<'_>], destination: &Path) -> Result<Summary, Error> {
        if self.options.mode.writes() {
            temporary::sweep(temporary::folder_of(destination));
        }
        let record = self.record_of_group(
            folders
                .iter()
                .flat_map(|folder| folder.founds.iter().copied()),
        );
        if record.as_ref().is_some_and(Record::is_made) {
            return Ok(self.made());
        }
        let first = folders.iter().find_map(|folder| folder.founds.first());
        let like = first.and_then(|first| fs::metadata(first.file()).ok());
        let mut delivery = Delivery::start(
            Format::Thunderbird,
            self.options,
            None,
            destination,
            like.as_ref(),
            self.journal,
        )?;
        let mut summary = Summary::default();
        let inner = Inner::default();
        let job = Job {
            inner: Some(&inner),
            ..*self
        };
        for folder in folders {
            self.stop.check()?;
            let above = folder.levels();
            delivery.enter(&above)?;
            let moved = job.each(folder.founds.iter().copied(), |job, kind| {
                if kind.is_folder() {
                    job.folder_to(kind, &mut delivery)
                } else {
                    job.file_to(kind, Output::Delivery(&mut delivery))
                }
            });
            summary.add(&moved?);
            // The folders of Outlook mailboxes in an archive become subfolders of the folder of the archive.
            let entered = job.each_inner(&inner, |job, levels| {
                delivery.enter(&[above.as_slice(), levels].concat())?;
                job.inner_to(Some(&mut delivery))
            });
            summary.add(&entered?);
        }
        delivery.finish_unless_damaged(&summary, record)?;
        Ok(summary)
    }

    fn envelope(&self, separator: &[u8], content: &[u8]) -> Envelope {
        let of = |transform: &dyn Transform<S>| transform.envelope(separator, content);
        self.transform.map_or_else(Envelope::default, of)
    }

    /// Delivers the messages of one chunk of an mbox. `done` contains the results of the transform.
    pub(crate) fn deliver_chunk(
        &self,
        chunk: &Chunk,
        done: &[(usize, Transformed<S>)],
        quoting: Quoting,
        delivery: &mut Delivery,
        summary: &mut Summary,
    ) -> Result<(), Error> {
        let changes = done.iter().map(|(at, done)| (*at, done.new.as_deref()));
        let start = summary.bytes_in;
        let mut deliver = |letter: Letter<'_>| delivery.deliver(letter, summary);
        let unsure = self.letters((chunk, start), changes, quoting, &mut deliver)?;
        summary.ambiguous += unsure;
        let changed = done.iter().filter(|(_, done)| done.new.is_some());
        summary.changed += changed.count() as u64;
        self.report_oversized(chunk, summary);
        Ok(())
    }

    /// Passes the messages of an mbox to a handler, without a transform. The threads of the pool fill the batches of
    /// several chunks at the same time.
    pub(crate) fn mbox_to_handler(
        &self,
        windows: &mut Windows,
        quoting: Quoting,
        delivery: &Delivery,
        handler: &dyn Handler,
        summary: &mut Summary,
    ) -> Result<(), Error> {
        let form = delivery.message_form();
        let packed = windows.source.packed().cloned();
        let mut accounts = Accounts::of(windows);
        let (first, before) = (windows.offset, summary.bytes_in);
        pool::run(
            self.options.pool_limits(),
            self.stop,
            || {
                let chunk = windows.next_chunk().map_err(in_full(self.path))?;
                Ok(chunk.map(|chunk| {
                    let weight = chunk.weight();
                    (chunk, weight)
                }))
            },
            // The work on a message is short, so a chunk is not divided.
            |_| vec![0],
            |chunk, _| {
                let start = before + (chunk.offset - first);
                let mut batch = handler.batch(chunk.length);
                let mut add = |letter: Letter<'_>| {
                    batch.add(&letter, form.flags(&letter));
                    Ok(())
                };
                let unsure = self.letters((chunk, start), iter::empty(), quoting, &mut add)?;
                Ok((batch, unsure))
            },
            // This function frees the memory of chunks that wait because the work on an earlier chunk takes long, for
            // example because a server is slow. Here all work is short, so no memory is freed.
            |_, _| None,
            |chunk: Chunk, done| {
                accounts.chunk(&chunk).map_err(unreadable(self.path))?;
                for (_, (batch, unsure)) in done {
                    batch.finish()?;
                    summary.ambiguous += unsure;
                }
                self.report_oversized(&chunk, summary);
                self.count(&chunk, packed.as_deref(), summary);
                Ok(())
            },
        )?;
        accounts.end(windows).map_err(unreadable(self.path))
    }

    /// Calls `deliver` for each message of a chunk. `start` is the offset of the chunk in the mailbox. `changes` contains
    /// the numbers of messages in the chunk and their new contents. A new content has no `From ` line and no quoting, so
    /// it is not unquoted again. Returns the number of lines for which the quoting is ambiguous.
    fn letters<'n>(
        &self,
        (chunk, start): (&Chunk, u64),
        changes: impl Iterator<Item = (usize, Option<&'n [u8]>)>,
        quoting: Quoting,
        deliver: &mut dyn FnMut(Letter<'_>) -> Result<(), Error>,
    ) -> Result<u64, Error> {
        let mut ambiguous = 0;
        let mut changes = changes.peekable();
        for (index, frame) in chunk.frames.iter().enumerate() {
            let text = chunk.text(index).map_err(unreadable(self.path))?;
            let (from_line, content, _) = text.parts();
            let quoting = rewrite::quoting_in(&text.frame, from_line, quoting);
            let (plain, unsure) = rewrite::plain(content, quoting);
            ambiguous += unsure;
            let new = changes.next_if(|(at, _)| *at == index);
            let plain = new.and_then(|(_, new)| new).map_or(plain, Cow::Borrowed);
            let separator = mmdf::from_line(from_line).trim_ascii();
            let start = start + frame.start as u64;
            // A `>From ` line directly after the separator is an older separator: the `From ` line of an earlier mailbox,
            // which a program quoted. It is not part of the message, so it is removed.
            let older = own_separator(&plain).map_or(0, |(_, length)| length);
            let plain = &plain[older..];
            deliver(Letter {
                content: plain,
                flags: self.eudora.and_then(|index| index.get(&start).copied()),
                envelope: self.envelope(separator, plain),
                separator: None,
            })?;
        }
        Ok(ambiguous)
    }

    /// Reports the messages of a chunk that are too large, and counts them as damaged.
    fn report_oversized(&self, chunk: &Chunk, summary: &mut Summary) {
        if chunk.oversized > 0 {
            let number = chunk.first_number + chunk.frames.len() as u64;
            self.observer
                .damaged(self.path, &too_large(Some(number), self.options));
            summary.damaged += chunk.oversized;
        }
    }

    /// Counts the messages and bytes of a chunk, and reports the progress. `packed` is the compressed file that contains
    /// the mailbox.
    pub(crate) fn count(&self, chunk: &Chunk, packed: Option<&PackedFile>, summary: &mut Summary) {
        let (messages, octets) = (chunk.messages(), chunk.length as u64);
        summary.oversized += chunk.oversized;
        summary.messages += messages;
        summary.bytes_in += octets;
        let read = packed.map_or(octets, PackedFile::news);
        self.observer.advance(read, messages);
    }

    /// Delivers a message from its own file. If `is_file` is set, the message is not in a Maildir or an MH folder, and
    /// a `From ` line at its start is the separator from the mbox that it was saved from.
    pub(crate) fn deliver_message(
        &self,
        (content, is_file): (&[u8], bool),
        flags: Option<Flags>,
        modified: Option<SystemTime>,
        delivery: &mut Delivery,
        summary: &mut Summary,
    ) -> Result<(), Error> {
        // Some programs store the `From ` line of an mbox in the file of a message. If the result is an mbox, this line
        // becomes the separator. In other formats, it is kept like all other bytes of the message, except in a single
        // file. A single file may really be an mbox with one message and the wrong name, and must give the same result
        // as an mbox, so its line is removed.
        let is_of_mbox = is_file && content.starts_with(b"From ");
        let own = own_separator(content).filter(|_| delivery.is_mbox() || is_of_mbox);
        let (line, length) = own.unwrap_or_default();
        let content = &content[length..];
        let envelope = self.envelope(mmdf::from_line(line), content);
        let date = if separator::is_plausible(line) {
            envelope.date.or(modified)
        } else {
            modified.or(envelope.date)
        };
        let letter = Letter {
            content,
            flags,
            envelope: Envelope { date, ..envelope },
            separator: Some(line).filter(|line| separator::is_asctime(line)),
        };
        delivery.deliver(letter, summary)
    }

    /// Delivers the messages of a Maildir or MH folder, without nested Maildirs. The messages of a Maildir are
    /// delivered in the order of the delivery times in their file names.
    pub(crate) fn folder_to(&self, kind: Kind, delivery: &mut Delivery) -> Result<Summary, Error> {
        let place = MessageFolder::of(self.path, kind, self.options.format);
        let (messages, others) = place.messages();
        for (path, why) in &others {
            self.observer.damaged(path, why);
        }
        let mut numbered: Vec<(u64, &PathBuf)> = (1..).zip(messages.names()).collect();
        if !place.is_mh {
            numbered.sort_by_cached_key(|(_, name)| arrival(name));
        }
        let mut numbered = numbered.into_iter();
        let mut summary =
            Summary::of(|sum| (sum.mailboxes, sum.damaged) = (1, others.len() as u64));
        summary.files.not_read = summary.damaged;
        let next = || {
            let next = numbered.next();
            Ok(next.map(|(number, name)| self.read_file(number, name, (&place, &messages))))
        };
        let done = self.external(summary, next, Result::is_ok, |letter, new, summary| {
            match &letter.about {
                Ok((flags, modified)) => {
                    let content = new.unwrap_or(&letter.content);
                    self.deliver_message((content, false), *flags, *modified, delivery, summary)?;
                    summary.files.read += 1;
                }
                Err(why) => {
                    summary.files.not_read += 1;
                    summary.damaged += 1;
                    self.observer.damaged(&letter.source, why);
                }
            }
            Ok(())
        });
        let mut summary = done?;
        let missed = self.name_missed(&messages)?;
        summary.damaged += missed;
        summary.files.not_read += missed;
        self.observer.done(&summary);
        Ok(summary)
    }

    /// Reports the messages of an MH folder that may have been missed because the folder changed. Returns their number.
    pub(crate) fn name_missed(&self, messages: &listing::Messages<'_>) -> Result<u64, Error> {
        let missed = messages.missed().map_err(cannot_read(self.path))?;
        for name in &missed {
            let why = listing::MISSED.into();
            self.observer.damaged(&self.path.join(name), &why);
        }
        Ok(missed.len() as u64)
    }

    /// Reads one message file. If the file is omitted from the result, `about` contains the reason.
    fn read_file(
        &self,
        number: u64,
        listed: &Path,
        (place, messages): (&MessageFolder, &listing::Messages<'_>),
    ) -> ExternalMessage<Read> {
        let left_out = |why: Detail| (Err(why.then(LEFT_OUT)), Vec::new());
        let (name, file) = match messages.open(listed) {
            Ok(Some((name, file))) => (name, Ok(file)),
            Ok(None) => (listed.to_owned(), Err(listing::GONE.into())),
            Err(error) => (listed.to_owned(), Err(unread(&error).into())),
        };
        let read = |file: File| -> std::io::Result<_> {
            let file = Arc::new(file);
            let metadata = file.metadata()?;
            let method = method_of(&file)?;
            let most = self.options.max_message;
            let content = content_of(&file, metadata.len(), method, self.options, most)?;
            Ok((metadata.modified().ok(), content))
        };
        let (about, content) = match file.map(read) {
            Ok(Ok((modified, Content::Whole(content)))) => match refused_message(&content) {
                Some(other) => left_out(other.detail()),
                None => {
                    let flags = (!place.is_mh).then(|| noted_in_name(&name)).flatten();
                    (Ok((flags, modified)), content)
                }
            },
            Ok(Ok((_, Content::TooLarge))) => (Err(too_large(None, self.options)), Vec::new()),
            Ok(Ok((_, Content::Damaged(damage)))) => left_out(damage.detail()),
            Ok(Err(error)) => left_out(unread(&error).into()),
            Err(why) => left_out(why),
        };
        ExternalMessage {
            about,
            number,
            source: place.folder.join(name),
            content,
        }
    }
}

/// Flags and modification time of a message that was read, or the reason why it was omitted.
type Read = Result<(Option<Flags>, Option<SystemTime>), Detail>;

const LEFT_OUT: &str = "; the message was not written";

pub(crate) fn too_large(number: Option<u64>, options: &Options) -> Detail {
    let which = number.map_or_else(String::new, |number| format!("message {number}: "));
    let most = options.max_message;
    format!("{which}the message has more than {most} bytes, so it cannot be converted to another format{LEFT_OUT}").into()
}

/// Returns the delivery time at the start of a Maildir file name, followed by the complete name, as a sort key.
fn arrival(name: &Path) -> (u64, Vec<u8>) {
    let name = name.file_name().unwrap_or_default().as_bytes();
    let end = name.iter().position(|octet| !octet.is_ascii_digit());
    let (digits, _) = name.split_at(end.unwrap_or(name.len()));
    let digits = std::str::from_utf8(digits).ok();
    let number = digits.and_then(|digits| digits.parse().ok());
    (number.unwrap_or(u64::MAX), name.to_owned())
}

/// Returns whether the file contains a line that starts with `>>From `. Only programs that write the variant mboxrd
/// quote a line that is already quoted, so such a line shows the variant of the file.
pub(crate) fn is_quoted_twice(file: &File, name: &Path) -> Result<bool, Error> {
    const LINE: &[u8] = b">>From ";
    let finder = memmem::Finder::new(LINE);
    let starts_line = |before: Option<&u8>| matches!(before, Some(b'\n' | b'\r'));
    let mut buffer = vec![0; 1 << 20];
    let (mut at, mut kept) = (0, 0);
    loop {
        let read = file
            .read_at(&mut buffer[kept..], at)
            .map_err(unreadable(name))?;
        if read == 0 {
            return Ok(false);
        }
        at += read as u64;
        let filled = kept + read;
        let bytes = &buffer[..filled];
        let mut hits = finder.find_iter(bytes);
        if hits.any(|at| starts_line(bytes[..at].last())) {
            return Ok(true);
        }
        kept = filled.min(LINE.len());
        buffer.copy_within(filled - kept..filled, 0);
    }
}
