//! 200 external bodies from a server that waits 20 ms, against `curl --parallel` with the same
//! URLs and the same concurrency. Prints wall times and their ratio; the aim is at most 1.2.
//!
//! The server is a thread per connection with keep-alive, in this process, so both clients pay
//! the same for it; curl pays for starting its process besides. nginx has no way to wait without a third-party module. `cargo bench --bench
//! fetch`. Without curl only our own time is printed.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use embody::fetch::{Budget, Cached, Request, World, fetch_all};
use embody::policy::{Policy, Scheme};

const URLS: usize = 200;
const WAIT: Duration = Duration::from_millis(20);
const ROUNDS: usize = 7;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || serve(&stream));
        }
    });
    println!("{URLS} URLs, a server that waits {WAIT:?}, median of {ROUNDS} rounds");
    for in_flight in [1, 4, 8, 16, 32] {
        // Alternating, so that a busy machine is busy for both.
        let (mut ours, mut curls) = (Vec::new(), Vec::new());
        let rounds = if in_flight == 1 { 1 } else { ROUNDS };
        for _ in 0..rounds {
            ours.push(embody(address, in_flight)?);
            curls.extend(curl(address, in_flight)?);
        }
        let least = WAIT * u32::try_from(URLS.div_ceil(in_flight))?;
        let own = median(&mut ours);
        print!("{in_flight:3} at a time: at least {least:?}, embody {own:?}");
        if curls.is_empty() {
            println!(", no curl");
        } else {
            let curl = median(&mut curls);
            println!(
                ", curl {curl:?}, ratio {:.2}",
                own.as_secs_f64() / curl.as_secs_f64()
            );
        }
    }
    Ok(())
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
                let body = [b'x'; 4096];
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

/// The world is made anew each time: curl starts from nothing too.
fn embody(address: SocketAddr, in_flight: usize) -> Result<Duration, Box<dyn std::error::Error>> {
    let mut policy = Policy {
        fetch: [Scheme::Http].into(),
        allow_nets: vec!["127.0.0.0/8".parse()?],
        allow_ports: [address.port()].into(),
        ..Policy::default()
    };
    policy.limits.in_flight = in_flight;
    let begun = Instant::now();
    let world = Cached::new(World::new(&policy)?);
    let requests: Vec<_> = (0..URLS)
        .map(|number| Request {
            url: url(address, number),
            accept: Some("image/gif".to_owned()),
            deadline: begun + Duration::from_secs(60),
        })
        .collect();
    let answers = fetch_all(&world, &requests, in_flight, &Budget::unlimited());
    let took = begun.elapsed();
    let whole = answers
        .iter()
        .flatten()
        .filter(|got| got.body.len() == 4096);
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
