"""A loop with a branch and a break."""

from typing import Any


def collatz(n: Any) -> Any:
    """Steps of the Collatz sequence from n to 1, at most 200."""
    steps = 0
    while n != 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        steps += 1
        if steps >= 200:
            break
    return steps
