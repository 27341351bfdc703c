//! Runs the program as an ordinary user. Much of what root may do is refused to other users, so tests that run as root
//! do not find these errors.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use super::programs::{copy_program, program, skipped, stderr};

/// The user and group that the tests use if they run as root.
pub const USER: u32 = 65534;
/// A group of which the user is a member, if the tests run as root.
pub const ALSO: u32 = 4001;
/// A group of which the user is not a member.
pub const OTHER: u32 = 4002;

/// An ordinary user with a directory of their own, in which the program runs.
pub struct OrdinaryUser {
    folder: tempfile::TempDir,
    is_root: bool,
}

impl OrdinaryUser {
    /// Returns the user: the one who runs the tests, or another one if the tests run as root. This needs `setpriv`.
    pub fn new(test: &str) -> Option<Self> {
        let is_root = rustix::process::geteuid().is_root();
        if is_root && program("setpriv").is_none() {
            skipped(test, "setpriv");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let user = Self { folder, is_root };
        fs::set_permissions(user.folder.path(), Permissions::from_mode(0o755)).unwrap();
        // The user may have no access to the build directory.
        let (built, copy) = (
            Path::new(env!("CARGO_BIN_EXE_embody")),
            user.folder.path().join("embody"),
        );
        if fs::hard_link(built, &copy).is_err() {
            copy_program(built, &copy);
        }
        fs::create_dir(user.home()).unwrap();
        user.give(&user.home());
        fs::set_permissions(user.home(), Permissions::from_mode(0o700)).unwrap();
        Some(user)
    }

    /// Returns whether the tests run as root, so that they can create files of other users.
    pub fn has_root(&self) -> bool {
        self.is_root
    }

    /// Returns the directory of the user, which other users cannot enter.
    pub fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    /// Returns a path in the directory of the user.
    pub fn at(&self, name: &str) -> PathBuf {
        self.home().join(name)
    }

    /// Returns a path next to the directory of the user.
    pub fn beside(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Gives a file or directory to the user.
    pub fn give(&self, path: &Path) {
        if self.is_root {
            chown(path, Some(USER), Some(USER)).unwrap();
        }
    }

    /// Writes a file with this mode that belongs to a user and a group. If the tests do not run as root, it belongs to the
    /// user who runs them.
    pub fn write(&self, path: &Path, content: impl AsRef<[u8]>, owner: (u32, u32), mode: u32) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
        if self.is_root {
            chown(path, Some(owner.0), Some(owner.1)).unwrap();
        }
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    /// Returns whether a file belongs to the user.
    pub fn owns(&self, path: &Path) -> bool {
        let owner = fs::symlink_metadata(path).unwrap().uid();
        owner
            == if self.is_root {
                USER
            } else {
                rustix::process::geteuid().as_raw()
            }
    }

    /// Returns a command that runs the program in the directory of the user.
    pub fn command(&self) -> Command {
        let copy = self.folder.path().join("embody");
        let mut command = if self.is_root {
            let mut command = Command::new(program("setpriv").unwrap());
            command
                .arg(format!("--reuid={USER}"))
                .arg(format!("--regid={USER}"))
                .arg(format!("--groups={ALSO}"))
                .arg(copy);
            command
        } else {
            Command::new(copy)
        };
        command.current_dir(self.home()).env("HOME", self.home());
        command
    }

    /// Runs the program with the words of `line`.
    pub fn output(&self, line: &str) -> Output {
        self.command()
            .args(line.split_whitespace())
            .output()
            .unwrap()
    }

    /// Runs the program like [`output`](Self::output), checks its status, and returns its standard error.
    #[track_caller]
    pub fn run(&self, line: &str, status: i32) -> String {
        let output = self.output(line);
        assert_eq!(
            output.status.code(),
            Some(status),
            "{line}: {}",
            stderr(&output)
        );
        stderr(&output)
    }
}
