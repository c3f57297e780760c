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
POLL_SECONDS = 0.05
MOST_POLLS = 12_000
BOOTSTRAP_VERSION = "BootstrapVersion"
ENOUGH = "30"  # for any template
# The day of every file in an asset's zip, so that equal folders give equal zips.
ZIP_EPOCH = (1980, 1, 1, 0, 0, 0)


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
    template_text: str
    assets: tuple[Asset, ...]


def read_assembly(folder: Path) -> StackArtifact:
    """Return the only stack of the assembly in `folder`; raise CannotStart when there is none."""
    try:
        manifest = json.loads((folder / "manifest.json").read_text("utf-8"))
        artifacts = manifest["artifacts"]
        stacks = [
            (identifier, each)
            for identifier, each in artifacts.items()
            if each["type"] == "aws:cloudformation:stack"
        ]
        (identifier, stack), *others = stacks
        template_text = (folder / stack["properties"]["templateFile"]).read_text("utf-8")
    except (OSError, KeyError, ValueError) as error:
        raise CannotStart(f"{folder} holds no cloud assembly with one stack: {error}") from error
    if others:
        raise CannotStart(f"{folder} holds {len(stacks)} stacks: the account deploys one")
    return StackArtifact(
        name=stack["properties"].get("stackName", identifier),
        template=json.loads(template_text),
        template_text=template_text,
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
        content = zip_folder(asset.path) if asset.is_folder else asset.path.read_bytes()
        s3.put_object(Bucket=asset.bucket, Key=asset.key, Body=content)


def zip_folder(folder: Path) -> bytes:
    """Zip the files of `folder`, the same bytes for the same files."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for path in sorted(each for each in folder.rglob("*") if each.is_file()):
            entry = zipfile.ZipInfo(path.relative_to(folder).as_posix(), ZIP_EPOCH)
            entry.external_attr = path.stat().st_mode << 16
            archive.writestr(entry, path.read_bytes())
    return buffer.getvalue()


def deploy(stack: StackArtifact, client: Client) -> dict[str, str]:
    """Create the stack and return its outputs; raise CannotStart with the first failure."""
    return _create(stack.name, _template_argument(stack, client), client("cloudformation"))


def bootstrap(stack: StackArtifact, client: Client) -> None:
    """Create what the stack needs of `cdk bootstrap`, under that stack's own names.

    The real one can be run on it and adds the rest.
    """
    resources = {
        f"StagingBucket{number or ''}": _resource("AWS::S3::Bucket", BucketName=bucket)
        for number, bucket in enumerate(sorted({each.bucket for each in stack.assets}))
    }
    if parameter := stack.template.get("Parameters", {}).get(BOOTSTRAP_VERSION):
        resources["CdkBootstrapVersion"] = _resource(
            "AWS::SSM::Parameter", Type="String", Name=parameter["Default"], Value=ENOUGH
        )
    if resources:
        template = json.dumps({"Resources": resources})
        _create("CDKToolkit", {"TemplateBody": template}, client("cloudformation"))


def _resource(resource_type: str, **properties: str) -> dict[str, Any]:
    return {"Type": resource_type, "Properties": properties}


def _create(name: str, template: dict[str, str], cloudformation: Any) -> dict[str, str]:
    capabilities = ["CAPABILITY_IAM", "CAPABILITY_NAMED_IAM"]
    cloudformation.create_stack(StackName=name, Capabilities=capabilities, **template)
    try:
        waiter = cloudformation.get_waiter("stack_create_complete")
        waiter.wait(StackName=name, WaiterConfig={"Delay": POLL_SECONDS, "MaxAttempts": MOST_POLLS})
    except WaiterError as error:
        reason = _first_failure(name, cloudformation)
        raise CannotStart(f"stack {name} was not created: {reason}", FAILED) from error
    (described,) = cloudformation.describe_stacks(StackName=name)["Stacks"]
    return {each["OutputKey"]: each["OutputValue"] for each in described.get("Outputs", [])}


def _template_argument(stack: StackArtifact, client: Client) -> dict[str, str]:
    """CloudFormation takes 51,200 bytes in the call; more has to lie in a bucket."""
    if len(stack.template_text.encode()) <= 51_200:
        return {"TemplateBody": stack.template_text}
    bucket, key = "local-account-templates", f"{stack.name}.json"
    s3 = client("s3")
    s3.create_bucket(Bucket=bucket)
    s3.put_object(Bucket=bucket, Key=key, Body=stack.template_text.encode())
    return {"TemplateURL": f"{s3.meta.endpoint_url}/{bucket}/{key}"}


def _first_failure(name: str, cloudformation: Any) -> str:
    events = cloudformation.describe_stack_events(StackName=name)["StackEvents"]
    for event in reversed(events):
        if event["ResourceStatus"].endswith("_FAILED"):
            return f"{event['LogicalResourceId']}: {event.get('ResourceStatusReason', 'no reason')}"
    return "no resource says why"
