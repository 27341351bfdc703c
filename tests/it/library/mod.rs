//! The library in programs that retrieve content themselves: the examples that drive the engine.

mod asynchronous;
mod wasm;
