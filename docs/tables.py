"""The derived tables and state diagrams of the documents, each from the code that it is about."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path, PurePosixPath

from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from infra.alarms import NOTIFIED, WATCHED
from infra.alarms.alarm import AlarmDescription
from infra.lambdas.rows import ROWS
from mendq.aws.consumers import FIGURES
from mendq.catalogue import BY_NAME, CATALOGUE, known_tags
from mendq.catalogue.symptom import Detection
from mendq.cli import permissions
from mendq.cli.app import app
from mendq.cli.command_group import list_examples
from mendq.cli.commands import list_commands
from mendq.cli.cost.calls import CHOICES, sort_symptoms_by_visibility
from mendq.cli.permissions import LOOKING, MESSAGES, OFFLINE, STEERING
from mendq.lint.rules import RULES
from mendq.model import lifecycle
from mendq.model.case import FINAL, PROVING, State, longest_stay_in
from mendq.model.facts import Need, scan_read_actions
from mendq.model.lifecycle import MANUAL_TRANSITIONS, TransitionActor
from mendq.model.limits import Bounds, Timing
from mendq.model.metrics import series_of
from mendq.notifications.next_steps import BY_CODE, BY_STATE, Command
from mendq.notifications.text import format_count
from mendq.redrive import machine
from mendq.redrive.progress import ENDED, Stage
from mendq.scan.scan import OF_A_SUSPECT

ROOT = Path(__file__).resolve().parents[1]
# What a command is told about at more length, where that is no page of its own name.
PAGES = {
    "alarms": "runbooks/alarm_missing.md",
    "policy": "runbooks/access_denied.md#a-known-good-policy",
    "approve": "operate.md#approving",
    "rollback": "operate.md#undoing",
    "freeze": "operate.md#stopping-it",
    "show": "reading-a-case.md#reading-mendq-show",
    "drill": "operate.md#now-and-then",
}
# One of each kind: a symptom may show on one of them alone.
QUEUES = tuple(f"arn:aws:sqs:us-east-1:123456789012:orders{each}" for each in ("", ".fifo"))


def table(heads: str, rows: Iterable[Iterable[object]]) -> str:
    """Markdown: a line for each row below the heads; one that begins with # is right-aligned."""
    titles = heads.split("|")
    rules = ["---:" if each.startswith("#") else "---" for each in titles]
    lines = [[each.lstrip("#") for each in titles], rules, *rows]
    return "\n".join(f"| {' | '.join(map(str, cells))} |" for cells in lines)


def code(words: Iterable[object]) -> str:
    """Each as code, with commas."""
    return ", ".join(f"`{each}`" for each in words)


def links(paths: Iterable[str], folder: str) -> str:
    """A link to each page, once, from a page in `folder`."""
    pages = map(PurePosixPath, dict.fromkeys(paths))
    return ", ".join(f"[{each.stem}]({each.relative_to(folder)})" for each in pages)


def symptoms() -> str:
    """The catalogue."""
    rows = []
    for each in CATALOGUE:
        calls = "failed calls, *unconfirmed on AWS*" if each.is_unconfirmed else "failed calls"
        found_by = [calls] * bool(each.seen_as) + ["the scan"] * bool(each.detection)
        linked = f"[`{each.name}`]({each.runbook.removeprefix('docs/')})"
        costs = ["data events"] * bool(each.seen_as)
        costs += [_scanned(each.detection)] if each.detection else []
        seen = (" · ".join(found_by), " · ".join(costs))
        rows.append((linked, each.sentence, *seen, each.plan_in_words, each.ships_as))
    heads = "symptom|what goes wrong|found by|what it costs to see|what Mendq does|ships as"
    return table(heads, rows)


def families() -> str:
    """The symptoms of each family, which is the folder that an entry is in."""
    runbooks_of = defaultdict[str, list[str]](list)
    for symptom in CATALOGUE:
        (path,) = (ROOT / "mendq" / "catalogue").glob(f"*/{symptom.name}.py")
        runbooks_of[path.parent.name].append(symptom.runbook)
    rows = ((family, links(pages, "docs")) for family, pages in sorted(runbooks_of.items()))
    return table("family|symptoms", rows)


def tags() -> str:
    """The tags that Mendq reads on a queue."""
    rows = []
    for tag in known_tags().values():
        readers = [symptom for symptom in CATALOGUE if tag.key in {t.key for t in symptom.tags}]
        values = code(tag.words) if tag.words else tag.values
        read_by = links((symptom.runbook for symptom in readers), "docs") or "every symptom"
        rows.append((code([tag.key]), values, tag.meaning, read_by))
    return table("tag|value|what it does|read by", rows)


def _scanned(detection: Detection) -> str:
    """The kinds of call, and how many metrics of a queue that these make suspect."""
    is_measured = Need.MEASUREMENTS in detection.needs
    needs = detection.needs | (OF_A_SUSPECT if is_measured else {Need.QUEUE})
    calls = format_count(len(scan_read_actions(needs)), "kind of call", "kinds of call")
    series = series_of(detection.reads or ["every queue"])
    metrics = len(series) * is_measured + (Need.SOLE_SOURCE in needs)
    asked = f"{metrics} metrics and {len(FIGURES)} a function" if metrics else "no metric"
    return f"{calls}, {asked}"


def runbooks() -> str:
    """The runbooks by name: the symptoms' in the catalogue's order, then the alarms'."""
    named = links((each.runbook for each in CATALOGUE), "docs/runbooks")
    alarms = links((each.page for each in (*NOTIFIED, *WATCHED)), "docs/runbooks")
    return f"Symptoms: {named}.\n\nAlarms: {alarms}."


def next_steps() -> str:
    """What to do next by the code of a refusal or an escalation, and by the state of a case."""
    states = ((str(each), BY_STATE[each]) for each in State if BY_STATE[each][0])
    lines = ((name, *step) for name, step in (*sorted(BY_CODE.items()), *states))
    shown = (f"`{name}`: {says} {code(_typed(command))}" for name, says, command in lines)
    return "\n".join(f"- {each.strip()}" for each in shown)


def _typed(command: Command) -> list[str]:
    """As it is printed for the queue that the pages speak of."""
    if isinstance(command, str):
        return [f"mendq {command} CASE"] * bool(command)
    return [command(QUEUES[0])]


def linted() -> str:
    """The rules of cfn-lint that `mendq lint` is."""
    rows = ((code([each.id]), links([BY_NAME[each.shortdesc].runbook], "docs")) for each in RULES)
    return table("rule|symptom", sorted(rows))


def commands() -> str:
    """Every command in the order of `mendq --help`."""
    group = get_command(app)
    assert isinstance(group, TyperGroup)  # noqa: S101 - mendq is a group of commands

    def rows() -> Iterator[tuple[str, str]]:
        for name, command in group.commands.items():
            typed = f"`mendq {' '.join((name, *_arguments(command)))}`"
            said = " ".join((command.help or "").partition("\n\n")[0].split())
            within = code(command.commands) if isinstance(command, TyperGroup) else ""
            page = PAGES.get(name, f"{name}.md")
            is_there = (ROOT / "docs" / page.partition("#")[0]).exists()
            linked = f"[{typed}]({page})" if is_there else typed
            yield linked, f"{said} ({within})" if within else said

    return table("command|what it does", rows())


def examples() -> str:
    """What every command's help shows to type, a paragraph a command."""
    shown = ("\n".join(list_examples(each.run.__doc__)) for each in list_commands())
    return "\n".join(("```sh", "\n\n".join(shown), "```"))


def _arguments(command: object) -> Iterator[str]:
    for each in command.params if isinstance(command, TyperCommand) else ():
        if each.param_type_name == "argument":
            name = (each.metavar or each.name or "").strip("{}[]").upper()
            yield name if each.required else f"[{name}]"


def hidden() -> str:
    """What each choice of `mendq cost` shows of no queue, and what in part alone."""

    def linked(names: Iterable[str]) -> str:
        return links((f"docs/runbooks/{each}.md" for each in names), "docs") or "-"

    shown = ((each.name, sort_symptoms_by_visibility(each, QUEUES)) for each in CHOICES)
    rows = ((name, linked(what.blind), linked(what.in_part)) for name, what in shown)
    return table("a trail that logs|does not show|shows in part", rows)


def diagram(arrows: Iterable[tuple[object, object, object]]) -> str:
    """States and the ways between them, as GitHub draws them."""
    lines = [f"    {a} --> {b}" + (f": {said}" if said else "") for a, b, said in arrows]
    return "\n".join(["```mermaid", "stateDiagram-v2", *dict.fromkeys(lines), "```"])


def states() -> str:
    """The states of a case, without what may happen to nearly every one."""
    drawn = [move for move in MANUAL_TRANSITIONS if not {*PROVING} <= {*move.out_of}]
    by_people = [(one, move.into, move.who) for move in drawn for one in move.out_of or ("[*]",)]
    by_time = [
        (one, row.into, TransitionActor.FOLLOW_UP) for row in lifecycle.TABLE for one in row.out_of
    ]
    ends = [(state, "[*]", "") for state in State if state in FINAL]
    return diagram([*by_people, *by_time, *ends])


def moves() -> str:
    """What moves a case."""
    by_people = [
        (code(e.out_of) or "opens", f"`{e.into}`", e.who, "", e.because) for e in MANUAL_TRANSITIONS
    ]
    by_time = [
        (code(row.out_of), f"`{row.into}`", TransitionActor.FOLLOW_UP, row.condition, row.because)
        for row in lifecycle.TABLE
    ]
    return table("out of|into|who|when|because", [*by_people, *by_time])


def stays() -> str:
    """How long a case may stay in a state, with the default settings."""
    rows = []
    for state in State:
        if limit := longest_stay_in(state, Timing()):
            then = [row.into for row in lifecycle.TABLE if state in row.out_of][-1]
            rows.append((f"`{state}`", f"{limit.total_seconds() / 3600:g} h", f"`{then}`"))
    final = code(each for each in State if each in FINAL)
    return f"{table('state|longest|then', rows)}\n\nFinal: {final}."


def stages() -> str:
    """The stages of a redrive."""
    changes = [
        (stage, row.next_stage, "")
        for row in machine.TABLE
        for stage in row.stages
        if row.next_stage not in {None, stage}
    ]
    ends = [(stage, "[*]", "") for stage in ENDED]
    return diagram([("[*]", Stage.CANARY, ""), *changes, *ends])


def stage_rows() -> str:
    """What a redrive does at each tick."""
    rows = []
    for row in machine.TABLE:
        next_stage = f"`{row.next_stage}`" if row.next_stage else ""
        rows.append((code(row.stages), row.condition, row.action, next_stage))
    return table("at|when|it does|then", rows)


def bounds() -> str:
    """The bounds of a redrive, as shipped."""
    return table("bound|as shipped", ((f"`{n}`", f"{v:,}") for n, v in asdict(Bounds()).items()))


def alarms_that_reach_people() -> str:
    """The alarms that notify people by themselves."""
    rows = (_alarm(each, each.severity) for each in NOTIFIED)
    return table("alarm|topic|fires when|type first|read", rows)


def essential_alarms() -> str:
    """Those that the setting `alarms` keeps in any case."""
    return ", ".join(
        f"`{each.alarm_name()}`" for each in (*NOTIFIED, *WATCHED) if each.is_essential
    )


def alarms_beneath() -> str:
    """The alarms that those stand on."""
    return table("alarm|fires when|type first|read", map(_alarm, dict.fromkeys(WATCHED)))


def _alarm(announced: AlarmDescription, *topic: object) -> tuple[object, ...]:
    command, page = f"`{announced.command}`", links([announced.page], "docs")
    return f"`{announced.alarm_name()}`", *topic, announced.when, command, page


def when_woken() -> str:
    """What each alarm that reaches people means to them, and the runbook by its first line."""
    alike = defaultdict[tuple[str, str], list[str]](list)
    for each in NOTIFIED:
        alike[each.impact, each.page].append(each.alarm_name())
    titles = {page: (ROOT / page).read_text().partition("\n")[0].strip("# ") for _, page in alike}
    rows = (
        (code(names), impact, f"[{titles[page]}]({page.removeprefix('docs/')})")
        for (impact, page), names in alike.items()
    )
    return table("you got|it means|go on with", rows)


def lambdas() -> str:
    """The Lambdas, as their parts of the stack are called."""
    return code(sorted(row.handler.construct for row in ROWS))


def policy(name: str) -> str:
    """One of the two IAM policies for people."""
    return f"```json\n{json.dumps(getattr(permissions, f'make_{name}_policy')(), indent=2)}\n```"


def commands_by_policy() -> str:
    """Which of the policies each command needs."""
    on_messages = "look, and rights on the messages ([which](redrive.md#what-to-know-before))"
    named: Mapping[str, Iterable[str]] = {
        "look": LOOKING,
        "look and steer": STEERING,
        on_messages: MESSAGES,
        "[record](record.md)": ("drill --record DIR",),
        "none": OFFLINE,
    }
    return table("policy|commands", ((policy, code(given)) for policy, given in named.items()))


def rights() -> str:
    """What each command asks of AWS."""
    recording = [
        each for one in permissions.make_record_policy()["Statement"] for each in one["Action"]
    ]
    asked = {**LOOKING, **STEERING, **MESSAGES, "drill --record DIR": recording}.items()
    return table("command|asks", ((f"`mendq {name}`", code(sorted(of))) for name, of in asked))
