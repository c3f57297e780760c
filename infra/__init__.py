"""The CDK stack, one construct per capability. Its synthesis calls no AWS API."""

import os

from infra.node import NODE_EXECUTABLE

# jsii reads this variable when aws_cdk is first imported. Node came with pip, so that a machine
# with Python alone can synthesize.
os.environ.setdefault("JSII_NODE", str(NODE_EXECUTABLE))
