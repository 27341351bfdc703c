//! A stored response is used only with the certificates and the proxy with which it was retrieved (docs/cache.md).

use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use crate::common::filter::{filled, filter, mail, open, reference};
use crate::common::programs::{certificates, embody, free_port, nginx_with, stderr};
use crate::common::raw::{Raw, ok};

const BODY: &[u8] = b"GIF89a of whom it was";

const FRESH: &str = "location /a.gif { add_header Cache-Control max-age=3600; }";

#[test]
fn response_verified_with_a_ca_file_is_not_served_without_that_file() {
    let name = "response_verified_with_a_ca_file_is_not_served_without_that_file";
    let Some(server) = nginx_with(name, &[("a.gif", BODY)], FRESH) else {
        return;
    };
    let here = server.folder.path();
    let secure = |path: &str| format!("https://127.0.0.1:{}{path}", server.secure);
    let cached = format!(
        "{} --cache {}",
        open(&[server.secure]),
        here.join("cache").display()
    );
    let trusting = |path: &Path| format!("{cached} --ca-file {}", path.display());
    let first = trusting(&here.join("ca.pem"));

    let before = mail(&[reference(&secure("/a.gif"), "image/gif")]);
    let after = mail(&[filled(Some(&secure("/a.gif")), "image/gif", BODY)]);
    let gone = mail(&[reference(&secure("/gone"), "image/gif")]);
    filter(&first, &before).gives(&after);
    filter(&first, &gone).leaves(&gone, &["http-status"]);

    // Without the certificate, and with another one, the request is sent and fails.
    fs::create_dir(here.join("other")).unwrap();
    certificates(&here.join("other"));
    for options in [cached.clone(), trusting(&here.join("other/ca.pem"))] {
        filter(&options, &before).leaves(&before, &["tls-failed"]);
        filter(&options, &gone).leaves(&gone, &["tls-failed"]);
        let offline = format!("{options} --offline");
        filter(&offline, &before).leaves(&before, &["offline"]);
        filter(&offline, &gone).leaves(&gone, &["offline"]);
    }
    fs::write(here.join("m.eml"), &before).unwrap();
    let probe = embody()
        .args(["inspect", "--probe", "--json"])
        .args(cached.split(' '))
        .arg(here.join("m.eml"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&probe.stdout);
    assert!(said.contains("tls-failed"), "{said}{}", stderr(&probe));

    // The same certificates in another file, and then the first file again: the stored responses are used.
    fs::copy(here.join("ca.pem"), here.join("copy.pem")).unwrap();
    for path in ["ca.pem", "copy.pem"] {
        let offline = format!("{} --offline", trusting(&here.join(path)));
        filter(&offline, &before).gives(&after);
        filter(&offline, &gone).leaves(&gone, &["http-status"]);
    }
    // Other certificates in the same file are different.
    fs::copy(here.join("other/ca.pem"), here.join("copy.pem")).unwrap();
    filter(&trusting(&here.join("copy.pem")), &before).leaves(&before, &["tls-failed"]);
}

#[test]
fn response_verified_with_ssl_cert_file_is_not_served_without_that_variable() {
    let name = "response_verified_with_ssl_cert_file_is_not_served_without_that_variable";
    let Some(server) = nginx_with(name, &[("a.gif", BODY)], FRESH) else {
        return;
    };
    let here = server.folder.path();
    let url = format!("https://127.0.0.1:{}/a.gif", server.secure);
    let before = mail(&[reference(&url, "image/gif")]);
    fs::write(here.join("m.eml"), &before).unwrap();
    let filled = |offline: &[&str], file: Option<&Path>| {
        let mut command = embody();
        command
            .arg("filter")
            .args(open(&[server.secure]).split(' '))
            .arg("--cache")
            .arg(here.join("cache"))
            .args(offline)
            .arg(here.join("m.eml"))
            .env_remove("SSL_CERT_DIR")
            .env_remove("SSL_CERT_FILE");
        if let Some(file) = file {
            command.env("SSL_CERT_FILE", file);
        }
        let ran = command.output().unwrap();
        assert!(ran.status.success(), "{}", stderr(&ran));
        ran.stdout != before
    };
    let named = here.join("ca.pem");
    assert!(filled(&[], Some(&named)));
    assert!(filled(&["--offline"], Some(&named)));
    assert!(!filled(&["--offline"], None));
    assert!(!filled(&[], None));
}

fn fresh(body: &[u8]) -> Raw {
    let answer = String::from_utf8(ok("image/gif", body)).unwrap();
    Raw::saying(answer.replacen("\r\n", "\r\nCache-Control: max-age=3600\r\n", 1))
}

#[test]
fn response_through_one_proxy_is_not_used_with_another_proxy_or_without() {
    let servers = [
        fresh(b"GIF89a of the first"),
        fresh(b"GIF89a of the second"),
    ];
    let proxies = [0, 1].map(|at| Raw::proxy("127.0.0.1", servers[at].address));
    let folder = tempfile::tempdir().unwrap();
    // No server listens on this port, so only a proxy can respond.
    let port = free_port();
    let url = format!("http://127.0.0.1:{port}/a.gif");
    let before = mail(&[reference(&url, "image/gif")]);
    let direct = format!(
        "{} --cache {}",
        open(&[port]),
        folder.path().join("cache").display()
    );
    let through = |number: usize, password: &str| {
        let address = proxies[number].address;
        format!("{direct} --proxy http://me:{password}@{address}")
    };
    let afters = [&b"GIF89a of the first"[..], b"GIF89a of the second"]
        .map(|body| mail(&[filled(Some(&url), "image/gif", body)]));

    filter(&direct, &before).leaves(&before, &["connection-failed"]);
    filter(&through(0, "a"), &before).gives(&afters[0]);
    filter(&through(1, "a"), &before).gives(&afters[1]);
    // The password of the proxy is not part of the key, so another password makes no difference.
    for number in [0, 1] {
        filter(&format!("{} --offline", through(number, "b")), &before).gives(&afters[number]);
        assert_eq!(servers[number].count(), 1);
    }
    filter(&format!("{direct} --offline"), &before).leaves(&before, &["offline"]);
    filter(&direct, &before).leaves(&before, &["connection-failed"]);
    // No stored file contains the password.
    let found = std::process::Command::new("grep")
        .args(["-r", "me:"])
        .arg(folder.path())
        .output()
        .unwrap();
    assert!(found.stdout.is_empty());
}

/// Returns the only record in a cache.
fn record(cache: &Path) -> PathBuf {
    let mut found = Vec::new();
    for folder in fs::read_dir(cache.join("keys")).unwrap() {
        for file in fs::read_dir(folder.unwrap().path()).unwrap() {
            found.push(file.unwrap().path());
        }
    }
    assert_eq!(found.len(), 1);
    found.remove(0)
}

#[test]
fn cache_record_without_trust_information_is_ignored() {
    let server = fresh(BODY);
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cache");
    let url = server.url("/a.gif");
    let before = mail(&[reference(&url, "image/gif")]);
    let after = mail(&[filled(Some(&url), "image/gif", BODY)]);
    let options = format!(
        "{} --cache {}",
        open(&[server.address.port()]),
        cache.display()
    );
    let offline = format!("{options} --offline");
    filter(&options, &before).gives(&after);
    filter(&offline, &before).gives(&after);

    // The record in the format of version 0.1.1, under its old name and under the current one.
    let now = record(&cache);
    let text = fs::read_to_string(&now).unwrap();
    let (line, _) = text.split_once('\n').unwrap();
    let (start, rest) = line.split_once("\"trust\":\"").unwrap();
    let (trust, end) = rest.split_once("\",").unwrap();
    assert!(trust.starts_with("system"), "{trust}");
    let line = format!("{start}{end}");
    let hash = |text: &str| -> String {
        let digits = Sha256::digest(text);
        digits.iter().map(|octet| format!("{octet:02x}")).collect()
    };
    let octets = format!("{line}\n\"{}\"\n", hash(&line));
    let name = hash(&format!("GET\n{url}\nimage/gif"));
    let then = cache.join("keys").join(&name[..2]).join(&name);
    fs::create_dir_all(then.parent().unwrap()).unwrap();
    for path in [&then, &now] {
        fs::write(path, &octets).unwrap();
    }
    filter(&offline, &before).leaves(&before, &["offline"]);
    filter(&options, &before).gives(&after);
    assert_eq!(server.count(), 2);
    filter(&offline, &before).gives(&after);
}
