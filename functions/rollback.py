"""Roll back a case at an operator's request."""

from __future__ import annotations

from functions.entry import Event, LambdaInvocation, entry
from mendq.cases.context import WritingContext
from mendq.heal.apply import write_attributes
from mendq.heal.approve import answer_request
from mendq.heal.rollback import rollback
from mendq.model.settings import OperatorSettings


@entry(OperatorSettings)
def handler(event: Event, invocation: LambdaInvocation[OperatorSettings]) -> Event:
    """Write the values from before the case back into its queue.

    A value that a person has set since is kept.

    Args:
        event: `{"case_id", "actor", "dry_run"}`. Nothing is written unless `dry_run` is false.
        invocation: This invocation of the Lambda.

    Returns:
        The case's state and the outcome of each attribute, or `{"error", "reason"}` if nothing was
        done. If AWS refuses the write, both.
    """
    context = invocation.make_writing_context(WritingContext, write_steps=write_attributes)
    function_by_owner = invocation.settings.owners
    is_dry_run = event.get("dry_run") is not False
    answer_to_operator = answer_request(
        event,
        lambda request: rollback(
            request, context, dry_run=is_dry_run, function_name_by_owner=function_by_owner
        ),
    )
    invocation.log.info(
        "an operator asked for a rollback", request=event, answer=answer_to_operator
    )
    return answer_to_operator
