"""Thresholds against a plain computation of the same definitions, and the choices that the pipeline leaves open."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from lossmap import canon
from lossmap.errors import LossmapError
from lossmap.memory import calibrate
from lossmap.memory.calibrate import Calibration


def drifting(rows: int, seed: int = 3, width: int = 24) -> NDArray[np.float32]:
    """Unit vectors whose neighbours are alike, as turns of a talk are."""
    generator = np.random.Generator(np.random.PCG64(seed))
    steps = generator.normal(size=(rows, width))
    walk = np.empty_like(steps)
    walk[0] = steps[0]
    for row in range(1, rows):
        walk[row] = 0.8 * walk[row - 1] + steps[row]
    walk += 1.5
    return (walk / np.linalg.norm(walk, axis=1, keepdims=True)).astype(np.float32)


def similar(left: NDArray[np.float32], right: NDArray[np.float32]) -> float:
    return float(np.float32(sum(float(a) * float(b) for a, b in zip(left, right, strict=True))))


def plain(vectors: NDArray[np.float32], sampled: tuple[int, ...]) -> tuple[float, float]:
    """Threshold and J of the separation, written out: pairs one by one, candidates one by one."""
    null = [similar(vectors[a], vectors[b]) for a, b in itertools.combinations(sampled, 2)]
    newest = vectors[:200]
    near = [similar(newest[row], newest[row + 1]) for row in range(len(newest) - 1)]
    low, high = min(null + near), max(null + near)
    best: tuple[int, float] | None = None
    for step in range(256):
        at = low + step * (high - low) / 255
        kept, admitted = sum(value >= at for value in near), sum(value >= at for value in null)
        worth = kept * len(null) - admitted * len(near)
        if best is None or worth > best[0]:
            best = worth, at
    assert best is not None
    return round(max(best[1], 0.05), 4), best[0] / (len(near) * len(null))


@pytest.mark.parametrize("rows", [11, 40, 260])
def test_separation_is_the_first_best_of_256_candidates(rows: int) -> None:
    vectors = drifting(rows)
    found = calibrate.calibrate(vectors)
    threshold, youden = plain(vectors, found.sampled)
    assert (found.ok, found.method, found.source, found.proxy) == (True, "separation", "live", "temporal")
    assert found.threshold == threshold
    assert found.youden_j == pytest.approx(youden, abs=1e-9)
    drawn = min(rows, 200)
    assert (found.pairs, found.positives) == (drawn * (drawn - 1) // 2, drawn - 1)
    assert found.pos_mean > found.distribution["mean"]


def test_the_first_of_equal_maxima_is_taken() -> None:
    """Any candidate above 0.1 up to 0.9 parts them whole: the first one above 0.1 it is."""
    null, positives = np.array([0.0, 0.1]), np.array([0.9, 1.0])
    assert calibrate.separate(null, positives) == pytest.approx(26 / 255, abs=1e-12)


def test_the_newest_rows_are_the_first_two_hundred() -> None:
    """One timestamp for all and (created_at desc, id asc): rows from 200 on are no positives."""
    vectors = drifting(400)
    changed = vectors.copy()
    changed[200:] = vectors[200:][::-1]
    whole, other = calibrate.calibrate(vectors), calibrate.calibrate(changed)
    assert (whole.positives, other.positives) == (199, 199)
    assert whole.pos_mean == other.pos_mean
    changed[150:200] = vectors[150:200][::-1]
    assert calibrate.calibrate(changed).pos_mean != whole.pos_mean


def test_positives_are_cosines_and_the_null_is_the_bare_product() -> None:
    vectors = drifting(60)
    twice = calibrate.calibrate((vectors * 2).astype(np.float32))
    once = calibrate.calibrate(vectors)
    assert twice.pos_mean == pytest.approx(once.pos_mean, abs=1e-6)
    assert twice.distribution["mean"] == pytest.approx(4 * once.distribution["mean"], abs=1e-5)


def test_percentile_and_z_score_are_read_off_the_null() -> None:
    vectors = drifting(120)
    null = [similar(a, b) for a, b in itertools.combinations(vectors, 2)]
    percentile, zscore = calibrate.calibrate(vectors, "percentile"), calibrate.calibrate(vectors, "zscore")
    assert percentile.threshold == round(float(np.quantile(null, 0.95)), 4)
    assert zscore.threshold == round(float(np.mean(null) + np.std(null)), 4)
    assert percentile.null_admit_rate == pytest.approx(0.05, abs=0.001)
    assert (percentile.proxy, percentile.youden_j, percentile.positives) == (None, None, 0)


def test_a_threshold_is_at_least_a_twentieth() -> None:
    """Directions that have nothing in common: the null lies at 0."""
    vectors = np.eye(16, dtype=np.float32)
    assert {method: calibrate.calibrate(vectors, method).threshold for method in calibrate.METHODS} == {
        "separation": 0.05,
        "percentile": 0.05,
        "zscore": 0.05,
    }


def test_ten_rows_have_nine_neighbours_so_that_the_nearest_stand_in() -> None:
    vectors = drifting(10)
    found = calibrate.calibrate(vectors)
    nearest = [max(similar(a, b) for j, b in enumerate(vectors) if j != i) for i, a in enumerate(vectors)]
    assert (found.proxy, found.positives) == ("nn_fallback", 10)
    assert found.pos_mean == pytest.approx(float(np.mean(nearest)), abs=1e-12)
    assert calibrate.calibrate(drifting(11)).proxy == "temporal"


def test_fewer_than_ten_rows_leave_the_configured_threshold() -> None:
    found = calibrate.calibrate(drifting(9))
    assert (found.ok, found.threshold, found.sampled, found.pairs) == (False, 0.3, (), 0)


def test_the_draw_is_seeded_and_recorded() -> None:
    vectors = drifting(500)
    found = calibrate.calibrate(vectors)
    assert found == calibrate.calibrate(vectors)
    assert found.sampled == tuple(sorted(set(found.sampled))) and len(found.sampled) == 200
    assert found.sampled[:6] == tuple(calibrate.sample(500, 20_240_920)[:6].tolist()) and found.seed == 20_240_920
    assert calibrate.calibrate(vectors, seed=1).sampled != found.sampled
    again = calibrate.calibrate(vectors, "percentile")
    assert again.sampled == found.sampled


def test_the_band_is_of_twenty_draws_and_closed_where_all_rows_are_drawn() -> None:
    large, small = calibrate.band(drifting(500)), calibrate.band(drifting(120))
    assert len(large) == 20 and large[0] == calibrate.calibrate(drifting(500)).threshold and len(set(large)) > 1
    assert len(small) == 20 and len(set(small)) == 1
    assert (
        calibrate.band(drifting(500), 3, "percentile")[0] == calibrate.calibrate(drifting(500), "percentile").threshold
    )


def write(folder: Path, name: str, *groups: tuple[list[str], dict[str, Any]]) -> None:
    rows = [{"name": "all", "subtasks": subtasks, "calibration": held} for subtasks, held in groups]
    canon.write_json(folder / f"{name}.json", {"task": name, "groups": rows})


def known(vectors: NDArray[np.float32]) -> Calibration:
    """A calibration with the decimals that a file keeps."""
    held = calibrate.record(calibrate.calibrate(vectors))
    return Calibration(**{**held, "sampled": tuple(held["sampled"])})


def test_a_record_is_read_back_as_pinned_for_the_same_subtasks(tmp_path: Path) -> None:
    large, small = calibrate.calibrate(drifting(300)), calibrate.calibrate(drifting(30))
    write(tmp_path, "reme", (["a/x", "a/y"], calibrate.record(large)), (["b/x"], calibrate.record(small)))
    assert calibrate.pinned(tmp_path, "reme", frozenset({"a/y", "a/x"})) == replace(
        known(drifting(300)), source="pinned"
    )
    assert calibrate.pinned(tmp_path, "reme", frozenset({"b/x"})) == replace(known(drifting(30)), source="pinned")
    assert calibrate.pinned(tmp_path, "reme", frozenset({"a/x"})) is None
    (tmp_path / "reme").mkdir()
    (tmp_path / "reme.json").rename(tmp_path / "reme" / "task.json")
    assert calibrate.pinned(tmp_path, "reme", frozenset({"b/x"})) is not None


def test_a_card_that_is_absent_or_of_another_model_is_refused(tmp_path: Path) -> None:
    """Either would be calibrated live, or cut on another model's scale, without a word."""
    with pytest.raises(LossmapError, match="no recorded calibration"):
        calibrate.pinned(tmp_path, "other", frozenset({"a/x"}))
    canon.write_json(tmp_path / "other.json", {"model": "m1", "groups": []})
    assert calibrate.pinned(tmp_path, "other", frozenset({"a/x"}), "m1") is None
    with pytest.raises(LossmapError, match="another model"):
        calibrate.pinned(tmp_path, "other", frozenset({"a/x"}), "m2")


def test_a_failed_calibration_is_not_pinned_and_a_broken_record_is_named(tmp_path: Path) -> None:
    write(tmp_path, "tiny", (["r5"], calibrate.record(calibrate.calibrate(drifting(5)))))
    assert calibrate.pinned(tmp_path, "tiny", frozenset({"r5"})) is None
    write(tmp_path, "old", (["r5"], {"ok": True, "threshold": 0.4}))
    with pytest.raises(LossmapError, match="old.json"):
        calibrate.pinned(tmp_path, "old", frozenset({"r5"}))
    with pytest.raises(LossmapError, match="no recorded calibration"):
        calibrate.pinned(tmp_path / "nowhere", "tiny", frozenset())


def test_what_cannot_be_calibrated_is_refused() -> None:
    with pytest.raises(LossmapError, match="separation, percentile, zscore"):
        calibrate.calibrate(drifting(20), "median")
    with pytest.raises(LossmapError, match="float32 matrix"):
        calibrate.calibrate(drifting(20).astype(np.float64))  # type: ignore[arg-type]
    broken = drifting(20)
    broken[3, 3] = np.nan
    with pytest.raises(LossmapError, match="finite: False"):
        calibrate.calibrate(broken)
