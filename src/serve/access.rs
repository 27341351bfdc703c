//! Access control: checks the token, and rejects requests that a web page caused.
//!
//! A web page can make a browser send requests to this service. They are recognised by their Origin field or, if the
//! page only displays a picture, by Sec-Fetch-Site (W3C Fetch Metadata). With DNS rebinding, the page reaches the
//! service under a name of its own, which is then in the Host field.

use std::net::{IpAddr, SocketAddr};

use hyper::header::{AUTHORIZATION, HOST, HeaderMap, HeaderName, ORIGIN};
use hyper::{StatusCode, Uri, Version};
use sha2::{Digest as _, Sha256};

use super::problem::Problem;

/// The secret that each request must contain. Only its hash is kept.
#[derive(Clone)]
pub(crate) struct AccessToken([u8; 32]);

impl std::fmt::Debug for AccessToken {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Token(..)")
    }
}

impl AccessToken {
    /// Returns the token in the content of a file. Line endings at its end do not belong to it.
    ///
    /// # Errors
    /// The file does not contain exactly one word in ASCII.
    pub(crate) fn of_file(content: &[u8]) -> Result<Self, String> {
        let end = content
            .iter()
            .rposition(|byte| !matches!(byte, b'\r' | b'\n'))
            .map_or(0, |at| at + 1);
        let token = &content[..end];
        if token.is_empty() {
            return Err("the file is empty; write a token into it, for example the output of openssl rand -hex 32".to_owned());
        }
        if !token.iter().all(u8::is_ascii_graphic) {
            return Err("the token must be one word of ASCII characters on one line, for example the output of openssl rand -hex 32".to_owned());
        }
        Ok(Self::of(token))
    }

    fn of(token: &[u8]) -> Self {
        Self(Sha256::digest(token).into())
    }

    /// Compares in constant time: the hashes have the same length, and all their bytes are compared.
    fn is(&self, given: &[u8]) -> bool {
        let other = Self::of(given);
        let differences = self.0.iter().zip(other.0).map(|(one, other)| one ^ other);
        std::hint::black_box(differences.fold(0, |all, one| all | one)) == 0
    }

    pub(super) fn check(&self, fields: &HeaderMap) -> Result<(), Problem> {
        let mut values = fields.get_all(AUTHORIZATION).iter();
        let (Some(value), None) = (values.next(), values.next()) else {
            return Err(Problem::unauthorized());
        };
        let (scheme, given) = match value.as_bytes().iter().position(|byte| *byte == b' ') {
            Some(at) => value.as_bytes().split_at(at),
            None => return Err(Problem::unauthorized()),
        };
        if scheme.eq_ignore_ascii_case(b"Bearer") && self.is(given.trim_ascii()) {
            Ok(())
        } else {
            Err(Problem::unauthorized())
        }
    }
}

/// Relation of the request to the page that caused it, or `none` if the user entered the URL.
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The names of `--allow-host-header`, in lower case, with or without a port.
#[derive(Clone, Default, Debug)]
pub(crate) struct HostNames(Vec<String>);

impl HostNames {
    pub(crate) fn new(names: &[String]) -> Self {
        Self(names.iter().map(|name| name.to_ascii_lowercase()).collect())
    }
}

/// Divides the value of a Host field into the host and the port. Returns `None` if it is malformed.
fn divided(text: &str) -> Option<(&str, Option<u16>)> {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, port) = rest.split_once(']')?;
            (
                host,
                port.strip_prefix(':')
                    .or_else(|| port.is_empty().then_some(""))?,
            )
        }
        None => text.split_once(':').unwrap_or((text, "")),
    };
    let port = match port {
        "" => None,
        // `parse` would also accept a plus sign.
        port if port.starts_with('+') => return None,
        port => Some(port.parse().ok()?),
    };
    (!host.is_empty()).then_some((host, port))
}

/// Checks the fields Origin and Host. `at` is the listening address of the connection, or `None` for a socket in the
/// file system, which no browser can reach.
pub(super) fn check_origin(
    (uri, version, fields): (&Uri, Version, &HeaderMap),
    at: Option<&(String, SocketAddr)>,
    names: &HostNames,
) -> Result<(), Problem> {
    if fields.contains_key(ORIGIN) {
        let detail = "requests of web pages (with an Origin field) are refused; send the request from a program without this field";
        return Err(Problem::new(StatusCode::FORBIDDEN, detail));
    }
    // By displaying an object by its SHA-256, a page would learn whether the store has it.
    if fields
        .get_all(SEC_FETCH_SITE)
        .iter()
        .any(|value| value != "none")
    {
        let detail = "requests of web pages (with the field Sec-Fetch-Site) are refused; send the request from a program without this field";
        return Err(Problem::new(StatusCode::FORBIDDEN, detail));
    }
    let mut values = fields.get_all(HOST).iter();
    let (value, others) = (values.next(), values.next());
    if others.is_some() || value.is_none() && version >= Version::HTTP_11 {
        let detail = "a request must have exactly one Host field";
        return Err(Problem::new(StatusCode::BAD_REQUEST, detail));
    }
    let Some(at) = at else {
        return Ok(());
    };
    let of_field = value.map(|value| value.to_str().unwrap_or_default());
    let of_uri = uri.authority().map(|authority| authority.as_str());
    let mut hosts = of_field.into_iter().chain(of_uri).peekable();
    if hosts.peek().is_some() && hosts.all(|host| is_ours(host, at, names)) {
        return Ok(());
    }
    Err(Problem::host())
}

fn is_ours(text: &str, (given, at): &(String, SocketAddr), names: &HostNames) -> bool {
    let text = text.to_ascii_lowercase();
    let Some((host, port)) = divided(&text) else {
        return false;
    };
    let is_named =
        |name: &String| *name == text || *name == host || name.trim_matches(['[', ']']) == host;
    if names.0.iter().any(is_named) {
        return true;
    }
    if port.unwrap_or(80) != at.port() {
        return false;
    }
    let ip = at.ip();
    let is_reached = |other: IpAddr| other == ip || ip.is_unspecified();
    match host.parse::<IpAddr>() {
        // An IP address in the Host field is safe: an attacker can rebind a name, but not an address.
        Ok(other) => is_reached(other),
        Err(_) => {
            let is_own_name = host == "localhost" && (ip.is_loopback() || ip.is_unspecified());
            host == given.to_ascii_lowercase() || is_own_name
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(listen: &str, host: &str, names: &[&str]) -> bool {
        let at: SocketAddr = listen.parse().unwrap();
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        is_ours(host, &(at.ip().to_string(), at), &HostNames::new(&names))
    }

    #[test]
    fn host_field_is_accepted_only_with_the_address_or_an_allowed_name() {
        for (listen, host, names, expected) in [
            ("127.0.0.1:9997", "127.0.0.1:9997", &[][..], true),
            ("127.0.0.1:9997", "localhost:9997", &[], true),
            ("127.0.0.1:9997", "127.0.0.1", &[], false),
            ("127.0.0.1:80", "127.0.0.1", &[], true),
            ("127.0.0.1:9997", "127.0.0.1:9998", &[], false),
            ("127.0.0.1:9997", "127.0.0.2:9997", &[], false),
            ("127.0.0.1:9997", "evil.example:9997", &[], false),
            ("127.0.0.1:9997", "127.0.0.1.evil.example:9997", &[], false),
            ("127.0.0.1:9997", "localhost.evil.example:9997", &[], false),
            ("127.0.0.1:9997", "", &[], false),
            ("127.0.0.1:9997", "127.0.0.1:9997x", &[], false),
            ("127.0.0.1:9997", "127.0.0.1:+9997", &[], false),
            ("127.0.0.1:9997", "127.0.0.1:9997/x", &[], false),
            ("127.0.0.1:9997", "127.0.0.1:75533", &[], false),
            ("127.0.0.1:9997", "127.1:9997", &[], false),
            ("127.0.0.1:9997", "2130706433:9997", &[], false),
            ("127.0.0.1:9997", "0x7f000001:9997", &[], false),
            ("127.0.0.1:9997", "[::ffff:127.0.0.1]:9997", &[], false),
            ("127.0.0.1:9997", "[127.0.0.1", &[], false),
            ("127.0.0.1:9997", "LocalHost:9997", &[], true),
            ("127.0.0.1:9997", "localhost.:9997", &[], false),
            ("0.0.0.0:9997", "0.0.0.0.evil.example:9997", &[], false),
            (
                "0.0.0.0:9997",
                "embody.evil.example:9997",
                &["embody"],
                false,
            ),
            ("127.0.0.1:9997", "user@127.0.0.1:9997", &[], false),
            ("0.0.0.0:9997", "embody:9997", &[], false),
            ("0.0.0.0:9997", "embody:9997", &["embody"], true),
            ("0.0.0.0:9997", "EMBODY", &["embody"], true),
            ("0.0.0.0:9997", "embody:9997", &["embody:80"], false),
            ("0.0.0.0:9997", "embody:80", &["embody:80"], true),
            ("0.0.0.0:9997", "10.1.2.3:9997", &[], true),
            ("0.0.0.0:9997", "notembody:9997", &["embody"], false),
            ("[::1]:9997", "[::1]:9997", &[], true),
            ("[::1]:9997", "[::2]:9997", &[], false),
            ("[::1]:9997", "localhost:9997", &[], true),
        ] {
            assert_eq!(
                judged(listen, host, names),
                expected,
                "{listen} {host} {names:?}"
            );
        }
    }

    #[test]
    fn nearly_right_tokens_are_refused() {
        let token = AccessToken::of_file(b"0123456789abcdef\r\n").unwrap();
        let check = |value: &'static str| {
            let mut fields = HeaderMap::new();
            fields.insert(AUTHORIZATION, value.parse().unwrap());
            token.check(&fields).is_ok()
        };
        assert!(check("Bearer 0123456789abcdef"));
        assert!(check("bearer  0123456789abcdef"));
        for wrong in [
            "",
            "Bearer",
            "Bearer ",
            "0123456789abcdef",
            "Basic 0123456789abcdef",
            "Bearer 0123456789abcdeg",
            "Bearer 0123456789abcde",
            "Bearer 0123456789abcdef0",
            "Bearer 0123456789ABCDEF",
            "Bearer 0123456789abcdef 0123456789abcdef",
            "Bearer \"0123456789abcdef\"",
        ] {
            assert!(!check(wrong), "{wrong}");
        }
        assert!(token.check(&HeaderMap::new()).is_err());
        let mut twice = HeaderMap::new();
        twice.append(AUTHORIZATION, "Bearer 0123456789abcdef".parse().unwrap());
        twice.append(AUTHORIZATION, "Bearer 0123456789abcdef".parse().unwrap());
        assert!(token.check(&twice).is_err());
        for file in [
            &b""[..],
            b"\n",
            b"two words\n",
            b"two\nlines\n",
            b"caf\xc3\xa9\n",
        ] {
            assert!(AccessToken::of_file(file).is_err(), "{file:?}");
        }
    }
}
