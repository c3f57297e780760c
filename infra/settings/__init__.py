"""The settings of a deployment. This package imports neither CDK nor AWS's SDK, so it loads fast."""
