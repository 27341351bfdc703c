//! Creates mail with MIME trees of many shapes, and the leaf parts that a mail program must find in each.

use std::collections::BTreeSet;

use base64::Engine as _;

use super::mail::{Leaf, crlf};
use super::mailboxes::Numbers;

/// A message and its expected leaf parts.
pub struct Made {
    /// The message, with LF line endings.
    pub message: Vec<u8>,
    /// Its leaf parts, in order.
    pub before: Vec<Truth>,
    /// Its leaf parts after its external bodies were filled in.
    pub after: Vec<Truth>,
    /// The unusual features of the message.
    pub features: BTreeSet<&'static str>,
}

/// The expected content of a leaf part.
#[derive(Clone, Debug)]
pub struct Truth {
    pub essence: &'static str,
    /// The content. Text has LF line endings.
    pub octets: Vec<u8>,
    /// Whether line endings are part of the content, because it is not encoded.
    pub bare: bool,
    /// Whether the text is in Latin-1, which mail-parser converts to UTF-8.
    pub latin: bool,
}

impl Truth {
    /// Returns the leaf part in a message with LF or CRLF.
    pub fn leaf(&self, with_crlf: bool) -> Leaf {
        if self.bare && with_crlf {
            return Leaf::new(self.essence, &crlf(&self.octets));
        }
        Leaf::new(self.essence, &self.octets)
    }

    /// Returns the leaf part as a program reads it that converts text to UTF-8.
    pub fn leaf_in_utf8(&self, with_crlf: bool) -> Leaf {
        if self.latin {
            let text: String = self.octets.iter().map(|&byte| char::from(byte)).collect();
            return Leaf::new(self.essence, text.as_bytes());
        }
        self.leaf(with_crlf)
    }
}

/// The possible unusual features of a message.
pub const FEATURES: [&str; 9] = [
    "begins like another",
    "comment",
    "continued boundary",
    "folded at once",
    "look-alikes",
    "no parts",
    "not closed",
    "other case",
    "padding",
];

/// Returns the message with this number, which is the same each time. Most messages have at most one unusual feature,
/// so that differences between programs can be assigned to a feature. Some messages have all features.
pub fn message(number: u64) -> Made {
    let only = match number as usize % 14 {
        one @ 0..9 => Some(FEATURES[one]),
        9 => None,
        _ => Some("nothing"),
    };
    let mut maker = Maker {
        draw: Numbers(number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1),
        text: Vec::new(),
        open: Vec::new(),
        before: Vec::new(),
        after: Vec::new(),
        only,
        features: BTreeSet::new(),
    };
    // Seeds that follow each other give similar first numbers, so these are skipped.
    for _ in 0..8 {
        maker.draw.below(2);
    }
    maker.envelope("made up");
    maker.entity(0, false);
    Made {
        message: maker.text,
        before: maker.before,
        after: maker.after,
        features: maker.features,
    }
}

struct Maker {
    draw: Numbers,
    text: Vec<u8>,
    /// Boundaries of the open multiparts, the outermost first.
    open: Vec<String>,
    before: Vec<Truth>,
    after: Vec<Truth>,
    /// The only allowed feature. `None` allows all features.
    only: Option<&'static str>,
    features: BTreeSet<&'static str>,
}

impl Maker {
    /// Returns whether to use an unusual feature, if it is allowed here. The chance is one in `bound`.
    fn may(&mut self, feature: &'static str, bound: u64) -> bool {
        let does = self.one_in(bound) && self.only.is_none_or(|only| only == feature);
        if does {
            self.features.insert(feature);
        }
        does
    }

    fn one_in(&mut self, bound: u64) -> bool {
        self.draw.below(bound) == 0
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.draw.below(all.len() as u64) as usize]
    }

    fn put(&mut self, text: &str) {
        self.text.extend_from_slice(text.as_bytes());
    }

    fn envelope(&mut self, subject: &str) {
        self.put("From: a@example.org\n");
        if self.one_in(3) {
            self.put("Received: from a by b;\n\tMon, 1 Jan 2024\n   00:00:00 +0000\n");
        }
        if self.one_in(3) {
            self.put("Subject: =?utf-8?Q?f=C3=BCr?=\n =?utf-8?B?w6Q=?= you\n");
        } else {
            self.put(&format!("Subject: {subject}\n"));
        }
        self.put("MIME-Version: 1.0\n");
    }

    /// Writes a field, spelled and folded in one of many ways.
    fn field(&mut self, name: &str, value: &str, parameters: &[(&str, String)]) {
        let name = match self.draw.below(4) {
            0 => name.to_ascii_lowercase(),
            1 => name.to_ascii_uppercase(),
            _ => name.to_owned(),
        };
        let mut after_colon = self.of(&[" ", " ", "", "\t"]);
        if self.may("folded at once", 4) {
            after_colon = "\n ";
        }
        self.put(&format!("{name}:{after_colon}{value}"));
        for (parameter, text) in parameters {
            let before = self.of(&["; ", ";", ";\n ", ";\n\t", " ; "]);
            self.put(&format!("{before}{parameter}={text}"));
        }
        self.put("\n");
    }

    /// Writes the header and body of an entity. The first fields of a message are already written.
    fn entity(&mut self, depth: u64, in_digest: bool) {
        let deepest = depth >= 5;
        let kind = self.draw.below(10);
        match kind {
            0..4 if !deepest => self.multipart(depth),
            7.. if depth == 0 => self.multipart(depth),
            4 if !deepest => self.forwarded(depth, in_digest),
            5 | 6 => self.external(),
            _ => self.leaf(in_digest),
        }
    }

    fn multipart(&mut self, depth: u64) {
        let subtype = self.of(&[
            "mixed",
            "mixed",
            "alternative",
            "related",
            "digest",
            "x-unknown",
        ]);
        let boundary = self.boundary();
        let written = self.quoted(&boundary);
        let mut value = match self.draw.below(5) {
            0 => format!("Multipart/{}", subtype.to_ascii_uppercase()),
            _ => format!("multipart/{subtype}"),
        };
        if self.may("comment", 3) {
            value.push_str(" (a comment)");
        }
        self.field("Content-Type", &value, &written);
        if self.one_in(4) {
            let encoding = self.of(&["7bit", "8bit", "binary"]);
            self.field("Content-Transfer-Encoding", encoding, &[]);
        }
        self.put("\n");
        if self.one_in(3) {
            self.put("A preamble.\n -- not a boundary\n");
        }
        self.open.push(boundary.clone());
        let parts = if self.may("no parts", 4) {
            0
        } else {
            1 + self.draw.below(3)
        };
        for part in 0..parts {
            if part > 0 || !self.text.ends_with(b"\n") {
                self.put("\n");
            }
            let padding = self.padding();
            self.put(&format!("--{boundary}{padding}\n"));
            if self.one_in(4) {
                self.put("Content-Description: a part\n");
            }
            // An alternative that contains a part with content offers formats, so embody removes none of its
            // references.
            if subtype == "alternative" && part == 0 {
                self.leaf(false);
            } else {
                self.entity(depth + 1, subtype == "digest");
            }
        }
        self.open.pop();
        if self.may("not closed", 4) {
            return;
        }
        let padding = self.padding();
        self.put(&format!("\n--{boundary}--{padding}"));
        match self.draw.below(4) {
            0 => self.put("\nAn epilogue.\n"),
            1 => {}
            _ => self.put("\n"),
        }
    }

    fn padding(&mut self) -> &'static str {
        if self.may("padding", 4) { " \t " } else { "" }
    }

    /// Returns a boundary that differs from all outer ones, so that its lines cannot end an outer multipart.
    fn boundary(&mut self) -> String {
        loop {
            let number = self.draw.below(1000);
            let mut boundary = match self.draw.below(7) {
                0 => format!("gc0p4Jq0M:2Yt08jU534c0p {number}"),
                1 => format!("=_{number}_=(x)+,-./:?'"),
                2 => format!("{number:070}"),
                3 => format!("----=_NextPart_{number}"),
                4 => "-".repeat(2 + number as usize % 20),
                _ => format!("b{number}"),
            };
            if let Some(outer) = self.open.first().cloned() {
                if self.one_in(3) && self.only.is_none_or(|only| only == FEATURES[0]) {
                    boundary = format!("{outer}{}", number % 10);
                } else if self.may("other case", 3) {
                    let (upper, lower) = (outer.to_ascii_uppercase(), outer.to_ascii_lowercase());
                    boundary = if outer == upper { lower } else { upper };
                }
            }
            // RFC 2046 allows at most 70 characters. "a--" would look like the end of the boundary "a".
            let alike = |other: &String| {
                *other == boundary
                    || format!("{other}--") == boundary
                    || format!("{boundary}--") == *other
            };
            if boundary.len() > 70 || self.open.iter().any(alike) {
                continue;
            }
            let begins =
                |other: &String| other.starts_with(&boundary) || boundary.starts_with(other);
            if self.open.iter().any(begins) {
                self.features.insert("begins like another");
            }
            return boundary;
        }
    }

    fn quoted(&mut self, boundary: &str) -> Vec<(&'static str, String)> {
        let token = boundary
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_.+".contains(&byte));
        if self.may("continued boundary", 3) {
            let (one, two) = boundary.split_at(boundary.len() / 2);
            return vec![
                ("boundary*0", format!("\"{one}\"")),
                ("boundary*1", format!("\"{two}\"")),
            ];
        }
        match self.draw.below(8) {
            0 | 1 if token => vec![("boundary", boundary.to_owned())],
            3 => vec![
                ("charset", "us-ascii".to_owned()),
                ("BOUNDARY", format!("\"{boundary}\"")),
            ],
            _ => vec![("boundary", format!("\"{boundary}\""))],
        }
    }

    fn forwarded(&mut self, depth: u64, in_digest: bool) {
        if self.text.ends_with(b"MIME-Version: 1.0\n") {
            self.features.insert("message in a message");
        }
        if !(in_digest && self.one_in(2)) {
            self.field("Content-Type", "message/rfc822", &[]);
        }
        self.put("\n");
        self.envelope("forwarded");
        self.entity(depth + 1, false);
    }

    fn leaf(&mut self, in_digest: bool) {
        let kind = self.draw.below(8);
        let (essence, octets, charset) = match kind {
            0 => ("image/png", self.noise(), None),
            1 => ("application/octet-stream", self.noise(), None),
            2 => (
                "text/html",
                b"<p>h\xc3\xa4</p>\n<!-- --x -->".to_vec(),
                Some("utf-8"),
            ),
            3 => (
                "text/plain",
                b"caf\xe9\nna\xefve = \xbd\n".to_vec(),
                Some("iso-8859-1"),
            ),
            4 => ("text/plain", self.tricky(), Some("us-ascii")),
            5 => ("text/x-odd", b"\n\nlines\n\n".to_vec(), None),
            _ => (
                "text/plain",
                b"plain text\nFrom here = on \n".to_vec(),
                Some("utf-8"),
            ),
        };
        let is_text = essence.starts_with("text/");
        if kind == 6 && !in_digest && self.one_in(2) {
            // text/plain is the default type, so mail programs must not need the field.
        } else {
            let charset: Vec<_> = charset
                .map(|name| ("charset", name.to_owned()))
                .into_iter()
                .collect();
            self.field("Content-Type", essence, &charset);
        }
        let bare = self.body(&octets, is_text);
        let truth = Truth {
            essence,
            octets,
            bare,
            latin: charset == Some("iso-8859-1"),
        };
        self.before.push(truth.clone());
        self.after.push(truth);
    }

    /// Writes the field for the encoding, an empty line and the body. Returns whether the body is not encoded.
    fn body(&mut self, octets: &[u8], is_text: bool) -> bool {
        let odd = octets.contains(&b'\r') || octets.contains(&0);
        let (encoding, body) = match self.draw.below(4) {
            0 | 1 if !odd => {
                let encoding = self.of(&["", "8bit", "binary", "8BIT"]);
                (encoding, octets.to_vec())
            }
            2 if is_text => (
                self.of(&["quoted-printable", "Quoted-Printable"]),
                quoted_printable(octets),
            ),
            _ => {
                let width = self.of(&[76, 60, 4, 1]);
                (
                    self.of(&["base64", "BASE64", "base64"]),
                    base64_lines(octets, width),
                )
            }
        };
        if !encoding.is_empty() {
            self.field("Content-Transfer-Encoding", encoding, &[]);
        }
        self.put("\n");
        self.text.extend_from_slice(&body);
        matches!(encoding, "" | "8bit" | "binary" | "8BIT")
    }

    fn noise(&mut self) -> Vec<u8> {
        let length = self.draw.below(120);
        (0..length).map(|_| self.draw.below(256) as u8).collect()
    }

    /// Returns lines that look like boundary lines of the outer multiparts, but are not.
    fn tricky(&mut self) -> Vec<u8> {
        let mut text = "tricky\n-- \n--\n --x\n".to_owned();
        if let Some(boundary) = self.open.last().cloned()
            && self.may("look-alikes", 1)
        {
            text.push_str(&format!(
                "--{boundary}x\n --{boundary}\nx--{boundary}\n--{boundary}-\n"
            ));
        }
        text.into_bytes()
    }

    /// Writes a reference whose content is in its URL.
    fn external(&mut self) {
        let text = b"Ein Text f\xc3\xbcr dich\nund mich = 2\n".to_vec();
        let (essence, octets) = match self.draw.below(3) {
            0 => ("image/gif", self.noise()),
            1 => ("text/plain", text),
            _ => ("application/pdf", b"%PDF\r\n\0\n".to_vec()),
        };
        let encoded = base64::engine::general_purpose::STANDARD.encode(&octets);
        let words: Vec<&str> = encoded
            .as_bytes()
            .chunks(40)
            .map(|word| std::str::from_utf8(word).unwrap())
            .collect();
        let charset = if essence == "text/plain" {
            ";charset=utf-8"
        } else {
            ""
        };
        let url = format!(
            "\"data:{essence}{charset};base64,\n {}\"",
            words.join("\n  ")
        );
        self.field(
            "Content-Type",
            "message/external-body",
            &[("access-type", "URL".to_owned()), ("URL", url)],
        );
        self.put(&format!(
            "\nContent-Type: {essence}{}\n\n",
            charset.replace(';', "; ")
        ));
        self.before.push(Truth {
            essence: "message/external-body",
            octets: Vec::new(),
            bare: false,
            latin: false,
        });
        self.after.push(Truth {
            essence,
            octets,
            bare: false,
            latin: false,
        });
    }
}

fn base64_lines(octets: &[u8], width: usize) -> Vec<u8> {
    let encoded = base64::engine::general_purpose::STANDARD.encode(octets);
    encoded
        .as_bytes()
        .chunks(width)
        .collect::<Vec<_>>()
        .join(&b'\n')
}

fn quoted_printable(octets: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for (at, &byte) in octets.iter().enumerate() {
        let ends_line = octets.get(at + 1).is_none_or(|&next| next == b'\n');
        match byte {
            b'\n' => out.push(byte),
            b' ' if !ends_line => out.push(byte),
            // At the start of a line, a hyphen could begin a boundary line.
            b'-' if out.last().is_none_or(|&last| last == b'\n') => out.extend_from_slice(b"=2D"),
            b'!'..=b'~' if byte != b'=' => out.push(byte),
            _ => out.extend_from_slice(format!("={byte:02X}").as_bytes()),
        }
        if at % 50 == 49 && byte != b'\n' && !ends_line {
            out.extend_from_slice(b"=\n");
        }
    }
    out
}
