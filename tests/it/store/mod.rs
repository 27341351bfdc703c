//! Stores for detached content: in directories, on servers, and in buckets.

mod archives;
mod faults;
mod folders;
mod peers;
mod users;
