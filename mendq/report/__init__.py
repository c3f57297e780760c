"""A week's summary.json as a page and as text: no AWS, no clock, no environment.

It stands alone and travels in a zip of its own, because the charts' library is 80 MB.
"""

from mendq.report.html_page import page
from mendq.report.mail import outgoing
from mendq.report.read_summary import MOST_BYTES, SummaryUnreadable, read, read_under
from mendq.report.summary import Summary
from mendq.report.verdict import verdict_text

__all__ = [
    "MOST_BYTES",
    "Summary",
    "SummaryUnreadable",
    "outgoing",
    "page",
    "read",
    "read_under",
    "verdict_text",
]
