use std::collections::BTreeMap;
use std::io::Write as _;

use super::*;
use crate::edit::Edits;
use crate::error::Error;
use crate::mailbox::{Conversion, Format, Message, Options, Summary, Transform};

struct Unchanged;

impl Transform for Unchanged {
    fn next_touch(&self, _bytes: &[u8]) -> Option<usize> {
        None
    }

    fn transform(&self, _message: &Message<'_>) -> Result<(Edits, ()), Error> {
        Ok((Edits::new(), ()))
    }
}

/// A directory with the sources `in`, the output `out` and the journal `made` of the runs of a test.
struct Place {
    folder: tempfile::TempDir,
    format: Format,
}

impl Place {
    fn new(format: Format) -> Self {
        let place = Self {
            folder: tempfile::tempdir().unwrap(),
            format,
        };
        fs::create_dir(place.at("in")).unwrap();
        for name in ["a", "b", "c"] {
            fs::write(place.at("in").join(name), mbox(name)).unwrap();
        }
        place
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs the conversion. `boot` is the name of the boot in which it runs.
    fn run(&self, boot: &str) -> Result<Summary, Error> {
        let before = File::open(self.at("made")).ok();
        let mut options = File::options();
        let to_append = options.append(true).create(true).open(self.at("made")).ok();
        let files = JournalFiles {
            has_earlier_run: self.at("out").exists(),
            before,
            to_append,
        };
        let journal = ResultJournal::in_boot("command", boot.to_owned(), files);
        let options = Options {
            output_format: self.format,
            ..Options::default()
        };
        let (source, target) = (self.at("in"), self.at("out"));
        let conversion = Conversion::of(&source).to(&target).options(&options);
        conversion.journal(Some(&journal)).run(&Unchanged, &())
    }

    /// Returns the contents of all files of the output.
    fn output(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut found = BTreeMap::new();
        let mut left = vec![self.folder.path().to_owned()];
        while let Some(next) = left.pop() {
            for entry in fs::read_dir(next).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    left.push(path);
                } else if !path.starts_with(self.at("in")) && path != self.at("made") {
                    found.insert(path.clone(), fs::read(path).unwrap());
                }
            }
        }
        found
    }
}

fn mbox(name: &str) -> String {
    let from = "From a@example.org Mon Jan  2 10:00:00 2023\n";
    format!("{from}Subject: {name}\n\nbody of {name}\n\n").repeat(9)
}

fn is_refused(done: &Result<Summary, Error>) -> bool {
    let source = match done {
        Err(Error::Write { source, .. }) => source.to_string(),
        other => panic!("{other:?}"),
    };
    source.contains("the file already exists")
}

const FORMATS: [Format; 5] = [
    Format::Auto,
    Format::Mbox,
    Format::Maildir,
    Format::Eml,
    Format::Thunderbird,
];

#[test]
fn second_run_of_the_same_boot_makes_nothing_again() {
    for format in FORMATS {
        let place = Place::new(format);
        assert_eq!(place.run("one").unwrap().made, 0, "{format:?}");
        let output = place.output();
        let done = place.run("one").unwrap();
        assert_eq!(done.messages, 0, "{format:?}");
        assert!(done.made > 0, "{format:?}");
        assert!(place.output() == output, "{format:?}");
    }
}

#[test]
fn changed_result_is_protected_from_a_run_of_the_same_boot() {
    for format in FORMATS {
        let place = Place::new(format);
        place.run("one").unwrap();
        let changed = place.output().into_keys().next().unwrap();
        fs::write(&changed, "somebody's").unwrap();
        let output = place.output();
        let done = place.run("one");
        assert!(is_refused(&done), "{format:?}: {done:?}");
        assert!(place.output() == output, "{format:?}");
    }
}

#[test]
fn changed_source_is_not_taken_for_the_one_of_the_earlier_run() {
    for format in FORMATS {
        let place = Place::new(format);
        place.run("one").unwrap();
        let output = place.output();
        fs::write(place.at("in/b"), mbox("changed")).unwrap();
        let done = place.run("one");
        assert!(is_refused(&done), "{format:?}: {done:?}");
        assert!(place.output() == output, "{format:?}");
    }
}

#[test]
fn results_that_a_crash_damaged_are_made_again() {
    for has_lines in [true, false] {
        let place = Place::new(Format::Auto);
        place.run("one").unwrap();
        let whole = place.output();
        let open = |name: &str| {
            let mut options = File::options();
            options
                .write(true)
                .open(place.at("out").join(name))
                .unwrap()
        };
        open("a").set_len(100).unwrap();
        open("b").set_len(0).unwrap();
        let zeros = [0; 50];
        crate::platform::FileExt::write_all_at(&open("c"), &zeros, 200).unwrap();
        if !has_lines {
            fs::write(place.at("made"), "").unwrap();
        }
        assert_eq!(place.run("two").unwrap().made, 0);
        assert!(place.output() == whole);
        // The second run has recorded its results, so the third run finds all three in the journal.
        assert_eq!(place.run("two").unwrap().made, 3);
        assert!(place.output() == whole);
    }
}

#[test]
fn result_of_a_run_that_was_killed_after_it_removed_its_journal_is_compared() {
    for format in FORMATS {
        let place = Place::new(format);
        place.run("one").unwrap();
        let output = place.output();
        fs::remove_file(place.at("made")).unwrap();
        assert_eq!(place.run("one").unwrap().messages, 27, "{format:?}");
        assert!(place.output() == output, "{format:?}");
        let changed = place.output().into_keys().next_back().unwrap();
        fs::write(&changed, "").unwrap();
        fs::remove_file(place.at("made")).unwrap();
        assert!(place.run("one").is_err(), "{format:?}");
        assert_eq!(fs::read(&changed).unwrap(), b"", "{format:?}");
    }
}

#[test]
fn result_around_those_of_its_subfolders_is_known_and_compared() {
    for format in [Format::Maildir, Format::Eml, Format::Mh] {
        let place = Place::new(format);
        for name in ["d.mbox", "d/e.mbox", "d/e/f.mbox"] {
            let path = place.at("in").join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, mbox(name)).unwrap();
        }
        place.run("one").unwrap();
        let output = place.output();
        assert_eq!(place.run("one").unwrap().messages, 0, "{format:?}");
        // Without a journal, all results are made again and compared with the existing files.
        fs::remove_file(place.at("made")).unwrap();
        place.run("two").unwrap();
        assert!(place.output() == output, "{format:?}");
        // If the user has added a file to a result, the run must neither overwrite the file nor accept the directory as
        // its own result.
        fs::write(place.at("out/d/other"), "somebody's").unwrap();
        fs::remove_file(place.at("made")).unwrap();
        assert!(place.run("three").is_err(), "{format:?}");
        assert_eq!(
            fs::read_to_string(place.at("out/d/other")).unwrap(),
            "somebody's"
        );
    }
}

#[test]
fn file_with_other_content_is_protected_after_a_crash() {
    for content in ["somebody's", &mbox("a").replace("body of a", "text of a")] {
        let place = Place::new(Format::Auto);
        place.run("one").unwrap();
        fs::write(place.at("out/a"), content).unwrap();
        let done = place.run("two");
        assert!(is_refused(&done), "{done:?}");
        assert_eq!(fs::read_to_string(place.at("out/a")).unwrap(), content);
    }
}

#[test]
fn synced_result_is_known_after_a_crash_and_one_without_its_line_is_compared() {
    for format in [Format::Maildir, Format::Eml, Format::Thunderbird] {
        let place = Place::new(format);
        place.run("one").unwrap();
        let output = place.output();
        assert_eq!(place.run("two").unwrap().messages, 0, "{format:?}");
        fs::write(place.at("made"), "").unwrap();
        assert_eq!(place.run("three").unwrap().messages, 27, "{format:?}");
        assert!(place.output() == output, "{format:?}");
    }
}

#[test]
fn thunderbird_folder_gets_its_mbox_after_a_kill_between_the_renames() {
    let place = Place::new(Format::Thunderbird);
    place.run("one").unwrap();
    let output = place.output();
    assert!(place.at("out.sbd").is_dir());
    fs::remove_file(place.at("out")).unwrap();
    place.run("one").unwrap();
    assert!(place.output() == output);
    // If the user has changed the directory, the run fails and does not replace it.
    fs::remove_file(place.at("out")).unwrap();
    fs::write(place.at("out.sbd/a"), "somebody's").unwrap();
    assert!(place.run("one").is_err());
    assert_eq!(
        fs::read_to_string(place.at("out.sbd/a")).unwrap(),
        "somebody's"
    );
}

#[test]
fn source_with_damage_is_reported_again_by_the_next_run() {
    for format in [Format::Auto, Format::Maildir, Format::Eml] {
        let place = Place::new(format);
        let mut packed = Vec::new();
        let mut writer = flate2::write::GzEncoder::new(&mut packed, flate2::Compression::none());
        writer.write_all(mbox("z").as_bytes()).unwrap();
        writer.finish().unwrap();
        packed.truncate(packed.len() - 100);
        fs::write(place.at("in/z.gz"), packed).unwrap();
        let first = place.run("one").unwrap();
        assert_eq!(first.damaged, 1, "{format:?}");
        let output = place.output();
        let second = place.run("one").unwrap();
        assert_eq!((second.damaged, second.made), (1, 3), "{format:?}");
        assert!(place.output() == output, "{format:?}");
    }
}

#[test]
fn incomplete_and_changed_lines_are_ignored() {
    let place = Place::new(Format::Auto);
    place.run("one").unwrap();
    let text = fs::read_to_string(place.at("made")).unwrap();
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("whole"))
        .collect();
    assert_eq!(lines.len(), 3);
    let (torn, changed) = (&lines[0][..80], lines[1].replacen("whole", "whole ", 1));
    let start = text.lines().find(|line| line.starts_with("run")).unwrap();
    let kept = format!("{start}\n{torn}\n{changed}\n\0\n{}\n", lines[2]);
    fs::write(place.at("made"), kept).unwrap();
    fs::remove_file(place.at("out/a")).unwrap();
    fs::remove_file(place.at("out/b")).unwrap();
    let done = place.run("one").unwrap();
    assert_eq!((done.made, done.messages), (1, 18));
}
