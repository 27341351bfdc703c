/// Why a mail cannot be shown, or why a file cannot be put into a mail, as a sentence for the user.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct ViewError(String);

impl ViewError {
    pub(super) fn new(what: impl Into<String>) -> Self {
        Self(what.into())
    }
}
