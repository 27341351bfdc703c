//! Decides whether a mailbox is copied or converted to another format, and to which one.

use crate::mailbox::find::Kind;
use crate::mailbox::{Format, Options};

/// Returns the format of a mailbox, or the format in which it is written if the output format is not given.
pub(crate) fn own_form(kind: Kind) -> Format {
    match kind {
        Kind::Mbox | Kind::Eudora | Kind::Archive | Kind::Pst => Format::Mbox,
        Kind::Maildir => Format::Maildir,
        Kind::Mh => Format::Mh,
        Kind::Eml | Kind::Msg => Format::Eml,
    }
}

/// Returns whether messages are converted to another format, or moved into another mailbox.
pub(crate) fn is_moved(kind: Kind, options: &Options) -> bool {
    let wanted = options.output_format;
    let is_single = matches!(kind, Kind::Eml | Kind::Msg);
    let is_rewritten = options.skip_deleted && !is_single
        || options.mbox_variant.is_some() && own_form(kind) == Format::Mbox;
    let is_other = is_rewritten || wanted != Format::Auto && wanted != own_form(kind);
    options.by_label.is_some() || matches!(kind, Kind::Eudora | Kind::Pst) || is_other
}

/// Returns the format of the mailbox that is written.
pub(crate) fn form(kind: Kind, options: &Options) -> Format {
    match (options.output_format, own_form(kind)) {
        (Format::Auto, Format::Mh) if options.by_label.is_some() => Format::Maildir,
        (Format::Auto, own) => own,
        (wanted, _) => wanted,
    }
}
