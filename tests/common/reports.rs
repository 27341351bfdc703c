//! Reads the JSON that embody prints, and checks each object against its schema in docs/schema/. Every test that reads a report
//! does so through this module (`tests/it/docs/json.rs` holds this).

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};

use serde_json::Value;

use super::programs::{has_python, signals_act};

/// A process with the validators of all schemas. It ends with the test process, which closes its standard input.
struct SchemaChecker {
    _process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

/// Returns a JSON object that embody printed.
#[track_caller]
pub fn object(json: impl AsRef<[u8]>) -> Value {
    let json = json.as_ref();
    let object = serde_json::from_slice(json)
        .unwrap_or_else(|why| panic!("{why}: {}", String::from_utf8_lossy(json)));
    check(&object);
    object
}

/// Returns the JSON objects that embody printed, one in each line.
#[track_caller]
pub fn objects(lines: impl AsRef<[u8]>) -> Vec<Value> {
    let lines = lines.as_ref().split_inclusive(|byte| *byte == b'\n');
    lines.map(object).collect()
}

/// Checks an output that may be JSON. Other output is ignored.
#[track_caller]
pub fn check_output(output: &[u8]) {
    if !output.starts_with(b"{\"") {
        return;
    }
    let lines = output.split_inclusive(|byte| *byte == b'\n');
    let objects: Result<Vec<Value>, _> = lines.map(serde_json::from_slice).collect();
    for object in objects.iter().flatten() {
        check(object);
    }
}

/// Checks an object that embody printed against its schema.
#[track_caller]
pub fn check(object: &Value) {
    static CHECKER: OnceLock<Option<Mutex<SchemaChecker>>> = OnceLock::new();
    let Some(checker) = CHECKER.get_or_init(SchemaChecker::start) else {
        return;
    };
    let mut checker = checker.lock().unwrap_or_else(PoisonError::into_inner);
    writeln!(checker.input, "{object}").unwrap();
    let mut error = String::new();
    checker.output.read_line(&mut error).unwrap();
    drop(checker);
    assert_eq!(error, "\n", "{object}");
}

impl SchemaChecker {
    fn start() -> Option<Mutex<Self>> {
        if !has_python(
            "schemas of reports",
            "jsonschema, referencing",
            "python3-jsonschema",
        ) {
            return None;
        }
        signals_act();
        let root = env!("CARGO_MANIFEST_DIR");
        let mut process = Command::new("python3")
            .arg(format!("{root}/tests/common/reports.py"))
            .arg(format!("{root}/docs/schema"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        Some(Mutex::new(Self {
            input: process.stdin.take().unwrap(),
            output: BufReader::new(process.stdout.take().unwrap()),
            _process: process,
        }))
    }
}
