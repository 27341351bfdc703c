//! Stores of detached content: folders, servers, buckets.

mod faults;
mod folders;
mod peers;
