use proptest::prelude::*;

use super::*;
use crate::mailbox::{ByLabel, Format};

/// Returns the search result for these paths. A path with a trailing slash is a Maildir.
fn finds(paths: &[&str]) -> Finds {
    let found = paths.iter().map(|path| {
        let name = path.trim_end_matches('/');
        let kind = match layout::named(Path::new(name)) {
            _ if path.ends_with('/') || path.is_empty() => StartKind::Maildir,
            Some(kind) => kind,
            None => StartKind::Mbox,
        };
        SourceFind {
            path: Path::new("/in").join(name),
            relative: name.into(),
            kind,
            method: None,
            length: 0,
            pst: None,
        }
    });
    let mut mailboxes: Vec<SourceFind> = found.collect();
    mailboxes.sort_by(|one, other| one.path.cmp(&other.path));
    Finds {
        mailboxes,
        ..Finds::default()
    }
}

fn options(output_format: Format, by_label: Option<ByLabel>) -> Options {
    Options {
        output_format,
        by_label,
        ..Options::default()
    }
}

/// Returns the paths of the result, in order.
fn paths(finds: &Finds, options: &Options, folds: bool) -> Vec<String> {
    let folders = result_folders(finds, options, || folds);
    let paths = folders
        .iter()
        .map(|it| it.path.to_str().unwrap().to_owned());
    paths.collect()
}

#[test]
fn folders_of_each_layout_get_the_names_of_the_folders() {
    use Format::{Auto, Eml, Maildir, Mbox, Thunderbird};
    let kmail = [
        "inbox",
        ".inbox.directory/Work/",
        ".inbox.directory/.Work.directory/Deep",
    ];
    let export = ["Work.mbox/mbox", "Work/Projects.mbox/mbox.gz", "other"];
    let maildir = ["", ".R&-D/", ".Entw&APw-rfe.alt/"];
    let nested = ["m/", "m/Entw&APw-rfe/", "m/x.mbox"];
    let apple = [
        "INBOX.mbox/U/Data/Messages/1.emlx",
        "INBOX.mbox/U/Data/3/Messages/3001.emlx",
        "Work.mbox/U/Data/Messages/2.emlx",
        "Work.mbox/Sub.mbox/U/Data/Messages/3.partial.emlx",
    ];
    let meeting = ["nice/1.eml", "nice/2.eml", "nice.mbox", "nice.mbox.gz"];
    let loose = ["a.emlx", "a.eml", "b.msg", "b.eml"];
    let numbers = ["x.mbox", "x/00000001.eml/"];
    let hidden = [".hidden/", ".a/b.mbox", "..x/", ".../"];
    let archives = [".two.zip", "one.zip", "one.mbox"];
    let thunderbird = ["Inbox", "Inbox.sbd/Work"];
    let table: &[(&[&str], Format, &[&str])] = &[
        (
            &kmail,
            Auto,
            &[
                ".inbox.directory/.Work.directory/Deep",
                ".inbox.directory/Work",
                "inbox",
            ],
        ),
        (
            &kmail,
            Mbox,
            &["inbox/Work/Deep.mbox", "inbox/Work.mbox", "inbox.mbox"],
        ),
        (&kmail, Maildir, &["inbox", "inbox/Work", "inbox/Work/Deep"]),
        (
            &kmail,
            Thunderbird,
            &["inbox", "inbox/Work", "inbox/Work/Deep"],
        ),
        (
            &export,
            Auto,
            &["Work/Projects.mbox/mbox.gz", "Work.mbox/mbox", "other"],
        ),
        (
            &export,
            Mbox,
            &["Work/Projects.mbox.gz", "Work.mbox", "other"],
        ),
        (&export, Eml, &["Work", "Work/Projects", "other"]),
        (&maildir, Auto, &["", ".Entw&APw-rfe.alt", ".R&-D"]),
        (&maildir, Maildir, &["", ".Entw&APw-rfe.alt", ".R&-D"]),
        (
            &maildir,
            Mbox,
            &["Entwürfe.alt.mbox", "INBOX.mbox", "R&D.mbox"],
        ),
        (&maildir, Thunderbird, &["Entwürfe/alt", "INBOX", "R&D"]),
        (&nested, Mbox, &["m/Entwürfe.mbox", "m/x.mbox", "m.mbox"]),
        (&nested, Maildir, &["m", "m/Entw&APw-rfe", "m/x"]),
        (&apple, Mbox, &["INBOX.mbox", "Work/Sub.mbox", "Work.mbox"]),
        (&apple, Maildir, &["INBOX", "Work", "Work/Sub"]),
        (&apple, Eml, &["INBOX", "Work", "Work/Sub"]),
        (
            &meeting,
            Eml,
            &["nice/1.eml", "nice/2.eml", "nice (2)", "nice (3)"],
        ),
        (&meeting, Maildir, &["nice", "nice (2)", "nice (3)"]),
        (
            &meeting,
            Mbox,
            &["nice (2).mbox", "nice.mbox", "nice.mbox.gz"],
        ),
        (&loose, Eml, &["a (2).eml", "a.eml", "b (2).eml", "b.eml"]),
        (&numbers, Eml, &["x", "x/00000001.eml_"]),
        (
            &hidden,
            Mbox,
            &[".a/b.mbox", "_.mbox", "hidden.mbox", "x.mbox"],
        ),
        (&hidden, Eml, &["_", "a/b", "hidden", "x"]),
        (&archives, Auto, &["one (2).mbox", "one.mbox", "two.mbox"]),
        (&thunderbird, Mbox, &["Inbox", "Inbox.sbd/Work"]),
        (&thunderbird, Maildir, &["Inbox", "Inbox.sbd/Work"]),
        (&thunderbird, Thunderbird, &["Inbox", "Inbox/Work"]),
    ];
    for (source, form, expected) in table {
        let found = finds(source);
        assert_eq!(
            paths(&found, &options(*form, None), false),
            *expected,
            "{source:?} {form:?}"
        );
    }
}

#[test]
fn equal_names_get_numbers() {
    use Format::{Eml, Maildir, Mbox, Thunderbird};
    let table: &[(&[&str], Format, &[&str])] = &[
        // A folder named INBOX next to the inbox itself.
        (
            &["", ".INBOX/", ".INBOX.a/"],
            Mbox,
            &["INBOX (2).mbox", "INBOX.a.mbox", "INBOX.mbox"],
        ),
        (&["", ".INBOX/"], Thunderbird, &["INBOX", "INBOX (2)"]),
        (&["1.eml", "INBOX.mbox"], Maildir, &["INBOX", "INBOX (2)"]),
        // The hidden `.Work`, the visible `Work` and the file `Work.mbox` all become `Work`.
        (
            &[".Work/", "Work/", "Work.mbox"],
            Eml,
            &["Work", "Work (2)", "Work (3)"],
        ),
        // `R&-D` is decoded to `R&D`, which already exists.
        (&[".R&-D/", "R&D/"], Mbox, &["R&D (2).mbox", "R&D.mbox"]),
        // Directories of the source whose names end in `.mbox`, like the files of the result.
        (
            &["x", "x.mbox/y/", "x.mbox/U/Messages/1.emlx"],
            Mbox,
            &["x", "x (2)/y.mbox", "x.mbox"],
        ),
        (
            &["x.mbox.mbox/y/", "x/"],
            Mbox,
            &["x.mbox", "x.mbox (2)/y.mbox"],
        ),
        (
            &["cur", "new", "tmp.mbox"],
            Maildir,
            &["cur_", "new_", "tmp_"],
        ),
    ];
    for (source, form, expected) in table {
        let found = finds(source);
        assert_eq!(
            paths(&found, &options(*form, None), false),
            *expected,
            "{source:?} {form:?}"
        );
    }
    // Each folder is a directory with a mailbox for each label.
    let found = finds(&["Work/", "Work/a/b/", "Work.a/"]);
    let by_label = options(Format::Auto, Some(ByLabel::All));
    assert_eq!(
        paths(&found, &by_label, false),
        ["Work", "Work.a/b", "Work.a (2)"]
    );
}

#[test]
fn names_that_a_file_system_takes_for_the_same_get_numbers_there() {
    for (names, expected) in [
        (["Work", "work"], ["Work", "work (2)"]),
        (["Über/a", "über/b"], ["Über/a", "über (2)/b"]),
        (
            ["caf\u{e9}", "cafe\u{301}"],
            ["cafe\u{301}", "caf\u{e9} (2)"],
        ),
        (["a.mbox", "A.MBOX"], ["A.MBOX", "a (2).mbox"]),
    ] {
        let found = finds(&names);
        for form in [Format::Auto, Format::Mbox] {
            let folded = paths(&found, &options(form, None), true);
            assert_eq!(folded, expected);
            let mut apart = names;
            apart.sort_unstable();
            assert_eq!(paths(&found, &options(form, None), false), apart);
        }
    }
    let found = finds(&["Work/", "work/", "work/CUR/"]);
    let eml = paths(&found, &options(Format::Eml, None), true);
    assert_eq!(eml, ["Work", "work (2)", "work (2)/CUR_"]);
}

#[test]
fn too_long_names_are_cut_and_stay_different() {
    // In modified UTF-7, these names are short enough for a file name. Decoded to UTF-8, they are too long.
    let long = |last: &str| format!(".&{}{last}-/", "ZeVnLIqe".repeat(29));
    let (one, other) = (long("ZeVnLIqe"), long("ZeVnLIqeZeU"));
    let found = finds(&[&one, &other]);
    assert!(
        found
            .mailboxes
            .iter()
            .all(|it| it.relative.as_os_str().len() < 250)
    );
    for form in [Format::Mbox, Format::Eml] {
        let made = paths(&found, &options(form, None), false);
        assert_ne!(made[0], made[1]);
        assert!(
            made.iter()
                .all(|name| name.starts_with("日本語") && name.len() <= 255),
            "{made:?}"
        );
    }
}

proptest! {
    #[test]
    fn no_two_folders_of_any_source_meet(
        names in prop::collection::btree_set(
            "([aA.é]|b|\u{301}|&AOk-|INBOX|Work|\\.mbox|\\.sbd|\\.directory|\\.eml|cur|new|mbox|x\\.msg|00000001\\.eml|/){1,7}/?",
            0..9,
        ),
        form in prop::sample::select(vec![Format::Auto, Format::Mbox, Format::Maildir, Format::Eml, Format::Thunderbird]),
        by_label in prop::sample::select(vec![None, Some(ByLabel::All)]),
        folds in any::<bool>(),
    ) {
        // The generated paths must be possible on a disk: all different, and no file is the parent of another path.
        let is_real = |name: &&str| {
            let parts = name.trim_end_matches('/').split('/');
            parts.into_iter().all(|part| !matches!(part, "" | "." | ".."))
        };
        let mut names: Vec<&str> = names.iter().map(String::as_str).filter(is_real).collect();
        names.dedup_by_key(|name| name.trim_end_matches('/'));
        let files: Vec<&str> = names.iter().copied().filter(|name| !name.ends_with('/')).collect();
        let is_below_file = |name: &str| files.iter().any(|file| name.strip_prefix(file).is_some_and(|rest| rest.starts_with('/')));
        names.retain(|name| !is_below_file(name));
        let found = finds(&names);
        let options = options(form, by_label);
        let folders = result_folders(&found, &options, || folds);
        let of_all: usize = folders.iter().map(|it| it.founds.len()).sum();
        prop_assert_eq!(of_all, found.mailboxes.len());
        let key = |path: &Path| if folds {
            folded(&path.to_string_lossy())
        } else {
            path.to_string_lossy().into_owned()
        };
        let made: HashSet<String> = folders.iter().map(|it| key(&it.path)).collect();
        prop_assert_eq!(made.len(), folders.len(), "{:?}", folders);
        if form == Format::Thunderbird {
            return Ok(());
        }
        for folder in &folders {
            let parts = folder.path.iter().map(|part| part.to_string_lossy());
            for part in parts {
                prop_assert!(part.len() <= 255 && part != "." && part != "..");
            }
            // Nothing may be placed below a file, or below a directory with a mailbox for each label.
            let is_file = |other: &ResultFolder<'_>| {
                let is_single = !other.is_moved && !other.founds[0].kind.is_folder();
                is_single || by_label.is_some() || matches!(form, Format::Auto | Format::Mbox) && other.is_moved
            };
            for other in folders.iter().filter(|it| is_file(it) && !it.path.as_os_str().is_empty()) {
                let is_below = folder.path.ancestors().skip(1).any(|above| key(above) == key(&other.path));
                prop_assert!(!is_below, "{:?} {:?}", folder.path, other.path);
            }
        }
    }
}
