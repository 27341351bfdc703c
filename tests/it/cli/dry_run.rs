//! `inspect` and `--dry-run` predict the same outcomes, because both call the engine in the same way, without responses of
//! servers.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::programs::embody;
use crate::common::reports;

const POLICY: &[&str] = &[
    "--fetch",
    "http,https,ftp,file",
    "--embed",
    "data,remote",
    "--follow",
    "all",
];

/// Returns the predicted outcome of each reference, without the name of the mail and the time.
fn predicted(rows: &[u8]) -> Vec<String> {
    const FIELDS: [&str; 9] = [
        "part",
        "kind",
        "url",
        "outcome",
        "reason",
        "detail",
        "media_type",
        "bytes",
        "from",
    ];
    String::from_utf8_lossy(rows)
        .lines()
        .map(reports::object)
        .filter(|row| row.get("outcome").is_some())
        .map(|row| FIELDS.map(|field| row[field].to_string()).join(" "))
        .collect()
}

/// Returns the rows of both commands for a file.
fn both(path: &Path) -> (Vec<String>, Vec<String>) {
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("rows");
    let inspected = embody()
        .args(["inspect", "--json"])
        .args(POLICY)
        .arg(path)
        .output()
        .unwrap();
    let dry_run = embody()
        .args(["convert", "--dry-run"])
        .args(POLICY)
        .arg("--report")
        .arg(&report)
        .arg("--output")
        .arg(folder.path().join("out"))
        .arg(path)
        .output()
        .unwrap();
    assert!(
        dry_run.status.code().is_some_and(|code| code < 2),
        "{dry_run:?}"
    );
    let rows = fs::read(report).unwrap_or_default();
    (predicted(&inspected.stdout), predicted(&rows))
}

#[test]
fn inspect_and_a_dry_run_predict_the_same_for_each_sample() {
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("samples");
    let files = fs::read_dir(samples).unwrap();
    let mails: Vec<PathBuf> = files
        .map(|file| file.unwrap().path())
        .filter(|path| path.extension().is_some_and(|it| it == "eml"))
        .collect();
    let mut rows = 0;
    for mail in &mails {
        let (inspected, dry_run) = both(mail);
        assert_eq!(inspected, dry_run, "{}", mail.display());
        rows += inspected.len();
    }
    assert!(rows > mails.len() / 2, "{rows} rows of {}", mails.len());
}

#[test]
fn dry_run_reports_the_second_alternative_as_removed_and_not_retrieved() {
    let reference = |url: &str| {
        format!(
            "--q\nContent-Type: message/external-body; access-type=URL; URL=\"{url}\"\n\nContent-Type: text/plain\nContent-ID: <a@x>\n\n\n"
        )
    };
    let mail = |first: &str| {
        format!(
            "MIME-Version: 1.0\nContent-Type: multipart/alternative; boundary=q\n\n{}{}--q--\n",
            reference(first),
            reference("https://b.example/a")
        )
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mail.eml");
    for (first, outcome) in [
        ("https://a.example/a", "\"would-fetch\""),
        ("data:,content", "\"would-expand\""),
    ] {
        fs::write(&path, mail(first)).unwrap();
        let (inspected, dry_run) = both(&path);
        assert_eq!(inspected, dry_run);
        let [first, second] = inspected.as_slice() else {
            panic!("{inspected:?}");
        };
        assert!(first.contains(outcome), "{first}");
        assert!(second.contains("\"would-rewrite\""), "{second}");
        assert!(second.contains("would be removed"), "{second}");
    }
}

#[test]
fn reference_to_a_part_that_would_be_fetched_is_reported_as_would_fetch() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mail.eml");
    let mail = "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=q\n\n\
                --q\nContent-ID: <a@x>\n\
                Content-Type: message/external-body; access-type=URL; URL=\"https://a.example/a\"\n\n\
                Content-Type: text/plain\n\n\n\
                --q\nContent-Type: message/external-body; access-type=CONTENT-ID\n\n\
                Content-Type: text/plain\nContent-ID: <a@x>\n\n\n--q--\n";
    fs::write(&path, mail).unwrap();
    let (inspected, dry_run) = both(&path);
    assert_eq!(inspected, dry_run);
    assert_eq!(inspected.len(), 2, "{inspected:?}");
    for row in &inspected {
        assert!(row.contains("\"would-fetch\""), "{row}");
    }
}
