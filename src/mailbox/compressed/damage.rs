//! The error for compressed data and archives that are damaged, or that this build cannot read.

use std::io;

use super::method::Method;
use crate::detail::Detail;

#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{}", self.detail())]
pub(crate) struct CompressionDamage {
    pub(super) why: Detail,
    /// Byte offset of the damage in the compressed data. `None` for damage of an archive.
    pub(super) at: Option<u64>,
    /// Whether the mail is complete, because the damage comes after its end.
    pub(crate) whole: bool,
    pub(super) is_cut: bool,
    /// Whether the only problem is that an archive contains no mail. This is an error if the archive is the source
    /// itself, but not if the archive was found in a directory.
    pub(crate) is_without_mail: bool,
    /// Whether reading can continue after the damage: only one member of an archive is damaged, and the other members
    /// do not depend on it.
    pub(crate) goes_on: bool,
}

impl CompressionDamage {
    pub(crate) fn of_archive(why: impl Into<Detail>, whole: bool) -> Self {
        Self {
            why: why.into(),
            at: None,
            whole,
            is_cut: false,
            is_without_mail: false,
            goes_on: false,
        }
    }

    pub(crate) fn of_archive_without_mail() -> Self {
        Self {
            is_without_mail: true,
            ..Self::of_archive("the archive contains no mbox", true)
        }
    }

    pub(crate) fn detail(&self) -> Detail {
        let why = self.why.clone();
        match self.at {
            Some(at) => why.then(format!(", at byte {at} of the compressed data")),
            None => why,
        }
    }

    pub(crate) fn of_cut_archive(why: String) -> Self {
        Self {
            is_cut: true,
            ..Self::of_archive(why, false)
        }
    }

    pub(crate) fn of_member(why: String) -> Self {
        Self {
            goes_on: true,
            ..Self::of_archive(why, false)
        }
    }

    pub(crate) fn and(self, more: &str) -> Self {
        Self {
            why: self.detail().then(format!("; {more}")),
            at: None,
            ..self
        }
    }

    pub(crate) fn left(&self, messages: u64) -> String {
        let left = match (self.whole, self.at, messages) {
            (false, _, 0) | (true, None, _) => "",
            (false, ..) => ", but the rest of the mail was not read",
            (true, Some(_), _) => ", but the data after the mail were not read",
        };
        let advice = if self.is_cut {
            "; download the file again, or compare its length with that of the original"
        } else {
            ""
        };
        format!("{left}{advice}")
    }
}

impl From<CompressionDamage> for io::Error {
    fn from(damage: CompressionDamage) -> Self {
        Self::other(damage)
    }
}

/// Returns the error for a build without the feature `archives`, which cannot read a file of the format `what`.
pub(crate) fn unsupported(what: &str) -> io::Error {
    let why = format!(
        "this build of embody does not support {what}; build it with the feature `archives`"
    );
    CompressionDamage::of_archive(why, false).into()
}

/// Returns an error if this build does not support the compression method.
pub(crate) fn check_built(method: Method) -> io::Result<()> {
    if cfg!(feature = "archives") || method.is_utf16() {
        Ok(())
    } else {
        Err(unsupported(method.name()))
    }
}
