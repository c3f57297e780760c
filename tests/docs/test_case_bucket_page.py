"""docs/case-bucket.md names exactly the fields that Mendq writes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from mendq.cases.finding import Finding, ScanResult, add_managed_queues
from mendq.catalogue import examples
from mendq.catalogue.configuration.invalid_request import LATE_DELETE_CALL
from mendq.model.evidence import Evidence, Sighting
from mendq.model.state import State
from mendq.model.tags import find_cloudformation_resource
from tests.heal.situations import make_case

PAGE = (Path(__file__).parents[2] / "docs" / "case-bucket.md").read_text("utf-8")
_ROW = re.compile(r"^\| (`.+?`) \|", re.MULTILINE)
TRANSITION, FINDINGS = PAGE.split("\n## ")[1:]
TRANSITION, EVIDENCE = TRANSITION.split("\n`evidence`:\n")


def _list_fields(part: str) -> list[str]:
    return re.findall(r"`(\w+)`", " ".join(_ROW.findall(part)))


REFUSED = examples.failed_call("SendMessage", "AccessDenied")
ONE_LATE_DELETE = Evidence((Sighting.of(LATE_DELETE_CALL),)).document()
LATE_DELETES = Evidence((Sighting.of(LATE_DELETE_CALL),) * 3).document()
# What heal adds as it opens a case.
BESIDE = dict.fromkeys(("messages", "lowered_by", "needs", "source_access"))
OF_A_STACK = {"aws:cloudformation:stack-name": "shop", "aws:cloudformation:logical-id": "Orders"}


@pytest.mark.parametrize(
    ("part", "written"),
    [
        (TRANSITION, make_case(State.APPLIED).document()),
        (
            EVIDENCE,
            {
                **Evidence((Sighting.of(REFUSED),)).document(),
                **dict.fromkeys(LATE_DELETES.keys() - ONE_LATE_DELETE.keys()),
                **find_cloudformation_resource(OF_A_STACK),
                **BESIDE,
            },
        ),
        (
            FINDINGS,
            add_managed_queues(
                ScanResult().document(examples.EXAMPLE_TIME), (), is_listing_complete=True
            ),
        ),
    ],
)
def test_case_bucket_page_lists_every_written_field_once(part: str, written: Iterable[str]) -> None:
    assert sorted(_list_fields(part)) == sorted(written)


def test_case_bucket_page_names_every_field_of_a_finding() -> None:
    for name in Finding("arn", "symptom", "because").document():
        assert f"`{name}`" in FINDINGS


def test_case_bucket_page_says_which_fields_only_the_evidence_of_refused_calls_has() -> None:
    late = examples.failed_call("DeleteMessage", "MessageNotInflight")
    plain, refused = (Evidence((Sighting.of(call),)).document() for call in (late, REFUSED))
    assert refused.keys() - plain.keys() == {"event_names", "refused_by"}
    assert "| `event_names`, `refused_by` | only where" in EVIDENCE
