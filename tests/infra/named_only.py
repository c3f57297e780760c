"""Calls that stand in modules which a Lambda imports and that it never makes, with the reason."""

from __future__ import annotations

_OF_HEALS_RUN = "counts the managed queues, for the stop at a mass symptom; heal counts"
_OF_A_FREEZE = "a frozen account is heal's to see; undoing is exempt"
_OPERATORS = "reads every case of the table; the operator's command does, with its own credentials"
_HELD_BACK = "read by itself only where an hour's pages are spent"
_PAGES_NOBODY = "a person's own word is no news to people"
_OPENS_NO_CASE = "heal decides about what was found"
_OTHER_FACTS = "facts that planning a policy does not need"
_ONE_MESSAGE = "for whoever handles one message at a time; many are held and deleted together"
_LISTED = "tags come with the listing of all queues"

_OF_A_RUN = {
    "GetCalendarState": _OF_A_FREEZE,
    "GetResources": _OF_HEALS_RUN,
    "ListQueues": _OF_HEALS_RUN,
}
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
    "follow_up": {**_OF_A_RUN, "GetItem": _HELD_BACK, "Scan": _OPERATORS},
    "approve": {
        **_OF_A_RUN,
        "GetItem": _HELD_BACK,
        "LookupEvents": _PAGES_NOBODY,
        "Publish": _PAGES_NOBODY,
        "PutItem": _PAGES_NOBODY,
        "Scan": _OPERATORS,
    },
    "rollback": {
        **_OF_A_RUN,
        "Scan": _OPERATORS,
    },
    "scan": {
        "GetCalendarState": _OF_A_FREEZE,
        "ListQueueTags": _LISTED,
        "Publish": _OPENS_NO_CASE,
        "PutItem": _OPENS_NO_CASE,
        "TransactGetItems": _OPENS_NO_CASE,
        "TransactWriteItems": _OPENS_NO_CASE,
        "Scan": _OPERATORS,
    },
    "start_nightly": {},
    "watch_nightly": {},
    "deliver_report": {},
    "probe": {},
}
