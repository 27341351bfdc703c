//! Plans what detaching does with a message: the attachments that are moved out, the references that replace them, and the
//! objects that a store must contain before the edits may be written. This module does not access a store:
//! [`Planner::plan`] is a function of a message and of the objects that a store did not accept.
//!
//! A program that stores objects itself calls it in a loop. [`Detacher`](crate::expand::detach::Detacher) contains such a loop.
//!
//! ```
//! use embody::engine::Mode;
//! use embody::engine::detach::{Choice, Planner, Refused};
//!
//! let mut mail = b"Content-Type: image/png\nContent-Transfer-Encoding: base64\n\n".to_vec();
//! mail.extend_from_slice(&b"AAAA".repeat(1000));
//! mail.push(b'\n');
//! let choice = Choice { larger_than: 1000, ..Choice::default() };
//! let planner = Planner::new(choice, "https://attachments.example.org/".to_owned(), Mode::Run);
//! let detachment = planner.plan(&mail, "mail.eml", &Refused::new());
//! let [object] = detachment.objects.as_slice() else { panic!() };
//! assert_eq!(object.content(&mail).unwrap(), [0; 3000]);
//! // Write the object to durable storage here. Then the edits may be written.
//! assert!(detachment.edits.splice(&mail).into_bytes().len() < 1000);
//! ```

mod base_url;
mod choice;
mod part;
mod planner;

pub(crate) use self::base_url::base_url_problem;
#[cfg(feature = "cli")]
pub(crate) use self::choice::is_attachment;
pub use self::choice::{Choice, Stub};
pub(in crate::engine) use self::planner::DetachedBefore;
pub use self::planner::{Attachment, Detachment, Object, Planner, Refused};
pub use crate::key::Key;
