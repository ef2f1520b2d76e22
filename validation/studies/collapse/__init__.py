"""How much of an entropy drop over training is the sink growing, and how much is attention sharpening?"""

from validation.studies.collapse.study import collapse

__all__ = ["collapse"]
