"""Test `make check-symptom` on a copy of the repository in which a new symptom is incomplete."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("docs", "functions", "infra", "mendq", "tests")
ENTRY = "mendq/catalogue/messages/delay_too_long.py"
LIST = "mendq/catalogue/__init__.py"
RUNBOOK = "docs/runbooks/delay_too_long.md"

WHOLE_ENTRY = '''"""SQS delays every message longer than the queue's tag allows; reported."""

from __future__ import annotations

from mendq.catalogue.examples import standard_queue
from mendq.catalogue.symptom import (
    SQS_GUIDE,
    DetectedFault,
    Detection,
    QueueExample,
    QueueNearMiss,
    ReportedSymptom,
)
from mendq.model.facts import Facts
from mendq.model.queue import read_number_attribute
from mendq.model.tags import QueueTag, TagUnreadable, TagValueKind, read_seconds_tag

MAX_DELAY = QueueTag(
    key="mendq:max-delay-seconds",
    values=TagValueKind.SECONDS,
    meaning="The longest that a message may wait before consumers can receive it.",
)


def detect(facts: Facts) -> DetectedFault | None:
    """Return the fault if DelaySeconds is above what the tag allows."""
    try:
        allowed = read_seconds_tag(facts.tags, MAX_DELAY.key)
    except TagUnreadable:
        return None
    delay = read_number_attribute(facts.attributes, "DelaySeconds")
    if allowed is None or delay <= allowed:
        return None
    return DetectedFault(f"SQS delays messages by {delay:,} s, and the tag allows {allowed:,} s")


TAGS = {MAX_DELAY.key: "60"}

DELAY_TOO_LONG = ReportedSymptom(
    name="delay_too_long",
    sentence="Every message is delayed longer than the queue's tag allows.",
    plan_in_words="Report it; never change the delay.",
    first_step="Lower DelaySeconds, or correct the tag.",
    aws_page=f"{SQS_GUIDE}/sqs-delay-queues.html",
    detection=Detection(detect, is_of_configuration=True),
    tags=(MAX_DELAY,),
    examples=lambda: (
        QueueExample("far above it", standard_queue(tags=TAGS, DelaySeconds=900)),
        QueueExample("one second above it", standard_queue(tags=TAGS, DelaySeconds=61)),
        QueueNearMiss("exactly as allowed", standard_queue(tags=TAGS, DelaySeconds=60)),
        QueueNearMiss("no tag", standard_queue(DelaySeconds=900)),
        QueueNearMiss(
            "an unreadable tag", standard_queue(tags={MAX_DELAY.key: "x"}, DelaySeconds=900)
        ),
    ),
)
'''

# Does what `make docs` does, for the tables that the check reads. All of `make docs` takes long.
DERIVE_TWO_PAGES = r"""
import re
from docs import symptom_tables
from docs.markdown import ROOT

DERIVED_PART = re.compile(r"(derived: symptom_tables\.(\w+) [^\n]*\n).*?\n(?=<!-- end)", re.DOTALL)

def derive(part):
    return f"{part[1]}{getattr(symptom_tables, part[2])()}\n"

for name in ("symptoms.md", "runbooks/README.md"):
    page = ROOT / "docs" / name
    page.write_text(DERIVED_PART.sub(derive, page.read_text()))
"""

WHOLE_RUNBOOK = """# delay_too_long: every message is delayed longer than the tag allows

## Impact

Consumers receive every message later than the queue's owner accepts. Nothing is lost.

## Do now

```
aws sqs set-queue-attributes --region REGION --queue-url QUEUE_URL --attributes DelaySeconds=SECONDS
```

## Verify

`mendq queues` shows it no more after the next hourly scan.

## Undo

The same command with the old value.

## Why

`DelaySeconds` is above the tag `mendq:max-delay-seconds`. There is no [refusal](README.md).
"""


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the repository, in which git tracks no file yet."""
    copy = tmp_path_factory.mktemp("tree")
    # Compiled modules stay valid in the copy, because it keeps the modules' times.
    ignored = shutil.ignore_patterns("*.png", "previous")
    for package in PACKAGES:
        shutil.copytree(ROOT / package, copy / package, ignore=ignored)
    for file in ("pyproject.toml", "README.md", "CONTRIBUTING.md"):
        shutil.copy(ROOT / file, copy / file)
    subprocess.run(["git", "init", "--quiet"], cwd=copy, check=True)
    return copy


@pytest.fixture
def add_symptom(tree: Path) -> Callable[..., None]:
    """A function that adds an entry, its line in the list, or its runbook to a clean tree."""
    for path in (ENTRY, RUNBOOK):
        (tree / path).unlink(missing_ok=True)
    listed = (ROOT / LIST).read_text()
    if (tree / LIST).read_text() != listed:
        (tree / LIST).write_text(listed)

    def write(*, entry: str = "", line: bool = False, runbook: str = "") -> None:
        if entry:
            (tree / ENTRY).write_text(entry)
        if runbook:
            (tree / RUNBOOK).write_text(runbook)
        if line:
            module = "mendq.catalogue.messages.delay_too_long"
            text = listed.replace(
                "from mendq.catalogue.messages.message_too_long",
                f"from {module} import DELAY_TOO_LONG\n"
                "from mendq.catalogue.messages.message_too_long",
            )
            text = text.replace(
                "    INVALID_REQUEST,\n", "    DELAY_TOO_LONG,\n    INVALID_REQUEST,\n"
            )
            (tree / LIST).write_text(text)

    return write


def _run_check(tree: Path, name: str = "delay_too_long") -> tuple[int, str]:
    # Without -B, Python would take an entry of the same size, written in the same second, for the
    # compiled one of the test before.
    command = [sys.executable, "-B", "-m", "tests.catalogue.check_symptom", name]
    done = subprocess.run(command, cwd=tree, capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stdout + done.stderr
    return done.returncode, done.stdout + done.stderr


def test_check_symptom_of_a_symptom_without_files_lists_the_files_to_write(
    tree: Path, add_symptom: Callable[..., None]
) -> None:
    add_symptom()
    code, said = _run_check(tree)
    assert code == 1
    assert "1. The entry is missing: write mendq/catalogue/FAMILY/delay_too_long.py" in said
    assert f"2. The runbook is missing: write {RUNBOOK}" in said


def test_check_symptom_refuses_a_name_that_is_no_file_name(tree: Path) -> None:
    code, said = _run_check(tree, "../x")
    assert code == 1
    assert "'../x' is no name" in said


def test_check_symptom_without_a_name_exits_with_2_and_shows_its_usage(tree: Path) -> None:
    code, said = _run_check(tree, "")
    assert code == 2
    assert "make check-symptom NAME=" in said


def test_check_symptom_of_an_unlisted_entry_gives_the_import_and_the_line_to_add(
    tree: Path, add_symptom: Callable[..., None]
) -> None:
    add_symptom(entry=WHOLE_ENTRY, runbook=WHOLE_RUNBOOK)
    code, said = _run_check(tree)
    assert code == 1
    assert "from mendq.catalogue.messages.delay_too_long import DELAY_TOO_LONG" in said
    assert "add `DELAY_TOO_LONG,` to CATALOGUE, above INVALID_REQUEST" in said


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("    tags=(MAX_DELAY,),\n", "", "reads the tag mendq:max-delay-seconds and does not"),
        ('name="delay_too_long"', 'name="delay"', 'says name="delay", and its file delay_too_long'),
        ("DELAY_TOO_LONG = ", "DELAY = ", "has no entry: write `DELAY_TOO_LONG = ...(`"),
        ("import Facts\n", "import Fact\n", "It cannot be imported: ImportError: "),
        ("(MAX_DELAY,)", "(MAX_DELAY,", "It cannot be imported: SyntaxError: "),
        (
            '        QueueNearMiss("no tag", standard_queue(DelaySeconds=900)),\n',
            "",
            "2 of 3 near misses",
        ),
        ('QueueExample("one', 'QueueNearMiss("one', "1 of 2 examples of a queue that has"),
        ('allows.",', 'allows",', "`sentence` is no sentence"),
    ],
)
def test_check_symptom_of_an_incomplete_entry_says_what_to_write(
    tree: Path, add_symptom: Callable[..., None], old: str, new: str, sentence: str
) -> None:
    assert old in WHOLE_ENTRY
    entry = WHOLE_ENTRY.replace(old, new)
    # In the list an entry without its name cannot be imported, which would hide the sentence.
    add_symptom(entry=entry, line=not old.startswith("DELAY_TOO_LONG"), runbook=WHOLE_RUNBOOK)
    code, said = _run_check(tree)
    assert code == 1
    assert sentence in said


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("# delay_too_long: ", "# ", "must begin with `# delay_too_long: `"),
        ("## Undo\n", "", "it needs exactly Impact, Do now, Verify, Undo, Why"),
        ("[refusal](README.md)", "refusal", "does not lead to the list of refusals"),
        ("## Verify\n", "## Verify\n" + "\nOne line.\n" * 40, "a screen has 45"),
    ],
)
def test_check_symptom_of_an_incomplete_runbook_says_what_to_write(
    tree: Path, add_symptom: Callable[..., None], old: str, new: str, sentence: str
) -> None:
    add_symptom(entry=WHOLE_ENTRY, line=True, runbook=WHOLE_RUNBOOK.replace(old, new))
    code, said = _run_check(tree)
    assert code == 1
    assert sentence in said


def test_check_symptom_rejects_a_runbook_copied_from_another_symptom(
    tree: Path, add_symptom: Callable[..., None]
) -> None:
    other = (tree / "docs/runbooks/not_encrypted.md").read_text()
    copied = other.replace("# not_encrypted: ", "# delay_too_long: ")
    add_symptom(entry=WHOLE_ENTRY, line=True, runbook=copied)
    code, said = _run_check(tree)
    assert code == 1
    assert "delay_too_long.md still says what not_encrypted.md says" in said


@pytest.mark.long
def test_check_symptom_passes_after_the_commands_that_it_names_were_run(
    tree: Path, add_symptom: Callable[..., None]
) -> None:
    add_symptom(entry=WHOLE_ENTRY, line=True, runbook=WHOLE_RUNBOOK)
    code, said = _run_check(tree)
    assert code == 1
    assert "`.venv/bin/python -m tests.golden accept tests/catalogue/sentences.json`" in said
    assert "docs/symptoms.md is stale. Run `make docs`." in said
    assert "docs/runbooks/README.md is stale. Run `make docs`." in said
    accept = ["-m", "tests.golden", "accept", "tests/catalogue/sentences.json"]
    for arguments in (accept, ["-c", DERIVE_TWO_PAGES]):
        subprocess.run([sys.executable, *arguments], cwd=tree, check=True)
    code, said = _run_check(tree)
    assert (code, said.partition(" has everything")[0]) == (0, "delay_too_long")
