"""`mendq patch CASE --template FILE`: lines for whoever owns the template; edits nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from importlib import import_module
from typing import TYPE_CHECKING, Annotated

import typer

from mendq.aws.errors import QueueGone
from mendq.aws.queue import attributes_of, tags_if_readable
from mendq.cli.commands import EVERY_CASE, QUEUE, Kind, command
from mendq.cli.exit_codes import CommandError, Exit
from mendq.cli.invocation import Invocation
from mendq.cli.look.case_view import find, plan_of
from mendq.cli.look.show import CaseId
from mendq.cli.output import Output
from mendq.heal.undo import written_by
from mendq.lint.template import NotATemplate
from mendq.model.case import Case, State
from mendq.model.limits import cloudformation_resource
from mendq.model.steps import CreateDlq, leaves_a_value
from mendq.notifications.change_lines import with_unit
from mendq.notifications.configuration import NOT_SET, differences

if TYPE_CHECKING:
    from mendq.lint.patch import PatchResult

SCHEMA = 1
_NOT_MADE = frozenset({State.OBSERVED, State.PROPOSED, State.APPROVED})
_TEMPLATE = "CloudFormation, a cdk.out folder, a Terraform plan's JSON, or a .tf file."
_RESOURCE = "Logical id or address of the queue, where the template does not tell."


@command(3, Kind.LOOKING, EVERY_CASE | QUEUE | {"sqs:ListQueueTags"})
def patch(
    call: Invocation,
    case_id: CaseId,
    template: Annotated[str, typer.Option(metavar="FILE", help=_TEMPLATE)],
    resource: Annotated[str, typer.Option(metavar="NAME", help=_RESOURCE)] = "",
) -> Exit:
    """The lines of a template that say what Mendq set, for its owner; edits nothing.

    Exits with 4 where the template has no such queue, with 1 where several may be it or a line has
    to be written by hand, with 3 where a person has set another value since.

    Examples:
      mendq patch orders --template template.yaml
      mendq patch orders --template sqs.tf --resource aws_sqs_queue.orders
    """
    with call.out.show_waiting("reading the case and its queue"):
        history = find(call.account, case_id)
        case, values, made = history[-1], _values(history), bool(written_by(history))
        theirs = _theirs(call, history, values) if made and values else {}
        owner = (
            cloudformation_resource(tags_if_readable(call.account.clients, case.queue_arn))
            if values
            else {}
        )
    wanted = {name: each for name, each in values.items() if name not in theirs}
    found = _patched(template, case.queue_arn, wanted, owner, resource) if wanted else None
    changes = found.changes if found else []
    about = {"case_id": case.case_id, "queue_arn": case.queue_arn, "state": str(case.state)}
    said = {**about, "is_made": made, "changes": [asdict(each) for each in changes]}
    diff = found.diff if found else []
    call.out.print_json({"schema": SCHEMA, **said, "overridden": theirs, "diff": diff})
    _show(call.out, case, found, theirs, made=made)
    if theirs:
        return Exit.OVERRIDDEN
    return Exit.FAILED if any(each.is_left_to_people for each in changes) else Exit.DONE


def _values(history: Sequence[Case]) -> dict[str, str]:
    """What stands there by the case, or would: of what was taken back, or came to nothing, none."""
    case = history[-1]
    if case.state is State.ROLLED_BACK:
        return {}
    values = {each.attribute: each.after for each in written_by(history)}
    if not values and case.state in _NOT_MADE:
        values = {each["attribute"]: each["after"] for each in plan_of(history).steps}
    return {name: each for name, each in values.items() if leaves_a_value(name)}


def _theirs(call: Invocation, history: Sequence[Case], values: Mapping[str, str]) -> dict[str, str]:
    """What somebody else has set since; raises CommandError where the queue is gone."""
    try:
        now = attributes_of(call.account.clients, history[-1].queue_arn)
    except QueueGone as gone:
        line = f"the queue {history[-1].queue_arn} is gone: there is nothing to patch"
        raise CommandError(line, Exit.NOT_FOUND) from gone
    over = {each.attribute for each in written_by(history) if each.was_overridden}
    return {
        name: now.get(name, "")
        for name, ours in values.items()
        if name != CreateDlq.attribute
        and (name in over or differences({name: ours}, {name: now.get(name, "")}))
    }


def _patched(
    template: str, queue_arn: str, values: Mapping[str, str], owner: Mapping[str, str], named: str
) -> PatchResult:
    """Raises CommandError."""
    try:
        from mendq.lint import patch as written  # noqa: PLC0415 - cfn-lint takes seconds

        module = "hcl" if template.endswith(".tf") else "patch"
        patched: Callable[..., PatchResult] = import_module(f"mendq.lint.{module}").make_patch
    except ModuleNotFoundError as missing:
        line = f"{missing.name} is not installed: in a clone of Mendq, pip install '.[lint]'"
        raise CommandError(line, Exit.USAGE) from missing
    wanted = written.WantedValues(
        queue_arn, values, owner.get("stack"), owner.get("resource"), named
    )
    try:
        return patched(template, wanted)
    except written.NotThere as error:
        raise CommandError(str(error), Exit.NOT_FOUND) from error
    except written.SeveralFit as error:
        raise CommandError(str(error), Exit.FAILED) from error
    except OSError as error:
        line = f"{error.filename or template} cannot be read: {error.strerror or 'it is no file'}"
        raise CommandError(line, Exit.USAGE) from error
    except (NotATemplate, ValueError) as error:
        raise CommandError(str(error), Exit.USAGE) from error


def _show(
    out: Output, case: Case, found: PatchResult | None, theirs: Mapping[str, str], *, made: bool
) -> None:
    out.say(f"{case.case_id}: {case.state}{'' if made else ', not made'}", "bold")
    for name, now in theirs.items():
        out.say_indented(
            f"{name}: somebody has set {with_unit(name, now)} since, which stays", "yellow"
        )
    if found is None:
        out.say("nothing to patch" if theirs else "nothing of it stands there: nothing to patch")
        return
    for each in found.changes:
        where = each.file if each.line is None else f"{each.file}, line {each.line}"
        out.say(f"{where}: {each.path}")
        found_by = f"found by {each.found_by}" if each.found_by else ""
        out.say_indented(f"{each.resource}, {found_by}", "dim")
        out.say_indented(f"is: {NOT_SET if each.old is None else each.old}")
        out.say_indented(f"to be: {each.new}")
        if each.note:
            out.say_indented(each.note, "yellow")
    if found.diff:
        out.say("")
    for line in found.diff:
        out.say_verbatim(line)
