//! Mail on IMAP servers (docs/imap.md).

mod accounts;
mod broken_off;
mod client;
mod doubled;
mod each_response;
mod foreseen;
mod hostile;
mod identity;
mod listing;
mod mails;
mod meanwhile;
mod merged;
mod mutt;
mod named;
mod one_thing;
mod prompt;
mod proxy;
mod reading;
mod refused_once;
mod refusing;
mod replaced;
mod rig;
mod rigs;
mod scripted;
mod secrets;
mod thunderbird;
