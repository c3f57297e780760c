"""`mendq patch CASE --template FILE`: show how to set Mendq's fix in the queue's template."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from importlib import import_module
from typing import TYPE_CHECKING, Annotated

import typer

from mendq.aws.errors import QueueGone
from mendq.aws.queue import read_queue_attributes, read_tags_if_allowed
from mendq.cli.commands import CASE_SCAN_ACTIONS, QUEUE_ATTRIBUTES_ACTIONS, CommandKind, command
from mendq.cli.exit_codes import CommandError, Exit
from mendq.cli.invocation import Invocation
from mendq.cli.look.case_view import find_case, find_plan_transition
from mendq.cli.look.show import CaseId
from mendq.cli.output import Output
from mendq.heal.undo import list_writes
from mendq.lint.files import is_terraform_argument
from mendq.lint.template import NotATemplate
from mendq.model.case import Case
from mendq.model.state import State
from mendq.model.steps import CreateDlq, has_value_in_queue
from mendq.model.tags import find_cloudformation_resource
from mendq.notifications.change_lines import format_attribute_value
from mendq.notifications.configuration import NOT_SET_TEXT, describe_differences

if TYPE_CHECKING:
    from mendq.lint.patch import PatchResult

SCHEMA_VERSION = 1
_STATES_BEFORE_CHANGE = frozenset({State.OBSERVED, State.PROPOSED, State.APPROVED})
_TEMPLATE_HELP = "CloudFormation, cdk.out, a Terraform plan's JSON, a .tf file or its folder."
_RESOURCE_HELP = "Logical id or address of the queue, where the template does not tell."


@command(
    3, CommandKind.LOOKING, CASE_SCAN_ACTIONS | QUEUE_ATTRIBUTES_ACTIONS | {"sqs:ListQueueTags"}
)
def patch(
    call: Invocation,
    case_id: CaseId,
    template: Annotated[str, typer.Option(metavar="FILE", help=_TEMPLATE_HELP)],
    resource: Annotated[str, typer.Option(metavar="NAME", help=_RESOURCE_HELP)] = "",
) -> Exit:
    """Show the template lines that would keep Mendq's fix.

    Edits no file. Exits with 4 if the template has no such queue, with 1 if several of its queues
    may be meant or a line must be written by hand, with 3 if a person has set another value since.

    Examples:
      mendq patch orders --template template.yaml
      mendq patch orders --template sqs.tf --resource aws_sqs_queue.orders
    """
    with call.out.show_waiting("reading the case and its queue"):
        case_history = find_case(call.account, case_id)
        case = case_history[-1]
        has_changed_queue = bool(list_writes(case_history))
        written_value_by_attribute = _find_written_values(case_history)
        overriding_value_by_attribute: dict[str, str] = {}
        owning_stack_and_resource: dict[str, str] = {}
        if written_value_by_attribute:
            if has_changed_queue:
                overriding_value_by_attribute = _read_overriding_values(
                    call, case_history, written_value_by_attribute
                )
            owning_stack_and_resource = find_cloudformation_resource(
                read_tags_if_allowed(call.account.clients, case.queue_arn)
            )
    kept_value_by_attribute = {
        name: value
        for name, value in written_value_by_attribute.items()
        if name not in overriding_value_by_attribute
    }
    patch_result = None
    if kept_value_by_attribute:
        patch_result = _patch_template(
            template,
            case.queue_arn,
            kept_value_by_attribute,
            owning_stack_and_resource,
            resource,
        )
    template_changes = patch_result.changes if patch_result else []
    call.out.print_json(
        {
            "schema": SCHEMA_VERSION,
            "case_id": case.case_id,
            "queue_arn": case.queue_arn,
            "state": str(case.state),
            "is_made": has_changed_queue,
            "changes": [asdict(template_change) for template_change in template_changes],
            "overridden": overriding_value_by_attribute,
            "diff": patch_result.diff if patch_result else [],
        }
    )
    _print_patch(
        call.out,
        case,
        patch_result,
        overriding_value_by_attribute,
        has_changed_queue=has_changed_queue,
    )
    if overriding_value_by_attribute:
        return Exit.OVERRIDDEN
    needs_manual_change = any(
        template_change.is_left_to_people for template_change in template_changes
    )
    return Exit.FAILED if needs_manual_change else Exit.DONE


def _find_written_values(case_history: Sequence[Case]) -> dict[str, str]:
    """Return the values that the case wrote, or would write, by attribute.

    A case that has written nothing would write the values of its plan, but only while it is in a
    state of _STATES_BEFORE_CHANGE. In other states, and after a rollback, the result is empty.
    Attributes whose value cannot be read from the queue are left out.
    """
    case = case_history[-1]
    if case.state is State.ROLLED_BACK:
        return {}
    value_by_attribute = {
        queue_write.attribute: queue_write.after for queue_write in list_writes(case_history)
    }
    if not value_by_attribute and case.state in _STATES_BEFORE_CHANGE:
        value_by_attribute = {
            step["attribute"]: step["after"] for step in find_plan_transition(case_history).steps
        }
    return {name: value for name, value in value_by_attribute.items() if has_value_in_queue(name)}


def _read_overriding_values(
    call: Invocation, case_history: Sequence[Case], written_value_by_attribute: Mapping[str, str]
) -> dict[str, str]:
    """Return the present values of attributes that someone else has changed since Mendq wrote them.

    The result is by attribute. `written_value_by_attribute` has the values that Mendq wrote. A DLQ
    that Mendq has made is not compared. Raises CommandError if the queue was deleted.
    """
    try:
        current_value_by_attribute = read_queue_attributes(
            call.account.clients, case_history[-1].queue_arn
        )
    except QueueGone as error:
        message = f"the queue {case_history[-1].queue_arn} is gone: there is nothing to patch"
        raise CommandError(message, Exit.NOT_FOUND) from error
    overridden_attributes = {
        queue_write.attribute
        for queue_write in list_writes(case_history)
        if queue_write.was_overridden
    }
    overriding_value_by_attribute = {}
    for name, written_value in written_value_by_attribute.items():
        if name == CreateDlq.attribute:
            continue
        current_value = current_value_by_attribute.get(name, "")
        if name in overridden_attributes or describe_differences(
            {name: written_value}, {name: current_value}
        ):
            overriding_value_by_attribute[name] = current_value
    return overriding_value_by_attribute


def _patch_template(
    template: str,
    queue_arn: str,
    value_by_attribute: Mapping[str, str],
    owning_stack_and_resource: Mapping[str, str],
    resource: str,
) -> PatchResult:
    """Return the changes that give the queue these values in its template.

    Args:
        template: the template's file name.
        queue_arn: the queue's ARN.
        value_by_attribute: the values that the template must set, by attribute.
        owning_stack_and_resource: `stack` and `resource` (the logical id) as the queue's tags
            name them; empty if they name none.
        resource: the queue's logical id or address as the operator gave it, or empty.

    Raises CommandError if the template cannot be read, if it does not name exactly one such queue,
    or if a package that reads templates is not installed.
    """
    try:
        from mendq.lint import patch as lint_patch  # noqa: PLC0415 - of the extra `lint`

        module_name = "hcl" if is_terraform_argument(template) else "patch"
        make_patch: Callable[..., PatchResult] = import_module(
            f"mendq.lint.{module_name}"
        ).make_patch
    except ModuleNotFoundError as error:
        message = f"{error.name} is not installed: in a clone of Mendq, pip install '.[lint]'"
        raise CommandError(message, Exit.USAGE) from error
    wanted_values = lint_patch.WantedValues(
        queue_arn,
        value_by_attribute,
        owning_stack_and_resource.get("stack"),
        owning_stack_and_resource.get("resource"),
        resource,
    )
    try:
        return make_patch(template, wanted_values)
    except lint_patch.QueueNotFound as error:
        raise CommandError(str(error), Exit.NOT_FOUND) from error
    except lint_patch.SeveralQueuesFit as error:
        raise CommandError(str(error), Exit.FAILED) from error
    except OSError as error:
        message = (
            f"{error.filename or template} cannot be read: {error.strerror or 'it is not a file'}"
        )
        raise CommandError(message, Exit.USAGE) from error
    except (NotATemplate, ValueError) as error:
        raise CommandError(str(error), Exit.USAGE) from error


def _print_patch(
    out: Output,
    case: Case,
    patch_result: PatchResult | None,
    overriding_value_by_attribute: Mapping[str, str],
    *,
    has_changed_queue: bool,
) -> None:
    """Print the values that someone else has set, the template's changes, and the diff."""
    out.say(f"{case.case_id}: {case.state}{'' if has_changed_queue else ', not made'}", "bold")
    for name, value in overriding_value_by_attribute.items():
        overriding_value_text = (
            f"{name}: somebody has set {format_attribute_value(name, value)} since, which stays"
        )
        out.say_indented(overriding_value_text, "yellow")
    if patch_result is None:
        if overriding_value_by_attribute:
            out.say("nothing to patch")
        else:
            out.say("nothing of it stands there: nothing to patch")
        return
    for template_change in patch_result.changes:
        place_text = (
            template_change.file
            if template_change.line is None
            else f"{template_change.file}, line {template_change.line}"
        )
        out.say(f"{place_text}: {template_change.path}")
        found_by_text = f"found by {template_change.found_by}" if template_change.found_by else ""
        out.say_indented(f"{template_change.resource}, {found_by_text}", "dim")
        out.say_indented(
            f"is: {NOT_SET_TEXT if template_change.old is None else template_change.old}"
        )
        out.say_indented(f"to be: {template_change.new}")
        if template_change.note:
            out.say_indented(template_change.note, "yellow")
    if patch_result.diff:
        out.say("")
    out.say_diff(patch_result.diff)
