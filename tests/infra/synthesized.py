"""Synthesized templates as CloudFormation reads them. Each is synthesized once per sources."""

from __future__ import annotations

import atexit
import fcntl
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from grimp import build_graph

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
    f"arn:aws:iam::{ACCOUNT}:role/mendq-{purpose}-{REGION}"
    for purpose in ROLE_PURPOSES_EXCLUDED_FROM_EVENTS
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
        self.outputs = self.resolve(raw["Outputs"])

    def all(self, resource_type: str) -> dict[str, Any]:
        """Return the resources of a type by logical id."""
        return {
            name: self.resolve(resource)
            for name, resource in self.raw["Resources"].items()
            if resource["Type"] == resource_type
        }

    def only(self, resource_type: str, start: str = "") -> Any:
        """Return the properties of the only resource whose logical id has this start."""
        (properties,) = (
            resource["Properties"]
            for name, resource in self.all(resource_type).items()
            if name.startswith(start)
        )
        return properties

    def statements(self, role: str) -> list[dict[str, Any]]:
        """Return the policy statements of the role whose logical id has this start."""
        return [
            statement
            for name, policy in self.all("AWS::IAM::Policy").items()
            if name.startswith(role)
            for statement in policy["Properties"]["PolicyDocument"]["Statement"]
        ]

    def arn_of(self, resource_type: str, start: str) -> str:
        """Return the ARN, as `resolve` gives it, of the only resource with this start."""
        (logical_id,) = (name for name in self.all(resource_type) if name.startswith(start))
        return self._arn(logical_id)

    def resolve(self, value: Any) -> Any:
        """Return `value` without intrinsic functions. A resource's ARN is `arn:<logical id>`."""
        if isinstance(value, list):
            return [self.resolve(item) for item in value]
        if not isinstance(value, dict):
            return value
        ((intrinsic, argument), *others) = value.items() or [("", None)]
        function = {} if others else self._intrinsic_functions()
        if intrinsic in function:
            return function[intrinsic](argument)
        return {name: self.resolve(item) for name, item in value.items()}

    def _intrinsic_functions(self) -> dict[str, Callable[[Any], Any]]:
        return {
            "Ref": lambda name: ACCOUNT if name == "AWS::AccountId" else name,
            "Fn::GetAtt": lambda path: self._arn(path[0]) if path[1] == "Arn" else path[0],
            "Fn::Sub": lambda text: text.replace("${AWS::AccountId}", ACCOUNT),
            "Fn::Join": lambda join: join[0].join(self.resolve(join[1])),
        }

    def _arn(self, logical_id: str) -> str:
        is_queue = self.raw["Resources"][logical_id]["Type"] == "AWS::SQS::Queue"
        return f"{QUEUE_ARNS}{logical_id}" if is_queue else f"arn:{logical_id}"


def as_list(value: Any) -> list[Any]:
    """Return the value as a list, because a template may have one value or several."""
    return value if isinstance(value, list) else [value]


# A run with a planted fault sets this variable to a folder of its own. Otherwise it would find an
# assembly that was synthesized without the fault, or leave one with the fault to other runs.
CACHE_VARIABLE = "MENDQ_TEST_ASSEMBLIES"
# One run needs two thirds of these folders. Older ones belong to other sources.
RETAINED = 60


def _new_folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="mendq-test-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@cache
def light_code() -> StackCode:
    """Return placeholder code, for tests that do not read the code of the Lambdas."""
    return make_empty_code(_new_folder() / "code")


@cache
def _sources() -> str:
    """Return a digest of everything that a stack with its shipped code is made of."""
    return make_assembly_name("")


@cache
def sources_of_template() -> str:
    """Return a digest of what a template without shipped code is made of.

    These are the modules of `infra`, all modules that they import, directly or not, and the files
    beside them that are no modules. So a change of a command or a Lambda makes no new synthesis.
    """
    graph = build_graph("infra", "mendq", "functions", "analytics", "local_account")
    module_names = {"infra"} | graph.find_descendants("infra")
    module_names |= graph.find_upstream_modules("infra", as_package=True)
    digest = sha256()
    for path in sorted(path for name in ("infra", "mendq") for path in (ROOT / name).rglob("*")):
        relative_path = path.relative_to(ROOT)
        module_name = ".".join(relative_path.with_suffix("").parts).removesuffix(".__init__")
        is_data = path.suffix not in (".py", ".pyc") and path.is_file()
        if is_data or (path.suffix == ".py" and module_name in module_names):
            digest.update(relative_path.as_posix().encode())
            digest.update(path.read_bytes())
    for file_name in ("cdk.json", "requirements.txt"):
        digest.update((ROOT / file_name).read_bytes())
    return digest.hexdigest()


def _find_assembly(settings: Mapping[str, Any], code: StackCode | None) -> Path:
    """Return the cloud assembly. All test workers and runs of the same sources share it."""
    sources = _sources() if code is None else sources_of_template()
    named = json.dumps([sources, settings, find_default_region_and_account(), code is None])
    return reuse_folder(
        named,
        lambda fresh: synthesize(read_deployment_settings(settings), make_app(fresh), code=code),
    )


def reuse_folder(named: str, make: Callable[[Path], object]) -> Path:
    """Return the folder that `make` fills, or filled before under the same name."""
    cache_folder = Path(os.environ.get(CACHE_VARIABLE, ROOT / "build" / "test-assemblies"))
    folder = cache_folder / sha256(named.encode()).hexdigest()[:16]
    cache_folder.mkdir(parents=True, exist_ok=True)
    with _lock_of(folder).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another worker may be making the same
        if not folder.is_dir():
            fresh = Path(tempfile.mkdtemp(prefix=".synth-", dir=cache_folder))
            make(fresh)
            fresh.replace(folder)
    folder.touch()
    assemblies = sorted(cache_folder.glob("[!.]*"), key=lambda path: -path.stat().st_mtime)
    for old in assemblies[RETAINED:]:
        shutil.rmtree(old, ignore_errors=True)
        _lock_of(old).unlink(missing_ok=True)
    return folder


def _lock_of(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.lock")


@cache
def folder_of(name: str) -> Path:
    """Return the cloud assembly of one of SETTINGS, with placeholder code."""
    return _find_assembly(SETTINGS[name], light_code())


@cache
def whole_assembly() -> Path:
    """Return the cloud assembly of the default settings with the shipped code."""
    return _find_assembly(SETTINGS["default"], None)


@cache
def template_of(name: str) -> Template:
    return _template_in(folder_of(name))


def template_with(settings: Mapping[str, Any]) -> Template:
    """Return the template for settings that only one test uses."""
    return _template_in(_find_assembly(settings, light_code()))


def _template_in(folder: Path) -> Template:
    return Template(json.loads((folder / "Mendq.template.json").read_text()))


@cache
def folder_of_three() -> Path:
    """Return the cloud assembly with a stack for each of THREE, with placeholder code."""
    return _find_assembly({"environments": list(THREE)}, light_code())


@cache
def templates_of_three() -> tuple[Template, ...]:
    files = sorted(folder_of_three().glob("Mendq-*.template.json"))
    return tuple(Template(json.loads(path.read_text())) for path in files)


def asset_of(function: str) -> Path:
    """Return the shipped code of the Lambda whose logical id has this start."""
    template = _template_in(whole_assembly())
    key = template.only("AWS::Lambda::Function", function)["Code"]["S3Key"]
    return whole_assembly() / f"asset.{key.removesuffix('.zip')}"
