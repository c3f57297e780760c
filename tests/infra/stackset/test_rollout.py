"""The waves: nothing goes further where a canary is not well."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import boto3
import pytest

from infra.alarms import ALARMS_IN_COMPOSITES, NOTIFYING_ALARMS
from infra.alarms.health import HEAL_ERRORS_ALARM, PROBE_LOST_ALARM
from infra.settings.reading import SettingsRefused
from infra.stackset.waves import CHECKED_ALARM_NAMES, fill_rollout_script, load_waves
from tests.infra.stackset.published import BUCKET
from tests.infra.stackset.scripts import Answers, Run, option

CANARY, KEY = "111122223333", "mendq/0123456789abcdef.template.json"
PARAMETERS = {"Mode": "observe", "UrgentMail": ""}
UNITS = ("ou-abcd-11111111", "ou-abcd-22222222", "ou-abcd-33333333")
WAVES: Mapping[str, Any] = {
    "regions": ["eu-west-1", "us-east-1"],
    "canaries": {CANARY: "canary"},
    "waves": [[UNITS[0]], [UNITS[1], UNITS[2]]],
    "soakMinutes": 1,
}
STARTS = {"create-stack-set", "create-stack-instances", "update-stack-set"}


def _states(**other: str) -> str:
    said = dict.fromkeys(CHECKED_ALARM_NAMES, "OK") | {
        name.replace("_", "-"): s for name, s in other.items()
    }
    return "\n".join(f"{name}\t{state}" for name, state in said.items() if state)


WELL: Answers = {
    "get-caller-identity": CANARY,
    "describe-stack-set-operation": ["QUEUED", "RUNNING", "SUCCEEDED"],
    "describe-alarms": _states(),
    "list-stack-instances": "CURRENT",
    "update-stack-set": "operation-1",
    "create-stack-instances": "operation-1",
}


def _run(tmp_path: Path, answers: Answers, *arguments: str, **waves: Any) -> Run:
    file, script = tmp_path / "waves.json", tmp_path / "rollout.sh"
    file.write_text(json.dumps({**WAVES, **waves}))
    script.write_text(fill_rollout_script(load_waves(file), BUCKET, KEY, PARAMETERS))
    described = re.findall(r'--description "(Mendq [0-9a-f]{16})"', script.read_text())[0]
    known = {**WELL, "describe-stack-set": described, **answers}
    return Run(script, tmp_path, known, *arguments)


def _started(run: Run) -> list[dict[str, Any]]:
    name = "--deployment-targets"
    return [json.loads(option(each, name)) for each in run.calls if name in each]


def test_rollout_updates_canaries_first_and_then_each_wave_without_the_canaries(
    tmp_path: Path,
) -> None:
    run = _run(tmp_path, {}, "update")
    assert run.code == 0, run.refused
    kinds = [(tuple(e["OrganizationalUnitIds"]), e["AccountFilterType"]) for e in _started(run)]
    others = [(UNITS[:1], "DIFFERENCE"), (UNITS[1:], "DIFFERENCE")]
    assert kinds == [(UNITS, "INTERSECTION"), *others]
    assert all(each["Accounts"] == [CANARY] for each in _started(run))
    joining = run.of("update-stack-set")[-1]
    assert "Enabled=true" in option(joining, "--auto-deployment")
    # AWS refuses places beside it.
    assert "--regions" not in joining


def test_every_rollout_wave_runs_region_by_region_and_tolerates_no_failure(tmp_path: Path) -> None:
    """StackSets orders the regions and limits the accounts at once, for the canaries too."""
    for given, at_once in (({}, 5), ({"accountsAtOnce": 1}, 1)):
        *operations, joining = _run(tmp_path, {}, "update", **given).of("update-stack-set")
        assert "--operation-preferences" not in joining
        assert len(operations) == 3
        for operation in operations:
            assert json.loads(option(operation, "--operation-preferences")) == {
                "RegionConcurrencyType": "SEQUENTIAL",
                "RegionOrder": WAVES["regions"],
                "MaxConcurrentCount": at_once,
                "FailureToleranceCount": 0,
                "ConcurrencyMode": "SOFT_FAILURE_TOLERANCE",
            }
            assert option(operation, "--call-as") == "DELEGATED_ADMIN"
            url = f"https://our-mendq-eu-west-1.s3.eu-west-1.amazonaws.com/{KEY}"
            assert option(operation, "--template-url") == url


def test_rollout_operation_preferences_are_valid_for_the_cloudformation_api(tmp_path: Path) -> None:
    run = _run(tmp_path, {}, "first")
    client = boto3.client("cloudformation", "eu-west-1")
    members = client.meta.service_model.shape_for("StackSetOperationPreferences").members
    for call in run.of("create-stack-instances"):
        preferences = json.loads(option(call, "--operation-preferences"))
        assert preferences.keys() <= members.keys()
        for name, value in preferences.items():
            assert value in (getattr(members[name], "enum", None) or [value])


@pytest.mark.parametrize(
    ("alarm", "state"),
    [
        (PROBE_LOST_ALARM.alarm_name(), "ALARM"),
        (HEAL_ERRORS_ALARM.alarm_name(), "ALARM"),
        (PROBE_LOST_ALARM.alarm_name(), "INSUFFICIENT_DATA"),
        (HEAL_ERRORS_ALARM.alarm_name(), ""),
    ],
)
def test_rollout_halts_if_a_canarys_alarm_fires_or_disappears(
    alarm: str, state: str, tmp_path: Path
) -> None:
    """At once where an alarm rings, else when the time is over."""
    # Two looks before the first wave, one for each region.
    looks = [_states(), _states(), *[_states(**{alarm.replace("-", "_"): state})] * 9]
    run = _run(tmp_path, {"describe-alarms": looks}, "update")
    assert run.code == 1
    assert f"{alarm} is {state or 'missing'}, of canary in eu-west-1" in run.refused
    assert len(_started(run)) == 1


def test_rollout_with_a_canary_already_in_alarm_starts_nothing(tmp_path: Path) -> None:
    run = _run(tmp_path, {"describe-alarms": _states(mendq_probe_lost="ALARM")}, "update")
    assert run.code == 1
    assert not STARTS.intersection(run.operations)


@pytest.mark.parametrize("state", ["FAILED", "STOPPED", ""])
def test_rollout_halts_if_a_stack_set_operation_does_not_succeed(
    state: str, tmp_path: Path
) -> None:
    run = _run(tmp_path, {"describe-stack-set-operation": ["RUNNING", state]}, "update")
    assert run.code == 1
    assert f"wave 0 ended as {state or 'nothing'}" in run.refused
    assert len(_started(run)) == 1


def _goes_on(run: Run, how: str) -> bool:
    said = f"halted; once all is well, go on with: sh .*/rollout.sh {how}"
    return bool(run.code and re.fullmatch(said, run.refused.splitlines()[-1]))


@pytest.mark.parametrize(
    ("how", "operation", "answers", "again"),
    [
        ("update", "get-caller-identity", [], "update"),
        ("update", "describe-alarms", [], "update"),
        ("update", "update-stack-set", [], "update 0"),
        ("update", "describe-stack-set-operation", ["RUNNING"], "update 0"),
        # The canaries before, after a minute and in the end, in two regions.
        ("update", "describe-alarms", [_states()] * 7, "update 1"),
        ("first", "create-stack-set", [], "first"),
        ("first", "create-stack-instances", [], "first 0"),
        # What was made is not made twice.
        ("first", "describe-alarms", [], "first 1"),
    ],
)
def test_rollout_with_a_failed_aws_call_halts_and_prints_the_command_to_continue(
    how: str, operation: str, answers: list[str], again: str, tmp_path: Path
) -> None:
    """Such as a token that expires while it watches."""
    run = _run(tmp_path, {operation: [*answers, "!ExpiredToken"]}, how)
    assert "ExpiredToken" in run.refused
    assert _goes_on(run, again), run.refused
    assert len(_started(run)) <= 2


def test_rollout_prints_its_total_duration_first_and_progress_every_10_minutes(
    tmp_path: Path,
) -> None:
    running = {"describe-stack-set-operation": [*["RUNNING"] * 20, "SUCCEEDED"]}
    first, *said = _run(tmp_path, running, "first", soakMinutes=25).said.splitlines()
    assert "3 waves, watched for 1 h 15 min in all" in first
    assert [line[6:] for line in said if "of 25" in line or " for 10 " in line] == [
        "wave 0: RUNNING for 10 minutes",
        *(f"wave {n}: {minutes} of 25 minutes watched" for n in range(3) for minutes in (10, 20)),
    ]


def test_rollout_with_a_profile_of_another_account_starts_nothing(tmp_path: Path) -> None:
    run = _run(tmp_path, {"get-caller-identity": "444455556666"}, "update")
    assert "is of account 444455556666, not of 111122223333" in run.refused
    assert run.operations == ["get-caller-identity"]


def test_first_rollout_creates_the_stack_set_without_auto_deployment_and_halts_if_an_alarm_remains(
    tmp_path: Path,
) -> None:
    """Alarms that ring until the first probe halt nothing, and what still rings in the end does."""
    looks = [_states(mendq_probe_lost="ALARM")]
    run = _run(tmp_path, {"describe-alarms": looks}, "first")
    assert _goes_on(run, "first 1")
    assert run.operations[1] == "create-stack-set"
    assert "Enabled=false" in option(run.of("create-stack-set")[0], "--auto-deployment")
    assert len(run.of("create-stack-instances")) == 1
    assert run.code == 1
    well = _run(tmp_path, {}, "first")
    assert well.code == 0, well.refused
    assert len(well.of("create-stack-instances")) == 3


def test_rollout_continues_at_the_given_wave_after_rechecking_the_previous_wave(
    tmp_path: Path,
) -> None:
    for how in ("first", "update"):
        # The wave before has marked the canaries' stacks so.
        run = _run(tmp_path, {"list-stack-instances": "OUTDATED"}, how, "2")
        assert run.code == 0
        assert "create-stack-set" not in run.operations
        assert [each["OrganizationalUnitIds"] for each in _started(run)] == [list(UNITS[1:])]
        # What was to be watched when it was halted is watched first, in two regions.
        begun = run.operations.index("describe-stack-set-operation")
        assert run.operations[:begun].count("describe-alarms") == 2
    joining = _run(tmp_path, {}, "first", "3")
    assert (joining.code, _started(joining)) == (0, [])
    assert "Enabled=true" in option(joining.of("update-stack-set")[0], "--auto-deployment")
    again = _run(tmp_path, {"create-stack-set": "!NameAlreadyExists"}, "first", "0")
    assert (again.code, len(_started(again))) == (0, 3)


@pytest.mark.parametrize("how", ["first", "update"])
@pytest.mark.parametrize("start", ["1", "2", "3"])
def test_rollout_refuses_a_later_wave_with_a_version_that_the_canaries_do_not_have(
    how: str, start: str, tmp_path: Path
) -> None:
    """A version that was built again after a halt, or other parameters."""
    run = _run(tmp_path, {"describe-stack-set": "Mendq 0123456789abcdef"}, how, start)
    assert "begin with wave 0" in run.refused
    assert run.code == 1
    assert not {*run.operations} & STARTS


def test_rollout_halts_if_a_canary_is_missing_from_the_stack_set_or_outdated(
    tmp_path: Path,
) -> None:
    """Outside the units its alarms are an older stack's, and StackSets calls it a success."""
    for state, start in (("", ["first"]), ("OUTDATED", ["update"]), ("", ["update", "2"])):
        run = _run(tmp_path, {"list-stack-instances": ["CURRENT", state]}, *start)
        assert f"{CANARY} in us-east-1 is {state or 'not there'}: it has to be in" in run.refused
        assert (run.code, len(_started(run))) == (1, 2 - len(start))


@pytest.mark.parametrize(
    "arguments", [(), ("deploy",), ("update", "x"), ("update", "1;id"), ("update", "4")]
)
def test_rollout_with_unknown_arguments_exits_2_and_calls_nothing(
    arguments: tuple[str, ...], tmp_path: Path
) -> None:
    run = _run(tmp_path, {}, *arguments)
    assert (run.code, run.calls) == (2, [])


def test_rollout_script_does_not_execute_shell_text_from_the_waves_file(tmp_path: Path) -> None:
    """Whatever is in a value of a parameter, the shell does not read it."""
    hostile = "a'; touch hurt #$(touch hurt)@ALARMS@"
    url = "https://a/';touch${IFS}hurt;'@ALARMS@"
    run = _run(tmp_path, {}, "update", parameters={"UrgentMail": hostile}, templateUrl=url)
    assert option(run.of("update-stack-set")[0], "--template-url") == url
    pairs = json.loads(option(run.of("update-stack-set")[0], "--parameters"))
    said = {each["ParameterKey"]: each["ParameterValue"] for each in pairs}
    assert said == {"Mode": "observe", "UrgentMail": hostile}
    assert not list(Path().glob("hurt"))


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"regions": []}, "regions: names none; say one at least"),
        ({"regions": ["eu-west-1; id"]}, r"regions\[0\]: .* is not a region; say one such as"),
        ({"canaries": {}}, "canaries: names none"),
        ({"canaries": {CANARY: "a b"}}, f'canaries.{CANARY}: "a b" is not a profile'),
        ({"canaries": {CANARY: "é"}}, "is not a profile"),
        ({"canaries": {"1": "canary"}}, 'canaries.1: "1" is not an account id'),
        ({"canaries": {CANARY: "--query"}}, "is not a profile"),
        ({"waves": [[]]}, "waves: one of them is empty"),
        ({"waves": [["ou-x"]]}, r'waves\[0\]\[0\]: "ou-x" is not the id of a unit'),
        ({"waves": [UNITS[:2], UNITS[1:]]}, f"waves: {UNITS[1]} is in 2 of them; leave it in one"),
        ({"callAs": "DELEGATED"}, "callAs: .* did you mean DELEGATED_ADMIN"),
        ({"soakMinutes": 0}, "soakMinutes: 0 is out of range"),
        ({"canarys": {}}, "canarys: no such setting; did you mean canaries"),
        ({"stackSet": "ours"}, 'stackSet: "ours" is not a name that begins with mendq'),
        ({"parameters": {"urgentMail": "a"}}, "parameters.urgentMail: .* did you mean UrgentMail"),
        ({"waves": [[f"ou-abcd-{n:08}" for n in range(51)]]}, "waves: 51 units, over 50; name one"),
        ({"templateUrl": "http://a b"}, "templateUrl: .* is not an https URL"),
    ],
)
def test_waves_file_with_a_wrong_value_is_refused_with_the_field_and_a_remedy(
    wrong: Mapping[str, Any], named: str, tmp_path: Path
) -> None:
    with pytest.raises(SettingsRefused, match=rf"^WAVES .*{named}"):
        _run(tmp_path, {}, "update", **wrong)
    assert not (tmp_path / "calls").exists()


def test_waves_file_reports_all_mistakes_at_once_and_an_unreadable_file_is_named(
    tmp_path: Path,
) -> None:
    file = tmp_path / "waves.json"
    with pytest.raises(SettingsRefused, match=r"^WAVES .*waves\.json: cannot be read \("):
        load_waves(file)
    file.write_text(json.dumps({"region": [], "soakMinutes": "180"}))
    with pytest.raises(SettingsRefused) as refused:
        load_waves(file)
    named = [str(each).split(":")[0] for each in refused.value.mistakes]
    wrong = ("region", "soakMinutes", "regions", "canaries", "waves")
    assert named == [f"WAVES {each}" for each in wrong]


def test_alarms_that_a_rollout_checks_exist_in_every_stack() -> None:
    essential = {
        each.alarm_name()
        for each in (*NOTIFYING_ALARMS, *ALARMS_IN_COMPOSITES)
        if each.is_essential
    }
    assert {
        each.removesuffix("-intake") if "dlq" in each else each for each in CHECKED_ALARM_NAMES
    } <= essential
