//! Opens the standard streams and detects closed ones. Also reads a single message: a large message that needs no
//! change is not kept in memory.

use std::fs::{self, File};
use std::io::{self, IsTerminal as _, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};

use crate::engine::Prefilter;
use crate::error::Error;
use crate::mailbox::{
    ALL_MAIL, Background, InputSource, Options, SkippedMember, Stop, starts_like_msg, untarred,
};
use crate::platform::{self, Stream};

const STANDARD_INPUT: &str = "standard input";
const STANDARD_OUTPUT: &str = "standard output";

/// Opens standard output for mail. Returns an error if the stream is closed, because the mail would be lost. The
/// standard library would ignore this error.
pub(super) fn output() -> Result<Stream, Error> {
    platform::stream(io::stdout()).map_err(write_error)
}

/// Opens standard output for a report. A closed stream is no error here: it looks like Python's `subprocess.DEVNULL`,
/// with which callers discard a report, and no mail is lost with a report.
pub(super) fn report_output() -> Result<Stream, Error> {
    platform::stream_or_null(io::stdout()).map_err(write_error)
}

/// Returns whether the error means that the report could not be written to standard output.
pub(super) fn is_output_lost(error: &Error) -> bool {
    matches!(error, Error::Write { what, .. } if what == STANDARD_OUTPUT)
}

/// Returns whether the error means that the reader of standard output closed the pipe, as in `embody inspect ... |
/// head`.
pub(super) fn is_reader_gone(error: &Error) -> bool {
    let is_closed = |source: &io::Error| source.kind() == io::ErrorKind::BrokenPipe;
    is_output_lost(error) && matches!(error, Error::Write { source, .. } if is_closed(source))
}

/// Opens standard input for mail. Returns an error if the stream is closed or write-only, for which the standard
/// library would return an empty message.
///
/// If standard input is a terminal, a line tells the user that the command waits for input.
pub(super) fn input() -> Result<Stream, Error> {
    let stdin = io::stdin();
    if stdin.is_terminal() {
        let argument = std::env::args_os().nth(1).unwrap_or_default();
        let verb = argument.to_string_lossy();
        let is_word = verb.bytes().all(|byte| byte.is_ascii_lowercase());
        let line = format!(
            "embody: waiting for mail on standard input, which is this terminal: paste a message and press Ctrl-D, or press Ctrl-C and name a file: embody {} FILE\n",
            if is_word { &*verb } else { "inspect" }
        );
        let stderr = platform::stream_or_null(io::stderr());
        let _ = stderr.and_then(|mut stderr| stderr.write_all(line.as_bytes()));
    }
    platform::stream(stdin).map_err(read_error)
}

/// Writes a report, or a part of it, to standard output.
pub(super) fn print(text: &[u8]) -> Result<(), Error> {
    report_output()?.write_all(text).map_err(write_error)
}

pub(super) fn read_error(source: io::Error) -> Error {
    Error::cannot_read(STANDARD_INPUT)(source)
}

pub(super) fn write_error(source: io::Error) -> Error {
    Error::cannot_write(STANDARD_OUTPUT)(source)
}

/// Returns the path that means standard input or standard output on the command line.
pub(super) fn standard() -> &'static Path {
    Path::new("-")
}

pub(super) fn is_standard(path: &Path) -> bool {
    path.as_os_str() == standard().as_os_str()
}

/// Returns the name of a source in messages.
pub(super) fn shown_source(source: &Path) -> &Path {
    if is_standard(source) {
        Path::new(STANDARD_INPUT)
    } else {
        source
    }
}

/// Returns whether a source is a directory. `-` is always standard input, even if there is a directory with this name.
pub(super) fn is_folder(source: &Path) -> bool {
    !is_standard(source) && source.is_dir()
}

/// Opens and decompresses a source that can be read only once: standard input, a named pipe or a device. Returns `None`
/// for files and directories.
pub(super) fn stream(
    source: &Path,
    options: &Options,
    stop: &Stop,
) -> Result<Option<InputSource>, Error> {
    let is_standard = is_standard(source);
    if !is_standard {
        let metadata = fs::metadata(source).map_err(Error::cannot_read(source.display()))?;
        if metadata.is_file() || metadata.is_dir() {
            return Ok(None);
        }
    }
    let skipped = Arc::<Mutex<SkippedMember>>::default();
    let most = options.read.max_expanded;
    let (path, named, of_part) = (source.to_owned(), Arc::clone(&skipped), stop.of_part());
    // Opening a named pipe blocks until a program writes to it. It is opened in a background thread, so that the run
    // can be stopped while it waits.
    let open = move || {
        let file = if is_standard {
            input()
        } else {
            let opened = File::open(&path).map(Stream::from);
            opened.map_err(Error::cannot_read(path.display()))
        };
        untarred(
            file.map_err(io::Error::other)?,
            most,
            ALL_MAIL,
            &named,
            &of_part,
        )
    };
    let reader = Background::start(open, shown_source(source).to_owned(), stop.of_part());
    Ok(Some(InputSource::stream(reader, None, skipped)))
}

/// Maximum size of a message that is always read into memory, in bytes. If a larger message starts with this many bytes
/// in which the prefilter finds nothing to change, it is copied to a temporary file, because it may be too large for
/// memory.
const SPOOL_FROM: usize = 16 << 20;
const FIRST: usize = 32 << 10;
const CHUNK: usize = 256 << 10;

#[derive(Debug)]
pub(super) enum Input {
    /// A message in memory. The text is the error if a large message could not be written to a temporary file.
    Message(Vec<u8>, Option<String>),
    Untouched(File),
}

impl Input {
    pub(super) fn read(mut reader: impl Read, prefilter: &Prefilter) -> io::Result<Self> {
        let mut bytes = Vec::with_capacity(FIRST);
        let first = &mut (&mut reader).take(SPOOL_FROM as u64);
        let is_large = first.read_to_end(&mut bytes)? == SPOOL_FROM;
        if is_large && !prefilter.any(&bytes) && !starts_like_msg(&bytes) {
            return Self::spool(bytes, reader, prefilter);
        }
        reader.read_to_end(&mut bytes)?;
        Ok(Self::Message(bytes, None))
    }

    /// Copies a large message to a temporary file while the prefilter searches it. If the file cannot be written, the
    /// message stays in memory.
    fn spool(
        mut window: Vec<u8>,
        mut reader: impl Read,
        prefilter: &Prefilter,
    ) -> io::Result<Self> {
        let mut file = match tempfile::tempfile() {
            Ok(file) => file,
            Err(error) => {
                reader.read_to_end(&mut window)?;
                return Ok(Self::Message(window, Some(no_spool(&error))));
            }
        };
        let (mut spooled, mut overlap) = (0, Prefilter::OVERLAP);
        loop {
            // A match of the prefilter can span two windows. So the end of this window is kept for the next search and
            // written to the file after it.
            let kept = window.len().saturating_sub(overlap);
            if let Err(error) = file.write_all(&window[..kept]) {
                let bytes = unspooled(&file, spooled, window, reader)?;
                return Ok(Self::Message(bytes, Some(no_spool(&error))));
            }
            if overlap == 0 {
                file.seek(SeekFrom::Start(0))?;
                return Ok(Self::Untouched(file));
            }
            spooled += kept;
            window.drain(..kept);
            match (&mut reader).take(CHUNK as u64).read_to_end(&mut window)? {
                0 => overlap = 0,
                _ if prefilter.any(&window) => {
                    let bytes = unspooled(&file, spooled, window, reader)?;
                    return Ok(Self::Message(bytes, None));
                }
                _ => {}
            }
        }
    }
}

fn unspooled(
    mut file: &File,
    spooled: usize,
    mut window: Vec<u8>,
    mut reader: impl Read,
) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // Reserving the memory before reading turns exhausted memory into an error. A vector that grows while reading would
    // abort the process.
    bytes.try_reserve_exact(spooled.saturating_add(window.len()))?;
    file.seek(SeekFrom::Start(0))?;
    file.take(spooled as u64).read_to_end(&mut bytes)?;
    if bytes.len() != spooled {
        let what = "the temporary file is shorter than the data that embody wrote to it";
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, what));
    }
    bytes.append(&mut window);
    reader.read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn no_spool(error: &io::Error) -> String {
    let (folder, cause) = (std::env::temp_dir(), error.to_string());
    // The crate tempfile appends the random path of the file to the message, which does not help the user.
    let cause = cause.split(" at path ").next().unwrap_or_default();
    format!(
        "cannot write a temporary file in {}: {cause}",
        folder.display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::policy::Policy;

    fn read(bytes: &[u8]) -> Input {
        Input::read(bytes, &Prefilter::new(&Policy::default())).expect("memory can be read")
    }

    #[test]
    fn a_large_message_without_references_is_spooled_whole() {
        let bytes = b"0123456789abcde\n".repeat((SPOOL_FROM >> 4) + 70_000);
        let Input::Untouched(mut file) = read(&bytes) else {
            panic!("it needs no memory");
        };
        let mut back = Vec::new();
        file.read_to_end(&mut back).expect("a spooled file");
        assert!(back == bytes);
    }

    #[test]
    fn a_reference_anywhere_in_a_large_message_is_found() {
        for at in [
            0,
            SPOOL_FROM - 3,
            SPOOL_FROM,
            SPOOL_FROM + CHUNK - 5,
            SPOOL_FROM + 3 * CHUNK,
        ] {
            let mut bytes = vec![b'x'; SPOOL_FROM + 4 * CHUNK];
            bytes.splice(at..at, b"message/external-body".iter().copied());
            let Input::Message(back, None) = read(&bytes) else {
                panic!("a reference at {at} was overlooked");
            };
            assert!(back == bytes, "at {at}");
        }
    }

    #[test]
    fn a_small_message_stays_in_memory() {
        assert!(
            matches!(read(b"Subject: x\n\n"), Input::Message(bytes, None) if bytes == b"Subject: x\n\n")
        );
        assert!(matches!(read(b""), Input::Message(bytes, None) if bytes.is_empty()));
    }

    struct Faulty<'a> {
        rest: &'a [u8],
        good: usize,
        step: usize,
        interrupted: bool,
    }

    impl Read for Faulty<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.interrupted = !self.interrupted;
            if self.interrupted {
                return Err(io::ErrorKind::Interrupted.into());
            }
            if self.good == 0 {
                return Err(io::Error::other("the disk is gone"));
            }
            let most = self.step.min(self.good).min(buffer.len());
            let read = self.rest.read(&mut buffer[..most])?;
            self.good -= read;
            Ok(read)
        }
    }

    #[test]
    fn short_reads_lose_nothing_and_a_failed_read_is_not_end_of_input() {
        let prefilter = Prefilter::new(&Policy::default());
        let small = b"Subject: x\n\nbody\n".repeat(50);
        let mut late = vec![b'x'; SPOOL_FROM + 3 * CHUNK];
        late.extend_from_slice(b"message/external-body");
        let plain = vec![b'x'; SPOOL_FROM + 3 * CHUNK];
        for (bytes, step) in [(&small, 1), (&late, 70_001), (&plain, CHUNK - 1)] {
            let reader = |good| Faulty {
                rest: bytes,
                good,
                step,
                interrupted: false,
            };
            let mut back = Vec::new();
            match Input::read(reader(usize::MAX), &prefilter).expect("it is whole") {
                Input::Message(message, _) => back = message,
                Input::Untouched(mut file) => {
                    file.read_to_end(&mut back).expect("a spooled file");
                }
            }
            assert!(back == *bytes);
            for good in [0, 1, bytes.len() / 2, bytes.len() - 1, bytes.len()] {
                let read = Input::read(reader(good), &prefilter);
                assert!(read.is_err(), "{good} of {} passed for all", bytes.len());
            }
        }
    }
}
