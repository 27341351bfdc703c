//! Measures functions of the library in memory, and functions of other crates with the same input:
//! `cargo bench --features internals --bench micro`.
//!
//! All input is generated from a fixed seed, so it is the same on every machine. `benches/figures.py` runs these benchmarks,
//! and uses the fastest run of each. With `--mailbox FILE MEGABYTES`, this program only writes a mailbox, with which
//! `benches/figures.py` measures the program `embody`.

use std::fmt::Write as _;
use std::io::{self, Write as _};

use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use embody::internals::link::data::DataUrl;
use embody::internals::link::html;
use embody::internals::mime::{ScanLimits, scan};
use embody::policy::Limits;
use embody::{Expander, Policy};
use mail_builder::mime::MimePart;
use mail_parser::{MessageParser, MimeHeaders as _, mailbox::mbox::MessageIterator};

fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    match arguments.as_slice() {
        [_, option, file, megabytes, ..] if option == "--mailbox" => {
            let megabytes: usize = megabytes.parse().map_err(io::Error::other)?;
            write_mailbox(std::fs::File::create(file)?, megabytes << 20)
        }
        _ => {
            divan::main();
            Ok(())
        }
    }
}

const MAILS: [&str; 3] = [
    "text, 4 kB each",
    "text and HTML, 40 kB each",
    "with attachments, 400 kB each",
];

/// Measures `work` on generated mails. `kind` is one of [`MAILS`].
fn on_mails(bencher: Bencher<'_, '_>, kind: &str, work: impl Fn(&[u8])) {
    let (count, text, attached) = match kind.split(',').next() {
        Some("text") => (2_000, 4, 0),
        Some("text and HTML") => (400, 40, 0),
        _ => (80, 40, 360),
    };
    let mut random = Random(42);
    let mails: Vec<Vec<u8>> = (0..count)
        .map(|number| mail(number, text, attached, &mut random).into_bytes())
        .collect();
    let octets: usize = mails.iter().map(Vec::len).sum();
    let bencher = bencher.counter(BytesCount::new(octets));
    bencher.bench_local(|| mails.iter().for_each(|mail| work(black_box(mail))));
}

#[divan::bench(args = MAILS)]
fn scan_mail(bencher: Bencher<'_, '_>, kind: &str) {
    let limits = ScanLimits::default();
    on_mails(bencher, kind, |mail| drop(black_box(scan(mail, &limits))));
}

#[divan::bench(args = MAILS)]
fn scan_mail_parser(bencher: Bencher<'_, '_>, kind: &str) {
    let parser = MessageParser::default();
    on_mails(bencher, kind, |mail| drop(black_box(parser.parse(mail))));
}

#[divan::bench]
fn mailbox_mail_parser(bencher: Bencher<'_, '_>) {
    let mut mailbox = Vec::new();
    write_mailbox(&mut mailbox, 50 << 20).expect("memory can be written to");
    let parser = MessageParser::default();
    bencher
        .counter(BytesCount::new(mailbox.len()))
        .bench_local(|| {
            for message in MessageIterator::new(black_box(mailbox.as_slice())) {
                let message = message.expect("a message");
                black_box(parser.parse(message.contents()));
            }
        });
}

const DOCUMENTS: [&str; 3] = ["text, few links", "newsletter", "nothing but links"];
const BASE: &str = "https://news.example.org/2024/05/";

/// Measures `work` on generated HTML documents. `kind` is one of [`DOCUMENTS`]. `work` adds [`BASE`] to the links of a
/// document, and returns the length of the new document.
fn on_documents(bencher: Bencher<'_, '_>, kind: &str, work: impl Fn(&str) -> usize) {
    let mut random = Random(42);
    let documents: Vec<String> = (0..1000).map(|_| newsletter(kind, &mut random)).collect();
    assert!(work(&documents[0]) > documents[0].len());
    let octets: usize = documents.iter().map(String::len).sum();
    let bencher = bencher.counter(BytesCount::new(octets));
    bencher.bench_local(|| {
        documents
            .iter()
            .map(|text| work(black_box(text)))
            .sum::<usize>()
    });
}

/// Adds [`BASE`] to each link, which makes the link absolute. The links are not resolved as `embody filter` resolves them,
/// because [`links_lol_html`] does not resolve them either.
#[divan::bench(args = DOCUMENTS)]
fn links(bencher: Bencher<'_, '_>, kind: &str) {
    on_documents(bencher, kind, |text| {
        let document = text.as_bytes();
        let (mut url, mut edits, mut growth) = (Vec::new(), Vec::new(), 0);
        for link in html::locate(document).links.iter() {
            url.clear();
            url.extend_from_slice(BASE.as_bytes());
            url.extend_from_slice(&link.decoded(document));
            let value = link.encoded(&url);
            growth += value.len();
            edits.push((link.span, value));
        }
        let mut out = Vec::with_capacity(document.len() + growth);
        let mut copied = 0;
        for (span, value) in &edits {
            out.extend_from_slice(&document[copied..span.start]);
            out.extend_from_slice(value);
            copied = span.end;
        }
        out.extend_from_slice(&document[copied..]);
        black_box(out).len()
    });
}

/// Adds [`BASE`] to each link with lol_html. lol_html does less work than embody, because it does not search style attributes,
/// style elements, srcset and conditional comments for links.
#[divan::bench(args = DOCUMENTS)]
fn links_lol_html(bencher: Bencher<'_, '_>, kind: &str) {
    const ELEMENTS: &str = "a[href], area[href], link[href], img[src], [background], form[action]";
    on_documents(bencher, kind, |document| {
        let handler = lol_html::element!(ELEMENTS, |element| {
            for name in ["href", "src", "background", "action"] {
                if let Some(value) = element.get_attribute(name) {
                    element.set_attribute(name, &format!("{BASE}{value}"))?;
                }
            }
            Ok(())
        });
        let settings = lol_html::RewriteStrSettings::new().append_element_content_handler(handler);
        let written = lol_html::rewrite_str(document, settings);
        black_box(written.expect("lol_html accepts the generated documents")).len()
    });
}

/// Length of the base64 in the large `data:` URL, in characters.
const SYMBOLS: usize = 32 << 20;

/// Returns the large `data:` URL, which contains random bytes. The URL is folded into words of 40 characters (RFC 2017 §3.1).
/// `fold` is one of [`FOLDS`], and names the characters between two words.
fn url(fold: &str) -> String {
    let mut random = Random(42);
    let content: Vec<u8> = (0..SYMBOLS / 4 * 3)
        .map(|_| random.below(256) as u8)
        .collect();
    let url = format!(
        "data:image/png;base64,{}",
        base64_simd::STANDARD.encode_to_string(content)
    );
    let fold = match fold {
        "LF TAB" => "\n\t",
        "CRLF SP" => "\r\n ",
        other => panic!("{other} is not in FOLDS"),
    };
    let words = url
        .as_bytes()
        .chunks(40)
        .map(|word| str::from_utf8(word).expect("ASCII"));
    words.collect::<Vec<_>>().join(fold)
}

const FOLDS: [&str; 2] = ["LF TAB", "CRLF SP"];

#[divan::bench(args = FOLDS)]
fn data_url(bencher: Bencher<'_, '_>, fold: &str) {
    let url = url(fold);
    bencher.bench_local(|| {
        let url = DataUrl::parse(black_box(&url).as_bytes()).expect("a data: URL");
        url.decode(u64::MAX).expect("base64")
    });
}

#[divan::bench(args = FOLDS)]
fn data_url_data_url(bencher: Bencher<'_, '_>, fold: &str) {
    let url = url(fold);
    bencher.bench_local(|| {
        let url = data_url::DataUrl::process(black_box(&url)).expect("a data: URL");
        url.decode_to_vec().expect("base64")
    });
}

/// Returns a message that contains a reference to a picture. The reference has the large `data:` URL.
fn large() -> String {
    format!(
        "From: a@example.org\nSubject: x\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\
         Content-Type: text/plain\n\nHello\n--b\nContent-Type: message/external-body; access-type=URL;\n URL=\"{}\"\n\n\
         Content-Type: image/png\n\n\n--b--\n",
        url("LF TAB")
    )
}

#[divan::bench]
fn expand(bencher: Bencher<'_, '_>) {
    let limits = Limits::default()
        .with_body(100 << 20)
        .with_growth(100 << 20);
    let expander =
        Expander::new(Policy::default().with_limits(limits)).expect("the policy is valid");
    let mail = large();
    bencher.bench_local(|| {
        let expansion = expander
            .expand(black_box(mail.as_bytes()), "bench")
            .expect("the policy defers no message");
        assert_eq!(expansion.report.expanded(), 1);
        black_box(expansion.edits.len())
    });
}

/// Expands the same message with other crates, which parse it, decode the URL, and build a new message. The crates do less work
/// than embody, because the text and the header of the new message are constants here, and a filter would have to copy them.
#[divan::bench]
fn expand_crates(bencher: Bencher<'_, '_>) {
    let mail = large();
    bencher.bench_local(|| {
        let message = MessageParser::default()
            .parse(black_box(mail.as_bytes()))
            .expect("a message");
        let urls = message
            .parts
            .iter()
            .filter_map(|part| part.content_type()?.attribute("url"));
        let url: String = urls.flat_map(str::split_ascii_whitespace).collect();
        let decoded = data_url::DataUrl::process(&url).expect("a data: URL");
        let (content, _) = decoded.decode_to_vec().expect("base64");
        let parts = vec![
            MimePart::new("text/plain", "Hello"),
            MimePart::new("image/png", content),
        ];
        let built = mail_builder::MessageBuilder::new()
            .from("a@example.org")
            .subject("x")
            .body(MimePart::new("multipart/mixed", parts))
            .write_to_vec()
            .expect("memory can be written to");
        assert!(built.len() > SYMBOLS);
        built
    });
}

/// Generator of pseudorandom numbers (xorshift64*). The same seed always gives the same numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 20) % limit
    }

    fn words(&mut self, count: u64) -> String {
        const WORDS: [&str; 16] = [
            "the",
            "meeting",
            "of",
            "Thursday",
            "caf\u{e9}",
            "From",
            "moved",
            "to",
            "next",
            "week",
            "please",
            "find",
            "attached",
            "our",
            "&amp;",
            "-- and",
        ];
        let words = (0..count).map(|_| WORDS[self.below(16) as usize]);
        words.collect::<Vec<_>>().join(" ")
    }
}

/// Returns an HTML document that resembles a newsletter: it contains table layouts, inline styles, tracking links, a style
/// element with media queries, and a conditional comment. `kind` is one of [`DOCUMENTS`], and decides how much text and how
/// many links the document has.
fn newsletter(kind: &str, random: &mut Random) -> String {
    let mut out = String::from(
        "<!DOCTYPE html PUBLIC \"-//W3C//DTD XHTML 1.0 Transitional//EN\" \
         \"http://www.w3.org/TR/xhtml1/DTD/xhtml1-transitional.dtd\">\n<html>\n<head>\n\
         <meta http-equiv=\"Content-Type\" content=\"text/html; charset=utf-8\">\n<title>News</title>\n\
         <!--[if mso]><style>td { font-family: Arial !important }</style><![endif]-->\n<style type=\"text/css\">\n",
    );
    for width in 0..20 + random.below(20) {
        let _ = writeln!(
            out,
            "@media only screen and (max-width: {}px) {{ .c{width} {{ width: 100% !important; padding: 0 {}px; \
             color: #33{width:02}66 }} }}",
            400 + width,
            random.below(30)
        );
    }
    out.push_str("body { background: url('img/back.gif') }\n</style>\n</head>\n<body>\n");
    for row in 0..20 + random.below(30) {
        out.push_str(
            "<table border=\"0\" cellpadding=\"0\" cellspacing=\"0\" width=\"100%\" style=\"border-collapse: collapse; \
             mso-table-lspace: 0pt\"><tr><td align=\"left\" valign=\"top\" class=\"c1\" style=\"padding: 10px 20px; \
             font: 14px/20px Arial, sans-serif; color: #333333;\">\n",
        );
        let (words, links) = match kind {
            "newsletter" => (30, 1 + random.below(3)),
            "nothing but links" => (1, 12),
            _ => (120, u64::from(row == 0)),
        };
        for _ in 0..links {
            let (page, user) = (random.below(1 << 40), random.below(1 << 40));
            let (picture, height) = (random.below(1000), random.below(400));
            let _ = writeln!(
                out,
                "<a href=\"track/{page:x}?u={user:x}&amp;c={row}\" target=\"_blank\" style=\"color: #0066cc; \
                 text-decoration: none\"><img src=\"img/{picture}.png\" alt=\"{}\" width=\"600\" height=\"{height}\" \
                 border=\"0\" style=\"display: block\"></a>",
                random.words(3)
            );
        }
        let text = random.words(words);
        let _ = writeln!(
            out,
            "<p style=\"margin: 0 0 10px\">{text}</p>\n</td></tr></table>"
        );
    }
    out.push_str("</body>\n</html>\n");
    out
}

/// Returns a message with about `text` kB of plain text and HTML together, and an attachment of about `attached` kB in base64.
/// If `attached` is 0, the message has no attachment.
fn mail(number: u64, text: usize, attached: usize, random: &mut Random) -> String {
    let mut mail = String::new();
    for hop in 0..6 {
        let _ = writeln!(
            mail,
            "Received: from mx{hop}.example.org (mx{hop}.example.org [192.0.2.{hop}])\n\tby mail.example.net with ESMTPS \
             id {number:08x}{hop}\n\tfor <user@example.net>; Mon, 1 Jun 2026 10:0{hop}:00 +0000"
        );
    }
    let _ = writeln!(
        mail,
        "From: \"A. Sender\" <sender{number}@example.org>\nTo: user@example.net\nSubject: message {number}\n\
         Message-ID: <{number}@example.org>\nDate: Mon, 1 Jun 2026 10:00:00 +0000\nMIME-Version: 1.0\n\
         Content-Type: multipart/mixed; boundary=\"=_mixed_{number}\"\n\nThis is a multipart message.\n\
         --=_mixed_{number}\nContent-Type: multipart/alternative; boundary=\"=_alt_{number}\"\n\n--=_alt_{number}\n\
         Content-Type: text/plain; charset=utf-8\n"
    );
    let end = mail.len() + text * 512;
    while mail.len() < end {
        let quotes = ">".repeat(random.below(4) as usize);
        let _ = writeln!(mail, "{quotes} {}", random.words(12));
    }
    // The HTML of about half of the messages is in quoted-printable.
    let (encoding, equals) = match random.below(2) {
        0 => ("quoted-printable", "=3D"),
        _ => ("8bit", "="),
    };
    let _ = writeln!(
        mail,
        "--=_alt_{number}\nContent-Type: text/html; charset=utf-8\nContent-Transfer-Encoding: {encoding}\n\n<html><body>"
    );
    let end = mail.len() + text * 512;
    while mail.len() < end {
        let (page, words) = (random.below(1000), random.words(2));
        let _ = writeln!(
            mail,
            "<p style{equals}\"margin:0\"><a href{equals}\"http://www.example.org/{page}\">{words}</a></p>"
        );
    }
    let _ = writeln!(mail, "</body></html>\n--=_alt_{number}--");
    if attached > 0 {
        let _ = writeln!(
            mail,
            "--=_mixed_{number}\nContent-Type: application/pdf; name=\"figures.pdf\"\nContent-Transfer-Encoding: base64\n\
             Content-Disposition: attachment; filename=\"figures.pdf\"\n"
        );
        for _ in 0..attached * 1024 / 77 {
            let line: Vec<u8> = (0..57).map(|_| random.below(256) as u8).collect();
            let _ = writeln!(mail, "{}", base64_simd::STANDARD.encode_to_string(line));
        }
    }
    let _ = writeln!(mail, "--=_mixed_{number}--");
    mail
}

/// Writes an mbox of about `octets` bytes. Its messages have different sizes, and about one message in seven has an attachment.
fn write_mailbox(out: impl io::Write, octets: usize) -> io::Result<()> {
    let mut out = io::BufWriter::new(out);
    let mut random = Random(42);
    let (mut written, mut number) = (0, 0);
    while written < octets {
        let attached = match random.below(7) {
            0 => 40 + random.below(460),
            _ => 0,
        };
        let text = 2 + random.below(24);
        let message = mail(number, text as usize, attached as usize, &mut random);
        write!(
            out,
            "From user@example.org Thu Jan  1 00:00:00 1998\n{message}\n"
        )?;
        written += message.len();
        number += 1;
    }
    out.flush()
}
