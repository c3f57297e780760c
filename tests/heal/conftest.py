"""The account in moto that the tests of heal use."""

from tests.account.account import account

__all__ = ["account"]
