//! One reference and what to do with it.

use crate::external_body::ExternalBody;
use crate::link::url;
use crate::mime::PartId;
use crate::policy::attachments::plain;
use crate::policy::resolver::is_question;
use crate::report::{HostedFile, Kind, Outcome, Refusal, Row};

#[derive(Clone, Debug)]
pub struct Item<'a> {
    pub body: ExternalBody<'a>,
    pub number: String,
    pub kind: Kind,
    /// The URL as reports show it: absolute if possible, password masked, `data:` shortened.
    pub shown_url: Option<String>,
    pub step: Step,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Step {
    Decode,
    Copy(PartId),
    Retrieve {
        url: String,
        accept: Option<String>,
    },
    Read {
        folder: String,
        name: Option<String>,
    },
    Leave(Refusal),
}

impl Item<'_> {
    /// Its row if the content can be had; of a retrieval, until a server was asked, that it would be.
    pub fn row(&self, message: &str) -> Row {
        let mut row = Row::new(message, self.number.clone(), self.kind, Outcome::Expanded);
        match &self.step {
            Step::Decode => row.detail = "the content is in the data: URL".into(),
            Step::Copy(_) => row.detail = "the content is in another part".into(),
            Step::Retrieve { url, .. } => {
                row.outcome = Outcome::WouldFetch;
                let who = match is_question(url) {
                    true => "would ask the resolver for",
                    false => "would retrieve",
                };
                row.detail = format!("{who} {}", shown_url(plain(url))).into();
            }
            Step::Read { .. } => row.detail = "the content is in a file beside the mailbox".into(),
            Step::Leave(refusal) => {
                row.outcome = Outcome::Left;
                row.tell_refusal(refusal.clone());
            }
        }
        let declared = self.body.declared.as_ref();
        row.media_type = declared.map(|declared| declared.essence.to_string());
        row.url.clone_from(&self.shown_url);
        // The largest number stands for all larger ones.
        row.bytes = self.body.size.filter(|&size| size != u64::MAX);
        row.hosted = self.body.hosted.as_ref().map(|hosted| {
            Box::new(HostedFile {
                link: shown_url(&hosted.link),
                ..(**hosted).clone()
            })
        });
        self.tell_claim(&mut row);
        row
    }

    pub fn tell_claim(&self, row: &mut Row) {
        if let Some(hosted) = &self.body.hosted {
            row.remark(&in_words(hosted, self.body.size));
        }
    }
}

fn in_words(hosted: &HostedFile, size: Option<u64>) -> String {
    let name = hosted.name.as_deref().unwrap_or("a file");
    let size = size.map(|size| format!(", {size} bytes"));
    let end = hosted.expires.as_ref().map(|end| format!(", until {end}"));
    let (size, end) = (size.unwrap_or_default(), end.unwrap_or_default());
    format!("{name} at {}{size}{end}", hosted.provider)
}

/// A URL with its password masked; of a very long one, which one base may give to ten thousand parts, the start.
pub(super) fn shown_url(url: &str) -> String {
    const LONGEST: usize = 1_000;
    let shown = url::masked(url);
    if shown.len() <= LONGEST {
        return shown.into_owned();
    }
    let start: String = shown.chars().take(LONGEST).collect();
    format!("{start}... ({} bytes)", shown.len())
}
