//! `--record`: what went over the wire, as WARC (docs/record.md).

mod answers;
mod files;
mod mails;
