//! Decides whether a mailbox is copied or converted to another format, and to which one.

use crate::mailbox::kind::StartKind;
use crate::mailbox::{Format, Options};

/// Returns the format of a mailbox, or the format in which it is written if the output format is not given.
pub(crate) fn own_form(kind: StartKind) -> Format {
    match kind {
        StartKind::Mbox | StartKind::Eudora | StartKind::Archive | StartKind::Pst => Format::Mbox,
        StartKind::Maildir => Format::Maildir,
        StartKind::Mh => Format::Mh,
        StartKind::Eml | StartKind::Msg => Format::Eml,
    }
}

/// Returns whether messages are converted to another format, or moved into another mailbox.
pub(crate) fn is_moved(kind: StartKind, options: &Options) -> bool {
    let wanted = options.output_format;
    let is_single = kind.is_message();
    let is_rewritten = options.skip_deleted && !is_single
        || options.mbox_variant.is_some() && own_form(kind).is_file();
    let is_other = is_rewritten || wanted != Format::Auto && wanted != own_form(kind);
    options.by_label.is_some() || matches!(kind, StartKind::Eudora | StartKind::Pst) || is_other
}

/// Returns the format of the mailbox that is written.
pub(crate) fn form(kind: StartKind, options: &Options) -> Format {
    match (options.output_format, own_form(kind)) {
        (Format::Auto, Format::Mh) if options.by_label.is_some() => Format::Maildir,
        (Format::Auto, own) => own,
        (wanted, _) => wanted,
    }
}
