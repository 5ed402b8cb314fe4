"""The memory plan: where in the workspace every temporary lives."""
