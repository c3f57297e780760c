"""The settings that the account deploys with."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from infra.settings.deployment import TrailSettings
from local_account.account_settings import checked, raw_settings
from local_account.cannot_start import CannotStart
from mendq.model.limits import Mode


def test_without_a_file_it_observes_and_sees_every_call() -> None:
    settings = checked(raw_settings(None))
    assert (settings.mode, settings.tag_may_raise_to) == (Mode.OBSERVE, Mode.HEAL)
    assert settings.trail.queue_arn_prefixes == ("arn:aws:sqs:us-east-1:000000000000:",)
    assert settings.trail.event_names == ()
    assert [each.partition(":")[0] for each in settings.floors_lowered()] == [
        "timing.propagationSeconds"
    ]


def test_a_file_is_merged_deeply_and_its_lists_replace(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    one_queue = "arn:aws:sqs:us-east-1:000000000000:orders"
    path.write_text(json.dumps({"mode": "heal", "trail": {"queueArnPrefixes": [one_queue]}}))
    settings = checked(raw_settings(path))
    assert (settings.mode, settings.tag_may_raise_to) == (Mode.HEAL, Mode.HEAL)
    assert settings.trail.queue_arn_prefixes == (one_queue,)
    assert settings.trail.management_events


def test_of_somebody_elses_trail_nothing_is_selected(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text(json.dumps({"trail": {"create": False, "bucket": "our-logs"}}))
    settings = checked(raw_settings(path))
    assert settings.trail == TrailSettings(create=False, bucket="our-logs")
    assert settings.tag_may_raise_to is Mode.HEAL


def test_every_mistake_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text(json.dumps({"mode": "heel", "quues": []}))
    with pytest.raises(CannotStart, match=r"quues.*mode") as refused:
        raw_settings(path)
    assert "\n" not in str(refused.value)
