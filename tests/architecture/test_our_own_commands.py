"""The `make`, `python` and CDK commands in the documents are valid."""

from __future__ import annotations

import re
import shlex

import pytest

from analytics.job import BadArguments, parse_arguments
from infra.packaging.cdk_cli import CDK_CLI_PACKAGE
from local_account.demo.story import read_stories
from local_account.where import CannotStart
from tests.architecture.documents import PAGES, read_command_lines, read_inline_code
from tests.prove.__main__ import PROOFS
from tests.source_files import ROOT

MAKEFILE = (ROOT / "Makefile").read_text()
RECIPES = dict(re.findall(r"^([a-z-]+):.*\n((?:\t.*\n)*)", MAKEFILE, re.MULTILINE))
# The make variables that a user may set on the command line.
VARIABLES = set(re.findall(r"^([A-Z]+) \?=", MAKEFILE, re.MULTILINE)) | {"ARGS"}
CDK_COMMANDS = {"bootstrap", "deploy", "destroy", "diff", "ls", "synth"}
# A script that people copy and run without Mendq.
STANDALONE_SCRIPT = ROOT / "mendq" / "cli" / "deploy" / "record_failed_calls.py"
EXAMPLE_BY_PLACEHOLDER = {"TODAY": "2026-11-10", "THIS_WEEK": "2026-W46"}
SHOWN_CODE = {
    line for page in PAGES for line in (*read_command_lines(page), *read_inline_code(page))
}
OWN_COMMAND = re.compile(r"make( |$)|(?:\.venv/bin/)?python (?!.*\|)|(npx aws-)?cdk[ @]")
LINES = sorted({line.removesuffix(" ...") for line in SHOWN_CODE if OWN_COMMAND.match(line)})


def _find_mistake(line: str) -> str:
    """Return what is wrong with a `make`, `python` or `cdk` command, or an empty text."""
    try:
        name, *words = shlex.split(line)
        if name == "make":
            _check_make(words)
        elif name.endswith("python"):
            _check_python(words)
        else:
            _check_cdk(words)
    except (AssertionError, LookupError, ValueError, BadArguments, CannotStart) as mistake:
        return repr(mistake)
    return ""


def _check_make(words: list[str]) -> None:
    variables = dict(word.split("=", 1) for word in words if "=" in word)
    recipes = "".join(RECIPES[word] for word in words if "=" not in word)
    assert variables.keys() <= VARIABLES, "no such variable"
    used_variables = set(re.findall(r"\$\((?:value )?([A-Z]+)\)", recipes))
    assert variables.keys() - {"PYTHON"} <= used_variables, "the target does not use this variable"
    read_stories(variables.get("STORY", "visibility"))
    assert set(variables.get("NAMES", "").split()) <= {proof.name for proof in PROOFS}, (
        "no such proof"
    )
    assert variables.get("SETTINGS", ".json").endswith(".json"), "SETTINGS is the path of a file"
    if "ARGS" in variables:
        _check_cdk(shlex.split(variables["ARGS"]))


def _check_cdk(words: list[str]) -> None:
    first, *rest = words
    if first.startswith("aws-cdk@"):
        assert first == CDK_CLI_PACKAGE, "another version"
        first, *rest = rest
    assert first in CDK_COMMANDS, "no such command of the CDK CLI"
    assert not any(word.startswith("mendq=") for word in rest), "make cdk SETTINGS=file.json"


def _check_python(words: list[str]) -> None:
    script = words[1] if words[0] == "-m" else words[0]
    if script == "pytest":
        assert all((ROOT / word).exists() for word in words[2:] if not word.startswith("-"))
        return
    if script == STANDALONE_SCRIPT.name:
        options = {word for word in words if word.startswith("--")}
        assert options <= set(re.findall(r'"(--[a-z]+)"', STANDALONE_SCRIPT.read_text())), (
            "no such option"
        )
        return
    path = ROOT / script.removesuffix(".py").replace(".", "/")
    assert path.with_suffix(".py").exists() or (path / "__main__.py").exists()
    if script == "analytics.job":
        parse_arguments([EXAMPLE_BY_PLACEHOLDER.get(word, word) for word in words[2:]])


@pytest.mark.parametrize("line", LINES)
def test_every_make_python_and_cdk_command_in_the_documents_is_valid(line: str) -> None:
    assert len(LINES) > 20
    assert _find_mistake(line) == ""
