"""The NumPy oracle: it re-implements the model and defines every measure."""

from oracle._checks import InputError, InputTypeError, Unavailable
from oracle._results import (
    AitchisonSplit,
    DistanceSums,
    EntropyChange,
    EntropySplit,
    KeyRange,
    RowMeasures,
    VerdictFlips,
)
from oracle.aitchison import aitchison_split, aitchison_split_from_scores
from oracle.arrays import AttentionArrays, read_attention
from oracle.composition import (
    closure,
    clr,
    entropy_change,
    entropy_change_from_scores,
    entropy_split,
    entropy_split_from_scores,
)
from oracle.distances import (
    CONVENTIONS,
    METRICS,
    clark2019_distances,
    distance_sums,
    head_distances,
    mean_distances,
    row_distances,
)
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
from oracle.verdicts import gaussian_flip_rate, verdict_flips
from oracle.words import OpenedRows, Unit, group_words, merge_words, open_merged_rows, open_rows
from oracle.zeros import replace_zeros

__all__ = [
    "CONVENTIONS",
    "METRICS",
    "AitchisonSplit",
    "AttentionArrays",
    "DistanceSums",
    "EntropyChange",
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
    "VerdictFlips",
    "aitchison_split",
    "aitchison_split_from_scores",
    "choose_sinks",
    "clark2019_distances",
    "closure",
    "clr",
    "distance_sums",
    "entropy_change",
    "entropy_change_from_scores",
    "entropy_split",
    "entropy_split_from_scores",
    "forward",
    "forward_batch",
    "gaussian_flip_rate",
    "group_words",
    "head_distances",
    "head_summed_norm",
    "load_model",
    "logits",
    "logits_without_heads",
    "mean_distances",
    "merge_words",
    "norm_odds_ratio",
    "open_merged_rows",
    "open_rows",
    "perplexity",
    "read_attention",
    "replace_zeros",
    "row_distances",
    "row_measures",
    "sink_share",
    "sink_share_from_query_key",
    "undeclared_sinks",
    "value_norm_ratio",
    "verdict_flips",
    "weight_share",
    "weighted_rows",
]
