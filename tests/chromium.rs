//! What a browser makes of the result: the aggregates of `samples/mhtml`, filtered, saved with CRLF as
//! `.mhtml` and shown by Chromium, have the colour of the enclosed picture where the picture stands.
//!
//! Chromium reads such files by RFC 2557 with gaps, so that most samples show nothing before they
//! are filtered; those are the control. What it does not show even then is not asked of it: an
//! aggregate inside a multipart/mixed, a document inside a multipart/alternative (both are left out), and
//! a link with a fragment.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::common::filter::filter;
use crate::common::mail::{crlf, mail_parser_leaves, mhtml_samples};
use crate::common::programs::{program, skipped};

/// Samples, and the upper edges of their pictures, which are all at the left.
const SHOWN: &[(&str, &[usize])] = &[
    ("absolute-location", &[8]),
    ("base-of-the-message", &[8]),
    ("base-of-the-part", &[8]),
    ("base64", &[16]),
    ("content-id", &[8]),
    ("equal-locations", &[8, 104, 200]),
    ("folded-location", &[8, 104, 200]),
    ("nested", &[8]),
    ("nested-nearest-first", &[8]),
    ("quoted-printable", &[8]),
    ("relative-with-base", &[8, 200]),
    ("relative-without-base", &[8]),
    ("style-sheet", &[8]),
];

/// Samples whose picture is not shown as they came.
const CONTROLS: &[&str] = &["relative-with-base", "quoted-printable", "style-sheet"];

/// Left edge, width and height of a picture, in pixels.
const LEFT: usize = 8;
const SIDE: usize = 80;
const WINDOW: (usize, usize) = (400, 500);

/// One page may take this long on a machine that does other things as well.
const PATIENCE: Duration = Duration::from_secs(60);

type Pixel = [u8; 3];

/// A screenshot: rows of pixels.
struct Picture(Vec<Vec<Pixel>>);

impl Picture {
    fn read(file: &Path) -> Self {
        let decoder = png::Decoder::new(std::io::BufReader::new(fs::File::open(file).unwrap()));
        Self::decode(decoder)
    }

    fn decode<R: std::io::BufRead + std::io::Seek>(mut decoder: png::Decoder<R>) -> Self {
        decoder.set_transformations(png::Transformations::normalize_to_color8());
        let mut reader = decoder.read_info().unwrap();
        let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
        let frame = reader.next_frame(&mut bytes).unwrap();
        let samples = frame.color_type.samples();
        assert!(samples >= 3, "a grey picture: {:?}", frame.color_type);
        let rows = bytes[..frame.buffer_size()].chunks(frame.line_size);
        let pixel = |pixel: &[u8]| [pixel[0], pixel[1], pixel[2]];
        Self(
            rows.map(|row| row.chunks(samples).map(pixel).collect())
                .collect(),
        )
    }

    /// How many pixels of this colour there are in all.
    fn count(&self, colour: Pixel) -> usize {
        self.0.iter().flatten().filter(|&&it| it == colour).count()
    }

    /// How many there are in the square of a picture whose upper edge is there.
    fn count_at(&self, colour: Pixel, top: usize) -> usize {
        self.0[top..top + SIDE]
            .iter()
            .flat_map(|row| &row[LEFT..LEFT + SIDE])
            .filter(|&&it| it == colour)
            .count()
    }
}

/// The one colour of the enclosed picture.
fn colour(message: &[u8]) -> Pixel {
    let leaves = mail_parser_leaves(message);
    let enclosed = leaves.iter().find(|leaf| leaf.essence == "image/png");
    let octets = std::io::Cursor::new(&enclosed.unwrap().octets);
    let picture = Picture::decode(png::Decoder::new(octets));
    let colour = picture.0[0][0];
    assert!(colour != [255; 3] && picture.0.iter().flatten().all(|&it| it == colour));
    colour
}

/// Shows each message in a browser of its own, some at a time.
fn shown(chromium: &Path, messages: BTreeMap<String, Vec<u8>>) -> BTreeMap<String, Picture> {
    let waiting = Mutex::new(messages.into_iter());
    let pictures = Mutex::new(BTreeMap::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let Some((name, message)) = waiting.lock().unwrap().next() else {
                        break;
                    };
                    let picture = show(chromium, &name, &message);
                    pictures.lock().unwrap().insert(name, picture);
                }
            });
        }
    });
    pictures.into_inner().unwrap()
}

fn show(chromium: &Path, name: &str, message: &[u8]) -> Picture {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page.mhtml");
    let screenshot = folder.path().join("page.png");
    fs::write(&page, message).unwrap();
    let mut child = Command::new(chromium)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            // Nobody is to be asked for what is not enclosed.
            "--host-resolver-rules=MAP * ~NOTFOUND",
        ])
        .arg(format!("--window-size={},{}", WINDOW.0, WINDOW.1))
        .arg(format!(
            "--user-data-dir={}",
            folder.path().join("profile").display()
        ))
        .arg(format!("--screenshot={}", screenshot.display()))
        .arg(format!("file://{}", page.display()))
        .env("HOME", folder.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(fs::File::create(folder.path().join("stderr")).unwrap())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if begun.elapsed() > PATIENCE {
            let _ = child.kill();
            let _ = child.wait();
            panic!("{name}: chromium took more than {PATIENCE:?}");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(
        screenshot.is_file(),
        "{name}: {}",
        fs::read_to_string(folder.path().join("stderr")).unwrap()
    );
    let picture = Picture::read(&screenshot);
    assert_eq!(
        (picture.0[0].len(), picture.0.len()),
        WINDOW,
        "{name}: another size"
    );
    picture
}

fn chromium(test: &str) -> Option<PathBuf> {
    let found = program("chromium").or_else(|| program("chromium-browser"));
    if found.is_none() {
        skipped(test, "chromium");
    }
    found
}

/// A sample as it came and filtered, both with CRLF: with LF Chromium shows an empty page.
fn sample(name: &str) -> (Vec<u8>, Vec<u8>) {
    let samples = mhtml_samples();
    let sample = samples
        .iter()
        .find(|sample| sample.name == format!("{name}.in.eml"));
    let before = crlf(&sample.unwrap().before);
    let filtered = filter("", &before);
    assert_eq!(filtered.code, Some(0), "{}", filtered.stderr);
    (before, filtered.stdout)
}

#[test]
fn a_browser_shows_the_enclosed_pictures_where_they_stand() {
    let Some(chromium) = chromium("a_browser_shows_the_enclosed_pictures_where_they_stand") else {
        return;
    };
    let messages: BTreeMap<String, Vec<u8>> = SHOWN
        .iter()
        .map(|(name, _)| ((*name).to_owned(), sample(name).1))
        .collect();
    let colours: BTreeMap<String, Pixel> = messages
        .iter()
        .map(|(name, message)| (name.clone(), colour(message)))
        .collect();
    let pictures = shown(&chromium, messages);
    for (name, tops) in SHOWN {
        let (picture, colour) = (&pictures[*name], colours[*name]);
        for &top in *tops {
            // Over the background of the style sheet stands some text.
            let there = picture.count_at(colour, top);
            assert!(
                there > SIDE * SIDE * 9 / 10,
                "{name}: {there} pixels at {top}"
            );
        }
        let all = picture.count(colour);
        assert!(
            all <= SIDE * SIDE * tops.len(),
            "{name}: {all} pixels for {tops:?}"
        );
    }
}

#[test]
fn a_browser_does_not_show_them_before_or_if_one_link_in_the_chain_is_missing() {
    let test = "a_browser_does_not_show_them_before_or_if_one_link_in_the_chain_is_missing";
    let Some(chromium) = chromium(test) else {
        return;
    };
    let mut messages: BTreeMap<String, Vec<u8>> = CONTROLS
        .iter()
        .map(|name| (format!("{name}, as it came"), sample(name).0))
        .collect();
    let (_, filtered) = sample("relative-without-base");
    let colour = colour(&filtered);
    let text = String::from_utf8(filtered).unwrap();
    for (what, from, to) in [
        ("another Content-ID", "Content-ID: <", "Content-ID: <x"),
        ("a damaged picture", "iVBORw0KGgo", "AAAAAAAAAAA"),
    ] {
        assert!(text.contains(from), "{text}");
        messages.insert(what.to_owned(), text.replace(from, to).into_bytes());
    }
    for (name, picture) in shown(&chromium, messages) {
        assert_eq!(picture.count(colour), 0, "{name}");
    }
}
