//! mboxes and Maildirs: where a message starts, what a change may do, locks and readers beside us.

mod archives;
mod archives_damaged;
mod compressed;
mod compressed_maildir;
mod convert_cli;
mod convert_safety;
mod deliverers;
mod dry_run;
mod emlx;
mod folders;
mod large;
mod lengths;
mod maildir;
mod mbox;
mod messages;
mod mh;
mod mmdf;
mod public_inbox;
mod ranges;
mod ranges_recipes;
mod readers;
mod separators;
mod spark;
mod stopped;
mod stores;
mod unreadable;
