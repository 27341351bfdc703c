//! Decides whether a mailbox is copied or converted to another format, and to which one.

use crate::mailbox::forms::kind::StartKind;
use crate::mailbox::{Format, Options};

/// Returns whether messages are converted to another format, or moved into another mailbox.
pub(crate) fn is_moved(kind: StartKind, options: &Options) -> bool {
    let wanted = options.output_format;
    let is_single = kind.is_message();
    let is_rewritten = options.skip_deleted && !is_single
        || options.mbox_variant.is_some() && kind.own_form().is_file();
    let is_other = is_rewritten || wanted != Format::Auto && wanted != kind.own_form();
    options.by_label.is_some() || kind.facts().is_converted || is_other
}

/// Returns the format of the mailbox that is written.
pub(crate) fn form(kind: StartKind, options: &Options) -> Format {
    match (options.output_format, kind.own_form()) {
        (Format::Auto, Format::Mh) if options.by_label.is_some() => Format::Maildir,
        (Format::Auto, own) => own,
        (wanted, _) => wanted,
    }
}
