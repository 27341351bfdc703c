//! Reads all messages of a source for `merge`, and writes the mailbox of the chosen messages.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::Error;
use crate::mailbox::archive::{InnerMailboxes, names_psts};
use crate::mailbox::begin::{MailboxJob, begun};
use crate::mailbox::finds::Finds;
use crate::mailbox::forms::kind::StartKind;
use crate::mailbox::place::delivery::{
    Delivery, Handler, NamedResult, PreparedMail, PreparedMessages, ResultPlace,
};
use crate::mailbox::result_folders::groups::groups;
use crate::mailbox::result_folders::source_folders;
use crate::mailbox::result_form::form;
use crate::mailbox::source::Source;
use crate::mailbox::temporary;
use crate::mailbox::transfer::proton_labels;
use crate::mailbox::{ByLabel, Format, Observer, Options, Stop, Summary, Transform};
use crate::pool;

/// Returns the default format of the result and whether the result needs several folders. The format is Maildir if the
/// first mailbox is a Maildir or an MH folder, and otherwise mbox. `merge` must know both before it reads the mail.
pub(crate) fn form_and_folders(
    finds: &Finds,
    options: &Options,
    stop: &Stop,
) -> Result<(Format, bool), Error> {
    let options = &Options {
        output_format: Format::Auto,
        ..options.clone()
    };
    let first = finds
        .mailboxes
        .first()
        .map(|found| form(found.kind, options));
    let options = &Options {
        output_format: Format::Mbox,
        ..options.clone()
    };
    let form = match first {
        Some(form) if form.is_directory() => Format::Maildir,
        _ => Format::Mbox,
    };
    let has_folders = match finds.mailboxes.as_slice() {
        [found] if found.kind == StartKind::Archive => {
            // An error is ignored here. If the archive is damaged, the run reports this later, when it reads the
            // archive.
            let file = File::open(&found.path);
            let names = file.and_then(|file| names_psts(file, options.read.max_expanded, stop));
            stop.check()?;
            names.unwrap_or(false)
        }
        [found] if found.is_packed() => true,
        _ => groups(finds, options).len() > 1,
    };
    Ok((form, has_folders))
}

/// Functions that [`read_letters`] calls before and after each mailbox of a source.
pub(crate) struct AtMailboxes<'m> {
    /// Number of mailboxes at the start of the source that are not read, because an earlier run has read them.
    pub(crate) skipped: usize,
    /// Gets the path of a folder before the messages of the folder. The path is empty if the source is a single mailbox.
    pub(crate) enter: &'m mut dyn FnMut(&[String]),
    /// Gets the number of mailboxes so far, including the skipped ones, and the counts of those that were read.
    pub(crate) leave: &'m mut dyn FnMut(usize, &Summary) -> Result<(), Error>,
}

/// Passes the messages of each mailbox in `source` to `handler`, in the form in which a mailbox of the format `form`
/// contains them. No files are written.
///
/// # Errors
/// Returns the errors of [`Conversion::run`](super::Conversion::run), of `handler` and of the callbacks.
pub(crate) fn read_letters<S: Send>(
    source: &Source,
    (form, options): (Format, &Options),
    (transform, observer): (&dyn Transform<S>, &dyn Observer<S>),
    stop: &Stop,
    at: AtMailboxes<'_>,
    handler: &Arc<dyn Handler>,
) -> Result<Summary, Error> {
    // With the format mbox, the single messages of a directory count as one mailbox, so they get one folder. No mbox is
    // written, because the mode is `DryRun`.
    let options = &Options {
        writes: false,
        output_format: Format::Mbox,
        by_label: None,
        ..options.clone()
    };
    let AtMailboxes {
        skipped,
        enter,
        leave,
    } = at;
    let finds = source.begin()?;
    let mut summary = begun(&finds, observer);
    let inner = Arc::<InnerMailboxes>::default();
    let job = MailboxJob {
        inner: Some(&inner),
        ..MailboxJob::new(source.path(), options, transform, observer, stop)
    };
    for (number, folder) in source_folders(&finds, options)
        .into_iter()
        .enumerate()
        .skip(skipped)
    {
        enter(&folder.levels());
        let labels = proton_labels(&folder.founds);
        let of_group = MailboxJob {
            proton: labels.as_ref(),
            ..job
        };
        let mut delivery = Delivery::to_handler(form, Arc::clone(handler));
        let read = of_group.deliver_each(&folder.founds, &mut delivery);
        summary.add(&read?);
        let read = job.each_inner(&inner, |job, levels| {
            enter(levels);
            let mut delivery = Delivery::to_handler(form, Arc::clone(handler));
            job.inner_to(Some(&mut delivery))
        });
        summary.add(&read?);
        leave(number + 1, &summary)?;
    }
    Ok(summary)
}

/// The result of a merge: a mailbox, or a directory with a mailbox for each folder. It gets its final name only after
/// it is complete.
pub(crate) struct MergeResult {
    target: PathBuf,
    delivery: Delivery,
    summary: Summary,
}

impl MergeResult {
    /// Creates the mailbox that gets the name `target` when it is complete. If root runs the program, the mailbox belongs to the
    /// owner of `like`. If `has_folders` is true, each message is
    /// written to the folders that its labels name.
    ///
    /// # Errors
    /// Returns [`Error::Write`] if `target` exists.
    pub(crate) fn start(
        target: &Path,
        form: Format,
        has_folders: bool,
        (options, like): (&Options, Option<&Path>),
    ) -> Result<Self, Error> {
        let options = Options {
            by_label: has_folders.then_some(ByLabel::All),
            ..options.clone()
        };
        if options.writes {
            temporary::sweep(temporary::folder_of(target));
        }
        let like = like.and_then(|path| fs::metadata(path).ok());
        let delivery = Delivery::start(
            form,
            &options,
            ResultPlace::Path(target),
            like.as_ref(),
            None,
        )?;
        Ok(Self {
            target: target.to_owned(),
            delivery: delivery.of_distinct_mails(),
            summary: Summary::default(),
        })
    }

    /// Adds the messages of all batches, in order. `next` returns the next batch and the size of the batch in memory, in
    /// bytes. `letters` receives a batch and a function, and calls the function for each message of the batch. Several
    /// threads call `letters` at the same time, while one of them writes.
    ///
    /// # Errors
    /// Returns [`Error::Write`] if writing fails, or if a mail cannot be delivered to each of its folders because there
    /// are too many. Also returns the errors of `next` and `letters`, and [`Error::Interrupted`].
    pub(crate) fn add_all<B: Send + Sync>(
        &mut self,
        (options, stop): (&Options, &Stop),
        next: impl FnMut() -> Result<Option<(B, usize)>, Error> + Send,
        letters: impl Fn(&B, &mut dyn FnMut(PreparedMail<'_>)) -> Result<(), Error> + Sync,
    ) -> Result<(), Error> {
        let Self {
            target,
            delivery,
            summary,
        } = self;
        let form = delivery.message_form();
        pool::run(
            options.read.pool_limits(),
            stop,
            next,
            |_| vec![0],
            |batch, _| {
                let mut prepared = PreparedMessages::default();
                letters(batch, &mut |letter| prepared.add(form.prepared(letter)))?;
                Ok(prepared)
            },
            |_, _| None,
            |_, done| {
                for (_, prepared) in done {
                    prepared.try_for_each(|message| {
                        summary.messages += 1;
                        delivery.write(message, summary)
                    })?;
                }
                match summary.overlabelled {
                    0 => Ok(()),
                    _ => {
                        let what = "the sources have too many folders; make one mailbox without folders, or merge fewer sources at a time";
                        let error = io::Error::new(io::ErrorKind::InvalidInput, what);
                        Err(Error::cannot_write(target.display())(error))
                    }
                }
            },
        )
    }

    /// Calls `take` with a description of each flag and keyword that the mailbox cannot store, and the number of
    /// messages that lose it.
    pub(crate) fn take_losses(&mut self, take: &mut dyn FnMut(&str, u64)) {
        self.delivery.take_losses().each(take);
    }

    /// Completes the mailbox and gives it its final name. Calls `note` immediately before. Returns the number of bytes
    /// written.
    pub(crate) fn finish(self, note: &mut dyn FnMut(&[NamedResult])) -> Result<u64, Error> {
        let written = self.summary.bytes_out;
        self.delivery.finish_noting(&self.summary, note)?;
        Ok(written)
    }
}
