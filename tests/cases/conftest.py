"""The account on moto, as the tests of the engine have it."""

from tests.heal.conftest import account
from tests.scan.scanning import scanned

__all__ = ["account", "scanned"]
