//! Hosts that are not asked for a while: nobody was there, or they asked to be left alone (Retry-After).

use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use super::area::Area;
use super::folder::CacheFolder;
use super::record::{LONGEST, read, seconds, written};
use crate::fetch::{Failed, Nobody};
use crate::policy::Host;
use crate::report::{Reason, Refusal, Retry};
use crate::store::Key;

/// How long a host where nobody was is not asked.
const NOBODY: Duration = Duration::from_secs(60 * 60);

/// A server may ask for no longer pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(24 * 60 * 60);

#[derive(Debug, Serialize, Deserialize)]
struct Silence {
    /// The host, or host and port.
    server: String,
    at: u64,
    until: u64,
    reason: String,
    detail: String,
    /// Whether it is one that may be over later.
    is_temporary: bool,
}

fn names(host: &Host, port: u16) -> [String; 2] {
    [host.to_string(), format!("{host} {port}")]
}

fn key(server: &str) -> Key {
    Key::of(format!("host\n{server}").as_bytes())
}

/// Why a host is not asked now.
pub(super) fn check(folder: &CacheFolder, host: &Host, port: u16) -> Result<(), Refusal> {
    let now = seconds(SystemTime::now());
    for server in names(host, port) {
        let silence = folder
            .read(Area::Hosts, &key(&server), LONGEST)
            .and_then(|octets| read::<Silence>(&octets))
            // What comes from the future says nothing about now.
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
            detail: format!(
                "{}; the cache knows, and {host} was not asked again",
                silence.detail
            )
            .into(),
            retry: match silence.is_temporary {
                true => Retry::Later,
                false => Retry::Never,
            },
        });
    }
    Ok(())
}

/// Nobody was there.
pub(super) fn found_nobody(folder: &CacheFolder, host: &Host, port: u16, failed: &Failed) {
    let [name, with_port] = names(host, port);
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

/// The server asked for a pause (RFC 9110 §10.2.3).
pub(super) fn pause(folder: &CacheFolder, host: &Host, port: u16, status: u16, pause: Duration) {
    let [_, server] = names(host, port);
    let detail = format!("the server answered {status} with Retry-After");
    let refusal = Refusal::temporary(Reason::HttpStatus, detail);
    silence(folder, server, &refusal, pause.min(LONGEST_PAUSE));
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
