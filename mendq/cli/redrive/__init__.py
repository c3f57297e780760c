"""A person's own redrive: the operator's credentials, no Lambda, no case store written."""
