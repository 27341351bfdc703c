"""Checks JSON objects against the schemas in docs/schema/ (the argument).

Reads an object from each line of standard input, and answers with a line: empty if a schema accepts the object, and otherwise
the error. The field `kind` selects the schema. The schemas allow further fields, so that later versions can add them, but the
output of this version must not contain a field that its schema lacks.
"""

import json
import pathlib
import sys

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match
from referencing import Registry, Resource


def closed(schema):
    if isinstance(schema, list):
        return [closed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    schema = {name: closed(value) for name, value in schema.items()}
    if schema.get("type") == "object" and "properties" in schema:
        schema["additionalProperties"] = False
    return schema


def kinds(schema):
    for each in [schema, *schema.get("oneOf", [])]:
        kind = each.get("properties", {}).get("kind", {})
        yield from [kind["const"]] if "const" in kind else kind.get("enum", [])


schemas = {path.name: json.loads(path.read_text()) for path in pathlib.Path(sys.argv[1]).glob("*.json")}
registry = Registry().with_resources((name, Resource.from_contents(closed(schema))) for name, schema in schemas.items())
validators = {}
for name, schema in sorted(schemas.items()):
    Draft202012Validator.check_schema(schema)
    for kind in list(kinds(schema)) or [None]:
        validators.setdefault(kind, []).append((name, Draft202012Validator(closed(schema), registry=registry)))


def error(found):
    kind = found.get("kind")
    errors = []
    for name, validator in validators.get(kind, []):
        worst = best_match(validator.iter_errors(found))
        if worst is None:
            return ""
        errors.append(f"docs/schema/{name}: {worst.json_path}: {worst.message}")
    return "; ".join(errors) or f"no schema in docs/schema/ has the kind {kind}"


for line in sys.stdin:
    print(error(json.loads(line)).replace("\n", " "), flush=True)
