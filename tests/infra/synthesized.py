"""Templates as CloudFormation would see them, each synthesized once for the same sources."""

from __future__ import annotations

import atexit
import fcntl
import json
import shutil
import tempfile
from collections.abc import Callable, Mapping
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from infra.packaging.wheels import ROOT
from infra.settings.deployment import read_deployment_settings
from infra.stack import StackCode
from infra.synthesis import find_default_region_and_account, make_app, make_empty_code, synthesize
from local_account.deployment import make_assembly_name
from mendq.model.names import PROBE_ROLE_PURPOSE, ROLE_PURPOSES_EXCLUDED_FROM_EVENTS

ACCOUNT = "111122223333"
REGION = "us-east-1"
QUEUE_ARNS = f"arn:aws:sqs:{REGION}:{ACCOUNT}:"
OWN_ROLES = tuple(
    f"arn:aws:iam::{ACCOUNT}:role/mendq-{each}-{REGION}"
    for each in ROLE_PURPOSES_EXCLUDED_FROM_EVENTS
)
HEAL_ROLE = OWN_ROLES[0]
PROBE_ROLE = f"arn:aws:iam::{ACCOUNT}:role/mendq-{PROBE_ROLE_PURPOSE}-{REGION}"
CALENDAR = f"arn:aws:ssm:{REGION}:{ACCOUNT}:document/quiet-days"
SETTINGS: Mapping[str, Mapping[str, Any]] = json.loads(
    Path(__file__).with_name("settings.json").read_text()
)
NIGHTLY_OFF = {"nightly": {"enabled": False}}
THREE = (
    {"account": ACCOUNT, "region": REGION},
    {"account": ACCOUNT, "region": "ap-southeast-4"},
    {"account": "444455556666", "region": "eu-west-1"},
)


class Template:
    """A synthesized template with this account's pseudo parameters filled in."""

    def __init__(self, raw: Mapping[str, Any]) -> None:
        self.raw = raw
        self.outputs = self.resolved(raw["Outputs"])

    def all(self, resource_type: str) -> dict[str, Any]:
        """The whole resources of a type, by logical id."""
        return {
            name: self.resolved(each)
            for name, each in self.raw["Resources"].items()
            if each["Type"] == resource_type
        }

    def only(self, resource_type: str, start: str = "") -> Any:
        """The properties of the one resource of a type whose logical id starts so."""
        (found,) = (
            each["Properties"]
            for name, each in self.all(resource_type).items()
            if name.startswith(start)
        )
        return found

    def statements(self, role: str) -> list[dict[str, Any]]:
        """The policy statements of a role, by how its logical id starts."""
        return [
            statement
            for name, policy in self.all("AWS::IAM::Policy").items()
            if name.startswith(role)
            for statement in policy["Properties"]["PolicyDocument"]["Statement"]
        ]

    def arn_of(self, resource_type: str, start: str) -> str:
        """The ARN, as `resolved` gives it, of the one resource that starts so."""
        (found,) = (name for name in self.all(resource_type) if name.startswith(start))
        return self._arn(found)

    def resolved(self, value: Any) -> Any:
        """`value` without intrinsic functions; a resource's ARN becomes `arn:<logical id>`."""
        if isinstance(value, list):
            return [self.resolved(each) for each in value]
        if not isinstance(value, dict):
            return value
        ((intrinsic, of), *others) = value.items() or [("", None)]
        function = {} if others else self._intrinsic_functions()
        if intrinsic in function:
            return function[intrinsic](of)
        return {name: self.resolved(each) for name, each in value.items()}

    def _intrinsic_functions(self) -> dict[str, Callable[[Any], Any]]:
        return {
            "Ref": lambda name: ACCOUNT if name == "AWS::AccountId" else name,
            "Fn::GetAtt": lambda of: self._arn(of[0]) if of[1] == "Arn" else of[0],
            "Fn::Sub": lambda text: text.replace("${AWS::AccountId}", ACCOUNT),
            "Fn::Join": lambda of: of[0].join(self.resolved(of[1])),
        }

    def _arn(self, logical_id: str) -> str:
        is_queue = self.raw["Resources"][logical_id]["Type"] == "AWS::SQS::Queue"
        return f"{QUEUE_ARNS}{logical_id}" if is_queue else f"arn:{logical_id}"


def as_list(value: Any) -> list[Any]:
    """What a template may spell as one value or as several."""
    return value if isinstance(value, list) else [value]


CACHE = ROOT / "build" / "test-assemblies"
# Half as many again as one run takes: older ones are of other sources, and nobody reads them now.
RETAINED = 60


def _new_folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="mendq-test-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@cache
def light_code() -> StackCode:
    """For whatever looks at something else of a stack."""
    return make_empty_code(_new_folder() / "code")


@cache
def _sources() -> str:
    return make_assembly_name("")


def _retained(settings: Mapping[str, Any], code: StackCode | None) -> Path:
    """The cloud assembly that the same sources gave before, to whichever worker or run."""
    named = json.dumps([_sources(), settings, find_default_region_and_account(), code is None])
    return retained(
        named,
        lambda fresh: synthesize(read_deployment_settings(settings), make_app(fresh), code=code),
    )


def retained(named: str, make: Callable[[Path], object]) -> Path:
    """The folder that `make` fills, or filled before under the same name."""
    found = CACHE / sha256(named.encode()).hexdigest()[:16]
    CACHE.mkdir(parents=True, exist_ok=True)
    with _lock_of(found).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another worker may be making the same
        if not found.is_dir():
            fresh = Path(tempfile.mkdtemp(prefix=".synth-", dir=CACHE))
            make(fresh)
            fresh.replace(found)
    found.touch()
    for old in sorted(CACHE.glob("[!.]*"), key=lambda each: -each.stat().st_mtime)[RETAINED:]:
        shutil.rmtree(old, ignore_errors=True)
        _lock_of(old).unlink(missing_ok=True)
    return found


def _lock_of(retained: Path) -> Path:
    return retained.with_name(f".{retained.name}.lock")


@cache
def folder_of(name: str) -> Path:
    """The cloud assembly of one of SETTINGS, with light code."""
    return _retained(SETTINGS[name], light_code())


@cache
def whole_assembly() -> Path:
    """The default's with the code that is shipped."""
    return _retained(SETTINGS["default"], None)


@cache
def template_of(name: str) -> Template:
    return _template_in(folder_of(name))


def template_with(settings: Mapping[str, Any]) -> Template:
    """For settings that one test alone asks for."""
    return _template_in(_retained(settings, light_code()))


def _template_in(folder: Path) -> Template:
    return Template(json.loads((folder / "Mendq.template.json").read_text()))


@cache
def folder_of_three() -> Path:
    """The cloud assembly of one stack for each of THREE, with light code."""
    return _retained({"environments": list(THREE)}, light_code())


@cache
def templates_of_three() -> tuple[Template, ...]:
    files = sorted(folder_of_three().glob("Mendq-*.template.json"))
    return tuple(Template(json.loads(each.read_text())) for each in files)


def asset_of(function: str) -> Path:
    """What is shipped for the Lambda whose logical id starts so."""
    template = _template_in(whole_assembly())
    key = template.only("AWS::Lambda::Function", function)["Code"]["S3Key"]
    return whole_assembly() / f"asset.{key.removesuffix('.zip')}"
