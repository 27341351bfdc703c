//! The order of samples/recipes/milter/dkim.cf, with OpenDKIM before and after embody: the incoming signature is verified, and
//! the outgoing one is valid for the changed mail.

use std::fs;
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::milter::{arrives_as, postfix};
use crate::common::milter::Milter;
use crate::common::mta::{House, Letter, eventually};
use crate::common::postfix::Postfix;
use crate::common::programs::{fed, free_port, has_python, program, skipped, stderr};
use crate::common::smtp::Smtp;

/// A process that is killed when the value is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Creates a key with this name in the directory. Returns the record that the name server would return.
fn key(here: &Path, name: &str) -> String {
    for arguments in [
        format!("genrsa -traditional -out {name}.pem 2048"),
        format!("rsa -in {name}.pem -pubout -out {name}.public"),
    ] {
        let mut openssl = Command::new("openssl");
        let output = openssl
            .args(arguments.split(' '))
            .current_dir(here)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
    }
    let public = fs::read_to_string(here.join(format!("{name}.public"))).unwrap();
    let key: String = public
        .lines()
        .filter(|line| !line.starts_with('-'))
        .collect();
    format!("v=DKIM1; k=rsa; p={key}")
}

fn opendkim(opendkim: &Path, here: &Path, name: &str, configuration: &str) -> (Running, u16) {
    let port = free_port();
    let file = here.join(format!("{name}.conf"));
    let text = format!(
        "Socket inet:{port}@127.0.0.1\nRequireSafeKeys no\nSyslog no\nUserID root\n\
         AuthservID mail.example.test\n{configuration}"
    );
    fs::write(&file, text).unwrap();
    let child = Command::new(opendkim)
        .arg("-f")
        .arg("-x")
        .arg(&file)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(fs::File::create(here.join(format!("{name}.log"))).unwrap())
        .spawn()
        .unwrap();
    let running = Running(child);
    eventually(60, "opendkim listens", || {
        TcpStream::connect(("127.0.0.1", port)).is_ok()
    });
    (running, port)
}

/// Signs standard input with in.pem, or verifies it with the keys in the directory.
const DKIM: &str = r"
import dkim, sys
here, what = sys.argv[1:3]
mail = sys.stdin.buffer.read().replace(b'\n', b'\r\n')
if what == 'sign':
    key = open(here + '/in.pem', 'rb').read()
    field = dkim.sign(mail, b'in', b'example.org', key, include_headers=[b'From', b'To', b'Subject', b'Content-Type'])
    sys.stdout.buffer.write((field + mail).replace(b'\r\n', b'\n'))
else:
    keys = dict(line.split(' ', 1) for line in open(here + '/keys').read().splitlines())
    answer = lambda name, timeout=5: keys[name.decode().rstrip('.')].encode()
    for index in range(mail.lower().count(b'\r\ndkim-signature:')):
        d = dkim.DKIM(mail)
        try:
            good = d.verify(idx=index, dnsfunc=answer)
        except Exception as problem:
            good = problem
        print(d.selector.decode() if hasattr(d, 'selector') and d.selector else index, good)
";

#[test]
fn opendkim_verifies_what_comes_and_signs_what_embody_made() {
    const TEST: &str = "opendkim around the milter";
    if !Postfix::possible(TEST) {
        return;
    }
    let (Some(daemon), Some(_)) = (program("opendkim"), program("openssl")) else {
        return skipped(TEST, "opendkim and openssl");
    };
    if !has_python(TEST, "dkim", "dkimpy") {
        return;
    }
    let house = House::new();
    let here = house.folder.path();
    let keys = [("in", key(here, "in")), ("out", key(here, "out"))]
        .map(|(name, record)| format!("{name}._domainkey.example.org {record}\n"));
    fs::write(here.join("keys"), keys.concat()).unwrap();
    let keys = format!("TestPublicKeys {}\n", house.text("keys"));
    let verifying = format!("Mode v\n{keys}AlwaysAddARHeader yes\n");
    let (_verifies, verifies) = opendkim(&daemon, here, "verify", &verifying);
    fs::write(here.join("hosts"), "127.0.0.1\n").unwrap();
    let signing = format!(
        "Mode s\nDomain example.org\nSelector out\nKeyFile {}\nInternalHosts refile:{}\n",
        house.text("out.pem"),
        house.text("hosts")
    );
    let (_signs, signs) = opendkim(&daemon, here, "sign", &signing);

    let python = |what: &str, mail: &[u8]| {
        let output = fed(
            Command::new("python3").args(["-c", DKIM, here.to_str().unwrap(), what]),
            mail,
        );
        assert!(output.status.success(), "{}", stderr(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    let socket = format!("unix:{}", house.text("milter.sock"));
    let _milter = Milter::start(&house, &socket, &[]);
    let order = include_str!("../../../samples/recipes/milter/dkim.cf")
        .lines()
        .find_map(|line| line.strip_prefix("smtpd_milters = "))
        .unwrap()
        .replace("8892", &verifies.to_string())
        .replace("8893", &signs.to_string())
        .replace("unix:embody/milter.sock", &socket);
    let postfix = postfix(&house, &order, &[]);
    // embody accepts the second letter before its body arrives, which must not affect the letters after it.
    for (mut letter, is_changed) in [
        (Letter::data("signed"), true),
        (Letter::text("text"), false),
    ] {
        // A mail system may change 8-bit characters and trailing spaces of a subject.
        letter.sent = letter.sent.replace('\u{fc}', "u");
        letter.arrives = letter.arrives.replace('\u{fc}', "u");
        let signed = python("sign", letter.sent.as_bytes());
        assert!(signed.starts_with("DKIM-Signature:") && signed.ends_with(&letter.sent));
        letter.sent = signed;

        Smtp::connect(postfix.port).send(&letter);
        let mail = arrives_as(&house, &letter);
        let text = String::from_utf8(mail).unwrap();
        assert!(text.contains("dkim=pass"), "{text}");
        assert_eq!(text.matches("DKIM-Signature:").count(), 2, "{text}");
        let message = &text[text.find("DKIM-Signature:").unwrap()..];
        let printed = python("verify", format!("X: a\n{message}").as_bytes());
        let mut verdicts: Vec<&str> = printed.lines().collect();
        verdicts.sort_unstable();
        assert_eq!(verdicts.len(), 2, "{verdicts:?}\n{text}");
        assert!(verdicts[1] == "out True", "{verdicts:?}\n{text}");
        assert_eq!(verdicts[0] != "in True", is_changed, "{verdicts:?}\n{text}");
    }
}
