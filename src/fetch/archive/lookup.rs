//! Finds the capture of a URL in an archive that is nearest to a date.
//!
//! * A response with a Memento-Datetime field is a capture, even if its status is 404 or 429. Without the field, the response
//!   is a page or an error of the archive itself.
//! * A redirect to another URL of the archive is followed, because it leads to the nearest capture. The target of a captured
//!   redirect is a URL of the original server, so it is converted to one of the archive: no other server gets a request.
//! * The policy checks the URL in the mail, the targets of captured redirects, and each URL of the archive.
//! * At most one request is sent to the capture index, and at most one capture from its response is tried.

use std::cell::Cell;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ureq::http::header;
use url::Url;

use super::index;
use super::secret;
use super::template::{IndexTemplate, Template};
use super::time;
use crate::engine::policy::{Policy, Target};
use crate::engine::report::{Detail, Provenance, Reason, Refusal, Setting};
use crate::engine::{Announcement, Answer, Content, Mode};
use crate::fetch::{
    ExchangeRequest, Fetch, FetchMethod, FetchResponse, Request, RequestAllowance, RequestPurpose,
    Servers, agrees, answer_by_fetching, captured, is_redirect, text, undated,
};

/// The value of `--archive-window`: how far before and after the date of the mail a capture may be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ArchiveWindow {
    pub(crate) before: Duration,
    pub(crate) after: Duration,
}

impl ArchiveWindow {
    pub(super) fn holds(self, date: i64, capture: i64) -> bool {
        let seconds = |side: Duration| i64::try_from(side.as_secs()).unwrap_or(i64::MAX);
        (date.saturating_sub(seconds(self.before))..=date.saturating_add(seconds(self.after)))
            .contains(&capture)
    }
}

pub(crate) struct Archive {
    pub(crate) template: Template,
    pub(crate) index: Option<IndexTemplate>,
    pub(crate) window: ArchiveWindow,
    /// Whether every URL may be sent to the archive (`--archive-any`). By default, URLs that look like secrets are not sent.
    pub(crate) is_told_any: bool,
    pub(crate) policy: Arc<Policy>,
    pub(crate) servers: Arc<Servers>,
}

struct ArchiveCapture {
    original: Target,
    at: i64,
    answer: FetchResponse,
}

enum Nearest {
    Wanted(ArchiveCapture),
    Other(Detail, Option<ArchiveCapture>),
}

impl Fetch for Archive {
    fn fetch(&self, request: &Request) -> Result<Content, Refusal> {
        let begun = Instant::now();
        let found = self.find(request, FetchMethod::Whole)?;
        let mut retrieved = found.answer.into_content(&found.original);
        retrieved.origin.from = Provenance::Archive;
        retrieved.origin.captured = Some(time::time(found.at));
        retrieved.origin.elapsed = begun.elapsed();
        Ok(retrieved)
    }

    fn answer(&self, request: &Request, mode: Mode) -> Result<Answer, Refusal> {
        if mode != Mode::Probe {
            return answer_by_fetching(self, request, mode);
        }
        let found = self.find(request, FetchMethod::Unread)?;
        let media_type = text(&found.answer.headers, &header::CONTENT_TYPE);
        let announcement = Announcement::of_source("archive", media_type, None);
        Ok(Answer::Announced(announcement))
    }
}

impl Archive {
    fn find(&self, request: &Request, how: FetchMethod) -> Result<ArchiveCapture, Refusal> {
        let has_response = Cell::new(false);
        let found = self.find_nearest(request, how, &has_response);
        found.map_err(|refusal| refusal.after_response(has_response.get()))
    }

    /// Finds the capture. Sets `has_response` when the archive sent a response.
    fn find_nearest(
        &self,
        request: &Request,
        how: FetchMethod,
        has_response: &Cell<bool>,
    ) -> Result<ArchiveCapture, Refusal> {
        let date = time::seconds(request.date.ok_or_else(undated)?);
        let original = self.original(request.url())?;
        let wish = ExchangeRequest {
            target: &original,
            accept: request.acceptable(),
            how,
            whose: RequestPurpose::Archive,
            more: &[],
            is_personal: false,
            allowance: RequestAllowance::until(request.deadline),
        };
        let nearest = |at| self.nearest(&wish, date, at, has_response);
        let (why, instead) = match nearest(date)? {
            Nearest::Wanted(found) => return Ok(found),
            Nearest::Other(why, instead) => (why, instead),
        };
        let Some(index) = &self.index else {
            return instead.ok_or_else(|| not_archived(why));
        };
        let listed = self.listed(&wish, date, index, has_response);
        let better = listed.and_then(|at| at.map(nearest).transpose());
        match (better, instead) {
            (Ok(Some(Nearest::Wanted(found))), _) | (Ok(_), Some(found)) => Ok(found),
            (Ok(_), None) => Err(not_archived(why)),
            (Err(refusal), _) => Err(Refusal {
                detail: why
                    .then("; the archive lists another capture, which cannot be used: ")
                    .then(refusal.detail),
                ..refusal
            }),
        }
    }

    fn original(&self, url: &str) -> Result<Target, Refusal> {
        let original = self.policy.judge_url(url)?;
        if !original.scheme().has_server() {
            return Err(not_archived("the archive is not used for file: URLs"));
        }
        let detail = match secret::why(&original) {
            _ if original.has_userinfo() => {
                "a URL with a user name is never sent to the archive".to_owned()
            }
            Some(why) if !self.is_told_any => {
                format!("the URL is not sent to the archive, because {why}")
            }
            _ => return Ok(original),
        };
        Err(Refusal::lasting(Reason::SecretUrl, detail))
    }

    fn nearest(
        &self,
        wish: &ExchangeRequest<'_>,
        date: i64,
        at: i64,
        has_response: &Cell<bool>,
    ) -> Result<Nearest, Refusal> {
        let mut original = wish.target.clone();
        let url = self
            .template
            .expand(&time::stamp(at), &original.request_url());
        let mut target = self.policy.judge_url(&url)?;
        let mut asked = vec![target.request_url()];
        loop {
            let step = ExchangeRequest {
                target: &target,
                ..*wish
            };
            let answer = self.ask(&step, has_response)?;
            let captured = captured(&answer.headers);
            match (answer.status, captured) {
                (status, _) if is_redirect(status) => {
                    (target, original) = self.redirected(&answer, captured, &target, &original)?;
                }
                (200 | 203, Some(at)) => {
                    let found = ArchiveCapture {
                        original,
                        at,
                        answer,
                    };
                    return Ok(self.weighed(wish.accept, date, found));
                }
                (status, Some(at)) => {
                    let when = time::words(at);
                    let why = format!(
                        "the nearest capture, from {when}, is a response with the status {status}"
                    );
                    return Ok(Nearest::Other(why.into(), None));
                }
                (200 | 203, None) => {
                    return Err(not_archived(
                        "the archive's response does not say when the page was captured",
                    ));
                }
                (status, None) => return Err(own_status(status)),
            }
            go_on(&mut asked, &target, &self.policy)?;
        }
    }

    fn redirected(
        &self,
        answer: &FetchResponse,
        captured: Option<i64>,
        target: &Target,
        original: &Target,
    ) -> Result<(Target, Target), Refusal> {
        let location = text(&answer.headers, &header::LOCATION)
            .ok_or_else(|| not_archived("the archive redirects without a valid Location field"))?;
        let from = |base: &Target| {
            let url = Url::parse(&base.request_url()).ok()?.join(&location).ok()?;
            Some(String::from(url))
        };
        let no_url = || not_archived("the archive redirects to an invalid URL");
        let within = from(target).ok_or_else(no_url)?;
        if let Some((stamp, url)) = self.template.read(&within) {
            let next = self.original(url)?;
            // The redirect often leads to a page on which the archive displays the capture. The URL is built from the template
            // instead, whose flag, such as `id_`, makes the archive return the capture unchanged.
            let expanded = self.template.expand(stamp, &next.request_url());
            // If the URL from the template has just been requested, another request would return the same redirect.
            // This is the case if the redirect changes only a part that is fixed in the template, such as http to
            // https. Then the target of the redirect itself is requested.
            let meant = if expanded == target.request_url() {
                self.policy.judge_redirect(target, &location)?
            } else {
                self.policy.judge_url(&expanded)?
            };
            return Ok((meant, next));
        }
        let Some(at) = captured else {
            let detail = "the archive redirects to a URL that is not a capture";
            return Err(not_archived(detail));
        };
        let next = self.original(&from(original).ok_or_else(no_url)?)?;
        let meant = self.template.expand(&time::stamp(at), &next.request_url());
        Ok((self.policy.judge_url(&meant)?, next))
    }

    fn weighed(&self, accept: &str, date: i64, found: ArchiveCapture) -> Nearest {
        let when = time::words(found.at);
        if !self.window.holds(date, found.at) {
            let why = Detail::from(format!("the nearest capture, from {when}, is outside "))
                .naming(Setting::ArchiveWindow);
            return Nearest::Other(why, None);
        }
        let named = text(&found.answer.headers, &header::CONTENT_TYPE);
        if agrees(accept, named.as_deref()) {
            Nearest::Wanted(found)
        } else {
            let why = format!(
                "the nearest capture, from {when}, does not have the type that the mail expects"
            );
            Nearest::Other(why.into(), Some(found))
        }
    }

    fn listed(
        &self,
        wish: &ExchangeRequest<'_>,
        date: i64,
        index: &IndexTemplate,
        has_response: &Cell<bool>,
    ) -> Result<Option<i64>, Refusal> {
        let url = index.expand(&time::stamp(date), &wish.target.request_url());
        let question = ExchangeRequest {
            target: &self.policy.judge_url(&url)?,
            accept: "*/*",
            how: FetchMethod::Whole,
            whose: RequestPurpose::Index,
            ..*wish
        };
        let answer = self.ask(&question, has_response)?;
        match answer.status {
            200 | 203 if answer.body.len() <= index::LONGEST => {}
            200 | 203 => {
                return Err(not_archived(
                    "the index of the archive returned a response that is too long",
                ));
            }
            404 => return Ok(None),
            status => return Err(own_status(status)),
        }
        let captures = index::captures(&answer.body).into_iter();
        Ok(captures
            .filter(|(_, media_type)| agrees(wish.accept, media_type.as_deref()))
            .map(|(at, _)| at)
            .filter(|&at| self.window.holds(date, at))
            .min_by_key(|at| (at.abs_diff(date), *at)))
    }

    fn ask(
        &self,
        asked: &ExchangeRequest<'_>,
        has_response: &Cell<bool>,
    ) -> Result<FetchResponse, Refusal> {
        let given = self.servers.exchange(asked);
        if given.as_ref().is_ok_and(|answer| answer.source.is_server()) {
            has_response.set(true);
        }
        given.map_err(|failed| {
            let mut refusal = failed.refusal;
            // Only the cache returns `HttpStatus` here: the archive requested a pause earlier, so no request was sent.
            // The reason is changed to `ArchiveBusy`, which says this.
            if refusal.reason == Reason::HttpStatus {
                refusal.reason = Reason::ArchiveBusy;
            }
            refusal
        })
    }
}

pub(super) fn go_on(
    asked: &mut Vec<String>,
    target: &Target,
    policy: &Policy,
) -> Result<(), Refusal> {
    let next = target.request_url();
    if asked.len() > policy.limits.redirects as usize || asked.contains(&next) {
        let detail = Detail::from("the captures redirect in a circle, or more often than ");
        return Err(not_archived(detail.naming(Setting::Redirects)));
    }
    asked.push(next);
    Ok(())
}

pub(super) fn not_archived(detail: impl Into<Detail>) -> Refusal {
    Refusal::lasting(Reason::NotArchived, detail)
}

fn own_status(status: u16) -> Refusal {
    let detail = format!("the archive responded with status {status}");
    match status {
        429 => Refusal::temporary(Reason::ArchiveBusy, detail),
        408 | 500..=599 => Refusal::temporary(Reason::HttpStatus, detail).of_status(status),
        404 | 410 => not_archived("the archive has no capture of the URL"),
        _ => not_archived(detail),
    }
}
