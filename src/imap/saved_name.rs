//! File names of the messages in a backup, such as `1577872800.V3U20.embody,A=1300,S=1234:2,FS`: the date of receipt in
//! seconds, UIDVALIDITY and UID, the size that the server announced (RFC822.SIZE), the size of the file, and the flags.
//! A name ends with `,N=2` before its flags if a different message already had it.
//! The names are the only record of the messages that were already saved. The announced size is recorded even if it is
//! the size of the file, because the file can change later, for example if its attachments are detached.

use super::session::Metadata;
use crate::platform::BEFORE_FLAGS;

/// Part of a file name that marks the message as incomplete, so that the next run downloads it again.
pub(super) const SHORT: &str = ".embody-short";
/// Part of a file name that marks the content as a text that the server sent in place of the message.
pub(super) const SUBSTITUTE: &str = ".embody-substitute";

/// Whether a file can be the saved copy of a message on the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileFit {
    Same,
    /// Date and size match. The size that the server announced at the time of the download is unknown, because version
    /// 0.3.0 did not record it.
    SizeUnknown,
    /// The server announces another date or size than at the time of the download: the UID may belong to another message now.
    Other,
}

/// Returns UIDVALIDITY and UID in the file name of a message. Returns `None` if embody did not create the file.
pub(super) fn numbers(name: &str) -> Option<(u32, u32)> {
    let mut parts = name.split('.');
    let (_time, numbers, ours) = (parts.next()?, parts.next()?, parts.next()?);
    if !ours.starts_with("embody") {
        return None;
    }
    let (uidvalidity, uid) = numbers.strip_prefix('V')?.split_once('U')?;
    Some((uidvalidity.parse().ok()?, uid.parse().ok()?))
}

/// Returns the size of a message in bytes according to its file name.
pub(super) fn size_in(name: &str) -> Option<u64> {
    number_after(name, ",S=")
}

/// Returns the size in a file name that the server had announced, or `None` if it was not recorded.
pub(super) fn announced_in(name: &str) -> Option<u64> {
    number_after(name, ",A=")
}

fn number_after(name: &str, key: &str) -> Option<u64> {
    let (_, number) = name.split_once(key)?;
    let end = number.find(|symbol: char| !symbol.is_ascii_digit());
    number[..end.unwrap_or(number.len())].parse().ok()
}

/// Splits a file name before its flags. Returns the name without flags, and the letters of the flags.
pub(super) fn split_flags(name: &str) -> (&str, &str) {
    name.rsplit_once(|symbol| BEFORE_FLAGS.map(char::from).contains(&symbol))
        .and_then(|(base, flags)| Some((base, flags.strip_prefix("2,")?)))
        .unwrap_or((name, ""))
}

/// Returns whether a file has the date and the size that the server announces for a message. A date or size that the server
/// does not announce is not compared.
pub(super) fn fit(name: &str, message: &Metadata) -> FileFit {
    let date = &message.internal_date;
    let saved = name.split('.').next().and_then(|it| it.parse::<i64>().ok());
    if date.is_date() && saved != Some(date.seconds.max(0)) {
        return FileFit::Other;
    }
    match announced_in(name) {
        _ if message.size == 0 => FileFit::Same,
        None if size_in(name) == Some(message.size) => FileFit::SizeUnknown,
        Some(size) if size == message.size => FileFit::Same,
        _ => FileFit::Other,
    }
}

/// Returns a file name without flags, to which the announced size is added.
pub(super) fn with_announced(base: &str, announced: u64) -> String {
    base.replacen(",S=", &format!(",A={announced},S="), 1)
}

/// Returns a file name with a number, for a message whose name belongs to the file of a different message: the server gave
/// the same UID to two messages with the same date and sizes.
pub(super) fn numbered(name: &str, number: u32) -> String {
    let (base, _) = split_flags(name);
    let flags = &name[base.len()..];
    format!("{base},N={number}{flags}")
}

/// Returns the file name of a message without its flags. `mark` is [`SHORT`], [`SUBSTITUTE`] or `.embody`.
pub(super) fn base(
    seconds: i64,
    (uidvalidity, uid): (u32, u32),
    mark: &str,
    (size, announced): (u64, u64),
) -> String {
    let seconds = seconds.max(0);
    let base = format!("{seconds:010}.V{uidvalidity}U{uid}{mark},S={size}");
    match announced {
        0 => base,
        announced => with_announced(&base, announced),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::imap::session::InternalDate;

    #[test]
    fn uid_and_sizes_are_read_from_the_file_name_of_a_backup() {
        assert_eq!(numbers("1577872800.V3U20.embody,S=12:2,S"), Some((3, 20)));
        for other in [
            "1577872800.V3U20.host,S=12:2,S",
            "x",
            "1.V3.embody",
            "1.VxU1.embody",
        ] {
            assert_eq!(numbers(other), None);
        }
        let name = base(1_577_872_800, (3, 20), ".embody", (12, 34));
        assert_eq!(name, "1577872800.V3U20.embody,A=34,S=12");
        assert_eq!((size_in(&name), announced_in(&name)), (Some(12), Some(34)));
        let name = base(-5, (3, 20), SHORT, (12, 0));
        assert_eq!(name, "0000000000.V3U20.embody-short,S=12");
        let numbered = numbered(&(name.clone() + ":2,S"), 2);
        assert_eq!(numbered, name + ",N=2:2,S");
        assert_eq!(size_in(&numbered), Some(12));
        assert_eq!(
            split_flags("1.V3U20.embody,S=12;2,FS"),
            ("1.V3U20.embody,S=12", "FS")
        );
    }

    #[test]
    fn file_with_another_date_or_size_is_not_the_message() {
        let date = " 1-Jan-2020 10:00:00 +0000";
        let saved = |announced| base(1_577_872_800, (3, 20), ".embody", (12, announced)) + ":2,S";
        for (name, date, size, expected) in [
            (saved(12), date, 12, FileFit::Same),
            (saved(34), date, 34, FileFit::Same),
            (saved(34), date, 12, FileFit::Other),
            (saved(0), date, 12, FileFit::SizeUnknown),
            (saved(0), date, 34, FileFit::Other),
            (saved(0), " 1-Jan-2020 10:00:01 +0000", 12, FileFit::Other),
            (saved(12), "01-Jan-2020 11:00:00 +0100", 12, FileFit::Same),
            (saved(12), "", 12, FileFit::Same),
            (saved(12), "yesterday", 12, FileFit::Same),
            (saved(34), date, 0, FileFit::Same),
        ] {
            let message = Metadata {
                internal_date: InternalDate::of(date),
                size,
                ..Metadata::unknown(20)
            };
            assert_eq!(fit(&name, &message), expected, "{name} {date} {size}");
        }
    }
}
