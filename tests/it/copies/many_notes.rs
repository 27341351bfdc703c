//! A mail that lacks thousands of parts is filled from one copy, in linear time.

use std::time::{Duration, Instant};

use super::Place;

const HEADER: &str = "From: a@example.org\nSubject: s\nDate: Mon, 2 Jan 2023 10:00:00 +0000\nMessage-ID: <1@example.org>\n\
    MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=B\n\n";

fn fields(number: usize) -> String {
    format!(
        "Content-Type: application/octet-stream; name=\"a{number}\"\nContent-Disposition: attachment; filename=\"a{number}\"\n\
         Content-Transfer-Encoding: base64\n"
    )
}

/// Returns the note of Thunderbird, or an external body for every second part.
fn note(number: usize) -> String {
    if number.is_multiple_of(2) {
        return format!(
            "Content-Type: message/external-body; access-type=URL; URL=\"http://www.example.org/{number}\"; size=3\n\n{}",
            fields(number)
        );
    }
    format!(
        "Content-Type: text/x-moz-deleted; name=\"Deleted: a{number}\"\nContent-Disposition: inline; filename=\"Deleted: a{number}\"\n\n\
         You deleted an attachment from this message. The original MIME headers for the attachment were:\n{}",
        fields(number)
    )
}

fn mail(count: usize, part: impl Fn(usize) -> String) -> String {
    let parts = (0..count).map(|number| format!("--B\n{}\n", part(number)));
    format!("{HEADER}{}--B--\n", parts.collect::<String>())
}

/// Recovers a mail with this number of notes, and returns the time.
fn recovered(count: usize) -> Duration {
    let whole = mail(count, |number| format!("{}\nQUJD", fields(number)));
    let place = Place::with(&mail(count, note), &[&whole]);
    let begun = Instant::now();
    let line = "recover --offline --max-parts 20000 in.eml --copies mail --output out.eml";
    place.run(line, 0);
    let took = begun.elapsed();
    assert_eq!(place.read("out.eml").matches("QUJD").count(), count);
    took
}

#[test]
fn thousands_of_notes_in_one_mail_are_all_filled() {
    for count in [5, 1001] {
        recovered(count);
    }
    // A quadratic time would be about 16 times as long. The machine that runs the tests may be busy, so more than 4 times is
    // allowed.
    let (few, many) = (recovered(2000), recovered(8000));
    assert!(many < few * 10, "{few:?}, {many:?}");
}
