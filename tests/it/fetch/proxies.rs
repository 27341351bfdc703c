//! `--proxy` with common proxies: tinyproxy, Squid with the configuration of Debian, and mitmproxy.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::common::filter::{filled, filter, mail, open, reference};
use crate::common::programs::{Served, free_port, nginx, program, serving, skipped, wait_for};

const GIF: &[u8] = b"GIF89a\0\r\nnot a picture, but nobody looks at that";
const TEXT: &[u8] = b"hello, hello, hello\nworld";
const FILES: &[(&str, &[u8])] = &[("dot.gif", GIF), ("hello.txt", TEXT)];

/// Waits until a proxy is ready. `log` is a file in its directory.
fn started(mut command: Command, port: u16, folder: tempfile::TempDir) -> Served {
    let log = folder.path().join("log");
    let mut child = command
        .stdin(Stdio::null())
        .stdout(fs::File::create(folder.path().join("stdout")).unwrap())
        .stderr(fs::File::create(&log).unwrap())
        .spawn()
        .unwrap();
    wait_for(port, &mut child, &log);
    serving(child, port, folder)
}

/// Asserts that files of the server are retrieved through `proxy`: http, and https unless the proxy allows CONNECT only to port
/// 443.
fn retrieves(server: &Served, proxy: &str, connects: bool) {
    let plain = |path: &str| format!("http://127.0.0.1:{}{path}", server.port);
    let secure = |path: &str| format!("https://127.0.0.1:{}{path}", server.secure);
    let ca = server.folder.path().join("ca.pem");
    let options = format!(
        "{} --ca-file {} --proxy {proxy}",
        open(&[server.port, server.secure]),
        ca.display()
    );
    let rows: &[(String, String, &str, &[u8])] = &[
        (plain("/dot.gif"), plain("/dot.gif"), "image/gif", GIF),
        (
            plain("/hello.txt?x=y"),
            plain("/hello.txt?x=y"),
            "text/plain",
            TEXT,
        ),
        (plain("/moved"), plain("/hello.txt"), "text/plain", TEXT),
    ];
    let before: Vec<_> = rows
        .iter()
        .map(|(url, _, declared, _)| reference(url, declared))
        .collect();
    let after: Vec<_> = rows
        .iter()
        .map(|(_, location, declared, body)| filled(Some(location), declared, body))
        .collect();
    filter(&options, &mail(&before)).gives(&mail(&after));

    let gone = mail(&[reference(&plain("/gone"), "image/gif")]);
    filter(&options, &gone).leaves(&gone, &["http-status"]);
    // Two runs with the same cache. The second one sends no requests, or validates the stored responses.
    let cache = tempfile::tempdir().unwrap();
    let cached = format!("{options} --cache {}", cache.path().join("cache").display());
    for _ in 0..2 {
        filter(&cached, &mail(&before)).gives(&mail(&after));
    }

    let before = mail(&[reference(&secure("/dot.gif"), "image/gif")]);
    let ran = filter(&options, &before);
    if connects {
        ran.gives(&mail(&[filled(
            Some(&secure("/dot.gif")),
            "image/gif",
            GIF,
        )]));
    } else {
        ran.leaves(&before, &["connection-failed"]);
        assert!(ran.stderr.contains("403"), "{}", ran.stderr);
    }
}

/// With a wrong password and without one, the message names the proxy. tinyproxy responds to a wrong password with 401, like a
/// server.
fn wants_a_password(server: &Served, place: &str) {
    let url = format!("http://127.0.0.1:{}/dot.gif", server.port);
    let before = mail(&[reference(&url, "image/gif")]);
    for user in ["", "me:wrong@"] {
        let options = format!("{} --proxy http://{user}{place}", open(&[server.port]));
        let ran = filter(&options, &before);
        ran.gives(&before);
        let named = format!("the proxy {place}");
        assert!(ran.stderr.contains(&named), "{}", ran.stderr);
        assert!(!ran.stderr.contains("wrong"), "{}", ran.stderr);
    }
}

#[test]
fn tinyproxy_carries_the_requests_of_a_run_with_and_without_a_password() {
    let Some(tinyproxy) = program("tinyproxy") else {
        return skipped("tinyproxy", "tinyproxy");
    };
    let Some(server) = nginx("tinyproxy", FILES) else {
        return;
    };
    for is_secret in [false, true] {
        let (port, folder) = (free_port(), tempfile::tempdir().unwrap());
        let file = folder.path().join("tinyproxy.conf");
        let password = if is_secret {
            "BasicAuth me secret\n"
        } else {
            ""
        };
        let secure = server.secure;
        let configuration =
            format!("Port {port}\nListen 127.0.0.1\nTimeout 60\nConnectPort {secure}\n{password}");
        fs::write(&file, configuration).unwrap();
        let mut command = Command::new(&tinyproxy);
        command.arg("-d").arg("-c").arg(file);
        let _proxy = started(command, port, folder);
        if is_secret {
            retrieves(&server, &format!("http://me:secret@127.0.0.1:{port}"), true);
            wants_a_password(&server, &format!("127.0.0.1:{port}"));
        } else {
            retrieves(&server, &format!("http://127.0.0.1:{port}"), true);
        }
    }
}

/// The default configuration of Squid allows CONNECT only to port 443. So https to the port of the test is refused, but http is
/// not.
#[test]
fn squid_carries_the_requests_of_a_run_and_https_only_if_allowed() {
    let stock = Path::new("/etc/squid/squid.conf");
    let squid = program("squid").filter(|_| stock.exists());
    let Some(squid) = squid else {
        return skipped("squid", "squid");
    };
    let Some(server) = nginx("squid", FILES) else {
        return;
    };
    let stock = fs::read_to_string(stock).unwrap();
    for connects in [false, true] {
        let (port, folder) = (free_port(), tempfile::tempdir().unwrap());
        let here = folder.path().display();
        // Squid drops its privileges, and then writes to this directory.
        let anybody = std::os::unix::fs::PermissionsExt::from_mode(0o777);
        fs::set_permissions(folder.path(), anybody).unwrap();
        let mut configuration = stock.replace("\nhttp_port 3128\n", "\n");
        assert_ne!(configuration, stock);
        configuration.push_str(&format!(
            "\nhttp_port 127.0.0.1:{port}\npid_filename {here}/pid\ncache_log {here}/cache.log\n\
             access_log none\nshutdown_lifetime 0 seconds\npinger_enable off\n"
        ));
        if connects {
            let secure = format!("\nacl SSL_ports port {}\n", server.secure);
            configuration.insert_str(0, &secure);
        }
        let file = folder.path().join("squid.conf");
        fs::write(&file, configuration).unwrap();
        let mut command = Command::new(&squid);
        command.arg("-N").arg("-f").arg(file);
        let _proxy = started(command, port, folder);
        retrieves(&server, &format!("http://127.0.0.1:{port}"), connects);
    }
}

/// `.ci/peers` installs mitmproxy and sets the variable. Its packages have 130 MB, so the test may be skipped elsewhere.
#[test]
fn mitmproxy_carries_the_requests_of_a_run_only_with_the_password() {
    let Some(mitmdump) = program("mitmdump") else {
        let may_miss = std::env::var_os("EMBODY_REQUIRE_MITMPROXY").is_none();
        assert!(may_miss, "mitmproxy: there is no mitmdump");
        return println!("mitmproxy: skipped, there is no mitmdump");
    };
    let Some(server) = nginx("mitmproxy", FILES) else {
        return;
    };
    let (port, folder) = (free_port(), tempfile::tempdir().unwrap());
    let mut command = Command::new(&mitmdump);
    command
        .args(["--quiet", "--listen-host", "127.0.0.1", "--listen-port"])
        .arg(port.to_string())
        .args(["--proxyauth", "me:secret"])
        // mitmproxy must not decrypt TLS in this test.
        .args([
            "--ignore-hosts",
            &format!("^127[.]0[.]0[.]1:{}$", server.secure),
        ])
        .arg("--set")
        .arg(format!("confdir={}", folder.path().display()));
    let _proxy = started(command, port, folder);
    retrieves(&server, &format!("http://me:secret@127.0.0.1:{port}"), true);
    wants_a_password(&server, &format!("127.0.0.1:{port}"));
}
