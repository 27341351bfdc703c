//! Evidence: `--record` (docs/record.md), what was recorded as an archive (docs/archive.md), and where parts came from.

mod again;
mod answers;
mod captures;
mod captures_hostile;
mod captures_peers;
mod files;
mod mails;
mod provenance;
mod shown;
mod warcs;
