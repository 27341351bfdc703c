//! Messages that lie in no file: the caller hands them over one by one, and takes them back.

use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::mailbox::begin::Job;
use crate::mailbox::forms::rewrite;
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
    next: impl FnMut() -> Result<Option<Handed<T>>, Error> + Send,
    mut put: impl FnMut(&Handed<T>, Option<&[u8]>) -> Result<(), Error> + Send,
) -> Result<Summary, Error> {
    let job = Job::new(Path::new(""), options, transform, observer, stop);
    job.handed(
        Summary::default(),
        next,
        |_| true,
        |handed, new, summary| {
            put(handed, new)?;
            let octets = new.unwrap_or(&handed.content).len();
            summary.bytes_out += octets as u64;
            Ok(())
        },
    )
}

impl<S: Send> Job<'_, S> {
    /// `put` also gets what is no message, in its turn. Counts in `summary`.
    pub(crate) fn handed<T: Send + Sync>(
        &self,
        mut summary: Summary,
        mut next: impl FnMut() -> Result<Option<Handed<T>>, Error> + Send,
        is_message: impl Fn(&T) -> bool + Sync,
        mut put: impl FnMut(&Handed<T>, Option<&[u8]>, &mut Summary) -> Result<(), Error> + Send,
    ) -> Result<Summary, Error> {
        pipeline::run(
            self.options.threads(),
            self.stop,
            || {
                let handed = next()?;
                Ok(handed.map(|handed| {
                    let weight = handed.content.len().max(1);
                    (handed, weight)
                }))
            },
            |handed| is_message(&handed.about).then_some(0).into_iter().collect(),
            |handed, _| {
                let from = (handed.number, handed.source.as_path());
                self.single(from, &handed.content, None, rewrite::spliced)
            },
            // The message may come from a server or a stream, so its bytes cannot be read again.
            |_, _| None,
            |handed: Handed<T>, done| {
                if !is_message(&handed.about) {
                    return put(&handed, None, &mut summary);
                }
                let done = done.into_iter().find_map(|(_, done)| done);
                let new = done.as_ref().and_then(|done| done.new.as_deref());
                let octets = handed.content.len() as u64;
                summary.messages += 1;
                summary.changed += u64::from(new.is_some());
                summary.bytes_in += octets;
                put(&handed, new, &mut summary)?;
                if let Some(done) = done {
                    done.tell(self.observer);
                }
                self.observer.advance(octets, 1);
                Ok(())
            },
        )?;
        Ok(summary)
    }
}
