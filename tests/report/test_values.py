from __future__ import annotations

import pytest

from mendq.report.words import changed, plain, written


@pytest.mark.parametrize(
    ("attribute", "value", "said"),
    [
        ("VisibilityTimeout", "690", "690 s"),
        ("VisibilityTimeout", "3600", "3,600 s"),
        ("MessageRetentionPeriod", "1209600", "1,209,600 s (14 d)"),
        ("ReceiveMessageWaitTimeSeconds", "20", "20 s"),
        ("MaximumMessageSize", "1048576", "1,048,576 bytes"),
        ("SomethingElse", "1000", "1,000"),
        ("ContentBasedDeduplication", "true", "true"),
        ("VisibilityTimeout", "007", "007"),
        ("VisibilityTimeout", "-1", "-1"),
        ("VisibilityTimeout", "", ""),
        ("Policy", "{" + "x" * 40, ""),
    ],
)
def test_a_value_has_its_unit(attribute: str, value: str, said: str) -> None:
    assert plain(written(attribute, value)) == said


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("460", "690", "from 460 s to 690 s"),
        ("", "690", "to 690 s"),
        ("460", "", ""),
        ("x" * 41, "690", "to 690 s"),
    ],
)
def test_a_change_says_what_it_can(before: str, after: str, said: str) -> None:
    assert changed("VisibilityTimeout", before, after) == said
