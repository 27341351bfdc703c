//! Stores the time until which a host gets no requests, because it was not reachable or because it requested a pause
//! (Retry-After).

use std::time::Duration;

use mail_parser::DateTime;
use serde::{Deserialize, Serialize};

use super::entry::{LONGEST, read, written};
use super::folder::CacheFolder;
use crate::engine::policy::Host;
use crate::engine::report::{Reason, Refusal, Retry};
use crate::fetch::{FetchFailure, LONGEST_PAUSE, UnresponsiveScope, now};
use crate::key::Key;
use crate::platform::disk::layout::Area;

const NOBODY: Duration = Duration::from_secs(60 * 60);

/// Maximum pause that a source can request. A single mail can name any server, and every later run with this cache would be
/// affected, so the pause is short. An archive can request a longer one.
const LONGEST_OF_SOURCE: Duration = Duration::from_secs(60 * 60);

/// Number of paused URLs of a server from which on all its URLs are paused. A single URL is not enough: it may be a
/// page of an attacker, who could block the whole server with it.
const PAGES: usize = 3;

#[derive(Debug, Serialize, Deserialize)]
struct Silences {
    server: String,
    all: Vec<Silence>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Silence {
    /// Hash of the URL that gets no requests. `None` means that no URL of the server gets requests.
    url: Option<String>,
    at: u64,
    until: u64,
    reason: String,
    detail: String,
    status: Option<u16>,
    is_temporary: bool,
}

impl Silences {
    fn load(folder: &CacheFolder, server: &str, now: u64) -> (Key, Self) {
        let key = Key::of(format!("host\n{server}").as_bytes());
        let known = folder
            .read(Area::Hosts, &key, LONGEST)
            .and_then(|octets| read::<Self>(&octets))
            .filter(|known| known.server == server);
        let mut all = known.map(|known| known.all).unwrap_or_default();
        // An entry with a time in the future is ignored, because the clock was wrong when it was stored.
        all.retain(|it| (it.at..it.until).contains(&now));
        let server = server.to_owned();
        (key, Self { server, all })
    }
}

/// Returns the keys of a host and of one of its ports. They contain a hash of the proxy and the certificates, because a run
/// with another proxy or other certificates may reach a different server under the same name.
pub(super) fn names(trust: &str, host: &Host, port: u16) -> [String; 2] {
    [format!("{trust} {host}"), format!("{trust} {host} {port}")]
}

pub(super) fn check(
    folder: &CacheFolder,
    names: &[String; 2],
    url: Option<&str>,
) -> Result<(), Refusal> {
    let now = now();
    let url = url.map(|url| Key::of(url.as_bytes()).to_string());
    for server in names {
        let (key, known) = Silences::load(folder, server, now);
        let (mut pages, of_server): (Vec<_>, Vec<_>) =
            known.all.into_iter().partition(|it| it.url.is_some());
        pages.sort_by_key(|page| std::cmp::Reverse(page.until));
        // The pauses of single URLs are sorted by their end, the latest first. If there are at least [`PAGES`] of them, the
        // whole server has a pause. It lasts until fewer than [`PAGES`] pauses remain, so the entry with this index is used.
        let all = pages.get(PAGES - 1);
        let page = pages
            .iter()
            .find(|page| page.url == url)
            .or(all)
            .filter(|_| url.is_some());
        let known = [
            Reason::NameNotFound,
            Reason::ConnectionFailed,
            Reason::Timeout,
            Reason::HttpStatus,
        ];
        for silence in of_server.iter().chain(page) {
            let Some(&reason) = known.iter().find(|it| it.as_str() == silence.reason) else {
                continue;
            };
            let until = i64::try_from(silence.until).unwrap_or(0);
            let detail = format!(
                "{} (recorded in the cache); embody tries again after {}, or after you delete {}",
                silence.detail,
                DateTime::from_timestamp(until).to_rfc3339(),
                folder.path(Area::Hosts, &key).display()
            );
            return Err(Refusal {
                is_gone: matches!(reason, Reason::NameNotFound | Reason::ConnectionFailed),
                status: silence.status,
                retry: if silence.is_temporary {
                    Retry::Later
                } else {
                    Retry::Never
                },
                ..Refusal::lasting(reason, detail)
            });
        }
    }
    Ok(())
}

pub(super) fn store_unresponsive(folder: &CacheFolder, names: &[String; 2], failed: &FetchFailure) {
    let [name, with_port] = names;
    let server = match failed.unresponsive {
        Some(UnresponsiveScope::Host) => name,
        Some(UnresponsiveScope::Port) => with_port,
        None => return,
    };
    let refusal = match failed.refusal.reason {
        // A deadline belongs to one message and means nothing to later runs. It ended while the host did not respond,
        // so a time-out of the host is stored instead.
        Reason::Timeout | Reason::Deadline => {
            Refusal::temporary(Reason::Timeout, "the server did not respond in time")
        }
        _ => failed.refusal.clone(),
    };
    silence(folder, server, None, &refusal, NOBODY);
}

/// Stores a pause that the server requested (RFC 9110 §10.2.3). A pause of a web archive applies to the whole server. A pause
/// of a source applies only to this URL.
pub(super) fn pause(
    folder: &CacheFolder,
    [_, server]: &[String; 2],
    url: Option<&str>,
    status: u16,
    pause: Duration,
) {
    let what = format!("the server responded with {status} and requested a pause (Retry-After)");
    let refusal = Refusal::temporary(Reason::HttpStatus, what);
    let (refusal, longest) = match url {
        Some(_) => (refusal.of_status(status), LONGEST_OF_SOURCE),
        None => (refusal, LONGEST_PAUSE),
    };
    silence(folder, server, url, &refusal, pause.min(longest));
}

fn silence(
    folder: &CacheFolder,
    server: &str,
    url: Option<&str>,
    refusal: &Refusal,
    pause: Duration,
) {
    let at = now();
    let (key, mut known) = Silences::load(folder, server, at);
    let url = url.map(|url| Key::of(url.as_bytes()).to_string());
    known.all.retain(|it| it.url != url);
    // Parallel processes may have stored more entries than are used, so the list is shortened. Entries for the whole
    // server are sorted first, so that they are kept.
    known.all.sort_by_key(|it| it.url.is_some());
    known.all.truncate(PAGES + 1);
    known.all.push(Silence {
        url,
        at,
        until: at.saturating_add(pause.as_secs()),
        reason: refusal.reason.as_str().to_owned(),
        detail: refusal.detail.to_string(),
        status: refusal.status,
        is_temporary: refusal.retry == Retry::Later,
    });
    if let Some(octets) = written(&known) {
        folder.write(Area::Hosts, &key, &octets);
    }
}
