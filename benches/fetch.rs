//! 200 external bodies from a server that waits 20 ms: `embody filter` on a message that refers to
//! them, and the library alone, beside `curl --parallel` with the same URLs and the same
//! concurrency. Prints wall times and the ratio of the two processes; the goal is at most 1.1.
//!
//! The server is nginx with Debian's libnginx-mod-http-echo (`echo_sleep`) where both are
//! installed, else one of our own in this process, a thread per connection with keep-alive.
//! `cargo bench --bench fetch`. Without curl only our own times are printed. With `--quick` there are
//! fewer rounds and the library alone is not measured.

mod figure;

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use embody::fetch::{Cached, Request, SystemFetcher, fetch_all};
use embody::policy::{Policy, Scheme};

use figure::{Figure, Goal, quick, short};

const URLS: usize = 200;
const WAIT: Duration = Duration::from_millis(20);
const BODY: usize = 4096;

/// Where Debian puts the module that can wait.
const ECHO: &str = "/usr/lib/nginx/modules/ngx_http_echo_module.so";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let nginx = Nginx::start()?;
    let (address, server) = match &nginx {
        Some(nginx) => (nginx.address, "nginx"),
        None => (own_server()?, "a server of our own"),
    };
    let many = if quick() { 5 } else { 7 };
    println!("{URLS} URLs, {server} that waits {WAIT:?}, median of {many} rounds");
    for in_flight in [1, 4, 8, 16, 32] {
        // Alternating, so that a busy machine is busy for all.
        let (mut ours, mut curls, mut inside) = (Vec::new(), Vec::new(), Vec::new());
        let rounds = if in_flight == 1 { 1 } else { many };
        for _ in 0..rounds {
            ours.push(filter(address, in_flight)?);
            curls.extend(curl(address, in_flight)?);
            if !quick() {
                inside.push(library(address, in_flight)?);
            }
        }
        let least = WAIT * u32::try_from(URLS.div_ceil(in_flight))?;
        let own = median(&mut ours);
        print!("{in_flight:3} at a time: at least {least:.0?}, embody filter {own:.0?}");
        if !inside.is_empty() {
            print!(" (library {:.0?})", median(&mut inside));
        }
        let what = format!("fetching {URLS} bodies, {in_flight} at a time");
        if curls.is_empty() {
            println!(", no curl");
            figure::skipped(&what, "curl not found");
        } else {
            let curl = median(&mut curls);
            println!(
                ", curl {curl:.0?}, ratio {:.2}",
                own.as_secs_f64() / curl.as_secs_f64()
            );
            Figure::say(
                &what,
                &format!("{} ms", short(own.as_secs_f64() * 1e3)),
                &format!("curl, {} ms, {server}", short(curl.as_secs_f64() * 1e3)),
                own.as_secs_f64() / curl.as_secs_f64(),
                Goal::AtMost(1.1),
            );
        }
    }
    Ok(())
}

/// nginx with a location that waits and then sends 4096 octets; ended when dropped.
struct Nginx {
    child: Child,
    address: SocketAddr,
    _folder: tempfile::TempDir,
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Nginx {
    /// None where nginx or the module is not installed.
    fn start() -> Result<Option<Self>, Box<dyn std::error::Error>> {
        let programs = ["/usr/sbin/nginx", "/usr/local/sbin/nginx", "/usr/bin/nginx"];
        let program = programs.into_iter().find(|file| Path::new(file).exists());
        let (Some(program), true) = (program, Path::new(ECHO).exists()) else {
            return Ok(None);
        };
        let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let folder = tempfile::tempdir()?;
        std::fs::write(folder.path().join("body.gif"), [b'x'; BODY])?;
        let (here, wait) = (folder.path().display(), WAIT.as_secs_f64());
        let configuration = format!(
            "load_module {ECHO};
daemon off; master_process off; pid {here}/pid; error_log {here}/log;
events {{ worker_connections 512; }}
http {{
  access_log off; default_type image/gif; keepalive_requests 100000;
  client_body_temp_path {here}/b; proxy_temp_path {here}/p; fastcgi_temp_path {here}/f;
  uwsgi_temp_path {here}/u; scgi_temp_path {here}/s;
  server {{
    listen {address};
    location / {{ echo_sleep {wait}; echo_exec /body; }}
    location = /body {{ internal; alias {here}/body.gif; }}
  }}
}}
"
        );
        let file = folder.path().join("nginx.conf");
        std::fs::write(&file, configuration)?;
        let child = Command::new(program)
            .arg("-c")
            .arg(&file)
            .arg("-p")
            .arg(folder.path())
            .arg("-e")
            .arg(folder.path().join("log"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let nginx = Self {
            child,
            address,
            _folder: folder,
        };
        let begun = Instant::now();
        while TcpStream::connect(address).is_err() {
            if begun.elapsed() > Duration::from_secs(10) {
                return Err("nginx did not start".into());
            }
            thread::sleep(Duration::from_millis(10));
        }
        Ok(Some(nginx))
    }
}

fn own_server() -> Result<SocketAddr, std::io::Error> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || serve(&stream));
        }
    });
    Ok(address)
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

fn serve(stream: &TcpStream) {
    let mut line = String::new();
    let mut reader = BufReader::new(stream);
    let mut out = stream;
    let _ = stream.set_nodelay(true);
    loop {
        line.clear();
        match reader.read_line(&mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) if line == "\r\n" => {
                thread::sleep(WAIT);
                let body = [b'x'; BODY];
                let head =
                    "HTTP/1.1 200 OK\r\nContent-Type: image/gif\r\nContent-Length: 4096\r\n\r\n";
                if out.write_all(&[head.as_bytes(), &body].concat()).is_err() {
                    return;
                }
            }
            Ok(_) => {}
        }
    }
}

fn url(address: SocketAddr, number: usize) -> String {
    format!("http://{address}/{number}.gif")
}

/// The whole program, from the message to the message.
fn filter(address: SocketAddr, in_flight: usize) -> Result<Duration, Box<dyn std::error::Error>> {
    let mut message = tempfile::NamedTempFile::new()?;
    write!(
        message,
        "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n"
    )?;
    for number in 0..URLS {
        write!(
            message,
            "--b\nContent-Type: message/external-body; access-type=URL;\n URL=\"{}\"\n\nContent-Type: image/gif\n\n\n",
            url(address, number)
        )?;
    }
    writeln!(message, "--b--")?;
    let begun = Instant::now();
    let ran = Command::new(env!("CARGO_BIN_EXE_embody"))
        .args(["filter", "--quiet", "--fetch", "http"])
        .args(["--allow-net", "127.0.0.0/8", "--allow-port"])
        .arg(address.port().to_string())
        .args(["--max-fetches", &URLS.to_string(), "--max-in-flight"])
        .arg(in_flight.to_string())
        .arg(message.path())
        .output()?;
    let took = begun.elapsed();
    let text = String::from_utf8(ran.stdout)?;
    assert_eq!(text.matches("\nContent-Location: ").count(), URLS);
    Ok(took)
}

/// The world is made anew each time: curl starts from nothing too.
fn library(address: SocketAddr, in_flight: usize) -> Result<Duration, Box<dyn std::error::Error>> {
    let mut policy = Policy::default()
        .with_fetch([Scheme::Http])
        .with_allow_nets(["127.0.0.0/8".parse()?])
        .with_allow_ports([address.port()]);
    policy.limits.in_flight = in_flight;
    let begun = Instant::now();
    let world = Cached::new(SystemFetcher::new(policy)?);
    let requests: Vec<_> = (0..URLS)
        .map(|number| Request {
            url: url(address, number),
            accept: Some("image/gif".to_owned()),
            deadline: begun + Duration::from_secs(60),
            date: None,
        })
        .collect();
    let answers = fetch_all(&world, &requests, in_flight, u64::MAX);
    let took = begun.elapsed();
    let whole = answers
        .iter()
        .flatten()
        .filter(|got| got.body.len() == BODY);
    assert_eq!(
        whole.count(),
        URLS,
        "{:?}",
        answers.iter().find(|got| got.is_err())
    );
    Ok(took)
}

fn curl(address: SocketAddr, in_flight: usize) -> Result<Option<Duration>, std::io::Error> {
    let mut configuration = tempfile::NamedTempFile::new()?;
    for number in 0..URLS {
        writeln!(
            configuration,
            "url = \"{}\"\noutput = /dev/null",
            url(address, number)
        )?;
    }
    let begun = Instant::now();
    let ran = Command::new("curl")
        .args([
            "--silent",
            "--no-progress-meter",
            "--fail",
            "--parallel",
            "--parallel-max",
        ])
        .arg(in_flight.to_string())
        .arg("--config")
        .arg(configuration.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    match ran {
        Ok(status) if status.success() => Ok(Some(begun.elapsed())),
        Ok(status) => panic!("curl: {status}"),
        Err(_) => Ok(None),
    }
}
