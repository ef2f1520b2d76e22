"""The embedded series: planned, put there whole, known again, never somebody else's folder."""

import json

import pytest

from oracle import InputError
from validation.studies.collapse import embedded
from validation.studies.collapse.embedded import SEEDS, WIDTHS, default_folder, make, plan
from validation.training import Recipe

TINY = plan((4,), (0,), steps=4, contrast=False)[0]


@pytest.fixture
def trained(monkeypatch):
    """Stands in for the training; the names of the folders that it was asked for."""
    asked = []

    def write(recipe, draw, folder, files, *, at, progress):
        asked.append(folder.name)
        for step in at:
            place = folder / f"step{step}"
            place.mkdir(parents=True)
            (place / "model.safetensors").write_text(f"{recipe.seed} {step}")
            for name, text in files.items():
                (place / name).write_text(text)

    monkeypatch.setattr(embedded, "train", write)
    return asked


def test_the_plan_is_that_of_the_study():
    planned = plan()
    assert [series.name for series in planned[:4]] == [
        *(f"backcopy-width16-seed{seed}" for seed in SEEDS),
        "backcopy-width64-seed0",
    ]
    assert len(planned) == len(WIDTHS) * len(SEEDS) + 1
    assert planned[0].steps == (0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048)
    recipe = planned[5].recipe
    assert recipe == Recipe(64, 1, 1, 32, 65, 0, 2048, 2)
    assert (recipe.batch, recipe.learning_rate, recipe.warm_up, recipe.weight_decay) == (64, 3e-3, 100, 0.1)
    contrast = planned[-1]
    assert contrast.kind == "source"
    assert (contrast.recipe.context, contrast.recipe.bos, contrast.recipe.vocabulary) == (128, None, 95)
    assert all(series.kind == "backcopy" for series in plan((8,), (3, 4), contrast=False))


def test_a_series_is_trained_once_and_stands_there_whole(trained, tmp_path):
    places, texts = make(TINY, tmp_path)
    folder = tmp_path / TINY.name
    assert places == [folder / f"step{step}" for step in (0, 1, 2, 4)]
    assert all((place / "tokenizer.json").is_file() for place in places)
    assert (folder / "texts.txt").read_text().splitlines() == list(texts)
    assert len(texts) == 64
    manifest = json.loads((folder / "series.json").read_text())
    assert manifest["recipe"]["width"] == 4
    assert set(manifest["checkpoints"]) == {place.name for place in places}
    assert make(TINY, tmp_path) == (places, texts)
    assert trained == [TINY.name]
    assert [path.name for path in tmp_path.iterdir()] == [TINY.name]


@pytest.mark.parametrize("damage", ["weights", "gone", "manifest", "recipe"])
def test_a_damaged_series_or_one_of_another_recipe_is_trained_again(trained, tmp_path, damage):
    make(TINY, tmp_path)
    folder, wanted = tmp_path / TINY.name, TINY
    if damage == "weights":
        (folder / "step2" / "model.safetensors").write_text("other")
    elif damage == "gone":
        (folder / "step4" / "model.safetensors").unlink()
    elif damage == "manifest":
        (folder / "series.json").write_text("{")
    else:
        wanted = TINY._replace(recipe=TINY.recipe._replace(weight_decay=0.0))
    places, _ = make(wanted, tmp_path)
    assert len(trained) == 2
    assert (places[2] / "model.safetensors").read_text() == "0 2"
    assert make(wanted, tmp_path)[0] == places
    assert len(trained) == 2


def test_training_that_is_stopped_leaves_nothing_behind(monkeypatch, trained, tmp_path):
    make(TINY, tmp_path)
    other = TINY._replace(name="other")

    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(embedded, "train", stop)
    with pytest.raises(KeyboardInterrupt):
        make(other, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [TINY.name]


def test_folders_that_are_not_ours_are_left_alone(trained, tmp_path):
    mine = tmp_path / TINY.name
    mine.mkdir()
    (mine / "thesis.txt").write_text("years of work")
    with pytest.raises(InputError, match="--out: expected a folder for series"):
        make(TINY, tmp_path)
    assert (mine / "thesis.txt").read_text() == "years of work"
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="--out: expected a folder that can be written to"):
        make(TINY, tmp_path / "file")
    assert trained == []


def test_the_default_folder_is_in_the_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("SINKSCOPE_CACHE", str(tmp_path))
    assert default_folder() == tmp_path / "series"
