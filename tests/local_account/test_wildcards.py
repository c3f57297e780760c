"""The wildcards of policies in the local account."""

from __future__ import annotations

import pytest
from ministack.core import iam_evaluator

from local_account.permissions import install_wildcards


@pytest.fixture(autouse=True)
def _installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(iam_evaluator, "_fnmatch_compile", iam_evaluator._fnmatch_compile)
    install_wildcards()


@pytest.mark.parametrize(
    ("text", "pattern", "is_match"),
    [
        ("account", "account", True),
        ("account\n", "account", False),
        ("account", "Account", False),
        ("baseline#a\nb", "baseline#*", True),
        ("baseline#a", "baseline#?", True),
        ("baseline#ab", "baseline#?", False),
        ("a[x].b", "a[x].b", True),
        ("axb", "a.b", False),
    ],
)
def test_pattern_of_a_policy_matches_whole_texts_only_and_any_character(
    text: str, pattern: str, is_match: bool
) -> None:
    assert iam_evaluator.fnmatch_iam_cs(text, pattern) is is_match


def test_pattern_of_an_action_matches_in_any_case() -> None:
    assert iam_evaluator.fnmatch_iam("sqs:SendMessage", "SQS:send*")
    assert not iam_evaluator.fnmatch_iam("sqs:SendMessage\n", "SQS:sendmessage")
