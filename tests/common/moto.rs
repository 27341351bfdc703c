//! Runs moto, an S3 server, on this machine.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use super::programs::{free_port, has_python, wait_for};

/// A running S3 server, with a bucket named `bucket`.
pub struct Moto {
    child: Child,
    port: u16,
    _folder: tempfile::TempDir,
}

impl Drop for Moto {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts moto, if it is installed.
pub fn moto(test: &str) -> Option<Moto> {
    if !has_python(test, "moto.server, flask", "moto") {
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let port = free_port();
    let mut child = Command::new("python3")
        .args([
            "-m",
            "moto.server",
            "-H",
            "127.0.0.1",
            "-p",
            &port.to_string(),
        ])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(fs::File::create(&log).unwrap())
        .spawn()
        .unwrap();
    wait_for(port, &mut child, &log);
    let moto = Moto {
        child,
        port,
        _folder: folder,
    };
    moto.asked("PUT", "/bucket", b"");
    Some(moto)
}

impl Moto {
    /// Sends a request, and returns the complete response with its header.
    pub fn asked(&self, method: &str, path: &str, body: &[u8]) -> Vec<u8> {
        let mut connection = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nAuthorization: AWS AKIDEXAMPLE:x\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            self.port,
            body.len()
        );
        connection
            .write_all(&[head.as_bytes(), body].concat())
            .unwrap();
        let mut answer = Vec::new();
        connection.read_to_end(&mut answer).unwrap();
        answer
    }

    /// Sets the environment of a command so that it uses this server.
    pub fn known<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        command
            .env("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
            .env("AWS_SECRET_ACCESS_KEY", "secret")
            .env("AWS_REGION", "eu-central-1")
            .env(
                "AWS_ENDPOINT_URL",
                format!("http://127.0.0.1:{}", self.port),
            )
    }
}
