//! Compressed mailboxes: decompressed on a thread of their own, into what [`growing`](super::growing) keeps.
//!
//! A compressed mbox is locked from before it is read until it is replaced, whatever the transform waits for: nobody
//! delivers into one.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread::JoinHandle;

use super::archive::{FromStart, Skipped};
use super::compressed::{Damage, Decoder, Limits, MAGIC, Method};
use super::full::up_to;
use super::growing::Growing;
use super::{Options, Stop};
use crate::error::Error;

/// How a file is expanded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Expansion {
    pub(super) method: Method,
    pub(super) limits: Limits,
}

impl Expansion {
    pub(super) fn new(method: Method, options: &Options) -> Self {
        let limits = Self::limits(options);
        Self { method, limits }
    }

    pub(super) fn limits(options: &Options) -> Limits {
        Limits {
            expanded: options.max_expanded,
        }
    }

    pub(super) fn decoder(self, file: &Arc<File>, stop: &Stop) -> Decoder<FromStart> {
        Decoder::new(self.method, FromStart::new(file, stop), self.limits)
    }

    fn content(self, file: &Arc<File>, most: usize) -> io::Result<Content> {
        let mut content = Vec::new();
        let most = most as u64;
        let decoder = self.decoder(file, &Stop::default());
        let read = decoder.take(most + 1).read_to_end(&mut content);
        match read {
            Ok(_) if content.len() as u64 > most => Ok(Content::TooLarge),
            Ok(_) => Ok(Content::Whole(content)),
            Err(error) => error.downcast::<Damage>().map(Content::Damaged),
        }
    }
}

/// What came of reading one message.
pub(super) enum Content {
    Whole(Vec<u8>),
    TooLarge,
    Damaged(Damage),
}

/// What is in `file`, which has so many bytes and is compressed so, unless it is more than `most` bytes.
///
/// # Errors
/// The system's; damage of compressed data is none.
pub(super) fn content_of(
    file: &Arc<File>,
    length: u64,
    method: Option<Method>,
    options: &Options,
    most: usize,
) -> io::Result<Content> {
    if let Some(method) = method {
        return Expansion::new(method, options).content(file, most);
    }
    if length > most as u64 {
        return Ok(Content::TooLarge);
    }
    let mut content = Vec::with_capacity(usize::try_from(length).unwrap_or(0) + 1);
    (&**file).read_to_end(&mut content)?;
    Ok(Content::Whole(content))
}

/// How a file is compressed.
pub(super) fn method_of(file: &File) -> io::Result<Option<Method>> {
    let start = up_to(MAGIC, |rest, before| file.read_at(rest, before))?;
    Ok(Method::of_start(&start))
}

/// A compressed file, and what is in it as far as it is there. Its thread ends with it.
#[derive(Debug)]
pub(crate) struct Expanded {
    pub(super) file: Arc<File>,
    pub(super) growing: Arc<Growing>,
    /// Members of an archive that are no mail.
    pub(super) skipped: Skipped,
    /// What comes behind damage that does not concern it.
    parts: Option<Receiver<Result<Arc<Growing>, Error>>>,
    /// Requested with the run, or when nobody reads it any more.
    ending: Stop,
    filler: Option<JoinHandle<()>>,
}

impl Expanded {
    /// Starts.
    ///
    /// # Errors
    /// About the folder for temporary files.
    pub(super) fn start(
        file: Arc<File>,
        expansion: Expansion,
        name: &Path,
        stop: &Stop,
    ) -> Result<Self, Error> {
        let ending = stop.of_part();
        let decoder = expansion.decoder(&file, &ending);
        Self::of(file, decoder, Skipped::default(), name, ending)
    }

    /// The same with what `reader` makes of the file. It ends with `ending`, which is requested when nobody reads this
    /// any more.
    ///
    /// # Errors
    /// About the folder for temporary files.
    pub(super) fn of(
        file: Arc<File>,
        reader: impl Read + Send + 'static,
        skipped: Skipped,
        name: &Path,
        ending: Stop,
    ) -> Result<Self, Error> {
        let growing = Arc::new(Growing::new(&ending)?);
        // Each part waits until it is wanted: there may be as many as members of an archive.
        let (sender, parts) = mpsc::sync_channel(0);
        let (first, name, stop) = (Arc::clone(&growing), name.to_owned(), ending.clone());
        let filler = std::thread::spawn(move || fill(first, reader, &name, &sender, &stop));
        Ok(Self {
            file,
            growing,
            skipped,
            parts: Some(parts),
            ending,
            filler: Some(filler),
        })
    }

    /// What comes behind the damage of the part before, if something does.
    ///
    /// # Errors
    /// About the folder for temporary files.
    pub(super) fn next_part(&self) -> Result<Option<Arc<Growing>>, Error> {
        // An error there is the end of the thread.
        let next = self.parts.as_ref().and_then(|parts| parts.recv().ok());
        next.transpose()
    }
}

/// Fills a part, and those behind it.
fn fill(
    mut part: Arc<Growing>,
    mut reader: impl Read,
    name: &Path,
    parts: &SyncSender<Result<Arc<Growing>, Error>>,
    stop: &Stop,
) {
    loop {
        part.fill(Ok(&mut reader), name);
        if !part.damage().is_some_and(|damage| damage.goes_on) {
            return;
        }
        let next = Growing::new(stop).map(Arc::new);
        let filled = next.as_ref().ok().map(Arc::clone);
        match (parts.send(next), filled) {
            (Ok(()), Some(next)) => part = next,
            _ => return,
        }
    }
}

impl Drop for Expanded {
    fn drop(&mut self) {
        self.ending.request();
        self.growing.abandon();
        // Nobody takes another part.
        self.parts = None;
        if let Some(filler) = self.filler.take() {
            // A panic there ended the stream for who reads it.
            let _ = filler.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Passes over what nobody wants, and looks whether anybody waits.
    struct Passing(Stop);

    impl Read for Passing {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            while self.0.check().is_ok() {
                std::thread::yield_now();
            }
            Err(io::Error::other("not wanted"))
        }
    }

    fn expanded(stop: &Stop) -> Expanded {
        let file = Arc::new(tempfile::tempfile().unwrap());
        let ending = stop.of_part();
        let reader = Passing(ending.clone());
        Expanded::of(
            file,
            reader,
            Skipped::default(),
            Path::new("archive"),
            ending,
        )
        .unwrap()
    }

    #[test]
    fn what_nobody_reads_any_more_ends_though_nothing_comes() {
        drop(expanded(&Stop::default()));
    }

    #[test]
    fn a_stop_ends_what_gives_nothing_and_is_no_trouble_of_the_file() {
        let stop = Stop::default();
        let expanded = expanded(&stop);
        stop.request();
        let ended = expanded.growing.wait_for(1);
        assert!(matches!(ended, Err(Error::Interrupted)), "{ended:?}");
    }

    /// As many parts as there are of damage; they wait for who wants them.
    struct Spoiled(u8);

    impl Read for Spoiled {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            self.0 += 1;
            match self.0 {
                10 => Ok(0),
                count if count % 2 == 0 => {
                    Err(io::Error::other(Damage::of_member("wrong".to_owned())))
                }
                count => {
                    into[0] = count;
                    Ok(1)
                }
            }
        }
    }

    #[test]
    fn what_stands_behind_damage_comes_part_by_part() {
        for wanted in 0..5 {
            let file = Arc::new(tempfile::tempfile().unwrap());
            let skipped = Skipped::default();
            let name = Path::new("archive");
            let expanded = Expanded::of(file, Spoiled(0), skipped, name, Stop::default()).unwrap();
            let mut part = Arc::clone(&expanded.growing);
            for count in 0..wanted {
                assert_eq!(part.wait_for(2).unwrap(), 1);
                let mut octet = [0];
                part.read_at(&mut octet, 0).unwrap();
                assert_eq!(octet, [2 * count + 1]);
                assert!(part.damage().is_some_and(|damage| damage.goes_on) == (count < 4));
                match expanded.next_part().unwrap() {
                    Some(next) if count < 4 => part = next,
                    None if count == 4 => {}
                    _ => panic!("part {count}"),
                }
            }
        }
    }
}
