"""The settings that the account deploys with, what it says, and how a start ends that cannot be."""

from __future__ import annotations

import json
import shlex
import socket
from pathlib import Path

import pytest
from typer.testing import CliRunner

from infra.settings.deployment import TrailSettings
from local_account import deployment, where
from local_account.command_line import main, merge_default_settings
from local_account.deployment import Synthesis, make_assembly_name
from local_account.launcher import (
    describe_first_steps,
    list_lowered_limits,
    make_shell_exports,
    read_settings,
)
from local_account.where import CannotStart
from mendq.cli.app import app
from mendq.model.mode import Mode

URL = "http://127.0.0.1:4566"
ONE_QUEUE = "arn:aws:sqs:us-east-1:000000000000:orders"


def test_local_account_without_settings_file_observes_and_selects_every_call() -> None:
    settings = read_settings(merge_default_settings(""))
    assert (settings.mode, settings.tag_may_raise_to) == (Mode.OBSERVE, Mode.HEAL)
    assert settings.trail.queue_arn_prefixes == ("arn:aws:sqs:us-east-1:000000000000:",)
    assert settings.trail.event_names == ()
    (floor,) = list_lowered_limits(settings)
    assert floor.startswith("timing.propagationSeconds: 0 instead of")


def test_settings_file_of_the_local_account_replaces_only_the_defaults_that_it_names(
    tmp_path: Path,
) -> None:
    path = tmp_path / "settings.json"
    path.write_text(json.dumps({"mode": "heal", "trail": {"queueArnPrefixes": [ONE_QUEUE]}}))
    settings = read_settings(merge_default_settings(str(path)))
    assert (settings.mode, settings.tag_may_raise_to) == (Mode.HEAL, Mode.HEAL)
    assert settings.trail.queue_arn_prefixes == (ONE_QUEUE,)
    assert settings.trail.management_events


def test_existing_trail_in_the_settings_of_the_local_account_gets_no_event_selectors(
    tmp_path: Path,
) -> None:
    path = tmp_path / "settings.json"
    path.write_text(json.dumps({"trail": {"create": False, "bucket": "our-logs"}}))
    assert read_settings(merge_default_settings(str(path))).trail == TrailSettings(
        create=False, bucket="our-logs"
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--settings", "missing.json"), "cannot be read (No such file or directory)"),
        (("--settings", "wrong.json"), "quues"),
        (("--settings", '{"mode": '), "SETTINGS is not JSON: Expecting value"),
        (("--settings", '{"a":' * 100_000), "SETTINGS is not JSON: nested too deep"),
        (("--settings", '{"mode": "heal", "mode": "heal"}'), "mode"),
        (("--port", "many"), "PORT many is not a port: give a number"),
        (("--port", "TAKEN"), "is taken: give another one with PORT"),
        (("--assembly", "nowhere"), "holds no cloud assembly with one stack"),
        (("--nonsense",), "unrecognized arguments: --nonsense"),
        ((), "cannot be made (Not a directory): see to"),
    ],
)
def test_local_account_with_a_bad_option_or_setting_exits_2_with_one_line(
    arguments: tuple[str, ...],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    (tmp_path / "wrong.json").write_text(json.dumps({"mode": "heel", "quues": []}))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "file"))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert main([argument.replace("TAKEN", port) for argument in arguments]) == 2
    shown = capsys.readouterr()
    (line,) = shown.err.splitlines()
    assert (shown.out, line.startswith("make account: "), said in line) == ("", True, True)


def _under(heading: str, text: str) -> list[str]:
    return text.partition(f"{heading}\n")[2].partition("\n\n")[0].splitlines()


def test_shell_exports_of_the_local_account_can_be_pasted_if_its_folder_has_a_space(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(where, "ACCOUNTS_FOLDER", Path("/with a space"))
    exported = [shlex.split(line) for line in make_shell_exports(URL).splitlines()]
    assert exported == [
        ["export", "AWS_SHARED_CREDENTIALS_FILE=/with a space/4566/credentials"],
        ["export", f"AWS_ENDPOINT_URL={URL}"],
    ]


def test_first_steps_in_the_local_account_show_its_modes_and_only_commands_that_exist() -> None:
    steps = describe_first_steps(read_settings(merge_default_settings("")))
    assert _under("Settings in force:", steps)[0] == "  mode observe, tagMayRaiseTo heal"
    for line in _under("To try there, in this folder:", steps):
        program, command, *options = shlex.split(line.partition("#")[0])
        help_text = CliRunner().invoke(app, [command, "--help"])
        assert (program, help_text.exit_code) == (".venv/bin/mendq", 0)
        assert all(option in help_text.stdout for option in options)


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small one with a cache of its own."""
    (tmp_path / "infra").mkdir()
    for name in ("app.py", "cdk.json", "requirements.txt", "infra/stack.py"):
        (tmp_path / name).write_text(name)
    monkeypatch.setattr(deployment, "REPOSITORY", tmp_path)
    monkeypatch.setattr(deployment, "ASSEMBLIES_FOLDER", tmp_path / "build" / "assemblies")
    return tmp_path


@pytest.mark.parametrize("name", ["infra/new.py", "infra/stack.py", "cdk.json"])
def test_cached_assembly_is_reused_unless_settings_or_stack_sources_changed(
    repository: Path, name: str
) -> None:
    before = make_assembly_name("{}")
    assert make_assembly_name('{"mode": "heal"}') != before
    retained = repository / "build" / "assemblies" / before
    retained.mkdir(parents=True)
    (retained / "manifest.json").touch()
    assert Synthesis(repository / "fresh").assembly_for({}, lambda _: None) == retained
    (repository / name).write_text("new")
    assert make_assembly_name("{}") != before


def test_failed_synthesis_is_reported_and_leaves_no_assembly_in_the_cache(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deployment, "SYNTHESIS_MODULE", "no_such_module")
    with pytest.raises(CannotStart, match=r"cannot be synthesized: .*no_such_module"):
        Synthesis(repository / "fresh").assembly_for({}, lambda _: None)
    assert list((repository / "build" / "assemblies").iterdir()) == []


def test_synthesis_into_a_cache_that_cannot_be_written_is_refused_with_its_path(
    repository: Path,
) -> None:
    (repository / "build").mkdir()
    (repository / "build" / "assemblies").touch()
    with pytest.raises(CannotStart, match=r"build/assemblies cannot be written"):
        Synthesis(repository / "fresh").assembly_for({}, lambda _: None)
