"""`pip install .`: the wheel holds the engine alone, and runs every command."""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# With the wheel and the libraries, and nothing else of the repository; one start for all commands.
RUN = """
import json, sys
sys.path[:0] = sys.argv[1:3]
from typer.testing import CliRunner
from mendq.cli.__main__ import app, main
from mendq.cli.cost.bill import Deployed, lines
lines(Deployed({"Resources": {}}))
said = []
for words in json.loads(sys.argv[3]):
    sys.argv[1:] = words
    said.append(CliRunner().invoke(app, words))
print(json.dumps([[e.exit_code, e.stdout, e.stderr] for e in said]))
"""
TEMPLATE = """
Resources:
  Orders: {Type: AWS::SQS::Queue, Properties: {VisibilityTimeout: 10}}
  Bill: {Type: AWS::Lambda::Function, Properties: {Timeout: 10}}
  BillOrders:
    Type: AWS::Lambda::EventSourceMapping
    Properties: {EventSourceArn: !GetAtt Orders.Arn, FunctionName: !Ref Bill}
"""
RECORD = '{"eventSource": "sqs.amazonaws.com", "eventName": "DeleteMessage"}'


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from what git tracks and unpacked."""
    folder = tmp_path_factory.mktemp("wheel")
    pip = (sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation")
    listed = ["git", "ls-files", "-z", "mendq", "pyproject.toml", "README.md", "LICENSE"]
    tracked = subprocess.check_output(listed, cwd=ROOT, text=True).split("\0")
    for name in filter(None, tracked):
        copy = folder / "source" / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes((ROOT / name).read_bytes())
    subprocess.run([*pip, "--wheel-dir", ".", "./source"], check=True, cwd=folder)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as zipped:
        zipped.extractall(folder / "unpacked")
    return folder / "unpacked"


def test_it_holds_the_engine_and_its_page_and_declares_what_it_imports(unpacked: Path) -> None:
    assert {each.name.split("-")[0] for each in unpacked.iterdir()} == {"mendq"}
    assert [*unpacked.glob("mendq/report/template/*.html.j2")]
    assert (unpacked / "mendq" / "cli" / "deploy" / "record_failed_calls.py").exists()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = {each.split(">")[0] for each in project["dependencies"]}
    assert named == {"boto3", "jmespath", "msgspec", "rich", "typer"}


def test_what_needs_no_account_runs_and_the_rest_gets_as_far_as_asking(
    unpacked: Path, tmp_path: Path
) -> None:
    (tmp_path / "queue.yaml").write_text(TEMPLATE)
    (tmp_path / "record.json").write_text(RECORD)
    words = (
        *("--help", "explain record.json --json", "lint queue.yaml --format json"),
        *("cost --region us-east-1", "doctor --region us-east-1"),
    )
    asked = json.dumps([each.split() for each in words])
    libraries = sysconfig.get_path("purelib")
    ran = subprocess.run(
        [sys.executable, "-S", "-c", RUN, str(unpacked), libraries, asked],
        cwd=tmp_path,
        env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        check=False,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
    shown, explained, linted, *others = json.loads(ran.stdout)
    assert (shown[0], "rollback" in shown[1]) == (0, True)
    assert '"not_failed"' in explained[1]
    assert '"dlq_missing"' in linted[1]
    for code, _, complaint in others:
        assert (code, complaint[:21]) == (1, "mendq: no credentials")
