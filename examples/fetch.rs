//! Answers references from a folder of downloads, and asks servers for the rest:
//! `cargo run --example fetch downloads/ < mail.eml > whole.eml`
//!
//! `https://www.example.org/notes/a.txt` is looked for in `downloads/www.example.org/a.txt`.

use std::io::{Read as _, Write as _};
use std::path::PathBuf;
use std::sync::Arc;

use embody::engine::Content;
use embody::fetch::{Bytes, Fetch, Fetcher, Request};
use embody::policy::Scheme;
use embody::report::Refusal;
use embody::{Expander, Policy};

/// A folder, and what retrieves under the same policy.
struct Downloads {
    folder: PathBuf,
    servers: Fetcher,
}

impl Downloads {
    /// The file of a URL. Its name comes from a stranger's mail: a host and one name, neither of which leads elsewhere.
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
                // What the part declares holds.
                Ok(Content::new(request.url(), None, Bytes::from(content)))
            }
            None => self.servers.fetch(request),
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args_os().nth(1).ok_or("name a folder")?.into();
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
