//! Writes each mail of an Outlook mailbox to an `.eml` file: `cargo run --example pst2eml -- archive.pst mail`
//!
//! The directory `mail` must not exist. For each item that is not written as a complete mail, a line on standard error
//! contains the reason.

use std::path::Path;

use embody::outlook::{Pst, PstItem};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    let [file, directory] = arguments.as_slice() else {
        return Err("usage: pst2eml FILE.pst DIRECTORY".into());
    };
    let mailbox = Pst::open(file)?;
    std::fs::create_dir(directory)?;
    for what in mailbox.damage() {
        eprintln!("{what}");
    }
    for (number, folder) in mailbox.folders().enumerate() {
        // The names of folders are untrusted, so the directories have numbers.
        let directory = Path::new(directory).join(number.to_string());
        std::fs::create_dir(&directory)?;
        println!("{}: {}", directory.display(), folder.path().join("/"));
        for (number, item) in folder.items().enumerate() {
            let path = directory.join(format!("{number}.eml"));
            match item {
                PstItem::Mail(mail) => {
                    std::fs::write(&path, &mail.content)?;
                    for what in mail.missing.iter().chain(&mail.damage) {
                        eprintln!("{}: {what}", path.display());
                    }
                }
                PstItem::NotMail(kind) => eprintln!("{}: not written: {kind}", path.display()),
                PstItem::Unreadable { why, .. } => {
                    eprintln!("{}: not written: {why}", path.display())
                }
                other => eprintln!("{}: not written: {other:?}", path.display()),
            }
        }
    }
    Ok(())
}
