//! Moves attachments of a mailbox into a store, and puts them back:
//! `cargo run --example detach in.mbox small.mbox store/ && cargo run --example detach -- --restore small.mbox again.mbox store/`
//!
//! After both runs, `again.mbox` contains the same bytes as `in.mbox`.

use std::path::Path;
use std::sync::Arc;

use embody::detach::{Detacher, Settings};
use embody::mailbox::{Conversion, Options, Stop};
use embody::store::{Folder, Store};
use embody::{Expander, Policy};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (restores, paths) = match arguments.as_slice() {
        [flag, paths @ ..] if flag == "--restore" => (true, paths),
        paths => (false, paths),
    };
    let [source, target, store] = paths else {
        return Err("usage: detach [--restore] SOURCE TARGET STORE".into());
    };
    let store: Arc<dyn Store> = Arc::new(Folder::open(Path::new(store))?);
    let (source, target) = (Path::new(source), Path::new(target));
    let (options, stop) = (Options::default(), Stop::default());

    // The observer `&()` ignores the results of the single messages.
    let summary = if restores {
        let restorer = Expander::builder(Policy::default())
            .restoring()
            .store(store)
            .build()?;
        Conversion::of(source)
            .to(target)
            .options(&options)
            .stop(&stop)
            .run(&restorer, &())?
    } else {
        let detacher = Detacher::new(Settings::new(store));
        Conversion::of(source)
            .to(target)
            .options(&options)
            .stop(&stop)
            .run(&detacher, &())?
    };
    println!(
        "{} of {} messages changed; the size changed from {} to {} bytes",
        summary.changed, summary.messages, summary.bytes_in, summary.bytes_out
    );
    Ok(())
}
