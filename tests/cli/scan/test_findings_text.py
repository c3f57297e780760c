"""Test what a person reads first of a scan: the summary, then the worst in detail."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from mendq.cases.finding import Finding
from mendq.cli.exit_codes import CommandError
from mendq.cli.output import Output
from mendq.cli.scan.dry_run import ExpectedAction
from mendq.cli.scan.finding_filter import FindingFilter, find_failing_classes, make_filter
from mendq.cli.scan.findings_text import count_queues_by_need, print_findings_of_scan
from mendq.model.severity_class import SeverityClass

ARN = "arn:aws:sqs:us-east-1:123456789012:"
REPORTS = ExpectedAction("only reports it")
PAGES = ExpectedAction("pages")
EVERYTHING = FindingFilter()
Actions = Mapping[Finding, ExpectedAction]
PrintScan = Callable[..., str]


@pytest.fixture
def print_scan(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> PrintScan:
    def print_at_width(
        actions: Actions,
        finding_filter: FindingFilter = EVERYTHING,
        *,
        columns: int = 120,
        shows_hygiene: bool = False,
    ) -> str:
        monkeypatch.setenv("COLUMNS", f"{columns}")
        output = Output(as_json=False)
        print_findings_of_scan(output, actions, finding_filter, shows_hygiene=shows_hygiene)
        return capsys.readouterr().out

    return print_at_width


def _make_findings(
    symptom: str, count: int, sentence: str = "seen"
) -> dict[Finding, ExpectedAction]:
    return {
        Finding(f"{ARN}{symptom}-{n}", symptom, f"{sentence} {n}"): REPORTS for n in range(count)
    }


@pytest.mark.parametrize("columns", [60, 120])
def test_first_ten_lines_name_the_three_worst_symptoms_among_a_thousand_hygiene_findings(
    print_scan: PrintScan, columns: int
) -> None:
    actions = {
        **_make_findings("tls_not_enforced", 600),
        **_make_findings("alarm_missing", 600),
        **_make_findings("dlq_retention_too_short", 3),
        **_make_findings("consumer_stopped", 1),
        **_make_findings("policy_is_public", 2),
    }
    first_lines = print_scan(actions, columns=columns).splitlines()[:10]
    worst = ("policy_is_public", "consumer_stopped", "dlq_retention_too_short")
    places = [
        next(number for number, line in enumerate(first_lines) if symptom in line)
        for symptom in worst
    ]
    assert places == sorted(places), "the worst class comes first"


@pytest.mark.parametrize("columns", [60, 120])
def test_summary_names_queues_example_and_first_step_of_each_symptom(
    print_scan: PrintScan, columns: int
) -> None:
    printed = " ".join(print_scan(_make_findings("policy_is_public", 12), columns=columns).split())
    assert "policy_is_public" in printed
    assert "12" in printed
    assert "policy_is_public-0" in printed
    assert "Name the callers in the policy, or add a condition." in printed


def test_hygiene_is_one_line_with_its_most_frequent_symptoms_and_no_queue(
    print_scan: PrintScan,
) -> None:
    actions = {
        **_make_findings("tls_not_enforced", 40),
        **_make_findings("alarm_missing", 30),
        **_make_findings("not_encrypted", 20),
        **_make_findings("tag_not_understood", 1),
    }
    (line,) = print_scan(actions, columns=1_000).splitlines()
    assert line == (
        "Hygiene: 91 findings that put no message in danger (tls_not_enforced 40, alarm_missing "
        "30, not_encrypted 20 and others). `mendq scan --hygiene` shows them"
    )


def test_hygiene_option_prints_hygiene_in_detail(print_scan: PrintScan) -> None:
    printed = print_scan(_make_findings("tls_not_enforced", 2), shows_hygiene=True)
    assert "tls_not_enforced-1" in printed
    assert "Deny calls without TLS in the queue's policy." in printed


def test_details_state_the_consequence_once_and_the_numbers_of_at_most_three_queues(
    print_scan: PrintScan,
) -> None:
    printed = print_scan(_make_findings("consumer_failing", 5))
    assert printed.count("Consumers receive messages and do not finish them") == 1
    assert "seen 2" in printed
    assert "seen 3" not in printed
    assert "and 2 more: `mendq scan --symptom consumer_failing` shows all" in printed
    assert printed.count("mendq runbook consumer_failing") == 1


def test_details_of_a_symptom_that_the_operator_names_have_all_of_its_queues(
    print_scan: PrintScan,
) -> None:
    named = make_filter((), ["consumer_failing"], ())
    printed = print_scan(
        {**_make_findings("consumer_failing", 5), **_make_findings("policy_is_public", 1)}, named
    )
    assert "seen 4" in printed
    assert "policy_is_public" not in printed
    assert "1 other finding not shown, as you chose" in printed


def test_queues_with_equal_sentences_share_them(print_scan: PrintScan) -> None:
    actions = {Finding(f"{ARN}q{n}", "consumer_failing", "the same"): PAGES for n in range(6)}
    printed = print_scan(actions, columns=1_000)
    assert printed.count("the same") == 1
    assert "q0, q1, q2, q3 and 2 more" in printed


def test_queue_with_a_command_of_its_own_shares_no_sentence(print_scan: PrintScan) -> None:
    actions = {
        Finding(f"{ARN}q{n}", "dlq_missing", "the same"): ExpectedAction(
            "could change", ("RedrivePolicy",), commands=(f"aws sqs set-queue-attributes {n}",)
        )
        for n in range(2)
    }
    printed = print_scan(actions)
    assert printed.count("the same") == 2
    assert "aws sqs set-queue-attributes 0" in printed
    assert "aws sqs set-queue-attributes 1" in printed


def test_queues_that_share_a_wrong_setting_have_one_block_with_the_command_of_the_first(
    print_scan: PrintScan,
) -> None:
    actions = {
        Finding(
            f"{ARN}q{n}", "dlq_missing", f"sentence {n}", shared_setting="RedrivePolicy="
        ): ExpectedAction("could change", ("RedrivePolicy",), commands=(f"aws sqs fix-queue {n}",))
        for n in range(4)
    }
    printed = print_scan(actions)
    assert "4 queues share a default" in printed
    assert "RedrivePolicy is not set on all of them" in printed
    assert "aws sqs fix-queue 0" in printed
    assert "aws sqs fix-queue 1" not in printed
    assert "`mendq scan --symptom dlq_missing` prints the commands of all of them" in printed
    whole = print_scan(actions, make_filter((), ["dlq_missing"], ()))
    assert all(f"aws sqs fix-queue {n}" in whole for n in range(4))
    assert "prints the commands of all" not in whole


def test_scan_prints_a_sentence_with_a_hostile_tag_without_its_link(print_scan: PrintScan) -> None:
    finding = Finding(f"{ARN}orders", "tag_not_understood", "the tag is https://evil.com/x")
    printed = print_scan({finding: REPORTS}, shows_hygiene=True)
    assert "the tag is" in printed
    assert "https://evil" not in printed


def test_explained_finding_follows_its_cause_in_one_line_at_the_end(print_scan: PrintScan) -> None:
    cause = Finding(f"{ARN}orders", "consumer_failing", "nothing is finished")
    consequence = Finding(
        f"{ARN}orders-dlq", "dlq_messages_arriving", "571 came", (cause.queue_arn,)
    )
    printed = print_scan({consequence: PAGES, cause: PAGES})
    assert printed.index("nothing is finished") < printed.index("Explained by another finding: 1")
    line = "orders-dlq: dlq_messages_arriving, probably caused by consumer_failing: fix that first"
    assert line in " ".join(printed.split())
    assert "571 came" not in printed


def test_scan_prints_at_most_20_findings_that_another_finding_explains(
    print_scan: PrintScan,
) -> None:
    actions = dict[Finding, ExpectedAction]()
    for number in range(30):
        arn = f"{ARN}orders-{number}"
        actions[Finding(arn, "consumer_failing", "it")] = PAGES
        actions[Finding(arn, "dlq_missing", "it")] = PAGES
    printed = print_scan(actions)
    assert printed.count("probably caused by consumer_failing: fix that first") == 20
    assert "and 10 more: --json names them" in printed


def test_count_of_queues_counts_a_queue_with_both_kinds_once_as_needing_attention() -> None:
    both = f"{ARN}both"
    findings = [
        Finding(both, "tls_not_enforced", "no TLS"),
        Finding(both, "policy_is_public", "public"),
        Finding(f"{ARN}tidy", "tls_not_enforced", "no TLS"),
    ]
    assert count_queues_by_need(findings) == (1, 1)


@pytest.mark.parametrize(
    ("ignored", "symptom", "queue", "is_shown"),
    [
        ("dlq_missing", "dlq_missing", "orders", False),
        ("dlq_missing:orders", "dlq_missing", "orders", False),
        ("dlq_missing:orders", "dlq_missing", "orders-2", True),
        ("dlq_missing:orders", "policy_is_public", "orders", True),
    ],
)
def test_ignore_option_leaves_out_a_symptom_on_all_queues_or_on_one(
    ignored: str, symptom: str, queue: str, *, is_shown: bool
) -> None:
    chosen = make_filter((), (), [ignored])
    assert chosen.shows(symptom, SeverityClass.WILL_LOSE, queue) is is_shown


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("dlq_mising", "Did you mean dlq_missing?"),
        ("nonsense-nonsense", "Use one of alarm_missing"),
        ("kms_denied", "only failed calls show it"),
    ],
)
def test_unknown_symptom_in_an_option_is_refused_with_a_suggestion(name: str, answer: str) -> None:
    for symptoms, ignored in (([name], []), ([], [f"{name}:orders"])):
        with pytest.raises(CommandError) as refusal:
            make_filter((), symptoms, ignored)
        assert answer in str(refusal.value)


def test_fail_on_counts_its_class_and_worse_ones_and_none_by_default() -> None:
    assert find_failing_classes(None) == frozenset()
    assert find_failing_classes(SeverityClass.LOSING) == {
        SeverityClass.EXPOSED,
        SeverityClass.LOSING,
    }
    assert find_failing_classes(SeverityClass.HYGIENE) == frozenset(SeverityClass)
