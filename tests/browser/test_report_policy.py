"""The report's Content-Security-Policy in a browser."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.browser.reports import make_report_html

pytestmark = pytest.mark.browser


def test_report_page_requests_only_its_own_file_and_data_urls(open_page: Any) -> None:
    asked = open_page(make_report_html("busy")).requested_urls
    assert {url.partition(":")[0] for url in asked} == {"file", "data"}
    assert sum(url.startswith("file:") for url in asked) == 1


PLANTED = (
    "<script>document.title = 'run'</script>"
    "<img src='data:,' onerror=\"document.title = 'run'\">"
    "<img src='file:///planted.png'></main>"
)
POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy"[^>]*>')
# A page has loaded when its scripts have run and its pictures came or failed.
TITLE = "document.title"


def test_content_security_policy_of_the_report_blocks_a_planted_script_and_picture(
    open_page: Any,
) -> None:
    html = make_report_html("quiet").replace("</main>", PLANTED)
    shown = open_page(html)
    assert shown.evaluate(TITLE).startswith("No incidents this week.")
    assert not [url for url in shown.requested_urls if "planted.png" in url]
    assert len(shown.blocked_messages) >= 3
    shown = open_page(POLICY.sub("", html))
    assert shown.evaluate(TITLE) == "run", "without it they would have been"
    assert [url for url in shown.requested_urls if "planted.png" in url]


def test_hostile_queue_name_is_shown_as_text_in_the_browser(open_page: Any) -> None:
    shown = open_page(make_report_html("hostile"))
    assert shown.evaluate("document.scripts.length") == 0
    assert shown.evaluate("[...document.images].every(each => each.src.startsWith('data:image'))")
    names = shown.evaluate("[...document.querySelectorAll('td code')].map(it => it.textContent)")
    assert "<script>alert(1)</script>" in names
    assert re.match(r"\d+ incidents", shown.evaluate(TITLE))
