//! Logins, and the protection of the password: TLS from the start and STARTTLS, passwords and tokens.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::process::Output;
use std::sync::Arc;
use std::thread;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedKey, IsCa, KeyPair, date_time_ymd,
    generate_simple_self_signed,
};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use tempfile::TempDir;

use super::scripted::Scripted;
use crate::common::programs::{embody, fed, stderr};

fn inspect(url: &str, more: &[&str]) -> Output {
    embody()
        .args(["inspect", url])
        .args(more)
        .env_remove("EMBODY_IMAP_PASSWORD_FILE")
        .output()
        .unwrap()
}

fn at(server: &Scripted, login: &str) -> String {
    format!("imap://{login}@127.0.0.1:{}/", server.port)
}

fn offering(capabilities: &'static str) -> Scripted {
    Scripted::answering(move |command| match command {
        "greeting" => Some(format!("* OK [CAPABILITY IMAP4rev1 {capabilities}] hi\r\n")),
        "CAPABILITY" => Some(format!(
            "* CAPABILITY IMAP4rev1 {capabilities}\r\nTAG OK done\r\n"
        )),
        _ => None,
    })
}

#[test]
fn a_login_is_what_the_documents_say() {
    let plain = STANDARD.encode("\0me\0se cret\"\u{fc}");
    let xoauth = STANDARD.encode("user=me\u{1}auth=Bearer se cret\"\u{fc}\u{1}\u{1}");
    for (login, capabilities, said) in [
        (
            "me",
            "AUTH=PLAIN SASL-IR",
            format!("AUTHENTICATE PLAIN {plain}"),
        ),
        ("me", "", "LOGIN \"me\"{10}se cret\"\u{fc}".to_owned()),
        (
            "me;AUTH=XOAUTH2",
            "AUTH=XOAUTH2 SASL-IR",
            format!("AUTHENTICATE XOAUTH2 {xoauth}"),
        ),
    ] {
        let server = offering(capabilities);
        let output = inspect(
            &at(&server, login),
            &[
                "--allow-plaintext",
                "--password-command",
                "printf 'se cret\"\u{fc}\\nmore\\n'",
            ],
        );
        assert_eq!(
            output.status.code(),
            Some(0),
            "{login}: {}",
            stderr(&output)
        );
        let heard: Vec<String> = server
            .heard()
            .iter()
            .map(|line| line.replace("LOGIN \"me\" {", "LOGIN \"me\"{"))
            .collect();
        assert!(heard.contains(&said), "{said}: {heard:?}");
    }
    let server = offering("AUTH=OAUTHBEARER SASL-IR");
    let output = inspect(
        &at(&server, "me%2C;AUTH=OAUTHBEARER"),
        &["--allow-plaintext", "--password-command", "echo token"],
    );
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let wanted = format!(
        "n,a=me=2C,\u{1}host=127.0.0.1\u{1}port={}\u{1}auth=Bearer token\u{1}\u{1}",
        server.port
    );
    assert!(server.heard().contains(&format!(
        "AUTHENTICATE OAUTHBEARER {}",
        STANDARD.encode(wanted)
    )));
}

#[test]
fn a_token_that_expired_is_asked_for_again_once() {
    let server = Scripted::answering(|command| match command {
        "greeting" => Some("* OK [CAPABILITY IMAP4rev1 AUTH=XOAUTH2 SASL-IR] hi\r\n".into()),
        command if command.starts_with("AUTHENTICATE") => {
            let coded = command.rsplit(' ').next().unwrap();
            let message = String::from_utf8(STANDARD.decode(coded).unwrap()).unwrap();
            Some(if message.contains("token-2") {
                "TAG OK done\r\n".into()
            } else {
                "TAG NO [AUTHENTICATIONFAILED] expired\r\n".into()
            })
        }
        _ => None,
    });
    let folder = TempDir::new().unwrap();
    let count = folder.path().join("count");
    let command = format!("echo x >> {0}; echo token-$(wc -l < {0})", count.display());
    let url = at(&server, "me;AUTH=XOAUTH2");
    let output = inspect(&url, &["--allow-plaintext", "--password-command", &command]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(fs::read_to_string(&count).unwrap(), "x\nx\n");
    // If the command prints the same token again, it is not run in a loop.
    let output = inspect(
        &url,
        &["--allow-plaintext", "--password-command", "echo token-1"],
    );
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("cannot log in: expired") && !stderr(&output).contains("token-1")
    );
}

#[test]
fn a_password_comes_from_a_file_or_a_command_and_is_said_nowhere() {
    let server = offering("AUTH=PLAIN SASL-IR");
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("password");
    fs::write(&file, "hidden\r\n").unwrap();
    let report = folder.path().join("report");
    let out = folder.path().join("out");
    let with_file = |name: &Path| {
        embody()
            .arg("convert")
            .arg(at(&server, "me"))
            .args(["--allow-plaintext", "--verbose", "--report"])
            .arg(&report)
            .arg("--output")
            .arg(&out)
            .env("EMBODY_IMAP_PASSWORD_FILE", name)
            .output()
            .unwrap()
    };
    let output = with_file(&file);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let said = STANDARD.encode("\0me\0hidden");
    assert!(
        server
            .heard()
            .contains(&format!("AUTHENTICATE PLAIN {said}"))
    );
    let told = format!(
        "{}{}",
        stderr(&output),
        fs::read_to_string(&report).unwrap()
    );
    assert!(!told.contains("hidden") && !told.contains(&said), "{told}");
    fs::write(&file, "").unwrap();
    let detach = |url: &str| {
        let mut detach = embody();
        detach
            .args(["detach", "--store"])
            .arg(folder.path())
            .arg(url);
        detach.output().unwrap()
    };
    for (output, named) in [
        (
            detach("imaps://me:hidden@h/INBOX"),
            "with --in-place, or with --output",
        ),
        (with_file(&file), "the password is empty"),
        (with_file(&folder.path().join("none")), "the password file"),
        (
            inspect(
                &at(&server, "me"),
                &[
                    "--allow-plaintext",
                    "--password-command",
                    "echo hidden; exit 3",
                ],
            ),
            "the password command failed",
        ),
        (
            inspect(&at(&server, "me"), &["--allow-plaintext"]),
            "there is no terminal",
        ),
        (
            inspect(&at(&server, "me:hidden"), &["--allow-plaintext"]),
            "the URL contains a password",
        ),
        (
            inspect(
                "imap://me@mail.example.org/",
                &["--allow-plaintext", "--password-command", "echo hidden"],
            ),
            "on this computer",
        ),
        (
            inspect("samples", &["--connections", "3"]),
            "work only with imaps: or imap:",
        ),
    ] {
        assert_ne!(output.status.code(), Some(0), "{named}");
        assert!(
            stderr(&output).contains(named),
            "{named}: {}",
            stderr(&output)
        );
        assert!(!stderr(&output).contains("hidden"), "{}", stderr(&output));
    }
}

/// Starts a TLS proxy for a scripted server, from the start or with STARTTLS. Returns its port, and a file with its
/// certificate.
fn with_tls(folder: &Path, starts: bool) -> (u16, std::path::PathBuf) {
    let certified = generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    with_certificate(folder, starts, certified)
}

fn with_certificate(
    folder: &Path,
    starts: bool,
    certified: CertifiedKey<KeyPair>,
) -> (u16, std::path::PathBuf) {
    let CertifiedKey { cert, signing_key } = certified;
    let file = folder.join("ca.pem");
    fs::write(&file, cert.pem()).unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(signing_key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let server_config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key)
        .unwrap();
    let config = Arc::new(server_config);
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let config = Arc::clone(&config);
            thread::spawn(move || {
                let mut line = [0; 100];
                if !starts {
                    stream
                        .write_all(b"* OK [CAPABILITY IMAP4rev1 STARTTLS AUTH=NOTHING] hi\r\n")
                        .unwrap();
                    let read = stream.read(&mut line).unwrap();
                    assert_eq!(&line[..read], b"e1 STARTTLS\r\n");
                    stream.write_all(b"e1 OK go on\r\n").unwrap();
                }
                let connection = ServerConnection::new(config).unwrap();
                let mut tls = StreamOwned::new(connection, stream);
                if starts && tls.write_all(b"* OK hi\r\n").is_err() {
                    return;
                }
                // Each command arrives in a separate packet, because there are only few.
                while let Ok(read @ 1..) = tls.read(&mut line) {
                    let said = String::from_utf8_lossy(&line[..read]).into_owned();
                    let (tag, command) = said.split_once(' ').unwrap();
                    let says = match command.trim_end() {
                        "CAPABILITY" => "* CAPABILITY IMAP4rev1 AUTH=PLAIN SASL-IR\r\n".to_owned(),
                        command => super::scripted::plain(command).replace("TAG OK done\r\n", ""),
                    };
                    let _ = tls.write_all(format!("{says}{tag} OK done\r\n").as_bytes());
                }
            });
        }
    });
    (port, file)
}

#[test]
fn tls_requires_a_trusted_certificate_for_the_host() {
    for (starts, scheme) in [(true, "imaps"), (false, "imap")] {
        let folder = TempDir::new().unwrap();
        let (port, file) = with_tls(folder.path(), starts);
        let file = file.to_str().unwrap();
        let url = |host: &str| format!("{scheme}://me@{host}:{port}/");
        let asked = ["--password-command", "echo secret", "--timeout", "5s"];
        let output = inspect(
            &url("localhost"),
            &[asked.as_slice(), &["--ca-file", file]].concat(),
        );
        assert_eq!(
            output.status.code(),
            Some(0),
            "{scheme}: {}",
            stderr(&output)
        );
        assert!(String::from_utf8_lossy(&output.stdout).contains("INBOX: 2 messages"));
        // The other commands that read accounts have the same option.
        let out = folder.path().join("out");
        let (out, merged) = (out.to_str().unwrap(), folder.path().join("merged"));
        let merged = merged.to_str().unwrap();
        let url_of = url("localhost");
        for arguments in [
            vec!["convert", &url_of, "--output", out],
            vec!["compare", &url_of, out],
            vec!["merge", &url_of, out, "--output", merged],
            vec!["inspect", "--duplicates", &url_of],
        ] {
            for is_trusted in [false, true] {
                let ca_file: &[&str] = if is_trusted {
                    &["--ca-file", file]
                } else {
                    &[]
                };
                let output = embody()
                    .args(&arguments)
                    .args(asked)
                    .args(ca_file)
                    .output()
                    .unwrap();
                let code = output.status.code();
                assert_eq!(
                    code == Some(0),
                    is_trusted,
                    "{arguments:?}: {}",
                    stderr(&output)
                );
            }
        }
        for verb in ["compare", "merge"] {
            let more: &[&str] = if verb == "merge" {
                &["--output", "x"]
            } else {
                &[]
            };
            let output = embody()
                .args([verb, out, out, "--timeout", "5s"])
                .args(more)
                .output()
                .unwrap();
            assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        }
        // A host name that is not in the certificate, and an untrusted certificate.
        for output in [
            inspect(
                &url("127.0.0.1"),
                &[asked.as_slice(), &["--ca-file", file]].concat(),
            ),
            inspect(&url("localhost"), &asked),
        ] {
            assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
            assert!(
                stderr(&output).contains("cannot establish a secure connection"),
                "{}",
                stderr(&output)
            );
        }
    }
}

/// Certificates as `openssl req -x509` and Proton Mail Bridge create them: the certificate declares itself to be an authority.
#[test]
fn server_with_its_own_certificate_in_the_ca_file_is_trusted_under_its_name_until_it_expires() {
    let certified = |name: &str, last_year: i32| {
        let mut parameters = CertificateParams::new(vec![name.to_owned()]).unwrap();
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        parameters.not_before = date_time_ymd(2000, 1, 1);
        parameters.not_after = date_time_ymd(last_year, 1, 1);
        let signing_key = KeyPair::generate().unwrap();
        let cert = parameters.self_signed(&signing_key).unwrap();
        CertifiedKey { cert, signing_key }
    };
    let asked = [
        "--password-command",
        "echo secret",
        "--timeout",
        "5s",
        "--ca-file",
    ];
    for (name, last_year, is_trusted) in [
        ("localhost", 4000, true),
        ("other.example.org", 4000, false),
        ("localhost", 2001, false),
    ] {
        let folder = TempDir::new().unwrap();
        let (port, file) = with_certificate(folder.path(), true, certified(name, last_year));
        let url = format!("imaps://me@localhost:{port}/");
        let output = inspect(
            &url,
            &[asked.as_slice(), &[file.to_str().unwrap()]].concat(),
        );
        let said = stderr(&output);
        let code = if is_trusted { 0 } else { 1 };
        assert_eq!(
            output.status.code(),
            Some(code),
            "{name} {last_year}: {said}"
        );
        assert!(
            is_trusted || said.contains("cannot establish a secure connection"),
            "{said}"
        );
        // Another certificate with the same name is not accepted.
        let other = folder.path().join("other.pem");
        fs::write(&other, certified(name, last_year).cert.pem()).unwrap();
        let output = inspect(
            &url,
            &[asked.as_slice(), &[other.to_str().unwrap()]].concat(),
        );
        assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    }
}

#[test]
fn plain_that_the_server_does_not_understand_is_followed_by_one_login() {
    for (login, capabilities, says, heard, code) in [
        (
            "me",
            "AUTH=PLAIN AUTH=LOGIN SASL-IR",
            "BAD Argument Error",
            "AUTHENTICATE PLAIN,LOGIN",
            0,
        ),
        (
            "me",
            "AUTH=PLAIN SASL-IR",
            "NO unsupported authentication mechanism",
            "AUTHENTICATE PLAIN,LOGIN",
            0,
        ),
        (
            "me",
            "AUTH=PLAIN SASL-IR",
            "NO [AUTHENTICATIONFAILED] not supported for you",
            "AUTHENTICATE PLAIN",
            1,
        ),
        (
            "me",
            "AUTH=PLAIN SASL-IR",
            "NO wrong password",
            "AUTHENTICATE PLAIN",
            1,
        ),
        (
            "me",
            "AUTH=PLAIN LOGINDISABLED SASL-IR",
            "BAD Argument Error",
            "AUTHENTICATE PLAIN",
            1,
        ),
        (
            "me;AUTH=PLAIN",
            "AUTH=PLAIN AUTH=LOGIN SASL-IR",
            "BAD Argument Error",
            "AUTHENTICATE PLAIN",
            1,
        ),
        (
            "me;AUTH=LOGIN",
            "AUTH=PLAIN AUTH=LOGIN SASL-IR",
            "BAD Argument Error",
            "LOGIN",
            0,
        ),
        (
            "me;AUTH=LOGIN",
            "AUTH=PLAIN LOGINDISABLED",
            "BAD Argument Error",
            "",
            1,
        ),
        (
            "me;AUTH=LOGIN",
            "AUTH=LOGIN LOGINDISABLED SASL-IR",
            "BAD Argument Error",
            "AUTHENTICATE LOGIN",
            0,
        ),
        (
            "me",
            "AUTH=LOGIN LOGINDISABLED",
            "BAD Argument Error",
            "AUTHENTICATE LOGIN",
            0,
        ),
    ] {
        let server = Scripted::answering(move |command| match command {
            "greeting" => Some(format!("* OK [CAPABILITY IMAP4rev1 {capabilities}] hi\r\n")),
            "CAPABILITY" => Some(format!(
                "* CAPABILITY IMAP4rev1 {capabilities}\r\nTAG OK x\r\n"
            )),
            "AUTHENTICATE LOGIN" => Some("+ VXNlcm5hbWU6\r\n+ UGFzc3dvcmQ6\r\n".into()),
            // The two lines of AUTHENTICATE LOGIN have no tag.
            "bWU=" => Some(String::new()),
            "c2VjcmV0" => Some("e1 OK in\r\ne2 OK in\r\n".into()),
            _ if command.starts_with("AUTHENTICATE PLAIN") => Some(format!("TAG {says}\r\n")),
            _ => None,
        });
        let output = inspect(
            &at(&server, login),
            &[
                "--allow-plaintext",
                "--password-command",
                "echo secret",
                "--timeout",
                "2s",
            ],
        );
        let said = stderr(&output);
        let tried: Vec<String> = server
            .heard()
            .iter()
            .filter(|line| line.starts_with("AUTH") || line.starts_with("LOGIN "))
            .map(|line| match line.strip_prefix("AUTHENTICATE ") {
                Some(rest) => format!("AUTHENTICATE {}", rest.split(' ').next().unwrap()),
                None => "LOGIN".to_owned(),
            })
            .collect();
        if heard == "AUTHENTICATE LOGIN" {
            // This server cannot distinguish the lines without a tag, so only the sent commands are compared.
            assert_eq!(
                tried.first().map(String::as_str),
                Some(heard),
                "{login} {capabilities}: {said}"
            );
            assert!(
                server.heard().iter().any(|line| line == "bWU="),
                "{:?}",
                server.heard()
            );
            continue;
        }
        assert_eq!(
            tried.join(","),
            heard,
            "{login} {capabilities} {says}: {said}"
        );
        assert_eq!(
            output.status.code(),
            Some(code),
            "{login} {capabilities} {says}: {said}"
        );
        assert!(!said.contains("secret"), "{said}");
    }
}

/// A loop over accounts reads their names from the standard input of embody, and SIGCHLD can be ignored since the parent.
#[test]
fn password_command_reads_no_standard_input_and_needs_no_sigchld() {
    let folder = TempDir::new().unwrap();
    let seen = folder.path().join("seen");
    for prefix in ["", "trap '' CHLD; "] {
        let server = offering("AUTH=PLAIN SASL-IR");
        let asked = format!("cat > {}; echo hidden", seen.display());
        let mut command = std::process::Command::new("sh");
        command.args(["-c", &format!("{prefix}exec \"$0\" \"$@\"")]);
        command.arg(embody().get_program());
        command.args(["inspect", &at(&server, "me"), "--allow-plaintext"]);
        command.args(["--password-command", &asked]);
        let output = fed(&mut command, b"you\nthey\n");
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert_eq!(fs::read(&seen).unwrap(), b"");
    }
}
