"""What a wrong command line is told."""


class UsageError(Exception):
    """Ends the command with its message as one line and exit status 2."""
