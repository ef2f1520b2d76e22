"""Sink shares by layer and by length: texts cut at several numbers of tokens, each measured by itself."""

from validation.lengths.measuring import Lengths, measure_lengths

__all__ = ["Lengths", "measure_lengths"]
