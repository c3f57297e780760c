"""Synthesize the stack, or reuse an earlier synthesis; publish its assets and deploy it.

`python -m local_account.deployment FOLDER` reads settings from standard input and writes the cloud
assembly to FOLDER. It is a separate process, so that a start can be interrupted and the emulator
never loads the CDK.
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
from infra.packaging.zips import zip_bytes
from local_account.emulator_environment import end_group
from local_account.where import ACCOUNT, CACHE, FAILED, REGION, REPOSITORY, WRONG_USE, CannotStart

Client = Callable[[str], Any]
WAITING = {"Delay": 0.05, "MaxAttempts": 12_000}
BOOTSTRAP_VERSION = "30"  # new enough for any template
TEMPLATES = "local-account-templates"  # a bucket
RETAINED = 4  # number of synthesized stacks that are stored for later starts
# Files and folders that the stack and its zips are made of. If one changes, the stack is
# synthesized again.
SOURCES = ("analytics", "functions", "infra", "mendq", "app.py", "cdk.json", "requirements.txt")
SYNTHESIZE = "local_account.deployment"
_PLACEHOLDERS = {"${AWS::AccountId}": ACCOUNT, "${AWS::Region}": REGION, "${AWS::Partition}": "aws"}


class Synthesis:
    """A synthesis of the stack into a new folder. It can be interrupted."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: subprocess.Popen[str] | None = None
        self._was_interrupted = False

    def assembly_for(self, raw: Mapping[str, Any], say: Callable[[str], None]) -> Path:
        """Return the folder of the cloud assembly for these settings.

        Args:
            raw: The settings.
            say: Prints a line about the progress.

        Raises:
            CannotStart: The stack cannot be synthesized, or build/ cannot be written.
        """
        settings = json.dumps(raw, sort_keys=True)
        retained = CACHE / digest_of(settings)
        if (retained / "manifest.json").is_file():
            say(f"the stack as synthesized before: build/{CACHE.name}/{retained.name}")
            # Mark it as recently used. A folder that cannot be written is used all the same.
            with contextlib.suppress(OSError):
                retained.touch()
            return retained
        say("synthesizing the stack (kept for the next start)")
        try:
            CACHE.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise CannotStart(f"the folder {CACHE} cannot be written ({error.strerror})") from error
        self._synthesize(settings)
        # If another start has synthesized the same stack meanwhile, its assembly is used.
        with contextlib.suppress(OSError):
            self._folder.replace(retained)
        # Each assembly has the content of all Lambda zips, so only the newest are stored.
        newest = sorted(CACHE.iterdir(), key=lambda folder: folder.stat().st_mtime, reverse=True)
        for old in newest[RETAINED:]:
            shutil.rmtree(old, ignore_errors=True)
        return retained

    def end(self) -> None:
        """Interrupt the synthesis, including the Node.js process that jsii starts."""
        self._was_interrupted = True
        end_group(self._process)

    def _synthesize(self, settings: str) -> None:
        try:
            node = require_node()
        except NodeMissing as missing:
            raise CannotStart(str(missing)) from missing
        environment = {
            "JSII_NODE": str(node),
            # HOME is a temporary folder here, so the cache must be elsewhere.
            "JSII_RUNTIME_PACKAGE_CACHE_ROOT": str(CACHE.parent / "jsii"),
            "CDK_DEFAULT_REGION": REGION,
        }
        process = subprocess.Popen(
            [sys.executable, "-m", SYNTHESIZE, str(self._folder)],
            cwd=REPOSITORY,
            env=dict(os.environ) | environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,  # a process group, so that all its processes can be ended
        )
        self._process = process
        _, errors = process.communicate(settings)
        if self._was_interrupted:
            raise CannotStart("stopped while synthesizing", FAILED)
        if process.returncode:
            lines = [line for line in errors.splitlines() if line.strip()]
            reason = lines[-1] if lines else f"exit code {process.returncode}"
            raise CannotStart(f"the stack cannot be synthesized: {reason}")


def digest_of(settings: str) -> str:
    """Return the name of an assembly: a digest of its settings and of all its source files."""
    digest = hashlib.sha256(settings.encode())
    for source in SOURCES:
        root = REPOSITORY / source
        paths = sorted(root.rglob("*")) if root.is_dir() else [root]
        for path in paths:
            if path.is_file() and "__pycache__" not in path.parts:
                digest.update(path.relative_to(REPOSITORY).as_posix().encode())
                digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


@dataclass(frozen=True)
class Asset:
    """A file or folder of the assembly, and the S3 object that the template expects it in."""

    path: Path
    bucket: str
    key: str


@dataclass(frozen=True)
class StackArtifact:
    """A stack of a cloud assembly: its name, its template and its assets."""

    name: str
    template: Mapping[str, Any]
    assets: tuple[Asset, ...]


def read_assembly(folder: Path) -> StackArtifact:
    """Return the stack of the cloud assembly in `folder`.

    Raises CannotStart if the folder has no assembly, or not exactly one stack in it.
    """
    try:
        artifacts = json.loads((folder / "manifest.json").read_text("utf-8"))["artifacts"]
        stacks = {
            identifier: artifact
            for identifier, artifact in artifacts.items()
            if artifact["type"] == "aws:cloudformation:stack"
        }
        ((identifier, stack),) = stacks.items()
        template = json.loads((folder / stack["properties"]["templateFile"]).read_text("utf-8"))
    except (OSError, KeyError, ValueError) as error:
        raise CannotStart(f"{folder} holds no cloud assembly with one stack: {error}") from error
    name = stack["properties"].get("stackName", identifier)
    return StackArtifact(name, template, tuple(_assets(folder, artifacts)))


def _assets(folder: Path, artifacts: Mapping[str, Any]) -> Iterator[Asset]:
    """Yield the file assets of an assembly, once for each destination."""
    for artifact in artifacts.values():
        if artifact["type"] != "cdk:asset-manifest":
            continue
        manifest = json.loads((folder / artifact["properties"]["file"]).read_text("utf-8"))
        for file in manifest.get("files", {}).values():
            for destination in file["destinations"].values():
                yield Asset(
                    path=folder / file["source"]["path"],
                    bucket=_replace_placeholders(destination["bucketName"]),
                    key=_replace_placeholders(destination["objectKey"]),
                )


def _replace_placeholders(text: str) -> str:
    """Replace pseudo parameters such as ${AWS::Region} by the local account's values."""
    return re.sub(r"\$\{AWS::\w+\}", lambda match: _PLACEHOLDERS[match[0]], text)


def publish(assets: tuple[Asset, ...], client: Client) -> None:
    """Upload every asset to where the template expects it, as the CDK CLI does."""
    s3 = client("s3")
    for asset in assets:
        content = zip_bytes(asset.path, zipfile.ZIP_STORED)
        s3.put_object(Bucket=asset.bucket, Key=asset.key, Body=content)


def bootstrap(stack: StackArtifact, client: Client) -> None:
    """Create those resources of `cdk bootstrap` that the stack needs, with the same names.

    `cdk bootstrap` can be run afterwards and adds the others.
    """
    resources: dict[str, Any] = {}
    buckets = sorted({asset.bucket for asset in stack.assets})
    for number, bucket in enumerate(buckets):
        name = "StagingBucket" if number == 0 else f"StagingBucket{number}"
        resources[name] = {"Type": "AWS::S3::Bucket", "Properties": {"BucketName": bucket}}
    parameter = stack.template.get("Parameters", {}).get("BootstrapVersion")
    if parameter:
        version = {"Type": "String", "Name": parameter["Default"], "Value": BOOTSTRAP_VERSION}
        resources["CdkBootstrapVersion"] = {"Type": "AWS::SSM::Parameter", "Properties": version}
    client("s3").create_bucket(Bucket=TEMPLATES)
    if resources:
        create("CDKToolkit", {"Resources": resources}, client)


def create(name: str, template: Mapping[str, Any], client: Client) -> None:
    """Create a stack and wait for it. Raises CannotStart, with the first failure, if that fails.

    The template is passed in a bucket, because a call to CloudFormation takes at most 51,200 bytes.
    """
    s3 = client("s3")
    cloudformation = client("cloudformation")
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
        # The newest event comes first.
        failures = [event for event in events if event["ResourceStatus"].endswith("_FAILED")]
        first = failures[-1] if failures else {"LogicalResourceId": "no resource says why"}
        reason = f"{first['LogicalResourceId']}: {first.get('ResourceStatusReason', 'no reason')}"
        raise CannotStart(f"stack {name} was not created: {reason}", FAILED) from error


def main() -> int:
    """Write the cloud assembly and return the exit code.

    If the packages of the Lambda zips are missing, one line on standard error says so.
    """
    # Importing these loads the CDK.
    from infra.packaging.wheels import WheelsUnavailable  # noqa: PLC0415
    from infra.packaging.zips import THIS_MACHINE  # noqa: PLC0415
    from infra.settings.deployment import read  # noqa: PLC0415
    from infra.synthesis import new_app, synthesize  # noqa: PLC0415

    try:
        settings = read(json.load(sys.stdin), floors=False)
        # The Lambdas run on this machine, so their zips have libraries that are built for it.
        synthesize(settings, new_app(Path(sys.argv[1])), THIS_MACHINE)
    except WheelsUnavailable as missing:
        print(missing, file=sys.stderr)
        return WRONG_USE
    return 0


if __name__ == "__main__":
    sys.exit(main())
