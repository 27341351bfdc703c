//! The schemas in docs/schema/ agree with the pages, and every test reads the JSON of embody through `common::reports`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::common::programs::{fed, has_python, stderr};
use crate::common::reports;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(name: &str) -> String {
    fs::read_to_string(root().join(name)).unwrap()
}

fn schema(name: &str) -> Value {
    serde_json::from_str(&read(&format!("docs/schema/{name}"))).unwrap()
}

fn names(schema: &Value) -> BTreeSet<String> {
    schema["properties"]
        .as_object()
        .unwrap()
        .keys()
        .cloned()
        .collect()
}

fn words(list: &Value) -> BTreeSet<String> {
    let texts = list["enum"].as_array().unwrap().iter();
    texts.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Returns the rows of the tables whose header starts with `header`, each as its cells.
fn tables(page: &str, header: &str) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    let mut is_inside = false;
    for line in read(page).lines() {
        if line.starts_with(header) {
            is_inside = true;
        } else if !line.starts_with('|') {
            is_inside = false;
        } else if is_inside && !line.starts_with("|---") {
            let line = line.trim_matches('|').replace("\\|", "/");
            rows.push(line.split('|').map(|cell| cell.trim().to_owned()).collect());
        }
    }
    assert!(!rows.is_empty(), "{page}: {header}");
    rows
}

/// Returns the texts between backticks in a cell.
fn quoted(cell: &str) -> Vec<String> {
    cell.split('`')
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect()
}

fn first_cells(page: &str, header: &str) -> BTreeSet<String> {
    let rows = tables(page, header);
    rows.iter().flat_map(|row| quoted(&row[0])).collect()
}

#[test]
fn page_lists_each_schema_with_its_kinds() {
    let mut listed = BTreeSet::new();
    for row in tables("docs/json.md", "| line or object |") {
        let [name] = &quoted(&row[3])[..] else {
            panic!("{row:?}");
        };
        let found = schema(name);
        let variants = found["oneOf"].as_array().cloned();
        let kinds: BTreeSet<String> = variants
            .unwrap_or_else(|| vec![found])
            .iter()
            .flat_map(|it| {
                let kind = &it["properties"]["kind"];
                let one = kind["const"].as_str().map(str::to_owned);
                one.into_iter()
                    .chain(kind.get("enum").map(|_| words(kind)).unwrap_or_default())
            })
            .collect();
        let told = quoted(&row[2]);
        if told.is_empty() {
            assert!(kinds.is_empty() || name == "row.json", "{row:?}");
        } else {
            assert!(told.iter().all(|kind| kinds.contains(kind)), "{row:?}");
        }
        listed.insert(name.clone());
    }
    listed.insert("files.json".to_owned());
    let files: BTreeSet<String> = fs::read_dir(root().join("docs/schema"))
        .unwrap()
        .map(|it| it.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(listed, files);
}

#[test]
fn tables_of_the_pages_have_the_fields_of_the_schemas() {
    let row = schema("row.json");
    let mut fields = first_cells("docs/reasons.md", "| field | content |");
    // docs/imap.md explains the fields of messages on a server.
    fields.extend(["folder", "uidvalidity", "uid", "new_uid"].map(str::to_owned));
    assert_eq!(fields, names(&row));
    let properties = &row["properties"];
    let mut kinds = first_cells("docs/reasons.md", "| `kind` | form of the reference |");
    assert!(kinds.remove("part") && kinds.remove("text-link"));
    assert_eq!(kinds, words(&properties["kind"]));
    let outcomes: BTreeSet<String> = tables("docs/reasons.md", "| `outcome` | in `inspect`")
        .iter()
        .flat_map(|row| [quoted(&row[0]), quoted(&row[1])].concat())
        .collect();
    assert_eq!(outcomes, words(&properties["outcome"]));
    let reasons: BTreeSet<String> = tables("docs/reasons.md", "| reason |")
        .iter()
        .map(|row| quoted(&row[0])[0].clone())
        .collect();
    assert_eq!(reasons, words(&properties["reason"]));

    let mut part = first_cells("docs/survey.md", "| field | what it is |");
    part.retain(|name| schema("part.json")["properties"].get(name).is_some());
    let own = [
        "media_type",
        "name",
        "bytes",
        "sha256",
        "disposition",
        "shown_by",
    ];
    assert!(own.iter().all(|name| part.contains(*name)), "{part:?}");
    let mut folder = first_cells("docs/imap.md", "| field | meaning |");
    folder.retain(|name| !name.contains(' '));
    let missing: Vec<_> = names(&schema("folder.json"))
        .difference(&folder)
        .cloned()
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
    let merge = first_cells("docs/merge.md", "| field | what it is |");
    assert_eq!(merge, names(&schema("merge.json")["$defs"]["counts"]));
}

/// Every field that docs/survey.md describes is in the schema, and the page describes each field of the survey.
#[test]
fn page_and_schema_of_the_survey_have_the_same_fields() {
    let schema = schema("survey.json");
    let survey = &schema["properties"]["survey"];
    let mut described = BTreeSet::new();
    let mut rows = tables("docs/survey.md", "| field | what it is |");
    // The tables after the first one describe parts, and the responses to a probe.
    let last = rows.iter().position(|row| row[0] == "`embed`").unwrap();
    rows.truncate(last + 1);
    for row in rows {
        let mut group = String::new();
        for name in quoted(&row[0]) {
            // `.octets` after `attachments.count` is `attachments.octets`.
            let path = match name.strip_prefix('.') {
                Some(name) => format!("{group}.{name}"),
                None => name,
            };
            group = path.split('.').next().unwrap().to_owned();
            described.insert(path);
        }
    }
    let has = |path: &str| {
        described
            .iter()
            .any(|it| it == path || it.starts_with(&format!("{path}.")))
    };
    for (name, value) in survey["properties"].as_object().unwrap() {
        assert!(
            has(name) || name.starts_with("other_") || name == "files",
            "docs/survey.md: {name}"
        );
        let inner = value["properties"].as_object();
        for inner in inner.into_iter().flat_map(|it| it.keys()) {
            let path = format!("{name}.{inner}");
            let is_whole = described.contains(name.as_str());
            assert!(
                is_whole || has(&path) || inner.starts_with("other_"),
                "docs/survey.md: {path}"
            );
        }
    }
    for path in &described {
        let mut place = survey;
        let mut is_found = true;
        for name in path.split('.') {
            is_found = place["properties"].get(name).is_some();
            place = &place["properties"][name];
            if place.get("$ref").is_some() {
                break;
            }
        }
        assert!(is_found, "docs/schema/survey.json: {path}");
    }
}

#[test]
fn lines_in_the_pages_fit_the_schemas() {
    let mut count = 0;
    for page in fs::read_dir(root().join("docs")).unwrap() {
        let path = page.unwrap().path();
        if path.extension().is_none_or(|it| it != "md") {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let lines = text.lines().filter(|line| line.starts_with("{\""));
        for line in lines {
            if let Ok(object) = serde_json::from_str::<Value>(line)
                && (object.get("kind").is_some() || object.get("url").is_some())
            {
                reports::check(&object);
                count += 1;
            }
        }
    }
    assert!(count > 1, "{count}");
}

/// The checker refuses what is not in a schema: otherwise no test would notice a new field or a wrong type.
#[test]
fn wrong_objects_fit_no_schema() {
    let test = "wrong_objects_fit_no_schema";
    if !has_python(test, "jsonschema, referencing", "python3-jsonschema") {
        return;
    }
    let right = json!({"kind": "message", "source": "a", "index": 1, "bytes": 2});
    let mut tried = vec![right.clone()];
    for (name, value) in [
        ("kind", json!("mesage")),
        ("kind", Value::Null),
        ("index", json!("1")),
        ("index", json!(-1)),
        ("index", json!(1.5)),
        ("more", json!(1)),
    ] {
        let mut wrong = right.clone();
        wrong[name] = value;
        tried.push(wrong);
    }
    let files =
        json!({"read": 0, "parts": 0, "not_mail": 0, "not_read": 0, "ignored": 0, "more": 0});
    let compared = json!({"old": files, "new": files});
    tried.push(json!({"kind": "compare", "compare": {"files": compared}}));
    tried.push(json!({"kind": "survey", "survey": {}}));
    let lines: String = tried.iter().map(|object| format!("{object}\n")).collect();
    let mut checker = Command::new("python3");
    checker
        .arg(root().join("tests/common/reports.py"))
        .arg(root().join("docs/schema"));
    let output = fed(&mut checker, lines.as_bytes());
    assert!(output.status.success(), "{}", stderr(&output));
    let printed = String::from_utf8(output.stdout).unwrap();
    let answers: Vec<&str> = printed.lines().collect();
    assert_eq!(answers.len(), tried.len(), "{answers:?}");
    assert_eq!(answers[0], "");
    assert!(answers[1..].iter().all(|it| !it.is_empty()), "{answers:?}");
}

/// Files of the tests that parse JSON of other programs, or JSON of embody that is not for other programs.
const OTHER_JSON: [&str; 17] = [
    "common/devtools.rs",
    "common/mail.rs",
    "common/marionette.rs",
    "common/reports.rs",
    "common/thunderbird.rs",
    "common/warc.rs",
    "it/cli/merge_stopped.rs",
    "it/cli/survey.rs",
    "it/docs/json.rs",
    "it/docs/packages.rs",
    "it/library/page/safety.rs",
    "it/library/wasm.rs",
    "it/library/web.rs",
    "it/record/captures_peers.rs",
    "it/record/mails.rs",
    "it/record/provenance.rs",
    "it/serve/contract.rs",
];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|it| it == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn tests_read_the_json_of_embody_through_one_module() {
    let tests = root().join("tests");
    let mut files = Vec::new();
    sources(&tests.join("it"), &mut files);
    sources(&tests.join("common"), &mut files);
    let parsing: BTreeSet<String> = files
        .iter()
        .filter(|path| {
            fs::read_to_string(path)
                .unwrap()
                .contains("serde_json::from_")
        })
        .map(|path| path.strip_prefix(&tests).unwrap().display().to_string())
        .collect();
    let expected: BTreeSet<String> = OTHER_JSON.map(str::to_owned).into();
    assert_eq!(parsing, expected, "call crate::common::reports");
}
