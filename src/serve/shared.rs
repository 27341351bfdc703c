//! The parts of the service that all connections share.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use tokio::sync::{Semaphore, watch};

use super::access::{AccessToken, HostNames};
use super::backend::Backend;
use super::counters::ServeCounters;
use super::workers::Workers;

/// Limits of the service.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ServeLimits {
    /// Maximum size of one message, in bytes.
    pub(crate) max_request: u64,
    /// Maximum size of one mailbox, in bytes.
    pub(crate) max_mailbox: u64,
    /// Maximum number of messages that wait for a thread.
    pub(crate) max_queue: usize,
    pub(crate) max_connections: usize,
    /// Number of threads that process messages.
    pub(crate) jobs: usize,
}

pub(super) struct ServeState {
    pub(super) backend: Arc<dyn Backend>,
    pub(super) limits: ServeLimits,
    pub(super) token: Option<AccessToken>,
    pub(super) names: HostNames,
    pub(super) workers: Workers,
    pub(super) mailboxes: Arc<Semaphore>,
    pub(super) counters: ServeCounters,
    pub(super) stopping: watch::Sender<bool>,
    /// Number of open connections that were accepted before the stop.
    pub(super) begun: AtomicUsize,
}

impl ServeState {
    pub(super) fn is_stopping(&self) -> bool {
        *self.stopping.borrow()
    }
}
