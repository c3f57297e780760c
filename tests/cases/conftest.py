"""The account in moto that these tests use."""

from tests.account.account import account
from tests.scan.scanner import scanner

__all__ = ["account", "scanner"]
