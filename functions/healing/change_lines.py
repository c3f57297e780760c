"""A change to a queue as people read it and type it: steps, commands, template lines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from functions.healing.case import SILENT_DAYS, Case
from functions.healing.dead_letter_steps import CreateDeadLetters
from functions.healing.dead_letters import attributes_of_new
from functions.healing.difference import NOT_SET, as_json, differences
from functions.healing.every_step import leaves_a_value
from functions.healing.facts import Facts
from functions.healing.look_commands import redrive_preview
from functions.healing.next_lines import mendq_command
from functions.healing.plain_text import (
    Section,
    command_line,
    first_of,
    plain,
    value,
)
from functions.healing.queue_names import arn_of
from functions.healing.states import State
from functions.healing.tags import deployed_by
from functions.healing.template_lines import NUMBER, template_lines
from functions.healing.write_commands import (
    create_queue_command,
    delete_queue_command,
    set_command,
)

_MOST_STEPS = 4
_RETENTION = "MessageRetentionPeriod"
_TRIED = frozenset(
    {State.APPLIED, State.APPLIED_UNPROVEN, State.VERIFIED, State.WATCHING, State.INEFFECTIVE}
)
_SECONDS = re.compile(r"VisibilityTimeout|MessageRetentionPeriod|[A-Za-z]{1,64}Seconds")


def with_unit(attribute: str, text: str, most: int = 300) -> str:
    """An attribute's value in at most `most` characters: its unit, or compact JSON, with it."""
    if not (NUMBER.fullmatch(text) and _SECONDS.fullmatch(attribute)):
        return as_json(attribute, text, most) or value(text, most)
    days, rest = divmod(int(text), 86_400)
    return f"{text} s ({days} d)" if days and not rest else f"{text} s"


def change(case: Case, attributes: Mapping[str, str]) -> tuple[str, ...]:
    """What was changed or would be, and the command for it where a person may want it."""
    if not case.steps:
        return ("none was made, so there is nothing to undo",)
    steps = first_of((line for each in case.steps for line in step_lines(each)), _MOST_STEPS)
    commands = map(command_line, _commands(case, attributes))
    if case.came_from in _TRIED:
        return ("made by Mendq:", *steps)
    if case.state is State.PROPOSED:
        return ("proposed, not made:", *steps, "by hand:", *commands)
    if case.state is State.CONTESTED:
        return ("not made, so there is nothing to undo:", *steps)
    would = "not made, so there is nothing to undo; it would have been:"
    return (would, *steps, "by hand, if you decide so:", *commands)


def _commands(case: Case, attributes: Mapping[str, str]) -> Iterator[str]:
    """What a person would run in place of Mendq: first the queue that is made, then the rest."""
    source = Facts(case.queue_arn, attributes, {})
    for made in _made(case):
        yield create_queue_command(made, attributes_of_new(source, made))
    yield from map(redrive_preview, _sent_back(case))
    if values := _values(case, "after"):
        yield set_command(case.queue_arn, values)


def step_lines(step: Mapping[str, str]) -> tuple[str, ...]:
    """A step as people read it: both values; of a policy, what goes and what comes."""
    name, before, after = step["attribute"], step["before"], step["after"]
    if name == "Policy" and (lines := differences({name: before}, {name: after})):
        return lines
    shown = (with_unit(name, each) if each else NOT_SET for each in (before, after))
    return (f"{plain(name, 64)}: {' -> '.join(shown)}",)


def _values(case: Case, which: str) -> dict[str, str]:
    """Of the attributes that the queue itself has."""
    return {each["attribute"]: each[which] for each in case.steps if _has_value(each)}


def _made(case: Case) -> tuple[str, ...]:
    return tuple(each["after"] for each in case.steps if _is_made(each))


def _is_made(step: Mapping[str, str]) -> bool:
    """Whether it makes another queue."""
    return step["attribute"] == CreateDeadLetters.attribute and arn_of(step["after"]) is not None


def _sent_back(case: Case) -> tuple[str, ...]:
    """The queues that letters go back to."""
    of_letters = (each for each in case.steps if not leaves_a_value(each["attribute"]))
    return tuple(each["after"] for each in of_letters if arn_of(each["after"]) is not None)


def _has_value(step: Mapping[str, str]) -> bool:
    """Whether an attribute of the queue itself holds it."""
    return leaves_a_value(step["attribute"]) and not _is_made(step)


def undo(case: Case, attributes: Mapping[str, str]) -> tuple[str, ...]:
    """The command that undoes it, if there is anything; somebody else's value is kept."""
    made = case.came_from in _TRIED
    if not case.steps or not (made or case.state is State.PROPOSED):
        return ()
    if made and not attributes:
        return ("the queue's attributes are not known now: look before you undo",)
    theirs = [
        name
        for name, ours in _values(case, "after").items()
        if made and differences({name: ours}, {name: attributes.get(name, "")})
    ]
    undone = {name: text for name, text in _values(case, "before").items() if name not in theirs}
    kept = (f"{plain(each, 64)} holds another value now: not undone" for each in theirs)
    command = command_line(set_command(case.queue_arn, undone)) if undone else ""
    losing = "this deletes the messages that are older" if _RETENTION in undone else ""
    when = _when_to_undo(case, made=made) if command else ()
    return (
        *first_of(kept, _MOST_STEPS),
        *when,
        *filter(None, (command, losing)),
        *(line for each in _made(case) for line in _keeping(each)),
        *(line for _ in _sent_back(case) for line in _stopping(case)),
    )


def _keeping(made: str) -> tuple[str, str]:
    said = "the queue that was made is kept; once it is empty and nobody names it:"
    return said, command_line(delete_queue_command(made))


def _stopping(case: Case) -> tuple[str, str]:
    return "letters that went back stay there; what stops the others:", mendq_command(
        "roll-back", case
    )


def _when_to_undo(case: Case, *, made: bool) -> tuple[str, ...]:
    if not made:
        return ("once the change is made:",)
    return (mendq_command("roll-back", case), "or by hand:")


def template(
    case: Case, attributes: Mapping[str, str], tags: Mapping[str, str]
) -> tuple[Section, ...]:
    """Both values as the owner of the queue would write them; of what is contested alone."""
    if State.CONTESTED not in (case.state, case.code):
        return ()
    owner_of = deployed_by(tags)
    stack, resource = (owner_of.get(each) for each in ("stack", "resource"))
    of_stack = f"CloudFormation stack {value(stack, 128)}" if stack else "no CloudFormation stack"
    owner = f"owner by its tags: {of_stack}" + (f", {value(resource, 255)}" if resource else "")
    lines = (
        line
        for step in [each for each in case.steps if _has_value(each)][:_MOST_STEPS]
        for whose, text in (("Mendq's", step["after"]), ("theirs", _theirs(step, attributes)))
        for line in template_lines(whose, step["attribute"], text)
    )
    asks = (
        "put the value you want there, or the next deployment brings back its own",
        f"Mendq leaves these settings alone for {SILENT_DAYS} days",
    )
    return (Section("TEMPLATE", (owner, *asks, *lines)),)


def _theirs(step: Mapping[str, str], attributes: Mapping[str, str]) -> str:
    return attributes.get(step["attribute"], "") if attributes else step["before"]
