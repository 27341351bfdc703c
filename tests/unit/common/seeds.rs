//! Creates seeds for the fuzz targets from the samples and from published tables.

use std::fs;

use embody::mime::{self, PartKind, ScanLimits};

use super::hostile;
use super::mail::{changed_samples, samples_folder, samples_in, untouched_samples};
use super::mail_system::{ACTIONS, OPTIONS, crlf, divided, offer, packet};

/// Returns inputs for a target (`tests/common/checks`), including valid ones.
pub fn of(target: &str) -> Vec<Vec<u8>> {
    match target {
        "scan" => prefixed(&[&[0x00], &[0xff]], &messages()),
        "filter" => prefixed(
            &[&[0x00], &[0x42], &[0x55]],
            &[messages(), embraced(), illustrated()].concat(),
        ),
        "cost" => {
            let small: Vec<Vec<u8>> = hostile::SHAPES
                .iter()
                .map(|shape| (shape.make)(2_000))
                .collect();
            prefixed(
                &[&[0x00], &[0x42], &[0xd5]],
                &[messages(), embraced(), illustrated(), small].concat(),
            )
        }
        "mbox" => prefixed(&[&[5, 0], &[60, 1], &[200, 3]], &mailboxes()),
        "imap" => sessions(),
        "milter" => conversations(),
        "outlook" => outlook_files(),
        "rtf" => rtfs(),
        "tnef" => tnefs(),
        "warc" => warcs(),
        "data_url" => data_urls(),
        "resolve" => references(),
        "html" => HTML
            .iter()
            .map(|text| text.as_bytes().to_vec())
            .chain(documents())
            .collect(),
        "css" => CSS.iter().map(|text| text.as_bytes().to_vec()).collect(),
        other => panic!("no seeds for {other}"),
    }
}

/// Returns a complete stream with and without its signature, its first parts, recurring meetings, and a delivery
/// report.
fn tnefs() -> Vec<Vec<u8>> {
    use super::tnef::{MARCH, PACIFIC, SERIES, delivery_report, hex, series, usual};

    let whole = usual();
    let fronts = (1..12).map(|part| whole[4..whole.len() * part / 12].to_vec());
    let zone = hex(PACIFIC);
    let added = [
        series(MARCH, &hex(SERIES), Some((0x8260, &zone))),
        delivery_report(),
    ];
    let others = added.iter().chain([&whole]).map(|it| it[4..].to_vec());
    let bodies: Vec<Vec<u8>> = fronts.chain(others).collect();
    let mut seeds = prefixed(&[&[0x04], &[0x00]], &bodies);
    seeds.push([&[0x84], whole.as_slice()].concat());
    seeds
}

/// Returns changes of valid files: no change, changes at important positions, and truncated files.
fn outlook_files() -> Vec<Vec<u8>> {
    let changes: [&[u8]; 3] = [
        b"",
        // The headers of the two formats.
        b"\x1e\0\0\x09\x2c\0\0\x01\x0a\0\0\x0e\xe0\0\0\x40",
        b"\x10\x46\0\xff\x11\x47\0\0\x30\x48\0\x02\x7c\x50\0\x04",
    ];
    let choices = (0..4).flat_map(|file| [file, file | 0x80 | 5 << 3]);
    choices
        .flat_map(|choice| changes.map(|changes| [&[choice], changes].concat()))
        .collect()
}

fn rtfs() -> Vec<Vec<u8>> {
    let html =
        super::tnef::from_html("<html><body>\\'e4\\u-10179 ?\\u-8694 ? <b>x</b></body></html>");
    let texts = [
        html.as_str(),
        "{\\fonttbl{\\f1\\fcharset128 A;}}\\f1\\'83\\'41}",
        "{\\*\\htmltag84 <p>}\\htmlrtf {\\htmlrtf0 a\\~b\\rquote}",
        "\\uc2\\u20013??\\bin3 abc{\\pntext x}{\\field{\\*\\fldinst y}{\\fldrslt z}}}",
    ];
    let plain: Vec<Vec<u8>> = texts.iter().map(|text| text.as_bytes().to_vec()).collect();
    let fronts = plain.iter().map(|text| text[..text.len() / 2].to_vec());
    let packed = plain.iter().map(|text| super::tnef::compressed(text));
    let torn = packed.clone().map(|mut text| {
        text.truncate(text.len() / 2);
        text
    });
    plain
        .iter()
        .cloned()
        .chain(fronts)
        .chain(packed)
        .chain(torn)
        .collect()
}

/// Returns records of all kinds, compressed and uncompressed, and incomplete ones.
fn warcs() -> Vec<Vec<u8>> {
    use std::io::Write as _;
    let record = |kind: &str, more: &str, block: &[u8]| {
        let header = format!(
            "WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Record-ID: <urn:uuid:{kind}>\r\nWARC-Date: 2003-05-02T10:00:00.5Z\r\n\
             WARC-Target-URI: <http://a.example/b>\r\n{more}Content-Length: {}\r\n\r\n",
            block.len()
        );
        [header.as_bytes(), block, b"\r\n\r\n"].concat()
    };
    let http = |fields: &str, body: &[u8]| {
        [
            format!("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n{fields}\r\n").as_bytes(),
            body,
        ]
        .concat()
    };
    let gzip = |octets: &[u8]| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(octets).expect("a vector takes all");
        encoder.finish().expect("a vector takes all")
    };
    let refers = "WARC-Refers-To-Target-URI: http://a.example/b\r\nWARC-Refers-To-Date: 2003-05-02T10:00:00Z\r\n";
    let digest = "WARC-Payload-Digest: sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ\r\nWARC-Block-Digest: md5:00\r\n";
    let records = [
        record("warcinfo", "", b"software: embody 1\r\n"),
        record("response", "", &http("Content-Length: 2\r\n", b"ab")),
        record("response", digest, &http("", b"")),
        record(
            "response",
            "",
            &http("Transfer-Encoding: chunked\r\n", b"2;x\r\nab\r\n0\r\n\r\n"),
        ),
        record(
            "response",
            "",
            &http("Content-Encoding: gzip\r\n", &gzip(b"ab")),
        ),
        record(
            "response",
            "",
            &http("Content-Encoding: deflate\r\n", b"x\x9cKL\x02\0\x01&\0\xc4"),
        ),
        record(
            "response",
            "",
            b"HTTP/1.1 302 Found\r\nLocation: /c\r\n\r\n",
        ),
        record("response", "WARC-Truncated: length\r\n", &http("", b"ab")),
        record("resource", "Content-Type: text/plain\r\n", b"ab"),
        record("revisit", refers, &http("", b"")),
        record("revisit", digest, b""),
        record(
            "request",
            "WARC-Concurrent-To: <urn:uuid:response>\r\n",
            b"POST /b HTTP/1.1\r\n\r\n",
        ),
    ];
    let packed: Vec<Vec<u8>> = records.iter().map(|record| gzip(record)).collect();
    let (all, all_packed) = (records.concat(), packed.concat());
    let torn = [1, 3, 7].map(|parts| all[..all.len() - all.len() / parts / 3].to_vec());
    let torn_packed = [1, 3, 7].map(|parts| all_packed[..all_packed.len() - parts * 9].to_vec());
    let mut seeds = [&records[..], &packed, &torn, &torn_packed].concat();
    seeds.extend([gzip(&all), all, all_packed]);
    seeds
}

/// Returns responses of a server to each command, valid and invalid. Each line replaces one response of a valid
/// session.
fn sessions() -> Vec<Vec<u8>> {
    const PLAIN: [&str; 12] = [
        "* OK hi\r\n",
        "* CAPABILITY IMAP4rev1 CONDSTORE UIDPLUS MOVE QUOTA NAMESPACE ACL\r\n",
        "* NAMESPACE ((\"\" \"/\")) NIL ((\"#shared/\" \"/\"))\r\n",
        "* LIST () \"/\" INBOX\r\n* LIST (\\Noselect) NIL {3}\r\na/b\r\n",
        "* MYRIGHTS INBOX lrswite\r\n",
        "* 2 EXISTS\r\n* OK [UIDVALIDITY 7]\r\n* OK [HIGHESTMODSEQ 5]\r\n* OK [PERMANENTFLAGS (a]b \\*)] x\r\n",
        "* SEARCH 1 2\r\n",
        "* 1 FETCH (UID 1 FLAGS (\\Seen) INTERNALDATE \" 1-Jan-2020 10:00:00 +0000\" RFC822.SIZE 5 MODSEQ (3) BODYSTRUCTURE (\"text\" \"plain\" NIL NIL NIL \"7bit\" 5 1))\r\n\
         * 2 FETCH (UID 2 FLAGS () INTERNALDATE \" 1-Jan-2020 10:00:00 +0000\" RFC822.SIZE 5 MODSEQ (4) BODYSTRUCTURE ((\"a\" \"b\" NIL NIL NIL NIL 5) \"mixed\"))\r\n",
        "* 1 FETCH (UID 1 BODY[]<0> {5}\r\nhello)\r\n* 2 FETCH (UID 2 BODY[]<0> \"hello\")\r\n",
        "* 1 FETCH (UID 1 RFC822.SIZE 5)\r\n* 2 FETCH (UID 2 RFC822.SIZE 5)\r\n",
        "* 1 FETCH (X-GM-MSGID 1278455344230334865 X-GM-LABELS (\"\\\\Inbox\" x) UID 1)\r\n",
        "TAG OK [MODIFIED 1] no\r\n",
    ];
    const WRONG: [&str; 12] = [
        "* BYE gone\r\n",
        "TAG NO [EXPUNGEISSUED] some\r\n",
        "* 1 FETCH (UID 1 BODY[]<0> {9223372036854775808}\r\n",
        "* 1 FETCH (UID 1 BODY[]<0> NIL)\r\n",
        "* 1 EXPUNGE\r\n* 1 EXISTS\r\n* VANISHED 1:4294967295\r\n",
        "((((((((((\r\n",
        "+ more\r\n",
        "* 1 FETCH (UID 1 FLAGS (\"a b\") RFC822.SIZE 99999999999999999999)\r\n",
        "* SEARCH 4294967295 0 1\r\n",
        "* 1 FETCH (UID 1 BODY[]<0> {2}\r\nhe)\r\n",
        "\0\0\r\n",
        "e1 OK\r\ne2 OK\r\ne3 OK\r\n",
    ];
    let mut all = Vec::new();
    for (number, wrong) in WRONG.iter().enumerate() {
        for at in [number % PLAIN.len(), 7, 8] {
            let mut answers = PLAIN;
            answers[at] = wrong;
            all.push(answers.join("\0\n").into_bytes());
        }
    }
    all.push(PLAIN.join("\0\n").into_bytes());
    all
}

/// Returns the messages as packets: as a byte stream, as the checks write them, and with errors between them.
fn conversations() -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for message in messages().iter().chain(&wild()) {
        let Some((fields, body)) = divided(message).filter(|_| message.len() < 4000) else {
            continue;
        };
        let mut packets = vec![(b'D', b"Li\x004XYZ\0".to_vec())];
        for (name, value) in fields {
            packets.push((b'L', [name, b"\0".to_vec(), value, b"\0".to_vec()].concat()));
        }
        packets.push((b'N', Vec::new()));
        packets.push((b'B', crlf(&body)));
        let abort = [
            packets.clone(),
            vec![(b'A', Vec::new()), (b'K', Vec::new())],
        ]
        .concat();
        let whole = [packets, vec![(b'E', Vec::new())]].concat();
        let streamed = |packets: &[(u8, Vec<u8>)]| -> Vec<u8> {
            let packets = packets.iter().flat_map(|(kind, data)| packet(*kind, data));
            offer(ACTIONS, OPTIONS).into_iter().chain(packets).collect()
        };
        let checked = |packets: &[(u8, Vec<u8>)]| -> Vec<u8> {
            let of = |(kind, data): &(u8, Vec<u8>)| {
                let length = u16::try_from(data.len()).unwrap_or(u16::MAX).to_be_bytes();
                [&[*kind], length.as_slice(), data].concat()
            };
            packets.iter().flat_map(of).collect()
        };
        all.push([vec![0xf8], streamed(&whole)].concat());
        all.push(
            [
                vec![0x1a],
                streamed(&[whole.clone(), whole.clone()].concat()),
            ]
            .concat(),
        );
        all.push([vec![1], checked(&whole)].concat());
        all.push([vec![3], checked(&[abort, whole.clone()].concat())].concat());
        all.push([vec![5], checked(&whole)].concat());
    }
    all
}

fn prefixed(prefixes: &[&[u8]], inputs: &[Vec<u8>]) -> Vec<Vec<u8>> {
    inputs
        .iter()
        .flat_map(|input| {
            prefixes
                .iter()
                .map(move |prefix| [prefix, input.as_slice()].concat())
        })
        .collect()
}

/// Returns all messages of the samples, before and after processing.
fn messages() -> Vec<Vec<u8>> {
    changed_samples()
        .into_iter()
        .flat_map(|sample| [sample.before, sample.after])
        .chain(untouched_samples().into_iter().map(|sample| sample.before))
        .chain(wild())
        .collect()
}

/// Returns messages with undocumented formats. Their references lead to the URLs that the fuzz targets can answer.
fn wild() -> Vec<Vec<u8>> {
    const OUR_WORLD: &str = "https://e.example/text/plain/";
    let folder = samples_folder().join("wild");
    let untouched = samples_in(&folder.join("untouched"));
    let files = samples_in(&folder).into_iter().chain(untouched);
    let samples: Vec<_> = files
        .map(|sample| String::from_utf8_lossy(&sample.before).into_owned())
        .map(|text| {
            let places = ["file:///C:/Users/me/Mail/", "https://cloud.example.org/"];
            places
                .iter()
                .fold(text, |text, place| text.replace(place, OUR_WORLD))
                .into_bytes()
        })
        .collect();
    assert!(samples.len() > 15, "only {} samples", samples.len());
    samples
}

/// Returns messages whose documents display pictures in the mail and from URLs that the fuzz targets can answer, with
/// digests of parts that will change.
fn illustrated() -> Vec<Vec<u8>> {
    let gif =
        "GIF89a%09%00%09%00%80%00%00%00%00%00%ff%ff%ff,%00%00%00%00%01%00%01%00%00%02%02D%01%00;";
    let html = format!(
        "Content-Type: text/html\nContent-MD5: x\nContent-Location: https://e.example/image/gif/x\n\n\
         <img src=\"data:image/gif,{gif}\"><img src=\"https://e.example/image/gif/{gif}\">\
         <img src=\"https://e.example/image/gif/{gif}\" width=1 height=1><a href=\"y\">y</a>\
         <link rel=stylesheet href=\"https://e.example/text/css/b{{background:url({gif})}}\">\n"
    );
    let multi = |kind: &str, boundary: &str, inside: &str| {
        format!(
            "Content-Type: multipart/{kind}; boundary={boundary}\nContent-MD5: x\n\n--{boundary}\n{inside}\n\
             --{boundary}\n{inside}\n--{boundary}--\n"
        )
    };
    let forwarded = format!("Content-Type: message/rfc822\nContent-MD5: x\n\n{html}");
    let related = multi("related", "r", &html);
    [
        multi("alternative", "a", &related),
        multi("mixed", "m", &forwarded),
        multi("related", "s", &multi("alternative", "a", &html)),
        related.replace("--r--\n", ""),
        related,
        html,
    ]
    .iter()
    .map(|mail| format!("MIME-Version: 1.0\n{mail}").into_bytes())
    .collect()
}

/// Returns messages with links, and with references to URLs that the fuzz targets can answer.
fn embraced() -> Vec<Vec<u8>> {
    [
        "https://e.example/text/plain/A%20brief%20note",
        "https://e.example/message/rfc822/Content-Type:%20message%2Fexternal-body;%20access-type=URL;%0A%20URL=%22data:,x%22%0A%0A",
        "https://e.example/multipart/mixed;boundary=i/--i%0A%0Ax%0A--i--%0A",
        "ftp://e.example/text/plain/note",
        "cid:a@x",
    ]
    .iter()
    .map(|url| {
        format!(
            "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\
             Content-Type: message/external-body; access-type=URL;\n URL=\"{url}\"\n\n\
             --b\nContent-ID: <a@x>\n\nhello\n--b\n\
             Content-Type: text/html\nContent-Location: http://e.example/a/\n\n\
             <a href=b>c</a><img srcset='d, e 2x'>\n--b--\n"
        )
        .into_bytes()
    })
    .collect()
}

fn mailboxes() -> Vec<Vec<u8>> {
    let without_from = |mut bytes: Vec<u8>| bytes.split_off(b"From ".len());
    let sample = fs::read(samples_folder().join("mailbox.mbox")).unwrap();
    let mut mailboxes = vec![without_from(sample)];
    for text in MAILBOXES {
        mailboxes.push(text.as_bytes().to_vec());
        mailboxes.push(text.replace('\n', "\r\n").into_bytes());
    }
    mailboxes
}

fn data_urls() -> Vec<Vec<u8>> {
    let table: serde_json::Value =
        serde_json::from_str(include_str!("../../whatwg/data-urls.json")).unwrap();
    let rows = table.as_array().unwrap();
    rows.iter()
        .map(|row| row[0].as_str().unwrap().as_bytes().to_vec())
        .collect()
}

fn references() -> Vec<Vec<u8>> {
    BASES
        .iter()
        .flat_map(|base| {
            REFERENCES
                .iter()
                .map(move |reference| format!("{base}\n{reference}").into_bytes())
        })
        .collect()
}

/// Returns the HTML parts of the samples.
fn documents() -> Vec<Vec<u8>> {
    let mut documents = Vec::new();
    for message in messages() {
        let tree = mime::scan(&message, &ScanLimits::default());
        for id in tree.ids() {
            let part = tree.part(id);
            if part.content == PartKind::Leaf && part.essence == "text/html" {
                documents.push(part.body.of(&message).to_vec());
            }
        }
    }
    assert!(!documents.is_empty());
    documents
}

const MAILBOXES: [&str; 7] = [
    "a@b Thu Jan  1 00:00:00 1970\nSubject: one\n\nbody\n\nFrom c@d Thu Jan  1 00:00:00 1970\nA: b\n\n>From x\n>>From y\n",
    "a@b Thu Jan  1 00:00:00 1970\nContent-Length: 43\n\na\n\nFrom c@d Thu Jan  1 00:00:00 1970\nbody\n\nFrom e@f Thu Jan  1 00:00:00 1970\nG: h\n\n",
    "a 10:00\nContent-Length: 30\nLines: 1\n\nbody\n\nFrom b 11:00\nC: d\n\ne\n",
    "x\nSubject: a\n\nb\n\nFrom y\nSubject: c\n\n",
    "a 10:00\n\nFrom b 10:00\n\nFrom c 10:00\n\n",
    "a 10:00\nA: b\n\nFrom here on,\nwe walk\n\n\n\nFrom d 12:00\n",
    "",
];

const BASES: [&str; 8] = [
    "http://a/b/c/d;p?q",
    "https://u:p@h:8080/a/b?q#f",
    "ftp://h/a/b;type=a",
    "file:///a/b/c.html",
    "file:///C:/a/b",
    "thismessage:/",
    "HTTP:\\\\H\\a\\b",
    "mailto:x",
];

const REFERENCES: [&str; 24] = [
    "g:h",
    "g",
    "./g",
    "g/",
    "/g",
    "//g",
    "?y",
    "g?y",
    "#s",
    "g?y#s",
    ";x",
    "g;x?y#s",
    "",
    ".",
    "./",
    "..",
    "../..",
    "../../../g",
    "/./g",
    "g;x=1/../y",
    "http:g",
    "\\g",
    "///x",
    " \tg%2e\n",
];

const HTML: [&str; 16] = [
    "<a href='x'>",
    "<a href=\"x&amp;y\">",
    "<a href=x&y>",
    "<img srcset='x 1x, y'>",
    "<a ping='x y'>",
    "<applet archive='x, y'>",
    "<meta http-equiv=refresh content='1; url=\"x\"'>",
    "<p style=\"a:url(&quot;x&quot;)\">",
    "<style>a{b:url(x)} @import 'x';</style>",
    "<!--[if x]><style>@import \"x\";</style><a href=y><![endif]-->",
    "<script><!-- <script> </script> --></script><a href=x>",
    "<base href='http://h/'><object codebase=c data=d>",
    "<textarea></textarea><title>&</title><a href=x>",
    "<![CDATA[ ><a href=x>]]><?x?><!doctype html></ >",
    "<table background=a><q cite=b><video poster=c>",
    "<plaintext><a href=x>",
];

const CSS: [&str; 18] = [
    "a{b:url(x)}",
    "a{b:URL( 'x' )}",
    "a{b:u\\72l(\tx\n)}",
    "a{b:url(x",
    "a{b:url(\"x",
    "a{b:url(\"x\" foo)}",
    "a{b:src('x') }",
    "@import 'x' print;",
    "@IMPORT/**/url(x) 'y';",
    "<!-- @import 'x'; -->",
    "a{b:image-set('x' 1x, url(y) type('image/png') 2x)} 'z'",
    "@namespace url(n);a{b:-webkit-image-set(\"x\" 1x)}",
    "a{b:url(\\(\\29  )}",
    "a{b:url('a\\\nb')}",
    "/* url(x) */ 'url(y)' url(z z)",
    "1e3url(x) #url(y) -->url(z)",
    "a{b:url(x'y) c:url(d)}",
    "{[(url(x)]}",
];
