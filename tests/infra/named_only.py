"""Calls in definitions that a Lambda can reach and that it never makes, with the reason."""

from __future__ import annotations

_OPERATORS = "reads every case of the table; the operator's command does, with its own credentials"
_HELD_BACK = "read by itself only where an hour's notifications are spent"
_PAGES_NOBODY = "a person's own decision is no news to people"
_OPENS_NO_CASE = "heal decides about what was found"
_OTHER_FACTS = "facts that planning a policy does not need"
_ONE_MESSAGE = "for whoever handles one message at a time; many are held and deleted together"
_ONE_TABLE = "the one class that reads and writes the table knows every way; items change in place"
_LISTED = "tags come with the listing of all queues"

NAMED_ONLY: dict[str, dict[str, str]] = {
    "heal": {"Scan": _OPERATORS},
    "attach_dlq": {"Scan": _OPERATORS},
    "restore_policy": {
        **dict.fromkeys(
            (
                "GetFunctionConfiguration",
                "GetMetricData",
                "ListDeadLetterSourceQueues",
                "ListEventSourceMappings",
                "ListMessageMoveTasks",
                "Query",
            ),
            _OTHER_FACTS,
        ),
        "Scan": _OPERATORS,
    },
    "redrive": {
        "ChangeMessageVisibility": _ONE_MESSAGE,
        "Scan": _OPERATORS,
    },
    "follow_up": {"GetItem": _HELD_BACK, "Scan": _OPERATORS},
    "approve": {
        "GetItem": _HELD_BACK,
        "LookupEvents": _PAGES_NOBODY,
        "Publish": _PAGES_NOBODY,
        "PutItem": _PAGES_NOBODY,
        "Scan": _OPERATORS,
    },
    "rollback": {
        "Scan": _OPERATORS,
    },
    "scan": {
        "ListQueueTags": _LISTED,
        "PutItem": _ONE_TABLE,
        "TransactGetItems": _OPENS_NO_CASE,
        "TransactWriteItems": _OPENS_NO_CASE,
        "Scan": _OPERATORS,
    },
    "start_nightly": {},
    "watch_nightly": {},
    "deliver_report": {},
    "probe": {"TransactWriteItems": _ONE_TABLE},
}
