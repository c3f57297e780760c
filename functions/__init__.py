"""What the Lambda zips contain, and nothing else."""

import gc

# What is imported stays: to look through all of it again and again is a fifth of a cold start.
# `entry.Entry` collects again, once its Lambda is loaded.
gc.disable()
