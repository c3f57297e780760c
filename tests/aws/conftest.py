"""The fixture `account`: an AWS account in moto."""

from tests.account.account import account

__all__ = ["account"]
