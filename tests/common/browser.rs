//! Takes screenshots of pages with Chromium in headless mode.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use super::programs::{program, skipped};

/// Width and height of a screenshot, in pixels.
pub const WINDOW: (usize, usize) = (400, 500);

/// Time limit for one page, on a machine that is also busy with other work.
const PATIENCE: Duration = Duration::from_secs(60);

pub type Pixel = [u8; 3];

/// A screenshot: rows of pixels.
pub struct Picture(pub Vec<Vec<Pixel>>);

impl Picture {
    pub fn read(file: &Path) -> Self {
        let decoder = png::Decoder::new(std::io::BufReader::new(fs::File::open(file).unwrap()));
        Self::decode(decoder)
    }

    pub fn decode<R: std::io::BufRead + std::io::Seek>(mut decoder: png::Decoder<R>) -> Self {
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

    /// Returns the number of pixels of this colour.
    pub fn count(&self, colour: Pixel) -> usize {
        self.0.iter().flatten().filter(|&&it| it == colour).count()
    }
}

/// Creates a picture of one colour, 20 pixels wide and high.
pub fn png([red, green, blue]: Pixel) -> Vec<u8> {
    let mut octets = Vec::new();
    let mut encoder = png::Encoder::new(&mut octets, 20, 20);
    encoder.set_color(png::ColorType::Rgb);
    let mut writer = encoder.write_header().unwrap();
    writer
        .write_image_data(&[red, green, blue].repeat(400))
        .unwrap();
    writer.finish().unwrap();
    octets
}

/// Shows each message in a separate browser, two at a time.
pub fn shown(chromium: &Path, messages: BTreeMap<String, Vec<u8>>) -> BTreeMap<String, Picture> {
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
    // Chromium must not request anything from the network, because only enclosed pictures may be shown.
    page(chromium, "mhtml", name, message, "MAP * ~NOTFOUND")
}

/// Shows a page in a file with this extension. `hosts` are Chromium's rules for resolving host names.
pub fn page(chromium: &Path, extension: &str, name: &str, page: &[u8], hosts: &str) -> Picture {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join(format!("page.{extension}"));
    let screenshot = folder.path().join("page.png");
    fs::write(&file, page).unwrap();
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
        ])
        .arg(format!("--host-resolver-rules={hosts}"))
        .arg(format!("--window-size={},{}", WINDOW.0, WINDOW.1))
        .arg(format!(
            "--user-data-dir={}",
            folder.path().join("profile").display()
        ))
        .arg(format!("--screenshot={}", screenshot.display()))
        .arg(format!("file://{}", file.display()))
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

/// Returns the natural width of each picture, or 0 if Chromium does not show it.
pub fn natural_widths(chromium: &Path, urls: &[String]) -> Vec<u32> {
    let images: String = urls
        .iter()
        .map(|url| format!("<img src=\"{url}\">"))
        .collect();
    let script = "[...document.images].map(image => image.naturalWidth).join(' ') + '.'";
    let page = format!("<!DOCTYPE html><body>{images}");
    let widths = told(chromium, page.as_bytes(), script);
    let (widths, _) = widths.split_once('.').expect("the page was not loaded");
    widths
        .split(' ')
        .map(|width| width.parse().unwrap())
        .collect()
}

/// Returns the result of `script` in the loaded page, with character references for `&`, `<` and `>`.
pub fn told(chromium: &Path, page: &[u8], script: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("page.html");
    let script = format!(
        "<p id=w></p><script>onload = () => {{ document.getElementById('w').textContent = {script} }}</script>"
    );
    fs::write(&file, [page, script.as_bytes()].concat()).unwrap();
    let mut child = Command::new(chromium)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--no-first-run",
            "--disable-background-networking",
            "--host-resolver-rules=MAP * ~NOTFOUND",
            "--dump-dom",
        ])
        .arg(format!(
            "--user-data-dir={}",
            folder.path().join("profile").display()
        ))
        .arg(format!("file://{}", file.display()))
        .env("HOME", folder.path())
        .stdin(Stdio::null())
        .stdout(fs::File::create(folder.path().join("dom")).unwrap())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if begun.elapsed() > PATIENCE {
            let _ = child.kill();
            let _ = child.wait();
            panic!("chromium took more than {PATIENCE:?}");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let dom = fs::read_to_string(folder.path().join("dom")).unwrap();
    let (_, text) = dom.rsplit_once("<p id=\"w\">").unwrap();
    let (text, _) = text.split_once("</p>").unwrap();
    text.to_owned()
}

pub fn chromium(test: &str) -> Option<PathBuf> {
    let found = program("chromium").or_else(|| program("chromium-browser"));
    if found.is_none() {
        skipped(test, "chromium");
    }
    found
}
