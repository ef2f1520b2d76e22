"""Laws as plain functions that take an implementation, so that one law runs against all of them."""

from validation.properties.calls import arguments_stay, result_dtype
from validation.properties.examples import row_examples, word_example
from validation.properties.finding import Finding, LawBroken, deviation, rounding, size_of
from validation.properties.implementation import Implementation
from validation.properties.norms import (
    head_sum_by_definition,
    norm_commutes_with_weight,
    ratio_by_definition,
    rows_opened_by_definition,
    words_by_definition,
)
from validation.properties.shares import (
    key_order_is_free,
    norm_scale_is_free,
    odds_law,
    padding_is_free,
    ratio_decides_direction,
    rows_sum_to_one,
    share_by_definition,
    share_in_range,
    share_of_weights,
    unit_norms_are_attention,
)
from validation.properties.traces import (
    padded_run_is_plain_run,
    rows_of_a_trace,
    transformed_norm_by_definition,
    value_norm_by_definition,
)

__all__ = [
    "Finding",
    "Implementation",
    "LawBroken",
    "arguments_stay",
    "deviation",
    "head_sum_by_definition",
    "key_order_is_free",
    "norm_commutes_with_weight",
    "norm_scale_is_free",
    "odds_law",
    "padded_run_is_plain_run",
    "padding_is_free",
    "ratio_by_definition",
    "ratio_decides_direction",
    "result_dtype",
    "rounding",
    "row_examples",
    "rows_of_a_trace",
    "rows_opened_by_definition",
    "rows_sum_to_one",
    "share_by_definition",
    "share_in_range",
    "share_of_weights",
    "size_of",
    "transformed_norm_by_definition",
    "unit_norms_are_attention",
    "value_norm_by_definition",
    "word_example",
    "words_by_definition",
]
