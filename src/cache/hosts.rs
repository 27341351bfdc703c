//! Hosts that are not asked for a while: nobody was there, or they asked to be left alone (Retry-After).

use std::time::{Duration, SystemTime};

use mail_parser::DateTime;
use serde::{Deserialize, Serialize};

use super::folder::CacheFolder;
use super::record::{LONGEST, read, seconds, written};
use crate::disk::Key;
use crate::disk::layout::Area;
use crate::fetch::{Failed, LONGEST_PAUSE, Nobody};
use crate::policy::Host;
use crate::report::{Reason, Refusal, Retry};

/// How long a host where nobody was is not asked.
const NOBODY: Duration = Duration::from_secs(60 * 60);

/// A server other than an archive may ask for no longer pause: all mail waits for what one mail named.
const LONGEST_OF_SOURCE: Duration = Duration::from_secs(60 * 60);

/// So many URLs of a server that ask for a pause mean the server. One is a page that anybody may name.
const PAGES: usize = 3;

#[derive(Debug, Serialize, Deserialize)]
struct Silence {
    /// One of its [`names`].
    server: String,
    at: u64,
    until: u64,
    reason: String,
    detail: String,
    /// Whether it is one that may be over later.
    is_temporary: bool,
}

/// The URLs of a server that asked for a pause.
#[derive(Debug, Serialize, Deserialize)]
struct Pauses {
    /// The second of its [`names`].
    server: String,
    pages: Vec<Page>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Page {
    /// The hash of its URL.
    url: String,
    status: u16,
    at: u64,
    until: u64,
}

impl Pauses {
    /// Those that last now, and where they are written down.
    fn load(folder: &CacheFolder, server: String, now: u64) -> (Key, Self) {
        let key = Key::of(format!("pauses\n{server}").as_bytes());
        let known = folder
            .read(Area::Hosts, &key, LONGEST)
            .and_then(|octets| read::<Self>(&octets))
            .filter(|known| known.server == server);
        let mut pages = known.map(|known| known.pages).unwrap_or_default();
        pages.retain(|page| (page.at..page.until).contains(&now));
        (key, Self { server, pages })
    }
}

/// What runs with one trust call a host and a port of it. Others may reach another one: by their proxy, or because they
/// do not believe the one that asked for a pause.
fn names(trust: &str, host: &Host, port: u16) -> [String; 2] {
    [format!("{trust} {host}"), format!("{trust} {host} {port}")]
}

fn key(server: &str) -> Key {
    Key::of(format!("host\n{server}").as_bytes())
}

/// Why a host is not asked now, or not for this URL.
pub(super) fn check(
    folder: &CacheFolder,
    trust: &str,
    host: &Host,
    port: u16,
    url: Option<&str>,
) -> Result<(), Refusal> {
    let now = seconds(SystemTime::now());
    let not_now = |key: &Key, detail: &str, until: u64| {
        let until = DateTime::from_timestamp(i64::try_from(until).unwrap_or(0)).to_rfc3339();
        format!(
            "{detail}; the cache knows: it is asked again from {until} on, or once you remove {}",
            folder.path(Area::Hosts, key).display()
        )
    };
    for server in names(trust, host, port) {
        let key = key(&server);
        let silence = folder
            .read(Area::Hosts, &key, LONGEST)
            .and_then(|octets| read::<Silence>(&octets))
            // A record from the future says nothing about now.
            .filter(|silence| {
                silence.server == server && (silence.at..silence.until).contains(&now)
            });
        let Some(silence) = silence else { continue };
        let known = [
            Reason::NameNotFound,
            Reason::ConnectionFailed,
            Reason::Timeout,
            Reason::HttpStatus,
        ];
        let Some(&reason) = known.iter().find(|it| it.as_str() == silence.reason) else {
            continue;
        };
        return Err(Refusal {
            is_gone: matches!(reason, Reason::NameNotFound | Reason::ConnectionFailed),
            reason,
            status: None,
            detail: not_now(&key, &silence.detail, silence.until).into(),
            retry: match silence.is_temporary {
                true => Retry::Later,
                false => Retry::Never,
            },
        });
    }
    let Some(url) = url else { return Ok(()) };
    let [_, server] = names(trust, host, port);
    let (key, pauses) = Pauses::load(folder, server, now);
    let (url, mut pages) = (Key::of(url.as_bytes()).to_string(), pauses.pages);
    pages.sort_by_key(|page| std::cmp::Reverse(page.until));
    // As long as so many ask for a pause, all do.
    let all = pages.get(PAGES - 1);
    match pages.iter().find(|page| page.url == url).or(all) {
        Some(page) => {
            let detail = asked_for_pause(page.status);
            let detail = not_now(&key, &detail, page.until);
            Err(Refusal::temporary(Reason::HttpStatus, detail).of_status(page.status))
        }
        None => Ok(()),
    }
}

pub(super) fn found_nobody(
    folder: &CacheFolder,
    trust: &str,
    host: &Host,
    port: u16,
    failed: &Failed,
) {
    let [name, with_port] = names(trust, host, port);
    let server = match failed.nobody {
        Some(Nobody::Host) => name,
        Some(Nobody::Port) => with_port,
        None => return,
    };
    let refusal = match failed.refusal.reason {
        // Which of the two limits it was depends on the message that asked.
        Reason::Timeout | Reason::Deadline => {
            Refusal::temporary(Reason::Timeout, "no connection came about")
        }
        _ => failed.refusal.clone(),
    };
    silence(folder, server, &refusal, NOBODY);
}

/// An archive asked for a pause (RFC 9110 §10.2.3).
pub(super) fn pause(
    folder: &CacheFolder,
    trust: &str,
    host: &Host,
    port: u16,
    status: u16,
    pause: Duration,
) {
    let [_, server] = names(trust, host, port);
    let refusal = Refusal::temporary(Reason::HttpStatus, asked_for_pause(status));
    silence(folder, server, &refusal, pause.min(LONGEST_PAUSE));
}

/// A server asked for a pause of one URL.
pub(super) fn pause_url(
    folder: &CacheFolder,
    trust: &str,
    host: &Host,
    port: u16,
    (url, status): (&str, u16),
    pause: Duration,
) {
    let [_, server] = names(trust, host, port);
    let at = seconds(SystemTime::now());
    let (key, mut pauses) = Pauses::load(folder, server, at);
    let url = Key::of(url.as_bytes()).to_string();
    pauses.pages.retain(|page| page.url != url);
    // Several processes may find more.
    pauses.pages.truncate(PAGES);
    pauses.pages.push(Page {
        url,
        status,
        at,
        until: at.saturating_add(pause.min(LONGEST_OF_SOURCE).as_secs()),
    });
    if let Some(octets) = written(&pauses) {
        folder.write(Area::Hosts, &key, &octets);
    }
}

fn asked_for_pause(status: u16) -> String {
    format!("the server answered {status} with Retry-After")
}

fn silence(folder: &CacheFolder, server: String, refusal: &Refusal, pause: Duration) {
    let at = seconds(SystemTime::now());
    let silence = Silence {
        at,
        until: at.saturating_add(pause.as_secs()),
        reason: refusal.reason.as_str().to_owned(),
        detail: refusal.detail.to_string(),
        is_temporary: refusal.retry == Retry::Later,
        server,
    };
    if let Some(octets) = written(&silence) {
        folder.write(Area::Hosts, &key(&silence.server), &octets);
    }
}
