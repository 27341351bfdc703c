//! `examples/wasm`: the engine in WebAssembly, driven by `run.mjs` in Node.js. The module must produce the same results as the
//! library on this system.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::time::SystemTime;

use embody::engine::{Answers, Context, Engine};
use embody::fetch::Canned;
use embody::policy::{Embed, Policy, Scheme};
use embody::{Expander, outlook, report};
use serde_json::Value;

use super::module::{module, root, run};
use crate::common::programs::stderr;
use crate::common::tnef::Tnef;

/// Runs `node run.mjs MAIL [DOWNLOADS]`.
fn node(module: &Path, arguments: &[&Path]) -> Output {
    let mut node = Command::new("node");
    node.arg(root().join("examples/wasm/run.mjs"))
        .args(arguments)
        .env("EMBODY_WASM", module);
    let output = run(&mut node);
    assert!(output.status.success(), "{}", stderr(&output));
    output
}

/// Creates a `.msg` file with an attached OLE object that contains storages.
fn msg_with_object() -> Vec<u8> {
    use std::io::{Cursor, Write as _};

    let object = "/__attach_version1.0_#00000000/__substg1.0_3701000D";
    let method = [3, 0, 5, 0x37, 0, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0];
    let mut file = cfb::CompoundFile::create(Cursor::new(Vec::new())).unwrap();
    file.create_storage_all(format!("{object}/a/b")).unwrap();
    for (path, bytes) in [
        ("/__properties_version1.0".to_owned(), vec![0; 32]),
        (
            "/__attach_version1.0_#00000000/__properties_version1.0".to_owned(),
            [&[0; 8][..], &method].concat(),
        ),
        (format!("{object}/a/b/c"), vec![1; 5000]),
    ] {
        file.create_stream(path).unwrap().write_all(&bytes).unwrap();
    }
    file.flush().unwrap();
    file.into_inner().into_inner()
}

#[test]
fn module_converts_files_of_outlook_as_the_library_does() {
    let test = "module_converts_files_of_outlook_as_the_library_does";
    let Some(module) = module(test, "examples/wasm") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let tnef = Tnef::new().class("IPM.Note").file("a.txt", b"a").bytes();
    for file in [msg_with_object(), tnef] {
        let path = folder.path().join("file");
        fs::write(&path, &file).unwrap();
        let converted = outlook::convert(&file).unwrap().unwrap().content;
        let written = node(&module, &[&path, folder.path()]).stdout;
        assert!(
            written == converted,
            "{}",
            String::from_utf8_lossy(&written)
        );
        assert!(converted.len() > 100);
    }
}

/// Returns the policy that the module uses.
fn policy() -> Policy {
    let mut policy = Policy::default().with_fetch([Scheme::Https]);
    policy = policy.with_embed(Embed {
        data: true,
        remote: true,
        ..Embed::default()
    });
    policy
}

/// A page with two pictures, a text that can be retrieved, and one that cannot.
const MAIL: &str = "Date: Tue, 14 May 2024 09:12:03 +0200\nMIME-Version: 1.0\n\
    Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: text/html\n\n\
    <p><img src=\"https://www.example.org/a/one.gif\"> <img src=\"https://www.example.org/two.gif\">\n\
    --b\nContent-Type: message/external-body; access-type=URL;\n URL=\"https://www.example.org/note.txt\"\n\n\
    Content-Type: text/plain\n\n\
    --b\nContent-Type: message/external-body; access-type=URL;\n URL=\"https://www.example.org/none.txt\"\n\n\
    Content-Type: text/plain\n\n--b--\n";

const GIF: &[u8] = b"GIF89a\x08\0\x08\0\x80\0\0\xff\0\0\0\0\0!\xf9\x04\0\0\0\0\0,\0\0\0\0\x08\0\x08\0\0\x02\x07\x84\x8f\xa9\xcb\xed\x5d\0;";

fn contents() -> BTreeMap<&'static str, (&'static str, &'static [u8])> {
    [
        ("one.gif", ("image/gif", GIF)),
        ("note.txt", ("text/plain", &b"A brief note"[..])),
    ]
    .into()
}

#[test]
fn module_prints_the_references_and_needs_that_the_library_finds() {
    let test = "module_prints_the_references_and_needs_that_the_library_finds";
    let Some(module) = module(test, "examples/wasm") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let mail = folder.path().join("mail.eml");
    fs::write(&mail, MAIL).unwrap();
    let printed: Value = serde_json::from_slice(&node(&module, &[&mail]).stdout).unwrap();

    let engine = Engine::new(policy());
    let context = Context::new("mail", SystemTime::now());
    let forecast = engine.forecast(MAIL.as_bytes(), &context, Answers::new());
    let rows = serde_json::to_value(&forecast.report.rows).unwrap();
    assert_eq!(printed["references"], rows);
    assert_eq!(rows.as_array().unwrap().len(), 4);

    let needs = engine
        .run(MAIL.as_bytes(), &context, Answers::new())
        .needs
        .unwrap();
    let urls: Vec<_> = needs.batch.iter().map(|need| need.url()).collect();
    let printed_urls: Vec<_> = printed["needs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|need| need["url"].as_str())
        .collect();
    assert_eq!(printed_urls, urls);
    assert!(!urls.is_empty());
    assert_eq!(printed["room"], needs.room);
}

#[test]
fn module_with_answers_writes_the_mail_that_the_library_writes() {
    let test = "module_with_answers_writes_the_mail_that_the_library_writes";
    let Some(module) = module(test, "examples/wasm") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let mail = folder.path().join("mail.eml");
    fs::write(&mail, MAIL).unwrap();
    let downloads = folder.path().join("downloads/www.example.org");
    fs::create_dir_all(&downloads).unwrap();
    let mut canned = Canned::new();
    for (name, (media_type, body)) in contents() {
        fs::write(downloads.join(name), body).unwrap();
        for at in ["", "a/"] {
            let url = format!("https://www.example.org/{at}{name}");
            canned = canned.with(&url, Some(media_type), body);
        }
    }
    let output = node(&module, &[&mail, &folder.path().join("downloads")]);

    let expander = Expander::builder(policy()).fetch(canned).build().unwrap();
    let expansion = expander.expand(MAIL.as_bytes(), "mail").unwrap();
    let written = expansion.output().into_bytes();
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&written)
    );
    assert_eq!(expansion.report.expanded(), 2);

    let said = stderr(&output);
    let rows: Vec<Value> = said
        .lines()
        .map(|row| serde_json::from_str(row).unwrap())
        .collect();
    assert_eq!(rows.len(), expansion.report.rows.len());
    for (row, of_library) in rows.iter().zip(&expansion.report.rows) {
        assert_eq!(row["url"].as_str(), of_library.url.as_deref());
        assert_eq!(row["outcome"], of_library.outcome.as_str());
    }
    // Two files are in no directory.
    let left = |row: &&Value| row["reason"] == report::Reason::FileNotReadable.as_str();
    assert_eq!(rows.iter().filter(left).count(), 2, "{said}");
}

#[test]
fn module_without_answers_fills_the_samples() {
    let test = "module_without_answers_fills_the_samples";
    let Some(module) = module(test, "examples/wasm") else {
        return;
    };
    let mut filled = 0;
    for entry in fs::read_dir(root().join("samples")).unwrap() {
        let mail = entry.unwrap().path();
        let name = mail.file_name().unwrap().to_str().unwrap();
        let Some(name) = name.strip_suffix(".in.eml") else {
            continue;
        };
        let expected = fs::read(mail.with_file_name(format!("{name}.out.eml"))).unwrap();
        let output = node(&module, &[&mail, Path::new("/nonexistent")]);
        assert!(output.stdout == expected, "{name}");
        filled += 1;
    }
    assert!(filled >= 20, "{filled}");
}

/// The stack of a module is small, and parts may be nested as deeply as the policy allows.
#[test]
fn module_with_deeply_nested_parts_does_what_the_library_does() {
    let test = "module_with_deeply_nested_parts_does_what_the_library_does";
    let Some(module) = module(test, "examples/wasm") else {
        return;
    };
    let note = "Content-Type: message/external-body; access-type=URL; URL=\"data:,A%20brief%20note\"\n\nContent-Type: text/plain\n\n";
    let mut mail = note.to_owned();
    for level in 0..70 {
        mail = match level % 2 {
            0 => format!("Content-Type: message/rfc822\n\n{mail}"),
            _ => format!(
                "Content-Type: multipart/mixed; boundary=b{level}\n\n--b{level}\n{note}\n--b{level}\n{mail}\n--b{level}--\n"
            ),
        };
    }
    let mail = format!("MIME-Version: 1.0\n{mail}");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mail.eml");
    fs::write(&path, &mail).unwrap();
    let output = node(&module, &[&path, Path::new("/nonexistent")]);
    let expander = Expander::new(policy()).unwrap();
    let expansion = expander.expand(mail.as_bytes(), "mail").unwrap();
    assert!(output.stdout == *expansion.output().into_bytes());
    assert!(expansion.report.expanded() > 20);
}

/// The modules and the program must use the same versions of crates, so that a mail becomes the same in all of them.
#[test]
fn locked_crates_of_the_modules_are_those_of_the_program() {
    let versions = |path: &str| -> BTreeMap<String, Vec<String>> {
        let lock: toml::Table = fs::read_to_string(root().join(path))
            .unwrap()
            .parse()
            .unwrap();
        let mut found = BTreeMap::<_, Vec<_>>::new();
        for crate_ in lock["package"].as_array().unwrap() {
            // Crates without a source are in this repository.
            if crate_.get("source").is_some() {
                let text = |key: &str| crate_[key].as_str().unwrap().to_owned();
                found.entry(text("name")).or_default().push(text("version"));
            }
        }
        found
    };
    let program = versions("Cargo.lock");
    for module in ["examples/wasm/Cargo.lock", "web/module/Cargo.lock"] {
        for (name, of_module) in versions(module) {
            let of_program = program.get(&name).unwrap_or_else(|| panic!("{name}"));
            let is_known = |version: &String| of_program.contains(version);
            assert!(of_module.iter().all(is_known), "{name} {of_module:?}");
        }
    }
}
