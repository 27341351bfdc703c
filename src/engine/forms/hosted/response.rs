//! Checks the responses of cloud storage providers, which often return a web page instead of the file. In this case, the
//! resolver program is used next, if the user configured one.

use mail_parser::DateTime;
use memchr::memmem;

use super::provider::is_sign_in;
use crate::engine::Content;
use crate::engine::context::Context;
use crate::engine::external_body::ExternalBody;
use crate::engine::report::{Reason, Refusal, Retry};
use crate::link::url::UrlReference;
use crate::mime::date;
use crate::mime::media_type::{is_markup, is_page};
use crate::span::front;

/// Number of bytes at the start of a web page that are searched for an explanation, such as that the file has expired. Pages
/// contain the explanation near their start.
const LONGEST: usize = 256 << 10;

/// Lower-case phrases that identify a web page sent instead of the file, each with the reason to report. The first
/// phrase that occurs in the page decides.
const SAID: [(Reason, &str); 11] = [
    (Reason::ScanPage, "virus scan warning"),
    (Reason::ScanPage, "id=\"uc-download-link\""),
    (Reason::ScanPage, "id=\"download-form\""),
    (Reason::SignIn, "type=\"password\""),
    (Reason::SignIn, "accounts.google.com/servicelogin"),
    (Reason::SignIn, "login.microsoftonline.com/common"),
    (Reason::SignIn, "<title>sign in"),
    (Reason::Expired, "has expired"),
    (Reason::Expired, "link expired"),
    (Reason::Expired, "no longer available"),
    (Reason::Expired, "been deleted"),
];

/// Returns the refusal for a web page in place of the file.
pub(in crate::engine) fn judge_page(
    body: &ExternalBody<'_>,
    answer: &Content,
) -> Result<(), Refusal> {
    let octets = answer.bytes();
    let start = front(octets, LONGEST);
    let essence = answer.essence();
    let is_html = match essence.as_deref() {
        Some(essence) => is_page(essence),
        // A resolver program returns no media type, so the first bytes of the content decide.
        None => is_markup(start),
    };
    if !is_html {
        return Ok(());
    }
    let host = UrlReference::split(&answer.origin.url)
        .site()
        .map(|site| site.host);
    let is_gate = host.is_some_and(is_sign_in);
    let text = start.to_ascii_lowercase();
    let is_said = |(_, words): &&(Reason, &str)| memmem::find(&text, words.as_bytes()).is_some();
    let said = SAID.iter().find(is_said);
    let is_promised = body.file_name.as_deref().is_some_and(is_page_name);
    let reason = match said.map_or(Reason::WebPage, |(reason, _)| *reason) {
        _ if is_gate => Reason::SignIn,
        // According to the mail, the file is itself a web page, so a page is accepted unless it looks like a sign-in
        // page or a virus scan warning.
        Reason::WebPage | Reason::Expired if is_promised => return Ok(()),
        reason => reason,
    };
    Err(Refusal::lasting(reason, reason.meaning()))
}

fn is_page_name(name: &str) -> bool {
    let extension = name.rsplit('.').next().unwrap_or_default();
    let mut pages = ["htm", "html", "xhtml"].iter();
    pages.any(|it| extension.eq_ignore_ascii_case(it))
}

/// Returns the refusal, with the reason that the link expired if the mail says so.
pub(in crate::engine) fn judged(
    context: &Context,
    body: &ExternalBody<'_>,
    refusal: Refusal,
) -> Refusal {
    let hosted = body.linked.as_ref();
    let expires = hosted.and_then(|hosted| hosted.expires.as_deref());
    let is_answer = matches!(
        refusal.reason,
        Reason::HttpStatus | Reason::WebPage | Reason::SignIn
    );
    match expires.filter(|_| is_answer && refusal.retry == Retry::Never) {
        Some(expires) if time_of(expires).is_some_and(|time| context.is_past(time)) => Refusal {
            reason: Reason::Expired,
            detail: (refusal.detail).then(format!(
                "; according to the mail, the link expired on {expires}"
            )),
            ..refusal
        },
        _ => refusal,
    }
}

fn time_of(text: &str) -> Option<i64> {
    let time = DateTime::parse_rfc3339(text).map(|time| time.to_timestamp());
    time.or_else(|| date::seconds(text.as_bytes()))
}
