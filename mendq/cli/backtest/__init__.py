"""Backtest: heal's decisions on the incidents that the nightly job finds in past trail files."""
