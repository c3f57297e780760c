"""Run Lambdas as AWS does, as far as MiniStack's warm processes allow."""
