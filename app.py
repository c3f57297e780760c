"""Settings -> stacks -> synth; no AWS call, no credentials.

`python app.py [FILE]`: the file's settings take the place of those in cdk.json.
"""

import sys

from infra.node import NodeMissing, require_node
from infra.packaging.wheels import WHEELS, WheelsUnavailable, fill
from infra.settings.deployment import read
from infra.settings.reading import SettingsRefused
from infra.settings.warnings import warnings

try:
    require_node()
    from infra.synthesis import new_app, own_place, raw_settings, synthesize  # it starts Node

    app = new_app()
    settings = read(raw_settings(app, *sys.argv[1:]))
    for warning in warnings(settings, *own_place()):
        print(warning, file=sys.stderr)  # noqa: T201
    if not WHEELS.is_dir():  # once: all later ones need no network
        fill()
    synthesize(settings, app)
except (NodeMissing, SettingsRefused, WheelsUnavailable) as refused:
    sys.exit(str(refused))
