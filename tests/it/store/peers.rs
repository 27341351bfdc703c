//! Detached attachments and other programs: web servers with a store, mail clients that support RFC 2017, and DKIM signatures,
//! which must be valid again after the attachments were restored.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use base64::Engine as _;
use sha2::{Digest as _, Sha256};

use crate::common::mail::assert_bytes;
use crate::common::programs::{Served, embody, fed, has_python, nginx, program, skipped, stderr};

/// Returns the content of an attachment, which is unique for each number.
fn octets(number: u32) -> Vec<u8> {
    let mut state = number;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    (0..150_000).map(|_| next()).collect()
}

/// Returns a mail with two attachments and CRLF line endings, as it is transferred.
fn mail() -> Vec<u8> {
    let part = |name: &str, number| {
        let text = base64::engine::general_purpose::STANDARD.encode(octets(number));
        let lines: Vec<&str> = text
            .as_bytes()
            .chunks(76)
            .map(|line| std::str::from_utf8(line).unwrap())
            .collect();
        format!(
            "--b\r\nContent-Type: image/png; name=\"{name}\"\r\nContent-Disposition: attachment; filename=\"{name}\"\r\nContent-Transfer-Encoding: base64\r\n\r\n{}\r\n",
            lines.join("\r\n")
        )
    };
    format!(
        "From: Alice <alice@example.org>\r\nTo: bob@example.org\r\nSubject: two pictures\r\nDate: Sat, 3 Jan 2026 01:05:34 +0000\r\nMessage-ID: <1@example.org>\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Type: text/plain\r\n\r\nSee below.\r\n{}{}--b--\r\n",
        part("one.png", 1),
        part("two.png", 2),
    )
    .into_bytes()
}

fn succeeded(output: Output) -> Vec<u8> {
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    output.stdout
}

fn detached(more: &mut Command, mail: &[u8]) -> Vec<u8> {
    let output = fed(more, mail);
    assert!(output.stdout.len() < 5_000, "{}", stderr(&output));
    succeeded(output)
}

fn detach(store: &str) -> Command {
    let mut command = embody();
    command.args(["detach", "--store", store]);
    command
}

fn restore(store: &str) -> Command {
    let mut command = embody();
    command.args(["restore", "--store", store]);
    command
}

fn as_me(command: &mut Command) -> &mut Command {
    command
        .env("EMBODY_STORE_USER", "me")
        .env("EMBODY_STORE_PASSWORD", "secret")
}

/// Returns the files in a directory, including temporary ones.
fn files(folder: &Path) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path))
        } else {
            found.push(fs::read(path).unwrap())
        }
    }
    found
}

#[test]
fn nginx_keeps_a_store_by_put() {
    let Some(server) = nginx("nginx_keeps_a_store_by_put", &[]) else {
        return;
    };
    let folder = server.folder.path().join("root/dav");
    let store = format!("http://127.0.0.1:{}/dav/", server.port);
    let mail = mail();
    let left = detached(as_me(&mut detach(&store)), &mail);
    let restored = succeeded(fed(as_me(&mut restore(&store)), &left));
    assert_bytes(&restored, &mail, "restored");
    assert_eq!(files(&folder).len(), 2);
    // A second run adds no objects.
    assert_bytes(
        &detached(as_me(&mut detach(&store)), &mail),
        &left,
        "detached again",
    );
    assert_eq!(files(&folder).len(), 2);
    // With TLS and a private certificate authority.
    let secure = format!("https://127.0.0.1:{}/dav/tls", server.secure);
    fs::create_dir(folder.join("tls")).unwrap();
    let authority = server.folder.path().join("ca.pem");
    let mut over_tls = detach(&secure);
    over_tls.arg("--ca-file").arg(&authority);
    detached(as_me(&mut over_tls), &mail);
    assert_eq!(files(&folder.join("tls")).len(), 2);
    // Without the certificate or the password, the mail is unchanged.
    for (name, user) in [(&secure, true), (&store, false)] {
        let mut command = detach(name);
        if user {
            as_me(&mut command);
        }
        let output = fed(&mut command, &mail);
        assert_bytes(&succeeded(output), &mail, name);
    }
}

#[test]
fn nginx_with_another_content_under_the_name_replaces_nothing() {
    let Some(server) = nginx("nginx_with_another_content_under_the_name", &[]) else {
        return;
    };
    let digits: String = Sha256::digest(octets(1))
        .iter()
        .map(|octet| format!("{octet:02x}"))
        .collect();
    let folder = server.folder.path().join("root/dav");
    let planted = folder.join(&digits[..2]).join(&digits[2..4]).join(&digits);
    fs::create_dir_all(planted.parent().unwrap()).unwrap();
    fs::write(&planted, b"planted").unwrap();
    let store = format!("http://127.0.0.1:{}/dav/", server.port);
    let mail = mail();
    let output = fed(as_me(&mut detach(&store)), &mail);
    assert!(
        stderr(&output).contains("does not match the SHA-256 in its name"),
        "{}",
        stderr(&output)
    );
    let left = succeeded(output);
    assert_eq!(fs::read(&planted).unwrap(), b"planted");
    // The first attachment is still in the mail, the second one was detached.
    assert!((200_000..220_000).contains(&left.len()), "{}", left.len());
    let restored = succeeded(fed(as_me(&mut restore(&store)), &left));
    assert_bytes(&restored, &mail, "restored");
}

/// Starts nginx with a store. Returns the server, and a mail that refers to the store.
fn served(test: &str) -> Option<(Served, Vec<u8>)> {
    let server = nginx(test, &[])?;
    let store = server.folder.path().join("root/store");
    let base = format!("http://127.0.0.1:{}/store/", server.port);
    let mut command = detach(store.to_str().unwrap());
    let left = detached(command.args(["--base-url", &base]), &mail());
    Some((server, left))
}

#[test]
fn restore_and_filter_retrieve_attachments_that_nginx_serves() {
    let Some((server, left)) = served("restore_and_filter_retrieve_attachments_that_nginx_serves")
    else {
        return;
    };
    let port = server.port.to_string();
    for verb in ["restore", "filter"] {
        let mut command = embody();
        command.args([verb, "--fetch", "http", "--allow-net", "127.0.0.1/32"]);
        command.args(["--allow-port", &port]);
        assert_bytes(&succeeded(fed(&mut command, &left)), &mail(), verb);
    }
}

#[test]
fn nmh_stores_what_was_detached() {
    const TEST: &str = "nmh_stores_what_was_detached";
    let Some(mhstore) = program("mhstore").or_else(|| {
        let debian = Path::new("/usr/bin/mh/mhstore");
        debian.is_file().then(|| debian.to_owned())
    }) else {
        return skipped(TEST, "mhstore");
    };
    if program("curl").is_none() {
        return skipped(TEST, "curl");
    }
    let Some((_server, left)) = served(TEST) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    fs::create_dir(here.join("Mail")).unwrap();
    fs::create_dir(here.join("out")).unwrap();
    fs::write(
        here.join("profile"),
        format!("Path: {}/Mail\nnmh-access-url: curl -L\n", here.display()),
    )
    .unwrap();
    let text: Vec<u8> = left
        .iter()
        .copied()
        .filter(|&octet| octet != b'\r')
        .collect();
    fs::write(here.join("mail.eml"), text).unwrap();
    let output = Command::new(mhstore)
        .args(["-auto", "-file", "../mail.eml"])
        .current_dir(here.join("out"))
        .env("MH", here.join("profile"))
        .env("HOME", here)
        .env("no_proxy", "*")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &stderr(&output);
    let stored = files(&here.join("out"));
    for number in [1, 2] {
        assert!(stored.contains(&octets(number)), "{number}: {said}");
    }
}

#[test]
fn python_reads_what_was_detached_from_nginx() {
    const TEST: &str = "python_reads_what_was_detached_from_nginx";
    if program("python3").is_none() {
        return skipped(TEST, "python3");
    }
    let Some((_server, left)) = served(TEST) else {
        return;
    };
    let script = r"
import base64, email, hashlib, sys, urllib.request
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
for part in email.message_from_bytes(sys.stdin.buffer.read()).walk():
    if part.get_content_type() == 'message/external-body':
        url = ''.join(part.get_param('url').split())
        content = opener.open(url).read()
        header = part.get_payload(0)
        assert header['Content-MD5'] == base64.b64encode(hashlib.md5(content).digest()).decode()
        assert int(part.get_param('size')) == len(content)
        print(header.get_content_type(), header.get_filename(), hashlib.sha256(content).hexdigest())
";
    let output = fed(Command::new("python3").args(["-c", script]), &left);
    let lines = String::from_utf8(succeeded(output)).unwrap();
    let hash = |number| {
        let hash = Sha256::digest(octets(number));
        hash.iter()
            .map(|octet| format!("{octet:02x}"))
            .collect::<String>()
    };
    assert_eq!(
        lines,
        format!(
            "image/png one.png {}\nimage/png two.png {}\n",
            hash(1),
            hash(2)
        )
    );
}

/// Signs or verifies standard input (relaxed and simple), with a key from a directory.
const DKIM: &str = r"
import sys, dkim
folder, verb, form = sys.argv[1:4]
mail = sys.stdin.buffer.read()
public = open(folder + '/public.pem').read()
record = b'v=DKIM1; k=rsa; p=' + ''.join(public.splitlines()[1:-1]).encode()
if verb == 'sign':
    key = open(folder + '/private.pem', 'rb').read()
    form = form.encode()
    field = dkim.sign(mail, b'test', b'example.org', key, canonicalize=(form, form),
                      include_headers=[b'from', b'to', b'subject', b'date', b'content-type', b'mime-version'])
    sys.stdout.buffer.write(field + mail)
else:
    sys.stdout.write('pass' if dkim.verify(mail, dnsfunc=lambda *_, **__: record) else 'fail')
";

#[test]
fn a_dkim_signature_holds_again_after_the_way_there_and_back() {
    const TEST: &str = "a_dkim_signature_holds_again_after_the_way_there_and_back";
    if !has_python(TEST, "dkim", "dkimpy") {
        return;
    }
    if program("openssl").is_none() {
        return skipped(TEST, "openssl");
    }
    let folder = tempfile::tempdir().unwrap();
    let keys = folder.path().to_str().unwrap();
    let openssl = |arguments: &str| {
        let mut command = Command::new("openssl");
        command
            .args(arguments.split(' '))
            .current_dir(folder.path());
        succeeded(command.output().unwrap());
    };
    openssl("genrsa -traditional -out private.pem 2048");
    openssl("rsa -in private.pem -pubout -out public.pem");
    let python = |verb: &str, form: &str, mail: &[u8]| {
        let mut command = Command::new("python3");
        succeeded(fed(command.args(["-c", DKIM, keys, verb, form]), mail))
    };
    let path = folder.path().join("store");
    let store = path.to_str().unwrap();
    for form in ["simple", "relaxed"] {
        let signed = python("sign", form, &mail());
        assert_eq!(python("verify", form, &signed), b"pass");
        for more in [
            &[][..],
            &["--note"],
            &["--note-format", "thunderbird"],
            &["--note-format", "thunderbird", "--note"],
        ] {
            let left = detached(detach(store).args(more), &signed);
            assert_eq!(python("verify", form, &left), b"fail", "{more:?}");
            let back = succeeded(fed(&mut restore(store), &left));
            assert_eq!(python("verify", form, &back), b"pass", "{more:?}");
            assert_bytes(&back, &signed, form);
        }
    }
}

/// opendkim, which many mail systems use, verifies the signature, too.
#[test]
fn opendkim_verifies_what_came_back() {
    const TEST: &str = "opendkim_verifies_what_came_back";
    let (Some(opendkim), Some(_)) = (program("opendkim"), program("openssl")) else {
        return skipped(TEST, "opendkim and openssl");
    };
    if !has_python(TEST, "dkim", "dkimpy") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    for arguments in [
        "genrsa -traditional -out private.pem 2048",
        "rsa -in private.pem -pubout -out public.pem",
    ] {
        let mut openssl = Command::new("openssl");
        openssl.args(arguments.split(' ')).current_dir(here);
        succeeded(openssl.output().unwrap());
    }
    let public = fs::read_to_string(here.join("public.pem")).unwrap();
    let key: String = public
        .lines()
        .filter(|line| !line.starts_with('-'))
        .collect();
    // The file of keys replaces the name server.
    fs::write(
        here.join("keys"),
        format!("test._domainkey.example.org v=DKIM1; k=rsa; p={key}\n"),
    )
    .unwrap();
    fs::write(
        here.join("conf"),
        format!("TestPublicKeys {}/keys\n", here.display()),
    )
    .unwrap();
    let mut sign = Command::new("python3");
    let arguments = ["-c", DKIM, here.to_str().unwrap(), "sign", "simple"];
    let signed = succeeded(fed(sign.args(arguments), &mail()));
    let path = here.join("store");
    let store = path.to_str().unwrap();
    let left = detached(&mut detach(store), &signed);
    let back = succeeded(fed(&mut restore(store), &left));
    let verdict = |name: &str, mail: &[u8]| {
        let file = here.join(name);
        fs::write(&file, mail).unwrap();
        let output = Command::new(&opendkim)
            .arg("-x")
            .arg(here.join("conf"))
            .arg("-vvv")
            .arg("-t")
            .arg(&file)
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned() + &stderr(&output)
    };
    let [before, away, after] = [("before", &signed), ("away", &left), ("after", &back)]
        .map(|(name, mail)| verdict(name, mail));
    assert!(
        before.contains("verification (s=test, d=example.org, 2048-bit key) succeeded"),
        "{before}"
    );
    assert!(!away.contains("succeeded"), "{away}");
    assert!(after.contains("succeeded"), "{after}");
}

#[cfg(feature = "s3")]
mod s3 {
    use super::*;
    use crate::common::moto::moto;

    #[test]
    fn a_bucket_keeps_a_store() {
        let Some(moto) = moto("a_bucket_keeps_a_store") else {
            return;
        };
        let mail = mail();
        for store in ["s3://bucket/of/mail", "s3://bucket"] {
            let left = detached(moto.known(&mut detach(store)), &mail);
            let restored = succeeded(fed(moto.known(&mut restore(store)), &left));
            assert_bytes(&restored, &mail, store);
            // In a second run the existing object is read, or PUT results in 412.
            assert_bytes(
                &detached(moto.known(&mut detach(store)), &mail),
                &left,
                store,
            );
        }
        let output = fed(moto.known(&mut detach("s3://nobucket")), &mail);
        assert_bytes(&succeeded(output), &mail, "no bucket");
        // With --on-failure defer, an unreachable server delays the mail.
        drop(moto);
        let mut command = detach("s3://bucket");
        command.args(["--on-failure", "defer"]);
        command
            .env("AWS_ACCESS_KEY_ID", "x")
            .env("AWS_SECRET_ACCESS_KEY", "x");
        command
            .env("AWS_REGION", "x")
            .env("AWS_ENDPOINT_URL", "http://127.0.0.1:9");
        let output = fed(&mut command, &mail);
        assert_eq!(output.status.code(), Some(75), "{}", stderr(&output));
        assert!(output.stdout.is_empty());
    }

    #[test]
    fn a_bucket_with_another_content_under_the_name_keeps_it() {
        let Some(moto) = moto("a_bucket_with_another_content_under_the_name_keeps_it") else {
            return;
        };
        let digits: String = Sha256::digest(octets(1))
            .iter()
            .map(|octet| format!("{octet:02x}"))
            .collect();
        let path = format!("/bucket/{}/{}/{digits}", &digits[..2], &digits[2..4]);
        moto.asked("PUT", &path, b"planted");
        let output = fed(moto.known(&mut detach("s3://bucket")), &mail());
        assert!(
            stderr(&output).contains("does not match the SHA-256 in its name"),
            "{}",
            stderr(&output)
        );
        let left = succeeded(output);
        let kept = moto.asked("GET", &path, b"");
        assert!(
            kept.ends_with(b"planted"),
            "{}",
            String::from_utf8_lossy(&kept)
        );
        let restored = succeeded(fed(moto.known(&mut restore("s3://bucket")), &left));
        assert_bytes(&restored, &mail(), "restored");
    }
}
