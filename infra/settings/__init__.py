"""The settings of a deployment. This package does not import CDK or AWS's SDK, so it loads fast."""
