//! IMAP: mail on a server (RFC 3501, RFC 9051).
//!
//! All knowledge of the protocol is in this module. `cli` calls it, and it uses the same types for messages as `mailbox`, which
//! reads local mail.
//!
//! * `account` parses the URL of an account (RFC 5092): the server, the folders and the login. `names` encodes the names of
//!   folders, and `secret` obtains the password.
//! * `wire` reads and writes bytes, in clear text or over TLS, within limits. `response` parses the responses of the server.
//! * `command` builds commands. `exchange` sends them and matches the responses; several commands can be pending at a time.
//!   `login` authenticates a connection.
//! * `search` parses the results of SEARCH. `fetch` reads metadata, `internal_date` the date of receipt, `structure`
//!   BODYSTRUCTURE, and `bodies` whole messages in pieces. All three pipeline their commands.
//! * `session` is an authenticated connection with one method for each command. The methods for folders, their state,
//!   changes and the listing of mailboxes are in `folders`, `status`, `changes` and `listing`. `reading` reads with
//!   several sessions in parallel.
//! * `download` copies the mail of an account into Maildirs, which `backup` writes. `directories` chooses the names of their
//!   directories, and `same_account` checks that they contain the mail of this account. `saved_name` reads and writes the names
//!   of the files, and `same_mail` compares messages. `doubts` judges what the server sent, and `substitute` recognises a text
//!   that is not the message. `unchanged` shortens the update of a large folder. `overview` lists the contents of an account.
//! * `in_place` runs a command that changes the messages of an account, and `batch` does its work in one folder.
//!   `candidates` selects the messages to read, and `originals` downloads them. `machine` decides, step by step, how a
//!   new message replaces an old one, also after a crash. `replace` executes these steps, `copies` finds messages by
//!   their content, `journal` records the steps on disk, and `model` tests them. `adopt` finishes replacements that
//!   began under another name of the server.
//! * `place` is the position of a message on the server, for reports. `failure` lists the errors, and `retry` repeats
//!   what failed temporarily. `narrowing` finds the messages at which a server ends the connection. `canned` is a
//!   scripted server for fuzzing.

pub(crate) mod account;
mod adopt;
mod backup;
mod batch;
mod bodies;
pub(crate) mod candidates;
#[cfg(any(test, feature = "internals"))]
pub mod canned;
mod changes;
mod command;
mod copies;
mod directories;
mod doubts;
pub(crate) mod download;
mod download_reports;
mod exchange;
pub(crate) mod failure;
mod fetch;
mod folders;
pub(crate) mod in_place;
mod internal_date;
mod journal;
mod listing;
mod login;
mod machine;
#[cfg(test)]
mod model;
mod names;
mod narrowing;
mod objects;
mod originals;
pub(crate) mod overview;
pub(crate) mod place;
mod reading;
mod renumbered;
pub(crate) mod replace;
mod response;
mod retry;
mod same_account;
mod same_mail;
mod saved_name;
mod search;
pub(crate) mod secret;
pub(crate) mod session;
mod status;
mod structure;
mod substitute;
mod unchanged;
mod wire;
