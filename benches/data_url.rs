//! A 32 MB base64 `data:` URL through embody and through its peers, side by side in one run.
//!
//! Octets a second are those of the URL without folding, so every row of a table counts the same
//! work. Best of several runs, a fresh allocation in each, as a filter has it.

mod figure;

use std::hint::black_box;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use embody::internals::link::data::DataUrl;

use figure::{Figure, Goal, quick, short};

/// Octets of the unfolded URL.
const URL_LENGTH: usize = 32 << 20;
/// Octets of a word in a folded parameter (RFC 2017 §3.1).
const WORD: usize = 40;
const LIMIT: u64 = 1 << 30;
const HEAD: &[u8] = b"data:image/png;base64,";

fn main() {
    let content: Vec<u8> = noise().take(URL_LENGTH / 4 * 3).collect();
    let symbols = STANDARD.encode(&content).into_bytes();
    let unfolded = [HEAD, &symbols].concat();
    let escaped = [HEAD, &escape(&symbols)].concat();
    println!(
        "base64, {} MB decoded to {} MB, best of {}",
        URL_LENGTH >> 20,
        content.len() >> 20,
        rounds()
    );
    let (_, one_line) = table("one line", &unfolded, &content, None);
    let mut slowest: Option<(f64, Duration, Duration)> = None;
    for (shape, url) in [
        ("folded, LF TAB", fold(&unfolded, b"\n\t")),
        ("folded, CRLF SP", fold(&unfolded, b"\r\n ")),
        ("one line, + / = escaped", escaped),
    ] {
        let (ours, theirs) = table(shape, &url, &content, Some(one_line));
        let ratio = theirs.as_secs_f64() / ours.as_secs_f64();
        let folded = shape.starts_with("folded");
        if folded && slowest.is_none_or(|(least, ..)| ratio < least) {
            slowest = Some((ratio, ours, theirs));
        }
    }
    if let Some((ratio, ours, theirs)) = slowest {
        Figure::say(
            "decoding a folded 32 MB base64 data: URL",
            &format!("{} ms", short(ours.as_secs_f64() * 1e3)),
            &format!("data-url, {} ms", short(theirs.as_secs_f64() * 1e3)),
            ratio,
            Goal::AtLeast(5.0),
        );
    }

    println!("\nno base64, {} MB of letters", URL_LENGTH >> 20);
    let text: Vec<u8> = noise()
        .map(|byte| b'a' + byte % 16)
        .take(URL_LENGTH)
        .collect();
    let unfolded = [b"data:,".as_slice(), &text].concat();
    let folded = fold(&unfolded, b"\n\t");
    let mut one_line = None;
    for (shape, url) in [("one line", unfolded), ("folded, LF TAB", folded)] {
        let runners: [Runner<'_>; 2] = [
            ("embody", Box::new(|| ours(&url))),
            ("data-url", Box::new(|| data_url_crate(&url))),
        ];
        let (_, theirs) = compare(shape, &runners, &text, one_line);
        one_line = Some(theirs);
    }
}

/// One shape of the URL: embody first, then the peers. The ratios are against data-url on this
/// shape and, in the last column, on the shape that suits it best (`reference`). Returns our time and data-url's.
fn table(
    shape: &str,
    url: &[u8],
    content: &[u8],
    reference: Option<Duration>,
) -> (Duration, Duration) {
    let (_, body) = url.split_at(HEAD.len());
    let mut runners: Vec<Runner<'_>> = vec![
        ("embody", Box::new(|| ours(url))),
        ("data-url", Box::new(|| data_url_crate(url))),
    ];
    // What no decoder can go below: the pages of a fresh result.
    runners.push((
        "copy of the content",
        Box::new(|| black_box(content).to_vec()),
    ));
    if !body.contains(&b'%') {
        runners.push((
            "base64-simd, forgiving",
            Box::new(|| base64_simd_alone(body)),
        ));
        runners.push(("base64, blanks removed", Box::new(|| base64_stripped(body))));
    }
    compare(shape, &runners, content, reference)
}

fn rounds() -> usize {
    if quick() { 7 } else { 15 }
}

/// A name and a way to decode.
type Runner<'a> = (&'a str, Box<dyn Fn() -> Vec<u8> + 'a>);

/// Rounds go around the runners, so that a busy moment of the machine hits all of them.
fn compare(
    shape: &str,
    runners: &[Runner<'_>],
    content: &[u8],
    reference: Option<Duration>,
) -> (Duration, Duration) {
    let mut best = vec![Duration::MAX; runners.len()];
    for _ in 0..rounds() {
        for ((_, run), best) in runners.iter().zip(&mut best) {
            let start = Instant::now();
            let result = black_box(run());
            *best = start.elapsed().min(*best);
            assert!(result == content, "{shape}: another content");
        }
    }
    let theirs = runners
        .iter()
        .zip(&best)
        .find(|((who, _), _)| *who == "data-url");
    let theirs = theirs.map_or(Duration::MAX, |(_, took)| *took);
    let reference = reference.unwrap_or(theirs);
    println!("\n{shape}");
    for ((who, _), took) in runners.iter().zip(&best) {
        let took = took.as_secs_f64();
        println!(
            "  {who:<24} {:>8.2} ms {:>6.2} GB/s {:>6.1} x data-url {:>6.1} x data-url on one line",
            took * 1e3,
            URL_LENGTH as f64 / took / 1e9,
            theirs.as_secs_f64() / took,
            reference.as_secs_f64() / took,
        );
    }
    let ours = best.first().copied().unwrap_or(Duration::MAX);
    (ours, theirs)
}

fn ours(url: &[u8]) -> Vec<u8> {
    let url = DataUrl::parse(black_box(url)).expect("a data: URL");
    url.decode(LIMIT).expect("base64")
}

fn data_url_crate(url: &[u8]) -> Vec<u8> {
    let url = str::from_utf8(black_box(url)).expect("ASCII");
    let url = data_url::DataUrl::process(url).expect("a data: URL");
    url.decode_to_vec().expect("base64").0
}

fn base64_simd_alone(symbols: &[u8]) -> Vec<u8> {
    base64_simd::forgiving_decode_to_vec(black_box(symbols)).expect("base64")
}

fn base64_stripped(symbols: &[u8]) -> Vec<u8> {
    let symbols = black_box(symbols);
    if !symbols.iter().any(u8::is_ascii_whitespace) {
        return STANDARD.decode(symbols).expect("base64");
    }
    let mut stripped = Vec::with_capacity(symbols.len());
    for word in symbols.split(u8::is_ascii_whitespace) {
        stripped.extend_from_slice(word);
    }
    STANDARD.decode(stripped).expect("base64")
}

fn fold(url: &[u8], fold: &[u8]) -> Vec<u8> {
    url.chunks(WORD).collect::<Vec<_>>().join(fold)
}

fn escape(symbols: &[u8]) -> Vec<u8> {
    let mut escaped = Vec::with_capacity(symbols.len() * 11 / 10);
    for symbol in symbols {
        match symbol {
            b'+' => escaped.extend_from_slice(b"%2B"),
            b'/' => escaped.extend_from_slice(b"%2F"),
            b'=' => escaped.extend_from_slice(b"%3D"),
            other => escaped.push(*other),
        }
    }
    escaped
}

/// Octets without a pattern, the same in every run (xorshift).
fn noise() -> impl Iterator<Item = u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    std::iter::repeat_with(move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[3]
    })
}
