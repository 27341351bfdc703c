//! Checks the packages of docs/packages.md without building them: the files that the metadata names, the packaged
//! configuration, and the Containerfile. `.ci/packages check` builds, installs and runs the packages.

use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use crate::common::mail::with_url;
use crate::common::mail_system::MailSystem;
use crate::common::milter::Milter;
use crate::common::mta::House;
use crate::common::programs::{done, embody, program, skipped};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(name: &str) -> String {
    fs::read_to_string(root().join(name)).unwrap_or_else(|why| panic!("{name}: {why}"))
}

/// Returns the assets of the package: source, and installed path.
fn assets() -> Vec<(String, String)> {
    let manifest: toml::Table = toml::from_str(&read("Cargo.toml")).unwrap();
    let assets = manifest["package"]["metadata"]["deb"]["assets"]
        .as_array()
        .unwrap();
    assert!(assets.len() > 10, "{assets:?}");
    let text = |asset: &toml::Value, at: usize| asset[at].as_str().unwrap().to_owned();
    assets
        .iter()
        .map(|asset| (text(asset, 0), text(asset, 1)))
        .collect()
}

/// Returns the number of files that match a source: a file, `FOLDER/*.SUFFIX`, or `FOLDER/**/*`.
fn matches(source: &str) -> usize {
    let Some((folder, pattern)) = source.split_once("/*") else {
        return usize::from(root().join(source).is_file());
    };
    let suffix = pattern.rsplit('*').next().unwrap();
    let entries = fs::read_dir(root().join(folder)).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.ends_with(suffix)).count()
}

#[test]
fn what_the_package_is_to_hold_is_in_the_repository_or_made_by_the_script() {
    let script = read(".ci/packages");
    let mut kept = 0;
    for (source, _) in assets() {
        if let Some(made) = source.strip_prefix("target/packages/") {
            let folder_or_file = made.split('/').next().unwrap().trim_end_matches(".gz");
            let made_by_script = format!("\"$out/{folder_or_file}\"");
            assert!(script.contains(&made_by_script), "who makes {source}?");
        } else if source != "target/release/embody" {
            assert!(matches(&source) > 0, "{source}: no such file");
            kept += 1;
        }
    }
    assert!(kept > 5, "{kept} files of the repository");
    for unit in ["embody.service", "embody.socket"] {
        assert!(root().join("docs/milter").join(unit).is_file(), "{unit}");
    }
}

/// Checks that pictures, samples and pages that the README names are installed next to it.
#[test]
fn what_readme_names_is_in_every_package() {
    let readme = read("README.md");
    let is_of_name = |letter: char| letter.is_ascii_alphanumeric() || "./_-".contains(letter);
    let names: BTreeSet<&str> = readme
        .split(|letter| !is_of_name(letter))
        .map(|word| word.trim_end_matches(['.', '/']))
        .filter(|name| name.starts_with("docs/") || name.starts_with("samples/"))
        .collect();
    assert!(names.len() > 14, "{names:?}");
    assert!(names.iter().any(|name| name.ends_with(".png")), "{names:?}");
    let manifest: toml::Table = toml::from_str(&read("Cargo.toml")).unwrap();
    let package = &manifest["package"];
    assert!(package.get("include").is_none());
    let excluded = package["exclude"].as_array().unwrap();
    let assets = assets();
    let archive = read(".ci/packages");
    for name in names {
        assert!(root().join(name).exists(), "{name}: no such file");
        let is_excluded = |text: &toml::Value| name.starts_with(text.as_str().unwrap());
        assert!(!excluded.iter().any(is_excluded), "{name} is not published");
        let folder = name.split('/').next().unwrap();
        let suffix = name.rsplit('.').next().unwrap();
        let source = match folder {
            "samples" => "samples/**/*".to_owned(),
            _ => format!("docs/*.{suffix}"),
        };
        let place = format!("usr/share/doc/embody/{folder}/");
        assert!(
            assets.contains(&(source.clone(), place)),
            "{name}: {source}"
        );
        let copied = source.split("/**").next().unwrap();
        assert!(archive.contains(&format!(" {copied} ")), "{name}: {copied}");
    }
}

#[test]
fn packages_page_names_the_place_of_every_packaged_file() {
    let page = read("docs/packages.md");
    let units = ["embody.service", "embody.socket"].map(str::to_owned);
    let places = assets()
        .into_iter()
        .map(|(_, place)| place)
        .filter(|place| {
            // The page describes the directories for completions and the override for lintian in other words.
            !place.contains("completions") && !place.contains("lintian")
        });
    for place in places.chain(units) {
        let folder = place.strip_prefix("usr/share/doc/embody/");
        let shown = folder.map_or(place.as_str(), |_| "usr/share/doc/embody/");
        assert!(
            page.contains(shown),
            "docs/packages.md does not say {shown}"
        );
    }
}

#[test]
fn completions_are_made_for_shells_that_the_program_knows() {
    let prefix = "target/packages/completions/";
    let shells: BTreeSet<String> = assets()
        .iter()
        .filter_map(|(source, _)| source.strip_prefix(prefix).map(str::to_owned))
        .collect();
    assert!(shells.len() >= 3, "{shells:?}");
    for shell in &shells {
        let made = embody().args(["completions", shell]).output().unwrap();
        assert!(made.status.success() && !made.stdout.is_empty(), "{shell}");
    }
}

#[test]
fn wheel_formula_and_packages_page_agree_with_cargo_toml() {
    let table = |name: &str| toml::from_str::<toml::Table>(&read(name)).unwrap();
    let (cargo, python) = (table("Cargo.toml"), table("pyproject.toml"));
    for field in ["description", "license", "readme", "keywords"] {
        assert_eq!(cargo["package"][field], python["project"][field], "{field}");
    }
    let page = read("docs/packages.md");
    assert_eq!(python["project"]["name"].as_str(), Some("embody-mail"));
    let since = python["project"]["requires-python"]
        .as_str()
        .unwrap()
        .trim_start_matches(">=");
    assert!(
        page.contains(&format!("Python {since} or newer")),
        "{since}"
    );
    // Versions on the page are the current version.
    let version = cargo["package"]["version"].as_str().unwrap();
    for name in [
        format!("embody_{version}-1_amd64.deb"),
        format!("embody_mail-{version}-py3-none-"),
        format!("embody-{version}-amd64.oci.tar"),
    ] {
        assert!(page.contains(&name), "docs/packages.md does not say {name}");
    }
    let formula = read("docs/packages/embody.rb");
    for license in cargo["package"]["license"].as_str().unwrap().split(" OR ") {
        assert!(formula.contains(&format!("\"{license}\"")), "{license}");
    }
    for filled_in in ["@URL@", "@VERSION@", "@SHA256@"] {
        let script = read(".ci/release");
        assert!(formula.contains(filled_in) && script.contains(filled_in));
    }
}

/// The release is refused before anything is built.
#[test]
fn release_is_refused_if_tag_version_and_changelog_disagree() {
    let test = "release_is_refused_if_tag_version_and_changelog_disagree";
    if program("git").is_none() {
        return skipped(test, "git");
    }
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let git = |words: &str| {
        let mut git = Command::new("git");
        git.current_dir(here).args(words.split(' '));
        for role in ["AUTHOR", "COMMITTER"] {
            git.env(format!("GIT_{role}_NAME"), "a");
            git.env(format!("GIT_{role}_EMAIL"), "a@example.org");
        }
        git.env("GIT_CONFIG_GLOBAL", "/dev/null");
        done(&git.output().unwrap(), 0);
    };
    fs::create_dir(here.join(".ci")).unwrap();
    fs::copy(root().join(".ci/release"), here.join(".ci/release")).unwrap();
    // A replacement of the script that builds packages.
    fs::write(here.join(".ci/packages"), "#!/bin/sh\nexit 7\n").unwrap();
    fs::set_permissions(here.join(".ci/packages"), Permissions::from_mode(0o755)).unwrap();
    // The script asks only whether a program can build container images. This machine may have none.
    let image_builder = here.join("bin/buildah");
    fs::create_dir(here.join("bin")).unwrap();
    fs::write(&image_builder, "#!/bin/sh\nexit 0\n").unwrap();
    fs::set_permissions(&image_builder, Permissions::from_mode(0o755)).unwrap();
    let usual = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{usual}", here.join("bin").display());
    fs::write(here.join("Cargo.toml"), "[package]\nversion = \"1.2.3\"\n").unwrap();
    fs::write(here.join("CHANGELOG.md"), "## 1.2.3, unreleased\n\n* new\n").unwrap();
    git("init -q");
    git("add .");
    git("commit -q -m one");
    git("tag v1.2.3");
    git("tag v1.2.4");
    let refused = |name: &str, status: i32| {
        let mut release = Command::new(here.join(".ci/release"));
        done(
            &release.arg(name).env("PATH", &path).output().unwrap(),
            status,
        )
    };
    assert!(refused("v1.2.4", 2).contains("the version in Cargo.toml is 1.2.3"));
    assert!(refused("v1.2.3", 2).contains("1.2.3, YYYY-MM-DD"));
    assert!(refused("no-such-tag", 2).contains("no tag or commit"));
    assert_eq!(refused("HEAD", 7), "");
    fs::write(here.join("CHANGELOG.md"), "## 1.2.3, 2026-11-23\n\n* new\n").unwrap();
    git("commit -q -a -m two");
    git("tag -f v1.2.3");
    assert_eq!(refused("v1.2.3", 7), "");
    assert!(!here.join("target").exists());
}

#[test]
fn milter_accepts_the_packaged_configuration_and_its_suggested_options() {
    let packaged = read("docs/packages/milter.toml");
    let suggested = packaged.replace("\n#", "\n");
    let options = |text: &str| toml::from_str::<toml::Table>(text).map(|table| table.len());
    // Lines with explanations begin with a space after the comment sign.
    let uncommented: String = suggested
        .lines()
        .filter(|line| !line.starts_with([' ', '#']))
        .map(|line| format!("{line}\n"))
        .collect();
    assert!(options(&uncommented).unwrap() > options(&packaged).unwrap());

    for configuration in [packaged, uncommented] {
        let house = House::new();
        house.write("embody.toml", &configuration);
        let listen = format!("unix:{}", house.text("milter.sock"));
        let _milter = Milter::start(&house, &listen, &[]);
        let mut mail_system = MailSystem::unix(&house.path("milter.sock"));
        mail_system.negotiate();
        let letter = with_url("data:,hello", "Content-Type: text/plain");
        let filled = mail_system.filter("4packages", &letter).message();
        assert!(memchr::memmem::find(&filled, b"\n\nhello").is_some());
    }
}

#[test]
fn the_packaged_configuration_allows_no_network() {
    let packaged: toml::Table = toml::from_str(&read("docs/packages/milter.toml")).unwrap();
    assert!(!packaged.contains_key("fetch"), "{packaged:?}");
}

#[test]
fn the_containerfile_copies_what_the_script_puts_beside_it_and_starts_the_program() {
    let text = read("docs/packages/Containerfile");
    let instructions: Vec<(&str, &str)> = text
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| line.split_once(' ').unwrap())
        .collect();
    assert_eq!(instructions[0], ("FROM", "scratch"));
    let of = |wanted: &str| {
        let arguments = instructions.iter().filter(|(name, _)| *name == wanted);
        arguments
            .map(|(_, arguments)| *arguments)
            .collect::<Vec<_>>()
    };
    let known = [
        "FROM",
        "COPY",
        "USER",
        "EXPOSE",
        "STOPSIGNAL",
        "ENTRYPOINT",
        "CMD",
    ];
    for (name, _) in &instructions {
        assert!(known.contains(name), "{name}");
    }

    // The copied directory is created by the script and contains the program.
    assert_eq!(of("COPY"), ["system /", "--chown=65532:65532 data /"]);
    let script = read(".ci/packages");
    assert!(script.contains("image=$out/image/system\n"));
    let list = |arguments: &str| serde_json::from_str::<Vec<String>>(arguments).unwrap();
    let (entry, command) = (list(of("ENTRYPOINT")[0]), list(of("CMD")[0]));
    assert!(
        script.contains(&format!("\"$image{}\"\n", entry[0])),
        "{entry:?}"
    );
    let port = command.last().unwrap().rsplit(':').next().unwrap();
    assert_eq!(of("EXPOSE"), [port]);
    // The user is a number, because the image has no passwd file.
    assert!(of("USER")[0].split(':').all(|id| id.parse::<u32>().is_ok()));
    // The arguments of the command are valid: an error in them would be reported before the one in the argument after them.
    let ran = embody()
        .args(&command)
        .arg("--config")
        .arg("/nonexistent")
        .output();
    let said = String::from_utf8(ran.unwrap().stderr).unwrap();
    assert!(said.contains("/nonexistent"), "{said}");
}
