//! Stores of detached content: folders, servers, buckets.

mod archives;
mod faults;
mod folders;
mod peers;
mod users;
