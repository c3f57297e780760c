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
from infra.packaging.zips import make_zip_bytes
from local_account.emulator_environment import end_process_group
from local_account.where import (
    ACCOUNT,
    ASSEMBLIES_FOLDER,
    FAILURE_EXIT_CODE,
    REGION,
    REPOSITORY,
    WRONG_USE_EXIT_CODE,
    CannotStart,
)

MakeClient = Callable[[str], Any]
WAITER_CONFIGURATION = {"Delay": 0.05, "MaxAttempts": 12_000}
BOOTSTRAP_VERSION = "30"  # new enough for any template
TEMPLATE_BUCKET = "local-account-templates"
MAXIMUM_STORED_ASSEMBLIES = 4  # number of synthesized stacks that are stored for later starts
# Files and folders that the stack and its zips are made of. If one changes, the stack is
# synthesized again.
SOURCE_PATHS = (
    "analytics",
    "functions",
    "infra",
    "mendq",
    "app.py",
    "cdk.json",
    "requirements.txt",
)
SYNTHESIS_MODULE = "local_account.deployment"
_VALUE_BY_PLACEHOLDER = {
    "${AWS::AccountId}": ACCOUNT,
    "${AWS::Region}": REGION,
    "${AWS::Partition}": "aws",
}


class Synthesis:
    """A synthesis of the stack into the new folder `folder`. It can be interrupted."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: subprocess.Popen[str] | None = None
        self._was_interrupted = False

    def assembly_for(
        self, raw_settings: Mapping[str, Any], print_progress: Callable[[str], None]
    ) -> Path:
        """Return the folder of the cloud assembly for these settings.

        Synthesize the stack if no earlier start has stored this assembly. Then remove all but the
        newest MAXIMUM_STORED_ASSEMBLIES.

        Args:
            raw_settings: The object of the CDK context key `mendq`.
            print_progress: Prints a line about the progress.

        Raises:
            CannotStart: The stack cannot be synthesized, the synthesis is interrupted, or build/
                cannot be written.
        """
        settings_text = json.dumps(raw_settings, sort_keys=True)
        stored_assembly = ASSEMBLIES_FOLDER / make_assembly_name(settings_text)
        if (stored_assembly / "manifest.json").is_file():
            relative_path = f"build/{ASSEMBLIES_FOLDER.name}/{stored_assembly.name}"
            print_progress(f"the stack as synthesized before: {relative_path}")
            # Mark it as recently used. If the folder cannot be written, use it without the mark.
            with contextlib.suppress(OSError):
                stored_assembly.touch()
            return stored_assembly
        print_progress("synthesizing the stack (kept for the next start)")
        try:
            ASSEMBLIES_FOLDER.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise CannotStart(
                f"the folder {ASSEMBLIES_FOLDER} cannot be written ({error.strerror})"
            ) from error
        self._synthesize(settings_text)
        # If another start has synthesized the same stack meanwhile, its assembly is used.
        with contextlib.suppress(OSError):
            self._folder.replace(stored_assembly)
        # Each assembly has the content of all Lambda zips, so only the newest are stored.
        assemblies_newest_first = sorted(
            ASSEMBLIES_FOLDER.iterdir(), key=lambda folder: folder.stat().st_mtime, reverse=True
        )
        for old_assembly in assemblies_newest_first[MAXIMUM_STORED_ASSEMBLIES:]:
            shutil.rmtree(old_assembly, ignore_errors=True)
        return stored_assembly

    def interrupt(self) -> None:
        """Kill the synthesis, including the Node.js process that jsii starts."""
        self._was_interrupted = True
        end_process_group(self._process)

    def _synthesize(self, settings_text: str) -> None:
        """Synthesize the stack into the new folder, in a child process.

        Raises CannotStart if that fails or is interrupted.
        """
        try:
            node_path = require_node()
        except NodeMissing as error:
            raise CannotStart(str(error)) from error
        environment = {
            "JSII_NODE": str(node_path),
            # HOME is a temporary folder here, so the cache must be elsewhere.
            "JSII_RUNTIME_PACKAGE_CACHE_ROOT": str(ASSEMBLIES_FOLDER.parent / "jsii"),
            "CDK_DEFAULT_REGION": REGION,
        }
        process = subprocess.Popen(
            [sys.executable, "-m", SYNTHESIS_MODULE, str(self._folder)],
            cwd=REPOSITORY,
            env=dict(os.environ) | environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,  # a process group, so that all its processes can be ended
        )
        self._process = process
        _, error_output = process.communicate(settings_text)
        if self._was_interrupted:
            raise CannotStart("stopped while synthesizing", FAILURE_EXIT_CODE)
        if process.returncode:
            error_lines = [line for line in error_output.splitlines() if line.strip()]
            reason = error_lines[-1] if error_lines else f"exit code {process.returncode}"
            raise CannotStart(f"the stack cannot be synthesized: {reason}")


def make_assembly_name(settings_text: str) -> str:
    """Return the name of an assembly's folder: a digest of the settings and all source files.

    The source files are those in SOURCE_PATHS.
    """
    digest = hashlib.sha256(settings_text.encode())
    for source in SOURCE_PATHS:
        source_root = REPOSITORY / source
        paths = sorted(source_root.rglob("*")) if source_root.is_dir() else [source_root]
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

    Raises CannotStart if the folder has no assembly, or if the assembly does not have exactly one
    stack.
    """
    try:
        artifacts = json.loads((folder / "manifest.json").read_text("utf-8"))["artifacts"]
        stack_by_id = {
            artifact_id: artifact
            for artifact_id, artifact in artifacts.items()
            if artifact["type"] == "aws:cloudformation:stack"
        }
        ((artifact_id, stack_manifest),) = stack_by_id.items()
        template = json.loads(
            (folder / stack_manifest["properties"]["templateFile"]).read_text("utf-8")
        )
    except (OSError, KeyError, ValueError) as error:
        raise CannotStart(f"{folder} holds no cloud assembly with one stack: {error}") from error
    stack_name = stack_manifest["properties"].get("stackName", artifact_id)
    return StackArtifact(stack_name, template, tuple(_list_assets(folder, artifacts)))


def _list_assets(folder: Path, artifacts: Mapping[str, Any]) -> Iterator[Asset]:
    """Yield the file assets of an assembly, one for each destination in S3."""
    for artifact in artifacts.values():
        if artifact["type"] != "cdk:asset-manifest":
            continue
        manifest = json.loads((folder / artifact["properties"]["file"]).read_text("utf-8"))
        for asset_file in manifest.get("files", {}).values():
            for destination in asset_file["destinations"].values():
                yield Asset(
                    path=folder / asset_file["source"]["path"],
                    bucket=_replace_placeholders(destination["bucketName"]),
                    key=_replace_placeholders(destination["objectKey"]),
                )


def _replace_placeholders(text: str) -> str:
    """Return the text with the account's values for pseudo parameters such as ${AWS::Region}.

    Raises KeyError for a pseudo parameter that is not in `_VALUE_BY_PLACEHOLDER`.
    """
    return re.sub(r"\$\{AWS::\w+\}", lambda match: _VALUE_BY_PLACEHOLDER[match[0]], text)


def publish_assets(assets: tuple[Asset, ...], make_client: MakeClient) -> None:
    """Upload every asset to where the template expects it, as the CDK CLI does."""
    s3 = make_client("s3")
    for asset in assets:
        content = make_zip_bytes(asset.path, zipfile.ZIP_STORED)
        s3.put_object(Bucket=asset.bucket, Key=asset.key, Body=content)


def create_bootstrap_stack(stack: StackArtifact, make_client: MakeClient) -> None:
    """Create the resources of `cdk bootstrap` that the stack needs, with the same names.

    Also create the bucket for templates. `cdk bootstrap` can be run afterwards; it adds the other
    resources.
    """
    resources: dict[str, Any] = {}
    buckets = sorted({asset.bucket for asset in stack.assets})
    for position, bucket in enumerate(buckets):
        logical_id = "StagingBucket" if position == 0 else f"StagingBucket{position}"
        resources[logical_id] = {"Type": "AWS::S3::Bucket", "Properties": {"BucketName": bucket}}
    version_parameter = stack.template.get("Parameters", {}).get("BootstrapVersion")
    if version_parameter:
        parameter_properties = {
            "Type": "String",
            "Name": version_parameter["Default"],
            "Value": BOOTSTRAP_VERSION,
        }
        resources["CdkBootstrapVersion"] = {
            "Type": "AWS::SSM::Parameter",
            "Properties": parameter_properties,
        }
    make_client("s3").create_bucket(Bucket=TEMPLATE_BUCKET)
    if resources:
        create_stack("CDKToolkit", {"Resources": resources}, make_client)


def create_stack(stack_name: str, template: Mapping[str, Any], make_client: MakeClient) -> None:
    """Create a stack, and wait until it is created.

    The template is passed in a bucket, because a call to CloudFormation takes at most 51,200 bytes.
    Raises CannotStart, with the reason of the first failed resource, if the stack is not created.
    """
    s3 = make_client("s3")
    cloudformation = make_client("cloudformation")
    s3.put_object(Bucket=TEMPLATE_BUCKET, Key=stack_name, Body=json.dumps(template).encode())
    cloudformation.create_stack(
        StackName=stack_name,
        TemplateURL=f"{s3.meta.endpoint_url}/{TEMPLATE_BUCKET}/{stack_name}",
        Capabilities=["CAPABILITY_IAM", "CAPABILITY_NAMED_IAM"],
    )
    try:
        waiter = cloudformation.get_waiter("stack_create_complete")
        waiter.wait(StackName=stack_name, WaiterConfig=WAITER_CONFIGURATION)
    except WaiterError as error:
        stack_events = cloudformation.describe_stack_events(StackName=stack_name)["StackEvents"]
        # The newest event comes first.
        failed_events = [
            event for event in stack_events if event["ResourceStatus"].endswith("_FAILED")
        ]
        first_failure = (
            failed_events[-1] if failed_events else {"LogicalResourceId": "no resource says why"}
        )
        reason = first_failure.get("ResourceStatusReason", "no reason")
        raise CannotStart(
            f"stack {stack_name} was not created: {first_failure['LogicalResourceId']}: {reason}",
            FAILURE_EXIT_CODE,
        ) from error


def main() -> int:
    """Write the cloud assembly to the folder of the first argument, and return the exit code.

    If packages for the Lambda zips are missing, print one line on standard error.
    """
    # Importing these loads the CDK.
    from infra.packaging.wheels import WheelsUnavailable  # noqa: PLC0415
    from infra.packaging.zips import THIS_MACHINE_PLATFORM_OPTIONS  # noqa: PLC0415
    from infra.settings.deployment import read_deployment_settings  # noqa: PLC0415
    from infra.synthesis import make_app, synthesize  # noqa: PLC0415

    try:
        settings = read_deployment_settings(json.load(sys.stdin), applies_floors=False)
        # The Lambdas run on this machine, so their zips have libraries that are built for it.
        synthesize(settings, make_app(Path(sys.argv[1])), THIS_MACHINE_PLATFORM_OPTIONS)
    except WheelsUnavailable as error:
        print(error, file=sys.stderr)
        return WRONG_USE_EXIT_CODE
    return 0


if __name__ == "__main__":
    sys.exit(main())
