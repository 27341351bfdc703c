//! The sequence of requests of one retrieval over http or https (RFC 9110, 9112). `servers` sends each request, and `http_body`
//! decides whether a body is complete.
//!
//! * Redirects are followed here. The policy checks each URL, and each request goes through [`Servers`], so that a cache
//!   handles each of them.
//! * The `Authorization` field is not sent to the target of a redirect.
//! * One time limit covers everything from the first name lookup to the last byte.

use ureq::http::header;

use super::http_body::coding;
use super::servers::Servers;
use crate::engine::Announcement;
use crate::engine::policy::{Policy, Scheme, Target};
use crate::engine::report::{Detail, Reason, Refusal, Setting};
use crate::fetch::Request;
use crate::fetch::allowance::{FetchFailure, RequestAllowance};
use crate::fetch::exchange::{
    ExchangeRequest, FetchMethod, FetchResponse, RequestPurpose, ResponseSource, is_redirect,
    is_success, is_temporary, text,
};

impl Servers {
    /// Finds the type and the length of the content with a HEAD request. If the response to HEAD is an error, a GET request is
    /// sent, and its connection is closed before the body is read.
    pub(super) fn probe(
        &self,
        request: &Request,
        target: &Target,
        allowance: RequestAllowance,
    ) -> Result<Announcement, Refusal> {
        let follow = |how| self.follow(request, target.clone(), how, allowance);
        let (method, answer) = match follow(FetchMethod::Head) {
            Err(refusal) if matches!(refusal.reason, Reason::HttpStatus | Reason::BadResponse) => {
                ("GET", follow(FetchMethod::Unread))
            }
            answer => ("HEAD", answer),
        };
        let (_, answer) = answer?;
        let method = match answer.source {
            ResponseSource::Kept { .. } => "cache",
            _ => method,
        };
        let headers = &answer.headers;
        let is_compressed = coding(headers)?.is_compressed();
        let length = text(headers, &header::CONTENT_LENGTH)
            .filter(|_| !is_compressed)
            .and_then(|length| length.parse().ok());
        self.policy.judge_size(length.unwrap_or(0))?;
        let media_type = text(headers, &header::CONTENT_TYPE);
        Ok(Announcement::of_source(method, media_type, length))
    }

    pub(super) fn follow(
        &self,
        request: &Request,
        target: Target,
        how: FetchMethod,
        allowance: RequestAllowance,
    ) -> Result<(Target, FetchResponse), Refusal> {
        let mut has_response = false;
        let found = self.follow_redirects(request, target, how, allowance, &mut has_response);
        found.map_err(|refusal| refusal.after_response(has_response))
    }

    /// Sends requests until a response is no redirect. Sets `has_response` when a server sent a response.
    fn follow_redirects(
        &self,
        request: &Request,
        mut target: Target,
        how: FetchMethod,
        allowance: RequestAllowance,
        has_response: &mut bool,
    ) -> Result<(Target, FetchResponse), Refusal> {
        let policy = &self.policy;
        let mut visited = vec![target.request_url()];
        let mut is_personal = false;
        loop {
            is_personal |= target.has_userinfo();
            let asked = ExchangeRequest {
                target: &target,
                accept: request.acceptable(),
                how,
                whose: RequestPurpose::Source,
                more: &[],
                is_personal,
                allowance,
            };
            let answer = self.exchange(&asked).map_err(FetchFailure::into_refusal)?;
            *has_response |= answer.source.is_server();
            let status = answer.status;
            match status {
                _ if is_success(status) => return Ok((target, answer)),
                _ if is_redirect(status) => {
                    let location = text(&answer.headers, &header::LOCATION).ok_or_else(|| {
                        let detail = format!(
                            "the server sent a redirect ({status}) without a valid Location field"
                        );
                        Refusal::lasting(Reason::RedirectRefused, detail)
                    })?;
                    target = policy.judge_redirect(&target, &location)?;
                    let next = target.request_url();
                    let allowed = policy.limits.redirects as usize;
                    let too_many = |what| Err(Refusal::lasting(Reason::TooManyRedirects, what));
                    if visited.len() > allowed {
                        let what = Detail::from("the server sent more redirects than ")
                            .naming(Setting::Redirects);
                        return too_many(what.then(format!(", {allowed}")));
                    }
                    if visited.contains(&next) {
                        return too_many("the redirects form a loop".into());
                    }
                    visited.push(next);
                }
                _ => return Err(not_200(status, policy, &target)),
            }
        }
    }
}

fn not_200(status: u16, policy: &Policy, target: &Target) -> Refusal {
    let mut detail = format!("the server responded with status {status}");
    // A response that the proxy itself generated looks like a response of the server (RFC 9110 §7.7), so the message also names
    // the proxy.
    if let (Some(proxy), Scheme::Http) = (&policy.proxy, target.scheme()) {
        detail.push_str(&format!(", through the proxy {}", proxy.place()));
    }
    let refusal = if is_temporary(status) {
        Refusal::temporary(Reason::HttpStatus, detail)
    } else {
        Refusal {
            is_gone: matches!(status, 404 | 410),
            ..Refusal::lasting(Reason::HttpStatus, detail)
        }
    };
    refusal.of_status(status)
}
