"""What the documents say to type of Mendq's own, beside `mendq`: make, python, the CDK CLI."""

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
# Those that are given on the command line; what the CDK CDK_CLI_PACKAGE takes, it says itself.
VARIABLES = set(re.findall(r"^([A-Z]+) \?=", MAKEFILE, re.MULTILINE)) | {"ARGS"}
CDK = {"bootstrap", "deploy", "destroy", "diff", "ls", "synth"}
# What people copy and run alone.
ALONE = ROOT / "mendq" / "cli" / "deploy" / "record_failed_calls.py"
STANDS_FOR = {"TODAY": "2026-11-10", "THIS_WEEK": "2026-W46"}
TYPED = {each for page in PAGES for each in (*read_command_lines(page), *read_inline_code(page))}
OURS = re.compile(r"make( |$)|(?:\.venv/bin/)?python (?!.*\|)|(npx aws-)?cdk[ @]")
LINES = sorted({each.removesuffix(" ...") for each in TYPED if OURS.match(each)})


def _mistake_in(line: str) -> str:
    """What is wrong with a `make`, a `python` or a `cdk`, as far as it can be told."""
    try:
        name, *words = shlex.split(line)
        if name == "make":
            _make(words)
        elif name.endswith("python"):
            _python(words)
        else:
            _cdk(words)
    except (AssertionError, LookupError, ValueError, BadArguments, CannotStart) as mistake:
        return repr(mistake)
    return ""


def _make(words: list[str]) -> None:
    given = dict(each.split("=", 1) for each in words if "=" in each)
    recipes = "".join(RECIPES[each] for each in words if "=" not in each)
    assert given.keys() <= VARIABLES, "no such variable"
    taken = set(re.findall(r"\$\((?:value )?([A-Z]+)\)", recipes))
    assert given.keys() - {"PYTHON"} <= taken, "it takes no such"
    read_stories(given.get("STORY", "visibility"))
    assert set(given.get("NAMES", "").split()) <= {each.name for each in PROOFS}, "no such proof"
    assert given.get("SETTINGS", ".json").endswith(".json"), "a file, not what stands in it"
    if "ARGS" in given:
        _cdk(shlex.split(given["ARGS"]))


def _cdk(words: list[str]) -> None:
    first, *rest = words
    if first.startswith("aws-cdk@"):
        assert first == CDK_CLI_PACKAGE, "another version"
        first, *rest = rest
    assert first in CDK, "no such command of the CDK CDK_CLI_PACKAGE"
    assert not any(each.startswith("mendq=") for each in rest), "make cdk SETTINGS=file.json"


def _python(words: list[str]) -> None:
    script = words[1] if words[0] == "-m" else words[0]
    if script == "pytest":
        assert all((ROOT / each).exists() for each in words[2:] if not each.startswith("-"))
        return
    if script == ALONE.name:
        options = {each for each in words if each.startswith("--")}
        assert options <= set(re.findall(r'"(--[a-z]+)"', ALONE.read_text())), "no such option"
        return
    path = ROOT / script.removesuffix(".py").replace(".", "/")
    assert path.with_suffix(".py").exists() or (path / "__main__.py").exists()
    if script == "analytics.job":
        parse_arguments([STANDS_FOR.get(each, each) for each in words[2:]])


@pytest.mark.parametrize("line", LINES)
def test_every_make_python_and_cdk_command_in_the_documents_is_valid(line: str) -> None:
    assert len(LINES) > 20
    assert _mistake_in(line) == ""
