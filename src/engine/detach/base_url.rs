//! The beginning of the URLs that detached attachments get.

use crate::engine::policy::Scheme;
use crate::link::url::UrlReference;

/// Returns why mails cannot contain URLs that begin with this text, as the end of a sentence that begins with the URL.
/// Returns `None` for a usable URL.
pub(crate) fn base_url_problem(text: &str) -> Option<String> {
    let problem = |what: &str| Some(what.to_owned());
    let needs_escape = |byte| !u8::is_ascii_graphic(&byte) || b"\"<>\\".contains(&byte);
    if text.bytes().any(needs_escape) {
        return problem(
            "contains blanks, quotes or other characters that must be percent-encoded in a URL",
        );
    }
    let reference = UrlReference::split(text);
    if reference.is_relative() || reference.query.is_some() || reference.fragment.is_some() {
        return problem(
            "is not an absolute URL without ? and #, such as https://files.example.org/",
        );
    }
    let Some(scheme) = Scheme::of_url(text) else {
        let names = Scheme::names();
        return Some(format!(
            "has a scheme that cannot be retrieved; use {names}"
        ));
    };
    let site = reference.site();
    // The base URL is written into each mail, so a password in it would be visible to every reader of the mail.
    if site.is_some_and(|site| site.userinfo.is_some()) {
        return problem(
            "contains a user name or password, which every reader of the mail would see",
        );
    }
    let has_host = site.is_some_and(|site| !site.host.is_empty());
    if scheme != Scheme::File && !has_host {
        return problem("has no host; write a URL such as https://files.example.org/");
    }
    let is_elsewhere = has_host && site.is_some_and(|site| site.host != "localhost");
    if scheme == Scheme::File && (is_elsewhere || !reference.path.starts_with('/')) {
        return problem(
            "is not a directory of this machine; write a URL such as file:///srv/store/",
        );
    }
    None
}
