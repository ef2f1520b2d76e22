"""The NumPy oracle: it re-implements the model and defines every measure."""

from oracle._checks import InputError, InputTypeError, Unavailable
from oracle._results import EntropySplit, KeyRange, RowMeasures
from oracle.arrays import AttentionArrays, read_attention
from oracle.composition import entropy_split
from oracle.forward import forward, forward_batch
from oracle.language_model import logits, perplexity
from oracle.loading import load_model
from oracle.measures import (
    head_summed_norm,
    norm_odds_ratio,
    row_measures,
    sink_share,
    undeclared_sinks,
    value_norm_ratio,
    weight_share,
    weighted_rows,
)
from oracle.model import Model, ModelConfig
from oracle.silencing import logits_without_heads
from oracle.sinks import choose_sinks
from oracle.streaming import sink_share_from_query_key
from oracle.trace import Trace
from oracle.words import OpenedRows, Unit, group_words, merge_words, open_merged_rows, open_rows

__all__ = [
    "AttentionArrays",
    "EntropySplit",
    "InputError",
    "InputTypeError",
    "KeyRange",
    "Model",
    "ModelConfig",
    "OpenedRows",
    "RowMeasures",
    "Trace",
    "Unavailable",
    "Unit",
    "choose_sinks",
    "entropy_split",
    "forward",
    "forward_batch",
    "group_words",
    "head_summed_norm",
    "load_model",
    "logits",
    "logits_without_heads",
    "merge_words",
    "norm_odds_ratio",
    "open_merged_rows",
    "open_rows",
    "perplexity",
    "read_attention",
    "row_measures",
    "sink_share",
    "sink_share_from_query_key",
    "undeclared_sinks",
    "value_norm_ratio",
    "weight_share",
    "weighted_rows",
]
