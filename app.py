"""Synthesize the stacks from the settings. This needs no AWS call and no credentials.

Usage: `python app.py [FILE]`. The settings in the file replace those in cdk.json.
"""

import sys
import traceback
from pathlib import Path

try:
    from infra.node import NodeMissing, require_node
    from infra.packaging.wheels import WHEELS_FOLDER, WheelsUnavailable, fill_wheels_folder
    from infra.settings.deployment import read_deployment_settings
    from infra.settings.reading import SettingsRefused
    from infra.settings.warnings import list_warnings
except ImportError as error:
    sys.exit(f"{error}: run `make setup`, then `.venv/bin/python app.py`")

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
except KeyboardInterrupt:
    sys.exit("interrupted: run it again, since what cdk.out/ holds may not be whole")
except Exception as error:  # noqa: BLE001 - whoever deploys gets a sentence, the file the rest
    error_file = Path(__file__).with_name("build") / "synthesis-error.txt"
    try:
        error_file.parent.mkdir(exist_ok=True)
        error_file.write_text(traceback.format_exc())
        place = f"the whole error is in {error_file}"
    except OSError:
        place = "the whole error could not be written to build/"
    first_line = f"{error}".strip().partition("\n")[0] or "no message"
    sys.exit(f"the synthesis failed ({type(error).__name__}: {first_line}); {place}")
