//! Every figure of docs/figures.md in one run: starts the other benches one after the other with quick
//! settings, collects the lines `figure | what | ours | peer | ratio | goal` that they print, and
//! makes one Markdown table of them, and one plot.
//!
//!     cargo bench --bench figures                 a few minutes; prints the table
//!     cargo bench --bench figures -- --all        a 5 GB mailbox for the memory too (10 GB of disk)
//!     cargo bench --bench figures -- --docs       also writes docs/figures.md and docs/figures.svg
//!
//! Ends with status 1 if a bench failed: what it did not print is then missing from the table, and
//! docs/ stays unchanged. What could not be measured, because a program is missing, is
//! listed below the table.

mod figure;

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use figure::{Figure, plot, read_skipped, table};

/// Where the table stands in docs/figures.md.
const BEGIN: &str = "<!-- figures -->\n";
const END: &str = "<!-- end of figures -->\n";

type Trouble = Box<dyn std::error::Error>;

fn main() -> Result<ExitCode, Trouble> {
    let has = |name: &str| std::env::args().any(|argument| argument == name);
    let larger = if has("--all") { "5000" } else { "500" };
    let benches: [(&str, &[&str]); 8] = [
        ("scan", &["--quick"]),
        ("data_url", &["--quick"]),
        ("links", &["--quick"]),
        ("filter", &["--quick"]),
        // The size the goal is about; smaller ones measure the page cache's moods.
        ("mailbox", &["--quick", "--megabytes", "500"]),
        ("mailbox", &["--memory", "--megabytes", larger]),
        ("mailbox", &["--scaling"]),
        ("fetch", &["--quick"]),
    ];
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().unwrap_or_default().to_owned();
    let begun = Instant::now();
    let (mut figures, mut skipped, mut failed) = (Vec::new(), Vec::new(), Vec::new());
    for (name, arguments) in benches {
        println!("== {name} {}", arguments.join(" "));
        if !collect(name, arguments, &mut figures, &mut skipped)? {
            failed.push(name);
        }
        println!();
    }
    let mut text = table(&figures);
    for (what, why) in &skipped {
        text.push_str(&format!("\nNot measured: {what} ({why}).\n"));
    }
    text.push_str(&format!(
        "\nMeasured in one run of {} s on {} cores; the load average was {load} before it.\n",
        begun.elapsed().as_secs(),
        std::thread::available_parallelism()?,
    ));
    println!("{text}");
    if !failed.is_empty() || figures.is_empty() {
        eprintln!("failed: {}", failed.join(", "));
        return Ok(ExitCode::FAILURE);
    }
    if has("--docs") {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
        fs::write(docs.join("figures.svg"), plot::draw(&figures))?;
        write_table(&docs.join("figures.md"), &text)?;
        println!("the table and the plot are in docs/figures.md");
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs one bench and shows what it prints as it comes. False if it failed.
fn collect(
    name: &str,
    arguments: &[&str],
    figures: &mut Vec<Figure>,
    skipped: &mut Vec<(String, String)>,
) -> Result<bool, Trouble> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    // What the outer cargo says of this package: build scripts that look at it (ring's) would run
    // again, and everything above them be built anew.
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy();
        if name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&*name);
        }
    }
    let mut child = command
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args(["bench", "--quiet", "--bench", name, "--"])
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()?;
    let stdout = child.stdout.take().ok_or("no pipe")?;
    for line in BufReader::new(stdout).lines() {
        let line = line?;
        println!("{line}");
        figures.extend(Figure::read(&line));
        skipped.extend(read_skipped(&line));
    }
    Ok(child.wait()?.success())
}

fn write_table(file: &Path, text: &str) -> Result<(), Trouble> {
    let page = fs::read_to_string(file)?;
    let (before, rest) = page.split_once(BEGIN).ok_or("no place for the table")?;
    let (_, after) = rest.split_once(END).ok_or("no end of the table")?;
    fs::write(file, format!("{before}{BEGIN}\n{text}\n{END}{after}"))?;
    Ok(())
}
