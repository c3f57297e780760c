"""`make stackset BUCKET=name`: write the files that a stack set deploys, to `build/stackset/`.

The same sources and settings give the same bytes.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

from infra.node import NodeMissing, require_node
from infra.packaging.wheels import ROOT, WheelsUnavailable
from infra.packaging.zips import zip_bytes
from infra.settings.deployment import DeploymentSettings
from infra.settings.hook import OF_STACK_SET
from infra.settings.reading import SettingsRefused
from infra.stack import Code
from infra.stackset.one_template import (
    PREFIX,
    REGION,
    bucket_of,
    settings_for_many,
    template_for_many,
)
from infra.stackset.waves import SCRIPT as ROLLOUT
from infra.stackset.waves import Waves, fill_rollout_script, load_waves
from infra.synthesis import load_raw_settings, new_app, stage_code
from infra.trail import TRAIL_NAME
from mendq.model.names import NIGHTLY_PURPOSE, PROBE_QUEUE, role_name
from mendq.notifications.commands import ALARM_PREFIX

FOLDER = ROOT / "build" / "stackset"
GUARD = "guard.json"
POLICY = "bucket-policy.json"
SCRIPT = "publish.sh"
CONTENTS = "contents.txt"
_HERE = Path(__file__).parent
# What replaces each `@NAME@` in the service control policy.
_NAMES: Mapping[str, str] = {
    "STACK": OF_STACK_SET,
    # CloudFormation names a stack's buckets after the stack, in lower case.
    "BUCKETS": OF_STACK_SET.lower(),
    "TRAIL": TRAIL_NAME,
    "ALARMS": f"{ALARM_PREFIX}*",
    "PROBE": PROBE_QUEUE,
    "ROLES": role_name("*", "*"),
    "STARTS": role_name("start-nightly", "*"),
    "DELETES": role_name(NIGHTLY_PURPOSE, "*"),
}


def fill_guard_policy() -> str:
    """Return a service control policy that protects the stacks of the stack set.

    Only StackSets may change the resources that Mendq depends on. No other principal may pass
    Mendq's roles to a service, and only the nightly job may delete objects.
    """
    text = (_HERE / GUARD).read_text()
    return re.sub("@([A-Z]+)@", lambda match: _NAMES[match[1]], text)


def publish(
    settings: DeploymentSettings,
    bucket: str,
    code: Code,
    waves: Waves | None = None,
    folder: Path = FOLDER,
) -> str:
    """Write all files to a folder, and return the template's key in the buckets.

    The folder is replaced as a whole; if this function fails, it stays unchanged. Raises the
    exceptions of `template_for_many`.

    Args:
        settings: the settings of every stack.
        bucket: name of the buckets, with `${AWS::Region}` in place of the region.
        code: the staged code.
        waves: where the stack set is deployed; None writes no rollout.sh.
        folder: the folder to write.
    """
    template, files = template_for_many(settings, bucket, code)
    text = json.dumps(template, separators=(",", ":")).encode()
    key = f"{PREFIX}{sha256(text).hexdigest()[:16]}.template.json"
    new = folder.with_name(f"{folder.name}.new")
    shutil.rmtree(new, ignore_errors=True)
    (new / "objects" / PREFIX).mkdir(parents=True)
    (new / "objects" / key).write_bytes(text)
    for name, source in files.items():
        (new / "objects" / name).write_bytes(zip_bytes(source))
    publish_script = (_HERE / SCRIPT).read_text()
    shell_bucket = bucket.replace(REGION, "${region}")
    (new / SCRIPT).write_text(publish_script.replace("@BUCKET@", shell_bucket))
    for name in (POLICY, CONTENTS):
        shutil.copyfile(_HERE / name, new / name)
    (new / GUARD).write_text(fill_guard_policy())
    if waves:
        parameters = template["Parameters"]
        defaults = {name: parameter["Default"] for name, parameter in parameters.items()}
        script = fill_rollout_script(waves, bucket, key, defaults)
        (new / ROLLOUT.name).write_text(script)
    shutil.rmtree(folder, ignore_errors=True)
    new.rename(folder)
    return key


def main(bucket: str, file: str = "", waves_file: str = "") -> int:
    """Write `build/stackset/` and print its contents. Return the exit code, 1 with a message.

    Args:
        bucket: name of the buckets.
        file: a file of settings; empty: the settings in cdk.json.
        waves_file: a WAVES file; empty: no rollout.sh is written.
    """
    try:
        require_node()
        waves = load_waves(Path(waves_file)) if waves_file else None
        name = bucket_of(bucket)
        settings = settings_for_many(load_raw_settings(new_app(), file))
        with TemporaryDirectory(prefix="mendq-") as folder:
            key = publish(settings, name, stage_code(Path(folder)), waves)
    except (NodeMissing, SettingsRefused, WheelsUnavailable) as refused:
        print(refused, file=sys.stderr)  # noqa: T201
        return 1
    where = FOLDER.relative_to(ROOT)
    print(f"written to {where}/, for buckets {name}: {key}\n\n{(FOLDER / CONTENTS).read_text()}")  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
