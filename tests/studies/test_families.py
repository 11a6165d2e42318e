"""Every arm against its control: the numbers of compare, all at once, with p-values that pay for the family."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import families_of
import numpy as np
import planted
import pytest
from families_of import BENCH, CONTROL, QUERIES, score, values

from lossmap import canon
from lossmap.errors import LossmapError
from lossmap.judge import multiplicity, permutation
from lossmap.judge.measures import NAMES
from lossmap.studies import beir, compare, families, scores, stacks
from lossmap.studies.stacks import Family

ARMS = {"same": values(0, spread=0.0), "better": values(1, 0.08), "noise": values(2), "worse": values(3, -0.05)}


def row_of(document: dict[str, Any], arm: str, query_class: str = "all") -> dict[str, Any]:
    (row,) = [r for r in document["rows"] if (r["arm"], r["query_class"]) == (arm, query_class)]
    return row


def test_rows_are_those_of_compare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at = families_of.root(tmp_path, monkeypatch)
    document = families.deltas(at, [score(at, ARMS)])
    assert len(document["rows"]) == len(ARMS) * 3
    folder = scores.scored(at, BENCH, "stage5")
    for arm in ARMS:
        for expected in compare.compare(folder / arm, folder / CONTROL, QUERIES)["rows"]:
            found = row_of(document, arm, expected["query_class"])
            assert {key: found[key] for key in expected if key != "intervals"} == {
                key: value for key, value in expected.items() if key != "intervals"
            }
            for name in NAMES:
                for unit in ("meetings", "queries"):
                    assert found["intervals"][name][unit] == pytest.approx(expected["intervals"][name][unit], abs=1e-9)


def test_evidence_of_each_arm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at = families_of.root(tmp_path, monkeypatch)
    document = families.deltas(at, [score(at, ARMS)])
    better, noise, same = (row_of(document, arm) for arm in ("better", "noise", "same"))
    assert better["holm"]["nDCG@10"]["meetings"] < 0.01 < 0.2 < noise["holm"]["nDCG@10"]["meetings"]
    assert same["p_values"]["nDCG@10"] == same["holm"]["nDCG@10"] == {"meetings": 1.0, "queries": 1.0}
    assert better["percent"]["RR"] == pytest.approx(100 * better["deltas"]["RR"] / better["control_means"]["RR"])
    low, high = better["intervals"]["R@5"]["meetings"]
    assert better["half_widths"]["R@5"] == pytest.approx((high - low) / 2)
    assert better["axis"] == "weights" and better["family"] == "fusion" and better["control"] == CONTROL


def test_holm_is_over_the_arms_of_one_family_in_one_class(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at = families_of.root(tmp_path, monkeypatch)
    whole = score(at, ARMS)
    alone = Family("alone", CONTROL, {"better": "weights"}, (BENCH,))
    document = families.deltas(at, [whole, alone])
    for row in (r for r in document["rows"] if r["family"] == "alone"):
        assert row["holm"] == row["p_values"]
    for query_class in ("lookup", "summarize", "all"):
        rows = [r for r in document["rows"] if (r["family"], r["query_class"]) == ("fusion", query_class)]
        p = [[r["p_values"]["RR"]["meetings"]] for r in rows]
        assert [[r["holm"]["RR"]["meetings"]] for r in rows] == multiplicity.holm(np.array(p)).tolist()


def test_detectable_effects_per_corpus_and_class_leave_equal_arms_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = families_of.root(tmp_path, monkeypatch)
    document = families.deltas(at, [score(at, ARMS)])
    found = {row["query_class"]: row for row in document["detectable"]}
    assert list(found) == ["lookup", "summarize", "all"] and found["lookup"]["queries"] == 90
    each = [row_of(document, arm)["detectable"]["nDCG@10"] for arm in ("better", "noise", "worse")]
    spread = found["all"]["measures"]["nDCG@10"]
    assert spread == {"arms": 3, "least": min(each), "median": sorted(each)[1], "greatest": max(each)}
    assert found["summarize"]["measures"]["nDCG@10"]["median"] > spread["median"]


def test_benches_with_the_same_queries_are_resampled_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at = families_of.root(tmp_path, monkeypatch, (BENCH, "main/qmsum"))
    chosen = [score(at, ARMS), score(at, {"better": ARMS["better"]}, "main/qmsum")]
    calls: list[int] = []
    plain = permutation.p_values
    monkeypatch.setattr(permutation, "p_values", lambda d, *rest: calls.append(d.shape[1]) or plain(d, *rest))
    document = families.deltas(at, chosen)
    assert calls == [5 * len(NAMES)]
    assert {row["bench"] for row in document["rows"]} == {BENCH, "main/qmsum"}


@pytest.mark.parametrize("name", ["query_ids", "qrels", "index", "engine"])
def test_a_differing_hash_is_refused_unless_the_family_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    at = families_of.root(tmp_path, monkeypatch)
    family = score(at, {"better": ARMS["better"]})
    path = scores.scored(at, BENCH, "stage5") / "better" / "metrics.json"
    canon.write_json(path, {**canon.read_json(path), "hashes": {**planted.HASHES, name: "other"}})
    with pytest.raises(LossmapError, match=f"differ in {name}"):
        families.deltas(at, [family])
    named = Family("fusion", CONTROL, family.arms, (BENCH,), (name,))
    assert families.deltas(at, [named])["families"][0]["factor"] == [name]


def test_other_queries_and_queries_without_a_class_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at = families_of.root(tmp_path, monkeypatch)
    family = score(at, {"better": ARMS["better"]})
    folder = scores.scored(at, BENCH, "stage5")
    other = {q.replace("m00", "m99"): value for q, value in ARMS["better"].items()}
    planted.arm(folder / "better", "better", other)
    with pytest.raises(LossmapError, match="same queries"):
        families.deltas(at, [family])
    planted.arm(folder / CONTROL, CONTROL, other)
    with pytest.raises(LossmapError, match="no class"):
        families.deltas(at, [family])


def test_a_corpus_that_was_not_obtained_has_no_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at = families_of.root(tmp_path, monkeypatch)
    family = score(at, {"better": ARMS["better"]})
    for folder in scores.scored(at, BENCH, "stage5").iterdir():
        canon.write_json(folder / "metrics.json", {**canon.read_json(folder / "metrics.json"), "rows": []})
        canon.write_csv_gz(folder / "per_query.csv.gz", ("name", "qid", "measure", "value"), [])
    document = families.deltas(at, [family])
    assert document["rows"] == document["detectable"] == [] and beir.study(at, [family])["rows"] == []


def test_one_meeting_and_a_control_at_zero_are_null_and_not_an_accident(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = families_of.root(tmp_path, monkeypatch)
    family = score(at, {"better": ARMS["better"]})
    tiny = [query_id for query_id in QUERIES if ":m00:" in query_id]
    for name, value in (("better", 0.5), (CONTROL, 0.0)):
        planted.arm(scores.scored(at, BENCH, "stage5") / name, name, dict.fromkeys(tiny, value), QUERIES)
    document = families.deltas(at, [family])
    row = row_of(document, "better")
    assert row["percent"]["RR"] is None and row["detectable"]["RR"] is None and row["deltas"]["RR"] == 0.5
    assert document["detectable"][0]["measures"]["RR"] is None
    assert canon.dumps(document)


def test_the_families_of_a_chapter_come_from_config_and_arms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chapters = {"agreement": {"families": {"fusion": {"benches": [BENCH]}}}, "stage5": {}}
    at = planted.scale(monkeypatch, tmp_path, {}, chapters, {})
    said = {"control": "c", "arms": {"c": "control", "a": "inert"}, "factor": ["index"]}
    (family,) = stacks.declared(at, "agreement", lambda name: {"fusion": said}[name])
    assert family == Family("fusion", "c", {"a": "inert"}, (BENCH,), ("index",))
    assert stacks.declared(at, "stage5", lambda name: said) == []


def test_the_best_normalisation_of_a_corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at = families_of.root(tmp_path, monkeypatch)
    stanza = {"mode": "hybrid", "legs": ["a", "b"], "normalization": "l2"}
    family = score(at, ARMS, stanzas=dict.fromkeys(("noise", "worse"), stanza))
    document = beir.study(at, [family])
    (row,) = document["rows"]
    noise = row_of(families.deltas(at, [family]), "noise")
    assert (row["arm"], row["worst"], row["normalisations"]) == ("noise", "worse", 2)
    assert row["above"] == (noise["deltas"]["nDCG@10"] > 0) and row["holm"] == noise["holm"]["nDCG@10"]
    assert row["percent"] == noise["percent"]["nDCG@10"]
    low, high = row["percent_intervals"]["meetings"]
    assert low < row["percent"] < high
    assert low == pytest.approx(100 * noise["intervals"]["nDCG@10"]["meetings"][0] / row["control_mean"])
