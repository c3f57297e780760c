"""Reading and merging the settings of a deployment."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from infra.settings.deployment import DeploymentSettings, read_deployment_settings
from infra.settings.reading import (
    SettingsRefused,
    get_fields_by_name,
    load_object,
    split_type_and_bounds,
)
from local_account.command_line import merge_objects
from local_account.launcher import list_lowered_limits
from mendq.model.limits import Timing
from mendq.model.mode import Mode


def test_default_deployment_settings_observe_and_manage_no_queue() -> None:
    settings = read_deployment_settings({})
    assert settings == DeploymentSettings()
    assert settings.mode is settings.tag_may_raise_to is Mode.OBSERVE
    assert not {*settings.queues, *settings.autonomy, *settings.trail.queue_arn_prefixes}


def test_timing_below_its_floor_is_refused_unless_floors_are_switched_off() -> None:
    _, timing = get_fields_by_name(DeploymentSettings)["timing"]
    lowest = {
        name: split_type_and_bounds(kind)[1].least
        for name, (_, kind) in get_fields_by_name(timing).items()
    }
    assert len(lowest) == len(fields(Timing))
    with pytest.raises(SettingsRefused) as refused:
        read_deployment_settings({"timing": lowest})
    with_floor = {mistake.path.removeprefix("timing.") for mistake in refused.value.mistakes}
    assert with_floor == set(lowest), (
        f"{', '.join(sorted(set(lowest) - with_floor))}: a field of Timing needs a floor, the "
        "third number of its Range, above the first; only the local account may go below it"
    )
    lifted = read_deployment_settings({"timing": lowest}, applies_floors=False)
    names = [line.split(":")[0] for line in list_lowered_limits(lifted)]
    assert names == [f"timing.{name}" for name in lowest]


def test_merge_objects_merges_nested_objects_replaces_lists_and_leaves_the_base_unchanged() -> None:
    base = {"mode": "observe", "queues": ["a"], "trail": {"create": True, "eventNames": ["x"]}}
    override = {"queues": ["b"], "trail": {"eventNames": []}, "nightly": {"hourUtc": 3}}
    assert merge_objects(base, override) == {
        "mode": "observe",
        "queues": ["b"],
        "trail": {"create": True, "eventNames": []},
        "nightly": {"hourUtc": 3},
    }
    assert base["trail"] == {"create": True, "eventNames": ["x"]}, (
        "merging must not change the base"
    )


def test_settings_file_with_a_json_object_is_read(tmp_path: Path) -> None:
    path = tmp_path / "prod.json"
    path.write_text('{\n  "mode": "heal"\n}\n')
    assert load_object(path) == {"mode": "heal"}


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (None, "cannot be read"),
        ("", "is not JSON"),
        ('{"mode": }', "is not JSON"),
        ('["heal"]', "is not an object"),
    ],
)
def test_settings_file_that_is_missing_or_not_a_json_object_is_refused(
    tmp_path: Path, text: str | None, fault: str
) -> None:
    path = tmp_path / "prod.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(SettingsRefused, match=fault) as refused:
        load_object(path)
    assert str(refused.value).startswith(f"SETTINGS {path}: ")
