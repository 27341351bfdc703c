//! The library in other programs: the examples that drive the engine, and the readers of Outlook's files.

mod asynchronous;
mod module;
mod mutants;
mod outlook;
mod page;
mod view;
mod wasm;
mod web;
