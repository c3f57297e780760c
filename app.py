"""Settings -> stacks -> synth; no AWS call, no credentials."""

import os
import sys

from infra.node import NodeMissing, require_node
from infra.packaging import ForeignLibrary
from infra.settings import SettingsRefused, read
from infra.settings.warnings import warnings
from infra.wheels import WheelsUnavailable

try:
    require_node()
    from infra.synthesis import (
        new_app,
        own_region,
        raw_settings,
        synthesize,
    )  # the CDK: it starts Node

    app = new_app()
    settings = read(raw_settings(app))
    for warning in warnings(settings, own_region(), os.environ.get("CDK_DEFAULT_ACCOUNT")):
        print(warning, file=sys.stderr)  # noqa: T201
    synthesize(settings, app)
except (NodeMissing, SettingsRefused, WheelsUnavailable, ForeignLibrary) as refused:
    sys.exit(str(refused))
