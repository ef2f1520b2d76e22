"""Claims judged: each by its rule, from the results of its runs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from oracle._checks import InputError, reject
from validation.claims import Claim
from validation.ledger.finding import NOT_TESTABLE, VERDICTS, Finding
from validation.ledger.judges import JUDGES
from validation.ledger.result import Results

__all__ = ["check_claims", "judge_claim", "judge_claims", "runs_of"]


def check_claims(claims: Sequence[Claim], runs: Collection[str]) -> None:
    """Refuse claims with a judge that nobody wrote, or with a run that is not one of `runs`."""
    for claim in claims:
        if claim.judge not in JUDGES:
            _refuse(claim, f"a judge from {', '.join(JUDGES)}", repr(claim.judge))
        for name in claim.runs:
            if name not in runs:
                _refuse(claim, f"runs from {', '.join(runs)}", repr(name))


def runs_of(claims: Sequence[Claim]) -> tuple[str, ...]:
    """The names of all runs that these claims are judged by, each once, in their order."""
    return tuple(dict.fromkeys(name for claim in claims for name in claim.runs))


def judge_claims(claims: Sequence[Claim], load: Callable[[str], Mapping[str, Any]]) -> Mapping[str, Finding]:
    """The findings by the id of the claim; `load` gives the JSON of a run, and each is loaded once."""
    results = Results(runs_of(claims), load)
    return {claim.id: judge_claim(claim, results) for claim in claims}


def judge_claim(claim: Claim, results: Results) -> Finding:
    """The finding of one claim, with T of its runs where its judge does not say T itself.

    InputError, with its id, for a result that lacks what the rule reads, and where a claim that is not
    testable does not say what it would take.
    """
    try:
        found = JUDGES[claim.judge](claim, results)
    except InputError as error:
        raise InputError(f"claim {claim.id}: {error}") from None
    if found.verdict not in VERDICTS:
        _refuse(claim, f"a verdict from {', '.join(VERDICTS)}", repr(found.verdict))
    if found.verdict == NOT_TESTABLE and not claim.needs:
        _refuse(claim, "what it would take (`needs`), as it is not testable here", "none")
    return found if found.lengths is not None else found._replace(lengths=_lengths(claim, results))


def _lengths(claim: Claim, results: Results) -> str:
    """T of each run in words; shares depend on it, so that it stands beside every finding."""
    words = {name: results[name].lengths for name in claim.runs if results[name].lengths}
    each = dict.fromkeys(words.values())
    return ", ".join(each) if len(each) < 2 else ", ".join(f"{name} {T}" for name, T in words.items())


def _refuse(claim: Claim, expected: str, found: str) -> None:
    reject(f"claim {claim.id}", expected=expected, found=found, todo="Mend claims.toml, or its judge.")
