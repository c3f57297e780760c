"""The account in moto, under the name that the tests of many rooms know it by."""

from tests.account.account import (
    ACCOUNT,
    EXPIRED,
    PROBE_ROLE,
    REGION,
    WORKER,
    Account,
    account,
    every_client,
    furnished,
    moto_account,
    settings,
)

__all__ = ["ACCOUNT", "EXPIRED", "PROBE_ROLE", "REGION", "WORKER", "Account", "account"]
__all__ += ["every_client", "furnished", "moto_account", "settings"]
