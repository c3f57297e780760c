"""The pinned CDK CLI, as a user runs it: it gives what `python app.py` gives."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from infra.packaging.cdk_cli import CLI, STAYS, main, with_settings
from infra.packaging.wheels import ROOT
from tests.infra.pinned_cli import cdk, first_error
from tests.infra.synthesized import whole_assembly


def test_with_a_file_of_settings_it_gives_the_template_that_app_py_gives(
    cli: Path, tmp_path: Path
) -> None:
    """Over several lines, and with what shells and the CLI split at."""
    path, out = tmp_path / "it's prod.json", tmp_path / "cdk.out"
    notifications = {"urgent": ["https://events.example.com/in?key=a=b"]}
    path.write_text(json.dumps({"notifications": notifications}, indent=2))
    words = with_settings(["--settings", str(path), "synth", "--quiet"])
    done = cdk(cli, tmp_path, *words, "--output", str(out))
    assert done.returncode == 0, done.stderr
    given, plain = (
        json.loads((folder / "Mendq.template.json").read_text())
        for folder in (out, whole_assembly())
    )
    (subscribed,) = given["Resources"].keys() - plain["Resources"].keys()
    added = given["Resources"].pop(subscribed)
    assert added["Properties"]["Endpoint"] == notifications["urgent"][0]
    assert given == plain


def test_its_context_wins_and_mistakes_are_passed_on(cli: Path, tmp_path: Path) -> None:
    mistaken = 'mendq={"mode": "Heal", "modus": 1}'
    done = cdk(cli, tmp_path, "synth", "--output", str(tmp_path / "cdk.out"), "-c", mistaken)
    assert done.returncode == 1
    assert "modus: no such setting; did you mean mode?" in done.stderr
    assert 'mode: "Heal" is not observe, propose or heal; did you mean heal?' in done.stderr
    assert "Traceback" not in done.stderr


def test_a_file_without_settings_starts_nothing_and_without_one_the_cli_gets_what_was_typed(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["--settings", str(tmp_path / "gone.json"), "deploy"]) == 2
    assert "gone.json cannot be read" in capfd.readouterr().err
    typed = ["deploy", "Mendq-444455556666-eu-west-1", "--profile", "staging"]
    assert with_settings(typed) == typed


def test_make_cdk_runs_the_pinned_version() -> None:
    """As the README says it; npx fetches it where it is not there."""
    done = subprocess.run(
        [sys.executable, "-m", "infra.packaging.cdk_cli", "--version"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode and "npm error" in done.stderr:
        pytest.skip(f"npx could not fetch {CLI}: {first_error(done.stderr)}")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(CLI.split("@")[1])


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [(["destroy"], 0, True), (["destroy"], 1, False), (["deploy"], 0, False), ([], 0, False)],
)
def test_after_a_destroy_it_is_said_how_to_ask_for_what_stayed(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    code: int,
    says: bool,
) -> None:
    ran = CompletedProcess[str]([], code)
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: ran)
    assert main(arguments) == code
    assert (STAYS in capsys.readouterr().out) is says
