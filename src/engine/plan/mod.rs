//! Plans what happens to every reference of a message, and gives the reason for references that stay unchanged. [`documents`]
//! plans the links. They are processed after the references, in the changed message. There is no I/O here.

mod bases;
mod content_id;
pub(crate) mod documents;
mod references;

pub(crate) use self::bases::Bases;
pub(crate) use self::references::question;
use crate::engine::Need;
use crate::engine::external_body::ExternalBody;
use crate::engine::report::{Kind, OtherSources, Outcome, Refusal, Row};
use crate::link::url;
use crate::link::wrapper::OriginalUrl;
use crate::mime::PartId;

pub(crate) struct Plan<'a> {
    pub references: Vec<PlanItem<'a>>,
    /// Groups of references in a multipart/alternative that offer the same attachment, of which only one is needed.
    /// Each group contains indexes into `references`, in the order in which they are tried.
    pub rivals: Vec<Vec<usize>>,
    /// Total length in bytes of the URLs that were made absolute. It counts as memory and work.
    pub held: usize,
}

pub(crate) struct PlanItem<'a> {
    pub body: ExternalBody<'a>,
    pub number: String,
    /// File name of the content for reports.
    pub name: Option<String>,
    pub kind: Kind,
    /// The URL for reports: absolute if possible, with a masked password, and with a `data:` URL shortened.
    pub shown_url: Option<String>,
    pub step: PlanStep,
    /// Fallback for a URL that a mail filter wrapped: the request for the unwrapped original, sent if `step` fails.
    pub original: Option<(Need, OriginalUrl)>,
    /// Request for a copy of the missing part, which is searched for in the mailboxes of `--copies`. If a copy is
    /// found, its content is used, and `step` is not carried out.
    pub copy: Option<Need>,
}

pub(crate) enum PlanStep {
    Decode,
    Copy(PartId),
    Retrieve(Need),
    Read {
        folder: String,
        name: Option<String>,
    },
    Leave(Refusal),
}

impl PlanItem<'_> {
    /// Creates the report row. For content that must be retrieved, its outcome is `WouldFetch` until the retrieval.
    pub(crate) fn row(&self, message: &str) -> Row {
        let mut row = Row::new(message, self.number.clone(), self.kind, Outcome::Expanded);
        row.name.clone_from(&self.name);
        row.sources = OtherSources {
            directory: self.body.facts.attachment_components.is_some(),
            copies: self.body.facts.may_be_in_copies,
        };
        match &self.step {
            PlanStep::Decode => row.detail = "the content is in the data: URL".into(),
            PlanStep::Copy(_) => row.detail = "the content is in another part".into(),
            PlanStep::Retrieve(need) => {
                row.outcome = Outcome::WouldFetch;
                row.detail = match need {
                    Need::Question { url, .. } => {
                        format!(
                            "the resolver program would be started for {}",
                            shown_url(url)
                        )
                    }
                    Need::Object { sha256 } => format!("would read {sha256} from the store"),
                    other => {
                        format!(
                            "would retrieve {}",
                            shown_url(other.url().unwrap_or_default())
                        )
                    }
                }
                .into();
            }
            PlanStep::Read { .. } => {
                row.detail = "the content is in a file next to the mailbox".into()
            }
            PlanStep::Leave(refusal) => row.tell_refusal(refusal.clone()),
        }
        let declared = self.body.declared.as_ref();
        row.media_type = declared.map(|declared| declared.essence.to_string());
        row.url.clone_from(&self.shown_url);
        // `u64::MAX` means that the size in the mail was too large to parse. The report then contains no size.
        row.bytes = self.body.size.filter(|&size| size != u64::MAX);
        if let Some(file) = self.body.linked.as_deref() {
            row.tell_file(file, shown_url(&file.link));
        }
        self.tell_claim(&mut row);
        row
    }

    pub(crate) fn tell_claim(&self, row: &mut Row) {
        if let Some(file) = &self.body.linked {
            let name = file.name.as_deref().unwrap_or("a file");
            let size = self.body.size.map(|size| format!(", {size} bytes"));
            let end = file.expires.as_ref().map(|end| format!(", until {end}"));
            let (size, end) = (size.unwrap_or_default(), end.unwrap_or_default());
            row.remark(&format!("{name} at {}{size}{end}", file.provider));
            if let Some(original) = &file.original {
                let url = shown_url(original);
                row.remark(&format!(
                    "the link in the mail leads through a link protection or redirect service; the original URL is {url}"
                ));
            }
        }
    }
}

/// Returns a URL for reports, with a masked password. A very long URL is shortened, because one base can give ten thousand
/// parts long URLs.
pub(crate) fn shown_url(url: &str) -> String {
    const LONGEST: usize = 1_000;
    let shown = url::masked(url);
    if shown.len() <= LONGEST {
        return shown.into_owned();
    }
    let start: String = shown.chars().take(LONGEST).collect();
    format!("{start}... ({} bytes)", shown.len())
}
