"""The commands, settings, links and names in the documents are valid."""

from __future__ import annotations

import io
import json
import re
import tokenize
from pathlib import Path

import pytest

from infra.settings.deployment import DeploymentSettings, read_deployment_settings
from mendq.model.mode import Mode
from tests.architecture.aws_commands import find_mistake, list_commands_in
from tests.architecture.documents import CODE_BLOCK, PAGES, read_command_lines, read_inline_code
from tests.source_files import ROOT, list_files

OTHER_PAGES = [ROOT / "CHANGELOG.md", ROOT / "SECURITY.md"]


def _list_aws_commands() -> list[str]:
    commands: set[str] = set()
    for page in PAGES:
        for line in (*read_command_lines(page), *read_inline_code(page)):
            commands.update(list_commands_in(line))
    return sorted(commands)


COMMANDS = _list_aws_commands()


@pytest.mark.parametrize("command", COMMANDS)
def test_every_aws_command_in_the_documents_exists_with_its_options(command: str) -> None:
    assert len(COMMANDS) >= 30
    assert find_mistake(command) == ""


def _read_settings_blocks(page: Path) -> list[str]:
    blocks = re.findall(r"^```json\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
    return [block for block in blocks if block.startswith('"mendq": ')]


def _read_settings(page: Path) -> list[DeploymentSettings]:
    return [
        read_deployment_settings(json.loads(f"{{{block}}}")["mendq"])
        for block in _read_settings_blocks(page)
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_settings_in_the_documents_are_valid(page: Path) -> None:
    """Reading them refuses an unknown name or value."""
    assert len(_read_settings(page)) == len(_read_settings_blocks(page))


@pytest.mark.parametrize("page", ["README.md", "docs/deploy.md"])
def test_first_settings_of_readme_and_deploy_page_only_observe_and_log_no_calls(page: str) -> None:
    """A new user runs the scan first."""
    first, *_ = _read_settings(ROOT / page)
    assert first.mode is Mode.OBSERVE
    assert not first.trail.queue_arn_prefixes


def read_links(text: str) -> set[str]:
    """Return the links and pictures of a page that lead into the repository, without code."""
    prose = re.sub(r"`[^`\n]*`", "", CODE_BLOCK.sub("", text))
    links = re.findall(r"\]\(([^)\s]+)\)", prose)
    pictures = re.findall(r"<[^>]*?(?:src|srcset|href)=\"([^\"]+)\"", prose)
    return {link for link in (*links, *pictures) if not re.match(r"[a-z]+:", link)}


def read_anchors(text: str) -> set[str]:
    """Return a page's anchors: its headings as GitHub spells them, and its explicit anchors."""
    count_by_slug: dict[str, int] = {}
    anchors = set(re.findall(r"<a (?:id|name)=\"([^\"]+)\"", text))
    for heading in re.findall(r"^#{1,6} (.+?)\s*$", CODE_BLOCK.sub("", text), re.MULTILINE):
        words = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower()
        slug = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        anchors.add(f"{slug}-{count_by_slug[slug]}" if slug in count_by_slug else slug)
        count_by_slug[slug] = count_by_slug.get(slug, 0) + 1
    return anchors


def _has_target(page: Path, text: str, link: str) -> bool:
    path, _, anchor = link.partition("#")
    target = page.parent / path if path else page
    if not target.exists():
        return False
    return not anchor or anchor in read_anchors(text if target == page else target.read_text())


@pytest.mark.parametrize("page", [*OTHER_PAGES, *PAGES], ids=lambda page: page.name)
def test_every_relative_link_of_a_document_has_a_target(page: Path) -> None:
    text = page.read_text()
    dead_links = {link for link in read_links(text) if not _has_target(page, text, link)}
    assert dead_links == set()


_IDENTIFIER = re.compile(r"[A-Za-z_][\w.]*(?:\(\))?")
# Names of Python's own library.
_LIBRARY_NAMES = {"sys.setprofile"}


def test_contributing_names_only_identifiers_that_exist_in_the_code() -> None:
    known_words = set(re.findall(r"\w+", " ".join(str(path) for path in list_files("*"))))
    for path in list_files("*.py"):
        tokens = tokenize.generate_tokens(io.StringIO(path.read_text()).readline)
        known_words |= {token.string for token in tokens if token.type == tokenize.NAME}
    for path in list_files("*.toml", "*.yaml", "*.in", "Makefile"):
        known_words |= set(re.findall(r"\w+", path.read_text()))
    quoted = set(re.findall(r"`([^`]+)`", (ROOT / "CONTRIBUTING.md").read_text()))
    names = {text for text in quoted - _LIBRARY_NAMES if _IDENTIFIER.fullmatch(text)}
    assert len(names) > 100
    unknown_names = {
        name for name in names if not known_words.issuperset(name.removesuffix("()").split("."))
    }
    assert unknown_names == set()


_STEP = re.compile(r"^\|[^|]*\| `([\w/]+\.py)` `([\w.]+)` \|", re.MULTILINE)
STEPS = _STEP.findall((ROOT / "CONTRIBUTING.md").read_text())


@pytest.mark.parametrize(("path", "name"), STEPS, ids=[name for _, name in STEPS])
def test_function_in_a_table_of_contributing_is_defined_in_the_named_file(
    path: str, name: str
) -> None:
    assert len(STEPS) >= 20
    source = (ROOT / path).read_text()
    for part in name.split("."):
        assert re.search(rf"^ *(?:class|def) {part}\b", source, re.MULTILINE)
