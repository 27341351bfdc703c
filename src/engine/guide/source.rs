//! Reads the field `X-Embody-Source` of `--provenance`.

use std::time::{Duration, SystemTime};

use mail_parser::DateTime;

use crate::engine::Content;
use crate::engine::source_field::SOURCE_FIELD;
use crate::mime::header::unfold;
use crate::mime::{MediaType, MessageTree, PartId};

/// Values of an X-Embody-Source field.
#[derive(Debug)]
pub(super) struct SourceFacts {
    /// URL in the mail.
    pub(super) named: String,
    last: Option<String>,
    pub(super) sha256: Option<String>,
    retrieved: Option<SystemTime>,
    captured: Option<SystemTime>,
    status: Option<u16>,
    record: Option<String>,
}

impl SourceFacts {
    pub(super) fn read(tree: &MessageTree<'_>, part: PartId) -> Option<Self> {
        let value = unfold(tree.value(part, SOURCE_FIELD)?);
        let end = memchr::memchr(b'>', &value)?;
        let bare = |text: &[u8]| {
            let mut text = String::from_utf8_lossy(text).into_owned();
            text.retain(|symbol| !symbol.is_whitespace() && symbol != '<' && symbol != '>');
            text
        };
        let as_type = [b"x/x", value.get(end + 1..)?].concat();
        let parameters = MediaType::parse(&as_type).decoded_parameters(16);
        let of = |name: &str| {
            let mut parameters = parameters.iter();
            let (_, value) = parameters.find(|(known, _)| known == name)?;
            Some(bare(value.as_bytes()))
        };
        Some(Self {
            named: bare(value.get(..end)?),
            last: of("final"),
            sha256: of("sha256"),
            retrieved: of("retrieved").as_deref().and_then(time),
            captured: of("captured").as_deref().and_then(time),
            status: of("status").and_then(|status| status.parse().ok()),
            record: of("record"),
        })
    }

    /// Copies the values into the origin of a content, so that the same field is written again.
    pub(super) fn describe(&self, content: &mut Content) {
        let url = self.last.as_deref().unwrap_or(&self.named);
        content.origin.url = url.into();
        content.origin.at = self.retrieved;
        content.origin.captured = self.captured;
        content.origin.status = self.status;
        content.origin.record = self.record.as_deref().map(Into::into);
    }
}

/// Parses `2026-11-28T21:28:29Z`, the form that embody writes.
fn time(text: &str) -> Option<SystemTime> {
    let number = |from: usize, to: usize| text.get(from..to)?.parse::<u16>().ok();
    let small = |from: usize| u8::try_from(number(from, from + 2)?).ok();
    let date = DateTime {
        year: number(0, 4)?,
        month: small(5)?,
        day: small(8)?,
        hour: small(11)?,
        minute: small(14)?,
        second: small(17)?,
        tz_before_gmt: false,
        tz_hour: 0,
        tz_minute: 0,
    };
    let seconds = u64::try_from(date.to_timestamp()).ok()?;
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds))
}
