"""Synthesize the stacks from the settings. This needs no AWS call and no credentials.

Usage: `python app.py [FILE]`. The settings in the file replace those in cdk.json.
"""

import sys

from infra.node import NodeMissing, require_node
from infra.packaging.wheels import WHEELS, WheelsUnavailable, fill_wheels
from infra.settings.deployment import read
from infra.settings.reading import SettingsRefused
from infra.settings.warnings import list_warnings

try:
    require_node()
    # Imported only now, because the import of the CDK starts Node.
    from infra.synthesis import default_place, load_raw_settings, new_app, synthesize

    app = new_app()
    settings = read(load_raw_settings(app, *sys.argv[1:]))
    for warning in list_warnings(settings, *default_place()):
        print(warning, file=sys.stderr)  # noqa: T201
    if not WHEELS.is_dir():
        # Only the first synthesis downloads packages; later ones need no network.
        fill_wheels()
    synthesize(settings, app)
except (NodeMissing, SettingsRefused, WheelsUnavailable) as refused:
    sys.exit(str(refused))
