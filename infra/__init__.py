"""The stack: one construct per capability. No AWS call, no credentials."""

import os

from infra.node import NODE

# jsii looks for Node when aws_cdk is first imported; ours came with pip, so Python alone is enough.
os.environ.setdefault("JSII_NODE", str(NODE))
