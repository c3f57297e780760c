"""Synthesize the stacks from the settings. This needs no AWS call and no credentials.

Usage: `python app.py [FILE]`. The settings in the file replace those in cdk.json.
"""

import sys

from infra.node import NodeMissing, require_node
from infra.packaging.wheels import WHEELS_FOLDER, WheelsUnavailable, fill_wheels_folder
from infra.settings.deployment import read_deployment_settings
from infra.settings.reading import SettingsRefused
from infra.settings.warnings import list_warnings

try:
    require_node()
    # Imported only now, because the import of the CDK starts Node.
    from infra.synthesis import (
        find_default_region_and_account,
        load_raw_settings,
        make_app,
        synthesize,
    )

    app = make_app()
    settings = read_deployment_settings(load_raw_settings(app, *sys.argv[1:]))
    for warning in list_warnings(settings, *find_default_region_and_account()):
        print(warning, file=sys.stderr)  # noqa: T201
    if not WHEELS_FOLDER.is_dir():
        # Only the first synthesis downloads packages; later ones need no network.
        fill_wheels_folder()
    synthesize(settings, app)
except (NodeMissing, SettingsRefused, WheelsUnavailable) as error:
    sys.exit(str(error))
