//! Messages that lie in no file: the caller hands them over one by one, and takes them back.

use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::mailbox::forms::rewrite;
use crate::mailbox::job::Job;
use crate::mailbox::read::pipeline;
use crate::mailbox::{Observer, Options, Stop, Summary, Transform};

/// A message that is handed over.
#[derive(Clone, Debug)]
pub struct Handed<T> {
    /// What the caller knows of it besides.
    pub about: T,
    /// Its place, from 1.
    pub number: u64,
    /// Its name, as a mailbox's path is.
    pub source: PathBuf,
    /// Header and body.
    pub content: Vec<u8>,
}

/// Transforms all messages that `next` gives, several at a time; `put` takes each in its turn, with its new content if it
/// changes. Counts messages and their bytes, before and after.
///
/// # Errors
/// Those of `next`, `put` and `transform`; [`Error::Interrupted`].
pub fn convert_handed<S: Send, T: Send + Sync>(
    options: &Options,
    transform: &dyn Transform<S>,
    observer: &dyn Observer<S>,
    stop: &Stop,
    mut next: impl FnMut() -> Result<Option<Handed<T>>, Error> + Send,
    mut put: impl FnMut(&Handed<T>, Option<&[u8]>) -> Result<(), Error> + Send,
) -> Result<Summary, Error> {
    let job = Job::new(Path::new(""), options, transform, observer, stop);
    let mut summary = Summary::default();
    pipeline::run(
        options.threads(),
        stop,
        || {
            let handed = next()?;
            Ok(handed.map(|handed| {
                let weight = handed.content.len().max(1);
                (handed, weight)
            }))
        },
        |_| vec![0],
        |handed, _| {
            let from = (handed.number, handed.source.as_path());
            job.single(from, &handed.content, None, rewrite::spliced)
        },
        |handed: Handed<T>, done| {
            let done = done.into_iter().find_map(|(_, done)| done);
            let new = done.as_ref().and_then(|done| done.new.as_deref());
            put(&handed, new)?;
            let octets = handed.content.len() as u64;
            summary.messages += 1;
            summary.changed += u64::from(new.is_some());
            summary.bytes_in += octets;
            summary.bytes_out += new.map_or(octets, |new| new.len() as u64);
            if let Some(done) = done {
                done.tell(observer);
            }
            observer.advance(octets, 1);
            Ok(())
        },
    )?;
    Ok(summary)
}
