//! A store on a server, with PUT and GET and the same paths as in a directory (docs/store.md).
//!
//! * Before an object is put, it is requested. If it exists, its hash is compared. `If-None-Match: *` (RFC 9110 §13.1.2)
//!   prevents overwriting an object that was put since. Afterwards the object is read back and its hash is compared. Whether
//!   the server keeps it durably cannot be checked.
//! * WebDAV (RFC 4918): missing directories are created with MKCOL. S3: requests are signed in their URLs.
//! * The statuses 408, 409, 423, 429 and 5xx and failed connections are temporary errors.

use std::fmt;

use url::Url;

use super::{Key, Store, StoreError};
use crate::engine::policy::Policy;
use crate::engine::report::Retry;
use crate::error::Error;
use crate::fetch::{Direct, HttpReply, basic};

const LONGEST_EXPLANATION: u64 = 64 << 10;

pub(super) trait WebServer: Send + Sync {
    fn request(&self, method: &str, path: &str) -> (String, Vec<(&'static str, String)>);

    fn folders(&self, _key: &Key) -> Vec<String> {
        Vec::new()
    }

    fn is_absent(&self, reply: &HttpReply) -> bool;

    /// Returns whether the server responds with 403 for a missing object, as S3 does if the user may not list the bucket.
    fn hides_absence(&self) -> bool {
        false
    }

    fn base_url(&self) -> String;
}

pub(super) struct Web {
    client: Direct,
    server: Box<dyn WebServer>,
}

impl fmt::Debug for Web {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Writes only the URL: the server may have a password or a secret key, which must not get into logs.
        write!(formatter, "Web({})", self.server.base_url())
    }
}

impl Web {
    pub(super) fn new(policy: &Policy, server: Box<dyn WebServer>) -> Result<Self, Error> {
        Ok(Self {
            client: Direct::new(policy)?,
            server,
        })
    }

    fn send(
        &self,
        method: &str,
        path: &str,
        body: Option<&[u8]>,
        at_most: u64,
    ) -> Result<HttpReply, StoreError> {
        let (url, mut fields) = self.server.request(method, path);
        fields.extend(body.map(|_| ("content-type", "application/octet-stream".to_owned())));
        let reply = self.client.send(method, &url, &fields, body, at_most);
        reply.map_err(|refusal| {
            let what = format!("{}: {}", self.named(path), refusal.detail);
            match refusal.retry {
                Retry::Later => StoreError::temporary(what),
                Retry::Never => StoreError::lasting(what),
            }
        })
    }

    fn named(&self, path: &str) -> String {
        format!("{}{path}", self.server.base_url())
    }

    fn refused(&self, method: &str, path: &str, reply: &HttpReply) -> StoreError {
        let (object, status) = (self.named(path), reply.status);
        let what = format!("{object}: the server responded to {method} with {status}");
        match status {
            408 | 409 | 423 | 429 | 500..=599 => StoreError::temporary(what),
            _ => StoreError::lasting(what),
        }
    }

    fn ask(&self, key: &Key, at_most: u64) -> Result<HttpReply, StoreError> {
        // The limit is for objects. The body of an error response may be longer than a short object, and is read for the error
        // message.
        let at_most = at_most.max(LONGEST_EXPLANATION);
        self.send("GET", &key.path(), None, at_most)
    }

    fn answer(
        &self,
        key: &Key,
        at_most: u64,
        reply: HttpReply,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        let object = self.named(&key.path());
        match reply.status {
            200 if reply.body.len() as u64 > at_most => Err(StoreError::lasting(format!(
                "{object}: the object has more than {at_most} bytes, which is the limit"
            ))),
            200 if Key::of(&reply.body) != *key => Err(StoreError::not_its_name(object)),
            200 => Ok(Some(reply.body)),
            _ if self.server.is_absent(&reply) => Ok(None),
            _ => Err(self.refused("GET", &key.path(), &reply)),
        }
    }

    fn write(&self, key: &Key, octets: &[u8]) -> Result<HttpReply, StoreError> {
        let path = key.path();
        let put = || self.send("PUT", &path, Some(octets), LONGEST_EXPLANATION);
        let reply = put()?;
        // If a directory is missing, the server returns 409 (RFC 4918 §9.7.1), and some servers return 404 or 500. Then
        // the directories are created with MKCOL, and the object is put again.
        let folders = self.server.folders(key);
        if folders.is_empty() || !matches!(reply.status, 404 | 409 | 500) {
            return Ok(reply);
        }
        for folder in folders {
            let made = self.send("MKCOL", &folder, None, LONGEST_EXPLANATION)?;
            // The status 405 means that the directory already exists (RFC 4918 §9.3.1), which is not an error.
            if !matches!(made.status, 200..=299 | 405) {
                return Err(self.refused("MKCOL", &folder, &made));
            }
        }
        put()
    }
}

impl Store for Web {
    fn put(&self, octets: &[u8]) -> Result<Key, StoreError> {
        let (key, size) = (Key::of(octets), octets.len() as u64);
        let there = self.ask(&key, size)?;
        // A 403 may mean that the object is missing, or that the user may not read it. Uploading is tried in both cases,
        // because PUT never replaces an object.
        let is_hidden = there.status == 403 && self.server.hides_absence();
        if !is_hidden && self.answer(&key, size, there)?.is_some() {
            return Ok(key);
        }
        let reply = self.write(&key, octets)?;
        let lacks = match reply.status {
            200..=299 => "the server accepted the object, but does not return it".to_owned(),
            // Another process put the object first. S3 returns 409 while that upload is running.
            status @ (409 | 412) => {
                format!("the server responded to PUT with {status}, but does not have the object")
            }
            _ => return Err(self.refused("PUT", &key.path(), &reply)),
        };
        match self.get(&key, size)? {
            Some(_) => Ok(key),
            None => {
                let object = self.named(&key.path());
                Err(StoreError::temporary(format!("{object}: {lacks}")))
            }
        }
    }

    fn flush(&self, _keys: &[Key]) -> Result<(), StoreError> {
        // `put` has already read back each object from the server, so `flush` has nothing to do.
        Ok(())
    }

    fn get(&self, key: &Key, at_most: u64) -> Result<Option<Vec<u8>>, StoreError> {
        self.answer(key, at_most, self.ask(key, at_most)?)
    }

    fn base_url(&self) -> String {
        self.server.base_url()
    }
}

pub(super) struct Dav {
    base: Url,
    authorization: Option<String>,
}

impl Dav {
    pub(super) fn new(url: &str, user: Option<(String, String)>) -> Result<Self, Error> {
        let wrong = |why: &str| Error::Usage(format!("the store's URL {why}").into());
        let mut base = Url::parse(url).map_err(|_| wrong("is not a URL"))?;
        if !base.username().is_empty() || base.password().is_some() {
            return Err(wrong(
                "contains a user name or password, which every reader of the mail would see; set EMBODY_STORE_USER and EMBODY_STORE_PASSWORD instead",
            ));
        }
        if base.query().is_some() || base.fragment().is_some() || base.cannot_be_a_base() {
            return Err(wrong("is not the URL of a directory"));
        }
        if !base.path().ends_with('/') {
            base.set_path(&format!("{}/", base.path()));
        }
        Ok(Self {
            base,
            authorization: user.map(|(user, password)| basic(user.as_bytes(), password.as_bytes())),
        })
    }
}

impl WebServer for Dav {
    fn request(&self, method: &str, path: &str) -> (String, Vec<(&'static str, String)>) {
        let authorization = self
            .authorization
            .clone()
            .map(|value| ("authorization", value));
        let new = (method == "PUT").then(|| ("if-none-match", "*".to_owned()));
        let fields = authorization.into_iter().chain(new).collect();
        (format!("{}{path}", self.base), fields)
    }

    fn folders(&self, key: &Key) -> Vec<String> {
        let [outer, inner] = key.folders();
        vec![format!("{outer}/"), format!("{outer}/{inner}/")]
    }

    fn is_absent(&self, reply: &HttpReply) -> bool {
        matches!(reply.status, 404 | 410)
    }

    fn base_url(&self) -> String {
        self.base.to_string()
    }
}
