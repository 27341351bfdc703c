//! `--map FROM=TO`: replacement of a URL prefix.

use std::str::FromStr;

use super::target::split_scheme;
use crate::error::Error;

/// Replacement of one URL prefix.
///
/// FROM must be a prefix of the URL. The scheme and the host are compared without regard to case, the rest byte for
/// byte. If FROM ends within a host (`http://example.org`), it does not match a longer host such as
/// `http://example.org.evil/`. TO must not end within a host unless FROM does, because the rest of the URL would
/// become part of the host name (`https://new.example` and `.evil/x`).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mapping {
    from: String,
    to: String,
}

impl Mapping {
    pub(super) fn prefix_len(&self) -> usize {
        self.from.len()
    }

    /// Returns the rewritten URL, or `None` if FROM is not a prefix of the URL.
    pub fn apply(&self, url: &str) -> Option<String> {
        let head = url.get(..self.from.len())?;
        let rest = url.get(self.from.len()..)?;
        let blind = authority_end(&self.from);
        let (from_blind, from_exact) = self.from.split_at_checked(blind)?;
        let (head_blind, head_exact) = head.split_at_checked(blind)?;
        let inside_host = matches!(open_end(&self.from), Some((_, true)));
        if !from_blind.eq_ignore_ascii_case(head_blind)
            || from_exact != head_exact
            || (inside_host && !rest.is_empty() && !rest.starts_with(['/', '?', '#']))
        {
            return None;
        }
        Some(format!("{}{rest}", self.to))
    }
}

/// Describes the end of a prefix that does not contain a complete host, so that the text after it in a URL can change the host.
/// TO is allowed to have such an end only if FROM has the same one. The description is the number of slashes after the scheme,
/// and whether the prefix ends within a host name. Returns `None` if the prefix ends after the host.
fn open_end(prefix: &str) -> Option<(usize, bool)> {
    let behind = prefix.split_once(':').map_or(prefix, |(_, behind)| behind);
    let slashes = behind.len() - behind.trim_start_matches('/').len();
    match slashes {
        0..=2 if slashes == behind.len() => Some((slashes, false)),
        2 if authority_end(prefix) == prefix.len() => Some((slashes, true)),
        _ => None,
    }
}

fn authority_end(url: &str) -> usize {
    match url.split_once("://") {
        Some((scheme, rest)) => scheme.len() + 3 + rest.find(['/', '?', '#']).unwrap_or(rest.len()),
        None => url.find(':').map_or(0, |colon| colon + 1),
    }
}

impl FromStr for Mapping {
    type Err = Error;

    /// Parses `FROM=TO`. Both must begin with a scheme.
    ///
    /// URLs can contain `=`. The separator is therefore the first `=` that is followed by a scheme and a colon. FROM can
    /// therefore not contain `=` followed by a scheme and a colon, such as `=http:`.
    ///
    /// # Errors
    /// [`Error::Usage`] if the text has another form.
    fn from_str(text: &str) -> Result<Self, Error> {
        let because = |why: &str| Error::Usage(format!("'{text}' {why}").into());
        let wrong = || {
            because(
                "is not FROM=TO with two URL prefixes such as ftp://old.example/=https://new.example/",
            )
        };
        let text = text.trim();
        let (from, to) = text
            .match_indices('=')
            .filter_map(|(at, _)| Some((text.get(..at)?, text.get(at + 1..)?)))
            .find(|(_, to)| split_scheme(to).is_ok())
            .ok_or_else(wrong)?;
        if split_scheme(from).is_err() {
            return Err(wrong());
        }
        if text.bytes().any(|byte| byte <= b' ' || byte == 0x7f) {
            return Err(because("contains white space or a control character"));
        }
        let end = open_end(to);
        if end.is_some() && end != open_end(from) {
            let what = format!(
                "'{text}': TO does not end with a slash, so the rest of a URL after FROM would become part of the host name '{to}'; add a slash to the end of TO"
            );
            return Err(Error::Usage(what.into()));
        }
        Ok(Self {
            from: from.to_owned(),
            to: to.to_owned(),
        })
    }
}
