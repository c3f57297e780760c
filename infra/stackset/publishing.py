"""`make stackset BUCKET=name`: what a stack set deploys, the same bytes twice."""

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
GUARD, POLICY, SCRIPT = "guard.json", "bucket-policy.json", "publish.sh"
CONTENTS = "contents.txt"
_HERE = Path(__file__).parent
_NAMES: Mapping[str, str] = {
    "STACK": OF_STACK_SET,
    # CloudFormation calls what a stack makes after the stack.
    "BUCKETS": OF_STACK_SET.lower(),
    "TRAIL": TRAIL_NAME,
    "ALARMS": f"{ALARM_PREFIX}*",
    "PROBE": PROBE_QUEUE,
    "ROLES": role_name("*", "*"),
    "STARTS": role_name("start-nightly", "*"),
    "DELETES": role_name(NIGHTLY, "*"),
}


def guard() -> str:
    """A service control policy: what Mendq stands on, StackSets alone changes.

    Nobody else passes Mendq's roles to anything, and only the nightly job deletes an object.
    """
    text = (_HERE / GUARD).read_text()
    return re.sub("@([A-Z]+)@", lambda found: _NAMES[found[1]], text)


def publish(
    settings: DeploymentSettings,
    bucket: str,
    code: Code,
    waves: Waves | None = None,
    folder: Path = FOLDER,
) -> str:
    """Write the folder anew, which stays as it was where that fails; the template's key.

    Raises what `template_for_many` raises.
    """
    template, files = template_for_many(settings, bucket, code)
    text = json.dumps(template, separators=(",", ":")).encode()
    key = f"{PREFIX}{sha256(text).hexdigest()[:16]}.template.json"
    shutil.rmtree(new := folder.with_name(f"{folder.name}.new"), ignore_errors=True)
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
        defaults = {name: each["Default"] for name, each in template["Parameters"].items()}
        (new / ROLLOUT.name).write_text(rollout(waves, bucket, key, defaults))
    shutil.rmtree(folder, ignore_errors=True)
    new.rename(folder)
    return key


def main(bucket: str, file: str = "", waves_file: str = "") -> int:
    """Write `build/stackset/`, and say what lies there; 1 and what is wrong where that fails."""
    try:
        require_node()
        waves = waves_in(Path(waves_file)) if waves_file else None
        name, settings = bucket_of(bucket), settings_for_many(raw_settings(new_app(), file))
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
