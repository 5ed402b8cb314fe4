"""treadle turns ordinary Python functions into compiled graphs."""
