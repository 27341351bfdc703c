//! Fills missing parts of a mail from other copies of the same mail (`--copies`). Requests for any other content are
//! passed on to the next source, such as the network.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use quick_cache::sync::Cache;
use quick_cache::{OptionsBuilder, Weighter};

use super::index::CopyIndex;
use super::part::{self, CopyPart};
use super::record::{CopyKey, CopyRecord};
use crate::engine::forms::references;
use crate::engine::policy::{Policy, ReferenceParse};
use crate::engine::report::{Detail, Provenance, Reason, Refusal, Setting};
use crate::engine::same::{
    CoverDifference, Digest, MOST_COMPARED, NoteDescription, copy_key, fillings, identity, plain,
};
use crate::engine::{Answer, Content, CopiedPart, MissingPart, Mode, Need, WholeMail};
use crate::fetch::{Fetch, Request, RequestAllowance};
use crate::mime::{PartId, ScanLimits};

/// Maximum memory for the cache of descriptions of copies, in bytes.
const DESCRIPTIONS: u64 = 32 << 20;

/// Number of mails whose search results are cached. All missing parts of one mail are usually requested together, so its copies
/// are compared only once.
const LOOKED_UP: usize = 64;

/// Source of content that looks for missing parts in the mailboxes of `--copies` first, and then asks the next source.
pub(crate) struct CopySearch {
    index: Arc<CopyIndex>,
    policy: Arc<Policy>,
    others: Arc<dyn Fetch>,
    reading: ReferenceParse,
    limits: ScanLimits,
    described: Cache<CopyRecord, Arc<NoteDescription>, MailWeight>,
    looked_up: Cache<String, Arc<CopiesOfMail>>,
}

/// Identifies a note, the text that a program left in place of an attachment: the number of the part that contains it, and its
/// number among the notes of this part.
type Note = (String, usize);

/// Search results for the notes of one mail (texts that programs left instead of attachments) in the copies of the mail.
struct CopiesOfMail {
    found: HashMap<Note, CopySearchResult>,
    /// Refusal for a note without an entry in `found`: no copy has its content.
    none: Refusal,
}

enum CopySearchResult {
    /// The copies that have the content agree on it.
    Content {
        record: CopyRecord,
        part: (PartId, Digest),
        is_measured: bool,
    },
    Different {
        one: CopyRecord,
        other: CopyRecord,
    },
}

impl Fetch for CopySearch {
    fn fetch(&self, request: &Request) -> Result<Content, Refusal> {
        match &request.need {
            Need::Copy(missing) => self.find(missing, request.deadline),
            _ => self.others.fetch(request),
        }
    }

    /// Reads the copy even in a dry run: this needs no request, and only reading the copy shows whether it has the
    /// part.
    fn answer(&self, request: &Request, mode: Mode) -> Result<Answer, Refusal> {
        match &request.need {
            Need::Copy(missing) => self.find(missing, request.deadline).map(Answer::Content),
            _ => self.others.answer(request, mode),
        }
    }

    fn heeds_date(&self) -> bool {
        self.others.heeds_date()
    }
}

impl CopySearch {
    pub(crate) fn new(index: Arc<CopyIndex>, policy: &Arc<Policy>, others: Arc<dyn Fetch>) -> Self {
        let reading = references::with_parts_in_files(policy.reading_to_tell());
        let options = OptionsBuilder::new()
            .shards(1)
            .estimated_items_capacity(1000)
            .weight_capacity(DESCRIPTIONS)
            .build()
            .expect("both capacities are set");
        let (hasher, lifecycle) = Default::default();
        Self {
            index,
            limits: policy.limits.scan(),
            policy: Arc::clone(policy),
            others,
            reading,
            described: Cache::with_options(options, MailWeight, hasher, lifecycle),
            looked_up: Cache::new(LOOKED_UP),
        }
    }

    fn find(&self, missing: &MissingPart, deadline: Instant) -> Result<Content, Refusal> {
        let begun = Instant::now();
        if missing.sha256.is_some() || missing.md5.is_some() {
            let (record, part) = self.by_digest(missing, deadline)?;
            return self.content(&record, part, true, begun);
        }
        let Some(mail) = &missing.mail else {
            return Err(none_at_all());
        };
        let key = mail.sha256().to_owned();
        let look = || self.look_up(mail, deadline).map(Arc::new);
        let copies = self.looked_up.get_or_insert_with(&key, look)?;
        match copies.found.get(&(missing.part.clone(), missing.note)) {
            None => Err(copies.none.clone()),
            Some(CopySearchResult::Different { one, other }) => Err(self.different(one, other)),
            Some(CopySearchResult::Content {
                record,
                part,
                is_measured,
            }) => {
                let mail = self
                    .index
                    .mails
                    .read(record)
                    .map_err(|why| self.unreadable(record, &why))?;
                let part = mail.part(*part, &self.limits).ok_or_else(none_at_all)?;
                self.content(record, part, *is_measured, begun)
            }
        }
    }

    /// Finds a part with the digest of the missing part, in any mail of the index. If several mails have it, the first readable
    /// one is used.
    fn by_digest(
        &self,
        missing: &MissingPart,
        deadline: Instant,
    ) -> Result<(CopyRecord, CopyPart), Refusal> {
        let sha256 = missing.sha256.as_deref().and_then(sha256_of);
        let key = match (sha256, missing.md5) {
            (Some(sha256), _) => CopyKey::Sha256(*sha256.first_chunk().unwrap_or(&[0; 16])),
            (None, Some(md5)) => CopyKey::Md5(md5),
            (None, None) => return Err(none_at_all()),
        };
        let is_wanted = |found: &part::PartDigests| {
            sha256.is_none_or(|wanted| found.sha256 == wanted)
                && missing
                    .md5
                    .is_none_or(|wanted| sha256.is_some() || found.md5 == wanted)
        };
        let records = self.index.find(key).map_err(|why| failed(&why))?;
        let mut refusal = None;
        for record in records {
            RequestAllowance::until(deadline).remaining()?;
            match self.index.mails.read(&record) {
                Ok(mail) => {
                    if let Some(part) = mail.with_digest(record.part, &self.limits, is_wanted) {
                        let length = part.content.len() as u64;
                        // The SHA-256 proves more than a size. Without it, the size must match, if the mail states one.
                        if sha256.is_some() || missing.size.is_none_or(|size| size == length) {
                            return Ok((record, part));
                        }
                    }
                }
                Err(why) => {
                    refusal.get_or_insert_with(|| self.unreadable(&record, &why));
                }
            }
        }
        Err(refusal.unwrap_or_else(|| {
            let detail = Detail::from("no mail with this content is in ").naming(Setting::Copies);
            Refusal::lasting(Reason::NotInCopies, detail)
        }))
    }

    /// Compares a mail with all other mails of the index that have its Message-ID, and collects the contents for its missing
    /// parts.
    fn look_up(&self, mail: &WholeMail, deadline: Instant) -> Result<CopiesOfMail, Refusal> {
        let plain = plain(mail.bytes());
        let own = identity(&plain).to_bytes();
        let key = CopyKey::Mail(copy_key(&plain).to_bytes());
        let mut records = self.index.find(key).map_err(|why| failed(&why))?;
        records.retain(|record| record.identity != own);
        let mail = NoteDescription::of(&plain, &self.reading, &self.limits);
        let only = |none| {
            Ok(CopiesOfMail {
                found: HashMap::new(),
                none,
            })
        };
        if records.is_empty() {
            return only(none_at_all());
        }
        if !mail.lacks_part() {
            return only(none_of(records.len(), None));
        }
        if records.len() > MOST_COMPARED {
            let what =
                format!("more than {MOST_COMPARED} different mails with this Message-ID are in ");
            let detail = Detail::from(what)
                .naming(Setting::Copies)
                .then(", so they were not compared");
            return only(Refusal::lasting(Reason::CopiesDiffer, detail));
        }
        let mut copies = Vec::new();
        let mut difference: Option<CoverDifference> = None;
        for record in &records {
            RequestAllowance::until(deadline).remaining()?;
            let described = self
                .described(record)
                .map_err(|why| self.unreadable(record, &why))?;
            match fillings(&described, &mail) {
                Ok(fillings) => copies.push((described.rank(), *record, fillings)),
                Err(found) => difference = difference.max(Some(found)),
            }
        }
        copies.sort_by(|(one, ..), (other, ..)| one.cmp(other));
        let mut found: HashMap<Note, (CopySearchResult, Digest)> = HashMap::new();
        for (_, record, fillings) in copies {
            for filling in fillings {
                let content = CopySearchResult::Content {
                    record,
                    part: (filling.part, filling.content),
                    is_measured: filling.is_measured,
                };
                let note = (filling.number, filling.note);
                match found.get_mut(&note) {
                    None => {
                        found.insert(note, (content, filling.content));
                    }
                    Some((known, digest)) if *digest != filling.content => {
                        if let CopySearchResult::Content { record: one, .. } = known {
                            *known = CopySearchResult::Different {
                                one: *one,
                                other: record,
                            };
                        }
                    }
                    Some(_) => {}
                }
            }
        }
        Ok(CopiesOfMail {
            found: found
                .into_iter()
                .map(|(note, (found, _))| (note, found))
                .collect(),
            none: none_of(records.len(), difference),
        })
    }

    fn described(&self, record: &CopyRecord) -> io::Result<Arc<NoteDescription>> {
        if let Some(known) = self.described.get(record) {
            return Ok(known);
        }
        let mail = self.index.mails.read(record)?;
        let described = Arc::new(NoteDescription::of(
            &plain(&mail.bytes),
            &self.reading,
            &self.limits,
        ));
        self.described.insert(*record, Arc::clone(&described));
        Ok(described)
    }

    fn content(
        &self,
        record: &CopyRecord,
        part: CopyPart,
        is_proved: bool,
        begun: Instant,
    ) -> Result<Content, Refusal> {
        self.policy.judge_size(part.content.len() as u64)?;
        let mut content = Content::new("", part.media_type, part.content);
        content.origin.from = Provenance::Copy;
        content.origin.at = Some(SystemTime::now());
        content.origin.elapsed = begun.elapsed();
        content.origin.copy = Some(Arc::new(CopiedPart {
            source: self.source(record),
            index: record.place.number,
            fields: part.fields,
            is_proved,
        }));
        Ok(content)
    }

    fn source(&self, record: &CopyRecord) -> String {
        let path = self.index.mails.path(&record.place);
        path.map(|path| path.display().to_string())
            .unwrap_or_default()
    }

    fn different(&self, one: &CopyRecord, other: &CopyRecord) -> Refusal {
        let [one, other] =
            [one, other].map(|it| format!("message {} of {}", it.place.number, self.source(it)));
        let detail = format!(
            "{one} and {other} are copies of this mail, but have different contents for this part"
        );
        Refusal::lasting(Reason::CopiesDiffer, detail)
    }

    fn unreadable(&self, record: &CopyRecord, why: &io::Error) -> Refusal {
        let (number, source) = (record.place.number, self.source(record));
        let detail = format!(
            "message {number} of {source} may contain the part, but can no longer be read: {why}; run the same command again"
        );
        Refusal::lasting(Reason::FileNotReadable, detail)
    }
}

fn sha256_of(digits: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(digits.get(at * 2..at * 2 + 2)?, 16).ok()?;
    }
    Some(bytes)
}

fn none_at_all() -> Refusal {
    let detail = Detail::from("no other copy of this mail is in ").naming(Setting::Copies);
    Refusal::lasting(Reason::NotInCopies, detail)
}

fn none_of(count: usize, difference: Option<CoverDifference>) -> Refusal {
    let mails = match count {
        1 => "1 other mail with the same Message-ID is in ".to_owned(),
        count => format!("{count} other mails with the same Message-ID are in "),
    };
    let detail = Detail::from(mails).naming(Setting::Copies);
    let detail = match difference {
        None => detail.then(", but this mail has no content for the part"),
        Some(difference) => detail.then(format!(
            ", but no copy of this mail that contains the part (difference: {})",
            difference.words()
        )),
    };
    Refusal::lasting(Reason::NotInCopies, detail)
}

fn failed(why: &io::Error) -> Refusal {
    let detail = Detail::from("the index of ")
        .naming(Setting::Copies)
        .then(format!(" cannot be read: {why}"));
    Refusal::lasting(Reason::FileNotReadable, detail)
}

#[derive(Clone)]
struct MailWeight;

impl Weighter<CopyRecord, Arc<NoteDescription>> for MailWeight {
    fn weight(&self, _record: &CopyRecord, described: &Arc<NoteDescription>) -> u64 {
        described.weight() as u64
    }
}
