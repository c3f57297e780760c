"""JSON schemas of Mendq's events and of the services that receive them."""

from __future__ import annotations

import json
from pathlib import Path

from jsonschema import Draft202012Validator as Validator  # type: ignore[import-untyped]

_DIRECTORIES = (
    Path(__file__).parents[2] / "docs" / "schemas",
    # Schemas that PagerDuty and Amazon Q document.
    Path(__file__).with_name("schemas"),
)


def load_validator(name: str) -> Validator:
    """Load the schema with this name. Raises SchemaError if it is no valid JSON schema."""
    files = [path for folder in _DIRECTORIES for path in folder.glob(f"{name}.json")]
    (file,) = files
    document = json.loads(file.read_text())
    Validator.check_schema(document)
    return Validator(document, format_checker=Validator.FORMAT_CHECKER)
