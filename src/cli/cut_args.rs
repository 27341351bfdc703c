//! `--range` and `--expect`, and what `embody split` is told: a piece of a source, and which source it is a piece of.

use std::fs::Metadata;
use std::ops::Range;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::Args;
use serde::Serialize;

use super::input::is_standard;
use super::shared_args::CompressedArgs;
use super::values::size;
use crate::error::Error;
use crate::mailbox;

// A run does one piece of one source.
#[derive(Args, Clone, Debug)]
pub(super) struct CutArgs {
    /// Only the messages of an mbox that begin in these octets, from A up to but not B [default: all]
    ///
    /// Parts of ranges that lie side by side, put together, are octet for octet what one run writes, wherever the
    /// cuts are; embody split names such ranges. Messages count from 1 in each. See docs/scale.md.
    #[arg(
        hide_short_help = true,
        long,
        value_name = "A-B",
        conflicts_with = "in_place",
        value_parser = range
    )]
    range: Option<Range<u64>>,
    /// Refuse a SOURCE that is not so long, or was modified since [default: none]
    ///
    /// The seconds are those that embody split writes, with nine digits behind the point.
    #[arg(
        hide_short_help = true,
        long,
        value_name = "LENGTH[:SECONDS]",
        requires = "range",
        value_parser = expected
    )]
    expect: Option<Expected>,
}

#[derive(Args, Debug)]
pub(super) struct SplitArgs {
    /// mbox files and messages, or folders of them
    #[arg(hide_short_help = true, required = true, value_name = "SOURCE")]
    pub(super) sources: Vec<PathBuf>,
    /// How long a range is, but for the end of its last message [default: 128M]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(super) size: Option<u64>,
    /// Count the messages of each range; all of the mail is read [default: off]
    #[arg(long)]
    pub(super) count: bool,
    #[command(flatten)]
    pub(super) compressed: CompressedArgs,
}

/// What a source has to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Expected {
    length: u64,
    modified: Option<SystemTime>,
}

impl CutArgs {
    /// `options` with what is asked for.
    ///
    /// # Errors
    /// [`Error::Usage`]: offsets are those of one file.
    pub(super) fn added_to(
        &self,
        options: mailbox::Options,
        sources: &[PathBuf],
    ) -> Result<mailbox::Options, Error> {
        let range = self.range.clone();
        let why = match sources {
            _ if range.is_none() => None,
            [source] if is_standard(source) => {
                Some("--range is for a file; standard input cannot be read from its middle")
            }
            [_] => None,
            _ => Some("--range is for one mbox; run it once for each"),
        };
        match why {
            Some(why) => Err(Error::Usage(why.into())),
            None => Ok(mailbox::Options {
                range,
                length: self.expect.map(|expected| expected.length),
                modified: self.expect.and_then(|expected| expected.modified),
                ..options
            }),
        }
    }
}

/// A piece, as rows name it.
#[derive(Clone, PartialEq, Eq, Serialize, Debug)]
pub(super) struct Piece {
    range: String,
    length: u64,
    mtime: String,
}

impl Piece {
    /// `None` where there is no file to look at.
    pub(super) fn of(range: &Range<u64>, source: &Path) -> Option<Self> {
        let metadata = std::fs::metadata(source).ok()?;
        let Range { start, end } = *range;
        Some(Self {
            range: format!("{start}-{}", end.min(metadata.len())),
            length: metadata.len(),
            mtime: mtime(&metadata),
        })
    }
}

/// When a file was modified: seconds since 1970, with nine digits behind the point.
pub(super) fn mtime(metadata: &Metadata) -> String {
    format!("{}.{:09}", metadata.mtime(), metadata.mtime_nsec())
}

/// `A-B`, or `A-` up to the end.
fn range(text: &str) -> Result<Range<u64>, String> {
    let wrong = || format!("'{text}' is not a range of octets such as 0-8388608 or 8388608-");
    let (start, end) = text.split_once('-').ok_or_else(wrong)?;
    let start = number(start).ok_or_else(wrong)?;
    let end = match end {
        "" => u64::MAX,
        end => number(end).ok_or_else(wrong)?,
    };
    match start <= end {
        true => Ok(start..end),
        false => Err(format!("'{text}' ends before it starts")),
    }
}

fn expected(text: &str) -> Result<Expected, String> {
    let wrong = || format!("'{text}' is not a length such as 1000 or 1000:1700000000.000000000");
    let (length, modified) = match text.split_once(':') {
        None => (text, None),
        Some((length, seconds)) => (length, Some(seconds)),
    };
    let modified = modified.map(|text| {
        let (seconds, parts) = text.split_once('.')?;
        let before = seconds.strip_prefix('-');
        let whole = Duration::from_secs(number(before.unwrap_or(seconds))?);
        let whole = match before {
            Some(_) => UNIX_EPOCH.checked_sub(whole)?,
            None => UNIX_EPOCH.checked_add(whole)?,
        };
        let parts = number(parts).filter(|_| parts.len() == 9)?;
        whole.checked_add(Duration::from_nanos(parts))
    });
    Ok(Expected {
        length: number(length).ok_or_else(wrong)?,
        modified: match modified {
            None => None,
            Some(modified) => Some(modified.ok_or_else(wrong)?),
        },
    })
}

/// Digits only: a sign or a blank is a slip.
fn number(text: &str) -> Option<u64> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_two_offsets_in_order() {
        assert_eq!(range("0-10"), Ok(0..10));
        assert_eq!(range("7-7"), Ok(7..7));
        assert_eq!(range("8-"), Ok(8..u64::MAX));
        for wrong in [
            "",
            "-",
            "8",
            "-8",
            "9-8",
            "0-1M",
            "0-+1",
            "0 - 1",
            "0-99999999999999999999",
        ] {
            assert!(range(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_is_expected_is_a_length_and_a_time() {
        let of = |text| expected(text).map(|it| (it.length, it.modified));
        assert_eq!(of("5"), Ok((5, None)));
        let (second, part) = (Duration::from_secs(17), Duration::from_millis(100));
        let after = UNIX_EPOCH + second + Duration::from_nanos(1);
        assert_eq!(of("5:17.000000001"), Ok((5, Some(after))));
        let before = UNIX_EPOCH - second + part;
        assert_eq!(of("5:-17.100000000"), Ok((5, Some(before))));
        for wrong in [
            "",
            "x",
            "5:",
            "5:17",
            "5:17.1",
            ":17.000000000",
            "5:a.000000000",
        ] {
            assert!(expected(wrong).is_err(), "{wrong}");
        }
    }
}
