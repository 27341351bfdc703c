//! Account of a run, as the URL (RFC 5092) and the options describe it: the server, the folders and messages, and the login.
//!
//! `imaps://USER;AUTH=MECHANISM@HOST:PORT/FOLDER;UIDVALIDITY=N/;UID=N`. No RFC defines the scheme `imaps` for URLs, but it is
//! in common use for TLS from the start (RFC 8314). A password in a URL is rejected, because other users could read it in the
//! list of processes and in the shell history.

use std::path::PathBuf;
use std::time::Duration;

use percent_encoding::percent_decode_str;

use super::names;
use super::secret::Secret;
use crate::error::Error;

/// Encryption of the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Security {
    /// TLS from the start.
    Tls,
    /// STARTTLS before the login. If the server refuses it, the connection is closed.
    StartTls,
    /// No encryption. Allowed only for a server on the same computer.
    Plaintext,
}

/// Login mechanism.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mechanism {
    /// Any mechanism for a password: PLAIN if the server supports it, otherwise LOGIN.
    Password,
    /// Only PLAIN, because the URL contains `AUTH=PLAIN`.
    Plain,
    /// Only LOGIN, the mechanism or the command, because the URL contains `AUTH=LOGIN`.
    Login,
    /// XOAUTH2: an OAuth access token in the form that Google and Microsoft accept.
    XOauth2,
    /// OAUTHBEARER: an OAuth access token in the form of RFC 7628.
    OauthBearer,
}

/// An account as the URL and the options describe it: the server, the user, and which messages of the user the
/// run processes.
#[derive(Debug)]
pub(crate) struct Account {
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) security: Security,
    pub(crate) user: String,
    pub(crate) mechanism: Mechanism,
    pub(crate) secret: Secret,
    pub(crate) ca_file: Option<PathBuf>,
    pub(crate) choice: FolderChoice,
    /// Time without any data from the server after which the connection counts as dead. Long, because a search can take
    /// minutes.
    pub(crate) silence: Duration,
    /// Number of parallel connections.
    pub(crate) connections: usize,
}

/// Folders and messages that the user selected, in the URL or with options.
#[derive(Clone, Default, Debug)]
pub(crate) struct FolderChoice {
    /// Folder in the URL, which may be a pattern. `None` selects all folders.
    pub(crate) folder: Option<String>,
    pub(crate) uidvalidity: Option<u32>,
    pub(crate) uid: Option<u32>,
    /// Patterns for names of folders. If `folders` is not empty, a name must match one of its patterns. A name must not match a
    /// pattern of `not_folders`.
    pub(crate) folders: Vec<String>,
    pub(crate) not_folders: Vec<String>,
    /// Limits for the date of a message, in the format of SEARCH: `3-Jan-2020`. The message is from the day `since`
    /// or later, and from a day earlier than `before`.
    pub(crate) since: Option<String>,
    pub(crate) before: Option<String>,
}

impl FolderChoice {
    /// Returns whether all messages of a selected folder are selected.
    pub(crate) fn is_all_messages(&self) -> bool {
        self.uid.is_none() && self.since.is_none() && self.before.is_none()
    }
}

/// Components of a URL.
#[derive(Debug)]
pub(crate) struct UrlLocation {
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) security: Security,
    pub(crate) user: String,
    pub(crate) mechanism: Mechanism,
    pub(crate) choice: FolderChoice,
}

/// Returns the folder in a URL that [`Account::url`] built. Returns `None` if `url` is not such a URL.
pub(crate) fn folder_of_url(url: &str) -> Option<String> {
    let (_, rest) = url.split_once("://").filter(|_| is_url(url))?;
    let (_, folder) = rest.split_once('/')?;
    decoded(folder.split(';').next().unwrap_or_default())
}

/// Returns whether a source is an IMAP URL.
pub(crate) fn is_url(source: &str) -> bool {
    let has = |scheme: &str| {
        source
            .get(..scheme.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(scheme))
    };
    has("imap://") || has("imaps://")
}

impl UrlLocation {
    /// Parses a URL. `allow_plaintext` allows a connection without encryption to a server on the same computer.
    ///
    /// # Errors
    /// [`Error::Usage`]. The message never quotes a password.
    pub(crate) fn of(source: &str, allow_plaintext: bool) -> Result<Self, Error> {
        let wrong = |why: &str| Error::Usage(format!("{}: {why}", masked(source)).into());
        let (scheme, rest) = source
            .split_once("://")
            .ok_or_else(|| wrong("the source is not an IMAP URL such as imaps://USER@HOST/"))?;
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (login, place) = authority
            .rsplit_once('@')
            .ok_or_else(|| wrong("the URL contains no user name: write imaps://USER@HOST/"))?;
        let is_tls = scheme.eq_ignore_ascii_case("imaps");
        let (host, port) =
            host_and_port(place).ok_or_else(|| wrong("the URL contains no valid host and port"))?;
        let security = match is_tls {
            true => Security::Tls,
            false if allow_plaintext && is_loopback(&host) => Security::Plaintext,
            false if allow_plaintext => {
                return Err(wrong(
                    "connections without TLS are allowed only to a server on this computer; for other servers, imap: uses STARTTLS",
                ));
            }
            false => Security::StartTls,
        };
        if login.contains(':') {
            return Err(wrong(
                "the URL contains a password, which other users and the shell history can see; remove the password from the URL, and use a password command or a password file",
            ));
        }
        let (user, mechanism) = split_parameter(login, ";AUTH=");
        let mechanism = match mechanism {
            None | Some("*") => Mechanism::Password,
            Some(word) => mechanism_of(word)
                .ok_or_else(|| wrong("the URL gives an unknown login method; AUTH= can be PLAIN, LOGIN, XOAUTH2 or OAUTHBEARER"))?,
        };
        let user = decoded(user).ok_or_else(|| wrong("the user name in the URL is not UTF-8"))?;
        if user.is_empty() || user.contains(char::is_control) {
            return Err(wrong(
                "the URL contains no user name: write imaps://USER@HOST/",
            ));
        }
        Ok(Self {
            host,
            port: port.unwrap_or(if is_tls { 993 } else { 143 }),
            security,
            user,
            mechanism,
            choice: choice(path).map_err(wrong)?,
        })
    }

    /// Turns the parsed URL into an account, by adding what a URL does not contain: the source of the password, and the
    /// file with trusted certificates.
    pub(crate) fn with(self, secret: Secret, ca_file: Option<PathBuf>) -> Account {
        Account {
            host: self.host,
            port: self.port,
            security: self.security,
            user: self.user,
            mechanism: self.mechanism,
            secret,
            ca_file,
            choice: self.choice,
            silence: Duration::from_secs(300),
            connections: 2,
        }
    }
}

impl Account {
    /// Returns `user at server`, for messages and reports.
    pub(crate) fn whose(&self) -> String {
        format!("{} at {}", self.user, self.host)
    }

    /// Returns the URL of a folder of this account, without a password. `name` is the name as the server spells it.
    pub(crate) fn url(&self, name: &str) -> String {
        let (scheme, port) = match self.security {
            Security::Tls => ("imaps", 993),
            _ => ("imap", 143),
        };
        let port = if self.port == port {
            String::new()
        } else {
            format!(":{}", self.port)
        };
        let plain =
            |text: &str| percent_encoding::utf8_percent_encode(text, PLAIN_IN_URL).to_string();
        let host = if self.host.contains(':') {
            format!("[{}]", self.host)
        } else {
            self.host.clone()
        };
        let name = plain(&names::shown(name));
        format!("{scheme}://{}@{host}{port}/{name}", plain(&self.user))
    }
}

/// Characters that are not escaped in a URL, in addition to ASCII letters and digits.
const PLAIN_IN_URL: &percent_encoding::AsciiSet = &percent_encoding::NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'/')
    .remove(b'+');

fn mechanism_of(word: &str) -> Option<Mechanism> {
    let mechanisms = [
        ("PLAIN", Mechanism::Plain),
        ("LOGIN", Mechanism::Login),
        ("XOAUTH2", Mechanism::XOauth2),
        ("OAUTHBEARER", Mechanism::OauthBearer),
    ];
    let found = mechanisms
        .iter()
        .find(|(name, _)| word.eq_ignore_ascii_case(name));
    found.map(|(_, mechanism)| *mechanism)
}

/// Splits a text at the name of a parameter, ignoring case. Returns the text before the name and the text after it.
fn split_parameter<'t>(text: &'t str, name: &str) -> (&'t str, Option<&'t str>) {
    match text.to_ascii_uppercase().find(name) {
        Some(at) => (&text[..at], Some(&text[at + name.len()..])),
        None => (text, None),
    }
}

fn choice(path: &str) -> Result<FolderChoice, &'static str> {
    let (path, uid) = split_parameter(path, ";UID=");
    let number = |text: &str| {
        let text = text.trim_end_matches('/');
        let number = text.parse().ok().filter(|number| *number > 0);
        number.ok_or("UID= and UIDVALIDITY= must be numbers greater than 0, and ;SECTION= and ;PARTIAL= are not supported")
    };
    let (folder, uidvalidity) = split_parameter(path, ";UIDVALIDITY=");
    if folder.contains(['?', ';']) {
        return Err("a search in the URL (?...) is not supported");
    }
    let folder =
        decoded(folder.trim_end_matches('/')).ok_or("the name of the folder is not UTF-8")?;
    let uid = uid.map(number).transpose()?;
    if folder.is_empty() && (uid.is_some() || uidvalidity.is_some()) {
        return Err("UID= and UIDVALIDITY= work only if the URL also names a folder");
    }
    if folder.contains(char::is_control) {
        return Err("the name of the folder contains a control character");
    }
    Ok(FolderChoice {
        uidvalidity: uidvalidity.map(number).transpose()?,
        uid,
        folder: Some(folder).filter(|folder| !folder.is_empty()),
        ..FolderChoice::default()
    })
}

fn decoded(text: &str) -> Option<String> {
    let text = percent_decode_str(text).decode_utf8().ok()?;
    Some(text.into_owned())
}

/// Parses a host and an optional port. Removes the brackets around an IPv6 address.
fn host_and_port(place: &str) -> Option<(String, Option<u16>)> {
    let (host, port) = match place.strip_prefix('[') {
        Some(rest) => {
            let (host, port) = rest.split_once(']')?;
            let port = match port {
                "" => None,
                port => Some(port.strip_prefix(':')?),
            };
            (host, port)
        }
        None => match place.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (place, None),
        },
    };
    let bracketed = if host.contains(':') {
        format!("[{host}]")
    } else {
        host.to_owned()
    };
    let host = match url::Host::parse(&bracketed).ok()? {
        url::Host::Domain(name) => name,
        url::Host::Ipv4(address) => address.to_string(),
        url::Host::Ipv6(address) => address.to_string(),
    };
    let port = port.map(|port| port.parse().ok().filter(|port| *port > 0));
    match port {
        Some(None) => None,
        Some(Some(port)) => Some((host, Some(port))),
        None => Some((host, None)),
    }
}

/// Returns whether a host is the local computer: `localhost` (RFC 6761 §6.3) or a loopback address.
fn is_loopback(host: &str) -> bool {
    let address: Option<std::net::IpAddr> = host.parse().ok();
    host.eq_ignore_ascii_case("localhost") || address.is_some_and(|address| address.is_loopback())
}

/// Returns a URL for display: a password in it is replaced by `***`.
pub(crate) fn masked(source: &str) -> String {
    let Some((scheme, rest)) = source.split_once("://") else {
        return source.to_owned();
    };
    // Splits at the last `@`, because a password in the URL may contain `@` and `/`, and all of it must be hidden.
    match rest.rsplit_once('@') {
        Some((login, place)) if login.contains(':') => {
            let user = login.split(':').next().unwrap_or_default();
            format!("{scheme}://{user}:***@{place}")
        }
        _ => source.to_owned(),
    }
}

/// Converts a date to the format of SEARCH: `2020-01-03` becomes `3-Jan-2020`. Returns `None` if the date does not exist.
pub(crate) fn day(text: &str) -> Option<String> {
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let (year, rest) = text.split_once('-')?;
    let (month, day) = rest.split_once('-')?;
    let is_plain = year.len() == 4 && month.len() == 2 && day.len() == 2;
    let number = |digits: &str| {
        let are_digits = digits.bytes().all(|octet| octet.is_ascii_digit());
        digits
            .parse::<usize>()
            .ok()
            .filter(|_| are_digits && is_plain)
    };
    let (year, month, day) = (number(year)?, number(month)?, number(day)?);
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    let name = MONTHS.get(month.checked_sub(1)?)?;
    (1..=days)
        .contains(&day)
        .then(|| format!("{day}-{name}-{year:04}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_say_server_user_and_folder() {
        for (url, security, port, user, folder) in [
            (
                "imaps://me@mail.example.org/",
                Security::Tls,
                993,
                "me",
                None,
            ),
            (
                "IMAPS://me@mail.example.org",
                Security::Tls,
                993,
                "me",
                None,
            ),
            (
                "imap://me@mail.example.org:1430/Sent",
                Security::StartTls,
                1430,
                "me",
                Some("Sent"),
            ),
            (
                "imaps://me%40x.org@mail.example.org/Entw%C3%BCrfe/a b",
                Security::Tls,
                993,
                "me@x.org",
                Some("Entwürfe/a b"),
            ),
            (
                "imaps://me@x.org@mail.example.org/*",
                Security::Tls,
                993,
                "me@x.org",
                Some("*"),
            ),
            (
                "imaps://me;auth=xoauth2@mail.example.org/INBOX;uidvalidity=3/;uid=20",
                Security::Tls,
                993,
                "me",
                Some("INBOX"),
            ),
            ("imap://me@[::1]:99/", Security::StartTls, 99, "me", None),
        ] {
            let read = UrlLocation::of(url, false).unwrap();
            assert_eq!(
                (
                    read.security,
                    read.port,
                    &*read.user,
                    read.choice.folder.as_deref()
                ),
                (security, port, user, folder),
                "{url}"
            );
        }
        let one = UrlLocation::of(
            "imaps://me;AUTH=XOAUTH2@h/INBOX;UIDVALIDITY=3/;UID=20",
            false,
        )
        .unwrap();
        assert_eq!(one.mechanism, Mechanism::XOauth2);
        assert_eq!(
            (one.choice.uidvalidity, one.choice.uid),
            (Some(3), Some(20))
        );
        let plain = |url| UrlLocation::of(url, true).map(|read| read.security).ok();
        assert_eq!(plain("imap://me@127.0.0.1/"), Some(Security::Plaintext));
        assert_eq!(plain("imap://me@localhost/"), Some(Security::Plaintext));
        assert_eq!(plain("imap://me@[::1]/"), Some(Security::Plaintext));
        assert_eq!(plain("imap://me@mail.example.org/"), None);
        assert_eq!(plain("imap://me@localhost.example.org/"), None);
        assert_eq!(plain("imaps://me@mail.example.org/"), Some(Security::Tls));
    }

    #[test]
    fn what_is_no_url_of_a_user_is_refused_and_no_password_is_quoted() {
        for url in [
            "imaps://mail.example.org/",
            "imaps://@mail.example.org/",
            "imaps://me:hidden@mail.example.org/",
            "imaps://me:hid@den@mail.example.org/",
            "imaps://me;AUTH=NTLM@mail.example.org/",
            "imaps://me@/",
            "imaps://me@host:0/",
            "imaps://me@host:x/",
            "imaps://me@host:70000/",
            "imaps://me@host/INBOX;UID=0",
            "imaps://me@host/INBOX;UID=1/;SECTION=1",
            "imaps://me@host/;UID=1",
            "imaps://me@host/INBOX?SUBJECT%20x",
            "imaps://me%0d%0ax@host/",
            "imaps://me@host/a%0d%0ab",
            "imaps://me@host/%ff",
        ] {
            let why = UrlLocation::of(url, false).unwrap_err().to_string();
            assert!(!why.contains("hid") && !why.contains("den@"), "{why}");
        }
    }

    #[test]
    fn days_are_those_of_the_calendar() {
        assert_eq!(day("2020-02-29").as_deref(), Some("29-Feb-2020"));
        assert_eq!(day("1999-12-03").as_deref(), Some("3-Dec-1999"));
        for wrong in [
            "2021-02-29",
            "2020-13-01",
            "2020-00-01",
            "2020-1-1",
            "20-01-01",
            "x",
            "2020-01-+1",
        ] {
            assert_eq!(day(wrong), None, "{wrong}");
        }
    }
}
