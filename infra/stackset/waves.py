"""Where a stack set goes and in what order, as the commands that take it there."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, ValidationError, convert

from infra.alarms import health
from infra.alarms.alarm import INTAKE
from infra.settings.deployment import Account, Region
from infra.settings.hook import STACK_SET
from infra.settings.reading import FileRefused, object_in
from infra.stackset.one_template import REGION

SCRIPT = Path(__file__).with_name("rollout.sh")
Unit = Annotated[str, Meta(pattern=r"^(?:r-[0-9a-z]{4,32}|ou-[0-9a-z]{4,32}-[0-9a-z]{8,32})\Z")]
# The guard knows those that begin so.
StackSet = Annotated[str, Meta(pattern=rf"^{STACK_SET}(?:-[A-Za-z0-9]+)*\Z", max_length=64)]
Profile = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.@+-]{0,127}\Z")]
# Whether probes come through, heal works and the scan runs: there in any case, `alarms` or not.
_FAILS = (health.HEAL_ERRORS, health.FOLLOW_UP_ERRORS, health.UNDELIVERED)
_ALARMS = (health.PROBE_LOST, *_FAILS, health.SILENT, health.LATE, health.SCAN_MISSING)
ALARMS = (*(each.called() for each in _ALARMS), health.OWN_DLQ.called(INTAKE))


class Waves(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """`canaries` are accounts, each with the AWS CLI's profile that may look at its alarms.

    `parameters` are the stack set's own, in the place of what the settings say.
    """

    regions: Annotated[tuple[Region, ...], Meta(min_length=1)]
    canaries: Annotated[Mapping[Account, Profile], Meta(min_length=1)]
    waves: Annotated[
        tuple[Annotated[tuple[Unit, ...], Meta(min_length=1)], ...], Meta(min_length=1)
    ]
    stack_set: StackSet = STACK_SET
    call_as: Literal["SELF", "DELEGATED_ADMIN"] = "DELEGATED_ADMIN"
    accounts_at_once: Annotated[int, Meta(ge=1, le=500)] = 5
    soak_minutes: Annotated[int, Meta(ge=1, le=10_080)] = 180
    parameters: Mapping[str, str] = {}
    template_url: str | None = None


def waves_in(path: Path) -> Waves:
    """Raises FileRefused, with the field."""
    try:
        return convert(object_in(path), Waves)
    except ValidationError as wrong:
        raise FileRefused(f"WAVES {path}: {wrong}; docs/stacksets.md shows one") from wrong


def rollout(waves: Waves, bucket: str, key: str, parameters: Mapping[str, str]) -> str:
    """A script for the AWS CLI; `parameters` are the template's, raises FileRefused for others."""
    if unknown := waves.parameters.keys() - parameters.keys():
        names = ", ".join(sorted(unknown))
        raise FileRefused(f"WAVES: parameters: the template has none called {names}")
    region, values = waves.regions[0], {**parameters, **waves.parameters}
    url = f"https://{bucket.replace(REGION, region)}.s3.{region}.amazonaws.com/{key}"
    pairs = [{"ParameterKey": name, "ParameterValue": value} for name, value in values.items()]
    whose = "whose {} {}".format
    every = tuple(unit for units in waves.waves for unit in units)
    known = {
        "ALARMS": shlex.quote(" ".join(ALARMS)),
        "CALL_AS": waves.call_as,
        "CANARIES": " ".join(waves.canaries.values()),
        "PARAMETERS": _json(pairs),
        "LAST": str(len(waves.waves)),
        "REGIONS": " ".join(waves.regions),
        "SOAK": str(waves.soak_minutes),
        "STACK_SET": waves.stack_set,
        "URL": shlex.quote(waves.template_url or url),
        "WAVES": "\n".join(_wave(waves, *each) for each in enumerate((every, *waves.waves))),
        "WHOSE": "\n".join(whose(*each) for each in waves.canaries.items()),
    }
    return re.sub("@([A-Z_]+)@", lambda found: known[found[1]], SCRIPT.read_text())


def _wave(waves: Waves, number: int, units: tuple[str, ...]) -> str:
    """One region after the other, and no further once a stack fails; the canaries are the first."""
    kind = "DIFFERENCE" if number else "INTERSECTION"
    accounts = list(waves.canaries)
    targets = {"OrganizationalUnitIds": units, "Accounts": accounts, "AccountFilterType": kind}
    at_once = waves.accounts_at_once if number else 1
    order = {"RegionConcurrencyType": "SEQUENTIAL", "RegionOrder": waves.regions}
    # The strict mode would let one more at once than may fail.
    bounds = {"MaxConcurrentCount": at_once, "ConcurrencyMode": "SOFT_FAILURE_TOLERANCE"}
    preferences = {**order, "FailureToleranceCount": 0, **bounds}
    return f"wave {number} {_json(targets)} {_json(preferences)}"


def _json(value: Any) -> str:
    return shlex.quote(json.dumps(value))
