//! What is known of a mailbox at work. What is done to it stands in `convert` for single messages and mboxes, in
//! `read::opened` for open files, and in `place::in_place` and `place::maildir`.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use crate::mailbox::compressed::Method;
use crate::mailbox::forms::eudora::{Index, index_beside};
use crate::mailbox::start::Kind;
use crate::mailbox::{Observer, Options, Stop, Transform};

pub(crate) struct Job<'a, S> {
    pub(crate) path: &'a Path,
    pub(crate) options: &'a Options,
    pub(crate) method: Option<Method>,
    /// Empty where a mailbox of Eudora has no index; None for other mailboxes.
    pub(crate) eudora: Option<&'a Index>,
    pub(crate) transform: Option<&'a dyn Transform<S>>,
    pub(crate) observer: &'a dyn Observer<S>,
    pub(crate) stop: &'a Stop,
}

impl<'a, S> Job<'a, S> {
    pub(crate) fn new(
        path: &'a Path,
        options: &'a Options,
        transform: &'a dyn Transform<S>,
        observer: &'a dyn Observer<S>,
        stop: &'a Stop,
    ) -> Self {
        Self {
            path,
            options,
            method: None,
            eudora: None,
            transform: Some(transform),
            observer,
            stop,
        }
    }

    pub(crate) fn index(&self, kind: Kind, file: Option<&Arc<File>>) -> Option<Index> {
        let file = file.filter(|_| kind == Kind::Eudora)?;
        Some(index_beside(self.path, file).unwrap_or_else(|path| {
            let what = "an index of Eudora that does not fit its mailbox";
            self.observer.skipped(&path, what);
            Index::default()
        }))
    }
}
