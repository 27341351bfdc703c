//! docs/serve/openapi.yaml is the contract: the service returns it, docs/serve.md has its tables, and requests keep it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::common::programs::{embody, has_python, stderr};
use crate::common::serve::Service;

fn read(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).unwrap()
}

fn contract() -> Value {
    serde_json::from_str(&read("docs/serve/openapi.json")).unwrap()
}

fn paths(contract: &Value) -> impl Iterator<Item = (&String, &Value)> {
    contract["paths"].as_object().unwrap().iter()
}

/// Returns the parameters of each request with a body.
fn parameters(contract: &Value) -> BTreeMap<String, BTreeSet<String>> {
    paths(contract)
        .filter_map(|(path, operations)| {
            let parameters = operations["post"]["parameters"].as_array()?;
            let names = parameters.iter().map(|parameter| {
                let reference = parameter["$ref"].as_str().unwrap();
                reference.rsplit('/').next().unwrap().to_owned()
            });
            let verb = path.rsplit('/').next().unwrap().to_owned();
            Some((verb, names.collect()))
        })
        .collect()
}

#[test]
fn contract_in_yaml_and_in_json_is_the_same() {
    let test = "contract_in_yaml_and_in_json_is_the_same";
    if !has_python(test, "yaml", "python3-yaml") {
        return;
    }
    let output = Command::new("python3")
        .arg("tests/it/serve/contract.py")
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let yaml = String::from_utf8(output.stdout).unwrap();
    assert!(
        yaml == read("docs/serve/openapi.json"),
        "write the output of tests/it/serve/contract.py to docs/serve/openapi.json"
    );
}

#[test]
fn service_returns_the_contract_with_the_paths_it_has() {
    let service = Service::start(&[]);
    let contract = contract();
    let answer = service.get("/v1/openapi.json");
    assert_eq!(answer.field("content-type"), Some("application/json"));
    assert_eq!(
        serde_json::from_slice::<Value>(&answer.body).unwrap(),
        contract
    );
    for (path, operations) in paths(&contract) {
        for (method, operation) in operations.as_object().unwrap() {
            if method == "parameters" {
                continue;
            }
            let path = path.replace("{sha256}", &"0".repeat(64));
            let answer = service.ask(&method.to_uppercase(), &path, &[], b"Subject: x\n\n");
            let status = answer.status.to_string();
            assert!(
                operation["responses"].get(&status).is_some(),
                "{method} {path}: {answer:?}"
            );
        }
    }
}

#[test]
fn each_request_has_the_parameters_of_the_contract_and_no_others() {
    let service = Service::start(&[]);
    let requests = parameters(&contract());
    let names: BTreeSet<&String> = requests.values().flatten().collect();
    assert!(names.len() > 30, "{names:?}");
    for (verb, own) in &requests {
        for name in &names {
            // This value is wrong for each parameter, and for some of them only for this program.
            let answer = service.post(&format!("/v1/{verb}?{name}=%01"), b"Subject: x\n\n");
            let detail = match answer.status {
                200 => String::new(),
                _ => answer.problem(400),
            };
            let is_unknown = detail.contains("is not an option of");
            assert_eq!(!is_unknown, own.contains(*name), "{verb} {name}: {detail}");
        }
    }
    // Parameters of the contract are options, and the other options are refused.
    let output = embody().args(["detach", "--help-all"]).output().unwrap();
    let help = String::from_utf8(output.stdout).unwrap();
    let words = help
        .split_whitespace()
        .filter_map(|word| word.strip_prefix("--"));
    let options: BTreeSet<&str> = words
        .map(|option| option.trim_end_matches([',', '.', ']', ':', ';', ')']))
        .filter(|option| {
            !option.is_empty()
                && option
                    .chars()
                    .all(|it| it.is_ascii_lowercase() || it == '-')
        })
        .collect();
    assert!(
        options.contains("store") && options.contains("larger-than"),
        "{options:?}"
    );
    for option in options {
        if !requests["detach"].contains(option) {
            service
                .post(&format!("/v1/detach?{option}=1"), b"Subject: x\n\n")
                .problem(400);
        }
    }
}

#[test]
fn tables_of_the_page_are_those_of_the_contract() {
    let (page, contract) = (read("docs/serve.md"), contract());
    for (path, operations) in paths(&contract) {
        let method = match operations.get("post") {
            Some(_) => "POST",
            None => "GET",
        };
        assert!(
            page.contains(&format!("| `{method} {path}` |")),
            "{method} {path}"
        );
    }
    let requests = parameters(&contract);
    let order = [
        "filter", "embed", "recover", "detach", "restore", "inspect", "messages",
    ];
    for (name, parameter) in contract["components"]["parameters"].as_object().unwrap() {
        let own = order.iter().filter(|verb| requests[**verb].contains(name));
        let verbs = own.copied().collect::<Vec<_>>().join(", ");
        let description = parameter["description"].as_str().unwrap();
        let values = if description.starts_with("Narrower: ") {
            "less than at the start"
        } else {
            "any"
        };
        let row = format!("| `{name}` | {verbs} | {values} |\n");
        assert!(page.contains(&row), "{row}");
    }
    let statuses: BTreeSet<&String> = paths(&contract)
        .flat_map(|(_, operations)| operations.as_object().unwrap().values())
        .filter_map(|operation| operation["responses"].as_object())
        .flat_map(|responses| responses.keys())
        .filter(|status| status.starts_with(['4', '5']))
        .collect();
    for status in &statuses {
        assert!(page.contains(&format!("| {status} | ")), "{status}");
    }
    let compose = read("docs/serve/compose.yaml");
    assert!(
        page.contains(compose.trim_end()),
        "the page shows another compose.yaml"
    );
}

#[test]
fn options_of_the_compose_file_are_accepted() {
    let compose = read("docs/serve/compose.yaml");
    let line = compose
        .lines()
        .find_map(|line| line.trim().strip_prefix("command: serve "));
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("embody"), "0123456789abcdef\n").unwrap();
    fs::create_dir(folder.path().join("spool")).unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let words: Vec<String> = line
        .unwrap()
        .replace("0.0.0.0:9997", "127.0.0.1:0")
        .replace("/run/secrets/embody", &at("embody"))
        .replace("/store", &at("store"))
        .replace("/spool", &at("spool"))
        .split(' ')
        .map(str::to_owned)
        .collect();
    let options: Vec<&str> = words[2..].iter().map(String::as_str).collect();
    let service = Service::with(tempfile::tempdir().unwrap(), &options);
    let fields = [
        "Host: embody:9997",
        "Authorization: Bearer 0123456789abcdef",
    ];
    let answer = service.ask("POST", "/v1/restore", &fields, b"Subject: x\n\n");
    assert_eq!(answer.status, 200, "{answer:?}");
    let checked = embody()
        .args([
            "serve",
            "--check",
            "--listen",
            &format!("127.0.0.1:{}", service.port),
        ])
        .output()
        .unwrap();
    assert!(checked.status.success(), "{}", stderr(&checked));
    let port = service.port;
    drop(service);
    let checked = embody()
        .args(["serve", "--check", "--listen", &format!("127.0.0.1:{port}")])
        .output()
        .unwrap();
    assert_eq!(checked.status.code(), Some(1), "{}", stderr(&checked));
}

#[test]
fn contract_is_valid_openapi() {
    let test = "contract_is_valid_openapi";
    if !has_python(test, "openapi_spec_validator", "openapi-spec-validator") {
        return;
    }
    let script = "import json, openapi_spec_validator; openapi_spec_validator.validate(json.load(open('docs/serve/openapi.json')))";
    let output = Command::new("python3")
        .args(["-c", script])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    // A comma in an unquoted text of YAML ends the text, and the rest becomes a name with the value null.
    assert!(!read("docs/serve/openapi.json").contains(":null"));
}
