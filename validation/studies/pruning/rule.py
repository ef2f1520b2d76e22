"""What the pruning study asks and how it answers, set down before it was first run."""

from __future__ import annotations

from validation.claims import figure

__all__ = ["RULE_VERSION", "hundredfold", "rule"]

RULE_VERSION = 1  # of the choices, the texts and the rule; results of another version are never taken over


def hundredfold() -> float:
    """The published factor of the perplexity that the rule asks for."""
    return figure("hundredfold").value


def rule() -> tuple[str, ...]:
    """The rule in sentences; InputError where the published factor cannot be had."""
    many = hundredfold()
    return (
        "Published: pruning heads by the wrong channel can raise perplexity more than a hundredfold. It is "
        "reproduced if at one of the budgets one of the eight choices by sink share or entropy (four "
        f"criteria, from both ends) multiplies the perplexity of both texts by more than {many:.0f}.",
        "What remains of it once the layers are matched is the ratio over the median ratio of random draws "
        "that cut as many heads in each layer, on the first text. The hundredfold remains if that quotient "
        f"too is above {many:.0f}, and the ratio above those of all the draws.",
        "A choice is worse than its layers if its ratio is above those of all its layer-matched draws, "
        "better if it is below all of them, and otherwise not told apart from them. If heads of a layer were "
        "alike, each would happen to one choice in (draws + 1).",
    )
