//! Stores on servers: if a server rejects, lies or closes the connection, no mail is lost, and nothing counts as stored
//! that is not.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use embody::policy::{Limits, Policy};
use embody::store::{Key, Store, StoreError, StorePurpose, open};

/// A request that the server received.
#[derive(Clone, Debug)]
struct Asked {
    method: String,
    path: String,
    headers: BTreeMap<String, String>,
    body: Vec<u8>,
}

/// The contents of a server, and its log.
#[derive(Default, Debug)]
struct Kept {
    objects: BTreeMap<String, Vec<u8>>,
    folders: Vec<String>,
    log: Vec<Asked>,
}

/// A response of a server: a status and a body. `None` closes the connection.
type Answer = Option<(u16, Vec<u8>)>;

struct Server {
    port: u16,
    kept: Arc<Mutex<Kept>>,
}

impl Server {
    /// Starts a server that calls `odd` for each request. If `odd` returns `None`, the server responds normally.
    fn new(odd: impl Fn(&Asked, &mut Kept) -> Option<Answer> + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let kept = Arc::new(Mutex::new(Kept::default()));
        let server = Self {
            port,
            kept: Arc::clone(&kept),
        };
        std::thread::spawn(move || {
            for connection in listener.incoming() {
                let Some((asked, mut connection)) = connection.ok().and_then(read) else {
                    continue;
                };
                let mut kept = kept.lock().unwrap();
                kept.log.push(asked.clone());
                let answer =
                    odd(&asked, &mut kept).unwrap_or_else(|| Some(usual(&asked, &mut kept)));
                let Some((status, body)) = answer else {
                    continue;
                };
                let head = format!(
                    "HTTP/1.1 {status} X\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                    body.len()
                );
                let _ = connection.write_all(&[head.as_bytes(), &body].concat());
            }
        });
        server
    }

    fn honest() -> Self {
        Self::new(|_, _| None)
    }

    fn store(&self) -> Arc<dyn Store> {
        let policy = Policy {
            limits: Limits {
                timeout: Duration::from_secs(2),
                ..Limits::default()
            },
            ..Policy::default()
        };
        let name = format!("http://127.0.0.1:{}/store", self.port);
        open(&name, StorePurpose::Put, &policy).unwrap().unwrap()
    }

    fn methods(&self) -> Vec<String> {
        let kept = self.kept.lock().unwrap();
        kept.log.iter().map(|asked| asked.method.clone()).collect()
    }
}

fn read(connection: TcpStream) -> Option<(Asked, TcpStream)> {
    let mut reader = BufReader::new(connection.try_clone().ok()?);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut words = line.split_whitespace().map(str::to_owned);
    let (method, path) = (words.next()?, words.next()?);
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim().split_once(':') else {
            break;
        };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let length = headers.get("content-length").and_then(|it| it.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).ok()?;
    Some((
        Asked {
            method,
            path,
            headers,
            body,
        },
        connection,
    ))
}

fn usual(asked: &Asked, kept: &mut Kept) -> (u16, Vec<u8>) {
    let there = kept.objects.get(&asked.path);
    match (asked.method.as_str(), there) {
        ("GET", Some(content)) => (200, content.clone()),
        ("GET", None) => (404, b"none".to_vec()),
        ("PUT", Some(_))
            if asked
                .headers
                .get("if-none-match")
                .is_some_and(|it| it == "*") =>
        {
            (412, Vec::new())
        }
        ("PUT", _) => {
            kept.objects.insert(asked.path.clone(), asked.body.clone());
            (201, Vec::new())
        }
        _ => (405, Vec::new()),
    }
}

fn trouble(odd: impl Fn(&Asked, &mut Kept) -> Option<Answer> + Send + 'static) -> StoreError {
    Server::new(odd).store().put(b"abc").unwrap_err()
}

#[test]
fn what_is_put_is_read_back_and_found_again() {
    let server = Server::honest();
    let store = server.store();
    let key = store.put(b"abc").unwrap();
    store.flush(&[key]).unwrap();
    assert_eq!(server.methods(), ["GET", "PUT", "GET"]);
    assert_eq!(store.put(b"abc").unwrap(), key);
    assert_eq!(server.methods()[3..], ["GET"]);
    assert_eq!(store.get(&key, 3).unwrap().unwrap(), b"abc");
    assert_eq!(store.get(&Key::of(b"x"), 3).unwrap(), None);
    let kept = server.kept.lock().unwrap();
    assert!(kept.objects.contains_key(&format!("/store/{}", key.path())));
    assert_eq!(
        store.base_url(),
        format!("http://127.0.0.1:{}/store/", server.port)
    );
    let put = kept.log.iter().find(|asked| asked.method == "PUT").unwrap();
    assert_eq!(put.headers["if-none-match"], "*");
}

#[test]
fn large_object_is_uploaded_whole_and_download_above_the_limit_is_refused() {
    let server = Server::honest();
    let store = server.store();
    let content: Vec<u8> = (0..20_000_000_u32)
        .map(|number| (number >> 7) as u8)
        .collect();
    let key = store.put(&content).unwrap();
    assert_eq!(store.get(&key, u64::MAX).unwrap().unwrap(), content);
    let why = store.get(&key, 19_999_999).unwrap_err();
    assert!(
        why.to_string()
            .contains("larger than the limit of 19999999 bytes"),
        "{why}"
    );
    let small = store.put(b"abc").unwrap();
    assert!(store.get(&small, 2).is_err());
}

#[test]
fn folders_that_are_missing_are_made() {
    let server = Server::new(|asked, kept| {
        let folder = asked
            .path
            .rsplit_once('/')
            .map(|(folder, _)| format!("{folder}/"));
        match asked.method.as_str() {
            "MKCOL" if kept.folders.contains(&asked.path) => Some(Some((405, Vec::new()))),
            "MKCOL" => {
                kept.folders.push(asked.path.clone());
                Some(Some((201, Vec::new())))
            }
            "PUT" if !kept.folders.contains(&folder?) => Some(Some((409, Vec::new()))),
            _ => None,
        }
    });
    let store = server.store();
    let key = store.put(b"abc").unwrap();
    assert_eq!(
        server.methods(),
        ["GET", "PUT", "MKCOL", "MKCOL", "PUT", "GET"]
    );
    assert_eq!(
        server.kept.lock().unwrap().folders,
        ["/store/ba/", "/store/ba/78/"]
    );
    assert_eq!(store.get(&key, 3).unwrap().unwrap(), b"abc");
}

#[test]
fn another_content_is_neither_taken_nor_replaced() {
    // The other content exists before the request, or appears during it.
    for before in [true, false] {
        let why = trouble(move |asked, kept| {
            if before || asked.method == "PUT" {
                kept.objects.insert(asked.path.clone(), b"xyz".to_vec());
            }
            None
        });
        assert!(
            why.to_string()
                .contains("does not match the SHA-256 in its name"),
            "{why}"
        );
        assert!(!why.is_temporary());
    }
}

#[test]
fn object_uploaded_first_by_another_client_is_verified() {
    let server = Server::new(|asked, kept| {
        if asked.method == "PUT" {
            kept.objects.insert(asked.path.clone(), asked.body.clone());
        }
        None
    });
    server.store().put(b"abc").unwrap();
    assert_eq!(server.methods(), ["GET", "PUT", "GET"]);
    // The server responds with 412, although the object does not exist.
    let why = trouble(|asked, _| (asked.method == "PUT").then(|| Some((412, Vec::new()))));
    assert!(why.is_temporary(), "{why}");
}

#[test]
fn a_server_that_lies_on_reading_back_has_stored_nothing() {
    for answer in [&b"abd"[..], b"ab", b"abcd", b""] {
        let why = trouble(move |asked, kept| {
            let stored = asked.method == "GET" && kept.objects.contains_key(&asked.path);
            stored.then(|| Some((200, answer.to_vec())))
        });
        assert!(why.to_string().contains(&Key::of(b"abc").path()), "{why}");
    }
    let why = trouble(|asked, _| (asked.method == "GET").then(|| Some((404, Vec::new()))));
    assert!(
        why.to_string()
            .contains("the server accepted the object, but does not return it"),
        "{why}"
    );
    assert!(why.is_temporary());
}

#[test]
fn a_server_in_trouble_is_temporary_and_one_that_refuses_is_not() {
    for (method, status, is_temporary) in [
        ("GET", 500, true),
        ("GET", 503, true),
        ("GET", 429, true),
        ("GET", 401, false),
        ("GET", 403, false),
        ("GET", 301, false),
        ("PUT", 500, true),
        ("PUT", 507, true),
        ("PUT", 401, false),
        ("PUT", 405, false),
        ("PUT", 413, false),
    ] {
        let why =
            trouble(move |asked, _| (asked.method == method).then(|| Some((status, Vec::new()))));
        assert_eq!(why.is_temporary(), is_temporary, "{method} {status}: {why}");
        assert!(why.to_string().contains(&status.to_string()), "{why}");
    }
    // MKCOL fails.
    let why = trouble(|asked, _| {
        Some(Some((
            if asked.method == "GET" { 404 } else { 409 },
            Vec::new(),
        )))
    });
    assert!(why.to_string().contains("MKCOL"), "{why}");
}

#[test]
fn a_server_that_breaks_off_or_is_away_is_temporary() {
    for method in ["GET", "PUT"] {
        let why = trouble(move |asked, _| (asked.method == method).then_some(None));
        assert!(why.is_temporary(), "{method}: {why}");
    }
    // No server listens on port 1.
    let store = open("http://127.0.0.1:1/", StorePurpose::Put, &Policy::default())
        .unwrap()
        .unwrap();
    assert!(store.put(b"abc").unwrap_err().is_temporary());
    assert!(store.get(&Key::of(b"abc"), 3).unwrap_err().is_temporary());
    // A server that accepts the connection and sends nothing.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = Server {
        port: silent.local_addr().unwrap().port(),
        kept: Arc::default(),
    };
    let why = server.store().put(b"abc").unwrap_err();
    assert!(why.is_temporary(), "{why}");
}

#[test]
fn error_about_an_invalid_store_url_hides_the_password() {
    let said = |name: &str| {
        open(name, StorePurpose::Put, &Policy::default())
            .unwrap_err()
            .to_string()
    };
    assert!(said("ftp://www.example.org/").contains("is not a store"));
    let why = said("https://user:secret@www.example.org/store/");
    assert!(
        why.contains("EMBODY_STORE_USER") && !why.contains("secret"),
        "{why}"
    );
    assert!(said("https://www.example.org/store?x=y").contains("not the URL of a directory"));
}

#[cfg(feature = "s3")]
mod s3 {
    use super::*;
    use embody::store::on_server;

    const ENVIRONMENT: [(&str, &str); 3] = [
        ("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE"),
        ("AWS_SECRET_ACCESS_KEY", "secret/example"),
        ("AWS_REGION", "eu-central-1"),
    ];

    fn opened(name: &str, more: &[(&str, String)]) -> Result<Arc<dyn Store>, embody::Error> {
        let variable = |name: &str| {
            let more = more.iter().find(|(key, _)| *key == name);
            let fixed = ENVIRONMENT.iter().find(|(key, _)| *key == name);
            more.map(|(_, value)| value.clone())
                .or_else(|| fixed.map(|(_, value)| (*value).to_owned()))
                .filter(|value| !value.is_empty())
        };
        on_server("s3", name, &variable, &Policy::default())
    }

    fn at(server: &Server) -> Arc<dyn Store> {
        let endpoint = format!("http://127.0.0.1:{}", server.port);
        opened("s3://bucket/a/b", &[("AWS_ENDPOINT_URL", endpoint)]).unwrap()
    }

    /// Returns the request without its query, which differs each time.
    fn plain(asked: &Asked) -> Asked {
        Asked {
            path: asked.path.split('?').next().unwrap().to_owned(),
            ..asked.clone()
        }
    }

    #[test]
    fn requests_are_signed_and_nothing_says_the_secret() {
        let server = Server::new(|asked, kept| Some(Some(usual(&plain(asked), kept))));
        let store = at(&server);
        let key = store.put(b"abc").unwrap();
        assert_eq!(store.get(&key, 3).unwrap().unwrap(), b"abc");
        let kept = server.kept.lock().unwrap();
        let path = format!("/bucket/a/b/{}", key.path());
        assert_eq!(kept.objects[&path], b"abc");
        for asked in &kept.log {
            assert!(asked.path.contains("X-Amz-Signature="), "{}", asked.path);
            assert!(!asked.path.contains("secret"));
        }
        let put = kept.log.iter().find(|asked| asked.method == "PUT").unwrap();
        assert_eq!(put.headers["if-none-match"], "*");
        assert!(put.path.contains("if-none-match"), "{}", put.path);
        let said = format!("{store:?}");
        assert!(!said.contains("secret") && !said.contains("AKID"), "{said}");
    }

    #[test]
    fn missing_list_permission_is_tolerated_and_missing_bucket_is_an_error() {
        let server = Server::new(|asked, kept| {
            let asked = plain(asked);
            let hidden = asked.method == "GET" && !kept.objects.contains_key(&asked.path);
            Some(Some(if hidden {
                (403, Vec::new())
            } else {
                usual(&asked, kept)
            }))
        });
        let store = at(&server);
        let key = store.put(b"abc").unwrap();
        assert_eq!(store.get(&key, 3).unwrap().unwrap(), b"abc");
        assert!(store.get(&Key::of(b"x"), 3).is_err());
        let server = Server::new(|_, _| Some(Some((404, b"<Code>NoSuchBucket</Code>".to_vec()))));
        assert!(at(&server).get(&key, 3).is_err());
        assert!(!at(&server).put(b"abc").unwrap_err().is_temporary());
    }

    #[test]
    fn errors_name_no_signature() {
        for status in [500, 403] {
            let server = Server::new(move |_, _| Some(Some((status, Vec::new()))));
            let why = at(&server).put(b"abc").unwrap_err();
            let said = format!("{why:?} {why}");
            assert!(!said.contains("X-Amz") && !said.contains("AKID"), "{said}");
            assert_eq!(why.is_temporary(), status == 500);
        }
    }

    #[test]
    fn missing_or_invalid_settings_of_an_s3_store_are_reported() {
        for key in ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION"] {
            let why = opened("s3://bucket", &[(key, String::new())])
                .unwrap_err()
                .to_string();
            assert!(why.contains(key), "{why}");
        }
        for name in [
            "s3://",
            "s3:///x",
            "s3://buc ket",
            "s3://bucket/a//b",
            "s3://bucket/../x",
            "s3://a@b/x",
        ] {
            assert!(opened(name, &[]).is_err(), "{name}");
        }
        let why = opened("s3://bucket", &[("AWS_ENDPOINT_URL", "ftp://x".to_owned())]);
        assert!(why.is_err());
        let store = opened("s3://bucket/x/", &[]).unwrap();
        assert_eq!(
            store.base_url(),
            "https://bucket.s3.eu-central-1.amazonaws.com/x/"
        );
    }
}
