"""Small models trained here: the same files every time, read by the oracle, and better than chance."""

import numpy as np
import pytest

from oracle import Unavailable, forward, load_model, perplexity
from validation import reference
from validation.provenance import file_sha256
from validation.studies.collapse.demo_texts import Backcopy, tokenizer_files
from validation.studies.collapse.embedded import plan
from validation.training import Recipe, doubling_steps, train

BACKCOPY = Backcopy.make()
RECIPE = Recipe(16, 1, 1, 16, 65, 0, steps=24, seed=1, batch=32, learning_rate=0.02, warm_up=4)
AT = (0, 1, 24)


def trained(folder, recipe=RECIPE, at=AT):
    files = tokenizer_files(BACKCOPY.characters, True)
    return train(recipe, lambda rng: BACKCOPY.draw(rng, recipe.batch, recipe.context), folder, files, at=at)


@pytest.fixture(scope="module")
def torch():
    return pytest.importorskip("torch", reason="needs the reference extra")


@pytest.fixture(scope="module")
def checkpoints(torch, tmp_path_factory):
    return trained(tmp_path_factory.mktemp("first"))


def hashes(places):
    return [file_sha256(place / "model.safetensors") for place in places]


@pytest.mark.parametrize(
    ("last", "steps"),
    [(1, (0, 1)), (2, (0, 1, 2)), (8, (0, 1, 2, 4, 8)), (10, (0, 1, 2, 4, 8, 10))],
)
def test_steps_double_up_to_the_last(last, steps):
    assert doubling_steps(last) == steps


def test_two_runs_give_the_same_files_whatever_torch_was_doing(torch, checkpoints, tmp_path):
    torch.manual_seed(5)
    torch.rand(3)
    before = torch.random.get_rng_state()
    threads = torch.get_num_threads()
    again = trained(tmp_path)
    assert [place.name for place in again] == ["step0", "step1", "step24"]
    assert hashes(again) == hashes(checkpoints)
    assert len(set(hashes(again))) == 3
    assert torch.equal(before, torch.random.get_rng_state())
    assert torch.get_num_threads() == threads


def test_what_stands_at_a_step_does_not_depend_on_the_steps_that_are_saved(checkpoints, tmp_path):
    assert hashes(trained(tmp_path, at=(24,))) == hashes(checkpoints)[2:]


def test_another_seed_and_another_rate_give_other_weights(checkpoints, tmp_path):
    other = trained(tmp_path / "seed", RECIPE._replace(seed=2), at=(0,))
    assert hashes(other) != hashes(checkpoints)[:1]
    slower = trained(tmp_path / "rate", RECIPE._replace(learning_rate=0.01, steps=1), at=(0, 1))
    assert hashes(slower)[0] == hashes(checkpoints)[0]
    assert hashes(slower)[1] != hashes(checkpoints)[1]


def rates_of(torch, recipe, folder):
    """The learning rate of every parameter at every step of the optimiser, as torch tells it."""
    from torch.optim.optimizer import register_optimizer_step_pre_hook

    found = []
    handle = register_optimizer_step_pre_hook(
        lambda optimiser, *_: found.append({group["lr"] for group in optimiser.param_groups})
    )
    try:
        trained(folder, recipe, at=(0,))
    finally:
        handle.remove()
    assert {len(rates) for rates in found} == {1}
    return [rate for rates in found for rate in rates]


def test_the_rate_rises_in_equal_steps_and_then_stays(torch, tmp_path):
    rates = rates_of(torch, RECIPE._replace(steps=7), tmp_path)
    assert rates == pytest.approx([0.005, 0.01, 0.015, 0.02, 0.02, 0.02, 0.02], rel=1e-12)


def test_the_embedded_series_warm_up_over_a_hundred_steps(torch, tmp_path):
    recipes = {series.recipe._replace(steps=103, batch=1) for series in plan() if series.kind == "backcopy"}
    rates = rates_of(torch, min(recipes), tmp_path)
    assert rates == pytest.approx([3e-5 * step for step in range(1, 101)] + [3e-3] * 3, rel=1e-12)
    assert {(series.recipe.learning_rate, series.recipe.warm_up) for series in plan()} == {(3e-3, 100)}


def test_the_oracle_reads_the_checkpoints_and_they_have_learned(checkpoints):
    models = [load_model(place) for place in checkpoints]
    texts = BACKCOPY.held_out(20, 16)
    trace = forward(models[0], texts[0])
    assert trace.tokens[0] == "<s>"
    assert len(trace.tokens) == 16
    assert trace.attention.shape == (1, 1, 16, 16)
    assert models[0].config.bos_id == 0
    losses = [np.mean([np.log(perplexity(model, text)) for text in texts]) for model in models]
    assert losses[0] == pytest.approx(np.log(65), abs=0.2)
    assert losses[2] < losses[0] - 0.02


def test_without_torch_it_says_what_to_install(monkeypatch, tmp_path):
    def missing():
        raise Unavailable('Install them: pip install "sinkscope[reference]"')

    monkeypatch.setattr(reference, "_libraries", missing)
    with pytest.raises(Unavailable, match="reference"):
        trained(tmp_path)
