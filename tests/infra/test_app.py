"""`python app.py` synthesizes the stack without credentials, network and CDK CLI."""

from __future__ import annotations

import json
import re
import runpy
import shlex
import subprocess
import sys
from functools import partial
from pathlib import Path

import aws_cdk as cdk
import pytest

from infra import node, synthesis
from infra.packaging import wheels
from infra.packaging.wheels import ROOT, WheelsUnavailable
from infra.settings.deployment import read_deployment_settings
from infra.settings.reading import SettingsRefused
from infra.synthesis import load_raw_settings, make_app
from tests.infra.synthesized import THREE, light_code, whole_assembly

UNREACHABLE_URL = "http://127.0.0.1:9"
OFFLINE = {
    **dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), UNREACHABLE_URL),
    "PIP_NO_INDEX": "1",
    "UV_DEFAULT_INDEX": UNREACHABLE_URL,
    "UV_NO_CACHE": "1",
    "PYTHONHASHSEED": "7",
    "JSII_RUNTIME_PACKAGE_CACHE_ROOT": str(ROOT / "build" / "jsii"),  # each test has another HOME
}


def _run_app(folder: Path, **context: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "app.py"],
        cwd=ROOT,
        env={
            **OFFLINE,
            "PATH": "/usr/bin:/bin",
            "HOME": str(folder),
            "CDK_OUTDIR": str(folder / "out"),
            "CDK_CONTEXT_JSON": json.dumps(context),
        },
        capture_output=True,
        text=True,
        check=False,
    )


def test_app_with_wrong_settings_prints_one_line_per_mistake_and_synthesizes_nothing(
    tmp_path: Path,
) -> None:
    done = _run_app(tmp_path, mendq={"mode": "Heal", "queues": ["*"], "nightly_runs": {}})
    assert done.returncode == 1
    paths = [line.split(":")[0] for line in done.stderr.splitlines()]
    assert paths == ["nightly_runs", "mode", "queues[0]"]
    assert not list((tmp_path / "out").glob("*.template.json"))


def test_cdk_json_permissions_boundary_and_bootstrap_qualifier_reach_every_role_and_asset(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """docs/deploy.md says to put both into cdk.json."""
    cdk_json = json.loads(synthesis.CDK_JSON_FILE.read_text())
    cdk_json["context"]["@aws-cdk/core:permissionsBoundary"] = {"name": "our-boundary"}
    cdk_json["context"]["@aws-cdk/core:bootstrapQualifier"] = "ourteam"
    (tmp_path / "cdk.json").write_text(json.dumps(cdk_json))
    monkeypatch.setattr(synthesis, "CDK_JSON_FILE", tmp_path / "cdk.json")
    given = read_deployment_settings({"environments": THREE})
    assembly = synthesis.synthesize(given, make_app(tmp_path / "out"), code=light_code())
    assert len(assembly.stacks) == len(THREE)
    for stack in assembly.stacks:
        for resource in stack.template["Resources"].values():
            if resource["Type"] == "AWS::IAM::Role":
                boundary = resource["Properties"]["PermissionsBoundary"]
                assert ":policy/our-boundary" in json.dumps(boundary)
    written = "".join(path.read_text() for path in (tmp_path / "out").glob("*.json"))
    assert {*re.findall(r"cdk-(\w+)-(?:assets|deploy-role)-", written)} == {"ourteam"}


@pytest.mark.long
def test_app_offline_and_without_credentials_synthesizes_the_same_bytes(tmp_path: Path) -> None:
    done = _run_app(tmp_path)
    assert done.returncode == 0
    assert done.stderr == ""
    for name in ("Mendq.template.json", "Mendq.assets.json"):
        assert (tmp_path / "out" / name).read_text() == (whole_assembly() / name).read_text()


def test_app_without_its_packages_exits_with_one_line_that_says_what_to_run() -> None:
    # -S leaves out the packages of the virtual environment.
    command = [sys.executable, "-S", "app.py"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith("No module named ")
    assert "make setup" in line


def test_app_without_node_exits_with_one_line_that_says_what_to_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node, "require_node", partial(node.require_node, tmp_path / "node"))
    with pytest.raises(SystemExit, match=r"^Node.* is missing: run `make clean setup`$"):
        runpy.run_path(str(ROOT / "app.py"))


def test_app_exits_with_one_line_if_the_wheels_cannot_be_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def raise_unavailable() -> None:
        raise WheelsUnavailable("nothing could be fetched")

    monkeypatch.setattr(sys, "argv", ["app.py"])
    monkeypatch.setenv("CDK_OUTDIR", str(tmp_path / "out"))
    monkeypatch.setattr(wheels, "WHEELS_FOLDER", tmp_path / ".wheels")
    monkeypatch.setattr(wheels, "fill_wheels_folder", raise_unavailable)
    with pytest.raises(SystemExit, match=r"^nothing could be fetched$"):
        runpy.run_path(str(ROOT / "app.py"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, r"^cdk\.json: cannot be read \(No such file .*\); restore it: git checkout"),
        ("[]", r"^cdk\.json: is not an object; write it as"),
        ("7", r"^cdk\.json: is not an object; write it as"),
        ("null", r"^cdk\.json: is not an object; write it as"),
        ('{"context": []}', r"^context: is not an object; write it as"),
        ('{"context": null}', r"^context: is not an object; write it as"),
        ('{"context": {}, "context": {}}', r"^context: is there twice; leave one out"),
        ("{", r"^cdk\.json: is not JSON"),
        ("\udcff", r"^cdk\.json: is not JSON \(it is not UTF-8\)"),
    ],
)
def test_app_with_an_unusable_cdk_json_exits_with_one_sentence_and_writes_no_template(
    text: str | None, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cdk_json = tmp_path / "cdk.json"
    if text is not None:
        cdk_json.write_text(text, errors="surrogateescape")
    monkeypatch.setattr(synthesis, "CDK_JSON_FILE", cdk_json)
    monkeypatch.setattr(sys, "argv", ["app.py"])
    monkeypatch.setenv("CDK_OUTDIR", str(tmp_path / "out"))
    with pytest.raises(SystemExit, match=message) as ended:
        runpy.run_path(str(ROOT / "app.py"))
    assert "\n" not in str(ended.value)
    assert not list(tmp_path.glob("out/*.template.json"))


def test_app_that_fails_unexpectedly_exits_with_one_sentence_that_names_the_error_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("Validation failed\nmany lines")

    app_file = tmp_path / "app.py"
    app_file.write_text((ROOT / "app.py").read_text())
    monkeypatch.setattr(synthesis, "make_app", fail)
    monkeypatch.setattr(sys, "argv", ["app.py"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(app_file))
    error_file = tmp_path / "build" / "synthesis-error.txt"
    assert ended.value.code == (
        "the synthesis failed (RuntimeError: Validation failed); "
        f"the whole error is in {error_file}"
    )
    assert "many lines" in error_file.read_text()


def test_make_synth_settings_option_makes_the_app_read_that_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "our settings.json"
    command = ["make", "--dry-run", "--always-make", "synth", f"SETTINGS={file}"]
    made = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    (line,) = (line for line in made.splitlines() if "app.py" in line)
    monkeypatch.setattr(sys, "argv", shlex.split(line)[1:])
    monkeypatch.setenv("CDK_OUTDIR", str(tmp_path / "out"))
    with pytest.raises(SystemExit, match=r"^SETTINGS .*our settings\.json: cannot be read .*"):
        runpy.run_path(str(ROOT / "app.py"))
    file.write_text('{"mode": "Heal"}')
    with pytest.raises(SystemExit, match=r"^mode: .* did you mean heal\?$"):
        runpy.run_path(str(ROOT / "app.py"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{mode: heal}", "is not JSON"),
        ("heal", 'is not JSON .* as {"mode": "heal"}'),
        ("7", "7 is not an object"),
        ("[]", r"\[\] is not an object"),
    ],
)
def test_settings_on_the_cdk_command_line_that_are_no_json_object_are_refused(
    text: str, message: str
) -> None:
    with pytest.raises(SettingsRefused, match=rf"^mendq: {message}.*\Z"):
        read_deployment_settings(load_raw_settings(cdk.App(context={"mendq": text})))


def test_null_settings_in_the_cdk_context_mean_the_defaults() -> None:
    assert load_raw_settings(cdk.App(context={"mendq": "null"})) == {}


def test_settings_on_the_cdk_command_line_are_read_as_json() -> None:
    app = cdk.App(context={"mendq": '{"mode": "propose"}'})
    assert load_raw_settings(app) == {"mode": "propose"}


def test_settings_come_from_cdk_json_if_the_command_line_has_none(tmp_path: Path) -> None:
    context = json.loads((ROOT / "cdk.json").read_text())["context"]
    assert load_raw_settings(make_app(tmp_path)) == context["mendq"]


def test_broken_cdk_json_is_refused_with_the_line_of_the_mistake(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cdk_json = tmp_path / "cdk.json"
    cdk_json.write_text('{"context": {"mendq": {"mode": "heal",}}}')
    monkeypatch.setattr(synthesis, "CDK_JSON_FILE", cdk_json)
    with pytest.raises(SettingsRefused, match=r"^cdk\.json: is not JSON \(.*line 1.*\); fix it"):
        make_app(tmp_path / "out")


def test_cdk_json_without_settings_means_the_defaults(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cdk.json").write_text("{}")
    monkeypatch.setattr(synthesis, "CDK_JSON_FILE", tmp_path / "cdk.json")
    assert load_raw_settings(make_app(tmp_path / "out")) == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"mendq": {"mode": "heal"}}', "^mendq: stands beside `context`"),
        ('{"context": {"mendqq": {"mode": "heal"}}}', r"^context\.mendqq: .* mean mendq\?$"),
    ],
)
def test_misplaced_or_misspelled_settings_key_in_cdk_json_is_refused(
    text: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(synthesis, "CDK_JSON_FILE", tmp_path / "cdk.json")
    synthesis.CDK_JSON_FILE.write_text(text)
    with pytest.raises(SettingsRefused, match=message):
        make_app(tmp_path / "out")
