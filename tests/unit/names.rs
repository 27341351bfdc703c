//! File names in every charset: with each label of the Encoding Standard, in each form of a name, and in each place
//! where embody reads a name. A name that cannot be decoded is never written, and its field or note stays unchanged.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::process::{Command, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use embody::Policy;
use embody::engine::Content;
use embody::fetch::{Fetch, Request};
use embody::policy::{Followed, Scheme};
use embody::report::{Outcome, Refusal};
use encoding_rs::{Encoding, REPLACEMENT, UTF_8, UTF_16BE, UTF_16LE, X_USER_DEFINED};

use super::common::labels::LABELS;
use super::common::mail::expander;
use crate::engine::external_body::{Referent, shown_name};
use crate::engine::forms::references;
use crate::mime::encoded_words::{decoded_text, decoded_words};
use crate::mime::{self, PartId, ScanLimits};

/// Names in charsets without a decoder. UTF-7 is not in the Encoding Standard, and the standard contains the other ones
/// only to refuse them.
const UNREADABLE: [(&str, &[u8]); 4] = [
    ("utf-7", b"r+AOk-sum+AOk-.docx"),
    ("iso-2022-kr", b"\x1b$)C\x0eGQ\x0f.docx"),
    ("hz-gb-2312", b"~{VPND~}.docx"),
    ("x-nobody-knows-it", b"r\xe9sum\xe9.docx"),
];

struct Case {
    label: &'static str,
    /// `None` if the name cannot be decoded.
    name: Option<String>,
    octets: Vec<u8>,
}

/// A word in each script. Every encoding supports at least one of them.
const WORDS: [&str; 16] = [
    "日本語",
    "中文",
    "繁體",
    "한국어",
    "Отчёт",
    "žluťoučký",
    "résumé",
    "รายงาน",
    "דוח",
    "تقرير",
    "έκθεση",
    "Ħaġ",
    "įrašas",
    "ŵyth",
    "báo cáo đ",
    "\u{f7e9}",
];

fn encoded(encoding: &'static Encoding, text: &str) -> Option<Vec<u8>> {
    let wide = |to: fn(u16) -> [u8; 2]| Some(text.encode_utf16().flat_map(to).collect());
    match encoding {
        _ if encoding == UTF_16BE => wide(u16::to_be_bytes),
        _ if encoding == UTF_16LE => wide(u16::to_le_bytes),
        _ => {
            let (octets, _, is_lossy) = encoding.encode(text);
            (!is_lossy).then(|| octets.into_owned())
        }
    }
}

fn cases() -> Vec<Case> {
    let known = LABELS.iter().map(|label| {
        let encoding = Encoding::for_label(label.as_bytes()).unwrap();
        let name = |word: &&'static str| {
            Some((
                format!("{word}.docx"),
                encoded(encoding, &format!("{word}.docx"))?,
            ))
        };
        let named = WORDS.iter().find_map(name);
        match named.filter(|_| encoding != REPLACEMENT) {
            Some((name, octets)) => Case {
                label,
                name: Some(name),
                octets,
            },
            None => Case {
                label,
                name: None,
                octets: UNREADABLE[1].1.to_vec(),
            },
        }
    });
    let unreadable = UNREADABLE.iter().map(|(label, octets)| Case {
        label,
        name: None,
        octets: octets.to_vec(),
    });
    known.chain(unreadable).collect()
}

impl Case {
    fn encoding(&self) -> Option<&'static Encoding> {
        Encoding::for_label(self.label.as_bytes())
    }

    fn is_wide(&self) -> bool {
        self.encoding()
            .is_some_and(|it| it == UTF_16BE || it == UTF_16LE)
    }

    fn percent(octets: &[u8]) -> String {
        octets.iter().fold(String::new(), |mut text, octet| {
            let _ = write!(text, "%{octet:02X}");
            text
        })
    }

    fn word(&self, octets: &[u8], is_base64: bool) -> String {
        let label = self.label;
        if is_base64 {
            format!("=?{label}?B?{}?=", STANDARD.encode(octets))
        } else {
            format!("=?{label}?q?{}?=", Self::percent(octets).replace('%', "="))
        }
    }

    /// Returns each form of the name as a parameter, and whether it can be decoded. The form without a charset is last.
    fn parameters(&self, parameter: &str) -> Vec<(Vec<u8>, bool)> {
        let label = self.label;
        let (front, behind) = self.octets.split_at(3.min(self.octets.len()));
        let percent = Self::percent;
        let declared = [
            format!("{parameter}=\"{}\"", self.word(&self.octets, true)),
            format!("{parameter}={}", self.word(&self.octets, false)),
            // Divided inside a character, and inside a shift sequence.
            format!(
                "{parameter}=\"{}\n {}\"",
                self.word(front, true),
                self.word(behind, false)
            ),
            format!("{parameter}*={label}''{}", percent(&self.octets)),
            format!(
                "{parameter}*0*={label}'en'{};\n {parameter}*1*={}",
                percent(front),
                percent(behind)
            ),
        ];
        let mut all: Vec<(Vec<u8>, bool)> = declared
            .into_iter()
            .map(|text| (text.into_bytes(), self.name.is_some()))
            .collect();
        if !self.octets.contains(&0) && !self.octets.is_ascii() || self.octets.contains(&0x1b) {
            let raw = [parameter.as_bytes(), b"=\"", &self.octets, b"\""].concat();
            // The escape sequences of ISO-2022-JP identify the charset.
            let tells = ["utf-8", "iso-2022-jp"];
            let named = self.encoding().map(|it| it.name().to_lowercase());
            let is_known = self.name.is_some() && named.is_some_and(|it| tells.contains(&&*it));
            all.push((raw, is_known));
        }
        all
    }
}

/// Returns the name in an entity that consists of one header.
fn name_in(entity: &[u8]) -> Option<String> {
    let tree = mime::scan(entity, &ScanLimits::default());
    shown_name(entity, tree.fields(PartId::ROOT))
}

#[test]
fn decoded_text_agrees_with_python_where_it_has_the_codec() {
    let script = "import json, sys\nfor label, octets in json.load(sys.stdin):\n    try:\n        print(json.dumps(bytes.fromhex(octets).decode(label)))\n    except (LookupError, UnicodeDecodeError):\n        print('null')";
    let cases = cases();
    let hex = |octets: &[u8]| Case::percent(octets).replace('%', "");
    let input: Vec<(&str, String)> = cases.iter().map(|it| (it.label, hex(&it.octets))).collect();
    let started = Command::new("python3")
        .args(["-c", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let Ok(mut python) = started else {
        assert!(
            std::env::var_os("EMBODY_REQUIRE_ALL").is_none(),
            "python3 is required"
        );
        return println!("skipped: no python3");
    };
    serde_json::to_writer(python.stdin.take().unwrap(), &input).unwrap();
    let output = python.wait_with_output().unwrap();
    let lines = String::from_utf8(output.stdout).unwrap();
    let mut compared = 0;
    for (case, line) in cases.iter().zip(lines.lines()) {
        let theirs: Option<String> = serde_json::from_str(line).unwrap();
        if let (Some(ours), Some(theirs)) = (&case.name, theirs) {
            assert_eq!(*ours, theirs, "{}", case.label);
            compared += 1;
        }
    }
    assert!(compared > 140, "{compared}");
}

#[test]
fn file_name_in_every_charset_and_spelling_is_read_or_shown_as_written() {
    for case in cases() {
        for (parameter, is_known) in case.parameters("filename") {
            let header = [
                b"Content-Disposition: attachment; ",
                parameter.as_slice(),
                b"\n\n",
            ]
            .concat();
            let found = name_in(&header).unwrap();
            let shown = parameter.escape_ascii();
            match &case.name {
                Some(name) if is_known => assert_eq!(found, *name, "{} {shown}", case.label),
                _ => {
                    assert!(
                        !found.contains('\u{fffd}'),
                        "{} {shown} {found}",
                        case.label
                    );
                    assert_ne!(Some(found), case.name, "{} {shown}", case.label);
                }
            }
        }
    }
}

#[test]
fn subject_in_every_charset_is_read_or_shown_as_written() {
    for case in cases() {
        for is_base64 in [true, false] {
            let word = case.word(&case.octets, is_base64);
            let expected = case.name.clone().unwrap_or_else(|| word.clone());
            assert_eq!(decoded_words(word.as_bytes()), expected, "{word}");
        }
        // Without encoded words, the text is in the charset of the message text.
        if let Some(name) = &case.name
            && !case.is_wide()
        {
            let label = Some(case.label.as_bytes());
            assert_eq!(decoded_text(&case.octets, label), *name, "{}", case.label);
        }
    }
}

#[test]
fn path_of_a_local_file_in_every_charset_is_read_or_refused() {
    for case in cases() {
        let path = match (&case.name, case.encoding()) {
            (Some(name), Some(encoding)) => encoded(encoding, &format!("/d/{name}")).unwrap(),
            _ => [b"/d/", case.octets.as_slice()].concat(),
        };
        let whole = Case {
            label: case.label,
            name: case.name.as_ref().map(|name| format!("/d/{name}")),
            octets: path,
        };
        for (parameter, is_known) in whole.parameters("name") {
            let mail = [
                b"Content-Type: message/external-body; access-type=LOCAL-FILE; ".as_slice(),
                &parameter,
                b"\n\nContent-Type: text/plain\n\n",
            ]
            .concat();
            let tree = mime::scan(&mail, &ScanLimits::default());
            let reading = Policy::default().reading();
            let body = references::read(&tree, PartId::ROOT, &reading).unwrap();
            let is_raw = parameter.starts_with(b"name=\"/");
            match (body.target, &case.name) {
                (Ok(Referent::Url(url)), Some(name)) if is_known => {
                    let path = percent_encoding::percent_decode_str(&url)
                        .decode_utf8()
                        .unwrap();
                    assert_eq!(path, format!("file:///d/{name}"), "{}", case.label);
                }
                // The file name consists of the bytes in the mail.
                (Ok(Referent::Url(url)), _) if is_raw => {
                    let path: Vec<u8> = percent_encoding::percent_decode_str(&url).collect();
                    assert_eq!(path, [b"file://", whole.octets.as_slice()].concat());
                }
                (Err(_), _) if !is_known => {}
                (other, _) => {
                    let other = other.map(|_| "a target");
                    panic!("{} {} {other:?}", case.label, parameter.escape_ascii());
                }
            }
        }
    }
}

/// The name of an Exchange shortcut is written without its extension.
#[test]
fn shortcut_in_every_charset_gets_its_name_or_keeps_its_field() {
    for case in cases() {
        let shortcut = match (&case.name, case.encoding()) {
            (Some(name), Some(encoding)) => encoded(encoding, &format!("{name}.url")).unwrap(),
            _ => [case.octets.as_slice(), b".url"].concat(),
        };
        let whole = Case {
            octets: shortcut,
            name: case.name.clone(),
            ..case
        };
        for parameter in ["name", "filename"] {
            for (written, is_known) in whole.parameters(parameter) {
                let (typed, disposed) = match parameter {
                    "name" => ([b"; ", written.as_slice()].concat(), Vec::new()),
                    _ => {
                        let field = [
                            b"Content-Disposition: attachment; ",
                            written.as_slice(),
                            b"\n",
                        ];
                        (Vec::new(), field.concat())
                    }
                };
                let mail = [
                    b"Subject: s\nContent-Type: message/external-body".as_slice(),
                    &typed,
                    b"\n",
                    &disposed,
                    b"\n[InternetShortcut]\nURL=data:,one\n",
                ]
                .concat();
                let expander = expander(Policy::default().with_follow(Followed::all()), Nothing);
                let expansion = expander.expand(&mail, "test").unwrap();
                let output = expansion.output().into_bytes().into_owned();
                let shown = written.escape_ascii();
                assert_eq!(
                    expansion.report.expanded(),
                    1,
                    "{shown} {:?}",
                    expansion.report
                );
                match &whole.name {
                    Some(name) if is_known => {
                        assert_eq!(name_in(&output).as_ref(), Some(name), "{shown}");
                    }
                    _ => {
                        let is_kept = memchr::memmem::find(&output, &written).is_some();
                        assert!(is_kept, "{shown}: {}", output.escape_ascii());
                    }
                }
            }
        }
    }
}

struct Nothing;

impl Fetch for Nothing {
    fn fetch(&self, _: &Request) -> Result<Content, Refusal> {
        unreachable!("data: URLs need no retrieval")
    }
}

struct Files(HashMap<String, usize>);

impl Fetch for Files {
    fn fetch(&self, request: &Request) -> Result<Content, Refusal> {
        let octets = vec![7; self.0[request.url()]];
        let essence = Some("application/x-file".to_owned());
        Ok(Content::new(request.url(), essence, octets))
    }
}

/// Returns the result for a mail with one reference, whose content has three bytes.
fn filled(mail: &[u8], url: &str) -> (Vec<u8>, Vec<Outcome>) {
    let policy = Policy::default()
        .with_fetch([Scheme::Https])
        .with_follow(Followed::all());
    let files = Files([(url.to_owned(), 3)].into());
    let expander = expander(policy, files);
    let expansion = expander.expand(mail, "test").unwrap();
    let outcomes = expansion
        .report
        .rows
        .iter()
        .map(|row| row.outcome)
        .collect();
    (expansion.output().into_bytes().into_owned(), outcomes)
}

/// Returns the names of all parts except the first.
fn names(output: &[u8]) -> Vec<Option<String>> {
    let tree = mime::scan(output, &ScanLimits::default());
    let parts = tree.ids().filter(|id| tree.part(*id).depth == 1).skip(1);
    parts
        .map(|id| shown_name(output, tree.fields(id)))
        .collect()
}

#[test]
fn name_in_a_note_of_mailman_is_in_the_charset_of_its_text_or_the_note_stays() {
    const URL: &str = "https://l.example/attachments/20240514/5a579ce7/attachment.bin";
    for case in cases().iter().filter(|case| !case.is_wide()) {
        let mail = [
            format!("Message-ID: <1.team@mail.example.org>\nMIME-Version: 1.0\nContent-Type: text/plain; charset=\"{}\"\nContent-Transfer-Encoding: 8bit\n\nText\n-------------- next part --------------\nA non-text attachment was scrubbed...\nName: ", case.label).as_bytes(),
            &case.octets,
            format!("\nType: application/x-file\nSize: 3 bytes\nDesc: not available\nURL: <{URL}>\n").as_bytes(),
        ]
        .concat();
        let (output, outcomes) = filled(&mail, URL);
        match &case.name {
            Some(name) => assert_eq!(names(&output), [Some(name.clone())], "{}", case.label),
            None => {
                assert_eq!(outcomes, [Outcome::Left], "{}", case.label);
                assert_eq!(output, mail, "{}", case.label);
            }
        }
    }
}

#[test]
fn name_in_a_note_of_sympa_is_in_the_charset_of_its_part_or_the_note_stays() {
    const URL: &str = "https://l.example/sympa/attach/team/AbC/msg.0.bin";
    for case in cases().iter().filter(|case| !case.is_wide()) {
        let mail = [
            b"Subject: s\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\ntext\n--b\n".as_slice(),
            format!("Content-Type: text/plain; format=flowed; charset=\"{}\"\nContent-Disposition: inline\nContent-Transfer-Encoding: 8bit\n\nThe ", case.label).as_bytes(),
            &case.octets,
            format!(" file that was initially attached to this message has been stored on the mailing lists server:\n{URL}\n--b--\n").as_bytes(),
        ]
        .concat();
        let (output, outcomes) = filled(&mail, URL);
        match &case.name {
            Some(name) => assert_eq!(names(&output), [Some(name.clone())], "{}", case.label),
            None => {
                assert_eq!(outcomes, [Outcome::Left], "{}", case.label);
                assert_eq!(output, mail, "{}", case.label);
            }
        }
    }
}

#[test]
fn name_in_markup_is_in_the_charset_of_the_part_or_of_the_document() {
    const URL: &str = "https://cloud.example.org/s/AbC/download";
    for case in cases() {
        let whole = |text: &str| match case.encoding().filter(|it| *it != REPLACEMENT) {
            Some(encoding) => encoded(encoding, text).unwrap(),
            None => text.as_bytes().to_vec(),
        };
        let document = [
            whole("<ul><li class=\"cloudAttachmentItem\" data-content-location=\"https://cloud.example.org/s/AbC\"><a href=\"https://cloud.example.org/s/AbC\" class=\"cloudfile-name\">"),
            case.octets.clone(),
            whole("</a></li></ul>"),
        ]
        .concat();
        let header = "Subject: s\nMIME-Version: 1.0\nContent-Type: text/html";
        let encoding = "Content-Transfer-Encoding: base64\n\n";
        let of_part = format!(
            "{header}; charset=\"{}\"\n{encoding}{}\n",
            case.label,
            STANDARD.encode(&document)
        );
        let meta = format!("<meta charset=\"{}\">", case.label).into_bytes();
        let of_document = format!(
            "{header}\n{encoding}{}\n",
            STANDARD.encode([meta, document].concat())
        );
        let mails = [Some(of_part), Some(of_document).filter(|_| !case.is_wide())];
        for mail in mails.into_iter().flatten() {
            let (output, outcomes) = filled(mail.as_bytes(), URL);
            assert_eq!(outcomes, [Outcome::Expanded], "{} {mail}", case.label);
            let expected = std::slice::from_ref(&case.name);
            assert_eq!(names(&output), expected, "{} {mail}", case.label);
        }
    }
}

#[test]
fn cases_have_every_label_and_a_word_of_each_charset() {
    let cases = cases();
    assert_eq!(cases.len(), LABELS.len() + UNREADABLE.len());
    for case in &cases {
        let encoding = case.encoding().filter(|it| *it != REPLACEMENT);
        assert_eq!(encoding.is_some(), case.name.is_some(), "{}", case.label);
        let is_ascii = case.name.as_ref().is_some_and(|name| name.is_ascii());
        assert!(!is_ascii, "{}", case.label);
    }
    assert!(
        cases
            .iter()
            .any(|case| case.encoding() == Some(X_USER_DEFINED))
    );
    assert!(cases.iter().any(|case| case.encoding() == Some(UTF_8)));
}
