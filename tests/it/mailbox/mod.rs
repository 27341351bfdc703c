//! mboxes and Maildirs: where a message starts, what a change may do, locks and readers beside us.

mod apple_mail;
mod archives;
mod archives_damaged;
mod by_label;
mod carriage;
mod compressed;
mod compressed_maildir;
mod convert_cli;
mod convert_safety;
mod deliverers;
mod dry_run;
mod emlx;
mod eudora;
mod folders;
mod from_lines;
mod large;
mod lengths;
mod lost_members;
pub(crate) mod maildir;
mod mbox;
mod messages;
mod mh;
mod mmdf;
mod output_format;
mod printed;
mod public_inbox;
mod ranges;
mod ranges_recipes;
mod readers;
mod separators;
mod spark;
mod stopped;
mod stores;
mod takeout;
#[cfg(unix)]
mod thunderbird;
mod unreadable;
