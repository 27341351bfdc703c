//! Finds parts that refer to external content, and reads them into an [`ExternalBody`]: `message/external-body` (RFC 2046
//! §5.2.3, RFC 2017, RFC 1873), and other [forms](super::forms::reference_form::ReferenceForm) that programs write and no
//! document describes. This module does not check whether a reference is allowed, and retrieves nothing. A reference that
//! cannot be followed contains a [`Refusal`](crate::engine::report::Refusal).
//!
//! Deviations from the documents, because such mail exists:
//! * the URL parameter may be unquoted, continued or encoded (RFC 2231), in `<>`, or start with `URL:`;
//! * all white space in the URL is removed (RFC 2017 §3.1 mentions only blanks between words);
//! * LOCAL-FILE names must be absolute: a relative name depended on the sender's directory, and `~` on the sender's account.

pub(in crate::engine) mod claim;
pub(in crate::engine) mod file_names;
pub(in crate::engine) mod note;
pub(in crate::engine) mod reference;
pub(in crate::engine) mod texts;
pub(in crate::engine) mod url;

#[cfg(feature = "cli")]
pub(crate) use self::file_names::name_of;
#[cfg(any(feature = "cli", feature = "view"))]
pub(crate) use self::file_names::shown_name;
pub use self::note::{
    BodyNote, Claim, LONGEST_FIELD, NOTE_FIELD, noted_encoding_field, usual_encoding_field,
};
pub use self::reference::{
    ESSENCE, ExternalBody, ReferenceShape, Referent, Scrap, TextNote, holds_blank, identifier,
    newline_of, own_identifier,
};
pub use self::texts::text_of_part;
