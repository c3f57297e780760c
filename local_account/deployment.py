"""The stack that the account deploys: synthesized or taken from the last time, published, created.

`python -m local_account.deployment FOLDER`: settings on standard input, an assembly in FOLDER. A
process of its own, so that a start can be broken off and the emulator never loads the CDK.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from botocore.exceptions import WaiterError

from infra.node import NodeMissing, require_node
from infra.packaging.zips import archived
from local_account.emulator_environment import end_group
from local_account.where import ACCOUNT, CACHE, FAILED, REGION, REPOSITORY, WRONG_USE, CannotStart

Client = Callable[[str], Any]
WAITING = {"Delay": 0.05, "MaxAttempts": 12_000}
ENOUGH = "30"  # a version of bootstrap that is, for any template
TEMPLATES = "local-account-templates"  # a bucket
RETAINED = 4
# What goes into the stack and its zips; a change in any of it makes a new assembly.
SOURCES = ("analytics", "functions", "infra", "mendq", "app.py", "cdk.json", "requirements.txt")
SYNTHESIZE = "local_account.deployment"
_PLACEHOLDERS = {"${AWS::AccountId}": ACCOUNT, "${AWS::Region}": REGION, "${AWS::Partition}": "aws"}


class Synthesis:
    """One synthesis into a folder of its own, which it makes; it can be broken off."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: subprocess.Popen[str] | None = None
        self._ended = False

    def assembly_for(self, raw: Mapping[str, Any], say: Callable[[str], None]) -> Path:
        """Return the folder of the assembly for these settings.

        Raises CannotStart when the stack cannot be synthesized or build/ cannot be written.
        """
        settings = json.dumps(raw, sort_keys=True)
        retained = CACHE / digest_of(settings)
        if (retained / "manifest.json").is_file():
            say(f"the stack as synthesized before: build/{CACHE.name}/{retained.name}")
            with contextlib.suppress(OSError):  # a folder that cannot be written holds it as well
                retained.touch()
            return retained
        say("synthesizing the stack (kept for the next start)")
        try:
            CACHE.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise CannotStart(f"the folder {CACHE} cannot be written ({error.strerror})") from error
        self._synthesize(settings)
        # Another start may have synthesized the same meanwhile: its assembly is as good.
        with contextlib.suppress(OSError):
            self._folder.replace(retained)
        # The newest alone stay: each holds the Lambda zips' content.
        newest = sorted(CACHE.iterdir(), key=lambda each: each.stat().st_mtime, reverse=True)
        for old in newest[RETAINED:]:
            shutil.rmtree(old, ignore_errors=True)
        return retained

    def end(self) -> None:
        """Break it off, with the Node that jsii starts below it."""
        self._ended = True
        end_group(self._process)

    def _synthesize(self, settings: str) -> None:
        try:
            node = require_node()
        except NodeMissing as missing:
            raise CannotStart(str(missing)) from missing
        environment = {
            "JSII_NODE": str(node),
            "JSII_RUNTIME_PACKAGE_CACHE_ROOT": str(CACHE.parent / "jsii"),  # not the scratch HOME
            "CDK_DEFAULT_REGION": REGION,
        }
        self._process = process = subprocess.Popen(
            [sys.executable, "-m", SYNTHESIZE, str(self._folder)],
            cwd=REPOSITORY,
            env=dict(os.environ) | environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,  # a group of its own, to end as one
        )
        _, complaint = process.communicate(settings)
        if self._ended:
            raise CannotStart("stopped while synthesizing", FAILED)
        if process.returncode:
            lines = [line for line in complaint.splitlines() if line.strip()]
            reason = lines[-1] if lines else f"exit code {process.returncode}"
            raise CannotStart(f"the stack cannot be synthesized: {reason}")


def digest_of(settings: str) -> str:
    """What names an assembly: its settings and every byte that goes into it."""
    digest = hashlib.sha256(settings.encode())
    for root in (REPOSITORY / name for name in SOURCES):
        for path in sorted(root.rglob("*")) if root.is_dir() else [root]:
            if path.is_file() and "__pycache__" not in path.parts:
                digest.update(path.relative_to(REPOSITORY).as_posix().encode())
                digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


@dataclass(frozen=True)
class Asset:
    """A file or folder of the assembly and the object that the template expects it to be."""

    path: Path
    bucket: str
    key: str


@dataclass(frozen=True)
class StackArtifact:
    """One stack of an assembly."""

    name: str
    template: Mapping[str, Any]
    assets: tuple[Asset, ...]


def read_assembly(folder: Path) -> StackArtifact:
    """Return the only stack of the assembly in `folder`; raise CannotStart when there is none."""
    try:
        artifacts = json.loads((folder / "manifest.json").read_text("utf-8"))["artifacts"]
        kind = "aws:cloudformation:stack"
        ((identifier, stack),) = (each for each in artifacts.items() if each[1]["type"] == kind)
        template = json.loads((folder / stack["properties"]["templateFile"]).read_text("utf-8"))
    except (OSError, KeyError, ValueError) as error:
        raise CannotStart(f"{folder} holds no cloud assembly with one stack: {error}") from error
    name = stack["properties"].get("stackName", identifier)
    return StackArtifact(name, template, tuple(_assets(folder, artifacts)))


def _assets(folder: Path, artifacts: Mapping[str, Any]) -> Iterator[Asset]:
    for artifact in artifacts.values():
        if artifact["type"] == "cdk:asset-manifest":
            manifest = json.loads((folder / artifact["properties"]["file"]).read_text("utf-8"))
            for each in manifest.get("files", {}).values():
                for to in each["destinations"].values():
                    where = (_resolved(to[name]) for name in ("bucketName", "objectKey"))
                    yield Asset(folder / each["source"]["path"], *where)


def _resolved(text: str) -> str:
    return re.sub(r"\$\{AWS::\w+\}", lambda found: _PLACEHOLDERS[found[0]], text)


def publish(assets: tuple[Asset, ...], client: Client) -> None:
    """Put every asset where the template looks for it, as the CDK CLI does after bootstrapping."""
    s3 = client("s3")
    for asset in assets:
        content = archived(asset.path, zipfile.ZIP_STORED)
        s3.put_object(Bucket=asset.bucket, Key=asset.key, Body=content)


def bootstrap(stack: StackArtifact, client: Client) -> None:
    """Create what the stack needs of `cdk bootstrap`, under that stack's own names.

    The real one can be run on it and adds the rest.
    """
    resources: dict[str, Any] = {}
    for number, bucket in enumerate(sorted({each.bucket for each in stack.assets})):
        properties = {"BucketName": bucket}
        staging = {"Type": "AWS::S3::Bucket", "Properties": properties}
        resources[f"StagingBucket{number or ''}"] = staging
    if parameter := stack.template.get("Parameters", {}).get("BootstrapVersion"):
        version = {"Type": "String", "Name": parameter["Default"], "Value": ENOUGH}
        resources["CdkBootstrapVersion"] = {"Type": "AWS::SSM::Parameter", "Properties": version}
    client("s3").create_bucket(Bucket=TEMPLATES)
    if resources:
        create("CDKToolkit", {"Resources": resources}, client)


def create(name: str, template: Mapping[str, Any], client: Client) -> None:
    """Create a stack; raise CannotStart with the first failure.

    The template lies in a bucket: CloudFormation takes 51,200 bytes in the call.
    """
    s3, cloudformation = client("s3"), client("cloudformation")
    s3.put_object(Bucket=TEMPLATES, Key=name, Body=json.dumps(template).encode())
    cloudformation.create_stack(
        StackName=name,
        TemplateURL=f"{s3.meta.endpoint_url}/{TEMPLATES}/{name}",
        Capabilities=["CAPABILITY_IAM", "CAPABILITY_NAMED_IAM"],
    )
    try:
        waiter = cloudformation.get_waiter("stack_create_complete")
        waiter.wait(StackName=name, WaiterConfig=WAITING)
    except WaiterError as error:
        events = cloudformation.describe_stack_events(StackName=name)["StackEvents"]
        failed = [each for each in events if each["ResourceStatus"].endswith("_FAILED")]
        first = failed[-1] if failed else {"LogicalResourceId": "no resource says why"}
        reason = f"{first['LogicalResourceId']}: {first.get('ResourceStatusReason', 'no reason')}"
        raise CannotStart(f"stack {name} was not created: {reason}", FAILED) from error


def main() -> int:
    """Write the assembly; one line on standard error and 2 when something is missing."""
    from infra.packaging.wheels import WheelsUnavailable  # noqa: PLC0415  the CDK is loaded here
    from infra.packaging.zips import THIS_MACHINE  # noqa: PLC0415
    from infra.settings.deployment import read  # noqa: PLC0415
    from infra.synthesis import new_app, synthesize  # noqa: PLC0415

    try:
        settings = read(json.load(sys.stdin), floors=False)
        # The zips hold libraries: here they are this machine's, as its Lambdas are.
        synthesize(settings, new_app(Path(sys.argv[1])), THIS_MACHINE)
    except WheelsUnavailable as missing:
        print(missing, file=sys.stderr)
        return WRONG_USE
    return 0


if __name__ == "__main__":
    sys.exit(main())
