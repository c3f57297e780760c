"""The checks of `mendq doctor`.

If the operator may not read something, its check is `unknown`, and the other checks still run.
"""
