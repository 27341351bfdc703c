//! The formats of mailboxes on a system without files, such as WebAssembly. There, this file is the module `mailbox`: it has
//! the modules that do no I/O, and `memory`, which reads mailboxes in memory.

mod appended;
mod candidate;
mod compressed {
    mod method;

    pub(super) use self::method::plain_suffix;
    pub(crate) use self::method::{MAGIC, Method};
}
mod encoding;
mod forms;
pub(crate) mod memory;
mod not_mail;
mod program;
mod start;
mod state;
