"""`python -m local_account.synthesize FOLDER`: settings on standard input, an assembly in FOLDER.

A process of its own, so that a start can be broken off and the emulator never loads the CDK.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from infra.packaging.wheels import WheelsUnavailable
from infra.packaging.zips import THIS_MACHINE, ForeignLibrary
from infra.settings.deployment import read
from infra.synthesis import new_app, synthesize
from local_account.cannot_start import WRONG_USE


def main() -> int:
    """Write the assembly; one line on standard error and 2 when something is missing."""
    try:
        settings = read(json.load(sys.stdin), floors=False)
        folder = Path(sys.argv[1])
        # The zips hold libraries: here they are this machine's, as its Lambdas are.
        synthesize(settings, new_app(folder), THIS_MACHINE)
    except (WheelsUnavailable, ForeignLibrary) as missing:
        print(missing, file=sys.stderr)
        return WRONG_USE
    return 0


if __name__ == "__main__":
    sys.exit(main())
