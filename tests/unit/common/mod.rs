//! Functions for several files of unit tests. Some of them are shared with the tests of the program.
#![allow(unreachable_pub)]

#[path = "../../common/bounded.rs"]
pub mod bounded;
#[path = "../../common/checks/mod.rs"]
pub mod checks;
pub mod hostile;
pub mod labels;
#[path = "../../common/mail.rs"]
mod mail_everywhere;
#[path = "../../common/mail_system.rs"]
pub mod mail_system;
#[path = "../../common/mailboxes.rs"]
pub mod mailboxes;
pub mod named;
pub mod ours;
pub mod seeds;
#[path = "../../common/tnef.rs"]
pub mod tnef;
pub mod trees;

/// Functions for tests of mail, and the leaf parts as embody reads them.
pub mod mail {
    pub use super::mail_everywhere::*;
    pub use super::ours::our_leaves;
}
