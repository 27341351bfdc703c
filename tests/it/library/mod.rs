//! The library in other programs: the examples that drive the engine, and the readers of Outlook's files.

mod asynchronous;
mod outlook;
mod view;
mod wasm;
