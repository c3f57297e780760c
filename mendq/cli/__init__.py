"""`mendq`, the command of operators: it may see everything, and nothing sees it."""
