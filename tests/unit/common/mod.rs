//! What several of these files need; some of it is shared with the tests outside.
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

/// What every test of mail uses, and what our own scanner sees.
pub mod mail {
    pub use super::mail_everywhere::*;
    pub use super::ours::our_leaves;
}
