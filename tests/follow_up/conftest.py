"""The account in moto that these tests use."""

from tests.account.account import account

__all__ = ["account"]
