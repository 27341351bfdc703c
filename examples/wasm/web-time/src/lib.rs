//! The clock that mail-builder would ask for the date of a message, and cfb for the date of a storage. embody writes both
//! without it. The published crate of this name asks JavaScript for the time, through wasm-bindgen; then the module could be
//! loaded only with the imports that wasm-bindgen generates.

pub use std::time::{Duration, SystemTime, UNIX_EPOCH};
