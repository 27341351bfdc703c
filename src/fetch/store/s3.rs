//! A store in a bucket of S3 or a compatible server. The requests are signed with rusty-s3 and sent by `web`.

use std::time::Duration;

use rusty_s3::{Bucket, Credentials, S3Action as _, UrlStyle};
use url::Url;

use super::web::WebServer;
use crate::error::Error;
use crate::fetch::HttpReply;

/// Lifetime of a signed URL. It must be longer than a slow request takes, but short enough that a leaked URL does little harm.
const VALID: Duration = Duration::from_secs(15 * 60);

pub(super) struct S3 {
    bucket: Bucket,
    credentials: Credentials,
    prefix: String,
}

impl S3 {
    pub(super) fn new(
        name: &str,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, Error> {
        let shown = crate::link::url::masked(name);
        let wrong = |why: String| Error::Usage(format!("the store {shown}: {why}").into());
        let needed = |key: &str| {
            variable(key).ok_or_else(|| wrong(format!("the environment variable {key} is not set")))
        };
        let rest = name.strip_prefix("s3://").unwrap_or(name);
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let is_name = |symbol: char| symbol.is_ascii_alphanumeric() || "-._".contains(symbol);
        if bucket.is_empty() || !bucket.chars().all(is_name) {
            return Err(wrong(
                "the URL contains no valid name of a bucket".to_owned(),
            ));
        }
        let prefix = prefix.trim_matches('/');
        let no_name = |segment| matches!(segment, "" | "." | "..");
        if !prefix.is_empty() && prefix.split('/').any(no_name) {
            return Err(wrong("the prefix is not a path".to_owned()));
        }
        let region = needed("AWS_REGION")?;
        let of_amazon = || format!("https://s3.{region}.amazonaws.com");
        let (endpoint, style) = match variable("AWS_ENDPOINT_URL") {
            // With an endpoint of the user's own, the bucket is put into the path: such a server seldom has a DNS name for each
            // bucket.
            Some(endpoint) => (endpoint, UrlStyle::Path),
            None => (of_amazon(), UrlStyle::VirtualHost),
        };
        let endpoint = Url::parse(&endpoint).map_err(|_| {
            wrong("the environment variable AWS_ENDPOINT_URL is not a URL".to_owned())
        })?;
        let bucket = Bucket::new(endpoint, style, bucket.to_owned(), region).map_err(|_| {
            wrong(
                "the environment variable AWS_ENDPOINT_URL is not an http or https URL".to_owned(),
            )
        })?;
        let key = needed("AWS_ACCESS_KEY_ID")?;
        let secret = needed("AWS_SECRET_ACCESS_KEY")?;
        Ok(Self {
            bucket,
            credentials: match variable("AWS_SESSION_TOKEN") {
                Some(token) => Credentials::new_with_token(key, secret, token),
                None => Credentials::new(key, secret),
            },
            prefix: match prefix {
                "" => String::new(),
                prefix => format!("{prefix}/"),
            },
        })
    }
}

impl WebServer for S3 {
    fn request(&self, method: &str, path: &str) -> (String, Vec<(&'static str, String)>) {
        let object = format!("{}{path}", self.prefix);
        let credentials = Some(&self.credentials);
        if method == "PUT" {
            let mut put = self.bucket.put_object(credentials, &object);
            // The field prevents overwriting an object. It is part of the signature, so a proxy cannot remove it without making
            // the request invalid.
            put.headers_mut().insert("if-none-match", "*");
            let fields = vec![("if-none-match", "*".to_owned())];
            (put.sign(VALID).into(), fields)
        } else {
            let get = self.bucket.get_object(credentials, &object);
            (get.sign(VALID).into(), Vec::new())
        }
    }

    fn is_absent(&self, reply: &HttpReply) -> bool {
        let says = |code: &[u8]| memchr::memmem::find(&reply.body, code).is_some();
        reply.status == 404 && !says(b"NoSuchBucket")
    }

    fn hides_absence(&self) -> bool {
        true
    }

    fn base_url(&self) -> String {
        let url = self.bucket.object_url(&self.prefix);
        url.map(String::from).unwrap_or_default()
    }
}
