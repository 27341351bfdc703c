//! Single messages: external bodies, pictures, detached attachments, limits, documents, and browsers.

mod bounds;
mod chromium;
mod composites;
mod cut_off;
mod detach;
mod detach_hostile;
mod embed_chromium;
mod embed_forecast;
mod embed_hostile;
mod eudora;
mod faults_memory;
mod follow;
mod hosted;
mod mailman;
mod named_files;
mod picture_formats;
mod recover;
mod rfc1864;
mod rfc1873;
mod rfc2017;
mod rows;
mod rtf_body;
mod uuencode;
mod wild;
mod wild_hostile;
mod winmail;
