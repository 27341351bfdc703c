//! Stores for detached content: in directories, on servers, and in buckets.

mod appended;
mod archives;
mod faults;
mod folders;
mod peers;
mod users;
