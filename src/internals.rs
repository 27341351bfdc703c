//! Private items that benchmarks and fuzz targets use. They can change in every version.

pub use crate::engine::prefilter::Prefilter;
pub mod external_body {
    pub use crate::engine::external_body::*;
    pub use crate::engine::forms::references::read;
    pub use crate::engine::policy::reading::ReferenceParse;
    pub use crate::engine::policy::{Follow, Followed};
}
#[cfg(all(unix, feature = "imap"))]
pub mod imap {
    pub use crate::imap::*;
}
pub mod link {
    pub use crate::link::*;
}
#[cfg(feature = "milter")]
pub mod milter {
    pub use crate::milter::*;
}
#[cfg(feature = "cli")]
pub mod record {
    pub use crate::fetch::record::contents;
}
pub mod outlook {
    pub use crate::engine::outlook::*;
}
pub mod mime {
    pub use crate::mime::*;
}
