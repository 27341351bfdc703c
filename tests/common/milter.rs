//! Runs `embody milter` as a process.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use super::bounded::ended;
use super::mta::{House, eventually};
use super::programs::{signalled, signals_act};

/// A running `embody milter`. Dropping it ends the process by its id.
pub struct Milter {
    child: Child,
    log: PathBuf,
}

impl Drop for Milter {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("what the milter says:\n{}", self.log());
        }
    }
}

impl Milter {
    /// Starts the milter with these options, in addition to the configuration of the house.
    pub fn start(house: &House, listen: &str, options: &[&str]) -> Self {
        let log = house.path("milter.log");
        let stderr = fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(&log)
            .unwrap();
        signals_act();
        let child = Command::new(house.path("embody.real"))
            .args([
                "milter",
                "--listen",
                listen,
                "--socket-mode",
                "666",
                "--config",
            ])
            .arg(house.path("embody.toml"))
            .args(options)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(stderr)
            .spawn()
            .unwrap();
        let mut milter = Self { child, log };
        eventually(60, "the milter listens", || {
            assert!(
                milter.child.try_wait().unwrap().is_none(),
                "{}",
                milter.log()
            );
            match listen.split_once(':').unwrap() {
                ("unix", path) => std::os::unix::net::UnixStream::connect(path).is_ok(),
                (_, port) => {
                    std::net::TcpStream::connect(("127.0.0.1", port.parse().unwrap())).is_ok()
                }
            }
        });
        milter
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    pub fn signal(&self, name: &str) {
        signalled(self.id(), name);
    }

    pub fn status(&mut self) -> Option<i32> {
        ended(&mut self.child).code()
    }
}
