//! `--config FILE`: keys have the names of options, unknown keys are errors, and a file is read only if it is named.

use std::fs;
use std::path::PathBuf;
use std::process::Output;

use crate::common::programs::{embody, fed};
use crate::common::reports;
use tempfile::TempDir;

/// A message whose only part is a text of six bytes in a `data:` URL.
const LETTER: &str = "MIME-Version: 1.0\n\
    Content-Type: message/external-body; access-type=URL; URL=\"data:,hello%0A\"\n\n\
    Content-Type: text/plain\n\n";

/// The same message with two references to servers.
const REMOTE: &str = "MIME-Version: 1.0\n\
    Content-Type: multipart/mixed; boundary=b\n\n\
    --b\n\
    Content-Type: message/external-body; access-type=URL; URL=\"https://a.example/x\"\n\n\
    Content-Type: text/plain\n\n\
    --b\n\
    Content-Type: message/external-body; access-type=URL; URL=\"ftp://b.example/x\"\n\n\
    Content-Type: text/plain\n\n\
    --b--\n";

struct Setting {
    folder: TempDir,
}

impl Setting {
    fn with(configuration: &str) -> Self {
        let setting = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        fs::write(setting.file(), configuration).unwrap();
        setting
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("embody.toml")
    }

    fn run(&self, arguments: &[&str], message: &str) -> Output {
        let (command, rest) = arguments.split_first().unwrap();
        let mut program = embody();
        program.arg(command).arg("--config").arg(self.file());
        fed(program.args(rest), message.as_bytes())
    }

    #[track_caller]
    fn reasons(&self, arguments: &[&str]) -> Vec<String> {
        let output = self.run(&[&["inspect", "--json"], arguments].concat(), REMOTE);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let rows = String::from_utf8(output.stdout).unwrap();
        // The last line can be a survey, which has no outcome.
        rows.lines()
            .filter(|row| row.contains("\"outcome\":"))
            .map(|row| {
                let row = reports::object(row);
                let reason = row.get("reason").filter(|reason| !reason.is_null());
                let word = reason.unwrap_or(&row["outcome"]);
                word.as_str().unwrap().to_owned()
            })
            .collect()
    }
}

#[track_caller]
fn expands(output: &Output) {
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(output.stdout.ends_with(b"\n\nhello\n"), "{output:?}");
}

#[track_caller]
fn leaves(output: &Output) {
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(output.stdout, LETTER.as_bytes(), "{output:?}");
}

#[track_caller]
fn is_broken(output: &Output, status: i32, word: &str) {
    assert_eq!(output.status.code(), Some(status), "{output:?}");
    assert!(output.stdout.is_empty(), "{output:?}");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains(word), "{stderr}");
}

#[test]
fn an_option_of_the_file_holds() {
    leaves(&Setting::with("max-body = \"2\"").run(&["filter"], LETTER));
    leaves(&Setting::with("max-body = 2").run(&["filter"], LETTER));
    expands(&Setting::with("max-body = \"1k\"").run(&["filter"], LETTER));
}

#[test]
fn the_command_line_wins_over_the_file() {
    let setting = Setting::with("max-body = 2");
    expands(&setting.run(&["filter", "--max-body", "1k"], LETTER));
    expands(&setting.run(&["filter", "--max-body=1k"], LETTER));
}

#[test]
fn a_list_of_the_command_line_replaces_the_one_of_the_file() {
    let setting = Setting::with("fetch = [\"https\", \"ftp\"]");
    assert_eq!(setting.reasons(&[]), ["would-fetch", "would-fetch"]);
    assert_eq!(
        setting.reasons(&["--fetch", "ftp"]),
        ["scheme-not-allowed", "would-fetch"]
    );
}

#[test]
fn a_list_may_be_one_string_or_several_or_numbers() {
    for fetch in ["\"https,ftp\"", "[\"https,ftp\"]", "[\"https\", \"ftp\"]"] {
        let setting = Setting::with(&format!("fetch = {fetch}\nallow-port = [8080, \"8081\"]"));
        assert_eq!(setting.reasons(&[]), ["would-fetch", "would-fetch"]);
    }
    let setting = Setting::with("fetch = \"https\"\ndeny-host = [\"a.example\"]");
    assert_eq!(
        setting.reasons(&[]),
        ["host-not-allowed", "scheme-not-allowed"]
    );
}

#[test]
fn a_switch_is_true_or_false() {
    let marked = Setting::with("mark = true").run(&["filter"], LETTER);
    assert!(
        String::from_utf8_lossy(&marked.stdout).contains("X-Embody: expanded=1"),
        "{marked:?}"
    );
    expands(&Setting::with("mark = false").run(&["filter"], LETTER));
}

#[test]
fn an_option_that_excludes_one_of_the_file_wins() {
    let output = Setting::with("quiet = true").run(&["filter", "--verbose"], LETTER);
    expands(&output);
    assert!(!output.stderr.is_empty());
}

#[test]
fn commands_can_share_a_file() {
    let setting = Setting::with("on-failure = \"defer\"\nmark = true\nfetch = \"https\"");
    assert_eq!(setting.reasons(&[]), ["would-fetch", "scheme-not-allowed"]);
}

/// `filter` ignores settings that only affect mailboxes.
#[test]
fn what_only_mailboxes_need_does_not_keep_a_filter_from_its_work() {
    let setting =
        Setting::with("jobs = 2\nformat = \"mbox\"\nprogress = \"never\"\nmax-expanded = \"1G\"");
    let store = setting.folder.path().join("store");
    fs::create_dir(&store).unwrap();
    let store = store.to_str().unwrap();
    for command in ["filter", "detach", "restore"] {
        let output = setting.run(&[command, "--store", store], LETTER);
        assert_eq!(output.status.code(), Some(0), "{command}: {output:?}");
        // On the command line, such an option is an error.
        if command != "filter" {
            let output = setting.run(&[command, "--store", store, "--jobs", "2"], LETTER);
            assert_eq!(output.status.code(), Some(75), "{command}: {output:?}");
        }
    }
    // With mailboxes, the settings apply.
    let file = setting.folder.path().join("m.eml");
    fs::write(&file, LETTER).unwrap();
    let file = file.to_str().unwrap();
    for command in ["detach", "restore"] {
        let output = setting.run(&[command, "--store", store, "--in-place", file], "");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{command}: {said}");
        assert!(said.contains("is not an mbox"), "{said}");
    }
}

#[test]
fn patterns_may_stand_in_one_string_with_commas() {
    for options in [
        &[
            "--fetch",
            "https,ftp",
            "--allow-host",
            "a.example,b.example",
        ][..],
        &[
            "--fetch",
            "https,ftp",
            "--allow-host",
            "*.example,c.d",
            "--allow-port",
            "80,81",
        ],
        &[
            "--fetch",
            "https,ftp",
            "--allow-net",
            "10.0.0.0/8,192.0.2.0/24",
        ],
    ] {
        let setting = Setting::with("");
        assert_eq!(setting.reasons(options), ["would-fetch", "would-fetch"]);
    }
    let denied = Setting::with("fetch = \"https,ftp\"\ndeny-host = \"x.example,b.example\"");
    assert_eq!(denied.reasons(&[]), ["would-fetch", "host-not-allowed"]);
}

#[test]
fn what_is_wrong_in_a_file_delays_mail_and_says_where() {
    for (configuration, word) in [
        (
            "# x\n\nfetsch = [\"https\"]",
            "embody.toml, line 3: 'fetsch' is not the name of an option; did you mean 'fetch'?",
        ),
        (
            "\nmax_body = 2",
            "line 2: 'max_body' is not the name of an option; did you mean 'max-body'?",
        ),
        ("alow-host = \"x\"", "did you mean 'allow-host'?"),
        ("Allow_Hosts = \"x\"", "did you mean 'allow-host'?"),
        (
            "colour = true",
            "line 1: 'colour' is not the name of an option; embody COMMAND --help lists them",
        ),
        (
            "quiet = true\r\nfetch = [\r\n \"http\"]\r\nprogres = 1",
            "line 4: 'progres' is not the name of an option; did you mean 'progress'?",
        ),
        (
            "config = \"other.toml\"",
            "line 1: 'config' cannot be set in a configuration file",
        ),
        ("help = true", "'help' cannot be set"),
        ("max-body = 2\nmax-body = 3", "line 2"),
        ("fetch = [", "embody.toml, line 1"),
        (
            "mark = true\nfetch = [\"gopher\"]",
            "embody.toml, line 2:\n",
        ),
        ("max-body = \"a lot\"", "embody.toml, line 1:\n"),
        ("\nquiet = true\nverbose = true", "embody.toml, line"),
        ("\nmax-body = [1, 2]", "line 2: 'max-body' must be"),
        ("mark = \"yes\"", "'mark' must be true or false"),
        ("mark = 1", "'mark' must be true or false"),
        ("fetch = [[\"https\"]]", "'fetch' must be"),
        ("[fetch]\nhttps = true", "'fetch' must be"),
        (
            "[limits]\nmax-body = 2",
            "line 1: 'limits' is a section, which a configuration file cannot have; remove the line [limits]",
        ),
        ("file = \"x\"", "'file'"),
        ("sources = [\"x\"]", "'sources'"),
    ] {
        let setting = Setting::with(configuration);
        is_broken(&setting.run(&["filter"], LETTER), 75, word);
        if !configuration.contains("mark") && !configuration.contains("quiet") {
            is_broken(&setting.run(&["inspect"], LETTER), 2, word);
        }
    }
}

#[test]
fn a_file_that_is_not_there_delays_mail() {
    let setting = Setting::with("");
    fs::remove_file(setting.file()).unwrap();
    is_broken(&setting.run(&["filter"], LETTER), 75, "cannot read");
    is_broken(&setting.run(&["inspect"], LETTER), 2, "cannot read");
}

#[test]
fn a_wrong_option_beside_a_good_file_is_not_blamed_on_the_file() {
    let output = Setting::with("max-body = 2").run(&["filter", "--fetch", "gopher"], LETTER);
    is_broken(&output, 75, "gopher");
    assert!(!String::from_utf8_lossy(&output.stderr).contains("embody.toml"));
}

#[test]
fn no_file_is_read_unless_it_is_named() {
    let setting = Setting::with("max-body = 2");
    for (name, place) in [
        ("embody.toml", "."),
        (".embody.toml", "."),
        ("config.toml", ".config/embody"),
    ] {
        let folder = setting.folder.path().join(place);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(name), "max-body = 2").unwrap();
    }
    let letter = setting.folder.path().join("letter.eml");
    fs::write(&letter, LETTER).unwrap();
    let output = embody()
        .args(["filter", "letter.eml"])
        .current_dir(setting.folder.path())
        .env("HOME", setting.folder.path())
        .env("XDG_CONFIG_HOME", setting.folder.path().join(".config"))
        .env("EMBODY_CONFIG", setting.file())
        .output()
        .unwrap();
    expands(&output);
}

#[test]
fn config_file_named_by_the_recipes_is_valid() {
    let setting = Setting::with(include_str!("../../../samples/recipes/embody.toml"));
    assert_eq!(setting.reasons(&[]), ["would-fetch", "scheme-not-allowed"]);
    let filtered = setting.run(&["filter"], LETTER);
    expands(&filtered);
    assert!(filtered.stderr.is_empty(), "quiet = true: {filtered:?}");
    // The program rejects an unknown key, as the file itself explains.
    let wrong = include_str!("../../../samples/recipes/embody.toml").replace("deadline", "deadlin");
    is_broken(
        &Setting::with(&wrong).run(&["filter"], LETTER),
        75,
        "deadlin",
    );
}

#[test]
fn recipe_config_with_a_cache_is_valid() {
    let recipe = include_str!("../../../samples/recipes/cache/embody.toml");
    let setting = Setting::with(recipe);
    let there = setting.folder.path().join("cache");
    let setting = Setting::with(&recipe.replace("/var/cache/embody", &there.display().to_string()));
    let filtered = setting.run(&["filter"], LETTER);
    expands(&filtered);
    assert!(filtered.stderr.is_empty(), "quiet = true: {filtered:?}");
    assert!(there.join("CACHEDIR.TAG").is_file());
}

#[test]
fn recipe_config_with_an_archive_is_valid() {
    let recipe = include_str!("../../../samples/recipes/archive/embody.toml");
    let foreseen = Setting::with(recipe).run(&["inspect"], REMOTE);
    assert_eq!(foreseen.status.code(), Some(0), "{foreseen:?}");
    let wrong = recipe.replace("{date}", "{day}");
    let ended = Setting::with(&wrong).run(&["filter"], LETTER);
    is_broken(&ended, 75, "does not contain {date}");
}

#[test]
fn options_of_embed_can_be_set_in_a_config_file() {
    let letter = "MIME-Version: 1.0\nContent-Type: text/html\n\n\
        <img src=\"data:image/gif;base64,R0lGODlhCQAJAIAAAAAAAP///ywAAAAAAQABAAACAkQBADs=\">\n\
        <img src=\"https://a.example/x\"><img src=\"https://sub.b.example/x\">\n\
        <img src=\"https://c.example/x\" width=1 height=1>\n";
    let hosts = tempfile::NamedTempFile::new().unwrap();
    fs::write(hosts.path(), "# known ones\n*.b.example # all of them\n").unwrap();
    let outcomes = |configuration: &str| {
        let setting = Setting::with(configuration);
        let output = setting.run(&["inspect", "--json"], letter);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let rows = String::from_utf8(output.stdout).unwrap();
        // The last line contains all outcomes as numbers.
        let lines = rows.lines().map(reports::object);
        let words = lines.filter(|row| row["kind"] != "survey").map(|row| {
            let word = row.get("reason").filter(|reason| !reason.is_null());
            word.unwrap_or(&row["outcome"]).as_str().unwrap().to_owned()
        });
        words.collect::<Vec<String>>()
    };
    let all = format!(
        "embed = [\"data\", \"remote\"]\nembed-kinds = [\"image\", \"font\"]\nfetch = [\"https\"]\n\
         deny-host-file = {:?}\ntrackers = \"blank\"\n",
        hosts.path()
    );
    assert_eq!(
        outcomes(&all),
        [
            "would-expand",
            "would-fetch",
            "host-not-allowed",
            "would-blank"
        ]
    );
    let small = format!("{all}max-message = \"400\"\n");
    assert_eq!(outcomes(&small)[0], "message-limit");
    assert!(outcomes("embed-kinds = \"font\"\nembed = \"data\"").is_empty());
}

#[test]
fn destination_on_the_command_line_overrides_the_config_file() {
    for (configuration, more) in [
        ("in-place = true\n", "--output"),
        ("output = \"/nonexistent/x\"\n", "--in-place"),
    ] {
        let setting = Setting::with(configuration);
        let at = |name: &str| setting.folder.path().join(name).display().to_string();
        let (source, target) = (at("in.eml"), at("out.eml"));
        fs::write(&source, LETTER).unwrap();
        let mut arguments = vec!["convert", "--quiet", &source, more];
        let mut result = &source;
        if more == "--output" {
            arguments.push(&target);
            result = &target;
        }
        let output = setting.run(&arguments, "");
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        assert!(
            fs::read(result).unwrap().ends_with(b"\n\nhello\n"),
            "{more}"
        );
        let is_source_unchanged = fs::read(&source).unwrap() == LETTER.as_bytes();
        assert_eq!(is_source_unchanged, more == "--output");
    }
}

#[test]
fn tilde_in_a_config_path_is_refused_with_an_explanation() {
    for configuration in [
        "cache = \"~/.cache/embody\"\n",
        "file-root = [\"/a\", \"~/b\"]\n",
    ] {
        let setting = Setting::with(configuration);
        is_broken(
            &setting.run(&["filter"], LETTER),
            75,
            "is not replaced with the home directory",
        );
        assert!(!setting.folder.path().join("~").exists());
    }
}
