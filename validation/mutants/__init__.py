"""Deliberately wrong measures and forward passes, each with the one check that must kill it."""

from validation.mutants.kinds import Mutant, Outcome, Trial, put_to
from validation.mutants.run import MUTANTS, report_outcomes, run_mutants
from validation.mutants.subjects import Subjects, random_model

__all__ = [
    "MUTANTS",
    "Mutant",
    "Outcome",
    "Subjects",
    "Trial",
    "put_to",
    "random_model",
    "report_outcomes",
    "run_mutants",
]
