//! Exit statuses of child processes.

use std::process::{Command, Stdio};
use std::sync::Once;

use rustix::io::Errno;

/// Makes the system keep the exit status of child processes until it is read.
///
/// A parent that ignores SIGCHLD passes this setting on. The system then discards the status of each child, and waiting for a
/// child fails with ECHILD. A test process shows whether this is so. If it is, a handler replaces the setting. There is no
/// handler otherwise, because each signal would interrupt system calls of other threads.
#[cfg_attr(not(feature = "http"), allow(dead_code))]
pub(crate) fn keep_exit_statuses() {
    static KEPT: Once = Once::new();
    KEPT.call_once(|| {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", ":"]);
        command.stdin(Stdio::null());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let lost = Some(Errno::CHILD.raw_os_error());
        if command
            .status()
            .is_err_and(|why| why.raw_os_error() == lost)
        {
            #[cfg(feature = "cli")]
            let _ = signal_hook::flag::register(signal_hook::consts::SIGCHLD, Default::default());
        }
    });
}
