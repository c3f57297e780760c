"""What of the redrive's bounds the story lowers, so that it ends within minutes; it says all of it.

Of ten letters one is poison here: the shipped bounds would halt, which the story tells when it
comes to that.
"""

from __future__ import annotations

from dataclasses import fields, replace

from functions.healing.redrive_bounds import Bounds
from functions.settings import RedriveSettings
from local_account.process import LocalAccount

SHIPPED = Bounds()
LOWERED = Bounds(
    halt_returned=50,
    halt_share=0.25,
    rate_share=1.0,
    mover_per_tick=100,
    least_soak_seconds=5,
    tick_seconds=20,
    measuring_seconds=240,
)


def lower(account: LocalAccount) -> tuple[str, ...]:
    """In the deployed Lambda's own environment; a line for each bound."""
    client, name = account.client("lambda"), account.outputs["RedriveFunction"]
    environment = client.get_function_configuration(FunctionName=name)["Environment"]["Variables"]
    settings = replace(RedriveSettings.from_environment(environment), bounds=LOWERED)
    client.update_function_configuration(
        FunctionName=name,
        Environment={"Variables": {**environment, **settings.to_environment()}},
    )
    return lines()


def lines() -> tuple[str, ...]:
    """As a person reads them."""
    return tuple(
        f"redrive.{each.name}: {_of(LOWERED, each.name)} instead of {_of(SHIPPED, each.name)}"
        for each in fields(Bounds)
        if _of(LOWERED, each.name) != _of(SHIPPED, each.name)
    )


def _of(bounds: Bounds, name: str) -> str:
    return f"{getattr(bounds, name):g}"
