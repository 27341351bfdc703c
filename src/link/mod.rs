//! Finding, resolving and rewriting links in HTML and CSS. This module performs no I/O.

pub mod base;
pub mod css;
pub mod data;
pub mod entity;
mod hidden;
pub mod html;
pub mod label;
pub mod markup;
mod names;
mod scopes;
pub(crate) mod server_url;
mod srcset;
pub mod svg;
mod tags;
pub mod url;
pub mod value;
pub(crate) mod wrapper;
mod wrapping;
