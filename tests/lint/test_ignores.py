"""Ignores with a reason inside templates: what they leave out, and when they are stale."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from mendq.cli.app import app
from mendq.lint import ignores
from tests.lint.builders import FAULTY_TEMPLATE
from tests.lint.plans import make_new_queue, make_plan

pytestmark = pytest.mark.usefixtures("no_account")
VISIBILITY = "visibility_timeout_too_short"
TLS = "tls_not_enforced"
ENCRYPTION = "not_encrypted"
REASON = "a gateway checks it"
SERVERLESS = """service: shop
provider: {name: aws}
functions:
  bill:
    handler: bill.main
    timeout: 30
    events:
      - sqs: {arn: !GetAtt Orders.Arn, batchSize: 10}
  mail:
    handler: mail.main
    timeout: 30
    events:
      - sqs: {arn: !GetAtt Mails.Arn, batchSize: 10}
resources:
  Resources:
    Orders:
      Type: AWS::SQS::Queue
      Properties: {VisibilityTimeout: 20}
    Mails:
      Type: AWS::SQS::Queue
      Properties: {VisibilityTimeout: 20}
"""
TERRAFORM = """resource "aws_sqs_queue" "orders" {
  name = "orders"
}

resource "aws_sqs_queue" "mails" {
  name = "mails"
}
"""


def _lint(path: Path) -> Any:
    result = CliRunner().invoke(app, ["lint", str(path), "--json"])
    assert result.exit_code in {0, 1}, result.output
    return json.loads(result.stdout)


def _list(document: Any, kind: str) -> set[tuple[str, str]]:
    (template,) = document["templates"]
    return {(finding["resource"], finding["symptom"]) for finding in template[kind]}


def _lint_cloudformation(tmp_path: Path, ignore: str) -> Any:
    path = tmp_path / "shop.yaml"
    path.write_text(FAULTY_TEMPLATE.replace("ignore: [tls_not_enforced]", f"ignore: {ignore}"))
    return _lint(path)


def test_metadata_ignore_with_a_reason_leaves_the_finding_out_and_shows_the_reason(
    tmp_path: Path,
) -> None:
    document = _lint_cloudformation(tmp_path, f"[{{symptom: {TLS}, reason: {REASON}}}]")
    assert ("Orders", TLS) not in _list(document, "findings")
    (ignored,) = document["templates"][0]["ignored"]
    assert (ignored["symptom"], ignored["reason"]) == (TLS, REASON)
    assert document["stale"] == []


@pytest.mark.parametrize("entry", ["{reason: because}", "{symptom: [a]}", "[[tls_not_enforced]]"])
def test_metadata_ignore_without_a_symptom_ignores_nothing_and_is_reported(
    tmp_path: Path, entry: str
) -> None:
    document = _lint_cloudformation(tmp_path, f"[{entry}]")
    assert ("Orders", TLS) in _list(document, "findings")
    reasons = [place["because"] for place in document["templates"][0]["not_judged"]]
    assert any("is the name of a symptom" in reason for reason in reasons)


def test_metadata_ignore_that_no_finding_needs_is_stale(tmp_path: Path) -> None:
    document = _lint_cloudformation(tmp_path, "[tls_not_enforced, not_encrypted]")
    (stale,) = document["stale"]
    assert stale["symptom"] == "not_encrypted"
    assert stale["where"].endswith("shop.yaml, Metadata of Orders")


def test_metadata_ignore_of_a_symptom_that_cannot_be_checked_is_not_stale(tmp_path: Path) -> None:
    """The example's DLQ is imported, so nothing can be said about its type."""
    document = _lint_cloudformation(tmp_path, "[tls_not_enforced, dlq_type_mismatch]")
    assert document["stale"] == []


def _lint_serverless(tmp_path: Path, text: str) -> Any:
    path = tmp_path / "serverless.yml"
    path.write_text(text)
    return _lint(path)


def test_serverless_file_without_ignores_has_the_findings_of_both_queues(tmp_path: Path) -> None:
    findings = _list(_lint_serverless(tmp_path, SERVERLESS), "findings")
    for queue in ("Orders", "Mails"):
        assert {(queue, VISIBILITY), (queue, "batch_failures_not_reported")} <= findings


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("    Orders:\n", f"    # mendq: ignore {VISIBILITY}: {REASON}\n    Orders:\n"),
        ("    Orders:\n", f"    Orders:  # mendq: ignore {VISIBILITY}: {REASON}\n"),
        (
            "    Mails:\n      Type",
            f"      # mendq: ignore {VISIBILITY}: {REASON}\n    # mails\n\n    Mails:\n      Type",
        ),
    ],
    ids=["above the queue", "behind its name", "above another queue"],
)
def test_serverless_comment_ignores_the_symptom_of_its_queue_alone(
    tmp_path: Path, before: str, after: str
) -> None:
    document = _lint_serverless(tmp_path, SERVERLESS.replace(before, after))
    ignored_queue = "Mails" if before.startswith("    Mails") else "Orders"
    assert _list(document, "ignored") == {(ignored_queue, VISIBILITY)}
    assert len(_list(document, "findings") & {("Orders", VISIBILITY), ("Mails", VISIBILITY)}) == 1
    assert document["templates"][0]["ignored"][0]["reason"] == REASON
    assert document["stale"] == []


def test_serverless_comment_in_a_function_ignores_the_finding_of_its_event(tmp_path: Path) -> None:
    comment = f"      # mendq: ignore batch_failures_not_reported: {REASON}\n"
    event = "      - sqs: {arn: !GetAtt Orders.Arn"
    document = _lint_serverless(tmp_path, SERVERLESS.replace(event, comment + event))
    assert _list(document, "ignored") == {("Orders", "batch_failures_not_reported")}
    assert ("Mails", "batch_failures_not_reported") in _list(document, "findings")


@pytest.mark.parametrize("comment", [f"# mendq: ignore {VISIBILITY}", "# mendq: ignore"])
def test_comment_without_a_reason_ignores_nothing_and_is_reported(
    tmp_path: Path, comment: str
) -> None:
    document = _lint_serverless(
        tmp_path, SERVERLESS.replace("    Orders:\n", f"    {comment}\n    Orders:\n")
    )
    assert ("Orders", VISIBILITY) in _list(document, "findings")
    reasons = [place["because"] for place in document["templates"][0]["not_judged"]]
    assert any("because it gives no reason" in reason for reason in reasons)


@pytest.mark.parametrize("symptom", ["visibility", "backlog_grows"])
def test_comment_with_a_name_that_lint_does_not_look_for_is_reported(
    tmp_path: Path, symptom: str
) -> None:
    comment = f"    # mendq: ignore {symptom}: {REASON}\n    Orders:\n"
    document = _lint_serverless(tmp_path, SERVERLESS.replace("    Orders:\n", comment))
    reasons = [place["because"] for place in document["templates"][0]["not_judged"]]
    assert f"lint does not check the symptom {symptom}" in reasons
    assert document["stale"] == []


def test_comment_before_all_blocks_ignores_nothing_and_is_stale(tmp_path: Path) -> None:
    document = _lint_serverless(tmp_path, f"# mendq: ignore {VISIBILITY}: {REASON}\n{SERVERLESS}")
    assert _list(document, "ignored") == set()
    (stale,) = document["stale"]
    assert (stale["symptom"], stale["where"][-17:]) == (VISIBILITY, "comment in line 1")


def test_each_line_of_a_file_full_of_ignores_is_examined_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    comment_regex = ignores._COMMENT_LINE_REGEX
    examined_lines: list[str] = []

    class CountingRegex:
        def match(self, line: str) -> re.Match[str] | None:
            examined_lines.append(line)
            return comment_regex.match(line)

    monkeypatch.setattr(ignores, "_COMMENT_LINE_REGEX", CountingRegex())
    comments = f"# mendq: ignore {VISIBILITY}: {REASON}\n" * 50
    document = _lint_serverless(tmp_path, comments + SERVERLESS)
    assert len(document["stale"]) == 50
    assert len(examined_lines) == len(SERVERLESS.splitlines()) + 50


def _lint_plan(tmp_path: Path, terraform: str) -> Any:
    (tmp_path / "main.tf").write_text(terraform)
    path = tmp_path / "plan.json"
    path.write_bytes(
        make_plan(
            make_new_queue("aws_sqs_queue.orders[0]", name="orders", sqs_managed_sse_enabled=False),
            make_new_queue("aws_sqs_queue.mails", name="mails", sqs_managed_sse_enabled=False),
        )
    )
    return _lint(path)


@pytest.mark.parametrize("sign", ["#", "//"])
def test_terraform_comment_ignores_the_symptom_of_its_block_with_any_index(
    tmp_path: Path, sign: str
) -> None:
    comment = f"  {sign} mendq: ignore {ENCRYPTION}: {REASON}\n"
    terraform = TERRAFORM.replace('  name = "orders"\n', f'{comment}  name = "orders"\n')
    document = _lint_plan(tmp_path, terraform)
    assert _list(document, "ignored") == {("aws_sqs_queue.orders[0]", ENCRYPTION)}
    assert ("aws_sqs_queue.mails", ENCRYPTION) in _list(document, "findings")
    assert document["templates"][0]["ignored"][0]["reason"] == REASON


def test_terraform_comment_of_a_resource_that_the_plan_lacks_is_stale(tmp_path: Path) -> None:
    gone = TERRAFORM.replace('"orders" {', '"gone" {')
    comment = f"# mendq: ignore {ENCRYPTION}: {REASON}\n"
    document = _lint_plan(tmp_path, comment + gone)
    assert _list(document, "ignored") == set()
    (stale,) = document["stale"]
    assert stale["where"].endswith("main.tf, line 1")


def test_terraform_comment_without_a_reason_is_reported_at_its_block_without_a_line_of_the_plan(
    tmp_path: Path,
) -> None:
    document = _lint_plan(tmp_path, f"# mendq: ignore {ENCRYPTION}\n{TERRAFORM}")
    places = {
        place["path"]: place["line"]
        for place in document["templates"][0]["not_judged"]
        if "it gives no reason" in place["because"]
    }
    assert places == {"main.tf: aws_sqs_queue.orders": None}


def test_terraform_file_that_may_not_be_read_has_no_ignores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_path = Path.open

    def open_unless_secret(path: Path, *arguments: Any, **options: Any) -> Any:
        if path.name == "secret.tf":
            raise PermissionError(13, "Permission denied")
        return open_path(path, *arguments, **options)

    (tmp_path / "secret.tf").write_text(f"# mendq: ignore {TLS}: {REASON}\n{TERRAFORM}")
    monkeypatch.setattr(Path, "open", open_unless_secret)
    document = _lint_plan(tmp_path, f"# mendq: ignore {ENCRYPTION}: {REASON}\n{TERRAFORM}")
    assert _list(document, "ignored") == {("aws_sqs_queue.orders[0]", ENCRYPTION)}


def test_folder_that_is_named_like_a_terraform_file_has_no_ignores(tmp_path: Path) -> None:
    (tmp_path / "old.tf").mkdir()
    comment = f"# mendq: ignore {ENCRYPTION}: {REASON}\n"
    document = _lint_plan(tmp_path, comment + TERRAFORM)
    assert _list(document, "ignored") == {("aws_sqs_queue.orders[0]", ENCRYPTION)}
    assert document["stale"] == []


def test_text_that_only_mentions_an_ignore_is_none(tmp_path: Path) -> None:
    text = SERVERLESS.replace(
        "handler: bill.main", f"handler: 'bill.main#mendq: ignore {VISIBILITY}: no'"
    )
    document = _lint_serverless(tmp_path, text)
    assert _list(document, "ignored") == set()
    assert document["stale"] == []


def test_comment_in_a_file_that_a_serverless_file_includes_ignores_its_queue(
    tmp_path: Path,
) -> None:
    head, _, resources = SERVERLESS.partition("resources:\n  Resources:\n")
    queues = "Resources:\n" + "\n".join(line[2:] for line in resources.splitlines()) + "\n"
    comment = f"  # mendq: ignore {VISIBILITY}: {REASON}\n  Mails:\n"
    (tmp_path / "queues.yml").write_text(queues.replace("  Mails:\n", comment))
    document = _lint_serverless(tmp_path, f"{head}resources: ${{file(queues.yml)}}\n")
    assert _list(document, "ignored") == {("Mails", VISIBILITY)}
    assert ("Orders", VISIBILITY) in _list(document, "findings")
    assert document["stale"] == []
