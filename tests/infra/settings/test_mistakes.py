"""Each mistake in the settings is refused with the field, the fault and the remedy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from infra.settings.deployment import read_deployment_settings
from infra.settings.reading import SettingsRefused, load_object, parse_json
from mendq.catalogue import CATALOGUE

# The settings, the field, and a part of the fault and of the remedy.
SINGLE_MISTAKES = json.loads(Path(__file__).with_name("mistakes.json").read_text())


@pytest.mark.parametrize(("raw", "path", "fault", "remedy"), SINGLE_MISTAKES)
def test_each_wrong_setting_is_refused_with_field_fault_and_remedy(
    raw: dict[str, Any], path: str, fault: str, remedy: str
) -> None:
    with pytest.raises(SettingsRefused) as refused:
        read_deployment_settings(raw)
    (mistake,) = refused.value.mistakes
    assert mistake.path == path
    assert fault in mistake.fault
    assert remedy in mistake.remedy
    assert str(refused.value) == f"{path}: {mistake.fault}; {mistake.remedy}"


def test_setting_of_the_wrong_type_is_reported_once_and_not_compared_with_other_settings() -> None:
    with pytest.raises(SettingsRefused) as refused:
        read_deployment_settings({"trail": {"create": "false", "bucket": "our-logs"}})
    assert [mistake.path for mistake in refused.value.mistakes] == ["trail.create"]


def test_autonomy_mode_for_a_symptom_without_a_fix_is_refused() -> None:
    ships_by_name = {
        symptom.name: symptom.default_mode_text for symptom in CATALOGUE if not symptom.steps
    }
    with pytest.raises(SettingsRefused) as refused:
        read_deployment_settings(
            {"autonomy": {"no_such_symptom": "heal", **dict.fromkeys(ships_by_name, "observe")}}
        )
    expected = {
        f"autonomy.{name}: takes no mode: it is {ships}" for name, ships in ships_by_name.items()
    }
    mistakes = {str(mistake) for mistake in refused.value.mistakes}
    assert {f"{text}; leave it out" for text in expected} < mistakes


DEEP = "[" * 100_000 + "]" * 100_000


def test_settings_list_over_200_entries_is_refused_without_reading_its_entries() -> None:
    with pytest.raises(SettingsRefused) as refused:
        read_deployment_settings({"queues": [f"orders-{n}!" for n in range(100_000)]})
    assert str(refused.value) == "queues: 100000 entries are too many; keep at most 200"


def test_settings_file_nested_too_deeply_is_refused_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    file.write_text(f'{{"trail": {{}},\n"autonomy": {DEEP}}}')
    with pytest.raises(
        SettingsRefused, match=r"settings\.json: is not JSON \(nested too deep: line 2 "
    ):
        load_object(file)


def test_settings_with_brackets_inside_texts_are_not_taken_for_deep_nesting() -> None:
    texts = ["[" * 100, '\\"[{' * 100]
    assert parse_json(json.dumps({"a": texts, "b": [[[[]]]] * 100})) == {
        "a": texts,
        "b": [[[[]]]] * 100,
    }


def test_duplicate_settings_keys_are_reported_together_with_other_mistakes() -> None:
    raw = parse_json(
        """{"mode": "heal", "queues": ["a"], "mode": "heal", "zzz": 1, "autonomy":
        {"visibility_timeout_too_short": "heal", "visibility_timeout_too_short": "observe"},
        "trail": {"create": true, "bucket": "our-logs", "create": false}, "limits": {},
        "limits": {"writesPerMinute": 0},
        "environments": [{"region": "eu-west-1", "region": "eu-west-1"}]}"""
    )
    with pytest.raises(SettingsRefused) as refused:
        read_deployment_settings(raw)
    twice = "mode autonomy.visibility_timeout_too_short limits trail.create environments[0].region"
    expected = {*twice.split(), "zzz", "environments[0].account"}
    assert {mistake.path for mistake in refused.value.mistakes} == expected
    duplicates = [
        mistake for mistake in refused.value.mistakes if mistake.fault == "is there twice"
    ]
    assert [mistake.path for mistake in duplicates] == twice.split()


def test_every_mistake_of_every_mute_is_reported_at_once() -> None:
    raw = [{"queue": "a*b", "until": "soon"}, {"symptom": "nothing", "reason": ""}]
    with pytest.raises(SettingsRefused) as refused:
        read_deployment_settings({"mutes": raw})
    assert [mistake.path for mistake in refused.value.mistakes] == [
        "mutes[0].symptom",
        "mutes[0].reason",
        "mutes[0].until",
        "mutes[0].queue",
        "mutes[1].queue",
        "mutes[1].reason",
        "mutes[1].until",
        "mutes[1].symptom",
    ]


def test_more_mutes_than_a_lambda_could_hold_are_refused_without_reading_them() -> None:
    with pytest.raises(SettingsRefused) as refused:
        read_deployment_settings({"mutes": [{"queue": number} for number in range(101)]})
    assert str(refused.value) == "mutes: 101 entries are too many; keep at most 100"
