"""What becomes of a function, stage by stage."""

from .stages import Stages, stages

__all__ = ["Stages", "stages"]
