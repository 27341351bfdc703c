//! Runs real servers on free ports of 127.0.0.1, which end with the test.
//!
//! If a program is not installed, the test is skipped and a line is printed. With EMBODY_REQUIRE_ALL=1, the test fails.

use std::fs;
use std::io::Write as _;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, Once};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::bounded::finished;
use super::reports;

/// A server process and its directory.
pub struct Served {
    child: Child,
    pub port: u16,
    /// The https port of nginx.
    pub secure: u16,
    pub folder: TempDir,
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the handle of a running server.
pub fn serving(child: Child, port: u16, folder: TempDir) -> Served {
    Served {
        child,
        port,
        secure: 0,
        folder,
    }
}

/// Prints that a test is skipped, bypassing the capture of the test runner. With EMBODY_REQUIRE_ALL=1, the test fails.
pub fn skipped(test: &str, program: &str) {
    assert!(
        std::env::var("EMBODY_REQUIRE_ALL").as_deref() != Ok("1"),
        "{test}: {program} not found, and EMBODY_REQUIRE_ALL=1"
    );
    let _ = writeln!(std::io::stderr(), "skipped: {test} ({program} not found)");
}

/// Returns the path of a program. The directories for administrators are also searched.
pub fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .chain(["/usr/sbin".into(), "/usr/local/sbin".into()])
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
}

/// Returns whether programs can be traced here. In some containers they cannot.
pub fn is_traced() -> bool {
    program("strace").is_some()
        && Command::new("strace")
            .args(["-qq", "-o", "/dev/null", "true"])
            .status()
            .is_ok_and(|status| status.success())
}

/// Returns a command for embody as a user who cannot read the private files of others. For root, this needs `setpriv`.
pub fn unprivileged(test: &str, folder: &Path) -> Option<Command> {
    let Some(setpriv) = program("setpriv") else {
        skipped(test, "setpriv");
        return None;
    };
    // This user may have no access to the build directory.
    let copy = folder.join("embody");
    if !copy.exists() {
        copy_program(Path::new(env!("CARGO_BIN_EXE_embody")), &copy);
    }
    let mut command = Command::new(setpriv);
    if fs::read("/etc/shadow").is_ok() {
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
    }
    command.arg(copy);
    Some(command)
}

/// Copies a program so that it can be run. A file that is open for writing cannot be executed. If this process wrote
/// the copy, a child process of another test could inherit the open file, so a separate process copies it.
pub fn copy_program(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg(from).arg(to).status().unwrap();
    assert!(copied.success(), "{}", to.display());
}

/// Returns Debian's libfaketime, which is used to change only the wall clock.
pub fn false_clock(test: &str) -> Option<PathBuf> {
    let found = fs::read_dir("/usr/lib")
        .unwrap()
        .filter_map(|entry| Some(entry.ok()?.path().join("faketime/libfaketime.so.1")))
        .find(|library| library.is_file());
    if found.is_none() {
        skipped(test, "libfaketime");
    }
    found
}

/// Returns an unused port of 127.0.0.1, a different one each time. The kernel does not assign these ports to clients or
/// to servers that request any port. Therefore no other test takes the port before the server of this test does, or
/// while it must stay unused.
pub fn free_port() -> u16 {
    static CALLS: AtomicU32 = AtomicU32::new(0);
    for _ in 0..12_000 {
        let call = CALLS.fetch_add(1, Ordering::Relaxed);
        // Several test programs can run at the same time.
        let number = std::process::id().wrapping_mul(101).wrapping_add(call);
        let port = u16::try_from(20_000 + number % 12_000).unwrap();
        if is_free(port) {
            return port;
        }
    }
    panic!("no port from 20000 to 31999 is free");
}

/// Binds a socket to the port, and does not listen on it. A program that another test starts at this moment inherits
/// the socket until its exec. If the socket listened, [`wait_for`] would take it for the server.
fn is_free(port: u16) -> bool {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with, sockopt};
    let kind = (AddressFamily::INET, SocketType::STREAM);
    let socket = socket_with(kind.0, kind.1, SocketFlags::CLOEXEC, None).unwrap();
    sockopt::set_socket_reuseaddr(&socket, true).unwrap();
    bind(&socket, &SocketAddr::from(([127, 0, 0, 1], port))).is_ok()
}

pub fn wait_for(port: u16, child: &mut Child, log: &Path) {
    let begun = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(
            begun.elapsed() < Duration::from_secs(120) && child.try_wait().unwrap().is_none(),
            "the server did not start: {}",
            fs::read_to_string(log).unwrap_or_default()
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Creates a private CA and a certificate for 127.0.0.1, `localhost` and `www.example.test`.
pub fn certificates(folder: &Path) {
    use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
    let ca_key = KeyPair::generate().unwrap();
    let mut ca = CertificateParams::new(Vec::new()).unwrap();
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let ca_certificate = ca.self_signed(&ca_key).unwrap();
    let issuer = Issuer::new(ca, ca_key);
    let key = KeyPair::generate().unwrap();
    let names = ["127.0.0.1", "localhost", "www.example.test"].map(str::to_owned);
    let leaf = CertificateParams::new(names.to_vec()).unwrap();
    let certificate = leaf.signed_by(&key, &issuer).unwrap();
    fs::write(folder.join("ca.pem"), ca_certificate.pem()).unwrap();
    fs::write(folder.join("server.pem"), certificate.pem()).unwrap();
    fs::write(folder.join("server.key"), key.serialize_pem()).unwrap();
}

/// Starts nginx with http and https, and `files` in its root directory. /dav/ accepts PUT from the user "me" with the
/// password "secret".
pub fn nginx(test: &str, files: &[(&str, &[u8])]) -> Option<Served> {
    nginx_with(test, files, "")
}

/// Starts nginx with `more` in its server block. The log format `plain` contains the status and the URI.
pub fn nginx_with(test: &str, files: &[(&str, &[u8])], more: &str) -> Option<Served> {
    let Some(nginx) = program("nginx") else {
        skipped(test, "nginx");
        return None;
    };
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("root");
    fs::create_dir(&root).unwrap();
    for (name, content) in files {
        fs::write(root.join(name), content).unwrap();
    }
    fs::create_dir(root.join("dav")).unwrap();
    fs::write(folder.path().join("users"), "me:{PLAIN}secret\n").unwrap();
    certificates(folder.path());
    let (port, secure) = (free_port(), free_port());
    let here = folder.path().display();
    let configuration = format!(
        r#"
daemon off;
master_process off;
pid {here}/pid;
error_log {here}/log;
events {{ worker_connections 512; }}
http {{
  access_log off;
  log_format plain "$status $uri";
  types {{ text/plain txt; text/html html; image/gif gif; }}
  default_type application/octet-stream;
  client_body_temp_path {here}/b; proxy_temp_path {here}/p; fastcgi_temp_path {here}/f;
  uwsgi_temp_path {here}/u; scgi_temp_path {here}/s;
  gzip on; gzip_min_length 1; gzip_types text/plain; gzip_proxied any;
  error_page 404 /404.html;
  server {{
    listen 127.0.0.1:{port};
    listen 127.0.0.1:{secure} ssl;
    ssl_certificate {here}/server.pem;
    ssl_certificate_key {here}/server.key;
    root {here}/root;
    client_max_body_size 0;
    location /dav/ {{
      dav_methods PUT MKCOL;
      auth_basic "store";
      auth_basic_user_file {here}/users;
    }}
    location /slow {{ limit_rate 40k; }}
    location = /gone {{ return 410; }}
    location = /busy {{ return 503; }}
    location = /many {{ return 429; }}
    location = /none {{ return 204; }}
    location = /moved {{ return 301 /hello.txt; }}
    location = /secure {{ return 302 https://127.0.0.1:{secure}/hello.txt; }}
    location = /insecure {{ return 302 http://127.0.0.1:{port}/hello.txt; }}
    location = /asked {{ default_type text/plain; return 200 "$http_accept|$http_user_agent|$http_referer|$http_cookie|$http_authorization|$http_accept_encoding"; }}
    {more}
  }}
}}
"#
    );
    let file = folder.path().join("nginx.conf");
    fs::write(&file, configuration).unwrap();
    let log = folder.path().join("log");
    let mut child = Command::new(nginx)
        .arg("-c")
        .arg(&file)
        .arg("-p")
        .arg(folder.path())
        .arg("-e")
        .arg(&log)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(fs::File::create(folder.path().join("stderr")).unwrap())
        .spawn()
        .unwrap();
    wait_for(port, &mut child, &log);
    Some(Served {
        child,
        port,
        secure,
        folder,
    })
}

/// Starts an anonymous FTP server (pyftpdlib). `extra` is Python code that runs before the server starts.
pub fn ftp(test: &str, files: &[(&str, &[u8])], extra: &str) -> Option<Served> {
    if !has_python(test, "pyftpdlib", "pyftpdlib") {
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("root");
    for (name, content) in files {
        let file = root.join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, content).unwrap();
    }
    let port = free_port();
    let script = format!(
        r"
import warnings; warnings.simplefilter('ignore')
from pyftpdlib.authorizers import DummyAuthorizer
from pyftpdlib.handlers import FTPHandler
from pyftpdlib.servers import FTPServer
authorizer = DummyAuthorizer()
authorizer.add_anonymous({root:?})
authorizer.add_user('user', 'p@ss', {root:?})
handler = FTPHandler
handler.authorizer = authorizer
{extra}
FTPServer(('127.0.0.1', {port}), handler).serve_forever()
"
    );
    let log = folder.path().join("log");
    let mut child = Command::new("python3")
        .args(["-c", &script])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(fs::File::create(&log).unwrap())
        .spawn()
        .unwrap();
    wait_for(port, &mut child, &log);
    Some(Served {
        child,
        port,
        secure: 0,
        folder,
    })
}

/// Returns a command for the program that is tested.
pub fn embody() -> Command {
    signals_act();
    a_program_starts();
    Command::new(env!("CARGO_BIN_EXE_embody"))
}

/// Makes the programs of a test react to signals. Programs inherit ignored signals: shells ignore SIGINT for background
/// jobs, and nohup ignores SIGHUP. A handled signal has its default action in a started program. The test process
/// therefore handles the signals that it inherited as ignored, with a handler that does nothing.
pub fn signals_act() {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // Without /proc, no signal is known to be ignored, and embody handles all signals.
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let mut lines = status.lines();
        let mask = lines
            .find_map(|line| line.strip_prefix("SigIgn:"))
            .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
        for signal in [SIGHUP, SIGINT, SIGQUIT, SIGTERM] {
            if mask.unwrap_or(0) & 1 << (signal - 1) != 0 {
                signal_hook::flag::register(signal, Arc::default()).unwrap();
            }
        }
    });
}

/// Ends the test process if a test hangs, that is, if no program was started for longer than any test takes.
fn a_program_starts() {
    const PATIENCE: Duration = Duration::from_secs(1800);
    static LAST: Mutex<Option<(Instant, String)>> = Mutex::new(None);
    let test = std::thread::current().name().unwrap_or("?").to_owned();
    let mut last = LAST.lock().unwrap();
    if last.replace((Instant::now(), test)).is_some() {
        return;
    }
    std::thread::spawn(|| {
        loop {
            std::thread::sleep(Duration::from_secs(10));
            if let Some((when, test)) = &*LAST.lock().unwrap()
                && when.elapsed() > PATIENCE
            {
                // Written directly, to bypass the capture of the test runner.
                let _ = writeln!(
                    std::io::stderr(),
                    "a test waits for ever: {test} was the last to start embody, {PATIENCE:?} ago"
                );
                std::process::exit(101);
            }
        }
    });
}

/// Runs the program in a directory. If it prints JSON or writes a report, each object is checked against its schema.
pub fn embody_in(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = embody();
    command.current_dir(folder).args(arguments);
    let output = command.output().unwrap();
    reports::check_output(&output.stdout);
    for pair in arguments.windows(2).filter(|pair| pair[0] == "--report") {
        let path = folder.join(pair[1]);
        // A pipe has only one reader.
        if path.is_file() {
            reports::check_output(&fs::read(path).unwrap());
        }
    }
    output
}

/// Checks the exit status of a run, and returns its standard error. If it printed JSON, each object is checked against its
/// schema.
#[track_caller]
pub fn done(output: &Output, status: i32) -> String {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(status), "{said}");
    reports::check_output(&output.stdout);
    said
}

/// Returns a command that runs this test program again with only one test (its name includes the module). Used for
/// settings of the whole process, and for processes that must be killed.
pub fn again(test: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture"]);
    command
}

/// Returns the standard error of a program.
pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Runs a command with this text on its standard input.
pub fn fed(command: &mut Command, input: &[u8]) -> Output {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    std::thread::scope(|scope| {
        // The program can end before it has read everything.
        scope.spawn(move || drop(stdin.write_all(input)));
        finished(child)
    })
}

/// Returns whether these modules of a Python package are installed. Otherwise prints that the test is skipped.
pub fn has_python(test: &str, modules: &str, package: &str) -> bool {
    let has = Command::new("python3")
        .args(["-c", &format!("import {modules}")])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if !has {
        skipped(test, package);
    }
    has
}

/// Sends a signal to a process.
pub fn signalled(process: u32, name: &str) {
    let sent = Command::new("kill")
        .args(["-s", name, &process.to_string()])
        .status();
    assert!(sent.unwrap().success());
}
