"""Deploying a CDK cloud assembly: read it, publish its assets, create the stack, wait for it."""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from botocore.exceptions import WaiterError

from local_account.cannot_start import FAILED, CannotStart
from local_account.where import ACCOUNT, REGION

Client = Callable[[str], Any]
WAITING = {"Delay": 0.05, "MaxAttempts": 12_000}
ENOUGH = "30"  # a version of bootstrap that is, for any template
TEMPLATES = "local-account-templates"  # a bucket
_PLACEHOLDERS = {
    "${AWS::AccountId}": ACCOUNT,
    "${AWS::Region}": REGION,
    "${AWS::Partition}": "aws",
}


@dataclass(frozen=True)
class Asset:
    """A file or folder of the assembly and the object that the template expects it to be."""

    path: Path
    is_folder: bool
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
        stacks = {
            identifier: each
            for identifier, each in artifacts.items()
            if each["type"] == "aws:cloudformation:stack"
        }
        ((identifier, stack),) = stacks.items()
        template = json.loads((folder / stack["properties"]["templateFile"]).read_text("utf-8"))
    except (OSError, KeyError, ValueError) as error:
        raise CannotStart(f"{folder} holds no cloud assembly with one stack: {error}") from error
    return StackArtifact(
        name=stack["properties"].get("stackName", identifier),
        template=template,
        assets=tuple(_assets(folder, artifacts)),
    )


def _assets(folder: Path, artifacts: Mapping[str, Any]) -> Iterator[Asset]:
    for artifact in artifacts.values():
        if artifact["type"] != "cdk:asset-manifest":
            continue
        manifest = json.loads((folder / artifact["properties"]["file"]).read_text("utf-8"))
        for each in manifest.get("files", {}).values():
            for destination in each["destinations"].values():
                yield Asset(
                    path=folder / each["source"]["path"],
                    is_folder=each["source"].get("packaging") == "zip",
                    bucket=_resolved(destination["bucketName"]),
                    key=_resolved(destination["objectKey"]),
                )


def _resolved(text: str) -> str:
    return re.sub(r"\$\{AWS::\w+\}", lambda found: _PLACEHOLDERS[found[0]], text)


def publish(assets: tuple[Asset, ...], client: Client) -> None:
    """Put every asset where the template looks for it, as the CDK CLI does after bootstrapping."""
    s3 = client("s3")
    for asset in assets:
        content = _zipped(asset.path) if asset.is_folder else asset.path.read_bytes()
        s3.put_object(Bucket=asset.bucket, Key=asset.key, Body=content)


def _zipped(folder: Path) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", strict_timestamps=False) as archive:
        for path in sorted(each for each in folder.rglob("*") if each.is_file()):
            archive.write(path, path.relative_to(folder))
    return buffer.getvalue()


def bootstrap(stack: StackArtifact, client: Client) -> None:
    """Create what the stack needs of `cdk bootstrap`, under that stack's own names.

    The real one can be run on it and adds the rest.
    """
    buckets = sorted({each.bucket for each in stack.assets})
    resources: dict[str, Any] = {
        f"StagingBucket{number or ''}": {
            "Type": "AWS::S3::Bucket",
            "Properties": {"BucketName": bucket},
        }
        for number, bucket in enumerate(buckets)
    }
    if parameter := stack.template.get("Parameters", {}).get("BootstrapVersion"):
        version = {"Type": "String", "Name": parameter["Default"], "Value": ENOUGH}
        resources["CdkBootstrapVersion"] = {"Type": "AWS::SSM::Parameter", "Properties": version}
    client("s3").create_bucket(Bucket=TEMPLATES)
    if resources:
        _create("CDKToolkit", {"Resources": resources}, client)


def deploy(stack: StackArtifact, client: Client) -> None:
    """Create the stack; raise CannotStart with the first failure."""
    _create(stack.name, stack.template, client)


def _create(name: str, template: Mapping[str, Any], client: Client) -> None:
    """The template lies in a bucket: CloudFormation takes 51,200 bytes in the call."""
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
        reasons = [
            f"{each['LogicalResourceId']}: {each.get('ResourceStatusReason', 'no reason')}"
            for each in events
            if each["ResourceStatus"].endswith("_FAILED")
        ]
        reason = reasons[-1] if reasons else "no resource says why"
        raise CannotStart(f"stack {name} was not created: {reason}", FAILED) from error
