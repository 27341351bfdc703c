//! `embody inspect --embed` counts the pictures that would be embedded.

use std::fs;

use crate::common::mail::crlf;
use crate::common::programs::{embody, fed};
use crate::common::raw::{Raw, ok};
use crate::common::reports;

/// A GIF of 9 by 9 pixels: 35 bytes.
const DATA: &str = "data:image/gif;base64,R0lGODlhCQAJAIAAAAAAAP///ywAAAAAAQABAAACAkQBADs=";

fn mail() -> Vec<u8> {
    crlf(format!(
        "MIME-Version: 1.0\nContent-Type: text/html\n\n<img src=\"{DATA}\">\n\
         <img src=\"https://a.example/1\"><img src=\"https://a.example/2\"><img src=\"https://b.example/1\">\n\
         <img src=\"https://c.example/t\" width=1 height=1>\n"
    ).as_bytes())
}

fn inspect(options: &[&str]) -> String {
    let mut program = embody();
    program.arg("inspect").args(options);
    let output = fed(
        program.args(["--embed", "data,remote", "--fetch", "https"]),
        &mail(),
    );
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn forecast_of_a_message_names_hosts_trackers_and_growth() {
    let text = inspect(&["--max-body", "1M"]);
    for line in [
        "3 pictures would be retrieved; trackers: 1; pictures in data: URLs: 1 with 35 bytes",
        "  2 from a.example",
        "  1 from b.example",
        "3 different URLs on 2 hosts would be requested, each once; this takes 0 s if one request takes 0.3 s and 8 run at the same time \
         (--max-in-flight), or at most 20 s if each request takes 20 s (--timeout)",
    ] {
        assert!(text.contains(&format!("{line}\n")), "{text}");
    }
    assert!(
        text.contains("the size of the retrieved pictures") && text.contains("--max-growth"),
        "{text}"
    );
    // The survey after the forecast names the servers of trackers.
    let (forecast, _) = text.split_once("\n3 pictures in this mail").unwrap();
    assert!(!forecast.contains("c.example\n"), "{text}");
}

#[test]
fn predicted_growth_is_at_least_the_actual_growth() {
    let mut program = embody();
    let output = fed(program.args(["inspect", "--embed", "data"]), &mail());
    let text = String::from_utf8(output.stdout).unwrap();
    let line = text
        .lines()
        .find(|line| line.contains("grow by at most"))
        .unwrap();
    let most: usize = line.split(' ').find_map(|word| word.parse().ok()).unwrap();
    let mut program = embody();
    let output = fed(program.args(["filter", "--embed", "data"]), &mail());
    let grown = output.stdout.len() - mail().len();
    assert!(
        grown > 0 && grown <= most && most < 2_000,
        "{grown} of {most}"
    );
}

#[test]
fn rows_and_mailbox_totals_of_the_forecast_agree() {
    let rows: Vec<serde_json::Value> = inspect(&["--json"]).lines().map(reports::object).collect();
    let (survey, rows) = rows.split_last().unwrap();
    assert_survey(survey, 1);
    let outcomes: Vec<&str> = rows
        .iter()
        .map(|row| row["outcome"].as_str().unwrap())
        .collect();
    assert_eq!(
        outcomes,
        [
            "would-expand",
            "would-fetch",
            "would-fetch",
            "would-fetch",
            "left"
        ]
    );
    assert_eq!(rows[0]["bytes"], 35);
    assert_eq!(rows[4]["reason"], "tracker");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mbox");
    let letter = [
        b"From a@b Mon Jul  6 10:00:00 2026\n",
        mail().as_slice(),
        b"\n",
    ]
    .concat();
    fs::write(&file, letter.repeat(2)).unwrap();
    let output = embody()
        .args(["inspect", "--embed", "data,remote", "--fetch", "https"])
        .arg(&file)
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("6 pictures would be retrieved; trackers: 2; pictures in data: URLs: 2 with 70 bytes\n  4 from a.example\n"), "{text}");
    assert!(text.contains("for each message"), "{text}");
    // The last line summarizes all sources.
    let output = embody()
        .args([
            "inspect",
            "--embed",
            "data,remote",
            "--fetch",
            "https",
            "--json",
        ])
        .args([&file, &file])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let survey = text.lines().last().unwrap();
    assert_survey(&reports::object(survey), 4);
    assert_eq!(text.lines().count(), 4 * 5 + 1);
    // Without --embed, the survey contains nothing about embedding.
    let output = embody()
        .args(["inspect", "--json"])
        .arg(&file)
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let survey = reports::object(text.lines().last().unwrap());
    assert!(survey["survey"].get("embed").is_none(), "{survey}");
}

/// Asserts the numbers in a survey of this number of mails.
#[track_caller]
fn assert_survey(survey: &serde_json::Value, mails: u64) {
    let embed = &survey["survey"]["embed"];
    assert_eq!(embed["distinct"], 3, "{survey}");
    let hosts = serde_json::json!({"a.example": 2 * mails, "b.example": mails});
    assert_eq!(embed["hosts"], hosts, "{survey}");
    for (name, number) in [
        ("remote", 3),
        ("trackers", 1),
        ("data", 1),
        ("data_octets", 35),
    ] {
        assert_eq!(embed[name], number * mails, "{survey}");
    }
    let growth = embed["growth"].as_u64().unwrap();
    let base64 = (25_u64 << 20).div_ceil(3) * 4;
    assert!(growth > 100 * mails && growth < 10_000 * mails, "{survey}");
    assert!(
        embed["growth_at_most"].as_u64().unwrap() > growth + 3 * mails * base64,
        "{survey}"
    );
    assert_eq!(embed["max_growth"], 50_u64 << 20);
}

#[test]
fn forecast_of_a_style_sheet_states_its_media_type() {
    let mail = "MIME-Version: 1.0\nContent-Type: text/html\n\n<link rel=stylesheet href=https://a.example/s>\n\
                <img src=https://a.example/s>\n";
    let mut program = embody();
    program.args(["inspect", "--json", "--embed", "remote", "--fetch", "https"]);
    program.args(["--embed-kinds", "image,style"]);
    let output = fed(&mut program, mail.as_bytes());
    let text = String::from_utf8(output.stdout).unwrap();
    let types: Vec<Option<String>> = text
        .lines()
        .map(reports::object)
        .filter(|row| row["outcome"] == "would-fetch")
        .map(|row| row["media_type"].as_str().map(str::to_owned))
        .collect();
    assert_eq!(types, [Some("text/css".to_owned()), None], "{text}");
}

#[test]
fn a_dry_run_says_how_much_and_how_long_and_asks_nobody() {
    let server = Raw::saying(ok("image/gif", b"GIF89a"));
    let shown: String = (0..4000)
        .map(|number| {
            let url = server.url(&format!("/{}#part", number % 1000));
            format!("From a@b Mon Jul  6 10:00:00 2026\nMIME-Version: 1.0\nContent-Type: text/html\n\n<img src=\"{url}\">\n\n")
        })
        .collect();
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("in"), shown).unwrap();
    for (line, has_output) in [
        ("embed --dry-run --output new in", true),
        ("embed --dry-run --in-place in", false),
        ("inspect --embed remote --fetch http in", false),
    ] {
        let output = embody()
            .args(line.split(' '))
            .args([
                "--allow-net",
                "127.0.0.0/8",
                "--max-in-flight",
                "4",
                "--timeout",
                "10s",
            ])
            .args(["--allow-port", &server.address.port().to_string()])
            .current_dir(folder.path())
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(0), "{line}: {output:?}");
        let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        let time = "1000 different URLs on 1 host would be requested, each once; this takes 75 s if one request takes 0.3 s and 4 run \
            at the same time (--max-in-flight), at most 10 s if no host responds (a host is skipped after 3 time-outs in a row), or at \
            most 42 min if each request takes 10 s (--timeout)\n";
        assert!(said.contains(time), "{line}: {said}");
        let room = "The sources contain 4";
        assert_eq!(said.contains(room), has_output, "{line}: {said}");
        assert_eq!(server.count(), 0, "{line}");
    }
}
