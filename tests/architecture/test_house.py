"""Rules about where the source may use the environment, the clock, IAM actions and boto3."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.source_files import ROOT, list_files

PATHS = list_files(
    "analytics/*.py", "functions/*.py", "infra/*.py", "local_account/*.py", "mendq/*.py"
)
FILES = {path.relative_to(ROOT).as_posix(): path.read_text() for path in PATHS}
EXAMPLE_ACCOUNTS = {
    *(digit * 12 for digit in "01239"),
    *("111122223333", "123456789012", "210987654321", "444455556666"),
}
CATCH_ALL_NAME = re.compile(r"utils?|helpers?|common|manager|processor|data|info|misc|my.*")


# By rule, the pattern and the paths in which the source may contain it.
RULES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "the environment": (
        r"os\.environ|os\.getenv",
        (
            "functions/",
            "infra/",
            "local_account/",
            r"mendq/cli/account\.py",
            # Passed on to the process that reads a trail.
            r"mendq/cli/backtest/nightly_run\.py",
            # Starts Spark and reads the region and endpoint of the buckets.
            r"analytics/(session|storage)\.py",
        ),
    ),
    "the clock": (
        r"datetime\.now|time\.time\(|utcnow",
        # The job gets its day as an argument. Only its entry point reads the clock. The library's
        # clock for users' consumers also counts the time while the machine sleeps.
        (
            *("functions/", "local_account/", "mendq/cli/"),
            r"analytics/job\.py",
            r"mendq/consumer/clock\.py",
            # Synthesis warns of mutes that have ended.
            r"infra/settings/warnings\.py",
        ),
    ),
    "SQS actions of IAM": (
        r"\"sqs:[A-Za-z]+\"",
        (
            r"mendq/model/(steps|facts|message_calls)\.py",
            "local_account/",
            r"mendq/cli/",  # the permissions that the commands need
            r"infra/schedules\.py",  # EventBridge Scheduler's own DLQ messages
        ),
    ),
    "AWS's client library": (
        r"(?m)^\s*(?:import|from) (?:boto3|botocore)",
        (
            "local_account/",
            "mendq/(aws|cases|cli|consumer|follow_up|heal|nightly|probe|redrive|scan)/",
        ),
    ),
}


@pytest.mark.parametrize("rule", RULES)
def test_environment_clock_iam_actions_and_boto3_are_used_only_in_allowed_files(rule: str) -> None:
    pattern, allowed = RULES[rule]
    names = {name for name, text in FILES.items() if re.search(pattern, text)}
    assert {name for name in names if not re.match("|".join(allowed), name)} == set()


def test_no_folder_file_or_class_has_a_catch_all_name_such_as_utils() -> None:
    names = {part for name in FILES for part in Path(name).with_suffix("").parts}
    names |= {
        class_name
        for text in FILES.values()
        for class_name in re.findall(r"(?m)^class (\w+)", text)
    }
    assert {name for name in names if CATCH_ALL_NAME.fullmatch(name)} == set()


def test_only_example_aws_account_ids_appear_in_code_and_documents() -> None:
    """Any other number could be the account of a real customer."""
    for path in (*PATHS, *list_files("tests/*.py", ":(glob)*.md", "docs/*.md")):
        numbers = set(re.findall(r"(?<![0-9a-f-])[0-9]{12}(?![0-9a-f-])", path.read_text()))
        assert numbers <= EXAMPLE_ACCOUNTS, path
