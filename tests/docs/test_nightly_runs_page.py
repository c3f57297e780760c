"""What docs/runbooks/nightly_and_report.md hands to StartNightly is what it takes."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime

from functions.start_nightly import JOBS
from mendq.nightly.jobs import Roots
from tests.architecture.test_documents import ROOT

PAGE = (ROOT / "docs" / "runbooks" / "nightly_and_report.md").read_text()


def test_each_request_on_the_page_is_a_job() -> None:
    requests = [json.loads(each) for each in re.findall(r"--payload '([^']+)'", PAGE)]
    assert {each["job"] for each in requests} == set(JOBS)
    for each in requests:
        assert each.keys() == {"job", "time"}
        at = datetime.fromisoformat(each["time"])
        assert at.tzinfo == UTC
        assert JOBS[each["job"]](at, Roots("t", "c", "o")).name.startswith(each["job"])
