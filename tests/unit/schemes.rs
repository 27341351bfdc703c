//! `embody schemes` describes what the program does (RFC 2718 §2). An example for each row is tested, by default and
//! with the option in the row.

use super::common::mail::expand;
use embody::Expander;
use embody::cli::{SCHEMES, policy_of};
use embody::policy::Scheme;

/// Parts with such a reference. Rows for which only the scheme of the URL matters have no example here.
const EXAMPLES: [(&str, &str); 20] = [
    (
        "FTP",
        "Content-Type: message/external-body; access-type=FTP; site=\"ftp.example.org\";\n directory=\"pub\"; name=\"x.txt\"\n\nContent-Type: text/plain\n",
    ),
    (
        "ANON-FTP",
        "Content-Type: message/external-body; access-type=ANON-FTP; site=\"ftp.example.org\";\n directory=\"pub\"; name=\"x.txt\"\n\nContent-Type: text/plain\n",
    ),
    (
        "LOCAL-FILE",
        "Content-Type: message/external-body; access-type=LOCAL-FILE; name=\"/usr/share/x.txt\"\n\nContent-Type: text/plain\n",
    ),
    (
        "CONTENT-ID",
        "Content-ID: <x@example.org>\nContent-Type: message/external-body; access-type=CONTENT-ID\n\n\n--b\nContent-ID: <x@example.org>\n\nx\n",
    ),
    (
        "MAIL-SERVER",
        "Content-Type: message/external-body; access-type=MAIL-SERVER; server=\"x@example.org\"\n\nContent-Type: text/plain\n\nSEND x\n",
    ),
    (
        "TFTP",
        "Content-Type: message/external-body; access-type=TFTP; site=\"boot.example.org\";\n name=\"x\"\n\nContent-Type: text/plain\n",
    ),
    (
        "AFS",
        "Content-Type: message/external-body; access-type=AFS; name=\"/afs/example.org/x\"\n\nContent-Type: text/plain\n",
    ),
    (
        "X-MUTT-DELETED",
        "Content-Type: message/external-body; access-type=x-mutt-deleted;\n expiration=\"Fri, 1 Jan 2021 00:00:00 +0000\"; length=5\n\nContent-Type: text/plain\n",
    ),
    (
        "X-Mozilla-Altered: AttachmentDeleted",
        "Content-Type: text/x-moz-deleted\nX-Mozilla-Altered: AttachmentDeleted; date=\"x\"\n\nnote\n",
    ),
    (
        "application/internet-shortcut",
        "Content-Type: application/internet-shortcut\n\n[InternetShortcut]\nURL=data:,x\n",
    ),
    (
        "A non-text attachment was scrubbed...",
        "Content-Type: text/plain\n\nAn HTML attachment was scrubbed...\nURL: <http://lists.example.org/pipermail/x/attachments/20240514/542cdbd7/attachment.html>\n",
    ),
    (
        "any other access type, or no access type",
        "Content-Type: message/external-body; access-type=x-carrier-pigeon\n\nContent-Type: text/plain\n",
    ),
    (
        "any other scheme",
        "Content-Type: message/external-body; access-type=URL; URL=\"gopher://example.org/0x\"\n\nContent-Type: text/plain\n",
    ),
    (
        "data:",
        "Content-Type: message/external-body; access-type=URL; URL=\"data:,x\"\n\nContent-Type: text/plain\n",
    ),
    (
        "cid:",
        "Content-Type: message/external-body; access-type=URL; URL=\"cid:x@example.org\"\n\n\n--b\nContent-ID: <x@example.org>\n\nx\n",
    ),
    (
        "mid:",
        "Content-Type: message/external-body; access-type=URL;\n URL=\"mid:m@example.org/x@example.org\"\n\n\n--b\nContent-ID: <x@example.org>\n\nx\n",
    ),
    (
        "https:",
        "Content-Type: message/external-body; access-type=URL; URL=\"https://example.org/x\"\n\nContent-Type: text/plain\n",
    ),
    (
        "http:",
        "Content-Type: message/external-body; access-type=URL; URL=\"http://example.org/x\"\n\nContent-Type: text/plain\n",
    ),
    (
        "ftp:",
        "Content-Type: message/external-body; access-type=URL; URL=\"ftp://example.org/x\"\n\nContent-Type: text/plain\n",
    ),
    (
        "file:",
        "Content-Type: message/external-body; access-type=URL; URL=\"file:///usr/share/x\"\n\nContent-Type: text/plain\n",
    ),
];

/// Returns the cells of each row of a table.
fn rows(table: &'static str) -> Vec<Vec<&'static str>> {
    let rows = table.lines().skip(2);
    let cells = |row: &'static str| row.trim_matches('|').split('|').map(str::trim).collect();
    rows.map(cells).collect()
}

fn tables() -> (Vec<Vec<&'static str>>, Vec<Vec<&'static str>>) {
    let (done, asked) = SCHEMES.split_once("\n\n").expect("two tables");
    let (_, asked) = asked.split_once("\n\n").expect("a line between them");
    (rows(done), rows(asked))
}

fn mail_of(name: &str) -> Option<Vec<u8>> {
    let name = name.trim_matches('`');
    let (_, example) = EXAMPLES.iter().find(|(known, _)| *known == name)?;
    Some(
        format!(
            "Message-ID: <m@example.org>\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n--b\n{example}\n--b--\n"
        )
        .into_bytes(),
    )
}

/// Returns the outcome and the reason of the first row of a forecast with these options.
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
fn default_stated_in_the_scheme_table_is_the_actual_default() {
    let mut tried = 0;
    for row in tables().0 {
        let [name, _, _, by_default, _] = row[..] else {
            panic!("{row:?}");
        };
        let Some(message) = mail_of(name) else {
            assert_eq!(by_default, "as for the scheme of the URL", "{name}");
            continue;
        };
        let (output, report) = expand(&message);
        let first = report.rows.first();
        let said = match first.and_then(|row| row.reason) {
            Some(reason) => format!("unchanged: `{}`", reason.as_str()),
            None if report.expanded() == 1 => "inserted".to_owned(),
            None => "not a reference".to_owned(),
        };
        assert_eq!(by_default, said, "{name}");
        assert_eq!(output == message, report.expanded() == 0, "{name}");
        tried += 1;
    }
    assert_eq!(tried, EXAMPLES.len());
}

#[test]
fn only_the_option_named_in_the_scheme_table_allows_the_scheme() {
    let everything =
        "--fetch http,https,ftp,file --file-root / --follow shortcuts --signed rewrite";
    for row in tables().0 {
        let [name, _, operation, _, allowed_by] = row[..] else {
            panic!("{row:?}");
        };
        let Some(message) = mail_of(name) else {
            continue;
        };
        let options = allowed_by.trim_matches('`').replace("DIR", "/usr/share");
        let (outcome, reason) = inspected(&options, &message);
        if operation == "none" {
            let (outcome, reason_of_all) = inspected(everything, &message);
            let all = (outcome.as_str(), &reason_of_all);
            assert_eq!(all, ("left", &reason), "{name}");
        } else {
            assert!(outcome.starts_with("would-"), "{name}: {reason}");
        }
        if !allowed_by.is_empty() {
            let (outcome, _) = inspected("", &message);
            assert!(matches!(outcome.as_str(), "left" | ""), "{name}");
        }
    }
}

#[test]
fn every_scheme_that_can_be_retrieved_has_a_row_and_names_its_option() {
    let (done, asked) = tables();
    for scheme in Scheme::ALL {
        let name = format!("`{}:`", scheme.as_str());
        let row = done
            .iter()
            .find(|row| row[0] == name)
            .unwrap_or_else(|| panic!("{name} has no row"));
        let option = format!("`--fetch {}", scheme.as_str());
        assert!(row[4].starts_with(&option), "{name}");
    }
    // Each question of RFC 2718 is answered for each scheme.
    let names = |rows: &[Vec<&'static str>]| -> Vec<&'static str> {
        rows.iter().map(|row| row[0]).collect()
    };
    assert_eq!(names(&done), names(&asked));
    for row in &asked {
        assert_eq!(row.len(), 6, "{row:?}");
        assert!(row.iter().all(|answer| !answer.is_empty()), "{row:?}");
    }
}
