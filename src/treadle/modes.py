"""What packages beside the core declare and ask of what a thread or the process is doing."""

from treadle.core.context import naming
from treadle.core.interrupts import during, is_mode
from treadle.core.keras_generation import generation
from treadle.core.locks import lock

__all__ = ["during", "generation", "is_mode", "lock", "naming"]
