//! What a link is, and where links stand in HTML and CSS. Pure: nothing here reads, fetches or writes.

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
mod srcset;
pub mod svg;
mod tags;
pub mod url;
pub mod value;
mod wrapping;
