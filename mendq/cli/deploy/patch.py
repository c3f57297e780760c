"""`mendq patch CASE --template FILE`: show how to set Mendq's fix in the queue's template."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from importlib import import_module
from typing import TYPE_CHECKING, Annotated

import typer

from mendq.aws.errors import QueueGone
from mendq.aws.queue import attributes_of, tags_if_readable
from mendq.cli.commands import CASE_SCAN_ACTIONS, QUEUE_ATTRIBUTES_ACTIONS, CommandKind, command
from mendq.cli.exit_codes import CommandError, Exit
from mendq.cli.invocation import Invocation
from mendq.cli.look.case_view import find_case, find_plan
from mendq.cli.look.show import CaseId
from mendq.cli.output import Output
from mendq.heal.undo import list_writes
from mendq.lint.template import NotATemplate
from mendq.model.case import Case, State
from mendq.model.steps import CreateDlq, has_value_in_queue
from mendq.model.tags import cloudformation_resource
from mendq.notifications.change_lines import with_unit
from mendq.notifications.configuration import NOT_SET, differences

if TYPE_CHECKING:
    from mendq.lint.patch import PatchResult

SCHEMA = 1
_NOT_MADE = frozenset({State.OBSERVED, State.PROPOSED, State.APPROVED})
_TEMPLATE = "CloudFormation, a cdk.out folder, a Terraform plan's JSON, or a .tf file."
_RESOURCE = "Logical id or address of the queue, where the template does not tell."


@command(
    3, CommandKind.LOOKING, CASE_SCAN_ACTIONS | QUEUE_ATTRIBUTES_ACTIONS | {"sqs:ListQueueTags"}
)
def patch(
    call: Invocation,
    case_id: CaseId,
    template: Annotated[str, typer.Option(metavar="FILE", help=_TEMPLATE)],
    resource: Annotated[str, typer.Option(metavar="NAME", help=_RESOURCE)] = "",
) -> Exit:
    """Show the template lines that set what Mendq set; edits nothing.

    Exits with 4 if the template has no such queue, with 1 if several queues of it may be meant or a
    line must be written by hand, with 3 if a person has set another value since.

    Examples:
      mendq patch orders --template template.yaml
      mendq patch orders --template sqs.tf --resource aws_sqs_queue.orders
    """
    with call.out.show_waiting("reading the case and its queue"):
        history = find_case(call.account, case_id)
        case = history[-1]
        is_made = bool(list_writes(history))
        values = _values_of(history)
        overridden: dict[str, str] = {}
        owner: dict[str, str] = {}
        if values:
            if is_made:
                overridden = _overridden_values(call, history, values)
            owner = cloudformation_resource(tags_if_readable(call.account.clients, case.queue_arn))
    own_values = {name: value for name, value in values.items() if name not in overridden}
    patched = None
    if own_values:
        patched = _patch_template(template, case.queue_arn, own_values, owner, resource)
    changes = patched.changes if patched else []
    call.out.print_json(
        {
            "schema": SCHEMA,
            "case_id": case.case_id,
            "queue_arn": case.queue_arn,
            "state": str(case.state),
            "is_made": is_made,
            "changes": [asdict(change) for change in changes],
            "overridden": overridden,
            "diff": patched.diff if patched else [],
        }
    )
    _show(call.out, case, patched, overridden, is_made=is_made)
    if overridden:
        return Exit.OVERRIDDEN
    has_manual_change = any(change.is_left_to_people for change in changes)
    return Exit.FAILED if has_manual_change else Exit.DONE


def _values_of(history: Sequence[Case]) -> dict[str, str]:
    """Return the values that the case wrote or would write, by attribute.

    Empty if the case was rolled back, or ended without a change. Steps that leave no value in an
    attribute are left out.
    """
    case = history[-1]
    if case.state is State.ROLLED_BACK:
        return {}
    values = {write.attribute: write.after for write in list_writes(history)}
    if not values and case.state in _NOT_MADE:
        values = {step["attribute"]: step["after"] for step in find_plan(history).steps}
    return {name: value for name, value in values.items() if has_value_in_queue(name)}


def _overridden_values(
    call: Invocation, history: Sequence[Case], values: Mapping[str, str]
) -> dict[str, str]:
    """Return the queue's current values that somebody else has set since Mendq wrote, by attribute.

    Raises CommandError if the queue was deleted.
    """
    try:
        current = attributes_of(call.account.clients, history[-1].queue_arn)
    except QueueGone as gone:
        line = f"the queue {history[-1].queue_arn} is gone: there is nothing to patch"
        raise CommandError(line, Exit.NOT_FOUND) from gone
    recorded = {write.attribute for write in list_writes(history) if write.was_overridden}
    overridden = {}
    for name, own_value in values.items():
        if name == CreateDlq.attribute:
            continue
        value = current.get(name, "")
        if name in recorded or differences({name: own_value}, {name: value}):
            overridden[name] = value
    return overridden


def _patch_template(
    template: str,
    queue_arn: str,
    values: Mapping[str, str],
    owner: Mapping[str, str],
    resource: str,
) -> PatchResult:
    """Return the changes that set `values` in the queue's template.

    Args:
        owner: the CloudFormation stack and logical id from the queue's tags, if there are any.
        resource: the queue's logical id or address as the operator gave it, or empty.

    Raises CommandError if the template cannot be read, or does not name exactly one such queue.
    """
    try:
        from mendq.lint import patch as lint_patch  # noqa: PLC0415 - cfn-lint takes seconds

        module = "hcl" if template.endswith(".tf") else "patch"
        make_patch: Callable[..., PatchResult] = import_module(f"mendq.lint.{module}").make_patch
    except ModuleNotFoundError as missing:
        line = f"{missing.name} is not installed: in a clone of Mendq, pip install '.[lint]'"
        raise CommandError(line, Exit.USAGE) from missing
    wanted = lint_patch.WantedValues(
        queue_arn, values, owner.get("stack"), owner.get("resource"), resource
    )
    try:
        return make_patch(template, wanted)
    except lint_patch.QueueNotFound as error:
        raise CommandError(str(error), Exit.NOT_FOUND) from error
    except lint_patch.SeveralQueuesFit as error:
        raise CommandError(str(error), Exit.FAILED) from error
    except OSError as error:
        line = f"{error.filename or template} cannot be read: {error.strerror or 'it is no file'}"
        raise CommandError(line, Exit.USAGE) from error
    except (NotATemplate, ValueError) as error:
        raise CommandError(str(error), Exit.USAGE) from error


def _show(
    out: Output,
    case: Case,
    patched: PatchResult | None,
    overridden: Mapping[str, str],
    *,
    is_made: bool,
) -> None:
    """Print the changed lines and the diff, and what somebody else has set since."""
    out.say(f"{case.case_id}: {case.state}{'' if is_made else ', not made'}", "bold")
    for name, value in overridden.items():
        line = f"{name}: somebody has set {with_unit(name, value)} since, which stays"
        out.say_indented(line, "yellow")
    if patched is None:
        if overridden:
            out.say("nothing to patch")
        else:
            out.say("nothing of it stands there: nothing to patch")
        return
    for change in patched.changes:
        place = change.file if change.line is None else f"{change.file}, line {change.line}"
        out.say(f"{place}: {change.path}")
        found_by = f"found by {change.found_by}" if change.found_by else ""
        out.say_indented(f"{change.resource}, {found_by}", "dim")
        out.say_indented(f"is: {NOT_SET if change.old is None else change.old}")
        out.say_indented(f"to be: {change.new}")
        if change.note:
            out.say_indented(change.note, "yellow")
    if patched.diff:
        out.say("")
    for line in patched.diff:
        out.say_verbatim(line)
