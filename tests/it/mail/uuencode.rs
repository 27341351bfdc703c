//! `--follow uuencode`: files in the text of a mail.

use std::io::Write as _;
use std::process::{Command, Stdio};

use crate::common::filter::filter;
use crate::common::programs::skipped;
use crate::common::tnef::Tnef;

const BLOCK: &str = "begin 644 a.txt\n%:&5L;&\\\n`\nend\n";
const FOLLOW: &str = "--follow uuencode";

#[test]
fn uuencoded_file_in_a_mail_becomes_an_attachment_between_the_texts() {
    let mail = format!(
        "Subject: x\nContent-Type: text/plain; charset=utf-8\n\nBefore.\n\n{BLOCK}\nAfter.\n"
    );
    filter("", mail.as_bytes()).gives(mail.as_bytes());
    let ran = filter(FOLLOW, mail.as_bytes());
    assert_eq!(ran.column("kind"), ["uuencode"], "{}", ran.stderr);
    let text = String::from_utf8(ran.stdout.clone()).unwrap();
    let boundary = text
        .split("boundary=\"")
        .nth(1)
        .unwrap()
        .split('"')
        .next()
        .unwrap();
    assert_eq!(
        text,
        format!(
            "Subject: x\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"{boundary}\"\n\n--{boundary}\n\
             Content-Type: text/plain; charset=utf-8\n\nBefore.\n\n--{boundary}\nContent-Type: text/plain\n\
             Content-Transfer-Encoding: base64\nContent-Disposition: attachment;\n filename=\"a.txt\"\n\naGVsbG8=\n\
             --{boundary}\nContent-Type: text/plain; charset=utf-8\n\n\nAfter.\n--{boundary}--\n"
        )
    );
    let again = filter(FOLLOW, &ran.stdout);
    assert!(again.stdout == ran.stdout);
}

#[test]
fn uuencoded_file_in_a_multipart_becomes_a_part_of_it() {
    let mail = format!(
        "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\n{BLOCK}--b\nContent-Type: text/plain\n\nlast\n--b--\n"
    );
    let ran = filter(FOLLOW, mail.as_bytes());
    let text = String::from_utf8(ran.stdout).unwrap();
    assert!(
        text.contains(
            "boundary=b\n\n--b\nContent-Type: text/plain\nContent-Transfer-Encoding: base64\n"
        ),
        "{text}"
    );
    assert!(
        text.ends_with("\n\naGVsbG8=\n--b\nContent-Type: text/plain\n\nlast\n--b--\n"),
        "{text}"
    );
}

#[test]
fn uuencoded_file_that_is_not_complete_or_is_quoted_stays_text() {
    for text in [
        "begin 644 a.txt\n%:&5L;&\\\n`\n",
        "begin 644 a.txt\n%:&5L;&\\\nend\n",
        "> begin 644 a.txt\n> %:&5L;&\\\n> `\n> end\n",
        "begin 644 a.txt\n%:&5\n`\nend\n",
        "begin 644 a.txt\n%:&5L;&\\xxxx\n`\nend\n",
        "begin the day\nend\n",
        "begin 644 a.txt\n`\nend\n",
    ] {
        let mail = format!("Subject: x\n\n{text}");
        let ran = filter(FOLLOW, mail.as_bytes());
        let grave = text.contains("%:&5\n");
        if grave {
            // Its only line contains no grave accent, so spaces may have been removed at its end.
            assert_eq!(ran.column("outcome"), ["expanded"]);
        } else {
            ran.leaves(mail.as_bytes(), &[]);
        }
    }
}

#[test]
fn uuencoded_files_of_python_come_back() {
    let script = "import binascii, sys\n\
        data = bytes(range(256)) * 9\n\
        sys.stdout.write('begin 644 all.bin\\n')\n\
        [sys.stdout.write(binascii.b2a_uu(data[at:at+45], backtick=sys.argv[1] == '1').decode()) for at in range(0, len(data), 45)]\n\
        sys.stdout.write(sys.argv[2] + '\\nend\\n')";
    for (grave, last) in [("1", "`"), ("0", " "), ("0", "")] {
        let made = Command::new("python3")
            .args(["-c", script, grave, last])
            .output();
        let Ok(made) = made else {
            skipped("uuencoded_files_of_python_come_back", "python3");
            return;
        };
        let block = String::from_utf8(made.stdout).unwrap();
        // Mail clients remove spaces at the ends of lines.
        let stripped: String = block
            .lines()
            .map(|line| format!("{}\n", line.trim_end()))
            .collect();
        for block in [&block, &stripped] {
            let mail = format!("Subject: x\n\nHello.\n{block}");
            let ran = filter(FOLLOW, mail.as_bytes());
            assert_eq!(ran.column("bytes"), ["2304"], "{}", ran.stderr);
            let read = "import email, sys\n\
                mail = email.message_from_bytes(sys.stdin.buffer.read())\n\
                parts = [part.get_payload(decode=True) for part in mail.walk() if part.get_filename() == 'all.bin']\n\
                sys.exit(0 if parts == [bytes(range(256)) * 9] else 1)";
            let mut python = Command::new("python3")
                .args(["-c", read])
                .stdin(Stdio::piped())
                .spawn()
                .unwrap();
            python.stdin.take().unwrap().write_all(&ran.stdout).unwrap();
            assert!(python.wait().unwrap().success(), "{grave} {last:?}");
        }
    }
}

/// Encodes bytes as a uuencoded file with this line ending. Zeros are grave accents.
fn uuencoded(name: &[u8], octets: &[u8], newline: &str) -> Vec<u8> {
    let symbol = |value: u8| if value == 0 { b'`' } else { value + 32 };
    let mut file = [b"begin 644 ", name, newline.as_bytes()].concat();
    for line in octets.chunks(45) {
        file.push(symbol(u8::try_from(line.len()).unwrap()));
        for group in line.chunks(3) {
            let [a, b, c] = [0, 1, 2].map(|at| group.get(at).copied().unwrap_or(0));
            file.extend(
                [
                    a >> 2,
                    (a & 3) << 4 | b >> 4,
                    (b & 15) << 2 | c >> 6,
                    c & 63,
                ]
                .map(symbol),
            );
        }
        file.extend(newline.bytes());
    }
    file.extend(format!("`{newline}end{newline}").bytes());
    file
}

/// Returns a mail with a text, and a part with these fields and this body.
fn with_part(fields: &str, body: &[u8]) -> Vec<u8> {
    let front = format!(
        "Subject: x\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\ntext\n--b\n{fields}\n"
    );
    [front.as_bytes(), body, b"--b--\n"].concat()
}

const PDF: &[u8] = b"%PDF-1.4\n\0\x01\xff and more than one line of forty-five bytes";

fn base64(octets: &[u8]) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(octets)
}

#[test]
fn uuencoded_part_gets_base64_with_the_same_content() {
    let named = "Content-Type: application/pdf; name=\"plan.pdf\"\nContent-Disposition: attachment; filename=\"plan.pdf\"\n";
    for word in [
        "x-uuencode",
        "uuencode",
        "X-UUE",
        "uue",
        "x-uuencode (a comment)",
        "\"x-uuencode\"",
        "X-UUEncode; x=y",
    ] {
        let fields = format!("{named}Content-Transfer-Encoding: {word}\n");
        let mail = with_part(&fields, &uuencoded(b"other.pdf", PDF, "\n"));
        filter("", &mail).gives(&mail);
        let ran = filter(FOLLOW, &mail);
        assert_eq!(
            ran.column("outcome"),
            ["expanded"],
            "{word}: {}",
            ran.stderr
        );
        let expected = with_part(
            &format!("{named}Content-Transfer-Encoding: base64\n"),
            format!("{}\n", base64(PDF)).as_bytes(),
        );
        let text = String::from_utf8(ran.stdout.clone()).unwrap();
        let unfolded = text.replace(&base64(PDF)[..76], "").replace('\n', "");
        let wanted = String::from_utf8(expected).unwrap();
        assert_eq!(
            unfolded,
            wanted.replace(&base64(PDF)[..76], "").replace('\n', "")
        );
        filter(FOLLOW, &ran.stdout).gives(&ran.stdout);
        let crlf = |mail: &[u8]| {
            String::from_utf8(mail.to_vec())
                .unwrap()
                .replace('\n', "\r\n")
        };
        assert_eq!(
            filter(FOLLOW, crlf(&mail).as_bytes()).stdout,
            crlf(text.as_bytes()).as_bytes()
        );
    }
    // The name in the body is kept if the header has none.
    let fields = "Content-Type: application/pdf\nContent-Transfer-Encoding: x-uuencode\n";
    let ran = filter(
        FOLLOW,
        &with_part(fields, &uuencoded(b"plan.pdf", PDF, "\n")),
    );
    let text = String::from_utf8(ran.stdout).unwrap();
    assert!(
        text.contains("Content-Disposition: attachment;\n filename=\"plan.pdf\""),
        "{text}"
    );
    // A message that consists of one part.
    let whole = [
        b"Subject: x\nContent-Type: text/plain\nContent-Transfer-Encoding: uuencode\n\n",
        &uuencoded(b"a.txt", b"hello\n", "\n")[..],
    ]
    .concat();
    let text = String::from_utf8(filter(FOLLOW, &whole).stdout).unwrap();
    assert!(
        text.contains("base64") && text.ends_with("\n\naGVsbG8K\n"),
        "{text}"
    );
}

#[test]
fn uuencoded_part_that_is_not_one_complete_file_stays() {
    let fields = |word: &str| {
        format!("Content-Type: application/pdf; name=a.pdf\nContent-Transfer-Encoding: {word}\n")
    };
    let file = String::from_utf8(uuencoded(b"a.pdf", PDF, "\n")).unwrap();
    for body in [
        file.replace("end\n", ""),
        file.replace("`\nend\n", ""),
        file.replace("begin 644", "begin"),
        format!("{file}{file}"),
        format!("text\n{file}"),
        format!("{file}text\n"),
        "no file\nbegin\n".to_owned(),
    ] {
        let mail = with_part(&fields("x-uuencode"), body.as_bytes());
        filter(FOLLOW, &mail).leaves(&mail, &["undecodable-body"]);
    }
    for word in ["x-yenc", "yenc", "x-binhex", "x-gzip64"] {
        let mail = with_part(&fields(word), file.as_bytes());
        filter(FOLLOW, &mail).gives(&mail);
    }
}

#[test]
fn winmail_in_a_uuencoded_part_is_opened() {
    let fields = "Content-Type: application/ms-tnef; name=winmail.dat\nContent-Transfer-Encoding: x-uuencode\n";
    let tnef = Tnef::new()
        .class("IPM.Note")
        .file("a.bin", b"\0\x01\x02")
        .bytes();
    let mail = with_part(fields, &uuencoded(b"winmail.dat", &tnef, "\n"));
    let ran = filter("--follow uuencode,winmail", &mail);
    let text = String::from_utf8(ran.stdout.clone()).unwrap();
    assert!(
        text.contains("\nAAEC\n") && !text.contains("winmail.dat"),
        "{text}"
    );
    assert_eq!(ran.column("kind"), ["uuencode", "tnef"], "{}", ran.stderr);
}

#[test]
fn name_of_a_uuencoded_file_is_decoded_or_the_file_stays() {
    let text = |charset: &str, name: &[u8]| {
        let header = match charset {
            "" => "Subject: x\n\ntext\n".to_owned(),
            charset => format!(
                "Subject: x\nMIME-Version: 1.0\nContent-Type: text/plain; charset={charset}\n\ntext\n"
            ),
        };
        [header.as_bytes(), &uuencoded(name, b"hello", "\n")].concat()
    };
    for (charset, name, expected) in [
        ("", &b"Gr\xfc\xdfe.pdf"[..], "Gr%C3%BC%C3%9Fe.pdf"),
        ("us-ascii", b"Gr\xfc\xdfe.pdf", "Gr%C3%BC%C3%9Fe.pdf"),
        ("iso-8859-1", b"Gr\xfc\xdfe.pdf", "Gr%C3%BC%C3%9Fe.pdf"),
        ("utf-8", b"Gr\xfc\xdfe.pdf", "Gr%C3%BC%C3%9Fe.pdf"),
        ("", "Gr\u{fc}\u{df}e.pdf".as_bytes(), "Gr%C3%BC%C3%9Fe.pdf"),
        (
            "koi8-r",
            b"\xd0\xcc\xc1\xce.pdf",
            "%D0%BF%D0%BB%D0%B0%D0%BD.pdf",
        ),
        // The second byte of a Japanese letter can be a backslash, which separates no directories.
        ("shift_jis", b"\x95\x5c.pdf", "%E8%A1%A8.pdf"),
        ("", b"=?iso-8859-1?Q?Gr=FC=DFe.pdf?=", "Gr%C3%BC%C3%9Fe.pdf"),
        ("", b"C:\\dir\\plain.pdf", "plain.pdf"),
    ] {
        let ran = filter(FOLLOW, &text(charset, name));
        let output = String::from_utf8(ran.stdout).unwrap();
        assert!(
            output.contains(expected),
            "{charset} {}: {output}",
            name.escape_ascii()
        );
    }
    for (charset, name) in [
        ("", &b"\xd0\xcc\xc1\xce.pdf"[..]),
        ("", b"\x95\x5c\x93\xfa.pdf"),
        ("utf-8", b"\xd0\xcc\xc1\xce.pdf"),
        ("x-unknown", b"\xd0\xcc\xc1\xce.pdf"),
        ("", b"=?x-unknown?Q?Gr=FC.pdf?="),
        ("", b"a/.."),
    ] {
        let mail = text(charset, name);
        filter(FOLLOW, &mail).leaves(&mail, &["charset-not-supported"]);
    }
    // The other files of the same text come out.
    let both = [
        text("", b"a.txt"),
        uuencoded(b"\xd0\xcc\xc1\xce.pdf", b"other", "\n"),
    ]
    .concat();
    let ran = filter(FOLLOW, &both);
    assert_eq!(ran.column("outcome"), ["expanded", "left"]);
    assert_eq!(ran.column("reason"), ["-", "charset-not-supported"]);
    assert!(
        ran.stdout
            .windows(14)
            .any(|it| it == b"begin 644 \xd0\xcc\xc1\xce")
    );
}
