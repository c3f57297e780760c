"""Say what a new symptom still lacks: `make check-symptom NAME=delay_too_long`.

A symptom takes three files by hand: its entry, its line in `mendq/catalogue/__init__.py`, and its
runbook. Everything else is derived from them, and a sentence names the command. The files need not
be added to git.
"""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from collections.abc import Iterator
from math import ceil
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
CATALOGUE = ROOT / "mendq" / "catalogue"
LIST = CATALOGUE / "__init__.py"
HEADINGS = ("Impact", "Do now", "Verify", "Undo", "Why")
MOST_LINES = 45
COLUMNS = 100
# Two runbooks of the catalogue share at most 28 % of their lines. A copy shares nearly all.
MOST_SHARED_LINES = 0.5
_NAME = re.compile(r"[a-z][a-z_]{0,63}")
_DERIVE = "Run `make docs`."
_RECORD = (
    "Read the difference: `.venv/bin/python -m tests.golden`. If it is right: "
    "`.venv/bin/python -m tests.golden accept tests/catalogue/sentences.json`."
)
_RULES = ("catalogue/test_catalogue.py", "catalogue/test_tags.py", "docs/test_runbooks.py")


def missing_for(name: str) -> list[str]:
    """Return what the symptom `name` lacks, in the order in which to add it."""
    if not _NAME.fullmatch(name):
        return [
            f"{name!r} is no name: use a to z and _, at most 64 characters. It names the files."
        ]
    files = sorted(CATALOGUE.rglob(f"{name}.py"))
    missing = [*_missing_file(name, files), *_missing_runbook(name)]
    if not files:
        return missing
    missing += _missing_line(name, files[0])
    entry, fault = _entry_of(name, files[0])
    if fault:
        return [*missing, fault]
    checks = importlib.import_module("tests.catalogue.entry_checks")
    path = files[0].relative_to(ROOT)
    missing += [f"{path}: {sentence}" for sentence in checks.find_missing_in_entry(entry)]
    missing += [f"{path}: {sentence}" for sentence in checks.codes_without_next_step(files[0])]
    if not missing:
        missing += _stale(entry)
    return missing or _failed_tests(name)


def _missing_file(name: str, files: list[Path]) -> Iterator[str]:
    families = sorted(path.parent.name for path in CATALOGUE.glob("*/__init__.py"))
    if not files:
        yield (
            f"The entry is missing: write mendq/catalogue/FAMILY/{name}.py, where FAMILY is one of "
            f"{', '.join(families)}. Start from a copy: keys/not_encrypted.py is only reported, "
            "consumers/in_flight_limit.py notifies people, keys/kms_throttled.py is fixed."
        )
    elif files[0].parent == CATALOGUE:
        yield (
            f"mendq/catalogue/{name}.py is in no family: move it into one of the folders "
            f"{', '.join(families)}."
        )
    if len(files) > 1:
        paths = ", ".join(str(path.relative_to(ROOT)) for path in files)
        yield f"There are several files for it ({paths}): keep one."


def _missing_line(name: str, path: Path) -> Iterator[str]:
    module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
    constant = name.upper()
    text = LIST.read_text()
    if not re.search(rf"^from {re.escape(module)} import \(?\s*{constant}\b", text, re.MULTILINE):
        yield (
            "Its import is missing in mendq/catalogue/__init__.py: add "
            f"`from {module} import {constant}`."
        )
    if not re.search(rf"^    {constant},$", text, re.MULTILINE):
        yield (
            f"Its line is missing in mendq/catalogue/__init__.py: add `{constant},` to CATALOGUE, "
            "above INVALID_REQUEST. If two symptoms match the same failed call, the first is used."
        )


def _missing_runbook(name: str) -> Iterator[str]:
    path = ROOT / "docs" / "runbooks" / f"{name}.md"
    shown = path.relative_to(ROOT)
    if not path.exists():
        headings = ", ".join(f"`## {heading}`" for heading in HEADINGS)
        yield (
            f"The runbook is missing: write {shown}. Its first line is `# {name}: what goes "
            f"wrong`, its headings are {headings}. Start from a copy of "
            "docs/runbooks/not_encrypted.md."
        )
        return
    text = path.read_text()
    if not text.startswith(f"# {name}: "):
        yield f"{shown} must begin with `# {name}: ` and what goes wrong."
    found = tuple(re.findall(r"^## (.+)$", text, re.MULTILINE))
    if found != HEADINGS:
        yield (
            f"{shown} has the headings {', '.join(found) or 'none'}; it needs exactly "
            f"{', '.join(HEADINGS)}, in this order, with text below each."
        )
    if "](README.md)" not in text:
        yield (
            f"{shown} does not lead to the list of refusals: link it in `## Why`, as in "
            "`no [refusal](README.md)`."
        )
    before_why = text.partition("\n## Why\n")[0]
    lines = sum(max(1, ceil(len(line) / COLUMNS)) for line in before_why.splitlines())
    if lines > MOST_LINES:
        yield (
            f"{shown} takes {lines} lines before `## Why`, and a screen has {MOST_LINES}: move "
            "what is not needed to act below `## Why`."
        )
    yield from _copied_lines(name, text)


def _copied_lines(name: str, text: str) -> Iterator[str]:
    """Yield a sentence if most lines of the runbook are also in another symptom's runbook."""
    lines = _lines_of_text(text)
    for path in sorted((ROOT / "docs" / "runbooks").glob("*.md")):
        if path.stem in (name, "README"):
            continue
        shared = lines & _lines_of_text(path.read_text())
        if len(shared) > MOST_SHARED_LINES * len(lines):
            yield (
                f"docs/runbooks/{name}.md still says what {path.name} says: {len(shared)} of its "
                f"{len(lines)} lines are the same. Describe this fault, and what to do about it."
            )


def _lines_of_text(runbook: str) -> set[str]:
    """Return the distinct lines of a runbook, without headings and empty lines."""
    lines = {line.strip() for line in runbook.splitlines()}
    return {line for line in lines if line and not line.startswith("#")}


def _entry_of(name: str, path: Path) -> tuple[Any, str]:
    """Return the entry and an empty text, or a sentence about why there is none."""
    shown = path.relative_to(ROOT)
    module_name = ".".join(shown.with_suffix("").parts)
    try:
        # The list first: the entries import one another, in the order in which it names them.
        importlib.import_module("mendq.catalogue")
        module = importlib.import_module(module_name)
    except Exception as error:  # noqa: BLE001 - whatever a half-written file raises
        return None, f"It cannot be imported: {type(error).__name__}: {error}. Correct that first."
    symptom = importlib.import_module("mendq.catalogue.symptom")
    entry = getattr(module, name.upper(), None)
    if not isinstance(entry, symptom.Symptom):
        kinds = "ReportedSymptom, NotifiedSymptom or FixedSymptom"
        return None, f"{shown} has no entry: write `{name.upper()} = ...(`, one of {kinds}."
    if entry.name != name:
        return None, f'{shown}: the entry says name="{entry.name}", and its file {name}: use one.'
    return entry, ""


def _stale(entry: Any) -> Iterator[str]:
    """Yield which derived files do not have the entry yet, with the command that writes them."""
    catalogue_tests = importlib.import_module("tests.catalogue.recorded_sentences")
    if catalogue_tests.read_recorded_sentences(entry) != catalogue_tests.sentences_of(entry):
        yield f"tests/catalogue/sentences.json does not have what people read of it. {_RECORD}"
    page = (ROOT / "docs" / "symptoms.md").read_text()
    row = f"[`{entry.name}`](runbooks/{entry.name}.md) | {entry.sentence} |"
    tags = [f"| `{tag.key}` |" for tag in entry.tags]
    if not all(text in page for text in (row, f"| {entry.plan_in_words} |", *tags)):
        yield f"docs/symptoms.md is stale. {_DERIVE}"
    if f"[{entry.name}]({entry.name}.md)" not in (ROOT / "docs/runbooks/README.md").read_text():
        yield f"docs/runbooks/README.md is stale. {_DERIVE}"


def _failed_tests(name: str) -> list[str]:
    """Run the catalogue's tests about this symptom; return a sentence for each that fails."""
    files = [f"tests/{file}" for file in _RULES]
    command = [sys.executable, "-m", "pytest", "-q", "--tb=short", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, "-k", name, *files], cwd=ROOT, capture_output=True, text=True, check=False
    )
    failed = re.findall(r"^FAILED (\S+?)(?: - (.*))?$", done.stdout, re.MULTILINE)
    if done.returncode and not failed:
        return [f"The tests could not run:\n{done.stdout[-2_000:]}{done.stderr[-2_000:]}"]
    run = ".venv/bin/python -m pytest"
    return [
        f"A rule of the catalogue does not hold: {test.partition('::')[2]}"
        f"{f' ({says})' if says else ''}. See it: `{run} '{test}'`"
        for test, says in failed
    ]


def main(arguments: list[str]) -> int:
    """Print what is missing; return 1 if anything is."""
    name = arguments[0] if arguments else ""
    if not name:
        print("Name the symptom: make check-symptom NAME=delay_too_long", file=sys.stderr)
        return 2
    missing = missing_for(name)
    for number, sentence in enumerate(missing, start=1):
        print(f"{number}. {sentence}")
    if missing:
        print(f"\nThen ask again: make check-symptom NAME={name}")
        return 1
    print(f"{name} has everything it needs. Add its files to git, then: make check test")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
