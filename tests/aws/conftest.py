"""The account on moto, as the tests of the engine have it."""

from tests.heal.conftest import account

__all__ = ["account"]
