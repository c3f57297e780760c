"""What the documents say to type of Mendq's own, beside `mendq`: make, python, the CDK CLI."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping

import pytest

from analytics.job import BadArguments, parse
from infra.packaging.cdk_cli import CLI
from local_account.cannot_start import CannotStart
from local_account.demo.story import stories_of
from tests.architecture.test_documents import PAGES, ROOT, lines_of, named_in
from tests.prove.__main__ import PROOFS

MAKEFILE = (ROOT / "Makefile").read_text()
TARGETS = set(re.findall(r"^([a-z]+):", MAKEFILE, re.MULTILINE))
# Those that are given on the command line; what the CDK CLI takes, it says itself.
VARIABLES = set(re.findall(r"^([A-Z]+) \?=", MAKEFILE, re.MULTILINE)) | {"ARGS"}
CDK = {"bootstrap", "deploy", "destroy", "diff", "ls", "synth"}
STANDS_FOR = {"TODAY": "2026-11-10", "THIS_WEEK": "2026-W46"}
PYTHON = re.compile(r"^(?:\.venv/bin/)?python ")


def _typed() -> Iterator[str]:
    for page in PAGES:
        yield from lines_of(page)
        yield from named_in(page)


LINES = sorted({each.removesuffix(" ...") for each in _typed()})
MAKES = [each for each in LINES if re.match(r"make( |$)", each)]
PYTHONS = [each for each in LINES if PYTHON.match(each) and "|" not in each]
OWN_CDKS = [each for each in LINES if re.match(r"(npx aws-)?cdk[ @]", each)]


def test_there_are_commands_to_check() -> None:
    assert len(MAKES) > 15
    assert len(PYTHONS) >= 4
    assert OWN_CDKS


def _mistake_in(line: str) -> str:
    """What is wrong with a `make`, a `python` or a `cdk`, as far as it can be told."""
    try:
        name, *words = shlex.split(line)
        if name == "make":
            _made(words)
        elif PYTHON.match(line):
            _python(words)
        else:
            _cdk(words)
    except (AssertionError, LookupError, ValueError, BadArguments, CannotStart) as mistake:
        return repr(mistake)
    return ""


def _made(words: list[str]) -> None:
    given = dict(each.split("=", 1) for each in words if "=" in each)
    targets = {each for each in words if "=" not in each}
    assert targets <= TARGETS, "no such target"
    assert given.keys() <= VARIABLES, "no such variable"
    recipes = "".join(_recipe_of(each) for each in targets)
    assert all(f"$({name})" in recipes for name in given.keys() - {"PYTHON"}), "it takes no such"
    _values(given)


def _recipe_of(target: str) -> str:
    (recipe,) = re.findall(rf"^{target}:.*\n((?:\t.*\n)*)", MAKEFILE, re.MULTILINE)
    return str(recipe)


def _values(given: Mapping[str, str]) -> None:
    stories_of(given.get("STORY", "visibility"))
    assert set(given.get("NAMES", "").split()) <= {each.name for each in PROOFS}, "no such proof"
    assert given.get("SETTINGS", ".json").endswith(".json"), "a file, not what stands in it"
    if "ARGS" in given:
        _cdk(shlex.split(given["ARGS"]))


def _cdk(words: list[str]) -> None:
    first, *rest = words
    if first.startswith("aws-cdk@"):
        assert first == CLI, "another version"
        first, *rest = rest
    assert first in CDK, "no such command of the CDK CLI"
    assert not any(each.startswith("mendq=") for each in rest), "make cdk SETTINGS=file.json"


def _python(words: list[str]) -> None:
    script = words[1] if words[0] == "-m" else words[0]
    if script == "pytest":
        assert all((ROOT / each).exists() for each in words[2:] if not each.startswith("-"))
        return
    path = script if script.endswith(".py") else f"{script.replace('.', '/')}.py"
    assert (ROOT / path).exists() or (ROOT / script.replace(".", "/") / "__main__.py").exists()
    if script == "analytics.job":
        parse([STANDS_FOR.get(each, each) for each in words[2:]])


@pytest.mark.parametrize("line", [*MAKES, *PYTHONS, *OWN_CDKS])
def test_a_command_of_ours_is_one(line: str) -> None:
    assert _mistake_in(line) == ""


@pytest.mark.parametrize(
    "wrong",
    [
        "make hay",
        "make demo STORY=lost",
        "make demo COLOUR=red",
        "make prove NAMES=innocence",
        "make cdk ARGS=deply",
        "make cdk ARGS=deply SETTINGS=prod.json",
        "make cdk ARGS=deploy SETTINGS='{}'",
        "make synth SETTINGS=prod.json",
        "make cdk ARGS=\"deploy -c mendq='{..}'\"",
        "npx aws-cdk@3.0.0 deploy",
        "python -m analytics.evening",
        "python -m pytest tests/healing -q",
        "python -m analytics.job nightly --date yesterday --trail T --cases C --out O",
        "python -m analytics.job weekly --week 2026-W46",
    ],
)
def test_a_command_that_is_none_is_found(wrong: str) -> None:
    assert _mistake_in(wrong)
