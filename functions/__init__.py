"""The Lambda functions of Mendq, one module each."""

import gc

# The garbage collector is off during a cold start, because imported modules are never garbage and
# checking them takes a fifth of a cold start. `entry.Entry` turns it on when its Lambda is loaded.
gc.disable()
