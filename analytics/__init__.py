"""The nightly job, which makes tables of incidents and a weekly summary from trail files and cases.

Only `storage.py` opens files, also for Spark. `job.py` is the command.
"""
