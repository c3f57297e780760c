"""The account on moto, as the tests of the engine have it."""

from tests.account.account import account

__all__ = ["account"]
