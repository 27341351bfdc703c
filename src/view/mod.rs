//! The view of a mail for a person: its fields, its text, its attachments, and what is missing.
//!
//! A [`MailFile`] is a file with mail in memory: one mail (`.eml`, `.emlx`, `.msg`, `winmail.dat`) or a mailbox (mbox, MMDF,
//! Eudora, `.pst`), compressed with gzip or not. It lists its mails, and makes a [`MailView`] of one of them at a time, so
//! the memory is that of the file and of one mail.
//!
//! A [`MailView`] contains the decoded fields, the texts, the parts (also those that were in `winmail.dat`, in
//! uuencoded text or in `data:` URLs), the references with their states, and the links that a mail filter wrapped.
//! [`MailView::fill`] takes a file that the person has, and [`MailView::repaired`] returns the mail with everything
//! that it has now.
//!
//! This module does no I/O and reads no clock. It decides nothing about a mail: the [engine](crate::engine) opens forms,
//! finds references and puts content in, and this module reads the result.
//!
//! ```
//! use std::time::SystemTime;
//!
//! use embody::view::{MailFile, ReferenceState};
//!
//! let mail = "From: Ada <ada@example.org>\nSubject: Notes\nMIME-Version: 1.0\n\
//!     Content-Type: multipart/mixed; boundary=b\n\n--b\n\nSee the notes.\n\
//!     --b\nContent-Type: message/external-body; access-type=URL;\n URL=\"https://www.example.org/notes.txt\"\n\n\
//!     Content-Type: text/plain; name=notes.txt\n\n--b--\n";
//! let file = MailFile::open(mail, "notes.eml")?;
//! let mut view = file.mail(0, SystemTime::now())?;
//! assert_eq!(view.subject(), "Notes");
//! assert_eq!(view.bodies()[0].text.as_deref(), Some("See the notes."));
//! assert_eq!(view.references()[0].state, ReferenceState::Missing);
//!
//! view.fill(0, "Milk, bread.", Some("text/plain"))?;
//! assert_eq!(view.references()[0].state, ReferenceState::Filled);
//! assert!(String::from_utf8_lossy(&view.repaired()).contains("Milk, bread."));
//! # Ok::<(), embody::view::ViewError>(())
//! ```

mod bodies;
mod failure;
mod file;
mod links;
mod look;
mod mail;
#[cfg(feature = "outlook")]
mod outlook;
mod parts;
mod protection;
mod references;
mod source;
mod summary;
mod unpack;

pub use self::bodies::BodyView;
pub use self::failure::ViewError;
pub use self::file::MailFile;
pub use self::links::LinkView;
pub use self::mail::{HeaderView, MailView};
pub use self::parts::{PartRole, PartView};
pub use self::protection::TextProtection;
pub use self::references::{ReferenceState, ReferenceView};
pub use self::summary::{FileFormat, MailSummary};
