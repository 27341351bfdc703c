//! `embody schemes`: what becomes of each access type and URL scheme, as tables in Markdown.
//!
//! What happens by default is not written down anywhere: each row's example is planned as a mail
//! would be, under the default policy.

use crate::expand::Expander;
use crate::external_body::Facility;
use crate::external_body::access_types::facilities;
use crate::policy::Policy;
use crate::report::Outcome;

pub(crate) fn tables() -> String {
    let mut done = "| reference | what it becomes | operation | by default | allowed by |\n|---|---|---|---|---|\n".to_owned();
    let mut asked = "| reference | syntax (2.1) | characters (2.2.5) | utility (2.3) | who learns of it (2.4) | what may go wrong (2.4) |\n|---|---|---|---|---|---|\n".to_owned();
    for facility in facilities() {
        let name = name(facility);
        let allowed_by = match facility.allowed_by {
            "" => String::new(),
            options => format!("`{options}`"),
        };
        done.push_str(&format!(
            "| {name} | {} | {} | {} | {allowed_by} |\n",
            facility.maps_to,
            facility.operation,
            by_default(facility),
        ));
        asked.push_str(&format!(
            "| {name} | {} | {} | {} | {} | {} |\n",
            facility.syntax,
            facility.characters,
            facility.utility,
            facility.disclosure,
            facility.danger,
        ));
    }
    format!("{done}\nWhat RFC 2718 \u{a7}2 asks of a scheme:\n\n{asked}")
}

fn name(facility: &Facility) -> String {
    if facility.name.starts_with("any ") {
        facility.name.to_owned()
    } else {
        format!("`{}`", facility.name)
    }
}

fn by_default(facility: &Facility) -> String {
    let Some(example) = facility.example else {
        return "as the URL's scheme".to_owned();
    };
    let mail = format!(
        "Message-ID: <m@example.org>\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n--b\n{example}\n--b--\n"
    );
    // The default policy needs nothing of the system.
    let Ok(expander) = Expander::new(Policy::default()) else {
        return String::new();
    };
    let report = expander.forecast(mail.as_bytes(), "example");
    match report.rows.first().map(|row| (row.outcome, row.reason)) {
        Some((Outcome::WouldExpand, _)) => "put in".to_owned(),
        Some((_, Some(reason))) => format!("left: `{}`", reason.as_str()),
        _ => "no reference".to_owned(),
    }
}
