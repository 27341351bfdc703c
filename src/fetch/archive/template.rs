//! Templates for the URLs of archives: one for captures, such as `https://web.archive.org/web/{date}id_/{url}`, and one for
//! requests to the index of captures.

use std::str::FromStr;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use url::Url;

const QUERY: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// The value of `--archive`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Template {
    front: String,
    middle: String,
}

impl FromStr for Template {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = |what: &str| format!("'{text}' {what}");
        let (front, behind) = text
            .split_once("{date}")
            .ok_or_else(|| wrong("does not contain {date}"))?;
        let middle = behind
            .strip_suffix("{url}")
            .ok_or_else(|| wrong("does not end with {url} after {date}"))?;
        let is_special = |symbol: char| "{}?#".contains(symbol);
        if front.contains(is_special) || middle.contains(is_special) {
            return Err(wrong(
                "contains a brace, ? or # outside the placeholders {date} and {url}",
            ));
        }
        // The URL parser would add a slash to a URL that ends after the host. A template without a slash there would be
        // changed, so it is refused.
        if !front.ends_with('/') || !middle.ends_with('/') {
            return Err(wrong(
                "must contain a slash directly before {date} and directly before {url}",
            ));
        }
        let front = http_url(front).ok_or_else(|| wrong("is not an http or https URL"))?;
        Ok(Self {
            front,
            middle: middle.to_owned(),
        })
    }
}

impl Template {
    /// Fills in the template. The URL is inserted unchanged: the parser has already removed dot segments and the fragment, so
    /// it cannot lead to another path of the archive.
    pub(super) fn expand(&self, stamp: &str, url: &str) -> String {
        format!("{}{stamp}{}{url}", self.front, self.middle)
    }

    /// Splits the URL of a capture in this archive into the 14 digits of its date and the original URL. The scheme and the flag
    /// after the digits, such as `id_`, may differ from the template.
    pub(super) fn read<'u>(&self, url: &'u str) -> Option<(&'u str, &'u str)> {
        let (_, front) = self.front.split_once("://")?;
        let behind = url.split_once("://")?.1.strip_prefix(front)?;
        let digits = behind.bytes().take_while(u8::is_ascii_digit).count();
        let (stamp, behind) = behind.split_at_checked(digits)?;
        let is_of_flag = |it: u8| it.is_ascii_lowercase() || it == b'_';
        let flagged = || {
            let (flag, url) = behind.split_once('/')?;
            flag.bytes().all(is_of_flag).then_some(url)
        };
        let url = behind.strip_prefix(&*self.middle).or_else(flagged)?;
        (stamp.len() == 14 && url.contains("://")).then_some((stamp, url))
    }
}

/// The value of `--archive-cdx`: the template for requests to the index of captures.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct IndexTemplate(String);

impl FromStr for IndexTemplate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = |what: &str| format!("'{text}' {what}");
        if text.matches("{url}").count() != 1 || text.matches("{date}").count() > 1 {
            return Err(wrong(
                "must contain {url} exactly once, and {date} at most once",
            ));
        }
        let filled = text.replace("{url}", "").replace("{date}", "");
        if filled.contains(['{', '}', '#']) {
            return Err(wrong(
                "contains a brace or # outside the placeholders {date} and {url}",
            ));
        }
        http_url(&filled).ok_or_else(|| wrong("is not an http or https URL"))?;
        Ok(Self(text.to_owned()))
    }
}

impl IndexTemplate {
    pub(super) fn expand(&self, stamp: &str, url: &str) -> String {
        let (front, _) = self.0.split_once("{url}").unwrap_or_default();
        let dated = self.0.replace("{date}", stamp);
        if front.contains('?') {
            dated.replace("{url}", &utf8_percent_encode(url, QUERY).to_string())
        } else {
            dated.replace("{url}", url)
        }
    }
}

fn http_url(text: &str) -> Option<String> {
    let url = Url::parse(text).ok()?;
    let is_http = matches!(url.scheme(), "http" | "https") && url.has_host();
    (is_http && url.username().is_empty() && url.password().is_none()).then(|| url.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_is_filled_and_read_again() {
        let template: Template = "HTTPS://Web.Archive.org:443/web/{date}id_/{url}"
            .parse()
            .unwrap();
        let url = "http://www.example.org/a%20b?c=d&e={date}";
        let filled = template.expand("20030502101112", url);
        assert_eq!(
            filled,
            format!("https://web.archive.org/web/20030502101112id_/{url}")
        );
        assert_eq!(template.read(&filled), Some(("20030502101112", url)));
        let rows = [
            (
                "http://web.archive.org/web/20030502101112id_/http://a.b/",
                true,
            ),
            (
                "https://web.archive.org/web/20030502101112im_/http://a.b/",
                true,
            ),
            (
                "https://web.archive.org/web/20030502101112/http://a.b/",
                true,
            ),
            ("https://web.archive.org/web/2003id_/http://a.b/", false),
            (
                "https://web.archive.org/save/20030502101112id_/http://a.b/",
                false,
            ),
            (
                "https://web.archive.org.example.org/web/20030502101112id_/http://a.b/",
                false,
            ),
            ("https://web.archive.org/web/20030502101112id_/login", false),
            ("http://a.b/", false),
        ];
        for (url, is_read) in rows {
            assert_eq!(template.read(url).is_some(), is_read, "{url}");
        }
    }

    #[test]
    fn what_is_no_template_is_refused() {
        for wrong in [
            "",
            "https://web.archive.org/web/{url}",
            "https://web.archive.org/web/{date}",
            "https://web.archive.org/{url}/{date}",
            "https://web.archive.org/?d={date}&u={url}",
            "ftp://web.archive.org/web/{date}id_/{url}",
            "https://me@web.archive.org/web/{date}id_/{url}",
            "https://web.archive.org{date}id_/{url}",
            "{date}/{url}",
        ] {
            assert!(wrong.parse::<Template>().is_err(), "{wrong}");
        }
        for wrong in [
            "",
            "https://a.b/cdx",
            "{url}",
            "https://a.b/?u={url}&v={url}",
        ] {
            assert!(wrong.parse::<IndexTemplate>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn url_cannot_inject_parameters_into_an_index_query() {
        let index: IndexTemplate = "https://a.b/cdx?url={url}&closest={date}".parse().unwrap();
        assert_eq!(
            index.expand("20030502101112", "http://c.d/?e=f&limit=9#g"),
            "https://a.b/cdx?url=http%3A%2F%2Fc.d%2F%3Fe%3Df%26limit%3D9%23g&closest=20030502101112"
        );
    }
}
