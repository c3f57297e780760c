"""Say what an addition still lacks: a setting, a command, a metric, an alarm or a Lambda.

`make check` prints a sentence for each missing part: which file, and what to write there. The rules
are those of CONTRIBUTING, "Adding things". A symptom has a check of its own.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from infra.alarms import (
    ALARMS_IN_COMPOSITES,
    COMPOSITE_ALARM_BY_STACK_PART,
    NOTIFYING_ALARMS,
    fixes,
    health,
)
from infra.alarms.alarm import AlarmDescription
from infra.lambdas.rows import LAMBDA_ROWS
from infra.settings.deployment import DeploymentSettings
from infra.settings.page import list_fields_without_bounds, list_fields_without_sentence
from mendq.cli.command_group import HELP_PANELS, list_examples, parse_commands
from mendq.cli.commands import DeclaredCommand, list_commands
from mendq.model.names import HEARTBEAT_METRIC, OwnMetric

ROOT = Path(__file__).resolve().parents[2]
HEADINGS = ("Impact", "Do now", "Verify", "Undo", "Why")
FEWEST_EXAMPLES = 2
MOST_EXAMPLES = 3
_DECORATOR = re.compile(r"^@command\(", re.MULTILINE)
_DESCRIPTIONS_LIST = re.compile(r"^DESCRIPTIONS = \(\n.*?^\)", re.MULTILINE | re.DOTALL)


def missing_in_alarms(
    alarms: Iterable[AlarmDescription],
    root: Path = ROOT,
    joined: Mapping[str, Any] = COMPOSITE_ALARM_BY_STACK_PART,
) -> Iterator[str]:
    """Yield what alarms lack: somebody whom they reach, and a runbook that names them."""
    for alarm in alarms:
        if not alarm.severity and alarm.part not in {*joined, fixes.FIXES_SPIKE_STACK_PART}:
            yield (
                f"The alarm {alarm.name} reaches nobody: give it a severity in "
                f"infra/alarms/health.py, or a part whose alarms one alarm joins "
                f"({', '.join(joined)})."
            )
        path = alarm.runbook_path
        page = root / path
        if not page.exists():
            headings = ", ".join(f"`## {heading}`" for heading in HEADINGS)
            yield (
                f"The alarm {alarm.name} has no runbook: write {path} with the headings "
                f"{headings}, or name another alarm's page with `runbook=` in "
                "infra/alarms/health.py. Start from a copy of docs/runbooks/trail_busy.md."
            )
            continue
        text = page.read_text()
        found = tuple(re.findall(r"^## (.+)$", text, re.MULTILINE))
        if found != HEADINGS:
            yield (
                f"{path} has the headings {', '.join(found) or 'none'}; it needs exactly "
                f"{', '.join(HEADINGS)}, in this order."
            )
        if f"`{alarm.alarm_name()}" not in text:
            yield f"{path} does not name its alarm: write `{alarm.alarm_name()}` in it."


def unlisted_alarms(
    described: Mapping[str, AlarmDescription], listed: Collection[AlarmDescription]
) -> Iterator[str]:
    """Yield the alarms that are described in a constant and missing in the module's list."""
    for name, alarm in described.items():
        if alarm not in listed:
            yield (
                f"The alarm {name} is described and not listed: add it to `DESCRIPTIONS`, at the "
                "end of the descriptions in the same file in infra/alarms/."
            )


def unmade_alarms(names: Iterable[str], sources: Iterable[str]) -> Iterator[str]:
    """Yield the alarms that are described in a constant and never made."""
    text = _DESCRIPTIONS_LIST.sub("", "\n".join(sources))
    for name in names:
        if len(re.findall(rf"\b{name}\b", text)) < 2:
            yield (
                f"The alarm {name} is described and never made: add its `Watch` to "
                "infra/alarms/health.py (the metric, the statistic, the period, when it fires)."
            )


def uncounted_metrics(metrics: Iterable[OwnMetric], sources: Iterable[str]) -> Iterator[str]:
    """Yield the metrics that no code counts."""
    text = "\n".join(sources)
    for metric in metrics:
        if not re.search(rf"\bOwnMetric\.{metric.name}\b", text):
            yield (
                f"OwnMetric.{metric.name} is never counted: count it in mendq/ or functions/, or "
                "remove it from mendq/model/names.py."
            )


def unread_commands(folder: Path) -> Iterator[str]:
    """Yield the files in which a command is declared in a form that `mendq --help` cannot read."""
    for panel in HELP_PANELS:
        for path in sorted((folder / panel).glob("*.py")):
            source = path.read_text()
            shown = f"mendq/cli/{panel}/{path.name}"
            declarations = len(_DECORATOR.findall(source))
            if declarations != len(list(parse_commands(source, panel, shown))):
                yield (
                    f"{shown} declares a command that `mendq --help` cannot read. Write "
                    "`@command(PLACE, KIND, ACTIONS)`, on the next line `def NAME(...)`, and a "
                    "docstring whose first sentence is on its first line. PLACE is a number."
                )


def missing_in_commands(commands: Iterable[DeclaredCommand], tests: Iterable[str]) -> Iterator[str]:
    """Yield what commands lack: examples in their help, and a test that runs them."""
    text = "\n".join(tests)
    for command in commands:
        path = f"{command.run_command.__module__.replace('.', '/')}.py"
        examples = list_examples(command.run_command.__doc__)
        if not FEWEST_EXAMPLES <= len(examples) <= MOST_EXAMPLES:
            yield (
                f"{path}: the help of `mendq {command.full_name}` has {len(examples)} examples; "
                f"write {FEWEST_EXAMPLES} or {MOST_EXAMPLES} below `Examples:` at the end of the "
                "docstring, one a line."
            )
        if f'"{command.full_name.partition(" ")[0]}' not in text:
            yield (
                f"No test runs `mendq {command.full_name}`: write tests/cli/commands/test_"
                f"{command.run_command.__name__}.py. The fixture `operator` runs it: "
                f'`operator.mendq("{command.full_name}")`.'
            )


def missing_in_lambdas(names: Iterable[str], root: Path = ROOT) -> Iterator[str]:
    """Yield what Lambdas lack: their file, a test of it, and a proof of their role."""
    roles = (root / "tests" / "infra" / "test_roles.py").read_text()
    tests = "\n".join(path.read_text() for path in (root / "tests").rglob("test_*.py"))
    for name in names:
        if not (root / "functions" / f"{name}.py").exists():
            yield f"The Lambda {name} has a row and no code: write functions/{name}.py."
        if not re.search(rf"\b(?:functions\.{name}|from functions import .*\b{name})\b", tests):
            yield f"No test imports functions/{name}.py: write tests/functions/test_{name}.py."
        if f'"{name}":' not in roles:
            yield (
                f"No test proves what the role of {name} may do: add a run of the Lambda to "
                "`LAMBDAS` in tests/infra/test_roles.py."
            )


def missing_in_settings(settings: Any) -> Iterator[str]:
    """Yield what settings of a class lack: a sentence for people, and which values they take."""
    for owner, field in list_fields_without_sentence(settings):
        yield (
            f"The setting {owner}.{field} has no sentence: write one below the field, in triple "
            "quotes. docs/settings.md shows it."
        )
    for owner, field in list_fields_without_bounds(settings):
        yield (
            f"The setting {owner}.{field} does not say which values it takes: write its type as "
            "Annotated[TYPE, BOUNDS]. BOUNDS is Range(LEAST, MOST) of mendq/model/limits.py for a "
            "number; text(...), one_of(...) or entries(...) of infra/settings/reading.py for a "
            "text, a word or a list."
        )


def missing() -> Iterator[str]:
    """Yield every sentence about this repository."""
    described = {
        name: value
        for module in (fixes, health)
        for name, value in vars(module).items()
        if isinstance(value, AlarmDescription)
    }
    counting = [*_sources("mendq"), *_sources("functions")]
    yield from missing_in_settings(DeploymentSettings)
    yield from missing_in_alarms((*NOTIFYING_ALARMS, *ALARMS_IN_COMPOSITES))
    yield from unlisted_alarms(described, (*fixes.DESCRIPTIONS, *health.DESCRIPTIONS))
    yield from unmade_alarms(described, _sources("infra/alarms"))
    yield from uncounted_metrics(set(OwnMetric) - {HEARTBEAT_METRIC}, counting)
    yield from unread_commands(ROOT / "mendq" / "cli")
    yield from missing_in_commands(list_commands(), _sources("tests"))
    yield from missing_in_lambdas([row.handler.name for row in LAMBDA_ROWS])


def _sources(folder: str) -> list[str]:
    """Return the texts of the Python files in a folder, without the list of metrics' names."""
    paths = sorted((ROOT / folder).rglob("*.py"))
    return [path.read_text() for path in paths if path != ROOT / "mendq" / "model" / "names.py"]


def main() -> int:
    """Print what is missing; return 1 if anything is."""
    sentences = list(missing())
    for sentence in sentences:
        sys.stderr.write(f"{sentence}\n")
    return int(bool(sentences))


if __name__ == "__main__":
    sys.exit(main())
