//! A temporary directory in which a test runs the program.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use super::programs::{embody, stderr};

pub struct Folder(tempfile::TempDir);

impl Folder {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    pub fn at(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.at(name)).unwrap()
    }

    /// Writes a file, and creates its parent directories.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.at(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    /// Writes an mbox with these mails.
    pub fn write_mbox(&self, name: &str, mails: &[String]) -> PathBuf {
        let framed = mails.iter().map(|mail| {
            let quoted = mail.replace("\nFrom ", "\n>From ");
            format!("From a@example.org Mon May  6 08:00:00 2024\n{quoted}\n")
        });
        self.write(name, framed.collect::<String>())
    }

    /// Runs the program in the directory. The arguments are the words of `line`.
    pub fn output(&self, line: &str) -> Output {
        let words = line.split_whitespace();
        embody()
            .current_dir(self.path())
            .args(words)
            .output()
            .unwrap()
    }

    /// Runs the program like [`output`](Self::output), and returns its standard error. Its status must be 0.
    #[track_caller]
    pub fn run(&self, line: &str) -> String {
        let output = self.output(line);
        assert_eq!(output.status.code(), Some(0), "{line}: {}", stderr(&output));
        stderr(&output)
    }
}
