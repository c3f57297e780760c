"""Let a client choose how SQS event source mappings behave where AWS does not document it.

PUT /_mendq/mappings chooses what happens in these cases:

- `lostRight`: the function's role loses sqs:ReceiveMessage, sqs:DeleteMessage or
  sqs:GetQueueAttributes after the mapping was created. By default (`pollingStops`), the mapping no
  longer polls. With `messagesRepeat`, it polls as long as the role may receive, and messages whose
  deletion is refused come back after each run.
- `unknownItemIdentifier`: an id in batchItemFailures names no message of the batch. By default
  (`batchFails`), the whole batch has failed, as AWS documents for other ids that it cannot use.
  With `ignored`, only the messages whose ids are reported have failed, and the others are deleted.

https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec
from msgspec import Struct

from local_account.account_page import parse_request


class ChosenBehavior(Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The chosen behavior in each undocumented case. Also the body of the request to choose it."""

    lost_right: Literal["pollingStops", "messagesRepeat"] = "pollingStops"
    unknown_item_identifier: Literal["batchFails", "ignored"] = "batchFails"


class MappingChoices:
    """Stores the chosen behavior of event source mappings."""

    def __init__(self) -> None:
        self._behavior = ChosenBehavior()

    @property
    def stops_polling(self) -> bool:
        """True if a mapping stops polling when its function's role lacks one of the permissions."""
        return self._behavior.lost_right == "pollingStops"

    @property
    def is_unknown_id_ignored(self) -> bool:
        """True if an id in batchItemFailures that names no message is ignored."""
        return self._behavior.unknown_item_identifier == "ignored"

    def page(self, request: Any) -> Mapping[str, Any]:
        """Choose the requested behavior, or the default for a field that the request lacks.

        If `request` is None, change nothing. Return the behavior that is now chosen.
        """
        if request is not None:
            request_example = '{"lostRight": "messagesRepeat", "unknownItemIdentifier": "ignored"}'
            self._behavior = parse_request(request, ChosenBehavior, request_example)
        return dict(msgspec.to_builtins(self._behavior))
