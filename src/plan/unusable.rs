//! Why a reference cannot be followed, whatever the policy, in words.

use crate::external_body::Unusable;
use crate::report::{Reason, Refusal};

pub(super) fn refusal_of(unusable: &Unusable) -> Refusal {
    let (reason, detail) = match unusable {
        Unusable::Encoded => (
            Reason::EncodedReference,
            "the part has a Content-Transfer-Encoding that RFC 2046 forbids for it".to_owned(),
        ),
        Unusable::NoAccessType => (
            Reason::NoAccessType,
            "the part has no access-type parameter".to_owned(),
        ),
        Unusable::Unsupported(name) => (
            Reason::UnsupportedAccessType,
            format!("access-type={name} is not retrieved"),
        ),
        Unusable::Unknown(name) => (
            Reason::UnknownAccessType,
            format!("unknown access type: {name}"),
        ),
        Unusable::MissingUrl => (Reason::MissingUrl, "there is no URL".to_owned()),
        Unusable::MissingParameter(name, None) => (
            Reason::MissingParameter,
            format!("the parameter '{name}' is missing"),
        ),
        Unusable::MissingParameter(name, Some(section)) => (
            Reason::MissingParameter,
            format!("the section {name}*{section} is missing"),
        ),
        Unusable::MissingContentId => (
            Reason::MissingParameter,
            "access-type=CONTENT-ID, but the part has no Content-ID".to_owned(),
        ),
        Unusable::BadValue(what) => (Reason::BadUrl, what.clone()),
        Unusable::CutOff(name) => (
            Reason::BadUrl,
            format!("'{name}' was cut off on the way: a closing quote or what follows is missing"),
        ),
        Unusable::RelativeFile(name) => (
            Reason::OutsideFileRoot,
            format!("'{name}' is not an absolute path"),
        ),
        Unusable::Deleted => (
            Reason::Deleted,
            "the attachment was deleted; there is nothing to retrieve".to_owned(),
        ),
        Unusable::OwnContent(what) => (
            Reason::UnsupportedAccessType,
            format!("it refers elsewhere, but {what}"),
        ),
    };
    Refusal::lasting(reason, detail)
}
