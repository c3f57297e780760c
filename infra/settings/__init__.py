"""The settings of a deployment. This package needs neither CDK nor AWS, so it answers at once."""
