"""Make the tables and state diagrams of the docs from the code that they describe.

docs/derive.py inserts the result of each public function that returns a text into the pages.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import asdict

from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from docs.markdown import ROOT, format_as_code, link_pages, make_table
from infra.alarms import ALARMS_IN_COMPOSITES, NOTIFYING_ALARMS
from infra.alarms.alarm import AlarmDescription
from infra.lambdas.rows import LAMBDA_ROWS
from mendq.catalogue import CATALOGUE, SYMPTOM_BY_NAME
from mendq.cli import permissions
from mendq.cli.app import app
from mendq.cli.command_group import list_examples
from mendq.cli.commands import list_commands
from mendq.cli.cost.calls import TRAIL_CHOICES, sort_symptoms_by_visibility
from mendq.cli.permissions import (
    LOOK_ACTIONS_BY_COMMAND,
    MESSAGES_ACTIONS_BY_COMMAND,
    OFFLINE_ACTIONS_BY_COMMAND,
    STEER_ACTIONS_BY_COMMAND,
)
from mendq.lint.judging import LINT_SEVERITY_BY_CLASS
from mendq.lint.rules import RULES
from mendq.model import lifecycle
from mendq.model.limits import Bounds, Timing
from mendq.model.other_transitions import TRANSITIONS_NOT_BY_FOLLOW_UP, TransitionActor
from mendq.model.queue_limits import RANGE_BY_ATTRIBUTE, RECEIVE_COUNT_KEY, RECEIVE_COUNT_RANGE
from mendq.model.severity_class import SeverityClass
from mendq.model.state import FINAL_STATES, STATES_UNDER_VERIFICATION, State, find_state_time_limit
from mendq.notifications.next_steps import (
    NEXT_STEP_BY_REFUSAL_CODE,
    NEXT_STEP_BY_STATE,
    NEXT_STEP_BY_SYMPTOM_AND_CODE,
    CommandSource,
)
from mendq.redrive import machine
from mendq.redrive.progress import FINAL_STAGES, Stage

# The page about a command, if it is not `docs/COMMAND.md`.
PAGE_BY_COMMAND = {
    "alarms": "runbooks/alarm_missing.md",
    "policy": "runbooks/access_denied.md#a-known-good-policy",
    "approve": "operate.md#approving",
    "rollback": "operate.md#undoing",
    "freeze": "operate.md#stopping-it",
    "show": "reading-a-case.md#reading-mendq-show",
    "drill": "operate.md#now-and-then",
}
# A standard queue and a FIFO queue: some symptoms occur on only one of them.
EXAMPLE_QUEUE_ARNS = (
    "arn:aws:sqs:us-east-1:123456789012:orders",
    "arn:aws:sqs:us-east-1:123456789012:orders.fifo",
)


def alarm_runbooks() -> str:
    """Return a list of the alarms, each with a link to its runbook. `mendq runbook` reads it."""
    alarm_lines: list[str] = []
    for alarm in (*NOTIFYING_ALARMS, *ALARMS_IN_COMPOSITES):
        page_link = link_pages([alarm.runbook_path], "docs/runbooks")
        alarm_lines.append(f"- `{alarm.alarm_name()}`: {page_link}")
    return "\n".join(("Alarms:", "", *sorted(alarm_lines)))


def next_steps() -> str:
    """Return a list of next steps for people: by the code of a refusal, then by a case's state."""
    names_and_next_steps = sorted(NEXT_STEP_BY_REFUSAL_CODE.items())
    for (symptom, code), next_step in NEXT_STEP_BY_SYMPTOM_AND_CODE.items():
        names_and_next_steps.append((f"{code}` of `{symptom}", next_step))
    for state in State:
        if NEXT_STEP_BY_STATE[state].sentence:
            names_and_next_steps.append((str(state), NEXT_STEP_BY_STATE[state]))
    step_lines: list[str] = []
    for name, next_step in names_and_next_steps:
        command = _format_command(next_step.command)
        step_lines.append(f"- `{name}`: {next_step.sentence} {command}".rstrip())
    return "\n".join(step_lines)


def _format_command(command: CommandSource) -> str:
    """Return a next step's command as Markdown code; empty if it has none.

    The example queue is `orders`.
    """
    if not isinstance(command, str):
        return format_as_code([command(EXAMPLE_QUEUE_ARNS[0])])
    return format_as_code([f"mendq {command} CASE"]) if command else ""


def lint_rules() -> str:
    """Return a table of Mendq's rules for cfn-lint that are about a symptom."""
    rows = [
        (format_as_code([rule.id]), link_pages([SYMPTOM_BY_NAME[rule.shortdesc].runbook], "docs"))
        for rule in RULES
    ]
    return make_table("rule|symptom", sorted(rows))


def queue_ranges() -> str:
    """Return a table of the numbers that SQS accepts for the attributes of a queue."""
    ranges = {**RANGE_BY_ATTRIBUTE, f"{RECEIVE_COUNT_KEY} of a RedrivePolicy": RECEIVE_COUNT_RANGE}
    rows = [(name, str(number_range)) for name, number_range in ranges.items()]
    return make_table("attribute|accepted values", rows)


def severity_classes() -> str:
    """Return a table of the severity classes, the worst first, with lint's severity of each."""
    rows = [
        (
            format_as_code([severity_class]),
            severity_class.meaning,
            LINT_SEVERITY_BY_CLASS[severity_class].value,
        )
        for severity_class in SeverityClass
    ]
    return make_table("class|what belongs there|`mendq lint` in CI", rows)


def symptom_classes() -> str:
    """Return a table with the class of each symptom and kind of evidence, the worst class first."""
    symptoms_and_kinds = [
        (symptom, kind) for symptom in CATALOGUE for kind in symptom.evidence_kinds
    ]
    symptoms_and_kinds.sort(key=lambda pair: pair[1].severity_class.rank)
    rows = [
        (
            format_as_code([kind.severity_class]),
            link_pages([symptom.runbook], "docs"),
            kind.text,
        )
        for symptom, kind in symptoms_and_kinds
    ]
    return make_table("class|symptom|evidence, if there are several kinds", rows)


def commands() -> str:
    """Return a table of all commands in the order of `mendq --help`."""
    command_group = get_command(app)
    assert isinstance(command_group, TyperGroup)  # noqa: S101 - mendq is a group of commands
    rows: list[tuple[str, str]] = []
    for command_name, command in command_group.commands.items():
        usage_text = f"`mendq {' '.join((command_name, *_list_arguments(command)))}`"
        page_path = PAGE_BY_COMMAND.get(command_name, f"{command_name}.md")
        if (ROOT / "docs" / page_path.partition("#")[0]).exists():
            usage_text = f"[{usage_text}]({page_path})"
        summary = " ".join((command.help or "").partition("\n\n")[0].split())
        if isinstance(command, TyperGroup):
            summary = f"{summary} ({format_as_code(command.commands)})"
        rows.append((usage_text, summary))
    return make_table("command|what it does", rows)


def examples() -> str:
    """Return a code block with the examples of every command's help."""
    command_examples = [
        "\n".join(list_examples(command.run_command.__doc__)) for command in list_commands()
    ]
    return "\n".join(("```sh", "\n\n".join(command_examples), "```"))


def _list_arguments(command: object) -> Iterator[str]:
    """Yield the arguments of a command as its usage shows them, such as `QUEUE` or `[QUEUE]`."""
    if not isinstance(command, TyperCommand):
        return
    for parameter in command.params:
        if parameter.param_type_name == "argument":
            name = (parameter.metavar or parameter.name or "").strip("{}[]").upper()
            yield name if parameter.required else f"[{name}]"


def blind_spots() -> str:
    """Return a table of the symptoms that CloudTrail does not show, or shows only in part.

    The table has a row for each choice of logged calls that `mendq cost` compares.
    """
    rows: list[tuple[str, str, str]] = []
    for trail_choice in TRAIL_CHOICES:
        sorted_symptoms = sort_symptoms_by_visibility(trail_choice, EXAMPLE_QUEUE_ARNS)
        hidden_symptom_links = _link_symptoms(sorted_symptoms.blind)
        rows.append(
            (trail_choice.name, hidden_symptom_links, _link_symptoms(sorted_symptoms.in_part))
        )
    return make_table("a trail that logs|does not show|shows in part", rows)


def _link_symptoms(symptom_names: Iterable[str]) -> str:
    return (
        link_pages([f"docs/runbooks/{symptom_name}.md" for symptom_name in symptom_names], "docs")
        or "-"
    )


def _make_state_diagram(arrows: Iterable[tuple[object, object, object]]) -> str:
    """Return a Mermaid state diagram. Each arrow is a state, the next state and a label."""
    arrow_lines: list[str] = []
    for state, next_state, label in arrows:
        label_suffix = f": {label}" if label else ""
        arrow_lines.append(f"    {state} --> {next_state}{label_suffix}")
    return "\n".join(["```mermaid", "stateDiagram-v2", *dict.fromkeys(arrow_lines), "```"])


def states() -> str:
    """Return a diagram of a case's states.

    Transitions of TRANSITIONS_NOT_BY_FOLLOW_UP that are possible in all STATES_UNDER_VERIFICATION
    are left out, because they are possible in many other states too.
    """
    arrows: list[tuple[object, object, object]] = []
    for transition in TRANSITIONS_NOT_BY_FOLLOW_UP:
        if not set(STATES_UNDER_VERIFICATION) <= set(transition.states_before):
            states_before = transition.states_before or ("[*]",)
            arrows.extend(
                (state, transition.state_after, transition.actor) for state in states_before
            )
    for follow_up_transition in lifecycle.FOLLOW_UP_TRANSITIONS:
        arrows.extend(
            (state, follow_up_transition.state_after, TransitionActor.FOLLOW_UP)
            for state in follow_up_transition.states_before
        )
    arrows.extend((state, "[*]", "") for state in State if state in FINAL_STATES)
    return _make_state_diagram(arrows)


def transitions() -> str:
    """Return a table of a case's transitions: those of follow_up come after all others."""
    rows: list[tuple[object, ...]] = []
    for transition in TRANSITIONS_NOT_BY_FOLLOW_UP:
        states_before = format_as_code(transition.states_before) or "opens"
        rows.append(
            (states_before, f"`{transition.state_after}`", transition.actor, "", transition.because)
        )
    for follow_up_transition in lifecycle.FOLLOW_UP_TRANSITIONS:
        actor = TransitionActor.FOLLOW_UP
        rows.append(
            (
                format_as_code(follow_up_transition.states_before),
                f"`{follow_up_transition.state_after}`",
                actor,
                follow_up_transition.condition,
                follow_up_transition.because,
            )
        )
    return make_table("out of|into|who|when|because", rows)


def state_limits() -> str:
    """Return a table of the states with a time limit, and a line with the final states.

    Each row has the state, the longest time in that state with default settings, and the next
    state.
    """
    rows: list[tuple[str, str, str]] = []
    for state in State:
        state_time_limit = find_state_time_limit(state, Timing())
        if state_time_limit:
            next_states = [
                follow_up_transition.state_after
                for follow_up_transition in lifecycle.FOLLOW_UP_TRANSITIONS
                if state in follow_up_transition.states_before
            ]
            hours_text = f"{state_time_limit.total_seconds() / 3600:g} h"
            rows.append((f"`{state}`", hours_text, f"`{next_states[-1]}`"))
    final_states = format_as_code(state for state in State if state in FINAL_STATES)
    return f"{make_table('state|longest|then', rows)}\n\nFinal: {final_states}."


def stages() -> str:
    """Return a diagram of the stages of a redrive."""
    arrows: list[tuple[object, object, object]] = [("[*]", Stage.CANARY, "")]
    for decision_row in machine.DECISION_TABLE:
        stages_before = [
            stage for stage in decision_row.stages if decision_row.next_stage not in {None, stage}
        ]
        arrows.extend((stage, decision_row.next_stage, "") for stage in stages_before)
    arrows.extend((stage, "[*]", "") for stage in FINAL_STAGES)
    return _make_state_diagram(arrows)


def stage_rows() -> str:
    """Return a table of what one run of the redrive Lambda does, by stage and condition."""
    rows: list[tuple[object, ...]] = []
    for decision_row in machine.DECISION_TABLE:
        next_stage_text = f"`{decision_row.next_stage}`" if decision_row.next_stage else ""
        rows.append(
            (
                format_as_code(decision_row.stages),
                decision_row.condition,
                decision_row.action,
                next_stage_text,
            )
        )
    return make_table("at|when|it does|then", rows)


def redrive_bounds() -> str:
    """Return a table of the limits of a redrive (`Bounds`) with their default values."""
    rows = [(f"`{bound_name}`", f"{value:,}") for bound_name, value in asdict(Bounds()).items()]
    return make_table("bound|as shipped", rows)


def notifying_alarms() -> str:
    """Return a table of the alarms that notify people directly."""
    rows = [_make_alarm_row(alarm, alarm.severity) for alarm in NOTIFYING_ALARMS]
    return make_table("alarm|topic|fires when|type first|read", rows)


def essential_alarms() -> str:
    """Return the names of the alarms that exist with every value of the setting `alarms`."""
    always_created_alarms = [
        alarm for alarm in (*NOTIFYING_ALARMS, *ALARMS_IN_COMPOSITES) if alarm.is_essential
    ]
    return format_as_code(alarm.alarm_name() for alarm in always_created_alarms)


def watched_alarms() -> str:
    """Return a table of the alarms that notify people only through a composite alarm."""
    rows = [_make_alarm_row(alarm) for alarm in dict.fromkeys(ALARMS_IN_COMPOSITES)]
    return make_table("alarm|fires when|type first|read", rows)


def _make_alarm_row(alarm: AlarmDescription, *topic: object) -> tuple[object, ...]:
    """Return the table row of an alarm. `topic` is empty, or the topic that the alarm notifies."""
    return (
        f"`{alarm.alarm_name()}`",
        *topic,
        alarm.firing_condition,
        f"`{alarm.command}`",
        link_pages([alarm.runbook_path], "docs"),
    )


def alarm_meanings() -> str:
    """Return a table of what each notifying alarm means, with a link to its runbook.

    Alarms with the same meaning and runbook share a row.
    """
    alarm_names_by_meaning = defaultdict[tuple[str, str], list[str]](list)
    for alarm in NOTIFYING_ALARMS:
        alarm_names_by_meaning[alarm.impact, alarm.runbook_path].append(alarm.alarm_name())
    rows: list[tuple[str, str, str]] = []
    for (impact, runbook_path), alarm_names in alarm_names_by_meaning.items():
        runbook_title = (ROOT / runbook_path).read_text().partition("\n")[0].strip("# ")
        rows.append(
            (
                format_as_code(alarm_names),
                impact,
                f"[{runbook_title}]({runbook_path.removeprefix('docs/')})",
            )
        )
    return make_table("you got|it means|go on with", rows)


def lambdas() -> str:
    """Return the construct ids of all Lambdas as Markdown code, sorted."""
    return format_as_code(sorted(lambda_row.handler.construct_id for lambda_row in LAMBDA_ROWS))


def policy(name: str) -> str:
    """Return an IAM policy for operators as a JSON block. `name` is look, steer or record."""
    return f"```json\n{json.dumps(getattr(permissions, f'make_{name}_policy')(), indent=2)}\n```"


def commands_by_policy() -> str:
    """Return a table of the operators' IAM policies, with the commands that need each."""
    messages_policy_text = (
        "look, and rights on the messages ([which](redrive.md#what-to-know-before))"
    )
    rows = [
        ("look", format_as_code(LOOK_ACTIONS_BY_COMMAND)),
        ("look and steer", format_as_code(STEER_ACTIONS_BY_COMMAND)),
        (messages_policy_text, format_as_code(MESSAGES_ACTIONS_BY_COMMAND)),
        ("[record](record.md)", format_as_code(["drill --record DIR"])),
        ("none", format_as_code(OFFLINE_ACTIONS_BY_COMMAND)),
    ]
    return make_table("policy|commands", rows)


def rights() -> str:
    """Return a table of the IAM actions that each command needs, without offline commands."""
    actions_of_record_policy: list[str] = []
    for statement in permissions.make_record_policy()["Statement"]:
        actions_of_record_policy.extend(statement["Action"])
    actions_by_command = {
        **LOOK_ACTIONS_BY_COMMAND,
        **STEER_ACTIONS_BY_COMMAND,
        **MESSAGES_ACTIONS_BY_COMMAND,
        "drill --record DIR": actions_of_record_policy,
    }
    rows = [
        (f"`mendq {command_name}`", format_as_code(sorted(actions)))
        for command_name, actions in actions_by_command.items()
    ]
    return make_table("command|asks", rows)
