"""The account on moto, as the tests of the engine have it."""

from tests.account.account import account
from tests.scan.scanner import scanner

__all__ = ["account", "scanner"]
