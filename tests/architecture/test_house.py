"""The house keeps its shape: sizes, rooms, and what may stand where."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from statistics import median, quantiles

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("cli", "functions", "infra", "local_account")
FILES = sorted(each for room in ROOMS for each in (ROOT / room).rglob("*.py"))
SOURCES = {each.relative_to(ROOT).as_posix(): each.read_text() for each in FILES}


def _lengths(source: str) -> list[int]:
    nodes = ast.walk(ast.parse(source))
    return [
        (each.end_lineno or each.lineno) - each.lineno + 1
        for each in nodes
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)
    ]


def test_files_are_small() -> None:
    lengths = [len(text.splitlines()) for text in SOURCES.values() if text.strip()]
    assert median(lengths) <= 120
    assert quantiles(lengths, n=10)[8] <= 250


def test_functions_are_small() -> None:
    lengths = {name: _lengths(text) for name, text in SOURCES.items()}
    every = [each for inner in lengths.values() for each in inner]
    assert median(every) <= 12
    assert quantiles(every, n=10)[8] <= 35
    assert {name for name, inner in lengths.items() if max(inner, default=0) > 60} == set()


def test_handlers_are_thin() -> None:
    handlers = {name: text for name, text in SOURCES.items() if "functions/" in name}
    assert len(handlers) > 1
    assert {name for name, text in handlers.items() if len(text.splitlines()) > 60} == set()


# Scheduler's own DLQ messages are no step of ours: infra/schedules.py names their one action.
@pytest.mark.parametrize(
    ("forbidden", "allowed"),
    [
        (
            r"os\.environ",
            r"mendq/cli/account\.py|functions/settings\.py|infra/(__init__|cdk_cli|synthesis|wheels)\.py|local_account/",
        ),
        (r"datetime\.now|time\.time\(|utcnow", r"cli/|functions/|local_account/"),
        (
            r"\"sqs:[A-Za-z]+\"",
            r"mendq/model/(steps|dlq_steps|redrive_step|looks)\.py|infra/schedules\.py|mendq/cli/rights\.py|local_account/",
        ),
        (r"import boto3|from boto3|from botocore", r"cli/|mendq/aws/|local_account/"),
        (r"\.otherwise\(", r"^$"),
    ],
)
def test_what_may_stand_where(forbidden: str, allowed: str) -> None:
    found = {name for name, text in SOURCES.items() if re.search(forbidden, text)}
    assert {name for name in found if not re.match(allowed, name)} == set()


def test_no_drawers() -> None:
    banned = re.compile(r"^(utils?|helpers?|common|manager|processor|data|info|misc|my.*)$")
    assert {name for name in SOURCES if banned.match(Path(name).stem)} == set()


def test_only_example_accounts_are_named() -> None:
    """A real account's number would be somebody's."""
    allowed = {"123456789012", "210987654321", "999999999999", "000000000000", "111111111111"}
    allowed |= {"111122223333", "444455556666"}
    texts = [*FILES, *(ROOT / "tests").rglob("*.py"), *(ROOT / "docs").rglob("*.md")]
    for path in (*texts, ROOT / "README.md"):
        numbers = set(re.findall(r"(?<![0-9a-f-])[0-9]{12}(?![0-9a-f-])", path.read_text()))
        assert numbers <= allowed, path
