//! Every picture that Chromium shows is embedded, unless it runs a script or refers to other resources. `picture_formats.txt`
//! contains a small file of each format and its variants, made with Pillow, ImageMagick and by hand. Its columns: name, whether
//! Chromium 156 shows it, whether it is embedded, and its bytes.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::common::browser::{chromium, natural_widths};
use crate::common::filter::filter;

struct Row {
    name: &'static str,
    is_shown: bool,
    is_embedded: bool,
    base64: &'static str,
}

impl Row {
    fn url(&self) -> String {
        let essence = if self.name.ends_with(".svg") {
            "image/svg+xml"
        } else {
            // The declared type may be wrong; the bytes show the format.
            "image/png"
        };
        format!("data:{essence};base64,{}", self.base64)
    }
}

/// Pictures that Chromium shows and embody leaves: they run or load something, or declare something that could.
const REFUSED: [&str; 10] = [
    "svg-attlist.svg",
    "svg-emptyscript.svg",
    "svg-enc-UTF-7.svg",
    "svg-ent-ext.svg",
    "svg-ent-param.svg",
    "svg-foreign.svg",
    "svg-import.svg",
    "svg-link.svg",
    "svg-script.svg",
    "svg-xmlstyle.svg",
];

fn rows() -> Vec<Row> {
    let lines = include_str!("picture_formats.txt").lines();
    lines
        .map(|line| {
            let mut words = line.split(' ');
            let mut word = || words.next().unwrap();
            Row {
                name: word(),
                is_shown: word() == "shown",
                is_embedded: word() == "embedded",
                base64: word(),
            }
        })
        .collect()
}

#[test]
fn picture_of_each_format_is_embedded_as_the_table_says() {
    let rows = rows();
    assert!(rows.len() > 150);
    let images: String = rows
        .iter()
        .map(|row| format!("<p><img src=\"{}\"></p>\n", row.url()))
        .collect();
    let mail = format!("MIME-Version: 1.0\nContent-Type: text/html\n\n{images}");
    let ran = filter("--embed data", mail.as_bytes());
    let output = String::from_utf8(ran.stdout).unwrap();
    let sources: Vec<&str> = output.split("src=\"").skip(1).collect();
    assert_eq!(sources.len(), rows.len());
    let wrong: Vec<&str> = rows
        .iter()
        .zip(sources)
        .filter(|(row, source)| source.starts_with("cid:") != row.is_embedded)
        .map(|(row, _)| row.name)
        .collect();
    assert!(wrong.is_empty(), "{wrong:?}");
}

#[test]
fn picture_that_chromium_shows_is_embedded_or_dangerous() {
    let left: Vec<&str> = rows()
        .iter()
        .filter(|row| row.is_shown && !row.is_embedded)
        .map(|row| row.name)
        .collect();
    assert_eq!(left, REFUSED);
}

#[test]
fn picture_of_each_format_is_shown_by_chromium_as_the_table_says() {
    let Some(chromium) = chromium("picture_of_each_format_is_shown_by_chromium_as_the_table_says")
    else {
        return;
    };
    let rows = rows();
    let urls: Vec<String> = rows.iter().map(Row::url).collect();
    let widths = natural_widths(&chromium, &urls);
    let wrong: Vec<&str> = rows
        .iter()
        .zip(widths)
        .filter(|(row, width)| (*width > 0) != row.is_shown)
        .map(|(row, _)| row.name)
        .collect();
    assert!(wrong.is_empty(), "{wrong:?}");
    // The bytes in the table are valid base64.
    assert!(rows.iter().all(|row| STANDARD.decode(row.base64).is_ok()));
}
