"""One proposal and one notification for a missing DLQ that many queues name."""

from __future__ import annotations

import json
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mendq.aws.queue import ManagedQueue
from mendq.cases.finding import (
    MAXIMUM_NAMED_QUEUES,
    Finding,
    make_heal_request,
    read_finding_references,
)
from mendq.heal.batch import heal_findings
from mendq.heal.gather import add_other_queue_names
from mendq.model.consent import Consent
from mendq.model.mode import Mode
from mendq.model.queue import RedrivePolicy
from mendq.scan.selection import map_merged_findings, merge_shared_findings
from tests.scan.scanner import Scanner, start_next_hour

SYMPTOM = "dlq_missing"


def make_queues_with_missing_dlq(scanner: Scanner, names: Sequence[str]) -> tuple[list[str], str]:
    """Make queues that name one DLQ, and delete that DLQ."""
    account = scanner.account
    dead = account.queue("orders-dlq", tag=None)
    queues = [account.queue(name, RedrivePolicy=RedrivePolicy(dead, 5).text) for name in names]
    account.clients.sqs.delete_queue(QueueUrl=account.url(dead))
    account.later(days=1)
    return queues, dead


def heal_and_list_cases(scanner: Scanner) -> list[dict[str, Any]]:
    for healed in scanner.heal():
        assert healed.error_by_message_id == {}
    return [
        transition
        for transition in scanner.account.transitions()
        if transition["symptom"] == SYMPTOM
    ]


def test_missing_dlq_of_six_sources_gives_one_notification_and_one_proposal_also_an_hour_later(
    scanner: Scanner,
) -> None:
    queues, dead = make_queues_with_missing_dlq(scanner, [f"orders-{n:02}" for n in range(6)])
    scanner.scan()
    found = [
        finding for finding in scanner.read_findings()["findings"] if finding["symptom"] == SYMPTOM
    ]
    assert [finding["queue_arn"] for finding in found] == queues, "each is reported"
    (case,) = heal_and_list_cases(scanner)
    assert (case["to"], case["queue_arn"]) == ("proposed", queues[0])
    assert case["steps"] == [{"attribute": "DeadLetterQueue", "before": "", "after": dead}]
    said = "5 other queues name it too: orders-01, orders-02, orders-03 and 2 more"
    assert said in case["reason"]
    assert len(scanner.account.pages()) == 1
    start_next_hour(scanner.account)
    scanner.scan()
    assert len(heal_and_list_cases(scanner)) == 1


def test_finding_for_a_later_source_of_a_missing_dlq_refers_to_the_open_case(
    scanner: Scanner,
) -> None:
    queues, _ = make_queues_with_missing_dlq(scanner, "b")
    scanner.scan()
    (first,) = heal_and_list_cases(scanner)
    ((later,), _) = make_queues_with_missing_dlq(scanner, "a")
    request = {"found": [{"queue_arn": later, "symptom": SYMPTOM, "open_at": queues}]}
    healed = heal_findings(request, scanner.account.run())
    (outcome,) = healed.outcome_by_group.values()
    assert outcome.refusal is not None
    assert outcome.refusal.code == "said_of_another"
    assert first["case_id"] in outcome.refusal.reason
    assert len(heal_and_list_cases(scanner)) == 1
    assert len(scanner.account.pages()) == 1


PREFIX = "arn:aws:sqs:us-east-1:123456789012:"
_FINDINGS = st.lists(
    st.builds(
        lambda name, symptom, about: Finding(
            PREFIX + name, symptom, "gone", missing_queue_arn=about
        ),
        st.sampled_from("abcdef"),
        st.sampled_from(["lost", "late"]),
        st.sampled_from(["", f"{PREFIX}x", f"{PREFIX}y"]),
    ),
    unique=True,
)


def make_arns(names: str) -> tuple[str, ...]:
    return tuple(PREFIX + name for name in names)


def merge_findings(
    findings: list[Finding], healed: str = "abcdef", open_at: str = ""
) -> list[Finding]:
    managed = [ManagedQueue(arn, {"mendq": "heal"}) for arn in make_arns(healed)]
    open_cases: Any = [SimpleNamespace(queue_arn=arn, symptom="lost") for arn in make_arns(open_at)]
    return merge_shared_findings(findings, managed, open_cases, Consent(Mode.OBSERVE, Mode.HEAL))


@given(_FINDINGS)
def test_merged_findings_keep_every_finding_and_announce_each_missing_dlq_once(
    findings: list[Finding],
) -> None:
    retained = merge_findings(findings)
    announced = [
        (finding.symptom, finding.missing_queue_arn)
        for finding in retained
        if finding.missing_queue_arn
    ]
    assert len(announced) == len(set(announced))
    silent = map_merged_findings(findings, retained)
    assert {*retained, *silent} == set(findings)
    assert not set(retained) & set(silent)
    for finding, by in silent.items():
        assert (finding.symptom, finding.missing_queue_arn) == (by.symptom, by.missing_queue_arn)
        assert finding.queue_arn in by.other_queue_arns
        assert finding.queue_arn in by.source_arns


def test_merged_finding_speaks_for_queue_with_open_case_then_heal_mode_then_lowest_name() -> None:
    findings = [
        Finding(arn, "lost", "gone", missing_queue_arn=f"{PREFIX}x") for arn in make_arns("cba")
    ]
    (first,) = merge_findings(findings)
    assert (first.queue_arn, first.other_queue_arns) == (f"{PREFIX}a", make_arns("bc"))
    (first,) = merge_findings(findings, "bc")
    assert first.queue_arn == f"{PREFIX}b"
    (first,) = merge_findings(findings, "bc", open_at="a")
    assert first.queue_arn == f"{PREFIX}a"


def test_finding_reference_survives_the_round_trip_through_the_heal_request() -> None:
    finding = Finding(f"{PREFIX}z", "lost", "", other_queue_arns=make_arns("abcde"))
    assert read_finding_references(json.loads(make_heal_request([finding]))) == [finding.reference]
    assert finding.reference.more == 2


@given(
    st.dictionaries(
        st.sampled_from(["others", "more", "open_at"]),
        st.none()
        | st.booleans()
        | st.integers()
        | st.just(10**18)
        | st.lists(st.text() | st.just(f"{PREFIX}a")),
    )
)
def test_finding_references_with_arbitrary_fields_are_read_without_error_and_bounded(
    document: dict[str, Any],
) -> None:
    about = {"queue_arn": f"{PREFIX}z", "symptom": "lost"}
    for read in read_finding_references({"found": [{**about, **document}]}):
        assert len(read.others) <= MAXIMUM_NAMED_QUEUES
        assert set(read.others) | set(read.open_at) <= {f"{PREFIX}a"}
        assert read.more >= 0
        assert len(add_other_queue_names("", read)) < 1_000
