"""`make stackset BUCKET=name`: write what a stack set deploys.

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
from infra.packaging.zips import archived
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
from infra.stackset.waves import Waves, rollout, waves_in
from infra.synthesis import new_app, raw_settings, staged_code
from infra.trail import TRAIL_NAME
from mendq.model.names import NIGHTLY, PROBE_QUEUE, role_name
from mendq.notifications.commands import ALARM_PREFIX

FOLDER = ROOT / "build" / "stackset"
GUARD = "guard.json"
POLICY = "bucket-policy.json"
SCRIPT = "publish.sh"
CONTENTS = "contents.txt"
_HERE = Path(__file__).parent
_NAMES: Mapping[str, str] = {
    "STACK": OF_STACK_SET,
    # CloudFormation names a stack's buckets after the stack, in lower case.
    "BUCKETS": OF_STACK_SET.lower(),
    "TRAIL": TRAIL_NAME,
    "ALARMS": f"{ALARM_PREFIX}*",
    "PROBE": PROBE_QUEUE,
    "ROLES": role_name("*", "*"),
    "STARTS": role_name("start-nightly", "*"),
    "DELETES": role_name(NIGHTLY, "*"),
}


def guard() -> str:
    """A service control policy: only StackSets may change what Mendq depends on.

    No other principal passes Mendq's roles to a service, and only the nightly job deletes objects.
    """
    text = (_HERE / GUARD).read_text()
    return re.sub("@([A-Z]+)@", lambda place: _NAMES[place[1]], text)


def publish(
    settings: DeploymentSettings,
    bucket: str,
    code: Code,
    waves: Waves | None = None,
    folder: Path = FOLDER,
) -> str:
    """Write the folder anew and return the template's key in the buckets.

    If that fails, the folder stays as it was. Raises what `template_for_many` raises.

    Args:
        settings: the settings of every stack.
        bucket: name of the buckets, with a place for the region.
        code: the staged code.
        waves: where the stack set goes; None writes no rollout.sh.
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
        (new / "objects" / name).write_bytes(archived(source))
    script = (_HERE / SCRIPT).read_text().replace("@BUCKET@", bucket.replace(REGION, "${region}"))
    (new / SCRIPT).write_text(script)
    for name in (POLICY, CONTENTS):
        shutil.copyfile(_HERE / name, new / name)
    (new / GUARD).write_text(guard())
    if waves:
        parameters = template["Parameters"]
        defaults = {name: parameter["Default"] for name, parameter in parameters.items()}
        (new / ROLLOUT.name).write_text(rollout(waves, bucket, key, defaults))
    shutil.rmtree(folder, ignore_errors=True)
    new.rename(folder)
    return key


def main(bucket: str, file: str = "", waves_file: str = "") -> int:
    """Write `build/stackset/` and print what it holds. Return 1 and print why if that fails."""
    try:
        require_node()
        waves = waves_in(Path(waves_file)) if waves_file else None
        name = bucket_of(bucket)
        settings = settings_for_many(raw_settings(new_app(), file))
        with TemporaryDirectory(prefix="mendq-") as folder:
            key = publish(settings, name, staged_code(Path(folder)), waves)
    except (NodeMissing, SettingsRefused, WheelsUnavailable) as refused:
        print(refused, file=sys.stderr)  # noqa: T201
        return 1
    where = FOLDER.relative_to(ROOT)
    print(f"written to {where}/, for buckets {name}: {key}\n\n{(FOLDER / CONTENTS).read_text()}")  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
