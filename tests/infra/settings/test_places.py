"""Settings about accounts, regions and people: impossible ones are refused, odd ones warn."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import cfnlint
import pytest

from infra.settings.deployment import read_deployment_settings
from infra.settings.reading import SettingsRefused
from infra.settings.warnings import (
    PARTITIONS_WITHOUT_LAMBDA_HOOKS,
    REGIONS_WITHOUT_API_DESTINATIONS,
    find_unusable_settings,
    list_warnings,
)
from infra.synthesis import make_app, synthesize
from mendq.model.partitions import partition_of

STACK_REGION = "us-east-1"
OTHER_REGION = "eu-west-1"
STACK_ACCOUNT = "444455556666"
OTHER_ACCOUNT = "111122223333"
# Rows of `misplaced`: settings, regions, paths of the expected mistakes (empty: none), accounts.
# Rows of `hardly meant`: settings, the stack's account (null: not known), and the texts before the
# colon of the expected warnings (empty: none).
ROWS = json.loads(Path(__file__).with_name("places.json").read_text())


@pytest.mark.parametrize(("raw", "regions", "paths", "accounts"), ROWS["misplaced"])
def test_setting_that_a_stacks_account_or_region_cannot_use_is_a_mistake(
    raw: dict[str, Any], regions: list[str], paths: list[str], accounts: list[str]
) -> None:
    mistakes = list(find_unusable_settings(read_deployment_settings(raw), regions, accounts))
    assert [mistake.path for mistake in mistakes] == paths
    assert all(
        "frozen for ever" in mistake.fault for mistake in mistakes if "freeze" in mistake.path
    )


def _list_regions_without(resource_type: str) -> set[str]:
    """Return the regions in which cfn-lint's copy of CloudFormation's registry lacks a type."""
    folder = Path(cfnlint.__file__).parent / "data" / "schemas" / "providers"
    types_by_region = {file.stem: json.loads(file.read_text()) for file in folder.glob("*.json")}
    del types_by_region["sam"]
    assert resource_type in types_by_region["us-east-1"]
    return {region for region, types in types_by_region.items() if resource_type not in types}


@pytest.mark.parametrize(
    "resource_type", ["AWS::Events::ApiDestination", "AWS::Events::Connection"]
)
def test_regions_without_api_destinations_are_those_of_cloudformations_registry(
    resource_type: str,
) -> None:
    assert _list_regions_without(resource_type) == REGIONS_WITHOUT_API_DESTINATIONS


def test_partitions_without_lambda_hooks_are_those_of_cloudformations_registry() -> None:
    regions = _list_regions_without("AWS::CloudFormation::LambdaHook")
    assert {partition_of(region) for region in regions} == PARTITIONS_WITHOUT_LAMBDA_HOOKS


def test_mistake_about_an_unsupported_partition_names_the_supported_ones() -> None:
    (mistake,) = find_unusable_settings(read_deployment_settings({}), ["us-isob-east-1"])
    assert str(mistake) == (
        "AWS_REGION: us-isob-east-1 is in the partition aws-iso-b, which Mendq does not support; "
        "say a region of aws, aws-cn, aws-us-gov or aws-eusc"
    )


@pytest.mark.parametrize("region", ["eu west", "", "eu-west-1\n", "https://evil.com", "eu-west"])
def test_text_that_is_no_region_is_refused_by_name(region: str) -> None:
    (mistake,) = find_unusable_settings(read_deployment_settings({}), [region])
    assert str(mistake) == (
        f"AWS_REGION: {json.dumps(region)} is not a region; set AWS_REGION to one such as "
        "eu-west-1, or list the stacks in environments"
    )


def test_region_of_an_unknown_partition_gives_one_warning() -> None:
    environments = [
        {"account": STACK_ACCOUNT, "region": region} for region in ("xx-newland-1", "mx-central-1")
    ]
    (warning,) = list_warnings(read_deployment_settings({"environments": environments}))
    assert warning.startswith("xx-newland-1: no partition that Mendq knows")
    assert [*list_warnings(read_deployment_settings({}), "xx-newland-1")] == [warning]


def test_synth_with_a_log_bucket_in_another_region_is_refused_and_writes_no_template(
    tmp_path: Path,
) -> None:
    trail = {"create": False, "bucket": "our-logs", "bucketRegion": OTHER_REGION}
    raw = {"trail": trail, "environments": [{"account": STACK_ACCOUNT, "region": STACK_REGION}]}
    with pytest.raises(SettingsRefused, match=r"trail\.bucketRegion: is eu-west-1"):
        synthesize(read_deployment_settings(raw), make_app(tmp_path))
    assert not list(tmp_path.glob("*.template.json"))


@pytest.mark.parametrize(("raw", "account", "begins"), ROWS["hardly meant"])
def test_questionable_settings_give_exactly_their_warnings_and_unquestionable_ones_give_none(
    raw: dict[str, Any], account: str | None, begins: list[str]
) -> None:
    assert [
        line.partition(":")[0]
        for line in list_warnings(read_deployment_settings(raw), STACK_REGION, account)
    ] == begins


def test_logging_every_queue_warns_with_the_monthly_cloudtrail_cost() -> None:
    trail = {"queueArnPrefixes": ["arn:aws:sqs:"], "expectedEventsPerDay": 40_000_000}
    (line,) = list_warnings(read_deployment_settings({"trail": trail}), STACK_REGION, STACK_ACCOUNT)
    assert "$1,200.00 a month for 40,000,000 calls a day" in line


@pytest.mark.parametrize(("prefix", "place", "environments", "misses"), ROWS["prefixes"])
def test_queue_arn_prefix_that_matches_no_stack_gives_a_warning(
    prefix: str, place: list[str], environments: list[dict[str, str]], *, misses: bool
) -> None:
    """A second prefix matches. An account or region that is not known matches every prefix."""
    trail = {"queueArnPrefixes": [prefix, f"arn:aws:sqs:{OTHER_REGION}:{OTHER_ACCOUNT}:orders"]}
    given = read_deployment_settings({"trail": trail, "environments": environments})
    assert any(prefix in warning for warning in list_warnings(given, *place)) is misses
