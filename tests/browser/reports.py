"""The weeks that the browser shows: all kinds of them."""

from __future__ import annotations

from base64 import b64encode
from functools import cache

from mendq.report.html_page import make_page
from mendq.report.mail import CHART_CONTENT_ID, OutgoingReport
from tests.report.hostile import PAYLOADS, everywhere
from tests.report.weeks import (
    DAYS,
    HERE,
    busy_week,
    earlier,
    largest_week,
    organization_week,
    read,
    scan_only_week,
    week,
)

WIDE_NAME = "W" * 80
HOSTILE = "</title></style><script>document.title = 'run'</script><img src=x onerror=alert(1)>"
# "queue of orders" and "visibility timeout expired" in Hebrew and Arabic: made up, nobody's names.
RIGHT_TO_LEFT = (
    "\u05ea\u05d5\u05e8-\u05d4\u05d6\u05de\u05e0\u05d5\u05ea",
    "\u0637\u0627\u0628\u0648\u0631-1",
)


MISSING = {"nightly_runs_missing": [f"{each}" for each in DAYS], "files_read": 0, "bytes_read": 0}
WEEKS = {
    "busy": busy_week(),
    "quiet": week(previous_weeks=earlier(3, 0)),
    "scan-only": scan_only_week(),
    "nothing-read": week(not_seen=MISSING),
    "largest": largest_week(),
    "organization": organization_week(),
    "silent-organization": organization_week(members=3, previous_weeks=earlier(3, 0)),
    "long-names": everywhere(WIDE_NAME),
    "right-to-left": everywhere(*RIGHT_TO_LEFT),
    "hostile": everywhere(*[each for each in PAYLOADS if each.isprintable()], HOSTILE),
}
CONTEXT, TABLET, PHONE = 1240, 768, 360
OPEN_ALL = "document.querySelectorAll('details').forEach(each => { each.open = true })"


@cache
def html_of(name: str) -> str:
    return make_page(read(WEEKS[name]), HERE)


@cache
def mail_of(name: str) -> str:
    """The mail's HTML with its picture in it."""
    mail = OutgoingReport(
        read(WEEKS[name]), "s3://reports/report.html", HERE, "reports@example.com"
    )
    picture = f"data:image/png;base64,{b64encode(mail.picture or b'').decode()}"
    return mail.html.replace(f"cid:{CHART_CONTENT_ID}", picture)
