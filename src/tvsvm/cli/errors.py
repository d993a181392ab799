"""What the user can correct: one sentence on standard error, no traceback, exit code 1."""


class UserError(Exception):
    """Something the user can correct; the message says what, got and cure."""
