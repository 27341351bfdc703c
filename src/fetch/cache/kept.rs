//! Answers requests from the cache or from the servers.
//!
//! * A fresh response is returned without a request. A stale one is validated with the server. If the server is not reachable,
//!   a stale response is not used, except with `--offline`.
//! * A stored response is used only if its content has the right hash, and if the policy allows the addresses that it came
//!   from. Otherwise a request is sent, and the current address is checked.
//! * Responses to URLs with a user name or password are neither stored nor looked up, and neither are those to the redirects
//!   from such a URL.
//! * In the cache of one run, the age of a response does not matter: a run that continues produces the same output as without
//!   the interruption. Temporary errors are not stored there.
//! * Content from ftp is not stored, because ftp has no rules for freshness. Only the hosts that currently get no requests are
//!   looked up for ftp. Local files never get here.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use ureq::http::{HeaderName, HeaderValue, header};

use super::entry::{self, AbsentEntry, CacheEntry, EntryBody, KeptAnswer};
use super::folder::CacheFolder;
use super::hosts;
use super::semantics::{self, IgnoredDirectives, header_map};
use crate::engine::policy::{Host, Policy};
use crate::engine::report::{Reason, Refusal};
use crate::fetch::{
    Ask, ExchangeRequest, FetchFailure, FetchMethod, FetchResponse, RequestPurpose, ResponseCache,
    ResponseSource, agrees, is_redirect, is_success, is_temporary, now, retry_after,
};
use crate::key::Key;
use crate::platform::disk::layout::Area;

/// Lifetime of a capture in a web archive, in seconds. A capture does not change.
const CAPTURE: u64 = 30 * 24 * 60 * 60;

/// Lifetime in seconds of other responses of an archive, such as redirects to the nearest capture. It is shorter, because the
/// archive may get a nearer capture.
const NEAREST: u64 = 24 * 60 * 60;

const ARCHIVE_PAUSE: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(crate) struct KeptResponses {
    pub(crate) folder: Arc<CacheFolder>,
    pub(crate) policy: Arc<Policy>,
    pub(crate) trust: String,
    pub(crate) ignoring: IgnoredDirectives,
    pub(crate) is_offline: bool,
    /// The shared cache (`--cache`), which is asked when the cache of this run has no response.
    pub(crate) behind: Option<Box<KeptResponses>>,
}

impl ResponseCache for KeptResponses {
    fn answer(
        &self,
        asked: &ExchangeRequest<'_>,
        ask: Ask<'_>,
    ) -> Result<FetchResponse, FetchFailure> {
        if self.ignoring == IgnoredDirectives::Everything {
            return self.of_run(asked, &|asked| match &self.behind {
                Some(cache) => cache.answer(asked, ask),
                None => ask(asked),
            });
        }
        match (self.is_offline, asked.is_personal) {
            (true, true) => Err(offline(
                "responses to URLs with a user name or password, and to their redirects, are not cached",
            )
            .into()),
            (true, false) => self.remembered(asked).map_err(Into::into),
            (false, true) => self.ask(asked, ask),
            (false, false) if asked.whose != RequestPurpose::Source => self.archived(asked, ask),
            (false, false) => self.current(asked, ask),
        }
    }

    fn may_ask(&self, host: &Host, port: u16) -> Result<(), Refusal> {
        if self.ignoring == IgnoredDirectives::Everything {
            let cache = self.behind.as_ref();
            return cache.map_or(Ok(()), |cache| cache.may_ask(host, port));
        }
        if self.is_offline {
            Err(offline("content retrieved over ftp is not cached"))
        } else {
            hosts::check(&self.folder, &hosts::names(&self.trust, host, port), None)
        }
    }

    fn store_unresponsive(&self, host: &Host, port: u16, failed: &FetchFailure) {
        if self.ignoring == IgnoredDirectives::Everything {
            if let Some(cache) = &self.behind {
                cache.store_unresponsive(host, port, failed);
            }
            return;
        }
        hosts::store_unresponsive(&self.folder, &hosts::names(&self.trust, host, port), failed);
    }
}

#[derive(Debug)]
pub(crate) struct Offline;

impl ResponseCache for Offline {
    fn answer(&self, _: &ExchangeRequest<'_>, _: Ask<'_>) -> Result<FetchResponse, FetchFailure> {
        Err(offline("no network requests are made").into())
    }

    fn may_ask(&self, _: &Host, _: u16) -> Result<(), Refusal> {
        Err(offline("no network requests are made"))
    }

    fn store_unresponsive(&self, _: &Host, _: u16, _: &FetchFailure) {}
}

fn offline(detail: &str) -> Refusal {
    Refusal::lasting(Reason::Offline, detail)
}

impl KeptResponses {
    /// Returns a stored response with `--offline`. It may be stale, and it is used even if the server has responded with 404 or
    /// 410 since, because this is the only content available.
    fn remembered(&self, asked: &ExchangeRequest<'_>) -> Result<FetchResponse, Refusal> {
        let entry = CacheEntry::load(&self.folder, asked, &self.trust);
        if let Some(kept) = &entry.answer {
            entry::judge(&kept.from, &self.policy)?;
            if let Some(body) = self.body(kept)? {
                return Ok(answer(kept, body));
            }
        }
        match &entry.gone {
            Some(gone) => {
                entry::judge(&gone.from, &self.policy)?;
                Ok(gone_answer(gone))
            }
            None => Err(offline("the cache does not contain a response for the URL")),
        }
    }

    fn current(
        &self,
        asked: &ExchangeRequest<'_>,
        ask: Ask<'_>,
    ) -> Result<FetchResponse, FetchFailure> {
        let mut entry = CacheEntry::load(&self.folder, asked, &self.trust);
        if let Some(gone) = &entry.gone
            && (gone.at..gone.until).contains(&now())
            && entry::judge(&gone.from, &self.policy).is_ok()
        {
            return Ok(gone_answer(gone));
        }
        let is_allowed = |kept: &KeptAnswer| entry::judge(&kept.from, &self.policy).is_ok();
        if let Some(kept) = &entry.answer.clone().filter(is_allowed) {
            match semantics::conditions(kept, asked) {
                None if entry.gone.is_none() => {
                    if let Some(body) = self.body(kept)? {
                        return Ok(answer(kept, body));
                    }
                }
                // `body` fails if the stored content exceeds the limit of the policy. Validating it would be useless,
                // so a full request is sent: the content on the server may be smaller now.
                Some(conditions) if asked.how == FetchMethod::Whole && !conditions.is_empty() => {
                    if let Ok(Some(body)) = self.body(kept) {
                        return self.ask_whether(asked, &mut entry, kept, body, &conditions, ask);
                    }
                }
                _ => {}
            }
        }
        self.renew(asked, &mut entry, ask)
    }

    fn of_run(
        &self,
        asked: &ExchangeRequest<'_>,
        ask: Ask<'_>,
    ) -> Result<FetchResponse, FetchFailure> {
        if asked.is_personal || asked.how != FetchMethod::Whole {
            return ask(asked);
        }
        let mut entry = CacheEntry::load(&self.folder, asked, &self.trust);
        if let Some(kept) = &entry.answer
            && let Some(answer) = self.allowed(kept)?
        {
            return Ok(answer);
        }
        let given = ask(asked)?;
        // A temporary error is not stored, because it may be over at the next attempt. A capture in an archive may
        // repeat the status of such an error, but never changes, so it is stored.
        if is_capture(&given) || !is_temporary(given.status) {
            self.keep_whatever(asked, &mut entry, &given);
        }
        Ok(given)
    }

    /// Answers a request to a web archive. The header fields of a capture are those of the original server, so their freshness
    /// ended long ago, and fixed lifetimes are used instead. Captures are stored, and also responses that lead to a capture or
    /// show that the archive has no capture.
    fn archived(
        &self,
        asked: &ExchangeRequest<'_>,
        ask: Ask<'_>,
    ) -> Result<FetchResponse, FetchFailure> {
        let mut entry = CacheEntry::load(&self.folder, asked, &self.trust);
        let now = now();
        if let Some(kept) = &entry.answer {
            let lifetime = if semantics::is_capture(&kept.headers) {
                CAPTURE
            } else {
                NEAREST
            };
            if (kept.at..kept.at.saturating_add(lifetime)).contains(&now)
                && let Some(answer) = self.allowed(kept)?
            {
                return Ok(answer);
            }
        }
        let given = self.ask(asked, ask)?;
        let is_whole = !is_success(given.status) || asked.how == FetchMethod::Whole;
        let is_lasting = matches!(given.status, 404 | 410)
            || is_success(given.status)
            || is_redirect(given.status)
            || is_capture(&given);
        if is_whole && is_lasting {
            self.keep_whatever(asked, &mut entry, &given);
        }
        Ok(given)
    }

    fn keep_whatever(
        &self,
        asked: &ExchangeRequest<'_>,
        entry: &mut CacheEntry,
        given: &FetchResponse,
    ) {
        if let Some(from) = entry::from(&given.source) {
            let mut headers = semantics::relevant(&given.headers, self.ignoring);
            headers.extend(semantics::capture_time(&given.headers));
            entry.gone = None;
            entry.answer = self.kept_answer(asked, given, headers, from);
            entry.store(&self.folder);
        }
    }

    fn allowed(&self, kept: &KeptAnswer) -> Result<Option<FetchResponse>, Refusal> {
        if entry::judge(&kept.from, &self.policy).is_err() {
            return Ok(None);
        }
        Ok(self.body(kept)?.map(|body| answer(kept, body)))
    }

    fn body(&self, kept: &KeptAnswer) -> Result<Option<Bytes>, Refusal> {
        let Some(body) = &kept.body else {
            return Ok(Some(Bytes::new()));
        };
        self.policy.judge_size(body.octets)?;
        let Some(key) = Key::parse(&body.sha256) else {
            return Ok(None);
        };
        let octets = self
            .folder
            .read(Area::Bodies, &key, body.octets)
            .filter(|octets| Key::of(octets) == key);
        Ok(octets.map(Bytes::from))
    }

    fn renew(
        &self,
        asked: &ExchangeRequest<'_>,
        entry: &mut CacheEntry,
        ask: Ask<'_>,
    ) -> Result<FetchResponse, FetchFailure> {
        let answer = self.ask(asked, ask)?;
        self.keep(asked, entry, &answer);
        Ok(answer)
    }

    fn ask_whether(
        &self,
        asked: &ExchangeRequest<'_>,
        entry: &mut CacheEntry,
        kept: &KeptAnswer,
        body: Bytes,
        conditions: &[(HeaderName, HeaderValue)],
        ask: Ask<'_>,
    ) -> Result<FetchResponse, FetchFailure> {
        let conditional = ExchangeRequest {
            more: conditions,
            ..*asked
        };
        let given = self.renew(&conditional, entry, ask)?;
        if given.status != 304 {
            return Ok(given);
        }
        let news = semantics::relevant(&given.headers, self.ignoring);
        let Some(headers) = semantics::refreshed(kept, asked, &news) else {
            // The 304 validates another response than the stored one, so the request is repeated without conditions.
            return self.renew(asked, entry, ask);
        };
        let renewed = KeptAnswer {
            at: given.at,
            first: Some(kept.first.unwrap_or(kept.at)),
            asked: semantics::of_request(asked),
            from: match (&kept.from, entry::from(&given.source)) {
                // The old addresses sent the content and the new ones validated it. All of them are stored, because the
                // policy must allow each one.
                (ResponseSource::Server(before), Some(ResponseSource::Server(now))) => {
                    let new = now.into_iter().filter(|it| !before.contains(it));
                    ResponseSource::Server(before.iter().copied().chain(new).take(64).collect())
                }
                (before, _) => before.clone(),
            },
            headers,
            ..kept.clone()
        };
        entry.gone = None;
        let is_kept = semantics::may_be_kept(renewed.status, asked, &renewed.headers);
        entry.answer = is_kept.then(|| renewed.clone());
        entry.store(&self.folder);
        Ok(answer(&renewed, body))
    }

    fn ask(
        &self,
        asked: &ExchangeRequest<'_>,
        ask: Ask<'_>,
    ) -> Result<FetchResponse, FetchFailure> {
        let Some((host, port)) = asked.target.host().zip(asked.target.port()) else {
            return ask(asked);
        };
        let (folder, server) = (&*self.folder, hosts::names(&self.trust, &host, port));
        let url = asked.target.request_url();
        hosts::check(folder, &server, Some(&url))?;
        let given = ask(asked);
        match &given {
            Err(failed) => hosts::store_unresponsive(folder, &server, failed),
            // A captured 429 or 503 is an old response of the original server, not a request of the archive for a
            // pause.
            Ok(answer) if matches!(answer.status, 429 | 503) && !is_capture(answer) => {
                let (status, wanted) = (answer.status, retry_after(&answer.headers));
                let is_source = asked.whose == RequestPurpose::Source;
                let wanted = match status {
                    429 if !is_source => Some(wanted.unwrap_or_default().max(ARCHIVE_PAUSE)),
                    _ => wanted,
                };
                if let Some(pause) = wanted {
                    let url = is_source.then_some(url.as_str());
                    hosts::pause(folder, &server, url, status, pause);
                }
            }
            Ok(_) => {}
        }
        given
    }

    fn keep(&self, asked: &ExchangeRequest<'_>, entry: &mut CacheEntry, given: &FetchResponse) {
        let Some(from) = entry::from(&given.source) else {
            return;
        };
        let headers = semantics::relevant(&given.headers, self.ignoring);
        let at = given.at;
        match given.status {
            // Some servers respond to HEAD with 404 although GET succeeds, so only the 404 of a GET is stored. After a HEAD, a
            // probe sends a GET anyway.
            404 | 410 if asked.how != FetchMethod::Head => {
                let pause = semantics::gone_for(given.status, asked, &headers);
                entry.gone = pause.map(|pause| AbsentEntry {
                    at,
                    until: at.saturating_add(pause.as_secs()),
                    status: given.status,
                    from,
                });
            }
            status
                if (is_success(status) || is_redirect(status))
                    && asked.how == FetchMethod::Whole =>
            {
                entry.gone = None;
                entry.answer = None;
                // Content whose type differs from the one that the reference expects is not put into the mail, so it is not
                // stored. Otherwise any mail could fill the cache with large pages.
                let named = given
                    .headers
                    .get(header::CONTENT_TYPE)
                    .and_then(|value| value.to_str().ok());
                let may_be_put_in = !is_success(status)
                    || self.policy.accept_mismatch
                    || agrees(asked.accept, named);
                if may_be_put_in && semantics::may_be_kept(status, asked, &headers) {
                    entry.answer = self.kept_answer(asked, given, headers, from);
                }
            }
            _ => return,
        }
        entry.store(&self.folder);
    }

    fn kept_answer(
        &self,
        asked: &ExchangeRequest<'_>,
        given: &FetchResponse,
        headers: Vec<(String, String)>,
        from: ResponseSource,
    ) -> Option<KeptAnswer> {
        let body = match given.status {
            status if is_success(status) => {
                let key = Key::of(&given.body);
                if !self.folder.write(Area::Bodies, &key, &given.body) {
                    return None;
                }
                Some(EntryBody {
                    sha256: key.to_string(),
                    octets: given.body.len() as u64,
                })
            }
            _ => None,
        };
        Some(KeptAnswer {
            at: given.at,
            first: None,
            status: given.status,
            asked: semantics::of_request(asked),
            headers,
            body,
            from,
            recorded: given.recorded.clone(),
        })
    }
}

fn is_capture(answer: &FetchResponse) -> bool {
    semantics::capture_time(&answer.headers).is_some()
}

fn answer(kept: &KeptAnswer, body: Bytes) -> FetchResponse {
    let mut headers = header_map(&kept.headers);
    if let Some(body) = &kept.body {
        headers.insert(header::CONTENT_LENGTH, body.octets.into());
    }
    FetchResponse {
        status: kept.status,
        at: kept.at,
        headers,
        body,
        source: ResponseSource::Kept {
            first: kept.first.unwrap_or(kept.at),
        },
        recorded: kept.recorded.clone(),
    }
}

fn gone_answer(gone: &AbsentEntry) -> FetchResponse {
    FetchResponse {
        status: gone.status,
        at: gone.at,
        headers: Default::default(),
        body: Bytes::new(),
        source: ResponseSource::Kept { first: gone.at },
        recorded: None,
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::time::Duration;

    use super::*;
    use crate::engine::policy::Scheme;
    use crate::fetch::allowance::RequestAllowance;

    #[test]
    fn stored_response_keeps_the_time_at_which_it_arrived() {
        let folder = tempfile::tempdir().unwrap();
        let policy = Arc::new(Policy::default().with_fetch([Scheme::Http]));
        for (ignoring, whose) in [
            (IgnoredDirectives::Nothing, RequestPurpose::Source),
            (IgnoredDirectives::Nothing, RequestPurpose::Archive),
            (IgnoredDirectives::Everything, RequestPurpose::Source),
        ] {
            let path = folder.path().join(format!("{ignoring:?} {whose:?}"));
            let cache = KeptResponses {
                folder: Arc::new(CacheFolder::open(&path, None).unwrap()),
                policy: Arc::clone(&policy),
                trust: String::new(),
                ignoring,
                is_offline: false,
                behind: None,
            };
            let asked = ExchangeRequest {
                target: &policy.judge_url("http://www.example.org/a").unwrap(),
                accept: "*/*",
                how: FetchMethod::Whole,
                whose,
                more: &[],
                is_personal: false,
                allowance: RequestAllowance::of(Duration::from_secs(60)),
            };
            // The response arrived five seconds before the cache gets it. If the cache stored its own time instead of
            // the time of arrival, the comparison below would fail.
            let arrival = now() - 5;
            let headers = [
                (
                    header::CACHE_CONTROL,
                    HeaderValue::from_static("max-age=600"),
                ),
                (header::CONTENT_TYPE, HeaderValue::from_static("text/plain")),
            ];
            let response = FetchResponse {
                status: 200,
                at: arrival,
                headers: headers.into_iter().collect(),
                body: Bytes::from_static(b"kept"),
                source: ResponseSource::Server(vec![Ipv4Addr::new(93, 184, 215, 14).into()]),
                recorded: None,
            };
            let first = cache.answer(&asked, &|_| Ok(response.clone())).unwrap();
            let stored = cache.answer(&asked, &|_| panic!("{asked:?}")).unwrap();
            assert_eq!(stored.source, ResponseSource::Kept { first: arrival });
            assert_eq!((first.at, stored.at), (arrival, arrival));
        }
    }
}
