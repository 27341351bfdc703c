//! `embody inspect` on mailboxes: the survey equals the known composition of a mailbox, which Python counts independently, and
//! the prediction of `detach --dry-run`. Text from mail is never interpreted as markup in the HTML page.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::common::browser::{chromium, page as shown};
use crate::common::programs::{embody, fed, program, skipped, stderr};
use crate::common::raw::{self, Raw};
use crate::common::reports;

/// Creates a mailbox with a known composition, and counts its content with `email`, `html.parser` and `hashlib`.
const PYTHON: &str = r#"
import sys, json, mailbox, hashlib, base64, random, re, datetime
from email import message_from_bytes
from email.utils import parsedate_to_datetime
from email.policy import compat32
from html.parser import HTMLParser
from urllib.parse import urlsplit
LARGE = 100 * 1024
random.seed(7)
contents = [random.randbytes(random.choice([500, 9000, 40_000, 90_000, 150_000, 300_000])) for _ in range(12)]
hosts = ['a.example', 'B.example', 'cdn.c.example']

def b64(octets):
    text = base64.b64encode(octets).decode()
    return '\n'.join(text[at:at + 76] for at in range(0, len(text), 76)) + '\n'

def attachment(number):
    kind = ['application/pdf', 'image/PNG', 'video/mp4'][number % 3]
    return f'Content-Type: {kind}; name=f{number}\nContent-Disposition: attachment\nContent-Transfer-Encoding: base64\n\n' + b64(contents[number])

def html(number):
    lines = ['<html><body>']
    for at in range(number % 4):
        lines.append(f'<img src="https://{hosts[at % 3]}/{number}/{at}.png">')
    if number % 3 == 0:
        lines.append(f'<img src="http://t.example/{number}" width=1 height=1>')
    if number % 5 == 0:
        lines.append('<img src="data:image/gif;base64,R0lGODlhAQABAIAAAAUEBA' + 'A' * (number * 4) + '">')
    lines.append(f'<a href="rel/{number}">x</a><a href="mailto:a@b.example">y</a><a href="https://l.example/">z</a>')
    if number % 9 == 0:
        lines.append('<img src="cid:p@b.example">')
    return '\n'.join(lines) + '\n</body></html>\n'

def reference(number):
    url = [f'https://r.example/{number}', f'ftp://ftp.r.example/{number}', 'data:,hello'][number % 3]
    return f'Content-Type: message/external-body; access-type=URL; URL="{url}"\n\nContent-Type: text/plain\n\n'

dates = ['Mon, 06 Jul 2015 10:00:00 +0200', 'Tue, 31 Dec 2019 23:30:00 -0500', 'Wed, 1 Jan 2020 00:00:00 GMT',
         'Thu, 01 Jan 1970 00:00:00 +0000', 'Fri, 7 Jan 2140 10:00:00 +0000', 'yesterday, I think', None, '3 Feb 1999 04:05 +0000', 'Mon Apr  7 12:43:22 2003',
         'Wed, 31 Dec 2003 23:30 MET DST']

def message(number):
    head = f'From: a@b.example\nSubject: {number}\nMIME-Version: 1.0\n'
    if dates[number % 10]:
        head += 'Date: ' + dates[number % 10] + '\n'
    if number % 7 == 0:
        return head + f'Content-Type: text/plain\n\nhello {number}\n'
    parts = []
    if number % 2:
        base = f'Content-Base: http://base.example/{number}/\n' if number % 4 == 1 else ''
        parts.append(base + 'Content-Type: text/html\n\n' + html(number))
    else:
        parts.append('Content-Type: text/plain\n\nhello\n')
    if number % 2 and number % 9 == 0:
        parts.append('Content-ID: <p@b.example>\n' + attachment(number // 9 % 12))
    for at in range(number % 3):
        parts.append(attachment((number * 5 + at) % 12))
    if number % 4 == 2:
        parts.append(reference(number))
    kind = 'signed; protocol="application/pgp-signature"' if number % 11 == 0 else 'mixed'
    body = ''.join(f'--b{number}\n{part}\n' for part in parts)
    return head + f'Content-Type: multipart/{kind}; boundary=b{number}\n\n{body}--b{number}--\n'

with open(sys.argv[1], 'w', newline='') as out:
    for number in range(1, 121):
        out.write('From a@b.example Mon Jul  6 10:00:00 2015\n' + message(number) + '\n')

# What is in there, as somebody else reads it.
class Links(HTMLParser):
    def __init__(self):
        super().__init__()
        self.found = []
    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        hidden = attributes.get('width') == '1' and attributes.get('height') == '1'
        for name in ('href', 'src'):
            if name in attributes:
                self.found.append((tag, attributes[name], hidden))

now = datetime.datetime.now(datetime.timezone.utc)
count = dict(messages=0, octets=0, missing=0, implausible=0, attachments=0, attachment_octets=0, large=0, large_octets=0,
             leave=0, leave_octets=0, shown=0, shown_octets=0, content_octets=0, signed=0, remote=0, trackers=0, data=0, data_octets=0, in_mail=0,
             documents=0, links=0, relative=0, with_base=0, references=0)
hosts, schemes, kinds, types, years, objects, times = {}, {}, {}, {}, {}, {}, []
raw = open(sys.argv[1], 'rb').read()
for piece in re.split(rb'(?:\A|\n)From a@b\.example [^\n]*\n', raw)[1:]:
    # The empty line between messages is not of the message.
    octets = piece[:-1] if piece.endswith(b'\n\n') else piece
    mail = message_from_bytes(octets, policy=compat32)
    count['messages'] += 1
    count['octets'] += len(octets)
    year = None
    try:
        if mail['Date'] is None:
            count['missing'] += 1
            year = 'none'
        else:
            date = parsedate_to_datetime(mail['Date'])
            if date.tzinfo is None:
                date = date.replace(tzinfo=datetime.timezone.utc)
            if date.year < 1971 or date > now:
                raise ValueError
            times.append(date)
            year = str(date.astimezone(datetime.timezone.utc).year)
    except (ValueError, TypeError):
        count['implausible'] += 1
        year = 'implausible'
    of_year = years.setdefault(year, dict(messages=0, octets=0, attachments=0, attachment_octets=0, pictures=0, references=0))
    of_year['messages'] += 1
    of_year['octets'] += len(octets)
    signed = mail.get_content_type() == 'multipart/signed'
    for part in mail.walk():
        kind = part.get_content_type()
        if part.get_content_maintype() == 'message':
            count['references'] += 1
            of_year['references'] += 1
            url = part.get_param('URL')
            kinds[urlsplit(url).scheme] = kinds.get(urlsplit(url).scheme, 0) + 1
        elif part.get_content_maintype() == 'text' and 'external-body' not in str(part):
            if kind != 'text/html':
                continue
            count['documents'] += 1
            links = Links()
            links.feed(part.get_payload())
            for tag, url, hidden in links.found:
                count['links'] += 1
                url_of = urlsplit(url)
                if url_of.scheme:
                    schemes[url_of.scheme] = schemes.get(url_of.scheme, 0) + 1
                else:
                    count['relative'] += 1
                    count['with_base'] += 'Content-Base' in part
                if tag != 'img':
                    continue
                if url_of.scheme == 'data':
                    count['data'] += 1
                    count['data_octets'] += len(url)
                elif url_of.scheme == 'cid':
                    count['in_mail'] += 1
                elif hidden:
                    count['trackers'] += 1
                else:
                    count['remote'] += 1
                    of_year['pictures'] += 1
                    hosts[url_of.hostname] = hosts.get(url_of.hostname, 0) + 1
        elif part.get_content_disposition() == 'attachment':
            # The line break in front of a boundary line belongs to that.
            body = len(part.get_payload())
            content = part.get_payload(decode=True)
            count['attachments'] += 1
            count['attachment_octets'] += body
            of_type = types.setdefault(kind, dict(attachments=0, octets=0, large=0, large_octets=0, leave=0, leave_octets=0))
            of_type['attachments'] += 1
            of_type['octets'] += body
            if body < LARGE:
                continue
            count['large'] += 1
            count['large_octets'] += body
            of_type['large'] += 1
            of_type['large_octets'] += body
            of_year['attachments'] += 1
            of_year['attachment_octets'] += body
            if signed:
                count['signed'] += 1
                continue
            if part['Content-ID']:
                count['shown'] += 1
                count['shown_octets'] += body
                continue
            count['leave'] += 1
            count['leave_octets'] += body
            of_type['leave'] += 1
            of_type['leave_octets'] += body
            count['content_octets'] += len(content)
            objects[hashlib.sha256(content).hexdigest()] = len(content)
count['objects'] = len(objects)
count['object_octets'] = sum(objects.values())
utc = lambda date: date.astimezone(datetime.timezone.utc).strftime('%Y-%m-%dT%H:%M:%SZ')
print(json.dumps(dict(count=count, hosts=hosts, schemes=schemes, kinds=kinds, types=types, years=years,
                      first=utc(min(times)), last=utc(max(times)))))
"#;

fn run(arguments: &[&str], folder: &Path) -> Output {
    let mut program = embody();
    program.args(arguments).current_dir(folder);
    program.output().unwrap()
}

#[track_caller]
fn printed(arguments: &[&str], folder: &Path) -> String {
    let output = run(arguments, folder);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the last line of the output, which is the survey.
#[track_caller]
fn survey(arguments: &[&str], folder: &Path) -> Value {
    let text = printed(&[&["inspect", "--json"], arguments].concat(), folder);
    let last = text.lines().last().unwrap();
    let mut line = reports::object(last);
    assert_eq!(line["kind"], "survey", "{last}");
    line["survey"].take()
}

/// Creates the mailbox, and returns the numbers that Python counted.
fn generated(test: &str, folder: &Path) -> Option<Value> {
    let Some(python) = program("python3") else {
        skipped(test, "python3");
        return None;
    };
    let output = Command::new(python)
        .args(["-c", PYTHON])
        .arg(folder.join("box"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

#[test]
fn survey_counts_match_the_generated_mailbox() {
    let folder = tempfile::tempdir().unwrap();
    let Some(python) = generated("survey_counts_match_the_generated_mailbox", folder.path()) else {
        return;
    };
    let survey = survey(&["--by", "host,type,year,outcome", "box"], folder.path());
    let of = |name: &str| python["count"][name].as_u64().unwrap();
    let found = |path: &str| survey.pointer(path).unwrap_or(&Value::Null).clone();
    for (path, name) in [
        ("/messages", "messages"),
        ("/octets", "octets"),
        ("/dates/missing", "missing"),
        ("/dates/implausible", "implausible"),
        ("/attachments/count", "attachments"),
        ("/attachments/octets", "attachment_octets"),
        ("/detach/count", "large"),
        ("/detach/octets", "large_octets"),
        ("/detach/leave/count", "leave"),
        ("/detach/leave/octets", "leave_octets"),
        ("/detach/shown_inline/count", "shown"),
        ("/detach/shown_inline/octets", "shown_octets"),
        ("/detach/stay/shown-inline", "shown"),
        ("/detach/stay/signed", "signed"),
        ("/detach/content_octets", "content_octets"),
        ("/detach/objects/count", "objects"),
        ("/detach/objects/octets", "object_octets"),
        ("/pictures/remote", "remote"),
        ("/pictures/trackers", "trackers"),
        ("/pictures/in_mail", "in_mail"),
        ("/pictures/data", "data"),
        ("/pictures/data_octets", "data_octets"),
        ("/links/documents", "documents"),
        ("/links/count", "links"),
        ("/links/relative", "relative"),
        ("/links/with_base", "with_base"),
        ("/references/count", "references"),
    ] {
        assert!(of(name) > 0, "the mailbox has no {name}");
        assert_eq!(found(path), of(name), "{path}: {survey:#}");
    }
    assert_eq!(found("/pictures/hosts"), python["hosts"]);
    assert_eq!(found("/links/schemes"), python["schemes"]);
    assert_eq!(
        found("/references/kinds"),
        json!({"external-body": python["kinds"]})
    );
    let mut types = found("/by/type/names");
    let mut inline = 0;
    for of_type in types.as_object_mut().unwrap().values_mut() {
        let of_type = of_type.as_object_mut().unwrap();
        inline += of_type.remove("inline").unwrap().as_u64().unwrap();
        of_type.remove("inline_octets").unwrap();
    }
    assert_eq!(found("/attachments/inline/count"), inline);
    assert_eq!(types, python["types"]);
    assert_eq!(found("/by/year/names"), python["years"]);
    assert_eq!(found("/dates/first"), python["first"]);
    assert_eq!(found("/dates/last"), python["last"]);
    assert_eq!(
        found("/detach/duplicates/count"),
        of("leave") - of("objects")
    );
    let duplicates = of("content_octets") - of("object_octets");
    assert_eq!(found("/detach/duplicates/octets"), duplicates);
    assert_eq!(found("/mailboxes"), 1);
    let trackers = found("/by/host/names/t.example/trackers");
    assert_eq!(trackers, of("trackers"));
    let outcomes = found("/by/outcome");
    assert_eq!(outcomes, survey["outcomes"]);
    let rows: u64 = outcomes
        .as_object()
        .unwrap()
        .values()
        .filter_map(Value::as_u64)
        .sum();
    let text = printed(&["inspect", "--json", "box"], folder.path());
    let lines = text.lines().map(reports::object);
    let (parts, others): (Vec<Value>, Vec<Value>) = lines.partition(|line| line["kind"] == "part");
    assert_eq!(rows as usize + 1, others.len());
    // Each attachment has a row.
    assert_eq!(parts.len() as u64, of("attachments"));
    let sizes: u64 = survey["attachments"]["sizes"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|it| it["count"].as_u64())
        .sum();
    assert_eq!(sizes, of("attachments"));
}

#[test]
fn the_same_mail_in_a_maildir_and_in_several_mailboxes_gives_the_same_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let test = "the_same_mail_in_a_maildir_and_in_several_mailboxes_gives_the_same_numbers";
    if generated(test, folder.path()).is_none() {
        return;
    }
    let maildir = folder.path().join("maildir");
    for name in ["cur", "new", "tmp"] {
        fs::create_dir_all(maildir.join(name)).unwrap();
    }
    let mailbox = fs::read_to_string(folder.path().join("box")).unwrap();
    let messages: Vec<&str> = mailbox
        .split("From a@b.example Mon Jul  6 10:00:00 2015\n")
        .skip(1)
        .collect();
    for (number, message) in messages.iter().enumerate() {
        let message = message.strip_suffix('\n').unwrap();
        fs::write(maildir.join(format!("cur/{number:04}:2,S")), message).unwrap();
    }
    let (first, second) =
        mailbox.split_at(mailbox.match_indices("\nFrom a@b").nth(60).unwrap().0 + 1);
    fs::write(folder.path().join("one"), first).unwrap();
    fs::write(folder.path().join("two"), second).unwrap();
    let by = ["--by", "host,type,year,outcome"];
    let mut whole = survey(&[&by[..], &["box"]].concat(), folder.path());
    let saves = whole["detach"]["saves"].as_i64().unwrap();
    let leave = whole["detach"]["leave"]["octets"].as_i64().unwrap();
    assert!(saves > 0 && saves < leave, "{saves} of {leave}");
    // Only the locations of messages are different.
    let named = whole.as_object_mut().unwrap().remove("largest").unwrap();
    assert_eq!(named.as_array().unwrap().len(), 10);
    let files = whole.as_object_mut().unwrap().remove("files").unwrap();
    assert_eq!(files["read"], 1);
    let survey = |arguments: &[&str]| {
        let mut survey = survey(arguments, folder.path());
        survey.as_object_mut().unwrap().remove("files").unwrap();
        let largest = survey.as_object_mut().unwrap().remove("largest").unwrap();
        let octets = |largest: &Value| -> Vec<Value> {
            let largest = largest.as_array().unwrap().iter();
            largest.map(|it| it["octets"].clone()).collect()
        };
        assert_eq!(octets(&largest), octets(&named));
        survey
    };
    assert_eq!(survey(&[&by[..], &["maildir"]].concat()), whole);
    // Standard input is treated as a mailbox, too.
    let mut program = embody();
    program.args(["inspect", "--json"]).args(by);
    let output = fed(&mut program, mailbox.as_bytes());
    let text = String::from_utf8(output.stdout).unwrap();
    let last = reports::object(text.lines().last().unwrap());
    let mut fed = last["survey"].clone();
    fed.as_object_mut().unwrap().remove("largest").unwrap();
    // Standard input is not a file.
    let files = fed.as_object_mut().unwrap().remove("files").unwrap();
    assert_eq!(files["read"], 0);
    assert_eq!(fed, whole);
    whole["mailboxes"] = json!(2);
    assert_eq!(survey(&[&by[..], &["one", "two"]].concat()), whole);
}

#[test]
fn the_same_mail_gives_the_same_survey_each_time() {
    let folder = tempfile::tempdir().unwrap();
    if generated(
        "the_same_mail_gives_the_same_survey_each_time",
        folder.path(),
    )
    .is_none()
    {
        return;
    }
    let arguments = ["inspect", "--json", "--by", "host,type,year,outcome", "box"];
    let without_time = || {
        let text = printed(&arguments, folder.path());
        text.lines().last().unwrap().to_owned()
    };
    let first = without_time();
    for _ in 0..4 {
        assert_eq!(without_time(), first);
    }
}

#[test]
fn what_detach_would_save_is_what_its_dry_run_says() {
    let folder = tempfile::tempdir().unwrap();
    if generated(
        "what_detach_would_save_is_what_its_dry_run_says",
        folder.path(),
    )
    .is_none()
    {
        return;
    }
    for (larger_than, base_url) in [
        ("100k", "file:///srv/store/"),
        ("5k", "https://files.example.org/mail/"),
    ] {
        let survey = match larger_than {
            "100k" => survey(&["box"], folder.path()),
            _ => survey(
                &[
                    "--larger-than",
                    larger_than,
                    "--store",
                    "store",
                    "--base-url",
                    base_url,
                    "box",
                ],
                folder.path(),
            ),
        };
        let detach = &survey["detach"];
        assert_eq!(detach["base_url"], base_url);
        let output = run(
            &[
                "detach",
                "--dry-run",
                "--larger-than",
                larger_than,
                "--store",
                "store",
                "--base-url",
                base_url,
                "box",
            ],
            folder.path(),
        );
        let said = stderr(&output);
        let objects = &detach["objects"];
        let line = format!(
            "The store would contain {} objects with these attachments: {} bytes.\n",
            objects["count"], objects["octets"]
        );
        assert!(said.contains(&line), "{detach}: {said}");
        let line = format!(
            "{} attachments would be moved into the store.",
            detach["leave"]["count"]
        );
        assert!(said.contains(&line), "{detach}: {said}");
        let before = fs::metadata(folder.path().join("box")).unwrap().len();
        let after = before - detach["saves"].as_u64().unwrap();
        let size = |bytes: u64| {
            let (unit, name) = if bytes >= 999_500 {
                (1e6, "MB")
            } else {
                (1e3, "kB")
            };
            let value = bytes as f64 / unit;
            let digits = usize::from(value < 9.95);
            format!("{value:.digits$} {name}")
        };
        assert!(
            said.contains(&format!("\n{} -> {} in ", size(before), size(after))),
            "{detach}: {said}"
        );
        // The actual run saves as much as predicted.
        let base = ["--larger-than", larger_than, "--base-url", base_url];
        let output = run(
            &[
                &["detach", "--store", "store", "--output", larger_than],
                &base[..],
                &["box"],
            ]
            .concat(),
            folder.path(),
        );
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert_eq!(
            fs::metadata(folder.path().join(larger_than)).unwrap().len(),
            after
        );
    }
}

#[test]
fn text_lines_of_the_survey_show_its_figures() {
    let folder = tempfile::tempdir().unwrap();
    let mail = "From a@b Mon Jul  6 10:00:00 2015\nDate: Mon, 06 Jul 2015 10:00:00 +0000\nMIME-Version: 1.0\nContent-Type: text/html\n\n\
        <img src=https://a.example/1><img src=//b.example/2><a href=x>\n\n";
    fs::write(folder.path().join("box"), mail).unwrap();
    let text = printed(&["inspect", "--by", "host,year", "box"], folder.path());
    for line in [
        "1 mailbox, 1 message, 179 bytes",
        "2 pictures in this mail are only on the web.",
        "pictures     2 on 2 servers",
        "dates        2015-07-06",
        "Next step: keep the pictures",
        "  embody embed box --output box-embedded.mbox",
        "            1            0            0            0            0            0  b.example",
    ] {
        assert!(text.contains(&format!("{line}\n")), "{text}");
    }
    assert!(text.contains("  2015\n"), "{text}");
    // Lines with the number zero are left out.
    for word in ["trackers", "links ", "missing", "attachments  ", "damaged"] {
        let is_line = |line: &str| line.starts_with(word);
        assert!(!text.lines().any(is_line), "{text}");
    }
    // For a single message, the structure is printed before the survey.
    fs::write(
        folder.path().join("one.eml"),
        mail.split_once('\n').unwrap().1,
    )
    .unwrap();
    let text = printed(&["inspect", "one.eml"], folder.path());
    assert!(text.starts_with("1  text/html"), "{text}");
    assert!(text.contains("\ndates  "), "{text}");
    let one = survey(&["--by", "year", "one.eml"], folder.path());
    assert_eq!(
        (&one["messages"], &one["mailboxes"]),
        (&json!(1), &json!(1))
    );
}

/// A home page in place of a picture counts as dead, and a picture with a wrong type does not, as in `embed`.
#[test]
fn a_probe_judges_pictures_and_files_as_a_run_does() {
    const GIF: &[u8] =
        b"GIF89a\x09\0\x09\0\x80\0\0\0\0\0\xff\xff\xff,\0\0\0\0\x01\0\x01\0\0\x02\x02D\x01\0;";
    let page: &[u8] = b"<!DOCTYPE html><title>Welcome</title>";
    let server = Raw::http(move |path, stream| {
        let answer = match path {
            "/real.gif" => raw::ok("image/gif", GIF),
            "/octets.gif" => raw::ok("application/octet-stream", GIF),
            "/odd.gif" => raw::ok("text/html; charset=utf-8", GIF),
            "/words.gif" => raw::ok("text/plain", b"not found"),
            "/moved.gif" => format!(
                "HTTP/1.1 302 Found\r\nLocation: {}\r\nContent-Length: 0\r\n\r\n",
                "/"
            )
            .into_bytes(),
            "/page.txt" | "/" => raw::ok("Text/HTML;charset=utf-8", page),
            _ => raw::ok("application/xhtml+xml", page),
        };
        let _ = stream.write_all(&answer);
    });
    let names = [
        "real.gif",
        "octets.gif",
        "odd.gif",
        "words.gif",
        "moved.gif",
        "home.gif",
    ];
    let pictures = names.map(|name| format!("<img src=\"{}\">", server.url(&format!("/{name}"))));
    let mail = format!(
        "From a@b Mon Jul  6 10:00:00 2015\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: text/html\n\n\
         {}\n\n--b\nContent-Type: message/external-body; access-type=URL; URL=\"{}\"\n\nContent-Type: text/plain\n\n--b--\n\n",
        pictures.concat(),
        server.url("/page.txt")
    );
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("box"), mail).unwrap();
    let port = server.address.port().to_string();
    let policy = ["--allow-net", "127.0.0.0/8", "--allow-port", &port];
    let options = ["--fetch", "http", "--probe", "box"];
    let asked = survey(&[&policy[..], &options].concat(), folder.path());
    assert_eq!(
        asked["probe"],
        json!({"alive": 3, "dead": 4, "refused": 0, "unasked": 0}),
        "{asked:#}"
    );
    // A HEAD request is sufficient to recognize a picture.
    let heads = server.heads();
    for name in ["real.gif", "octets.gif"] {
        let get = format!("GET /{name} ");
        assert!(
            !heads.iter().any(|head| head.starts_with(&get)),
            "{heads:?}"
        );
    }
    let embedded = embody()
        .args(["embed", "box", "--output", "kept"])
        .args(policy)
        .current_dir(folder.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&embedded.stderr);
    assert!(
        said.contains("3 pictures saved in the mail. 3 could not be: "),
        "{said}"
    );
}

#[test]
fn a_probe_asks_for_pictures_and_for_no_tracker_and_no_link() {
    let server = Raw::http(|path, stream| {
        let answer = if path.starts_with("/gone") {
            b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".to_vec()
        } else {
            raw::ok("image/gif", b"GIF89a")
        };
        let _ = stream.write_all(&answer);
    });
    let folder = tempfile::tempdir().unwrap();
    let at = |path: &str| server.url(path);
    let mail = format!(
        "From a@b Mon Jul  6 10:00:00 2015\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: text/html\n\n\
         <img src=\"{}\"><img src=\"{}\"><img src=\"{}\" width=1 height=1><a href=\"{}\">x</a><img src=\"https://refused.example/x\">\n\
         <img src=\"data:image/gif;base64,R0lGODlhCQAJAIAAAAAAAP///ywAAAAAAQABAAACAkQBADs=\">\n\n\
         --b\nContent-Type: message/external-body; access-type=URL; URL=\"{}\"\n\nContent-Type: text/plain\n\n--b--\n\n",
        at("/alive.gif"),
        at("/gone.gif"),
        at("/tracker.gif"),
        at("/clicked"),
        at("/gone.txt")
    );
    fs::write(folder.path().join("box"), mail).unwrap();
    let port = server.address.port().to_string();
    let policy = [
        "--fetch",
        "http",
        "--allow-net",
        "127.0.0.0/8",
        "--allow-port",
        &port,
    ];
    let quiet = survey(&[&policy[..], &["box"]].concat(), folder.path());
    assert!(
        quiet.get("probe").is_none() && server.heads().is_empty(),
        "{quiet}"
    );
    for trackers in ["leave", "fetch", "blank"] {
        let options = ["--probe", "--by", "host", "--trackers", trackers, "box"];
        let asked = survey(&[&policy[..], &options].concat(), folder.path());
        let expected = json!({"alive": 1, "dead": 2, "refused": 1, "unasked": 1});
        assert_eq!(asked["probe"], expected, "{asked:#}");
        let here = &asked["by"]["host"]["names"]["127.0.0.1"];
        assert_eq!(
            (&here["alive"], &here["dead"]),
            (&json!(1), &json!(2)),
            "{asked:#}"
        );
        let refused = &asked["by"]["host"]["names"]["refused.example"]["refused"];
        assert_eq!(refused, 1, "{asked:#}");
        assert!(asked.get("embed").is_none(), "{asked}");
    }
    let heads = server.heads();
    assert!(
        heads.iter().any(|head| head.contains("/alive.gif")),
        "{heads:?}"
    );
    for never in ["tracker", "clicked"] {
        assert!(!heads.iter().any(|head| head.contains(never)), "{heads:?}");
    }
}

/// Maximum number of names that are counted separately.
const NAMES: usize = 10_000;

#[test]
fn however_many_names_a_stranger_writes_memory_and_output_have_a_bound_and_no_number_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let all = 40_000;
    let long = "x".repeat(180);
    let mut mail = String::new();
    for message in 0..all / 100 {
        mail.push_str("From a@b Mon Jul  6 10:00:00 2015\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: text/html\n\n");
        for number in message * 100..message * 100 + 100 {
            mail.push_str(&format!(
                "<img src=http://{long}{number}.example/x><a href=s{number}:x>\n"
            ));
        }
        for number in message * 100..message * 100 + 100 {
            mail.push_str(&format!("--b\nContent-Type: x{number}/{long}\n\nx\n"));
        }
        mail.push_str("--b--\n\n");
    }
    fs::write(folder.path().join("box"), mail).unwrap();
    let survey = survey(
        &[
            "--by",
            "host,type",
            "--embed",
            "remote",
            "--fetch",
            "http",
            "box",
        ],
        folder.path(),
    );
    let all = all as u64;
    let pictures = &survey["pictures"];
    assert_eq!(pictures["remote"], all);
    assert_eq!(pictures["hosts"].as_object().unwrap().len(), NAMES);
    assert_eq!(pictures["other_hosts"], all - NAMES as u64);
    assert_eq!(survey["links"]["schemes"].as_object().unwrap().len(), NAMES);
    assert_eq!(survey["embed"]["hosts"].as_object().unwrap().len(), NAMES);
    let by = &survey["by"];
    assert_eq!(by["type"]["names"].as_object().unwrap().len(), NAMES);
    assert_eq!(by["type"]["others"]["attachments"], all - NAMES as u64);
    assert_eq!(by["host"]["others"]["pictures"], all - NAMES as u64);
    // The first names in the order of the mail are listed, on any number of processors.
    assert!(
        pictures["hosts"]
            .get(format!("{long}9999.example"))
            .is_some()
    );
    assert!(
        pictures["hosts"]
            .get(format!("{long}10000.example"))
            .is_none()
    );
    let page = printed(&["inspect", "--html", "-", "box"], folder.path());
    assert!(page.len() < 200_000, "{}", page.len());
    assert!(page.contains("others, after the first 10000 names"));
}

/// A name that would be markup if it were not escaped.
const HOSTILE: &str = "<script>document.title='owned'</script>\"onload='x'&amp;";

fn hostile(folder: &Path) {
    let mut mail = String::new();
    for number in 0..30 {
        mail.push_str(&format!(
            "From a@b Mon Jul  6 10:00:00 2015\nSubject: {HOSTILE}\nDate: Mon, 06 Jul {} 10:00:00 +0000\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n\
             --b\nContent-Type: text/html\n\n<img src='https://{number}{}'><a href='x&lt;b&gt;:y'></a>\n\n\
             --b\nContent-Type: application/{}; name=x\nContent-Transfer-Encoding: base64\n\n{}\n\n\
             --b\nContent-Type: message/external-body; access-type=URL; URL=\"x<script><svg>:{HOSTILE}\"\n\nContent-Type: text/plain\n\n--b--\n\n",
            1990 + number,
            HOSTILE.replace('\'', "&#39;").replace('/', ""),
            HOSTILE.replace(['"', '/'], ""),
            "QUFB".repeat(1000 * (number + 1)),
        ));
    }
    fs::write(folder.join("<b>box<i> 'x'"), mail).unwrap();
}

#[test]
fn nothing_that_stands_in_mail_is_markup_of_the_page() {
    let folder = tempfile::tempdir().unwrap();
    hostile(folder.path());
    let name = "<b>box<i> 'x'";
    printed(
        &[
            "inspect",
            "--larger-than",
            "10k",
            "--html",
            "page.html",
            name,
        ],
        folder.path(),
    );
    let page = fs::read_to_string(folder.path().join("page.html")).unwrap();
    assert!(
        page.contains("&lt;script&gt;") && page.contains("&lt;b&gt;box"),
        "{page}"
    );
    // The page contains a single script, which is allowed only by its hash.
    let (page, script) = page.rsplit_once("<script>").unwrap();
    let script = script.strip_suffix("</script>\n").unwrap();
    let hash = STANDARD.encode(Sha256::digest(script));
    assert!(
        page.contains(&format!("; script-src 'sha256-{hash}'\">")),
        "{page}"
    );
    for markup in [
        "<script",
        "<b>box",
        "<svg/",
        "onload='",
        "http-equiv=\"refresh\"",
        "src=",
        "href=",
        "@import",
    ] {
        assert!(!page.contains(markup), "{markup}: {page}");
    }
    assert!(!page.contains("url("), "something is loaded");
    // Every tag belongs to embody.
    let names = "b bdi body code details div footer h1 h2 h3 html i li main meta p pre span style summary table td th title tr ul";
    let ours: Vec<&str> = names.split(' ').collect();
    let body = page.split_once("</style>").unwrap().1;
    for piece in body.split('<').skip(1) {
        let tag = piece
            .trim_start_matches('/')
            .split(|it: char| !it.is_ascii_alphanumeric())
            .next()
            .unwrap();
        assert!(ours.contains(&tag), "<{tag}");
    }
    // Printing the page to standard output results in the same page, except for the name of the file in its commands.
    let printed = printed(
        &["inspect", "--larger-than", "10k", "--html", "-", name],
        folder.path(),
    );
    let head = |page: &str| page.split_once("<h2>").unwrap().0.to_owned();
    assert_eq!(head(&printed), head(page));
    assert!(!printed.contains("Count the pictures and files that are gone"));
    let output = run(&["inspect", "--json", "--html", "-", name], folder.path());
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn survey_page_does_not_overwrite_a_mailbox() {
    let folder = tempfile::tempdir().unwrap();
    let mail = "From a@b Mon Jul  6 10:00:00 2015\nSubject: x\n\nhello\n\n";
    fs::write(folder.path().join("box"), mail).unwrap();
    let output = run(&["inspect", "--html", "box", "box"], folder.path());
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("--html does not replace it"),
        "{}",
        stderr(&output)
    );
    assert_eq!(fs::read_to_string(folder.path().join("box")).unwrap(), mail);
    for _ in 0..2 {
        printed(&["inspect", "--html", "page.html", "box"], folder.path());
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
}

#[test]
fn a_browser_shows_the_page_and_runs_nothing_of_it() {
    let Some(chromium) = chromium("a_browser_shows_the_page_and_runs_nothing_of_it") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    hostile(folder.path());
    let name = "<b>box<i> 'x'";
    printed(
        &[
            "inspect",
            "--larger-than",
            "10k",
            "--html",
            "page.html",
            name,
        ],
        folder.path(),
    );
    let page = fs::read(folder.path().join("page.html")).unwrap();
    let picture = shown(&chromium, "html", "the page", &page, "MAP * ~NOTFOUND");
    let paper = [0xfb, 0xfb, 0xf9];
    let card = [0xff, 0xff, 0xff];
    assert!(picture.count(paper) > 10_000 && picture.count(card) > 3_000);
    // A dark page is shown if the system prefers dark colors.
    let dark = String::from_utf8(page)
        .unwrap()
        .replace("@media(prefers-color-scheme:dark)", "@media screen");
    let picture = shown(
        &chromium,
        "html",
        "dark",
        dark.as_bytes(),
        "MAP * ~NOTFOUND",
    );
    assert!(picture.count([0x14, 0x18, 0x1c]) > 10_000 && picture.count(paper) == 0);
    // Obtains the document as the browser parsed it.
    let file = folder.path().join("page.html");
    let output = Command::new(&chromium)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"])
        .arg(format!(
            "--user-data-dir={}",
            folder.path().join("profile").display()
        ))
        .arg(format!("file://{}", file.display()))
        .env("HOME", folder.path())
        .output()
        .unwrap();
    let dom = String::from_utf8(output.stdout).unwrap();
    assert!(
        dom.contains("<title>Survey of &lt;b&gt;box&lt;i&gt; 'x'</title>"),
        "{dom}"
    );
    // Only the script of embody ran: each command has a button.
    assert_eq!(dom.matches("<script").count(), 1);
    assert!(dom.matches("<pre>").count() >= 1, "{dom}");
    assert_eq!(
        dom.matches("<button type=\"button\">Copy</button><pre>")
            .count(),
        dom.matches("<pre>").count(),
        "{dom}"
    );
    // The chart has a column for each year.
    assert!(dom.matches("<i class=\"all\"").count() >= 30, "{dom}");
}

/// Returns the width of the page in a frame of this width, and the width that its content needs.
fn widths(chromium: &Path, folder: &Path, page: &str, width: usize) -> (usize, usize) {
    let framed = page.replace('&', "&amp;").replace('"', "&quot;");
    let script = "onload = () => { const root = document.querySelector('iframe').contentDocument.documentElement; \
        for (const it of root.querySelectorAll('details')) it.open = true; \
        document.getElementById('w').textContent = root.clientWidth + ' ' + root.scrollWidth + '.' }";
    let wrapper = format!(
        "<!DOCTYPE html><body><p id=w></p><iframe style='border:0;width:{width}px;height:900px' srcdoc=\"{framed}\"></iframe><script>{script}</script>"
    );
    let file = folder.join(format!("frame-{width}.html"));
    fs::write(&file, wrapper).unwrap();
    let output = Command::new(chromium)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"])
        .arg("--window-size=1400,1000")
        .arg(format!(
            "--user-data-dir={}",
            folder.join("profile").display()
        ))
        .arg(format!("file://{}", file.display()))
        .env("HOME", folder)
        .output()
        .unwrap();
    let dom = String::from_utf8(output.stdout).unwrap();
    let (_, found) = dom.split_once("<p id=\"w\">").unwrap();
    let (found, _) = found.split_once('.').expect("the page was measured");
    let (inner, needed) = found.split_once(' ').unwrap();
    (inner.parse().unwrap(), needed.parse().unwrap())
}

#[test]
fn page_fits_telephones_tablets_and_screens() {
    let Some(chromium) = chromium("page_fits_telephones_tablets_and_screens") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    hostile(folder.path());
    let long = "x".repeat(400);
    let mut mail = fs::read_to_string(folder.path().join("<b>box<i> 'x'")).unwrap();
    for (number, subject) in [
        long.as_str(),
        "\u{5e9}\u{5dc}\u{5d5}\u{5dd} \u{202e}<script>document.title='owned'</script>",
        "nul \0 here",
    ]
    .iter()
    .enumerate()
    {
        mail.push_str(&format!(
            "From a@b Mon Jul  6 10:00:00 2015\nFrom: {long} <{long}@{}.example>\nX-Gmail-Labels: {long},<b>\nDate: Mon, 06 Jul 2015 10:00:00 +0000\n\
             Subject: {subject}\nMIME-Version: 1.0\nContent-Type: text/html; charset=utf-8\n\n\
             <img src='https://{}.example/x'><img src='https://t{number}.{}.example/' width=1 height=1>\n{}\n\n",
            "h".repeat(60),
            "p".repeat(60),
            "q".repeat(60),
            "x".repeat(300_000 + number),
        ));
    }
    fs::write(folder.path().join("box"), mail).unwrap();
    printed(
        &[
            "inspect",
            "--larger-than",
            "10k",
            "--by",
            "host",
            "--html",
            "page.html",
            "box",
        ],
        folder.path(),
    );
    let page = fs::read_to_string(folder.path().join("page.html")).unwrap();
    assert!(!page.contains('\0') && !page.contains('\u{202e}'));
    assert!(page.contains("The largest messages") && page.contains("&lt;script&gt;"));
    for width in [360, 768, 1280] {
        let (inner, needed) = widths(&chromium, folder.path(), &page, width);
        assert!(
            inner >= width - 20 && needed <= inner,
            "{width}: {needed} > {inner}"
        );
    }
}

#[test]
fn attachments_and_pictures_are_listed_one_by_one() {
    let folder = tempfile::tempdir().unwrap();
    let part = |header: &str, body: &str| format!("--b\n{header}\n\n{body}\n");
    let mail = [
        "From a@b Mon Jul  6 10:00:00 2015\nDate: Mon, 06 Jul 2015 10:00:00 +0000\nMessage-ID: <1@x>\n\
         MIME-Version: 1.0\nContent-Type: multipart/related; boundary=b\n\n",
        &part("Content-Type: text/html", "<img src='cid:Shown@x'><img src=\"cid:%6doved\">"),
        &part("Content-Type: text/html", "<img src='cid:shown@x'>"),
        &part(
            "Content-Type: image/gif\nContent-ID: <shown@x>\nContent-Transfer-Encoding: base64\nContent-Disposition: INLINE; filename=a.gif",
            "R0lG ODlh",
        ),
        &part("Content-Type: image/png; name=\"=?utf-8?q?gr=C3=BCn=2Epng?=\"\nContent-ID: <moved>", "png"),
        &part(
            "Content-Type: application/pdf\nContent-Disposition: attachment;\n filename*=utf-8''%e2%82%ac.pdf\nContent-Transfer-Encoding: base64",
            &"QUJD\n".repeat(1000),
        ),
        &part("Content-Type: application/x\nContent-Transfer-Encoding: base64", "A"),
        "--b--\n\n",
    ]
    .concat();
    fs::write(folder.path().join("box"), &mail).unwrap();
    let text = printed(
        &["inspect", "--json", "--larger-than", "1k", "box"],
        folder.path(),
    );
    let lines: Vec<Value> = text
        .lines()
        .map(reports::object)
        .filter(|line: &Value| line["kind"] == "part")
        .collect();
    let hash = |octets: &[u8]| {
        let digits = Sha256::digest(octets);
        digits
            .iter()
            .map(|octet| format!("{octet:02x}"))
            .collect::<String>()
    };
    let said: Vec<Value> = lines
        .iter()
        .map(|it| {
            json!([
                it["part"],
                it["media_type"],
                it["name"],
                it["bytes"],
                it["sha256"],
                it["disposition"],
                it["shown_by"]
            ])
        })
        .collect();
    let pdf = b"ABC".repeat(1000);
    assert_eq!(
        said,
        [
            json!(["3", "image/gif", "a.gif", 6, hash(b"GIF89a"), "inline", "1"]),
            json!([
                "4",
                "image/png",
                "gr\u{fc}n.png",
                3,
                hash(b"png"),
                null,
                "1"
            ]),
            json!([
                "5",
                "application/pdf",
                "\u{20ac}.pdf",
                3000,
                hash(&pdf),
                "attachment",
                null
            ]),
            json!(["6", "application/x", null, null, null, null, null]),
        ]
    );
    for line in &lines {
        assert_eq!(line["message"], "1", "{line}");
        assert_eq!(line["message_id"], "<1@x>", "{line}");
        assert_eq!(line["date"], "2015-07-06T10:00:00Z", "{line}");
        assert!(line.get("outcome").is_none(), "{line}");
    }
    // The survey of a single message contains the same lists, after the rows.
    let (_, message) = mail.split_once('\n').unwrap();
    fs::write(folder.path().join("a.eml"), message).unwrap();
    let alone = printed(&["inspect", "--json", "a.eml"], folder.path());
    assert_eq!(alone.matches("\"kind\":\"part\"").count(), 4, "{alone}");
}

#[test]
fn invalid_or_single_label_host_names_are_not_counted() {
    let folder = tempfile::tempdir().unwrap();
    let urls = [
        "http://a.example/1",
        "https:///a.example/2",
        "//A.example/3",
        "http://a b.example/x",
        "http:///",
        "https://",
        "http://dm/x",
        "//dm",
        "http://<b>.example/x",
        "http://[::1/x",
        "http://a.example@/x",
        "http://user@b.example:80/x",
        "http://127.1/x",
    ];
    let pictures: String = urls
        .iter()
        .map(|url| format!("<img src=\"{url}\">"))
        .collect();
    let mail = format!(
        "From a@b Mon Jul  6 10:00:00 2015\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: text/html\n\n{pictures}\n\
         --b\nContent-Type: message/external-body; access-type=anon-ftp; site=\"dm\"; name=x\n\n\n\
         --b\nContent-Type: message/external-body; access-type=anon-ftp; site=\"one two\"; name=x\n\n\n\
         --b\nContent-Type: message/external-body; access-type=anon-ftp; site=\"c.example\"; name=x\n\n\n--b--\n\n"
    );
    fs::write(folder.path().join("box"), mail).unwrap();
    let survey = survey(&["--by", "host", "box"], folder.path());
    let names: Vec<&String> = survey["by"]["host"]["names"]
        .as_object()
        .unwrap()
        .keys()
        .collect();
    assert_eq!(names, ["127.0.0.1", "a.example", "b.example", "c.example"]);
    let pictures = &survey["pictures"];
    assert_eq!(
        (&pictures["remote"], &pictures["elsewhere"]),
        (&json!(5), &json!(8)),
        "{pictures}"
    );
    assert_eq!(
        pictures["hosts"],
        json!({"127.0.0.1": 1, "a.example": 3, "b.example": 1})
    );
    let table = printed(&["inspect", "--verbose", "box"], folder.path());
    let hosts: Vec<&str> = table
        .lines()
        .filter(|line| line.starts_with("host "))
        .collect();
    assert_eq!(hosts.len(), 1, "{table}");
}

#[test]
fn survey_never_says_that_nothing_is_missing_if_something_is() {
    const NOTHING: &str = "Nothing is missing from this mail.";
    let mail = |fields: &str, body: &str| {
        format!(
            "From: a@b.example\nDate: Mon, 6 Jan 2020 10:00:00 +0000\nMIME-Version: 1.0\n{fields}\n\n{body}\n"
        )
    };
    let html = |body: &str| mail("Content-Type: text/html", body);
    let dropbox =
        "<a href=\"https://www.dropbox.com/s/0123456789abcde/report.pdf?dl=0\">report.pdf</a>";
    let picture = "<img src=\"https://img.example.net/a.png\" width=200 height=100>";
    let piece = |number: u32| {
        format!("Content-Type: message/partial; number={number}; total=3; id=\"s1@example.org\"")
    };
    let folder = tempfile::tempdir().unwrap();
    for (mails, words, single) in [
        (
            vec![html(dropbox)],
            "1 file that this mail links to is not in the mail.",
            "dropbox.com",
        ),
        (
            vec![html(picture)],
            "1 picture in this mail is only on the web.",
            "1 picture in this mail is only on the web.",
        ),
        (
            vec![mail(
                "Content-Type: text/plain",
                "see https://www.dropbox.com/s/0123456789abcde/report.pdf?dl=0.\nand https://example.org/x",
            )],
            "1 file to which a plain text links is not in the mail, and embody does not attach it.",
            "1 file in Dropbox, linked in plain texts, which embody does not follow",
        ),
        (
            vec![html("<img src=\"cid:none@example.org\">")],
            "1 picture is missing: no part of the mail has the Content-ID in the HTML.",
            "1 picture is missing",
        ),
        (
            vec![mail(
                "Content-Type: application/pdf; name=a.pdf\nContent-Transfer-Encoding: x-uuencode",
                "begin 644 a.pdf\n#0V%T\n`\nend",
            )],
            "1 part of this mail is in a form that most mail programs cannot open.",
            "1 part of this mail is in a form that most mail programs cannot open.",
        ),
        (
            vec![html("<img src=\"a.png\">")],
            "1 picture of this mail has a URL that cannot be retrieved, such as a file: URL or a relative URL without a base URL.",
            "1 with a URL that cannot be retrieved",
        ),
        (
            vec![
                mail(&piece(1), "Subject: x\n\ntext"),
                mail(&piece(2), "text"),
                mail(&piece(3), "text"),
            ],
            "3 messages are pieces of divided mails (message/partial)",
            "1 piece of a divided mail (message/partial)",
        ),
        (
            vec![mail("Content-Type: text/plain", "hi")],
            NOTHING,
            NOTHING,
        ),
    ] {
        let mbox: String = mails
            .iter()
            .map(|mail| format!("From a@b Mon Jan  6 10:00:00 2020\n{mail}\n"))
            .collect();
        fs::write(folder.path().join("in.mbox"), mbox).unwrap();
        fs::write(folder.path().join("in.eml"), &mails[0]).unwrap();
        let text = printed(
            &["inspect", "in.mbox", "--html", "page.html"],
            folder.path(),
        );
        let page = fs::read_to_string(folder.path().join("page.html")).unwrap();
        for told in [&text, &page] {
            assert!(told.contains(words), "{words}: {told}");
            assert_eq!(
                told.contains("Nothing is missing"),
                words == NOTHING,
                "{told}"
            );
        }
        fs::remove_file(folder.path().join("page.html")).unwrap();
        let text = printed(&["inspect", "in.eml"], folder.path());
        assert!(text.contains(single), "{single}: {text}");
        assert_eq!(text.contains(NOTHING), single == NOTHING, "{text}");
    }
    // An empty mailbox is no mail, and a file that cannot be read may contain some.
    fs::create_dir(folder.path().join("in")).unwrap();
    fs::write(folder.path().join("in/a.pst"), "").unwrap();
    let output = run(&["inspect", "in"], folder.path());
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        !text.contains("Nothing is missing") && !text.contains("There is no mail here"),
        "{text}"
    );
}
