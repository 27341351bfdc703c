//! `embody schemes` says what the program does (RFC 2718 §2): each row's example is tried, by default
//! and with the option that the row names.

use super::common::mail::expand;
use embody::Expander;
use embody::cli::{policy_of, tables};
use embody::external_body::Facility;
use embody::external_body::access_types::facilities;
use embody::policy::Scheme;

fn mail_of(facility: &Facility) -> Option<Vec<u8>> {
    let example = facility.example?;
    Some(
        format!(
            "Message-ID: <m@example.org>\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n--b\n{example}\n--b--\n"
        )
        .into_bytes(),
    )
}

/// The outcome and reason of the first row of what would be done under these options.
fn inspected(options: &str, message: &[u8]) -> (String, String) {
    let expander = Expander::new(policy_of(options)).expect("the folders are there");
    let report = expander.forecast(message, "x");
    let Some(row) = report.rows.first() else {
        return (String::new(), String::new());
    };
    let reason = row.reason.map_or("", |reason| reason.as_str());
    (row.outcome.as_str().to_owned(), reason.to_owned())
}

#[test]
fn what_a_row_says_of_the_default_is_what_happens() {
    let printed = tables();
    let mut tried = 0;
    for facility in facilities() {
        let row = printed
            .lines()
            .find(|line| line.contains(facility.maps_to) && line.contains(facility.name))
            .unwrap_or_else(|| panic!("{} is not printed", facility.name));
        let Some(message) = mail_of(facility) else {
            assert!(row.contains("as the URL's scheme"), "{row}");
            continue;
        };
        let (output, report) = expand(&message);
        let first = report.rows.first();
        let said = match first.and_then(|row| row.reason) {
            Some(reason) => format!("| left: `{}` |", reason.as_str()),
            None if report.expanded() == 1 => "| put in |".to_owned(),
            None => "| no reference |".to_owned(),
        };
        assert!(row.contains(&said), "{said}: {row}");
        assert_eq!(output == message, report.expanded() == 0, "{row}");
        tried += 1;
    }
    assert!(tried > 15, "{tried}");
}

#[test]
fn the_option_that_a_row_names_allows_it_and_no_other_does() {
    let everything =
        "--fetch http,https,ftp,file --file-root / --follow shortcuts --signed rewrite";
    for facility in facilities() {
        let Some(message) = mail_of(facility) else {
            continue;
        };
        let options = facility.allowed_by.replace("DIR", "/usr/share");
        let (outcome, reason) = inspected(&options, &message);
        if facility.operation == "none" {
            let (outcome, reason_of_all) = inspected(everything, &message);
            assert_eq!(
                (outcome.as_str(), &reason_of_all),
                ("left", &reason),
                "{}",
                facility.name
            );
        } else {
            assert!(outcome.starts_with("would-"), "{}: {reason}", facility.name);
        }
        if !facility.allowed_by.is_empty() {
            let (outcome, _) = inspected("", &message);
            assert!(matches!(outcome.as_str(), "left" | ""), "{}", facility.name);
        }
    }
}

#[test]
fn every_scheme_that_can_be_retrieved_has_a_row_and_names_its_option() {
    for scheme in Scheme::ALL {
        let name = format!("{}:", scheme.as_str());
        let facility = facilities()
            .find(|facility| facility.name == name)
            .unwrap_or_else(|| panic!("{name} has no row"));
        let option = format!("--fetch {}", scheme.as_str());
        assert!(facility.allowed_by.starts_with(&option), "{name}");
    }
    // Each of RFC 2718's questions is answered for each of them.
    for facility in facilities() {
        for answer in [
            facility.maps_to,
            facility.operation,
            facility.syntax,
            facility.characters,
            facility.utility,
            facility.disclosure,
            facility.danger,
        ] {
            assert!(
                !answer.is_empty() && !answer.contains('|'),
                "{}",
                facility.name
            );
        }
    }
}
