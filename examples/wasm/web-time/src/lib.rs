//! The clock that mail-builder would ask for the date of a message, which embody writes without it. The published crate of
//! this name asks JavaScript for the time, through wasm-bindgen; then the module could be loaded only with the imports that
//! wasm-bindgen generates.

pub use std::time::{SystemTime, UNIX_EPOCH};
