//! The source or the archive: who is asked first, and what is said if neither has it.

use crate::fetch::{Fetch, Probed, Request, Retrieved, SystemFetcher};
use crate::report::{Reason, Refusal, Retry};

use super::lookup::Archive;

/// Who is asked first.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum Order {
    /// The source; the archive if the source is gone.
    #[default]
    SourceFirst,
    /// The archive (`--archive-first`).
    ArchiveFirst,
}

/// Asks the source for what has no date, the archive for what has one: so whatever remembers answers in front of
/// this shares those of sources between messages of different dates, and no others.
#[derive(Debug)]
pub(crate) struct Sources {
    pub(crate) source: SystemFetcher,
    pub(crate) archive: Archive,
}

impl Fetch for Sources {
    fn fetch(&self, request: &Request) -> Result<Retrieved, Refusal> {
        match request.date {
            None => self.source.fetch(request),
            Some(date) => self.archive.fetch(request, date),
        }
    }

    fn probe(&self, request: &Request) -> Result<Probed, Refusal> {
        match request.date {
            None => self.source.probe(request),
            Some(date) => self.archive.probe(request, date),
        }
    }

    fn heeds_date(&self) -> bool {
        true
    }
}

/// Asks one, and then the other, of what asks [`Sources`].
#[derive(Debug)]
pub(crate) struct OrArchived<F> {
    pub(crate) inner: F,
    pub(crate) order: Order,
}

impl<F: Fetch> OrArchived<F> {
    fn either<T>(
        &self,
        request: &Request,
        ask: impl Fn(&Request) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        let source = || {
            ask(&Request {
                date: None,
                ..request.clone()
            })
        };
        let archive = || match request.date {
            Some(_) => ask(request),
            None => Err(Refusal::lasting(
                Reason::NotArchived,
                "no field of the mail says its date, so the archive was not asked",
            )),
        };
        match self.order {
            Order::SourceFirst => match source() {
                Err(refusal) if may_be_archived(&refusal) => {
                    archive().map_err(|other| both(refusal, other))
                }
                answer => answer,
            },
            Order::ArchiveFirst => match archive() {
                Err(other) if other.reason != Reason::InArchive => {
                    source().map_err(|refusal| match may_be_archived(&refusal) {
                        true => both(refusal, other),
                        false => refusal,
                    })
                }
                answer => answer,
            },
        }
    }
}

impl<F: Fetch> Fetch for OrArchived<F> {
    fn fetch(&self, request: &Request) -> Result<Retrieved, Refusal> {
        self.either(request, |request| self.inner.fetch(request))
    }

    fn probe(&self, request: &Request) -> Result<Probed, Refusal> {
        self.either(request, |request| self.inner.probe(request))
    }

    fn heeds_date(&self) -> bool {
        true
    }
}

/// Whether the archive may be asked for what the source did not give.
fn may_be_archived(refusal: &Refusal) -> bool {
    refusal.is_gone || refusal.reason == Reason::Offline
}

/// Why neither gave it.
fn both(source: Refusal, archive: Refusal) -> Refusal {
    let is_later = [source.retry, archive.retry].contains(&Retry::Later);
    let retry = match is_later {
        true => Retry::Later,
        false => Retry::Never,
    };
    match archive.reason {
        Reason::InArchive => Refusal {
            detail: source.detail.then("; ").then(archive.detail),
            ..archive
        },
        Reason::NotArchived | Reason::ArchiveBusy | Reason::SecretUrl => Refusal {
            detail: source.detail.then("; ").then(archive.detail),
            retry,
            ..archive
        },
        Reason::Offline if source.reason == Reason::Offline => source,
        _ => Refusal {
            detail: source
                .detail
                .then("; of the archive: ")
                .then(archive.detail),
            retry,
            ..source
        },
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

    use super::*;

    /// What both say; the source to requests without a date.
    struct Both {
        source: Result<(), Refusal>,
        archive: Result<(), Refusal>,
    }

    impl Fetch for Both {
        fn fetch(&self, request: &Request) -> Result<Retrieved, Refusal> {
            let (name, answer) = match request.date {
                None => ("source", &self.source),
                Some(_) => ("archive", &self.archive),
            };
            answer.clone().map(|()| Retrieved {
                url: name.to_owned(),
                media_type: None,
                body: Default::default(),
                elapsed: Duration::ZERO,
                captured: None,
            })
        }

        fn heeds_date(&self) -> bool {
            true
        }
    }

    fn said(
        order: Order,
        date: Option<SystemTime>,
        source: &Result<(), Refusal>,
        archive: &Result<(), Refusal>,
    ) -> Result<String, (Reason, Retry)> {
        let (source, archive) = (source.clone(), archive.clone());
        let inner = Both { source, archive };
        let request = Request {
            url: "http://a.example/".to_owned(),
            accept: None,
            deadline: Instant::now(),
            date,
        };
        OrArchived { inner, order }
            .fetch(&request)
            .map(|retrieved| retrieved.url)
            .map_err(|refusal| (refusal.reason, refusal.retry))
    }

    #[test]
    fn who_is_asked_and_what_is_said() {
        let gone = Refusal {
            is_gone: true,
            ..Refusal::lasting(Reason::HttpStatus, "404")
        };
        let refused = Refusal {
            is_gone: true,
            ..Refusal::temporary(Reason::ConnectionFailed, "refused")
        };
        let late = Refusal::temporary(Reason::Timeout, "late");
        let denied = Refusal::lasting(Reason::HostNotAllowed, "denied");
        let offline = Refusal::lasting(Reason::Offline, "offline");
        let never = Refusal::lasting(Reason::NotArchived, "never");
        let busy = Refusal::temporary(Reason::ArchiveBusy, "busy");
        let secret = Refusal::lasting(Reason::SecretUrl, "secret");
        let date = Some(UNIX_EPOCH);
        let source = || Ok("source".to_owned());
        let archive = || Ok("archive".to_owned());
        use {Reason as R, Retry as T};
        let rows = [
            // The source; the archive; with the source first, with the archive first.
            (Ok(()), Ok(()), source(), archive()),
            (Err(&gone), Ok(()), archive(), archive()),
            (Err(&refused), Ok(()), archive(), archive()),
            (Err(&late), Ok(()), Err((R::Timeout, T::Later)), archive()),
            (
                Err(&denied),
                Ok(()),
                Err((R::HostNotAllowed, T::Never)),
                archive(),
            ),
            (Err(&offline), Ok(()), archive(), archive()),
            (Ok(()), Err(&never), source(), source()),
            (Ok(()), Err(&busy), source(), source()),
            (Ok(()), Err(&secret), source(), source()),
            (
                Err(&gone),
                Err(&never),
                Err((R::NotArchived, T::Never)),
                Err((R::NotArchived, T::Never)),
            ),
            (
                Err(&gone),
                Err(&busy),
                Err((R::ArchiveBusy, T::Later)),
                Err((R::ArchiveBusy, T::Later)),
            ),
            (
                Err(&gone),
                Err(&secret),
                Err((R::SecretUrl, T::Never)),
                Err((R::SecretUrl, T::Never)),
            ),
            (
                Err(&refused),
                Err(&never),
                Err((R::NotArchived, T::Later)),
                Err((R::NotArchived, T::Later)),
            ),
            (
                Err(&late),
                Err(&never),
                Err((R::Timeout, T::Later)),
                Err((R::Timeout, T::Later)),
            ),
            // What keeps the archive from being asked is not what is wrong with the source.
            (
                Err(&gone),
                Err(&denied),
                Err((R::HttpStatus, T::Never)),
                Err((R::HttpStatus, T::Never)),
            ),
            (
                Err(&gone),
                Err(&late),
                Err((R::HttpStatus, T::Later)),
                Err((R::HttpStatus, T::Later)),
            ),
            (
                Err(&offline),
                Err(&offline),
                Err((R::Offline, T::Never)),
                Err((R::Offline, T::Never)),
            ),
        ];
        for (number, (of_source, of_archive, source_first, archive_first)) in
            rows.into_iter().enumerate()
        {
            let (of_source, of_archive) = (
                of_source.map_err(Clone::clone),
                of_archive.map_err(Clone::clone),
            );
            let first = said(Order::SourceFirst, date, &of_source, &of_archive);
            assert_eq!(first, source_first, "row {number}");
            let first = said(Order::ArchiveFirst, date, &of_source, &of_archive);
            assert_eq!(first, archive_first, "row {number}, the archive first");
        }
        // Without a date nobody asks the archive.
        let nobody = said(Order::SourceFirst, None, &Err(gone), &Ok(()));
        assert_eq!(nobody, Err((R::NotArchived, T::Never)));
        assert_eq!(
            said(Order::ArchiveFirst, None, &Ok(()), &Ok(())),
            Ok("source".to_owned())
        );
    }
}
