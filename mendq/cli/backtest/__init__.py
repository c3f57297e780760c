"""Backtest: heal's decisions about incidents that the nightly job finds in old trail files."""
