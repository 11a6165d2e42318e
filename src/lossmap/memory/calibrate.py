"""The threshold of a stored corpus, estimated from its own vectors (spec/replay 2.2), and read back where it is pinned.

Two things are fixed here that the pipeline leaves to chance. The draw of rows is seeded and recorded. And the rows of
the latest timestamp are, with one timestamp for all and rows read by (created_at desc, id asc), the *first* 200 in
storing order: their neighbours stand for neighbours in time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lossmap import canon
from lossmap.errors import LossmapError

SEED = 20_240_920
SAMPLE = 200
"""Rows drawn for the null, and rows of the slice whose neighbours are the positives."""
LEAST_ROWS = 10
LEAST_PAIRS = 10
UNCALIBRATED = 0.3
"""The configured threshold, which stands where a corpus is too small to calibrate."""
LEAST = 0.05
CANDIDATES = 256
PERCENTILE = 0.95
DEVIATIONS = 1.0
DECIMALS = 4
METHODS = ("separation", "percentile", "zscore")
SEEDS = 20

Floats = NDArray[np.float64]
Vectors = NDArray[np.float32]


@dataclass(frozen=True)
class Calibration:
    """``threshold`` to 4 decimals; the rates are those at the threshold before it is rounded.

    ``source``: live | pinned. ``proxy``: what stood for relevant pairs (temporal | nn_fallback), None but for
    separation, as are ``youden_j``, ``pos_admit_rate`` and ``pos_mean``. ``distribution``: mean, std, median and p95 of
    the null. ``sampled``: rows drawn, ascending; ``pairs`` of them in the null; ``positives``: pairs of the proxy. Not
    ``ok``: fewer than 10 rows, and the threshold is the configured one.
    """

    ok: bool
    method: str
    source: str
    proxy: str | None
    threshold: float
    youden_j: float | None
    null_admit_rate: float | None
    pos_admit_rate: float | None
    pos_mean: float | None
    distribution: Mapping[str, float] | None
    sampled: tuple[int, ...]
    pairs: int
    positives: int
    seed: int


def calibrate(vectors: Vectors, method: str = "separation", seed: int = SEED) -> Calibration:
    """The threshold of one stored corpus; ``vectors`` float32 (n, d), rows in storing order.

    Raises LossmapError on an unknown method and on vectors that are no float32 matrix of finite numbers.
    """
    _require(vectors, method)
    if len(vectors) < LEAST_ROWS:
        return _failed(method, seed)
    rows = sample(len(vectors), seed)
    similar = _product(vectors[rows], vectors[rows])
    null = similar[np.triu_indices(len(rows), 1)]
    proxy, positives = _positives(vectors, similar) if method == "separation" else (None, np.empty(0))
    threshold = max(_threshold(method, null, positives), LEAST)
    admitted = float((null >= threshold).mean())
    kept = float((positives >= threshold).mean()) if proxy else None
    return Calibration(
        ok=True,
        method=method,
        source="live",
        proxy=proxy,
        threshold=round(threshold, DECIMALS),
        youden_j=None if kept is None else kept - admitted,
        null_admit_rate=admitted,
        pos_admit_rate=kept,
        pos_mean=float(positives.mean()) if proxy else None,
        distribution=_distribution(null),
        sampled=tuple(rows.tolist()),
        pairs=len(null),
        positives=len(positives),
        seed=seed,
    )


def band(vectors: Vectors, seeds: int = SEEDS, method: str = "separation") -> list[float]:
    """The thresholds of as many draws, the published one first; all equal where the corpus has at most 200 rows."""
    return [calibrate(vectors, method, SEED + step).threshold for step in range(seeds)]


def sample(rows: int, seed: int) -> NDArray[np.int64]:
    """Up to 200 of ``rows`` numbers without repetition, ascending."""
    generator = np.random.Generator(np.random.PCG64(seed))
    return np.sort(generator.permutation(rows)[:SAMPLE]).astype(np.int64)


def separate(null: Floats, positives: Floats) -> float:
    """The threshold that separates best: the first of 256 equally spaced ones with the highest TPR - FPR.

    Spec/replay 2.2 with beta = 1 (Youden 1950). Compared as whole numbers (each share by the other's denominator), so
    that a tie is a tie and not a matter of the last bit.
    """
    ends = (min(null.min(), positives.min()), max(null.max(), positives.max()))
    candidates = np.linspace(*ends, CANDIDATES)
    kept, admitted = _reaching(positives, candidates), _reaching(null, candidates)
    return float(candidates[np.argmax(kept * len(null) - admitted * len(positives))])


def record(calibration: Calibration) -> dict[str, Any]:
    """As the card of a task holds it: every field, JSON-able, with the decimals that a results file keeps."""
    return dict(canon.rounded(asdict(calibration)))


def pinned(folder: Path, task: str, subtasks: Iterable[str], model: str | None = None) -> Calibration | None:
    """The record of the group with these very subtasks in the card of ``task``, as pinned.

    The card is ``<folder>/<task>.json`` or ``<folder>/<task>/task.json``. None where it has no such group or a
    calibration that failed: that group is then calibrated live (spec/replay 2.3). Raises (exit 2) where there is no
    card, or one of another ``model``, and LossmapError on a record without its fields.
    """
    path, wanted = _card(folder, task), frozenset(subtasks)
    try:
        card = canon.read_json(path)
        _require_model(path, card.get("model"), model)
        groups = [group for group in card["groups"] if frozenset(group["subtasks"]) == wanted]
        held: dict[str, Any] = groups[0]["calibration"] if groups else {"ok": False}
        if not held["ok"]:
            return None
        return Calibration(**{**held, "source": "pinned", "sampled": tuple(held["sampled"])})
    except (KeyError, TypeError) as error:
        raise LossmapError(
            "a record of calibrations is malformed",
            where=path,
            observed=f"{type(error).__name__}: {error}",
            expected='"groups", each with "subtasks" and the "calibration" of a task card',
        ) from error


def _card(folder: Path, task: str) -> Path:
    places = (folder / f"{task}.json", folder / task / "task.json")
    found = next((path for path in places if path.is_file()), None)
    if found is None:
        raise LossmapError(
            "no recorded calibration to pin from",
            where=folder,
            observed=f"neither {places[0].name} nor {task}/task.json",
            expected="the card of this task",
            next_command="name the folder of a model's cards, or leave --pin-from out to calibrate",
            exit_code=2,
        )
    return found


def _require_model(path: Path, recorded: str | None, model: str | None) -> None:
    """Cosines of two models are on two scales: a threshold of another one would be taken without a word."""
    if model is not None and recorded is not None and recorded != model:
        raise LossmapError(
            "a recorded calibration is of another model",
            where=path,
            observed=recorded,
            expected=model,
            next_command="name the folder of this model's cards",
            exit_code=2,
        )


def _failed(method: str, seed: int) -> Calibration:
    return Calibration(
        ok=False,
        method=method,
        source="live",
        proxy=None,
        threshold=UNCALIBRATED,
        youden_j=None,
        null_admit_rate=None,
        pos_admit_rate=None,
        pos_mean=None,
        distribution=None,
        sampled=(),
        pairs=0,
        positives=0,
        seed=seed,
    )


def _require(vectors: Vectors, method: str) -> None:
    if method not in METHODS:
        raise LossmapError("unknown method of calibration", observed=method, expected=", ".join(METHODS), exit_code=2)
    if vectors.ndim != 2 or vectors.dtype != np.float32 or not np.isfinite(vectors).all():
        raise LossmapError(
            "vectors cannot be calibrated",
            observed=f"{vectors.dtype} {vectors.shape}, all finite: {bool(np.isfinite(vectors).all())}",
            expected="a float32 matrix of finite numbers, a row per stored memory",
        )


def _product(left: Vectors, right: Vectors) -> Floats:
    """Dot products by the one rule for cosines: summed in float64, rounded to float32."""
    summed = left.astype(np.float64) @ right.astype(np.float64).T
    return summed.astype(np.float32).astype(np.float64)


def _positives(vectors: Vectors, similar: Floats) -> tuple[str, Floats]:
    """Cosines of neighbours among the newest 200 rows; of each sampled row's nearest where those are too few."""
    newest = vectors[:SAMPLE].astype(np.float64)
    if len(newest) - 1 >= LEAST_PAIRS:
        lengths = np.linalg.norm(newest, axis=1)
        products = np.einsum("ij,ij->i", newest[:-1], newest[1:])
        cosines = products / np.maximum(lengths[:-1] * lengths[1:], np.finfo(np.float64).tiny)
        return "temporal", cosines.astype(np.float32).astype(np.float64)
    others = similar.copy()
    np.fill_diagonal(others, -np.inf)
    return "nn_fallback", others.max(axis=1)


def _threshold(method: str, null: Floats, positives: Floats) -> float:
    if method == "percentile":
        return float(np.quantile(null, PERCENTILE))
    if method == "zscore":
        return float(null.mean() + DEVIATIONS * null.std())
    return separate(null, positives)


def _reaching(values: Floats, candidates: Floats) -> NDArray[np.int64]:
    """How many values are at least each candidate."""
    return (len(values) - np.searchsorted(np.sort(values), candidates, side="left")).astype(np.int64)


def _distribution(null: Floats) -> dict[str, float]:
    return {
        "mean": float(null.mean()),
        "std": float(null.std()),
        "median": float(np.median(null)),
        "p95": float(np.quantile(null, PERCENTILE)),
    }
