//! Moves attachments of a mailbox into a store, and puts them back:
//! `cargo run --example detach in.mbox small.mbox store/ && cargo run --example detach -- --restore small.mbox again.mbox store/`
//!
//! `again.mbox` is `in.mbox`, byte for byte.

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
        return Err("name a mailbox, its result and a store".into());
    };
    let store: Arc<dyn Store> = Arc::new(Folder::open(Path::new(store))?);
    let (source, target) = (Path::new(source), Path::new(target));
    let (options, stop) = (Options::default(), Stop::default());

    // Nobody is told of each message: `&()` observes nothing.
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
        "{} of {} messages changed; {} bytes are {} now",
        summary.changed, summary.messages, summary.bytes_in, summary.bytes_out
    );
    Ok(())
}
