"""Prints docs/serve/openapi.yaml as one JSON document, with the schemas of docs/schema/ in it."""

import json
import pathlib

import yaml

folder = pathlib.Path("docs/serve")
contract = yaml.safe_load((folder / "openapi.yaml").read_text())
schemas = contract["components"]["schemas"]
# Places of the schemas in the document, by the names of their files.
places = {pathlib.Path(schema["$ref"]).name: name for name, schema in schemas.items()}


def inside(schema, name):
    """Changes the references of a schema that becomes a part of the document."""
    if isinstance(schema, list):
        return [inside(item, name) for item in schema]
    if not isinstance(schema, dict):
        return schema
    schema = {key: inside(value, name) for key, value in schema.items() if key != "$schema"}
    file, _, pointer = schema.get("$ref", "").partition("#")
    if file or pointer:
        schema["$ref"] = f"#/components/schemas/{places[file] if file else name}{pointer}"
    return schema


for name, schema in schemas.items():
    schemas[name] = inside(json.loads((folder / schema["$ref"]).read_text()), name)
print(json.dumps(contract, separators=(",", ":")))
