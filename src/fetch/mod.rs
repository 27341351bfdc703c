//! Retrieval of content that is not in the mail. [`Fetch`] is the trait for it.
//!
//! The planner and the expander depend only on this trait. [`Fetcher`] sends requests to servers and reads files, [`NoFetch`]
//! refuses every request, and [`Canned`] returns prepared responses in tests. An implementation returns the *whole* body or an
//! error: never a part of a body, an error page, or a body larger than the limit.

#[cfg(feature = "cli")]
pub(crate) mod archive;
// The library re-exports `cache` and `store` at its root, so these two modules are public.
#[cfg(feature = "cache")]
#[doc(hidden)]
pub mod cache;
#[cfg(feature = "cli")]
pub(crate) mod record;
// Except for `store`, the following modules are private: other code uses only the items that are re-exported below.
#[cfg(feature = "http")]
mod agent;
mod allowance;
#[cfg(feature = "file")]
mod attachments;
#[cfg(feature = "file")]
mod beside;
#[cfg(not(feature = "file"))]
#[path = "nothing_beside.rs"]
mod beside;
#[cfg(feature = "http")]
mod coding;
#[cfg(feature = "http")]
mod connection;
#[cfg(feature = "file")]
mod eudora;
#[cfg(feature = "http")]
mod exchange;
mod fetcher;
mod file_url;
mod gate;
mod memory;
#[cfg(any(feature = "http", feature = "ftp"))]
mod names;
mod order;
#[cfg(feature = "http")]
mod pace;
mod request;
#[cfg(feature = "http")]
mod response_head;
mod several;
#[cfg(feature = "file")]
mod sidecar_folder;
#[doc(hidden)]
pub mod store;
mod system;
#[cfg(feature = "http")]
mod tap;
#[cfg(feature = "http")]
mod unresponsive;

pub(crate) use allowance::{FetchFailure, RequestAllowance, UnresponsiveScope};
#[cfg(feature = "file")]
pub(crate) use attachments::Attachments;
pub(crate) use beside::Sidecars;
pub use bytes::Bytes;
#[cfg(all(feature = "file", feature = "mailbox"))]
pub(crate) use eudora::{EudoraFiles, EudoraMailbox};
pub use fetcher::Fetcher;
pub(crate) use gate::IsStopped;
#[cfg(any(feature = "http", feature = "ftp"))]
pub use names::Names;
pub(crate) use order::undated;
#[cfg(feature = "http")]
pub(crate) use request::answer_by_fetching;
pub(crate) use request::not_beside;
pub use request::{Canned, Fetch, NoFetch, Request};
pub use several::answer_all;

#[cfg(any(feature = "milter", feature = "serve"))]
pub(crate) use self::pace::Pace;
#[cfg(feature = "http")]
pub(crate) use self::{
    agent::{Direct, HttpReply, USER_AGENT},
    coding::CodingMethod,
    connection::basic,
    exchange::{
        Ask, ExchangeRequest, FetchMethod, FetchResponse, LONGEST_PAUSE, MEMENTO_DATETIME,
        RecordedExchange, RequestPurpose, ResponseCache, ResponseSource, agrees, captured,
        field_text, is_redirect, is_success, is_temporary, now, retry_after, text, time,
    },
    names::SystemNames,
    system::Servers,
    tap::{ExchangeRecorder, Recorder},
    unresponsive::{TIMEOUTS, Unresponsive},
};
