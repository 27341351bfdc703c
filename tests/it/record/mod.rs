//! Evidence: `--record` (docs/record.md), records as an archive (docs/archive.md), and the origin of parts.

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
