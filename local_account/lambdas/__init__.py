"""Lambdas as AWS runs them, as far as MiniStack's warm processes allow."""
