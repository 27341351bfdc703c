//! The order of source and archive: which of them gets the first request, and which refusal is reported if both fail.

use crate::engine::report::{Reason, Refusal, Retry, ServerContact};

/// Retrieves content from the source, and from the archive if the source no longer has it. With `archive_first`
/// (`--archive-first`), the archive gets the first request.
pub(super) fn either<T>(
    archive_first: bool,
    source: impl FnOnce() -> Result<T, Refusal>,
    archive: impl FnOnce() -> Result<T, Refusal>,
) -> Result<T, Refusal> {
    if !archive_first {
        match source() {
            Err(refusal) if may_be_archived(&refusal) => {
                archive().map_err(|other| both(refusal, other))
            }
            answer => answer,
        }
    } else {
        match archive() {
            Err(other) => source().map_err(|refusal| {
                if may_be_archived(&refusal) {
                    both(refusal, other)
                } else {
                    refusal.after_response(other.contact == ServerContact::Responded)
                }
            }),
            answer => answer,
        }
    }
}

pub(crate) fn undated() -> Refusal {
    let detail = "the archive was not used, because the mail has no date";
    Refusal::lasting(Reason::NotArchived, detail)
}

pub(super) fn may_be_archived(refusal: &Refusal) -> bool {
    refusal.is_gone || refusal.reason == Reason::Offline
}

pub(super) fn both(source: Refusal, archive: Refusal) -> Refusal {
    let retry = if [source.retry, archive.retry].contains(&Retry::Later) {
        Retry::Later
    } else {
        Retry::Never
    };
    let contact = contact(&source, &archive);
    match archive.reason {
        Reason::NotArchived | Reason::ArchiveBusy | Reason::SecretUrl => Refusal {
            detail: source.detail.then("; ").then(archive.detail),
            status: source.status,
            retry,
            contact,
            ..archive
        },
        Reason::Offline if source.reason == Reason::Offline => source,
        // With `--offline`, the source was not contacted, so its refusal does not show whether it has the content. Only the
        // refusal of the archive is reported.
        _ if source.reason == Reason::Offline => archive,
        _ => Refusal {
            detail: source
                .detail
                .then("; the archive cannot be used: ")
                .then(archive.detail),
            retry,
            contact,
            ..source
        },
    }
}

/// Returns whether the source or the archive responded. The reason alone does not show it: after [`Reason::NotArchived`],
/// files of captures or the cache may have answered for the archive, or the mail has no date and the archive got no request.
fn contact(source: &Refusal, archive: &Refusal) -> ServerContact {
    let responses = [source.contact, archive.contact];
    let is_unreachable = matches!(
        source.reason,
        Reason::ConnectionFailed | Reason::NameNotFound | Reason::NameServerFailed
    );
    if responses.contains(&ServerContact::Responded) || source.status.is_some() {
        ServerContact::Responded
    } else if is_unreachable {
        ServerContact::Unreachable(source.reason)
    } else {
        ServerContact::AsReason
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(
        archive_first: bool,
        source: &Result<(), Refusal>,
        archive: &Result<(), Refusal>,
    ) -> Result<String, (Reason, Retry)> {
        let source = || source.clone().map(|()| "source".to_owned());
        let archive = || archive.clone().map(|()| "archive".to_owned());
        either(archive_first, source, archive).map_err(|refusal| (refusal.reason, refusal.retry))
    }

    #[test]
    fn archive_answers_if_the_source_is_gone_or_if_the_archive_is_asked_first() {
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
        let source = || Ok("source".to_owned());
        let archive = || Ok("archive".to_owned());
        use {Reason as R, Retry as T};
        let rows = [
            // Columns: result of the source, result of the archive, expected result if the source gets the first request,
            // expected result if the archive gets it.
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
            // If the policy does not allow requests to the archive, the refusal of the source remains the reason.
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
            let first = said(false, &of_source, &of_archive);
            assert_eq!(first, source_first, "row {number}");
            let first = said(true, &of_source, &of_archive);
            assert_eq!(first, archive_first, "row {number}, the archive first");
        }
    }
}
