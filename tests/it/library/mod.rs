//! The library in programs with their own retrieval: the examples that drive the engine.

mod asynchronous;
mod wasm;
