//! Marks in URLs, by which a plan has folders of attachments, or the resolver, asked.

use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use super::Policy;
use super::target::Target;
use crate::error::Error;
use crate::external_body::{Claim, ExternalBody, Form, Scheme};

/// No mail has it: the plan makes it.
const ATTACHMENT: &str = "embody-attachment:";

const QUESTION: &str = "embody-resolver:";

impl Policy {
    /// [`split`] undoes it.
    pub(crate) fn in_attachments(&self, body: &ExternalBody<'_>, url: &str) -> Option<String> {
        let least = match body.form {
            _ if cfg!(not(feature = "file")) => return None,
            _ if self.attachments.is_empty() || body.claim != Claim::None => return None,
            // The names of all lists' attachments are alike, and so are Sympa's: without the hash they tell nothing.
            Form::Scrubbed | Form::Sympa => 2,
            Form::Detached => 1,
            _ => return None,
        };
        Some(format!("{ATTACHMENT}{least}:{url}"))
    }

    /// [`question_of`] undoes it.
    pub(crate) fn question(&self, body: &ExternalBody<'_>) -> Option<String> {
        let hosted = body.hosted.as_deref();
        let hosted = hosted.filter(|_| matches!(body.form, Form::Hosted(_) | Form::Sympa))?;
        if self.resolver.is_empty() {
            return None;
        }
        let (provider, url) = (hosted.provider, &hosted.link);
        let scheme = Scheme::of_url(url).filter(|scheme| scheme.is_http())?;
        self.judge_server(&Target::parse(scheme, url).ok()?).ok()?;
        let name = hosted.name.as_deref().unwrap_or_default();
        let name = utf8_percent_encode(name, NON_ALPHANUMERIC);
        Some(format!("{QUESTION}{provider}:{name}:{url}"))
    }
}

/// The number says how many components at its end have to be there at least.
pub(crate) fn split(url: &str) -> Option<(&str, usize)> {
    let (least, url) = url.strip_prefix(ATTACHMENT)?.split_once(':')?;
    Some((url, least.parse().ok()?))
}

pub(crate) fn plain(url: &str) -> &str {
    let asked = || question_of(url).map_or(url, |(_, _, url)| url);
    split(url).map_or_else(asked, |(url, _)| url)
}

/// The provider, the name of the file, and the URL that the mail shows: http or https, without control characters.
pub(crate) fn question_of(url: &str) -> Option<(&str, Option<String>, &str)> {
    let (provider, rest) = url.strip_prefix(QUESTION)?.split_once(':')?;
    let (name, url) = rest.split_once(':')?;
    let name = percent_decode_str(name).decode_utf8_lossy().into_owned();
    Some((provider, Some(name).filter(|name| !name.is_empty()), url))
}

/// Words with blanks stand in quotes, `'` or `"`, which no sign undoes. There is no shell.
#[cfg_attr(not(feature = "cli"), allow(dead_code))]
pub(crate) fn words(line: &str) -> Result<Vec<String>, Error> {
    let wrong = |what: &str| Error::Usage(what.into());
    let mut words: Vec<String> = Vec::new();
    let mut rest = line.trim_start();
    while !rest.is_empty() {
        let mut word = String::new();
        while let Some(letter) = rest.chars().next().filter(|letter| !letter.is_whitespace()) {
            rest = rest.get(letter.len_utf8()..).unwrap_or_default();
            if letter == '\'' || letter == '"' {
                let quoted = rest.split_once(letter);
                let (quoted, behind) = quoted.ok_or_else(|| wrong("a quote is not closed"))?;
                word.push_str(quoted);
                rest = behind;
            } else {
                word.push(letter);
            }
        }
        words.push(word);
        rest = rest.trim_start();
    }
    let program = words.first_mut().filter(|program| !program.is_empty());
    let program = program.ok_or_else(|| wrong("it names no program"))?;
    // It is started in a folder of its own.
    if program.contains('/')
        && let Ok(absolute) = std::path::absolute(&*program)
        && let Some(absolute) = absolute.to_str()
    {
        *program = absolute.to_owned();
    }
    Ok(words)
}

pub(crate) fn is_question(url: &str) -> bool {
    url.starts_with(QUESTION)
}
