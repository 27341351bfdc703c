//! What a link is: URL references and how they resolve, `data:` URLs, bases, and where links
//! stand in HTML and CSS. Pure: nothing here reads, fetches or writes.

pub mod base;
pub mod url;
