"""Report pages and mails of sample weeks for the browser tests."""

from __future__ import annotations

from base64 import b64encode
from functools import cache

from mendq.report.html_page import make_page
from mendq.report.mail import CHART_CONTENT_ID, OutgoingReport
from tests.report.hostile import PAYLOADS, fill_every_text
from tests.report.weeks import (
    DAYS,
    HERE,
    make_busy_week,
    make_largest_week,
    make_organization_week,
    make_previous_weeks,
    make_scan_only_week,
    make_week,
    read_document,
)

WIDE_NAME = "W" * 80
HOSTILE = "</title></style><script>document.title = 'run'</script><img src=x onerror=alert(1)>"
# "queue of orders" and "visibility timeout expired" in Hebrew and Arabic: made up, nobody's names.
RIGHT_TO_LEFT = (
    "\u05ea\u05d5\u05e8-\u05d4\u05d6\u05de\u05e0\u05d5\u05ea",
    "\u0637\u0627\u0628\u0648\u0631-1",
)


MISSING = {"nightly_runs_missing": [f"{day}" for day in DAYS], "files_read": 0, "bytes_read": 0}
WEEKS = {
    "busy": make_busy_week(),
    "quiet": make_week(previous_weeks=make_previous_weeks(3, 0)),
    "scan-only": make_scan_only_week(),
    "nothing-read": make_week(not_seen=MISSING),
    "largest": make_largest_week(),
    "organization": make_organization_week(),
    "silent-organization": make_organization_week(
        members=3, previous_weeks=make_previous_weeks(3, 0)
    ),
    "long-names": fill_every_text(WIDE_NAME),
    "right-to-left": fill_every_text(*RIGHT_TO_LEFT),
    "hostile": fill_every_text(
        *[payload for payload in PAYLOADS if payload.isprintable()], HOSTILE
    ),
}
CONTEXT = 1240
TABLET = 768
PHONE = 360
OPEN_ALL = "document.querySelectorAll('details').forEach(each => { each.open = true })"


@cache
def make_report_html(name: str) -> str:
    return make_page(read_document(WEEKS[name]), HERE)


@cache
def make_mail_html(name: str) -> str:
    """The mail's HTML with its picture in it."""
    mail = OutgoingReport(
        read_document(WEEKS[name]), "s3://reports/report.html", HERE, "reports@example.com"
    )
    picture = f"data:image/png;base64,{b64encode(mail.picture or b'').decode()}"
    return mail.html.replace(f"cid:{CHART_CONTENT_ID}", picture)
