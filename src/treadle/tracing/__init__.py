"""`@function`: signatures, the cache of traces, concrete functions and their fast calls."""
