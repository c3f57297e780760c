"""The rollout script updates a stack set in waves and halts if a canary is not healthy."""

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
from tests.infra.stackset.scripts import Answers, ScriptRun, read_option

CANARY = "111122223333"
KEY = "mendq/0123456789abcdef.template.json"
PARAMETERS = {"Mode": "observe", "UrgentMail": ""}
UNITS = ("ou-abcd-11111111", "ou-abcd-22222222", "ou-abcd-33333333")
WAVES: Mapping[str, Any] = {
    "regions": ["eu-west-1", "us-east-1"],
    "canaries": {CANARY: "canary"},
    "waves": [[UNITS[0]], [UNITS[1], UNITS[2]]],
    "soakMinutes": 1,
}
STARTING_OPERATIONS = {"create-stack-set", "create-stack-instances", "update-stack-set"}


def _make_alarm_states(**other: str) -> str:
    """Return alarm states as `aws cloudwatch describe-alarms` prints them. All others are OK."""
    state_by_alarm = dict.fromkeys(CHECKED_ALARM_NAMES, "OK")
    for name, state in other.items():
        state_by_alarm[name.replace("_", "-")] = state
    return "\n".join(f"{name}\t{state}" for name, state in state_by_alarm.items() if state)


HEALTHY_ANSWERS: Answers = {
    "get-caller-identity": CANARY,
    "describe-stack-set-operation": ["QUEUED", "RUNNING", "SUCCEEDED"],
    "describe-alarms": _make_alarm_states(),
    "list-stack-instances": "CURRENT",
    "update-stack-set": "operation-1",
    "create-stack-instances": "operation-1",
}


def _run_script(tmp_path: Path, answers: Answers, *arguments: str, **waves: Any) -> ScriptRun:
    file = tmp_path / "waves.json"
    script = tmp_path / "rollout.sh"
    file.write_text(json.dumps({**WAVES, **waves}))
    script.write_text(fill_rollout_script(load_waves(file), BUCKET, KEY, PARAMETERS))
    described = re.findall(r'--description "(Mendq [0-9a-f]{16})"', script.read_text())[0]
    all_answers = {**HEALTHY_ANSWERS, "describe-stack-set": described, **answers}
    return ScriptRun(script, tmp_path, all_answers, *arguments)


def _list_targets(run: ScriptRun) -> list[dict[str, Any]]:
    name = "--deployment-targets"
    return [json.loads(read_option(call, name)) for call in run.calls if name in call]


def test_rollout_updates_canaries_first_and_then_each_wave_without_the_canaries(
    tmp_path: Path,
) -> None:
    run = _run_script(tmp_path, {}, "update")
    assert run.code == 0, run.error
    kinds = [
        (tuple(target["OrganizationalUnitIds"]), target["AccountFilterType"])
        for target in _list_targets(run)
    ]
    others = [(UNITS[:1], "DIFFERENCE"), (UNITS[1:], "DIFFERENCE")]
    assert kinds == [(UNITS, "INTERSECTION"), *others]
    assert all(target["Accounts"] == [CANARY] for target in _list_targets(run))


def test_rollout_switches_auto_deployment_on_after_its_last_wave(tmp_path: Path) -> None:
    run = _run_script(tmp_path, {}, "update")
    joining = run.list_calls("update-stack-set")[-1]
    assert "Enabled=true" in read_option(joining, "--auto-deployment")
    # AWS refuses regions together with --auto-deployment.
    assert "--regions" not in joining


def test_every_rollout_wave_runs_region_by_region_and_tolerates_no_failure(tmp_path: Path) -> None:
    """StackSets orders the regions, also for the canaries."""
    for settings, at_once in (({}, 5), ({"accountsAtOnce": 1}, 1)):
        *operations, joining = _run_script(tmp_path, {}, "update", **settings).list_calls(
            "update-stack-set"
        )
        assert "--operation-preferences" not in joining
        assert len(operations) == 3
        for operation in operations:
            assert json.loads(read_option(operation, "--operation-preferences")) == {
                "RegionConcurrencyType": "SEQUENTIAL",
                "RegionOrder": WAVES["regions"],
                "MaxConcurrentCount": at_once,
                "FailureToleranceCount": 0,
                "ConcurrencyMode": "SOFT_FAILURE_TOLERANCE",
            }


def test_every_rollout_wave_uses_the_published_template_as_a_delegated_administrator(
    tmp_path: Path,
) -> None:
    *operations, _joining = _run_script(tmp_path, {}, "update").list_calls("update-stack-set")
    assert len(operations) == 3
    for operation in operations:
        assert read_option(operation, "--call-as") == "DELEGATED_ADMIN"
        url = f"https://our-mendq-eu-west-1.s3.eu-west-1.amazonaws.com/{KEY}"
        assert read_option(operation, "--template-url") == url


def test_rollout_operation_preferences_are_valid_for_the_cloudformation_api(tmp_path: Path) -> None:
    run = _run_script(tmp_path, {}, "first")
    client = boto3.client("cloudformation", "eu-west-1")
    members = client.meta.service_model.shape_for("StackSetOperationPreferences").members
    for call in run.list_calls("create-stack-instances"):
        preferences = json.loads(read_option(call, "--operation-preferences"))
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
def test_rollout_halts_if_a_canarys_alarm_fires_has_no_data_or_is_missing(
    alarm: str, state: str, tmp_path: Path
) -> None:
    """A firing alarm halts the rollout at once, another bad state at the end of the soak time."""
    # Two checks before the first wave, one for each region.
    answers = [
        _make_alarm_states(),
        _make_alarm_states(),
        *[_make_alarm_states(**{alarm.replace("-", "_"): state})] * 9,
    ]
    run = _run_script(tmp_path, {"describe-alarms": answers}, "update")
    assert run.code == 1
    assert f"{alarm} is {state or 'missing'}, of canary in eu-west-1" in run.error
    assert len(_list_targets(run)) == 1


def test_rollout_with_a_canary_already_in_alarm_starts_nothing(tmp_path: Path) -> None:
    run = _run_script(
        tmp_path, {"describe-alarms": _make_alarm_states(mendq_probe_lost="ALARM")}, "update"
    )
    assert run.code == 1
    assert not STARTING_OPERATIONS.intersection(run.operations)


@pytest.mark.parametrize("state", ["FAILED", "STOPPED", ""])
def test_rollout_halts_if_a_stack_set_operation_does_not_succeed(
    state: str, tmp_path: Path
) -> None:
    run = _run_script(tmp_path, {"describe-stack-set-operation": ["RUNNING", state]}, "update")
    assert run.code == 1
    assert f"wave 0 ended as {state or 'nothing'}" in run.error
    assert len(_list_targets(run)) == 1


def _prints_continue_command(run: ScriptRun, how: str) -> bool:
    message = f"halted; once all is well, go on with: sh .*/rollout.sh {how}"
    return bool(run.code and re.fullmatch(message, run.error.splitlines()[-1]))


@pytest.mark.parametrize(
    ("how", "operation", "answers", "again"),
    [
        ("update", "get-caller-identity", [], "update"),
        ("update", "describe-alarms", [], "update"),
        ("update", "update-stack-set", [], "update 0"),
        ("update", "describe-stack-set-operation", ["RUNNING"], "update 0"),
        # The canaries are checked before, after a minute and at the end, in two regions.
        ("update", "describe-alarms", [_make_alarm_states()] * 7, "update 1"),
        ("first", "create-stack-set", [], "first"),
        ("first", "create-stack-instances", [], "first 0"),
        # The stack set exists already and is not created again.
        ("first", "describe-alarms", [], "first 1"),
    ],
)
def test_rollout_with_a_failed_aws_call_halts_and_prints_the_command_to_continue(
    how: str, operation: str, answers: list[str], again: str, tmp_path: Path
) -> None:
    """For example, the token expires during the soak time."""
    run = _run_script(tmp_path, {operation: [*answers, "!ExpiredToken"]}, how)
    assert "ExpiredToken" in run.error
    assert _prints_continue_command(run, again), run.error
    assert len(_list_targets(run)) <= 2


def test_rollout_prints_its_total_duration_first_and_progress_every_10_minutes(
    tmp_path: Path,
) -> None:
    running = {"describe-stack-set-operation": [*["RUNNING"] * 20, "SUCCEEDED"]}
    first, *lines = _run_script(tmp_path, running, "first", soakMinutes=25).output.splitlines()
    assert "3 waves, watched for 1 h 15 min in all" in first
    assert [line[6:] for line in lines if "of 25" in line or " for 10 " in line] == [
        "wave 0: RUNNING for 10 minutes",
        *(f"wave {n}: {minutes} of 25 minutes watched" for n in range(3) for minutes in (10, 20)),
    ]


def test_rollout_with_a_profile_of_another_account_starts_nothing(tmp_path: Path) -> None:
    run = _run_script(tmp_path, {"get-caller-identity": "444455556666"}, "update")
    assert "is of account 444455556666, not of 111122223333" in run.error
    assert run.operations == ["get-caller-identity"]


def test_first_rollout_halts_after_the_canaries_if_an_alarm_still_fires_at_the_end(
    tmp_path: Path,
) -> None:
    """An alarm that fires before the first probe does not halt, because nothing runs yet."""
    answers = [_make_alarm_states(mendq_probe_lost="ALARM")]
    run = _run_script(tmp_path, {"describe-alarms": answers}, "first")
    assert run.code == 1
    assert _prints_continue_command(run, "first 1")
    assert len(run.list_calls("create-stack-instances")) == 1


def test_first_rollout_creates_the_stack_set_without_auto_deployment_and_then_each_wave(
    tmp_path: Path,
) -> None:
    run = _run_script(tmp_path, {}, "first")
    assert run.code == 0, run.error
    assert run.operations[1] == "create-stack-set"
    (created,) = run.list_calls("create-stack-set")
    assert "Enabled=false" in read_option(created, "--auto-deployment")
    assert len(run.list_calls("create-stack-instances")) == 3


@pytest.mark.parametrize("how", ["first", "update"])
def test_rollout_continues_at_the_given_wave_after_rechecking_the_previous_wave(
    how: str, tmp_path: Path
) -> None:
    # The previous wave marked the stacks of the canaries as outdated.
    run = _run_script(tmp_path, {"list-stack-instances": "OUTDATED"}, how, "2")
    assert run.code == 0
    assert "create-stack-set" not in run.operations
    assert [target["OrganizationalUnitIds"] for target in _list_targets(run)] == [list(UNITS[1:])]
    # The interrupted check is done first, in two regions.
    first_wait = run.operations.index("describe-stack-set-operation")
    assert run.operations[:first_wait].count("describe-alarms") == 2


def test_rollout_continued_after_its_last_wave_only_switches_auto_deployment_on(
    tmp_path: Path,
) -> None:
    run = _run_script(tmp_path, {}, "first", "3")
    assert run.code == 0
    assert _list_targets(run) == []
    (joining,) = run.list_calls("update-stack-set")
    assert "Enabled=true" in read_option(joining, "--auto-deployment")


def test_first_rollout_started_again_uses_the_stack_set_that_exists(tmp_path: Path) -> None:
    run = _run_script(tmp_path, {"create-stack-set": "!NameAlreadyExists"}, "first", "0")
    assert run.code == 0
    assert len(_list_targets(run)) == 3


@pytest.mark.parametrize("how", ["first", "update"])
@pytest.mark.parametrize("start", ["1", "2", "3"])
def test_rollout_refuses_a_later_wave_with_a_version_that_the_canaries_do_not_have(
    how: str, start: str, tmp_path: Path
) -> None:
    """The version was built again after a halt, or the parameters changed."""
    run = _run_script(tmp_path, {"describe-stack-set": "Mendq 0123456789abcdef"}, how, start)
    assert "begin with wave 0" in run.error
    assert run.code == 1
    assert not {*run.operations} & STARTING_OPERATIONS


def test_rollout_halts_if_a_canary_is_missing_from_the_stack_set_or_outdated(
    tmp_path: Path,
) -> None:
    """For a canary outside the units StackSets reports success, but the stack stays old."""
    for state, start in (("", ["first"]), ("OUTDATED", ["update"]), ("", ["update", "2"])):
        run = _run_script(tmp_path, {"list-stack-instances": ["CURRENT", state]}, *start)
        assert f"{CANARY} in us-east-1 is {state or 'not there'}: it has to be in" in run.error
        assert run.code == 1
        assert len(_list_targets(run)) == 2 - len(start)


@pytest.mark.parametrize(
    "arguments", [(), ("deploy",), ("update", "x"), ("update", "1;id"), ("update", "4")]
)
def test_rollout_with_unknown_arguments_exits_2_and_calls_nothing(
    arguments: tuple[str, ...], tmp_path: Path
) -> None:
    run = _run_script(tmp_path, {}, *arguments)
    assert run.code == 2
    assert run.calls == []


def test_rollout_script_does_not_execute_shell_text_from_the_waves_file(tmp_path: Path) -> None:
    """The shell must not interpret any character of a parameter value."""
    hostile = "a'; touch hurt #$(touch hurt)@ALARMS@"
    url = "https://a/';touch${IFS}hurt;'@ALARMS@"
    run = _run_script(tmp_path, {}, "update", parameters={"UrgentMail": hostile}, templateUrl=url)
    assert read_option(run.list_calls("update-stack-set")[0], "--template-url") == url
    pairs = json.loads(read_option(run.list_calls("update-stack-set")[0], "--parameters"))
    parameters = {pair["ParameterKey"]: pair["ParameterValue"] for pair in pairs}
    assert parameters == {"Mode": "observe", "UrgentMail": hostile}
    assert not list(Path().glob("hurt"))


@pytest.mark.parametrize(
    ("wrong", "message"),
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
    wrong: Mapping[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(SettingsRefused, match=rf"^WAVES .*{message}"):
        _run_script(tmp_path, {}, "update", **wrong)
    assert not (tmp_path / "calls").exists()


def test_missing_waves_file_is_refused_with_its_name(tmp_path: Path) -> None:
    with pytest.raises(SettingsRefused, match=r"^WAVES .*waves\.json: cannot be read \("):
        load_waves(tmp_path / "waves.json")


def test_all_mistakes_of_a_waves_file_are_reported_at_once(tmp_path: Path) -> None:
    file = tmp_path / "waves.json"
    file.write_text(json.dumps({"region": [], "soakMinutes": "180"}))
    with pytest.raises(SettingsRefused) as refused:
        load_waves(file)
    fields = [str(mistake).split(":")[0] for mistake in refused.value.mistakes]
    wrong = ("region", "soakMinutes", "regions", "canaries", "waves")
    assert fields == [f"WAVES {field}" for field in wrong]


def test_alarms_that_a_rollout_checks_exist_in_every_stack() -> None:
    essential = {
        alarm.alarm_name()
        for alarm in (*NOTIFYING_ALARMS, *ALARMS_IN_COMPOSITES)
        if alarm.is_essential
    }
    assert {
        name.removesuffix("-intake") if "dlq" in name else name for name in CHECKED_ALARM_NAMES
    } <= essential
