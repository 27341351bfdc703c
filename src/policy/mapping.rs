//! `--map FROM=TO`: another place for what a URL names.

use std::str::FromStr;

use super::target::split_scheme;
use crate::error::Error;

/// One prefix rewrite.
///
/// FROM is a prefix of the reference's text: scheme and host case-blind, the rest byte for byte. If it ends inside the
/// host (`http://example.org`), it does not match `http://example.org.evil/`. A TO ends behind the host, or where FROM
/// ends: what follows must not become part of a host name (`https://new.example` and `.evil/x`).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mapping {
    from: String,
    to: String,
}

impl Mapping {
    pub(super) fn prefix_len(&self) -> usize {
        self.from.len()
    }

    /// The rewritten URL, if FROM is a prefix of it.
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

/// The slashes of a prefix behind its scheme, and whether it ends in the host; none: no host can go on behind it.
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

    /// Reads `FROM=TO`, both beginning with a scheme.
    ///
    /// URLs hold `=` themselves, so the first `=` *that a scheme and a colon follow* is the one
    /// that divides. A FROM that itself holds `=http:` cannot be written.
    ///
    /// # Errors
    /// [`Error::Usage`].
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
                "'{text}': the text after FROM in a URL would become part of the host name '{to}'; add a slash to the end of TO"
            );
            return Err(Error::Usage(what.into()));
        }
        Ok(Self {
            from: from.to_owned(),
            to: to.to_owned(),
        })
    }
}
