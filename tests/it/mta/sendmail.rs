//! `embody milter` in Sendmail: its result is that of the pipe filter, except for the order and the case of field names.
//!
//! Sendmail is in /opt/embody-tests/sendmail, or at the path in EMBODY_SENDMAIL, because Debian's package excludes Postfix. It
//! requires a fully qualified host name, so it runs in a namespace of its own.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use super::milter::{in_a_row, letters};
use crate::common::mail_system::divided;
use crate::common::milter::Milter;
use crate::common::mta::{House, Letter, eventually, is_root, wanted};
use crate::common::programs::{free_port, skipped};
use crate::common::raw::Raw;
use crate::common::smtp::Smtp;

struct Sendmail {
    child: Child,
    port: u16,
    log: PathBuf,
}

impl Drop for Sendmail {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            let log = fs::read_to_string(&self.log).unwrap_or_default();
            eprintln!("what Sendmail says:\n{log}");
        }
    }
}

fn program(test: &str) -> Option<PathBuf> {
    let folder = std::env::var_os("EMBODY_SENDMAIL")
        .map_or("/opt/embody-tests/sendmail".into(), PathBuf::from);
    let program = folder.join("usr/libexec/sendmail/sendmail");
    if !program.is_file() {
        skipped(test, "sendmail");
        return None;
    }
    (is_root(test) && wanted(test, "unshare").is_some()).then_some(program)
}

/// Starts Sendmail with a minimal configuration: incoming mail is sent to the server on this port. A high load of the machine
/// must not keep mail in the queue.
fn start(house: &House, program: &PathBuf, milter: Option<&str>, next: u16) -> Sendmail {
    let port = free_port();
    let queue = house.path(&format!("queue{port}"));
    let milter = milter.map_or_else(String::new, |address| {
        format!("O InputMailFilters=embody\nXembody, S={address}, F=T, T=S:5m;R:5m;E:10m\n")
    });
    fs::create_dir(&queue).unwrap();
    let text = format!(
        "V10/Berkeley\n\
         Cwlocalhost\n\
         Djmail.example.test\n\
         DnMAILER-DAEMON\n\
         O QueueDirectory={}\n\
         O DaemonPortOptions=Port={port}, Addr=127.0.0.1, Name=MTA\n\
         O PidFile={}\n\
         O DeliveryMode=interactive\n\
         O DontProbeInterfaces=true\n\
         O EightBitMode=pass8\n\
         O MaxHeadersLength=0\n\
         O Timeout.ident=0\n\
         O ServiceSwitchFile={}\n\
         O DefaultUser=0:0\n\
         O QueueLA=10000\n\
         O RefuseLA=10000\n\
         {milter}\
         Troot\n\
         HReceived: by $j; $b\n\
         Scanonify=3\n\
         R$* < $* > $*\t$: $2\n\
         R<>\t$@ $n\n\
         Sparse=0\n\
         R$*\t$#next $@ 127.0.0.1 $: $1\n\
         Sfinal=4\n\
         Mlocal, P=/bin/false, F=lsDFMn, S=0, R=0, A=false\n\
         Mprog, P=/bin/false, F=lsDFMn, S=0, R=0, A=false\n\
         Mnext, P=[IPC], F=mDkX8, S=0, R=0, E=\\r\\n, L=0, M=0, T=DNS/RFC822/SMTP, A=TCP [$h] {next}\n",
        queue.display(),
        house.text(&format!("pid{port}")),
        house.write("switch", "hosts files\n").display(),
    );
    let configuration = house.write(&format!("sendmail{port}.cf"), &text);
    let log = house.path("sendmail.log");
    let child = Command::new("unshare")
        .args([
            "--uts",
            "sh",
            "-c",
            "hostname mail.example.test; exec \"$0\" \"$@\"",
        ])
        .arg(program)
        .arg("-C")
        .arg(configuration)
        .arg("-bD")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(fs::File::create(&log).unwrap())
        .spawn()
        .unwrap();
    let sendmail = Sendmail { child, port, log };
    eventually(60, "Sendmail listens", || {
        TcpStream::connect(("127.0.0.1", port)).is_ok()
    });
    sendmail
}

/// Starts a server that accepts mail and stores it with LF.
fn next() -> (Raw, Arc<Mutex<Vec<Vec<u8>>>>) {
    let kept: Arc<Mutex<Vec<Vec<u8>>>> = Arc::default();
    let keep = Arc::clone(&kept);
    let server = Raw::connections(move |stream| {
        let mut writer = stream.try_clone().unwrap();
        let mut say = move |text: &str| writer.write_all(format!("{text}\r\n").as_bytes()).is_ok();
        let mut lines = BufReader::new(stream);
        let mut mail: Option<Vec<u8>> = None;
        say("220 next.example.test");
        loop {
            let mut line = Vec::new();
            if lines.read_until(b'\n', &mut line).unwrap_or(0) == 0 {
                return;
            }
            let line = line.strip_suffix(b"\r\n").unwrap_or(&line);
            let goes_on = match (&mut mail, line) {
                (Some(_), b".") => {
                    keep.lock().unwrap().extend(mail.take());
                    say("250 ok")
                }
                (Some(mail), line) => {
                    mail.extend_from_slice(line.strip_prefix(b".").unwrap_or(line));
                    mail.push(b'\n');
                    true
                }
                (None, [b'E' | b'e', ..]) => say("250-next.example.test\r\n250 8BITMIME"),
                (None, [b'D' | b'd', ..]) => {
                    mail = Some(Vec::new());
                    say("354 go on")
                }
                (None, [b'Q' | b'q', ..]) => {
                    say("221 bye");
                    false
                }
                (None, _) => say("250 ok"),
            };
            if !goes_on {
                return;
            }
        }
    });
    (server, kept)
}

/// Returns the facts of a message that Sendmail keeps: field names in any case and order.
fn kept(message: &[u8]) -> (Vec<(String, Vec<u8>)>, Vec<u8>) {
    let (fields, body) = divided(message).expect("a header of fields");
    let named = |(name, value): (Vec<u8>, Vec<u8>)| {
        let name = String::from_utf8(name).unwrap().to_ascii_lowercase();
        // Sendmail removes trailing spaces.
        (name, value.trim_ascii_end().to_vec())
    };
    let mut fields: Vec<_> = fields.into_iter().map(named).collect();
    fields.retain(|(name, _)| name != "received");
    fields.sort();
    (fields, body)
}

#[test]
fn each_letter_goes_on_as_the_pipe_filter_writes_it() {
    const TEST: &str = "the milter in Sendmail";
    let Some(program) = program(TEST) else { return };
    for is_unix in [true, false] {
        let house = House::new();
        let port = free_port();
        // Sendmail does not connect to a socket in a directory that every user can write to.
        let run = tempfile::tempdir_in("/run").unwrap();
        let socket = run.path().join("milter.sock");
        let (listen, milter) = if is_unix {
            (
                format!("unix:{}", socket.display()),
                format!("local:{}", socket.display()),
            )
        } else {
            (format!("inet:{port}"), format!("inet:{port}@127.0.0.1"))
        };
        let (server, mails) = next();
        let running = Milter::start(&house, &listen, &[]);
        let sendmail = start(&house, &program, Some(&milter), server.address.port());
        // Changes that Sendmail itself makes are not those of the milter.
        let without = start(&house, &program, None, server.address.port());
        let handed_on = |session: &mut Smtp, letter: &Letter| {
            session.send(letter);
            eventually(60, "the run continues", || {
                !mails.lock().unwrap().is_empty()
            });
            mails.lock().unwrap().remove(0)
        };
        let goes_on = |session: &mut Smtp, letter: Letter| {
            let mail = handed_on(session, &letter);
            let piped = Letter {
                sent: letter.arrives.clone(),
                ..letter.clone()
            };
            let expected = handed_on(&mut Smtp::connect(without.port), &piped);
            let text = String::from_utf8_lossy(&mail);
            assert!(
                kept(&mail) == kept(&expected),
                "{}:\n{text:.3000}\nbut\n{:.3000}",
                letter.name,
                letter.arrives
            );
        };
        for letter in letters(&house) {
            goes_on(&mut Smtp::connect(sendmail.port), letter);
        }
        let mut session = Smtp::connect(sendmail.port);
        for letter in in_a_row() {
            goes_on(&mut session, letter);
        }
        assert!(!running.log().contains("defect"), "{}", running.log());
        drop(running);
        // Without the milter, the mail is rejected temporarily, so the sender keeps it.
        assert!(!Smtp::connect(sendmail.port).offer(&Letter::data("nobody-answers")));
    }
}
