//! Which processes of which machine are alive.

use std::fs;

/// What tells this system from every other, also from those of the same name: within one boot and
/// one pid namespace a number means one process. None where the system does not say.
pub(crate) fn system() -> Option<String> {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let namespace = fs::read_link("/proc/self/ns/pid").ok()?;
    Some(format!("{} {}", boot.trim(), namespace.to_str()?))
}

/// When a process of this system started, in ticks since the boot: its number may be used again.
pub(crate) fn started(pid: u32) -> Option<String> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    field_of_stat(&stat, 22).map(str::to_owned)
}

/// A field of what `/proc/PID/stat` says, by its number in proc_pid_stat(5): the third or one behind.
pub(crate) fn field_of_stat(stat: &[u8], number: usize) -> Option<&str> {
    // The second field is a name in parentheses and may hold anything.
    let behind = stat.rsplit(|&b| b == b')').next()?;
    let field = behind.split(|&b| b == b' ').nth(number.checked_sub(2)?)?;
    std::str::from_utf8(field).ok()
}
