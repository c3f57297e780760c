"""Roll back what a case wrote into its queue. Keep what people wrote since."""

from __future__ import annotations

from functions.entry import Call, Event, entry
from mendq.cases.context import WritingContext
from mendq.heal.apply import write
from mendq.heal.approve import answer_request
from mendq.heal.rollback import rollback
from mendq.model.settings import OperatorSettings


@entry(OperatorSettings)
def handler(event: Event, call: Call[OperatorSettings]) -> Event:
    """Roll back the case of `{"case_id", "actor", "dry_run"}`. Return each attribute's outcome.

    `{"error", "reason"}` if nothing was done.
    """
    context, owners = call.make_writing_context(WritingContext, write=write), call.settings.owners
    dry_run = event.get("dry_run") is not False
    answer = answer_request(
        event, lambda request: rollback(request, context, dry_run=dry_run, functions=owners)
    )
    call.log.info("asked to roll back", request=event, answer=answer)
    return answer
