//! Process of a browser, which ends together with the test program.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Script of the shell that starts the browser. If the test program ends, the standard input of the shell ends. The shell then
/// kills the browser with all its processes, and deletes its directory. So no browser remains if a test ends in any other way
/// than by returning.
const SCRIPT: &str = r#"
folder=$0
setsid "$@" </dev/null REDIRECTIONS &
browser=$!
read -r _
kill -s KILL -- "-$browser"
wait
rm -rf "$folder"
"#;

/// A running browser and its directory. Both end with this value, or with the test program.
pub struct BrowserProcess {
    shell: Child,
}

impl BrowserProcess {
    /// Runs a program with arguments. `folder` becomes its home directory, and is deleted at the end. `redirections` are the
    /// redirections of a shell, in which `$folder` is this directory.
    pub fn start(folder: PathBuf, program: &Path, arguments: &[&str], redirections: &str) -> Self {
        let shell = Command::new("sh")
            .arg("-c")
            .arg(SCRIPT.replace("REDIRECTIONS", redirections))
            .arg(&folder)
            .arg(program)
            .args(arguments)
            .env("HOME", &folder)
            .env("TMPDIR", &folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self { shell }
    }
}

impl Drop for BrowserProcess {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        let _ = self.shell.wait();
    }
}
