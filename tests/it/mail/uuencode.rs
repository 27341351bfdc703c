//! `--follow uuencode`: files in the text of a mail.

use std::io::Write as _;
use std::process::{Command, Stdio};

use crate::common::filter::filter;
use crate::common::programs::skipped;

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
