"""What the documents say to type is what the tools take."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import botocore.session
import pytest
from botocore import xform_name

from functions.healing.mode import Mode
from infra.settings import read

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
GLOBAL_OPTIONS = {"region", "profile", "query", "output", "endpoint-url"}
_BLOCK = re.compile(r"^```[a-z]*\n(.*?)^```", re.MULTILINE | re.DOTALL)


def lines_of(page: Path) -> list[str]:
    blocks = "\n".join(_BLOCK.findall(page.read_text())).replace("\\\n", " ")
    return [line.partition("#")[0].strip() for line in blocks.splitlines()]


def _aws_commands() -> list[str]:
    return [line for page in PAGES for line in lines_of(page) if line.startswith("aws ")]


def test_there_are_commands_to_check() -> None:
    assert len(_aws_commands()) >= 3


@pytest.mark.parametrize("command", _aws_commands())
def test_an_aws_command_exists_and_takes_these_options(command: str) -> None:
    _, service, operation, *words = shlex.split(command)
    model = botocore.session.get_session().get_service_model(service)
    operations = {xform_name(each, "-"): each for each in model.operation_names}
    assert operation in operations
    shape = model.operation_model(operations[operation]).input_shape
    members = {xform_name(each, "-") for each in shape.members} if shape else set()
    options = {word[2:] for word in words if word.startswith("--")}
    assert options <= members | GLOBAL_OPTIONS


def test_the_settings_to_begin_with_watch_what_they_name() -> None:
    readme = (ROOT / "README.md").read_text()
    (block,) = re.findall(r"^```json\n(.*?)^```", readme, re.MULTILINE | re.DOTALL)
    settings = read(json.loads(f"{{{block}}}")["mendq"])
    assert settings.mode is Mode.OBSERVE
    assert settings.trail.queue_arn_prefixes


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_make_targets_exist(page: Path) -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = {line.split()[1] for line in lines_of(page) if re.match(r"make [a-z]+", line)}
    assert named <= targets


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\((?!https?://|#)([^)#\s]+)", page.read_text())
    assert {link for link in links if not (page.parent / link).exists()} == set()
