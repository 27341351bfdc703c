//! The npm package and the page of `web/`: what `web/build` writes, and that the package does the same as the library.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use embody::view::{FileFormat, MailFile, MailView, PartRole, ReferenceState, TextProtection};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::module::{module, root, run};
use crate::common::programs::{program, skipped, stderr};

/// Runs `web/build`. Returns `None` and prints a message if a program is missing.
pub(super) fn built(test: &str) -> Option<TempDir> {
    let module = module(test, "web/module")?;
    let Some(python) = program("python3") else {
        skipped(test, "python3");
        return None;
    };
    let folder = tempfile::tempdir().unwrap();
    let mut build = Command::new(python);
    build
        .arg(root().join("web/build"))
        .arg("--module")
        .arg(module)
        .arg("--output")
        .arg(folder.path())
        .env("CARGO_NET_OFFLINE", "true")
        .env("SOURCE_DATE_EPOCH", "1715670723");
    let output = run(&mut build);
    assert!(output.status.success(), "{}", stderr(&output));
    Some(folder)
}

#[test]
fn page_is_one_file_with_its_policy_its_version_and_its_licenses() {
    // A notice of an earlier build, below the directory of the crate.
    let stale = Path::new(env!("CARGO_TARGET_TMPDIR")).join("NOTICE.txt");
    fs::write(stale, "Notices of an earlier build.").unwrap();
    let Some(folder) = built("page_is_one_file_with_its_policy_its_version_and_its_licenses")
    else {
        return;
    };
    let page = fs::read_to_string(folder.path().join("embody.html")).unwrap();
    assert!(!page.contains("Notices of an earlier build."));
    assert!(!page.contains("{{"), "a value is missing");
    assert!(page.contains(env!("CARGO_PKG_VERSION")) && page.contains("2024-05-14"));
    assert!(page.contains("memchr ") && page.contains("Permission is hereby granted"));
    let (_, policy) = page
        .split_once("http-equiv=\"Content-Security-Policy\" content=\"")
        .unwrap();
    let (policy, rest) = policy.split_once('"').unwrap();
    assert!(
        policy.starts_with("default-src 'none'; script-src 'sha256-"),
        "{policy}"
    );
    for open in [
        "http:",
        "https:",
        "connect-src",
        "'unsafe-eval'",
        "'self'",
        "*",
    ] {
        assert!(!policy.contains(open), "{policy}");
    }
    // The policy is before everything that it must restrict.
    assert!(!page[..page.len() - rest.len()].contains("<script"));
    // Nothing in the page is loaded from elsewhere.
    for attribute in [" src=\"", " href=\"", "@import", "url(\"http"] {
        let lines: Vec<&str> = page
            .lines()
            .filter(|line| line.len() < 10_000 && line.contains(attribute))
            .collect();
        assert!(lines.is_empty(), "{lines:?}");
    }
    let said: Value =
        serde_json::from_slice(&fs::read(folder.path().join("embody-mail/package.json")).unwrap())
            .unwrap();
    assert_eq!(said["version"], env!("CARGO_PKG_VERSION"));
    assert!(said.get("dependencies").is_none());
    for file in said["files"].as_array().unwrap() {
        let path = folder
            .path()
            .join("embody-mail")
            .join(file.as_str().unwrap());
        assert!(path.is_file(), "{}", path.display());
    }
}

/// Opens each file with the package, and writes what it shows and the repaired mail.
const SCRIPT: &str = r#"
import { readFile, writeFile } from "node:fs/promises";
const { openMail } = await import(process.argv[2]);
const files = JSON.parse(await readFile(process.argv[3]));
for (const [index, path] of files.entries()) {
  const file = await openMail(await readFile(path), path);
  const mail = file.mail(0);
  const { header, date, bodies, protection, parts, references, wrapped_links } = mail;
  const contents = parts.map((_, part) => mail.content(part).length);
  const shown = { format: file.format, length: file.length, summaries: file.summaries(), header, date, bodies, protection, parts, references, wrapped_links, contents };
  await writeFile(`${process.argv[4]}/${index}.json`, JSON.stringify(shown));
  await writeFile(`${process.argv[4]}/${index}.eml`, mail.repaired());
}
"#;

/// Returns what the library shows of a file, like the script.
fn shown(bytes: &[u8], name: &str) -> (Value, Vec<u8>) {
    let file = MailFile::open(bytes.to_vec(), name).unwrap();
    let mail = file.mail(0, SystemTime::now()).unwrap();
    let summaries: Vec<_> = (0..file.len()).map(|index| file.summary(index)).collect();
    let contents: Vec<_> = (0..mail.parts().len())
        .map(|part| mail.content(part).unwrap().len())
        .collect();
    let shown = json!({
        "format": file.format(), "length": file.len(), "summaries": summaries,
        "header": mail.header(), "date": mail.date(), "bodies": mail.bodies(), "protection": mail.protection(), "parts": mail.parts(),
        "references": mail.references(), "wrapped_links": mail.wrapped_links(), "contents": contents,
    });
    (shown, mail.repaired())
}

/// Returns the files with mail in the directories of samples.
pub(super) fn samples() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![
        root().join("samples"),
        root().join("tests/it/mailbox/outlook"),
    ];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path
                .extension()
                .is_some_and(|suffix| ["eml", "mbox", "msg"].iter().any(|it| suffix == *it))
            {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

#[test]
fn package_in_node_shows_and_repairs_the_samples_as_the_library_does() {
    let test = "package_in_node_shows_and_repairs_the_samples_as_the_library_does";
    let Some(folder) = built(test) else { return };
    let samples: Vec<PathBuf> = samples()
        .into_iter()
        .filter(|path| {
            let bytes = fs::read(path).unwrap();
            MailFile::open(bytes, path.to_str().unwrap()).is_ok_and(|file| !file.is_empty())
        })
        .collect();
    assert!(samples.len() > 100, "{}", samples.len());
    let at = |name: &str| folder.path().join(name);
    fs::write(at("script.mjs"), SCRIPT).unwrap();
    fs::write(at("files.json"), serde_json::to_vec(&samples).unwrap()).unwrap();
    fs::create_dir(at("out")).unwrap();
    let mut node = Command::new("node");
    node.arg(at("script.mjs")).arg(at("embody-mail/index.js"));
    let output = run(node.arg(at("files.json")).arg(at("out")));
    assert!(output.status.success(), "{}", stderr(&output));
    for (index, path) in samples.iter().enumerate() {
        let name = path.to_str().unwrap();
        let (expected, repaired) = shown(&fs::read(path).unwrap(), name);
        let read = |suffix: &str| fs::read(at("out").join(format!("{index}.{suffix}"))).unwrap();
        let found: Value = serde_json::from_slice(&read("json")).unwrap();
        assert_eq!(found, expected, "{name}");
        assert!(read("eml") == repaired, "{name}");
    }
}

#[test]
fn package_in_node_fills_a_reference_and_reports_files_without_mail() {
    let test = "package_in_node_fills_a_reference_and_reports_files_without_mail";
    let Some(folder) = built(test) else { return };
    let mail = "MIME-Version: 1.0\nContent-Type: message/external-body; access-type=URL;\n URL=\"https://www.example.org/a.txt\"\n\n\
        Content-Type: text/plain\n\n";
    let script = r#"
        const { openMail, EmbodyError } = await import(process.argv[2]);
        const mail = (await openMail(new TextEncoder().encode(process.argv[3]), "a.eml")).mail();
        mail.fill(0, new TextEncoder().encode("A brief note"), "text/plain");
        process.stdout.write(mail.repaired());
        for (const wrong of [() => mail.fill(0, new Uint8Array()), () => openMail(new TextEncoder().encode("Dear all"), "a.txt")]) {
          try {
            await wrong();
            throw new Error("no error");
          } catch (error) {
            if (!(error instanceof EmbodyError)) throw error;
            process.stderr.write(error.message + "\n");
          }
        }
    "#;
    let path = folder.path().join("script.mjs");
    fs::write(&path, script).unwrap();
    let mut node = Command::new("node");
    let output = run(node
        .arg(path)
        .arg(folder.path().join("embody-mail/index.js"))
        .arg(mail));
    assert!(output.status.success(), "{}", stderr(&output));
    let mut view = MailView::new(mail, SystemTime::now());
    view.fill(0, "A brief note", Some("text/plain")).unwrap();
    assert_eq!(output.stdout, view.repaired());
    assert_eq!(stderr(&output).lines().count(), 2, "{}", stderr(&output));
}

/// Returns the words of a union type in the declarations: `export type NAME = "a" | "b";`.
fn words(declarations: &str, name: &str) -> Vec<String> {
    let (_, rest) = declarations
        .split_once(&format!("export type {name} = "))
        .unwrap();
    let (union, _) = rest.split_once(';').unwrap();
    union
        .split('|')
        .map(|word| word.trim().trim_matches('"').to_owned())
        .collect()
}

/// Returns the fields of an interface in the declarations.
fn fields(declarations: &str, name: &str) -> Vec<String> {
    let (_, rest) = declarations
        .split_once(&format!("export interface {name} {{\n"))
        .unwrap();
    let (body, _) = rest.split_once("\n}").unwrap();
    let mut fields: Vec<String> = body
        .lines()
        .filter_map(|line| line.trim().split_once(": "))
        .filter(|(name, _)| {
            name.bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte == b'_')
        })
        .map(|(name, _)| name.to_owned())
        .collect();
    fields.sort();
    fields
}

#[test]
fn declared_types_of_the_package_are_those_of_the_library() {
    let declarations = fs::read_to_string(root().join("web/index.d.ts")).unwrap();
    let named = |words: &[&'static str]| {
        words
            .iter()
            .map(|word| (*word).to_owned())
            .collect::<Vec<_>>()
    };
    let formats: Vec<_> = FileFormat::ALL.iter().map(|it| it.as_str()).collect();
    let roles: Vec<_> = PartRole::ALL.iter().map(|it| it.as_str()).collect();
    let protections: Vec<_> = TextProtection::ALL.iter().map(|it| it.as_str()).collect();
    let states: Vec<_> = ReferenceState::ALL.iter().map(|it| it.as_str()).collect();
    assert_eq!(words(&declarations, "FileFormat"), named(&formats));
    assert_eq!(words(&declarations, "PartRole"), named(&roles));
    assert_eq!(words(&declarations, "ReferenceState"), named(&states));
    let declared = words(&declarations, "TextProtection");
    assert_eq!(declared, named(&protections));
    // The page explains each of them.
    let table = fs::read_to_string(root().join("web/words.js")).unwrap();
    let (_, explained) = table.split_once("    protected: {\n").unwrap();
    let (explained, _) = explained.split_once("\n    },").unwrap();
    let sentences = explained.lines().filter_map(|line| line.split_once(": \""));
    let keys: Vec<_> = sentences
        .map(|(key, _)| key.trim().trim_matches('"').to_owned())
        .collect();
    assert_eq!(keys, declared);

    let mail = fs::read(root().join("samples/postcard.in.eml")).unwrap();
    let (shown, _) = shown(&mail, "postcard.eml");
    let mail_with_link =
        "Subject: x\n\nSee <https://www.google.com/url?q=https://www.example.org/>.\n";
    let wrapped = json!(MailView::new(mail_with_link, SystemTime::now()).wrapped_links()[0]);
    for (name, value) in [
        ("MailSummary", &shown["summaries"][0]),
        ("HeaderView", &shown["header"][0]),
        ("BodyView", &shown["bodies"][0]),
        ("PartView", &shown["parts"][0]),
        ("ReferenceView", &shown["references"][0]),
        ("LinkView", &wrapped),
    ] {
        let object = value
            .as_object()
            .unwrap_or_else(|| panic!("{name}: {shown}"));
        let mut written: Vec<_> = object.keys().cloned().collect();
        written.sort();
        assert_eq!(fields(&declarations, name), written, "{name}");
    }
}

/// Every word of the page is in the table, and every word of the table is used.
#[test]
fn words_of_the_page_are_in_one_table() {
    let read = |name: &str| fs::read_to_string(Path::new(root()).join("web").join(name)).unwrap();
    let (table, html) = (read("words.js"), read("page.html"));
    let page = read("base.js") + &read("names.js") + &read("mail.js") + &read("page.js");
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric();
    let named = |text: &str, before: &str| -> Vec<String> {
        text.split(before)
            .skip(1)
            .map(|rest| rest.bytes().take_while(is_name).map(char::from).collect())
            .collect()
    };
    let mut used = named(&page, "WORDS.");
    used.extend(named(&html, "data-word=\""));
    used.sort();
    used.dedup();
    let mut known: Vec<String> = table
        .lines()
        .filter_map(|line| line.strip_prefix("    "))
        .filter(|line| line.starts_with(|first: char| first.is_ascii_lowercase()))
        .filter_map(|line| line.split_once(':'))
        .map(|(name, _)| name.to_owned())
        .collect();
    known.sort();
    assert_eq!(used, known);
}
