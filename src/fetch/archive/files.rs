//! Uses captures in WARC and WACZ files as an archive (docs/archive.md). No requests are sent, but the policy applies as if a
//! server were used.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use super::lookup::{ArchiveWindow, go_on, not_archived};
use super::time;
use crate::engine::policy::{Policy, Target};
use crate::engine::report::{Detail, Provenance, Refusal, Setting};
use crate::engine::{Announcement, Answer, Content, Mode};
use crate::error::Error;
use crate::fetch::record::{Capture, Captures, ReplayResult};
use crate::fetch::{Fetch, Request, agrees, answer_by_fetching};

#[derive(Debug)]
pub(crate) struct CaptureFiles {
    path: PathBuf,
    captures: OnceLock<Result<Captures, String>>,
}

impl CaptureFiles {
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        Captures::check(path)?;
        Ok(Self {
            path: path.to_owned(),
            captures: OnceLock::new(),
        })
    }

    pub(crate) fn read(&self, is_stopped: &dyn Fn() -> bool) -> Result<(), Error> {
        let captures = Captures::read(&self.path, is_stopped)?;
        let _ = self.captures.set(Ok(captures));
        Ok(())
    }

    fn captures(&self) -> Result<&Captures, Refusal> {
        let read = || Captures::read(&self.path, &|| false).map_err(|why| why.to_string());
        let captures = self.captures.get_or_init(read).as_ref();
        captures.map_err(|why| not_archived(why.clone()))
    }

    pub(crate) fn trouble(&self) -> Option<String> {
        match self.captures.get()? {
            Ok(captures) => captures.trouble(),
            Err(why) => Some(why.clone()),
        }
    }
}

pub(crate) struct ArchiveReplay {
    pub(crate) files: Arc<CaptureFiles>,
    pub(crate) window: Option<ArchiveWindow>,
    pub(crate) policy: Arc<Policy>,
}

impl Fetch for ArchiveReplay {
    fn fetch(&self, request: &Request) -> Result<Content, Refusal> {
        let begun = Instant::now();
        let captures = self.files.captures()?;
        let mut near = date(request);
        let mut target = self.policy.judge_url(request.url())?;
        let mut asked = vec![target.request_url()];
        loop {
            let (capture, replayed) = self.nearest(captures, request, near, &target)?;
            let location = match replayed {
                ReplayResult::Content(replay) => {
                    let captured = Some(time::time(capture.at));
                    let url = target.public_url();
                    let mut content = Content::new(url, replay.media_type, replay.body);
                    let origin = &mut content.origin;
                    origin.from = Provenance::Archive;
                    origin.captured = captured;
                    // The content dates from the capture, so the time of the capture is reported instead of the current
                    // time.
                    origin.at = captured;
                    origin.status = (capture.status != 0).then_some(capture.status);
                    origin.record = replay.record.map(Into::into);
                    origin.elapsed = begun.elapsed();
                    return Ok(content);
                }
                ReplayResult::Redirect(location) => location,
            };
            target = self.policy.judge_redirect(&target, &location)?;
            // From here on, captures near this capture are preferred to those near the date of the mail, so that a
            // redirect and its target show the same state of the site.
            near = capture.at;
            go_on(&mut asked, &target, &self.policy)?;
        }
    }

    fn answer(&self, request: &Request, mode: Mode) -> Result<Answer, Refusal> {
        match mode {
            Mode::Run | Mode::DryRun => answer_by_fetching(self, request, mode),
            Mode::Probe => {
                let content = self.fetch(request)?;
                let announcement = Announcement::of_content("archive", &content);
                Ok(Answer::Announced(announcement))
            }
        }
    }
}

fn date(request: &Request) -> i64 {
    request.date.map_or(0, time::seconds)
}

impl ArchiveReplay {
    fn nearest(
        &self,
        captures: &Captures,
        request: &Request,
        near: i64,
        target: &Target,
    ) -> Result<(Capture, ReplayResult), Refusal> {
        let date = date(request);
        let holds = |at| self.window.is_none_or(|window| window.holds(date, at));
        let find = |url: &str| captures.near(url, near, holds);
        let mut url = target.public_url();
        let mut found = find(&url);
        // The archive may have recorded the URL without the user name. If the URL with the user name was not found, it
        // is searched again without it.
        if found.1.is_none() && target.has_userinfo() {
            url = target.request_url();
            found = find(&url);
        }
        let (near, nearest) = found;
        let (mut other, mut why) = (None, None);
        for capture in near {
            match captures.replay(&capture, &url, &self.policy) {
                Ok(ReplayResult::Content(replay)) => {
                    if agrees(request.acceptable(), replay.media_type.as_deref()) {
                        return Ok((capture, ReplayResult::Content(replay)));
                    }
                    other.get_or_insert((capture, ReplayResult::Content(replay)));
                }
                Ok(redirect) if other.is_none() => return Ok((capture, redirect)),
                Ok(_) => {}
                Err(refusal) => {
                    let of = format!(
                        "the capture from {} cannot be used: ",
                        time::words(capture.at)
                    );
                    why.get_or_insert(Refusal {
                        detail: Detail::from(of).then(refusal.detail),
                        ..refusal
                    });
                }
            }
        }
        if let Some(other) = other {
            return Ok(other);
        }
        Err(why.unwrap_or_else(|| self.nothing(nearest)))
    }

    fn nothing(&self, nearest: Option<Capture>) -> Refusal {
        let Some(nearest) = nearest else {
            return not_archived("the archive has no capture of the URL");
        };
        let when = time::words(nearest.at);
        let detail = Detail::from(format!("the nearest capture, from {when}, "));
        not_archived(match (nearest.is_useful(), nearest.status) {
            (true, _) => detail.then("is outside ").naming(Setting::ArchiveWindow),
            (false, 0 | 200 | 203) => detail.then("is incomplete"),
            (false, status) => detail.then(format!("is a response with the status {status}")),
        })
    }
}
