//! Fills in the references of one mail from a directory of downloads, and retrieves only missing files from https servers:
//! `cargo run --example fetch downloads/ < mail.eml > whole.eml`
//!
//! The content of `https://www.example.org/notes/a.txt` is read from the file `downloads/www.example.org/a.txt`.

use std::io::{Read as _, Write as _};
use std::path::PathBuf;
use std::sync::Arc;

use embody::engine::Content;
use embody::fetch::{Bytes, Fetch, Fetcher, Request};
use embody::policy::Scheme;
use embody::report::Refusal;
use embody::{Expander, Policy};

/// A directory of downloads, and a fetcher that retrieves content for which the directory contains no file.
struct Downloads {
    folder: PathBuf,
    servers: Fetcher,
}

impl Downloads {
    /// Returns the path of the file for a URL.
    ///
    /// The URL comes from untrusted mail, so its path must not lead out of the directory. Returns `None` if the scheme is not
    /// https, or if the host or the file name is empty, starts with a dot, or contains a character that is not an ASCII letter
    /// or digit, `-`, `_` or `.`.
    fn file(&self, url: &str) -> Option<PathBuf> {
        let (host, path) = url.strip_prefix("https://")?.split_once('/')?;
        let name = path.rsplit('/').next()?;
        let is_plain = |word: &str| {
            let is_usual = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
            !word.is_empty() && !word.starts_with('.') && word.bytes().all(is_usual)
        };
        (is_plain(host) && is_plain(name)).then(|| self.folder.join(host).join(name))
    }
}

impl Fetch for Downloads {
    fn fetch(&self, request: &Request) -> Result<Content, Refusal> {
        match self
            .file(request.url())
            .and_then(|file| std::fs::read(file).ok())
        {
            Some(content) => {
                // Without a media type of the source, embody uses the media type that the mail declares.
                Ok(Content::new(request.url(), None, Bytes::from(content)))
            }
            None => self.servers.fetch(request),
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args_os()
        .nth(1)
        .ok_or("usage: fetch DIRECTORY < MAIL > OUTPUT")?
        .into();
    let policy = Arc::new(Policy::default().with_fetch([Scheme::Https]));
    let servers = Fetcher::new(Arc::clone(&policy))?;
    let expander = Expander::builder(policy)
        .fetch(Downloads { folder, servers })
        .build()?;

    let mut mail = Vec::new();
    std::io::stdin().read_to_end(&mut mail)?;
    let expansion = expander.expand(&mail, "standard input")?;
    std::io::stdout().write_all(&expansion.output().into_bytes())?;
    Ok(())
}
