//! Converts messages that are not in a file, such as messages from a server: the caller passes them in one by one and
//! receives the results.

use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::mailbox::begin::Job;
use crate::mailbox::forms::rewrite;
use crate::mailbox::read::pipeline;
use crate::mailbox::{Observer, Options, Stop, Summary, Transform};

/// A message that the caller passes in.
#[derive(Clone, Debug)]
pub struct Handed<T> {
    /// Data of the caller about the message, which is returned unchanged with the result.
    pub about: T,
    /// Position of the message in its mailbox, from 1.
    pub number: u64,
    /// Name of the mailbox, which reports and errors show in place of a path.
    pub source: PathBuf,
    /// Header and body.
    pub content: Vec<u8>,
}

/// Transforms all messages that `next` returns, several at a time. `put` receives each message in the original order,
/// with the new content if it changed. Returns the number of messages and their bytes before and after.
///
/// # Errors
/// Returns the errors of `next`, `put` and `transform`, or [`Error::Interrupted`].
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
    /// Does the same as [`convert_handed`], but adds to the counts in `summary`. An item for which `is_message` returns
    /// false is not transformed. It is passed to `put` without a change, between the messages before and after it.
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
            // While one message is slow, the pipeline frees the memory of later messages that can be read again.
            // Messages from a server or a stream cannot be read again, so this function returns `None`.
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
