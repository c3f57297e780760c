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
from infra.packaging.zips import make_zip_bytes
from infra.settings.deployment import DeploymentSettings
from infra.settings.hook import STACK_SET_STACK_PATTERN
from infra.settings.reading import SettingsRefused
from infra.stack import StackCode
from infra.stackset.one_template import (
    ASSET_KEY_PREFIX,
    REGION_PLACEHOLDER,
    make_bucket_name_pattern,
    make_stack_set_template,
    read_stack_set_settings,
)
from infra.stackset.waves import ROLLOUT_SCRIPT, Waves, fill_rollout_script, load_waves
from infra.synthesis import load_raw_settings, make_app, stage_code
from infra.trail import TRAIL_NAME
from mendq.model.names import NIGHTLY_ROLE_PURPOSE, PROBE_QUEUE, role_name
from mendq.notifications.commands import ALARM_PREFIX

OUTPUT_FOLDER = ROOT / "build" / "stackset"
GUARD_FILE = "guard.json"
BUCKET_POLICY_FILE = "bucket-policy.json"
PUBLISH_SCRIPT_FILE = "publish.sh"
CONTENTS_FILE = "contents.txt"
_STACKSET_FOLDER = Path(__file__).parent
# What replaces each `@NAME@` in the service control policy.
_PATTERN_BY_PLACEHOLDER: Mapping[str, str] = {
    "STACK": STACK_SET_STACK_PATTERN,
    # CloudFormation names a stack's buckets after the stack, in lower case.
    "BUCKETS": STACK_SET_STACK_PATTERN.lower(),
    "TRAIL": TRAIL_NAME,
    "ALARMS": f"{ALARM_PREFIX}*",
    "PROBE": PROBE_QUEUE,
    "ROLES": role_name("*", "*"),
    "STARTS": role_name("start-nightly", "*"),
    "DELETES": role_name(NIGHTLY_ROLE_PURPOSE, "*"),
}


def fill_guard_policy() -> str:
    """Return a service control policy that protects the stacks of the stack set.

    Only StackSets may change the resources that Mendq depends on. Besides StackSets, only the
    Lambda start_nightly may pass Mendq's roles to a service, and only the nightly job may delete
    objects.
    """
    policy_text = (_STACKSET_FOLDER / GUARD_FILE).read_text()
    return re.sub("@([A-Z]+)@", lambda match: _PATTERN_BY_PLACEHOLDER[match[1]], policy_text)


def write_stack_set_files(
    settings: DeploymentSettings,
    bucket_name_pattern: str,
    code: StackCode,
    waves: Waves | None = None,
    folder: Path = OUTPUT_FOLDER,
) -> str:
    """Write all files to a folder, and return the template's key in the buckets.

    The folder is replaced as a whole when all files are made. If this function fails before, the
    folder stays unchanged. Raises the exceptions of `make_stack_set_template`.

    Args:
        settings: the settings of every stack.
        bucket_name_pattern: name of the buckets, with `${AWS::Region}` in place of the region.
        code: the staged code.
        waves: where the stack set is deployed; None writes no rollout.sh.
        folder: the folder to write.
    """
    template, file_by_key = make_stack_set_template(settings, bucket_name_pattern, code)
    template_bytes = json.dumps(template, separators=(",", ":")).encode()
    template_key = f"{ASSET_KEY_PREFIX}{sha256(template_bytes).hexdigest()[:16]}.template.json"
    new_folder = folder.with_name(f"{folder.name}.new")
    shutil.rmtree(new_folder, ignore_errors=True)
    (new_folder / "objects" / ASSET_KEY_PREFIX).mkdir(parents=True)
    (new_folder / "objects" / template_key).write_bytes(template_bytes)
    for name, local_path in file_by_key.items():
        (new_folder / "objects" / name).write_bytes(make_zip_bytes(local_path))
    publish_script = (_STACKSET_FOLDER / PUBLISH_SCRIPT_FILE).read_text()
    bucket_name_in_shell = bucket_name_pattern.replace(REGION_PLACEHOLDER, "${region}")
    (new_folder / PUBLISH_SCRIPT_FILE).write_text(
        publish_script.replace("@BUCKET@", bucket_name_in_shell)
    )
    for name in (BUCKET_POLICY_FILE, CONTENTS_FILE):
        shutil.copyfile(_STACKSET_FOLDER / name, new_folder / name)
    (new_folder / GUARD_FILE).write_text(fill_guard_policy())
    if waves:
        parameters = template["Parameters"]
        default_by_parameter = {
            name: parameter["Default"] for name, parameter in parameters.items()
        }
        rollout_script = fill_rollout_script(
            waves, bucket_name_pattern, template_key, default_by_parameter
        )
        (new_folder / ROLLOUT_SCRIPT.name).write_text(rollout_script)
    shutil.rmtree(folder, ignore_errors=True)
    new_folder.rename(folder)
    return template_key


def main(bucket: str, settings_file: str = "", waves_file: str = "") -> int:
    """Write `build/stackset/` and print its contents.

    Return the exit code: 0, or 1 after printing an error.

    Args:
        bucket: name of the buckets; the region is added.
        settings_file: a file of settings; empty: the settings in cdk.json.
        waves_file: a WAVES file; empty: no rollout.sh is written.
    """
    try:
        require_node()
        waves = load_waves(Path(waves_file)) if waves_file else None
        bucket_name_pattern = make_bucket_name_pattern(bucket)
        settings = read_stack_set_settings(load_raw_settings(make_app(), settings_file))
        with TemporaryDirectory(prefix="mendq-") as folder:
            template_key = write_stack_set_files(
                settings, bucket_name_pattern, stage_code(Path(folder)), waves
            )
    except (NodeMissing, SettingsRefused, WheelsUnavailable) as error:
        print(error, file=sys.stderr)  # noqa: T201
        return 1
    relative_folder = OUTPUT_FOLDER.relative_to(ROOT)
    contents_text = (OUTPUT_FOLDER / CONTENTS_FILE).read_text()
    heading_line = (
        f"written to {relative_folder}/, for buckets {bucket_name_pattern}: {template_key}"
    )
    print(f"{heading_line}\n\n{contents_text}")  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
