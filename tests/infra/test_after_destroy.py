"""After a destroy: where to ask for what stayed, in the account and region of that stack."""

from __future__ import annotations

from pathlib import Path

import pytest

from infra.packaging.cdk_cli import HEAD, hint
from tests.infra.synthesized import folder_of, folder_of_three

RESOURCES = "  .venv/bin/mendq resources"
IRELAND = "Mendq-444455556666-eu-west-1"


@pytest.mark.parametrize("arguments", [["deploy"], ["diff"], ["ls", "--profile", "staging"], []])
def test_nothing_is_printed_where_nothing_was_destroyed(arguments: list[str]) -> None:
    assert hint(arguments, folder_of("default")) == []


@pytest.mark.parametrize("profile", [["--profile", "staging"], ["--profile=staging"]])
def test_of_the_stack_that_is_named_with_the_profile_that_was_used(profile: list[str]) -> None:
    said = hint(["destroy", IRELAND, *profile], folder_of_three())
    assert said == [HEAD, f"{RESOURCES} --profile staging --region eu-west-1"]


def test_the_only_stack_needs_no_name() -> None:
    assert hint(["destroy"], folder_of("default")) == [HEAD, f"{RESOURCES} --region us-east-1"]


@pytest.mark.parametrize("stacks", ["--all", "Mendq-*"])
def test_of_every_region_where_all_are_destroyed(stacks: str) -> None:
    _, *lines = hint(["destroy", stacks], folder_of_three())
    regions = {line.removeprefix(f"{RESOURCES} --region ") for line in lines}
    assert regions == {"us-east-1", "ap-southeast-4", "eu-west-1"}


def test_without_an_assembly_the_region_is_left_to_the_reader(tmp_path: Path) -> None:
    assert hint(["destroy"], tmp_path) == [HEAD, f"{RESOURCES} --region REGION"]


def test_a_profile_is_one_word_of_a_shell() -> None:
    _, line = hint(["destroy", "--profile", "a b; c"], folder_of("default"))
    assert line == f"{RESOURCES} --profile 'a b; c' --region us-east-1"
