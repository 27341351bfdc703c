//! Mails whose structure could make a program read the same bytes many times. Each is created with a given size, and
//! the work on it must be linear in this size.

use embody::mime::entity::sha256;

/// A kind of hostile mail.
pub struct Shape {
    pub name: &'static str,
    /// Creates a mail of about this many bytes.
    pub make: fn(usize) -> Vec<u8>,
}

const MIXED: &str = "Content-Type: multipart/mixed; boundary=b\n\n";
const QUOTED: &str = "Content-Type: text/html\nContent-Transfer-Encoding: quoted-printable\n\n";
/// A text with an attachment that Mailman removed, and the URL of the attachment.
const NOTES: &str = "Message-ID: <m@example.org>\n\n";
const NOTED: &str = "http://localhost/attachments/20240514/542cdbd7/";
const NEXT_PART: &str = "-------------- next part --------------\n";
const BASE: &str = "Content-Base: http://www.example.org/";

pub const SHAPES: &[Shape] = &[
    shape("qp-soft-breaks", |octets| {
        between(QUOTED, "=\n", octets, "")
    }),
    shape("qp-equals", |octets| between(QUOTED, "=", octets, "\n")),
    shape("outer-times-phantom-fields", |octets| {
        let fields = |name| times(name, octets / 2);
        mixed(&[format!(
            "{}{}\nContent-Type: text/plain\n{}\n",
            reference("data:,x"),
            fields("a:\n"),
            fields("c:\n")
        )])
    }),
    shape("parameters-without-section-0", |octets| {
        let parameters: String = (0..octets / 14)
            .map(|at| format!(";\n a{at:x}*1=x"))
            .collect();
        mixed(&[
            format!("{}\n", reference("cid:q")),
            format!("Content-ID: <q>\nContent-Type: application/octet-stream{parameters}\n\nhello"),
        ])
    }),
    shape("long-root-type", |octets| {
        let part = format!("--b\n{}\n\n", reference("data:,x"));
        let parameters = times("x=y;", octets / 2);
        let front = format!("Content-Type: multipart/mixed; {parameters} boundary=b\n\n");
        between(&front, &part, octets / 2, "--b--\n")
    }),
    shape("nested-data", nested),
    shape("one-content-id", |octets| {
        let levels: String = (0..60)
            .map(|at| format!("Content-Type: multipart/mixed; boundary={at}\n\n--{at}\n"))
            .collect();
        let part = "Content-Type: message/external-body; access-type=content-id\n\
                    Content-ID: <q>\n\n\n\n--59\n";
        between(
            &levels,
            part,
            octets.saturating_sub(levels.len()),
            "\n--59--\n",
        )
    }),
    shape("fields-only", |octets| {
        let end = format!("{}\n\n", reference("data:,x"));
        between("", "a:\n", octets, &end)
    }),
    // A message in an mbox, whose first line is a separator.
    shape("lines-fields", |octets| {
        let end = format!("{}\n\n", reference("data:,x"));
        let front = "From a@b Thu Jan  1 10:00:00 2024\n";
        between(front, "Lines: 3\n", octets, &end)
    }),
    shape("long-base", |octets| {
        let base = format!("{BASE}{}/\n", times("p", octets.min(16_000) / 2));
        let count = octets.saturating_sub(base.len()) / 80;
        let parts = vec![format!("{}\n", reference("x")); count];
        [base.into_bytes(), mixed(&parts)].concat()
    }),
    shape("long-type-of-one-target", |octets| {
        let parameters: String = (0..octets / 28)
            .map(|at| format!(";\n a{at:x}=x"))
            .collect();
        let mut parts = vec![format!("{}\n", reference("cid:q")); octets / 160];
        parts.push(format!(
            "Content-ID: <q>\nContent-Type: application/x{parameters}\n\nhello"
        ));
        mixed(&parts)
    }),
    shape("rivals-behind-many-edits", |octets| {
        let fields = times("a:\n", octets / 2);
        let front = format!(
            "{}{fields}\na: b\nContent-Type: text/plain\n\n",
            reference("data:,x")
        );
        let rival = |url| {
            format!(
                "{}\nContent-ID: <r>\nContent-Type: text/plain\n\n",
                reference(url)
            )
        };
        let pair = format!(
            "Content-Type: multipart/alternative; boundary=i\n\n--i\n{}--i\n{}--i--\n",
            rival("https://h/x"),
            rival("data:,y")
        );
        let pairs = octets / 2 / pair.len();
        mixed(&[vec![front], vec![pair; pairs]].concat())
    }),
    shape("links-in-many-aggregates", |octets| {
        let document = times("<img src=x>", octets);
        let (front, back) = aggregates(60);
        format!("{front}Content-Type: text/html\n\n{document}{back}").into_bytes()
    }),
    shape("aggregates-that-are-meant", |octets| {
        let (front, back) = aggregates(60);
        let links: String = (0..60).map(|at| format!("<a href=/{at}>")).collect();
        let text = times("some text\n", octets.saturating_sub(front.len()));
        format!(
            "Content-Type: multipart/related; boundary=r\n{BASE}\n\n--r\n\
             Content-Type: text/html\n\n{links}\n--r\n{front}\n\n{text}{back}--r--\n"
        )
        .into_bytes()
    }),
    shape("documents-with-a-base", |octets| {
        let part = "Content-Type: text/html\n\n<base href=/x/><a href=y>";
        let base = format!("{BASE}{}/\n", times("p", octets.min(16_000) / 2));
        let parts = vec![part.to_owned(); octets / (part.len() + 5)];
        [base.into_bytes(), mixed(&parts)].concat()
    }),
    shape("messages-in-data", |octets| {
        let mut message = format!("\n{}", times("some-text", octets));
        for _ in 0..40 {
            let url = format!("data:message/rfc822,{}", escaped(&message));
            let header = "Content-Type: message/external-body;access-type=URL;URL=";
            message = format!("{header}{url}\n\nContent-Type: message/rfc822\n\n");
        }
        message.into_bytes()
    }),
    shape("comments", |octets| {
        let comments = times("(", octets);
        mixed(&[
            format!("Content-Type: {comments} message/external-body\n\n\n"),
            reference("data:,x"),
        ])
    }),
    shape("boundaries-that-are-alike", |octets| {
        let name = "b".repeat(60);
        let levels: String = (0..60)
            .map(|at| {
                format!("Content-Type: multipart/mixed; boundary={name}{at}\n\n--{name}{at}\n")
            })
            .collect();
        let line = format!("--{name}x\n");
        let front = format!("{levels}{}\n\n--{name}59\n\n", reference("data:,x"));
        between(&front, &line, octets.saturating_sub(front.len()), "")
    }),
    shape("tags-without-end", |octets| {
        document(&times("<a href=x ", octets))
    }),
    shape("comments-without-end", |octets| {
        document(&times("<!-", octets))
    }),
    shape("styles", |octets| {
        document(&times("<style>a{b:url(x", octets))
    }),
    shape("entities", |octets| {
        document(&format!("<a href='{}'>", times("&amp", octets)))
    }),
    shape("sources", |octets| {
        document(&format!("<img srcset='{}'>", times("x,(", octets)))
    }),
    shape("phantom-names", |octets| {
        let fields = numbered(octets, |at| format!("{at:x}:\n"));
        mixed(&[format!(
            "{}\nContent-Type: text/plain\n{fields}\n",
            reference("data:,x")
        )])
    }),
    // The limit is 10,000 parts, so this mail is smaller than the others.
    shape("fetch-below-a-long-base", |octets| {
        let base = format!("Content-Base: http://localhost/{}/\n", times("p", 8_000));
        let count = (octets / 90).min(9_000);
        let parts: Vec<String> = (0..count)
            .map(|at| format!("{}\n", reference(&format!("{at:x}"))))
            .collect();
        [base.into_bytes(), mixed(&parts)].concat()
    }),
    shape("copies-beside-html", |octets| {
        let picture = format!("{}\n", times("QUJDREVGR0hJSktM", 76)).repeat(octets / 77 / 8);
        let part = "Content-Type: message/external-body; access-type=content-id\n\
                    Content-ID: <q>\n\n\n";
        let mut parts = vec![
            format!(
                "Content-ID: <q>\nContent-Type: image/png\n\
                 Content-Transfer-Encoding: base64\n\n{picture}"
            ),
            format!("Content-Type: text/html\n{BASE}\n\n<a href=x>"),
        ];
        parts.extend(vec![part.to_owned(); 30]);
        mixed(&parts)
    }),
    shape("embed-data-pictures", |octets| {
        let data = times("QUJDREVGR0hJSktM", octets / 1_000);
        document(&numbered(octets, |at| {
            format!("<img src='data:image/gif;base64,R0lGODlh{at:08x}{data}'>\n")
        }))
    }),
    shape("embed-data-small-pictures", |octets| {
        document(&numbered(octets, |at| {
            format!("<img src=data:;base64,R0lGODlh{at:08x}>")
        }))
    }),
    shape("embed-data-that-is-none", |octets| {
        document(&numbered(octets, |at| format!("<img src=data:,{at:x}>")))
    }),
    shape("embed-data-candidates", |octets| {
        document(&format!(
            "<img src=data:, srcset='{}'>",
            times("x,", octets)
        ))
    }),
    // `data:` URLs inside `data:` URLs. Each level contains the whole text of the levels inside it.
    shape("embed-style-nested", |octets| {
        let mut sheet = format!("/*{}*/", times("x", octets));
        for _ in 0..20 {
            sheet = format!(
                "@import url(data:text/css,{});",
                escaped(&sheet).replace(')', "%29")
            );
        }
        document(&format!("<style>{sheet}</style>"))
    }),
    shape("embed-style-imports", |octets| {
        let imports = numbered(octets, |at| format!("@import 'data:text/css,a{at:x}{{}}';"));
        document(&format!("<style>{imports}</style>"))
    }),
    shape("embed-data-image-set", |octets| {
        let options = numbered(octets, |at| {
            format!("'data:;base64,R0lGODlh{at:08x}' 1x,'x' 2x,")
        });
        document(&format!("<style>a{{b:image-set({options}'y' 3x)}}</style>"))
    }),
    shape("embed-data-image-sets", |octets| {
        let sets = numbered(octets, |at| {
            format!("b:image-set('data:;base64,R0lGODlh{at:08x}' 1x,'x' 2x (((;")
        });
        document(&format!("<style>a{{{sets}}}</style>"))
    }),
    shape("embed-remote-pictures", |octets| {
        document(&numbered(octets, |at| {
            format!("<img src=http://localhost/{at:x}>")
        }))
    }),
    // embody must collect what the documents share only once, and not again for each document. Each part contains a
    // kilobyte of text, because the limit is 10,000 parts.
    shape("embed-data-documents", |octets| {
        related(octets, 1, |at| vec![located(at, &shown(at + 1))])
    }),
    shape("embed-data-documents-and-located-pictures", |octets| {
        related(octets, 2, |at| {
            let picture = format!("Content-Type: image/gif\n{}\nGIF89a{at}\n", location(at));
            vec![format!("{HTML}{}", shown(at)), picture]
        })
    }),
    shape("embed-data-documents-with-a-picture", |octets| {
        related(octets, 1, |at| vec![located(at, &picture(at))])
    }),
    shape("embed-data-documents-apart", |octets| {
        let document = |at| format!("{HTML}{}{}", picture(at), text());
        let documents: Vec<String> = (0..octets / 1_100).map(document).collect();
        mixed(&documents)
    }),
    shape("embed-style-documents-and-sheets", |octets| {
        related(octets, 2, |at| {
            let sheet = format!("{}\na{{b:url({PLACE}{})}}\n", location(at), at + 1);
            vec![
                format!("{HTML}<link rel=stylesheet href={PLACE}{at}>"),
                format!("Content-Type: text/css\n{sheet}"),
            ]
        })
    }),
    shape("embed-style-documents-that-import", |octets| {
        related(octets, 1, |at| {
            let sheet = format!("data:text/css,a{at}{{b:url({PLACE}{})}}", at + 1);
            vec![located(
                at,
                &format!("<link rel=stylesheet href='{sheet}'>"),
            )]
        })
    }),
    shape("embed-blank-documents", |octets| {
        related(octets, 1, |at| {
            vec![located(
                at,
                &format!("<img width=1 height=1 src={PLACE}t{at}>"),
            )]
        })
    }),
    shape("embed-remote-documents", |octets| {
        related(octets, 1, |at| {
            vec![located(at, &format!("<img src={PLACE}r{at}>"))]
        })
    }),
    shape("documents-that-link-each-other", |octets| {
        related(octets, 1, |at| {
            vec![located(at, &format!("<a href={}><a href=x{at}>", at + 1))]
        })
    }),
    shape("locations-below-a-long-base", |octets| {
        let base = format!("{BASE}{}/\n", times("p", octets.min(16_000) / 2));
        let parts = related(octets, 1, |at| {
            vec![format!("Content-Location: {at}\n{HTML}<img src={at}>")]
        });
        [base.into_bytes(), parts].concat()
    }),
    shape("references-by-message-id", |octets| {
        let fields = times("a:\n", octets / 3);
        let message_id = format!("Message-ID: <{}>\n", times("x", octets / 3));
        let parts = vec![format!("{}\n", reference("mid:a@b/c@d")); octets / 3_300];
        [fields.into_bytes(), message_id.into_bytes(), mixed(&parts)].concat()
    }),
    shape("rivals-behind-many-changes", |octets| {
        let fields = times("Content-Type:\na:b\n", octets / 2);
        let front = format!("{}{fields}\n\n", reference("data:,x"));
        let rival = |url| format!("{}\nContent-ID: <r>\n\n", reference(url));
        let pair = format!(
            "Content-Type: multipart/alternative; boundary=i\n\n--i\n{}--i\n{}--i--\n",
            rival("https://h/x"),
            rival("data:,y")
        );
        let pairs = (octets / 2 / pair.len()).min(3_000);
        mixed(&[vec![front], vec![pair; pairs]].concat())
    }),
    // Boundaries are created from a hash, which the author of a mail can compute too.
    shape("embed-data-boundaries-that-are-taken", |octets| {
        let picture = b"GIF89a0000000000";
        let id = sha256(picture)
            .get(..32)
            .map(|digits| format!("{digits}@embody"));
        let hash = sha256(format!("1{}", id.unwrap_or_default()).as_bytes());
        let taken = numbered(octets, |at| {
            let further = if at == 0 {
                String::new()
            } else {
                format!("_{at}")
            };
            format!(
                "--=_embody_{}{further}\n",
                hash.get(..24).unwrap_or_default()
            )
        });
        document(&format!(
            "<img src='data:image/gif,GIF89a0000000000'>\n{taken}"
        ))
    }),
    shape("embed-data-long-boundary", |octets| {
        let boundary = times("b", octets / 4);
        let pictures = numbered(octets / 4, picture);
        format!(
            "Content-Type: multipart/related; boundary={boundary}\n\n\
             --{boundary}\n{HTML}{pictures}\n--{boundary}--\n"
        )
        .into_bytes()
    }),
    shape("distinct-links", |octets| {
        let text = times("<p>some text</p>", octets / 2);
        document(&format!(
            "{}{text}",
            numbered(octets / 2, |at| format!("<a href={at:x}>"))
        ))
    }),
    shape("one-long-line", |octets| {
        document(&times("<a href=x>", octets))
    }),
    // Notes that seem to belong to this mail, because its author can compute its hash.
    shape("mailman-notes", |octets| {
        let note = format!("An HTML attachment was scrubbed...\nURL: <{NOTED}a.html>\n{NEXT_PART}");
        between(NOTES, &note, octets, "")
    }),
    shape("mailman-separators", |octets| {
        let note = format!("An HTML attachment was scrubbed...\nURL: <{NOTED}a.html>\n");
        between(&format!("{NOTES}{note}"), NEXT_PART, octets, &note)
    }),
    shape("mailman-lines-that-are-none", |octets| {
        let note = format!("x: <{NOTED}a\nx: <{NOTED}a>\n");
        between(NOTES, &note, octets, "")
    }),
    shape("mailman-blank-lines", |octets| {
        let note = format!("An HTML attachment was scrubbed...\nURL: <{NOTED}a.html>\n");
        let blank = times("\n", octets / 100);
        between(NOTES, &format!("{note}{blank}"), octets, "")
    }),
    shape("mailman-one-line", |octets| {
        between(NOTES, &format!("x: <{NOTED}a.html"), octets, "\n")
    }),
    shape("mailman-blocks", |octets| {
        let note =
            format!("\n\nMessage: 1\nMessage-ID: <m@example.org>\n\nx...\nURL: <{NOTED}a.html>\n");
        between(NOTES, &note, octets, "")
    }),
    shape("hosted-one-file", |octets| {
        document(&times(&item("1"), octets))
    }),
    shape("hosted-files", |octets| {
        document(&numbered(octets, |at| item(&format!("{at:x}"))))
    }),
    shape("hosted-unclosed", |octets| {
        let mark = "<li class=cloudAttachmentItem><a href=https://localhost/s/1 x='&amp;";
        document(&times(mark, octets))
    }),
    shape("hosted-classes", |octets| {
        let classes = times("cloudAttachmentItem xgmail_chip ", octets / 2);
        let one = "<li class='cloudAttachmentItem'><span class=cloudfile-size>&#49;";
        document(&format!("<li class='{classes}'>{}", times(one, octets / 2)))
    }),
    shape("hosted-entities", |octets| {
        let url = times("&#x41;&amp;", octets / 2);
        let text = times("&nbsp;<b>", octets / 2);
        document(&format!(
            "<li class=cloudAttachmentItem><a href='https://localhost/s/{url}'>{text}"
        ))
    }),
    shape("hosted-quotes", |octets| {
        document(&times(&format!("<blockquote>{}</", item("1")), octets))
    }),
];

/// Returns the HTML of a link to a file in cloud storage.
fn item(token: &str) -> String {
    format!(
        "<li class=cloudAttachmentItem data-content-location=https://localhost/s/{token}><a class=cloudfile-name>x</a></li>"
    )
}

const fn shape(name: &'static str, make: fn(usize) -> Vec<u8>) -> Shape {
    Shape { name, make }
}

fn reference(url: &str) -> String {
    format!("Content-Type: message/external-body; access-type=URL; URL=\"{url}\"\n")
}

/// Repeats a text up to this many bytes.
fn times(unit: &str, octets: usize) -> String {
    unit.repeat((octets / unit.len()).max(1))
}

/// Repeats a text with an increasing number, up to this many bytes.
fn numbered(octets: usize, text: impl Fn(usize) -> String) -> String {
    let mut all = String::with_capacity(octets);
    let mut at = 0;
    while at == 0 || all.len() < octets {
        all.push_str(&text(at));
        at += 1;
    }
    all
}

fn between(front: &str, unit: &str, octets: usize, back: &str) -> Vec<u8> {
    [front, &times(unit, octets), back].concat().into_bytes()
}

fn mixed(parts: &[String]) -> Vec<u8> {
    let parts: String = parts.iter().map(|part| format!("--b\n{part}\n")).collect();
    format!("{MIXED}{parts}--b--\n").into_bytes()
}

const HTML: &str = "Content-Type: text/html\n\n";

/// Start of the Content-Location of the parts.
const PLACE: &str = "http://localhost/";

/// Returns a multipart/related with parts of a kilobyte. `parts` creates `at_once` parts at a time.
fn related(octets: usize, at_once: usize, parts: impl Fn(usize) -> Vec<String>) -> Vec<u8> {
    let count = octets / 1_100 / at_once;
    let parts: String = (0..count)
        .flat_map(parts)
        .map(|part| format!("--b\n{part}{}\n", text()))
        .collect();
    format!("Content-Type: multipart/related; boundary=b\n\n{parts}--b--\n").into_bytes()
}

fn text() -> String {
    times("<p>some text\n", 1_000)
}

fn location(at: usize) -> String {
    format!("Content-Location: {PLACE}{at}\n")
}

/// Returns a document with a Content-Location.
fn located(at: usize, html: &str) -> String {
    format!("{}{HTML}{html}", location(at))
}

/// Returns the HTML of a picture in another part.
fn shown(at: usize) -> String {
    format!("<img src={PLACE}{at}>")
}

/// Returns the HTML of a picture in a `data:` URL.
fn picture(at: usize) -> String {
    format!("<img src=data:;base64,R0lGODlh{at:08x}>")
}

/// Returns a document with a base URL.
fn document(html: &str) -> Vec<u8> {
    format!("{BASE}\nContent-Type: text/html\n\n{html}").into_bytes()
}

/// Returns nested multipart/related parts, each with its own Content-Location.
fn aggregates(levels: usize) -> (String, String) {
    let front = (0..levels).map(|at| {
        format!(
            "Content-Type: multipart/related; boundary=a{at}e\n\
             Content-Location: http://www.example.org/{at}\n\n--a{at}e\n"
        )
    });
    let back = (0..levels).rev().map(|at| {
        format!("\n--a{at}e\nContent-Location: http://www.example.org/x{at}\n\nx\n--a{at}e--\n")
    });
    (front.collect(), back.collect())
}

fn escaped(text: &str) -> String {
    let mut written = String::with_capacity(text.len() + text.len() / 8);
    for symbol in text.chars() {
        match symbol {
            '%' | ';' | '\n' | '"' | ' ' | '#' | '(' => {
                written.push_str(&format!("%{:02X}", u32::from(symbol)));
            }
            _ => written.push(symbol),
        }
    }
    written
}

/// Returns a long text after a reference whose `data:` URL contains another such reference, and so on.
fn nested(octets: usize) -> Vec<u8> {
    const KIND: &str =
        "Content-Type:message/external-body;access-type=URL;URL=data:message/external-body,";
    let mut header =
        "Content-Type:message/external-body;access-type=URL;URL=data:text/plain,x".to_owned();
    let mut body = "Content-Type:text/plain\n".to_owned();
    while header.len() + body.len() < octets / 2 {
        (header, body) = (format!("{KIND}{}", escaped(&body)), format!("{header}\n"));
    }
    mixed(&[
        format!("{header}\n\n{body}"),
        format!("\n{}", times("--x\n", octets / 2)),
    ])
}
