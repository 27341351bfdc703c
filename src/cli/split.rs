//! `embody split`: prints byte ranges of mboxes for `embody convert --range`, as JSON Lines.

use std::fs::{self, File};
use std::io;

use super::args::SplitArgs;
use super::exit::ProgramStatus;
use super::origin::{RunOrigin, mtime};
use super::report_file::{ReportFields, json};
use super::say::{self, shown, skipped};
use super::streams::{is_standard, print};
use super::wording;
use crate::error::Error;
use crate::mailbox::find::{SourceFind, StartKind, find};
use crate::mailbox::{self, InputSource, MboxPiece, Quoting, ReadOptions, Stop};

const SIZE: u64 = 128 << 20;

pub(super) fn run(args: &SplitArgs) -> Result<ProgramStatus, Error> {
    let size = args.size.unwrap_or(SIZE);
    if size == 0 {
        return Err(Error::Usage(
            "--size 0 is not allowed, because each range must contain bytes".into(),
        ));
    }
    let options = args.compressed.added_to(ReadOptions::default());
    let mut status = ProgramStatus::Success;
    for source in &args.sources {
        let what = "split cannot read standard input, because the ranges are positions in a file; name a file";
        let result = if is_standard(source) {
            Err(Error::Usage(what.into()))
        } else {
            find(source, &ReadOptions::default(), &Stop::default())
        };
        let finds = match result {
            Ok(finds) => finds,
            Err(error) => {
                status = ProgramStatus::told(&error);
                continue;
            }
        };
        for (path, other) in &finds.skipped {
            say::tell(&skipped(path, other.name()));
        }
        for (path, why) in &finds.unread {
            say::tell(&format!("{}: {why}", shown(path)));
            status = ProgramStatus::Trouble;
        }
        for found in finds.mailboxes {
            match lines(&found, (size, args.count), &options) {
                Ok((text, damage)) => {
                    print(&text)?;
                    if let Some(why) = damage {
                        let why = io::Error::other(why);
                        status = ProgramStatus::told(&Error::cannot_read(shown(&found.path))(why));
                    }
                }
                Err(error) => status = ProgramStatus::told(&error),
            }
        }
    }
    Ok(status)
}

fn lines(
    found: &SourceFind,
    pieces: (u64, bool),
    options: &ReadOptions,
) -> Result<(Vec<u8>, Option<String>), Error> {
    let path = found.path.as_path();
    let failed = |why: io::Error| {
        why.downcast()
            .unwrap_or_else(Error::cannot_read(path.display()))
    };
    let refused = |why: &str| Error::Usage(format!("{}: {why}", shown(path)).into());
    let Some(name) = path.to_str() else {
        return Err(refused(
            "the name of the file is not UTF-8, so it cannot be written as JSON",
        ));
    };
    if found.kind.is_folder() {
        return Err(refused(
            "a folder of messages cannot be divided into ranges, because each message is a file; convert it as a whole with embody convert",
        ));
    }
    if found.kind == StartKind::Eudora {
        return Err(refused(
            "a Eudora mailbox cannot be divided into ranges, because its messages share their attachment files; convert it as a whole with embody convert",
        ));
    }
    if matches!(found.kind, StartKind::Msg | StartKind::Pst) {
        return Err(refused(
            "an Outlook file cannot be divided into ranges; convert it as a whole with embody convert",
        ));
    }
    let file = File::open(path).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    let mut source = InputSource::of_mboxes(file, path, options, &Stop::default())?;
    let mut text = Vec::new();
    let modified = mtime(&metadata);
    let mut add = |piece: &MboxPiece, quoting: Option<Quoting>| {
        let kind = match found.kind {
            StartKind::Eml => "message",
            _ => "mbox",
        };
        let quoting = quoting.map(|quoting| match quoting {
            Quoting::Rd => "mboxrd",
            Quoting::O => "mboxo",
            Quoting::None => "mboxcl2",
        });
        let whole = match metadata.len() {
            0 => Some("the source is empty"),
            _ => piece.whole,
        };
        let origin = RunOrigin::new(name, 1, &piece.header);
        let line = ReportFields::default()
            .with("path", &name)
            .with("from", &piece.range.start)
            .with("to", &piece.range.end)
            .with_some("messages", piece.messages)
            .with("message_id", &origin.message_id)
            .with("length", &metadata.len())
            .with("mtime", &modified)
            .with("kind", &kind)
            .with_some("quoting", quoting)
            .with_some("whole", whole);
        text.extend(json(&line)?);
        Ok(())
    };
    let (kind, length) = (found.kind, metadata.len());
    mailbox::pieces(&mut source, kind, length, pieces, options, &mut add).map_err(failed)?;
    // If the file changed while it was read, the printed ranges do not match the printed length and time, so this is an
    // error.
    let after = fs::metadata(path).map_err(failed)?;
    if after.len() != metadata.len() || mtime(&after) != mtime(&metadata) {
        return Err(Error::Changed { path: path.into() });
    }
    let damage = source.damage();
    Ok((text, damage.map(|damage| wording::detail(&damage.detail()))))
}
