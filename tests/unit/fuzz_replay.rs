//! Runs the fuzz targets on stable Rust with their seeds, and with all inputs that ever caused a failure
//! (`tests/fuzz`).
//!
//! If fuzzing left a local corpus in `tests/fuzz/corpus`, this corpus is also used.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::common::checks::{Check, TARGETS};
use super::common::{hostile, seeds};

fn fuzz_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz")
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file())
        .collect();
    files.sort();
    files
}

/// Runs a check, and names the input if the check fails.
fn replay(target: &str, check: Check, name: &str, input: &[u8]) {
    let outcome = std::panic::catch_unwind(|| check(input));
    assert!(outcome.is_ok(), "{target} fails on {name}");
}

#[test]
fn fuzz_checks_accept_all_seeds() {
    for (target, check) in TARGETS {
        let seeds = seeds::of(target);
        assert!(seeds.len() > 15, "only {} seeds of {target}", seeds.len());
        for (number, seed) in seeds.iter().enumerate() {
            replay(target, check, &format!("seed {number}"), seed);
        }
    }
}

#[test]
fn fuzz_checks_accept_the_inputs_of_earlier_failures() {
    for (target, check) in TARGETS {
        for folder in ["regressions", "corpus"] {
            for file in files(&fuzz_folder().join(folder).join(target)) {
                let input = fs::read(&file).unwrap();
                replay(target, check, &file.display().to_string(), &input);
            }
        }
    }
}

#[test]
fn every_check_is_a_target_and_every_target_a_check() {
    let folder = fuzz_folder();
    if !folder.is_dir() {
        // The published package contains the checks without the fuzz targets.
        return;
    }
    let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
    let targets = files(&folder.join("targets"));
    assert_eq!(targets.len(), TARGETS.len());
    for (target, _) in TARGETS {
        assert!(
            manifest.contains(&format!("name = \"{target}\"")),
            "{target}"
        );
        let text = fs::read_to_string(folder.join(format!("targets/{target}.rs"))).unwrap();
        assert!(
            text.contains(&format!("checks::{target}::check(data)")),
            "{target}"
        );
    }
    for entry in fs::read_dir(folder.join("regressions"))
        .into_iter()
        .flatten()
    {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(
            TARGETS.iter().any(|(target, _)| *target == name),
            "regressions of no target: {name}"
        );
    }
}

/// If the lock file does not match the manifest, cargo-fuzz writes it again, which changes the working copy.
#[test]
fn the_lock_file_of_the_fuzzers_fits_the_manifest() {
    let Ok(lock) = fs::read_to_string(fuzz_folder().join("Cargo.lock")) else {
        return;
    };
    let lock: toml::Table = toml::from_str(&lock).unwrap();
    let packages = lock["package"].as_array().unwrap();
    let embody = packages
        .iter()
        .find(|package| package["name"].as_str() == Some("embody"))
        .unwrap();
    let locked: BTreeSet<&str> = embody["dependencies"]
        .as_array()
        .unwrap()
        .iter()
        // If there are several versions of a crate, its version is after its name.
        .filter_map(|dependency| dependency.as_str()?.split(' ').next())
        .collect();
    let manifest: toml::Table = toml::from_str(include_str!("../../Cargo.toml")).unwrap();
    let of_unix = &manifest["target"]["cfg(unix)"]["dependencies"];
    let wanted: BTreeSet<&str> = [&manifest["dependencies"], of_unix]
        .into_iter()
        .flat_map(|table| table.as_table().unwrap().keys().map(String::as_str))
        // Dependencies of features that are not enabled by default are not in the lock file.
        .filter(|&name| name != "rusty-s3")
        .collect();
    assert!(wanted.len() > 20);
    assert_eq!(locked, wanted);
}

/// Not a test. `tests/fuzz/run` calls this to create an initial corpus.
#[test]
#[ignore = "writes tests/fuzz/corpus"]
fn write_the_seeds() {
    for (target, _) in TARGETS {
        let folder = fuzz_folder().join("corpus").join(target);
        fs::create_dir_all(&folder).unwrap();
        for (number, seed) in seeds::of(target).iter().enumerate() {
            fs::write(folder.join(format!("seed-{number:03}")), seed).unwrap();
        }
    }
}

/// Not a test. `tests/hostile` calls this to create mails whose cost it measures.
#[test]
#[ignore = "writes the folder that EMBODY_HOSTILE names"]
fn write_the_hostile_mails() {
    let folder = PathBuf::from(std::env::var_os("EMBODY_HOSTILE").unwrap());
    for octets in [5 << 20, 10 << 20] {
        let folder = folder.join(octets.to_string());
        fs::create_dir_all(&folder).unwrap();
        for shape in hostile::SHAPES {
            fs::write(folder.join(shape.name), (shape.make)(octets)).unwrap();
        }
    }
}
