//! Converts reports of Exchange to the machine-readable part of a multipart/report: delivery reports (RFC 3464) and read
//! receipts (RFC 8098), as MS-OXCMAIL specifies.

use super::header::{self, Person};
use super::properties::{OutlookItem, Properties, id};
use crate::engine::parts::NewLeaf;
use crate::mime::media_type;

/// The machine-readable part of a multipart/report.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeliveryReport<'a> {
    /// Value of the parameter `report-type`.
    pub kind: &'static str,
    pub leaf: NewLeaf<'a>,
}

/// A report, and a text for people, which is used if the item has no text of its own.
pub(super) struct ReportText {
    pub(super) report: DeliveryReport<'static>,
    pub(super) text: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum DeliveryReportKind {
    /// A delivery report, with the value of the Action field and the first digit of the status.
    Delivery(&'static str, u8),
    /// A read receipt, with the type of the disposition.
    Receipt(&'static str),
}

fn kind(class: &str) -> Option<DeliveryReportKind> {
    let (_, kind) = class.strip_prefix("report.")?.rsplit_once('.')?;
    let is_of = |word: &str| class.split('.').any(|step| step == word);
    Some(match kind {
        "ndr" => DeliveryReportKind::Delivery("failed", 5),
        "dr" if is_of("delayed") => DeliveryReportKind::Delivery("delayed", 4),
        "dr" if is_of("relayed") => DeliveryReportKind::Delivery("relayed", 2),
        "dr" if is_of("expanded") => DeliveryReportKind::Delivery("expanded", 2),
        "dr" => DeliveryReportKind::Delivery("delivered", 2),
        "ipnrn" => DeliveryReportKind::Receipt("displayed"),
        "ipnnrn" => DeliveryReportKind::Receipt("deleted"),
        _ => return None,
    })
}

pub(super) fn is_report(class: &str) -> bool {
    kind(class).is_some()
}

/// Converts a report. Returns `Ok(None)` if the item is not a report.
///
/// # Errors
/// Returns `Err(())` if the report does not contain the recipient that it is about.
pub(super) fn of(item: &OutlookItem<'_>, class: &str) -> Result<Option<ReportText>, ()> {
    let Some(kind) = kind(class) else {
        return Ok(None);
    };
    let fields = match kind {
        DeliveryReportKind::Delivery(action, digit) => delivery(item, action, digit)?,
        DeliveryReportKind::Receipt(disposition) => receipt(item, disposition)?,
    };
    let (name, essence) = match kind {
        DeliveryReportKind::Delivery(..) => ("delivery-status", "message/delivery-status"),
        DeliveryReportKind::Receipt(_) => (
            "disposition-notification",
            "message/disposition-notification",
        ),
    };
    Ok(Some(ReportText {
        report: DeliveryReport {
            kind: name,
            leaf: NewLeaf::text(essence, fields.replace("\r\n", "\n")),
        },
        text: text(item, kind),
    }))
}

/// Appends a field. Control characters are removed, because header fields cannot contain them.
fn push(fields: &mut String, name: &str, value: &str) {
    let value: String = value.chars().filter(|it| !it.is_control()).collect();
    let written = media_type::write_text(name, value.trim());
    fields.push_str(&String::from_utf8_lossy(&written));
}

const ORIGINAL_SUBJECT: u16 = 0x0049;
const REPORT_TIME: u16 = 0x0032;
const REPORT_TEXT: u16 = 0x1001;
const SENT: u16 = 0x004e;
const SENT_TO: u16 = 0x0074;

fn time(properties: &Properties<'_>, id: u16) -> Option<String> {
    properties
        .time(id)
        .and_then(header::seconds)
        .map(header::date)
}

fn delivery(item: &OutlookItem<'_>, action: &str, digit: u8) -> Result<String, ()> {
    let mut fields = String::new();
    let server = item.text(0x6820).map(|server| {
        if server.contains(';') {
            server
        } else {
            format!("dns; {server}")
        }
    });
    push(
        &mut fields,
        "Reporting-MTA",
        server.as_deref().unwrap_or("x-unknown; unknown"),
    );
    if let Some(time) = time(&item.properties, SENT) {
        push(&mut fields, "Arrival-Date", &time);
    }
    let mut people = 0;
    for recipient in &item.recipients {
        let Some(person) = header::recipient(recipient, item.page) else {
            continue;
        };
        people += 1;
        fields.push_str("\r\n");
        push(
            &mut fields,
            "Final-Recipient",
            &format!("rfc822; {}", person.address),
        );
        push(&mut fields, "Action", action);
        push(&mut fields, "Status", &status(recipient, digit));
        let text = |id| recipient.text(id, item.page);
        if let Some(server) = text(0x0c21) {
            push(&mut fields, "Remote-MTA", &format!("dns; {server}"));
        }
        if let Some(code) = text(0x0c1b) {
            push(&mut fields, "Diagnostic-Code", &format!("smtp; {code}"));
        }
        if let Some(time) = time(recipient, REPORT_TIME) {
            push(&mut fields, "Last-Attempt-Date", &time);
        }
    }
    if people == 0 { Err(()) } else { Ok(fields) }
}

/// Returns the status code of a recipient. Exchange stores 5.1.1 as the number 511.
fn status(recipient: &Properties<'_>, digit: u8) -> String {
    match recipient.integer(0x0c20) {
        Some(code) if (200..600).contains(&code) => {
            format!("{}.{}.{}", code / 100, code / 10 % 10, code % 10)
        }
        _ => format!("{digit}.0.0"),
    }
}

/// Returns the address of the person who read or deleted the message. Some Outlook items contain it only in a search key.
fn reader(item: &OutlookItem<'_>) -> Option<String> {
    let sender = || header::sender(item, true).or_else(|| header::sender(item, false));
    let key = || {
        let mut keys = [0x0c1d, 0x003b].into_iter();
        keys.find_map(|id| {
            let key = item.properties.bytes(id)?;
            let address = str::from_utf8(key.strip_prefix(b"SMTP:")?).ok()?;
            Some(address.trim_end_matches('\0').to_ascii_lowercase())
        })
    };
    let person = sender().map(|Person { address, .. }| address);
    person.or_else(key).filter(|it| !it.is_empty())
}

fn receipt(item: &OutlookItem<'_>, disposition: &str) -> Result<String, ()> {
    let mut fields = String::new();
    let reader = reader(item).ok_or(())?;
    push(&mut fields, "Final-Recipient", &format!("rfc822; {reader}"));
    let original = item.text(0x1046).or_else(|| item.text(id::IN_REPLY_TO));
    if let Some(original) = original {
        push(&mut fields, "Original-Message-ID", original.trim());
    }
    let (own_mode, own_kind) = (item.text(0x0081), item.text(0x0080));
    let mode = own_mode
        .as_deref()
        .unwrap_or("manual-action/MDN-sent-automatically");
    let kind = own_kind.as_deref().unwrap_or(disposition);
    push(&mut fields, "Disposition", &format!("{mode}; {kind}"));
    Ok(fields)
}

/// Returns the text of the report for people (RFC 3462).
fn text(item: &OutlookItem<'_>, kind: DeliveryReportKind) -> String {
    let said = item.text(REPORT_TEXT).unwrap_or_else(|| {
        let said = match kind {
            DeliveryReportKind::Delivery("failed", _) => "The message could not be delivered.",
            DeliveryReportKind::Delivery("delayed", _) => "The message is not yet delivered.",
            DeliveryReportKind::Delivery(..) => "The message was delivered.",
            DeliveryReportKind::Receipt("deleted") => "The message was deleted without being read.",
            DeliveryReportKind::Receipt(_) => "The message was read.",
        };
        said.to_owned()
    });
    let mut text = said.trim_end().replace("\r\n", "\n").replace('\r', "\n");
    if let Some(time) = time(&item.properties, REPORT_TIME) {
        text = format!("{text} {time}");
    }
    text.push_str("\n\n");
    for (name, value) in [
        ("To", item.text(SENT_TO)),
        ("Subject", item.text(ORIGINAL_SUBJECT)),
        ("Sent", time(&item.properties, SENT)),
    ] {
        if let Some(value) = value {
            text.push_str(&format!("{name}: {value}\n"));
        }
    }
    text
}
