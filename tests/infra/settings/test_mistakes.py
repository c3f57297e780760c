"""Each mistake alone: the field as the user wrote it, what is wrong, and the remedy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from infra.settings.deployment import read_deployment_settings
from infra.settings.reading import SettingsRefused, load_object, parse_json
from mendq.catalogue import CATALOGUE

# What the user wrote, the field, a part of the fault, a part of the remedy.
ALONE = json.loads(Path(__file__).with_name("mistakes.json").read_text())


@pytest.mark.parametrize(("raw", "path", "fault", "remedy"), ALONE)
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
    never = {each.name: each.default_mode_text for each in CATALOGUE if not each.steps}
    with pytest.raises(SettingsRefused) as refused:
        read_deployment_settings(
            {"autonomy": {"no_such_symptom": "heal", **dict.fromkeys(never, "observe")}}
        )
    said = {f"autonomy.{each}: takes no mode: it is {ships}" for each, ships in never.items()}
    found = {str(each) for each in refused.value.mistakes}
    assert {f"{each}; leave it out" for each in said} < found


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
    assert {each.path for each in refused.value.mistakes} == expected
    said = [each for each in refused.value.mistakes if each.fault == "is there twice"]
    assert [each.path for each in said] == twice.split()
