//! Records which mail used which responses: the text of the mail as it arrived, and the ids of the records.

use std::collections::BTreeSet;
use std::io;

use sha2::{Digest as _, Sha256};

use super::MAILS;
use super::header::{RecordHeader, RecordType, digest, names};
use super::recorder::{FIELDS, RecorderParts, WarcRecorder, line};
use super::write::RecordMember;
use crate::engine::report::Row;
use crate::mime::entity::sha256;
use crate::mime::{MediaType, MessageTree, PartKind, ScanLimits, scan};

/// Maximum number of HTML texts recorded per mail.
const MOST_TEXTS: usize = 16;

/// A mail, and the fields of its header that are recorded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecordedMail<'m> {
    pub(crate) content: &'m [u8],
    pub(crate) message_id: Option<&'m str>,
    pub(crate) subject: Option<&'m str>,
    /// Date in the format of RFC 3339.
    pub(crate) date: Option<&'m str>,
}

/// A decoded text of a mail.
struct MailText {
    /// Last component of the text's URL, such as `1.2.html`.
    name: String,
    media_type: String,
    octets: Vec<u8>,
}

impl WarcRecorder {
    /// Records which responses a mail used. Writes nothing if no row of the report refers to a recorded response.
    pub(crate) fn mail(&self, mail: &RecordedMail<'_>, rows: &[Row], limits: &ScanLimits) {
        let records: BTreeSet<&str> = rows
            .iter()
            .filter_map(|row| row.record.as_deref())
            .collect();
        if records.is_empty() {
            return;
        }
        let shared = &self.0;
        let hash = sha256(mail.content);
        let folder = format!("{MAILS}{hash}/");
        let texts = texts(mail.content, limits);
        let page = texts
            .first()
            .map_or(folder.clone(), |text| format!("{folder}{}", text.name));
        let mut metadata = shared.header(RecordType::Metadata, &page);
        for id in &records {
            metadata.add(names::CONCURRENT, &format!("<{id}>"));
        }
        let mut members = Vec::new();
        for text in texts {
            let header = shared.header(RecordType::Resource, &format!("{folder}{}", text.name));
            let id = header.value(names::ID).unwrap_or_default();
            metadata.add(names::CONCURRENT, id);
            members.push(resource(shared, header, &text));
        }
        metadata.add(names::MEDIA_TYPE, FIELDS);
        members.push(shared.member(metadata, said(mail, &hash, rows).as_bytes()));
        // The short metadata record is written last. A process that opens the file later finds its end quickly if the last
        // record is short.
        shared.write(&page, members.into_iter().collect());
    }
}

fn resource(
    shared: &RecorderParts,
    header: RecordHeader,
    text: &MailText,
) -> io::Result<RecordMember> {
    let mut header = header;
    header.add(names::MEDIA_TYPE, &text.media_type);
    header.add(names::PAYLOAD, &digest(&Sha256::digest(&text.octets)));
    shared.member(header, &text.octets)
}

/// Returns the text of the metadata record: the mail, and the responses that it used.
fn said(mail: &RecordedMail<'_>, hash: &str, rows: &[Row]) -> String {
    let mut text = String::new();
    let mut say = |name: &str, value: &str| {
        text.push_str(&format!("{name}: {}\r\n", line(value)));
    };
    for (name, value) in [
        ("message-id", mail.message_id),
        ("date", mail.date),
        ("subject", mail.subject),
        ("sha256", Some(hash)),
    ] {
        if let Some(value) = value {
            say(name, value);
        }
    }
    for row in rows {
        if let Some(record) = &row.record {
            let url = row.url.as_deref().unwrap_or_default();
            let part = &row.part;
            say(
                "retrieved",
                &format!(
                    "part={part} outcome={} record=<{record}> url={url}",
                    row.outcome.as_str()
                ),
            );
        }
    }
    text
}

/// Returns the HTML texts of a mail, or its first plain text if it has no HTML.
fn texts(mail: &[u8], limits: &ScanLimits) -> Vec<MailText> {
    let tree = scan(mail, limits);
    let html = texts_of(&tree, mail, "text/html", "html", MOST_TEXTS);
    if html.is_empty() {
        texts_of(&tree, mail, "text/plain", "txt", 1)
    } else {
        html
    }
}

fn texts_of(
    tree: &MessageTree<'_>,
    mail: &[u8],
    essence: &str,
    suffix: &str,
    most: usize,
) -> Vec<MailText> {
    let leaves = tree.ids().filter(|id| {
        let part = tree.part(*id);
        let disposition = tree.disposition(*id).trim_ascii();
        part.content == PartKind::Leaf
            && part.essence == essence
            && !disposition.to_ascii_lowercase().starts_with(b"attachment")
    });
    leaves
        .filter_map(|id| {
            let part = tree.part(id);
            let octets = part.encoding.decode(part.body.of(mail))?.into_owned();
            let number = tree.number(id);
            let named = tree.value(id, "Content-Type").unwrap_or_default();
            let is_name = |name: &String| {
                let is_letter = |it: u8| it.is_ascii_alphanumeric() || b"-_.:+".contains(&it);
                !name.is_empty() && name.len() < 64 && name.bytes().all(is_letter)
            };
            let charset = MediaType::parse(named)
                .parameter("charset")
                .and_then(|it| String::from_utf8(it.into_owned()).ok())
                .filter(is_name);
            let parameter = charset.map_or(String::new(), |name| format!("; charset={name}"));
            Some(MailText {
                name: format!("{number}.{suffix}"),
                media_type: format!("{essence}{parameter}"),
                octets,
            })
        })
        .take(most)
        .collect()
}
