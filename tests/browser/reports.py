"""The weeks that the browser shows: all kinds of them."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from mendq.report.html_page import page
from tests.report.hostile import PAYLOADS
from tests.report.weeks import (
    DAYS,
    HERE,
    arn,
    busy_week,
    incident,
    largest_week,
    nightly,
    notified,
    reached_a_person,
    read,
    recommendation,
    week,
)

WIDE_NAME = "W" * 80
HOSTILE = "</title></style><script>document.title = 'run'</script><img src=x onerror=alert(1)>"
# "queue of orders" and "visibility timeout expired" in Hebrew and Arabic: made up, nobody's names.
RIGHT_TO_LEFT = (
    "\u05ea\u05d5\u05e8-\u05d4\u05d6\u05de\u05e0\u05d5\u05ea",
    "\u0637\u0627\u0628\u0648\u0631-1",
)


def _all_named(*names: str) -> dict[str, Any]:
    """A week whose every name is one of `names`."""
    cases = [
        incident(
            day=n % 7,
            outcome="refused",
            reason=f"{name} {name} {name}",
            error_codes=[name],
            principals=[f"arn:aws:iam::123456789012:role/{name}"],
            **dict.fromkeys(("symptom", "case_id"), name),
            queue_arn=arn(name),
        )
        for n, name in enumerate(names)
    ]
    healed = [incident(queue_arn=arn(each), symptom=each) for each in names[:20]]
    texts = {"symptom", "attribute", "before", "after", "owner", "case_id"}
    people = (
        notified(each, **dict.fromkeys(("symptom", "reason", "state", "case_id"), each))
        for each in names
    )
    return week(
        [*cases, *healed],
        by_outcome=dict.fromkeys(names, 1),
        reached_a_person=reached_a_person(*people),
        do_this_week=[
            recommendation(kind, each, reason=each, why="refused", **dict.fromkeys(texts, each))
            for kind in ("write_into_template", "approve", "fix", "fix_caller", "name_code")
            for each in names[:2]
        ],
        not_seen={
            "unknown_code": dict.fromkeys(names, 1),
            "unreadable_files": [{"file": each, "reason": each} for each in names[:20]],
            "nightly_runs": [nightly(DAYS[0], reader="standard_library", why_fallback=names[0])],
        },
    )


MISSING = {"nightly_runs_missing": [f"{each}" for each in DAYS], "files_read": 0, "bytes_read": 0}
WEEKS = {
    "busy": busy_week(),
    "quiet": week(),
    "nothing-read": week(not_seen=MISSING),
    "largest": largest_week(),
    "long-names": _all_named(WIDE_NAME),
    "right-to-left": _all_named(*RIGHT_TO_LEFT),
    "hostile": _all_named(*[each for each in PAYLOADS if each.isprintable()], HOSTILE),
}
CONTEXT, TABLET, PHONE = 1240, 768, 360
SHOTS = Path(__file__).parents[2] / "build" / "browser"
OPEN_ALL = "document.querySelectorAll('details').forEach(each => { each.open = true })"


@cache
def html_of(name: str) -> str:
    return page(read(WEEKS[name]), HERE)
