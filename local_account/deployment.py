"""Deploying an assembly into the account: publish the assets, create the stack, wait for it."""

from __future__ import annotations

import io
import json
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from local_account.cannot_start import FAILED, CannotStart
from local_account.cloud_assembly import Asset, StackArtifact

Client = Callable[[str], Any]
POLL_SECONDS = 0.05
BOOTSTRAP_VERSION = "BootstrapVersion"
ENOUGH = "30"  # for any template
# The day of every file in an asset's zip, so that equal folders give equal zips.
ZIP_EPOCH = (1980, 1, 1, 0, 0, 0)


def publish(assets: tuple[Asset, ...], client: Client) -> None:
    """Put every asset where the template looks for it, as the CDK CLI does after bootstrapping."""
    s3 = client("s3")
    for asset in assets:
        s3.put_object(Bucket=asset.bucket, Key=asset.key, Body=content_of(asset))


def content_of(asset: Asset) -> bytes:
    """The bytes of the published object: a zip of a folder, a file as it is."""
    return zip_folder(asset.path) if asset.is_folder else asset.path.read_bytes()


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
    while True:
        (described,) = cloudformation.describe_stacks(StackName=name)["Stacks"]
        if not described["StackStatus"].endswith("_IN_PROGRESS"):
            break
        time.sleep(POLL_SECONDS)
    if described["StackStatus"] != "CREATE_COMPLETE":
        raise CannotStart(
            f"stack {name} ended {described['StackStatus']}: "
            f"{_first_failure(name, cloudformation)}",
            FAILED,
        )
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
