"""Compare embedders as they are shipped, int8: vectors alone on held-out pairs and on a retrieval set, and the whole system.

Every figure is a mean over questions of the reciprocal rank within the first ten; beside it stand the difference to the first model and
the range that holds 95 % of the differences when the questions are drawn anew (paired bootstrap).
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from tools.train_retriever.clean import balanced, for_figures
from tools.train_retriever.measure import ROOT, bench, gains, ranks
from tools.train_retriever.pair import read_pairs

if TYPE_CHECKING:
    from numpy.typing import NDArray

DRAWS = 2_000
FIGURES_OF_KIND = 300

Gains = dict[str, list[float]]  # By kind of question.


class Difference(NamedTuple):
    mean: float
    low: float
    high: float


def evaluate(work: Path, models: list[Path], shared: Path | None = None) -> str:
    """A table for each measurement, a row a kind and a column a model. What was measured once is kept."""
    found = [gains_of(work, model, shared) for model in models]
    return "\n\n".join(f"## {title}\n{_table([one[title] for one in found])}" for title in found[0])


def gains_of(work: Path, model: Path, shared: Path | None) -> dict[str, Gains]:
    kept = work / "gains" / f"{(model / 'checksums.txt').read_text()[:8]}.json"
    kept.parent.mkdir(parents=True, exist_ok=True)
    known: dict[str, Gains] = json.loads(kept.read_text()) if kept.exists() else {}
    for what in ("held-out pairs", *(("vectors alone", "whole system") if shared else ())):
        if not any(title.startswith(what) for title in known):
            if what == "held-out pairs":
                known[f"{what}, vectors alone"] = pair_gains(work / "heldout.jsonl", model)
            else:
                sets = _in_own_process(what, model, shared)
                known.update({f"{what}, {name}": one for name, one in sets.items()})
            kept.write_text(json.dumps(known))
    return known


def pair_gains(held_out: Path, folder: Path) -> Gains:
    from commonplace.embed.minilm import MiniLM  # noqa: PLC0415

    pairs = balanced(for_figures(list(read_pairs(held_out))), FIGURES_OF_KIND)
    model = MiniLM.load(folder)
    found = gains(
        ranks(
            model.encode([one.query for one in pairs]),
            model.encode([one.positive for one in pairs]),
        )
    )
    by_kind: Gains = defaultdict(list)
    for one, gain in zip(pairs, found, strict=True):
        by_kind[one.kind].append(float(gain))
    return dict(by_kind)


def _in_own_process(what: str, model: Path, shared: Path | None) -> dict[str, Gains]:
    """A process keeps the model it has loaded, so each model gets one of its own."""
    command = [
        sys.executable,
        "-m",
        "tools.train_retriever.evaluate",
        what,
        str(model),
        str(shared),
    ]
    done = subprocess.run(command, check=True, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    found: dict[str, Gains] = json.loads(done.stdout.splitlines()[-1])
    return found


def shared_gains(what: str, folder: Path, shared: Path) -> dict[str, Gains]:
    from commonplace.embed import minilm  # noqa: PLC0415

    quality = bench()
    minilm.FOLDER = folder
    sets = [
        quality.retrieval_set(shared / "agent-logs" / "retrieval"),
        quality.devmembench_set(shared / "devmembench"),
    ]
    return {one.name: (_system if what == "whole system" else _vectors)(one) for one in sets}


def _system(found: Any) -> Gains:
    quality = bench()
    with (
        tempfile.TemporaryDirectory() as scratch,
        quality.ingest(Path(scratch) / "home", found.documents) as memory,
    ):
        ours = quality.Ours(memory)
        return _gains(found, ours.rank)


def _vectors(found: Any) -> Gains:
    from commonplace.embed.minilm import MiniLM  # noqa: PLC0415
    from commonplace.index.vector_passages import texts_to_embed  # noqa: PLC0415

    model = MiniLM.load()
    passages = [
        (key, text)
        for key, row in found.documents.items()
        for text in texts_to_embed("", row["text"])
    ]
    vectors = model.encode([text for _key, text in passages])
    asked = dict(
        zip(
            (q.text for q in found.questions),
            model.encode([q.text for q in found.questions]),
            strict=True,
        )
    )

    def rank(question: str) -> list[str]:
        best = np.argsort(-(vectors @ asked[question]), kind="stable")
        return list(dict.fromkeys(passages[row][0] for row in best[:400]))[:10]

    return _gains(found, rank)


def _gains(found: Any, rank: Any) -> Gains:
    by_kind: Gains = defaultdict(list)
    for question in found.questions:
        if question.relevant:
            places = [
                place
                for place, key in enumerate(rank(question.text), 1)
                if key in question.relevant
            ]
            by_kind[question.kind].append(1 / places[0] if places else 0.0)
    return dict(by_kind)


def difference(
    before: NDArray[np.float64], after: NDArray[np.float64], seed: int = 1
) -> Difference:
    apart = after - before
    chosen = np.random.default_rng(seed).integers(0, len(apart), (DRAWS, len(apart)))
    low, high = np.percentile(apart[chosen].mean(axis=1), [2.5, 97.5])
    return Difference(float(apart.mean()), float(low), float(high))


def _table(by_model: list[Gains]) -> str:
    first = by_model[0]
    rows = [*first, "all"]
    lines = []
    for kind in rows:
        values = [
            np.array([gain for k, found in model.items() for gain in found if kind in (k, "all")])
            for model in by_model
        ]
        cells = [f"{values[0].mean():.3f}"]
        for value in values[1:]:
            change = difference(values[0], value)
            cells.append(
                f"{value.mean():.3f}  {change.mean:+.3f} [{change.low:+.3f}, {change.high:+.3f}]"
            )
        lines.append(f"{kind:24} {len(values[0]):5}  " + "   ".join(cells))
    return "\n".join(lines)


if __name__ == "__main__":
    sys.stdout.write(
        json.dumps(shared_gains(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))) + "\n"
    )
