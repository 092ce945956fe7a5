"""What was tried beside the retriever and not shipped: a model of half the depth, and a small model that reorders the best ten.

Both start from MiniLM's layers and learn from the same packed pairs, on one core or a GPU. README.md has what came of it.
"""

from __future__ import annotations

import itertools
import time
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from tools.train_retriever import bert
from tools.train_retriever.batches import NO_QUESTION, batches, rows_of_epoch
from tools.train_retriever.losses import loss_of
from tools.train_retriever.measure import by_kind, gains, ranks
from tools.train_retriever.packed import read_packed
from tools.train_retriever.sets import measure_sets, read_sets
from tools.train_retriever.train import ahead, all_batches, freeze, measure, mine, plan_for
from torch import nn

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray
    from tools.train_retriever.packed import Packed

_T = TypeVar("_T")
HALF = (0, 2, 5)
RERANKED = 10
# On a GPU, some of the negatives are those that the finder itself confuses with the answer.
NEGATIVES, MINED = 7, 4
QUERY_PIECES, ANSWER_PIECES = 48, 128
# The weight of a score being above or below zero, beside being the highest.
ABSOLUTE = 0.3
# Of written texts, the likeliest to be confused are sought among so many.
CONFUSED = 24


def half_depth(work: Path, minutes: float, device: str, start: Path | None) -> str:
    """Train three of the six layers to find answers and to give the vectors of all six; return MRR@10 by kind, before and after."""
    torch.set_num_threads(1)
    packed, test = read_packed(work / "packed"), read_packed(work / "packed-dev")
    written, sets = read_packed(work / "packed-written"), read_sets(work / "packed-sets")
    base = work / "packed" / "base"
    teacher, model = (bert.load(base, start or base).to(device) for _ in range(2))
    teacher.eval()
    model.layers = nn.ModuleList(model.layers[number] for number in HALF)
    freeze(model, 0)
    changes = {"rate": "2e-4", "tie": "3", "tie_share": "1", "frozen_layers": "0", "negatives": "0"}
    plan = plan_for(device, minutes, changes)
    before, whole = (measure(one, test, device) for one in (model, teacher))
    optimiser = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=plan.rate)
    model.train()
    seen = 0
    for batch, done in _until(minutes, all_batches(model, packed, written, plan)):
        _set_rate(optimiser, plan.rate, done)
        loss, parts = loss_of(model, teacher, batch, plan)
        _step(optimiser, loss, model)
        seen += len(batch.queries)
        if seen % (50 * plan.batch) < plan.batch:
            what = {name: round(value.item(), 4) for name, value in parts.items()}
            print(f"{seen} pairs, loss {loss.item():.3f}, {what}", flush=True)
    after = measure(model, test, device)
    bert.write_safetensors(
        {name: value.half().cpu().numpy() for name, value in model.state_dict().items() if "words" not in name},
        work / "half.safetensors",
    )  # fmt: skip
    sets_of = {"six layers": teacher, "three layers trained": model}
    lines = [f"{name} {measure_sets(one, sets, device)}" for name, one in sets_of.items()]
    return "\n".join(
        [
            f"{seen} pairs",
            f"six layers {whole}",
            f"three layers at first {before}",
            f"three layers trained {after}",
            *lines,
        ]
    )


class Reranker(nn.Module):
    """The first layers over a question and an answer together, and one number for how well they fit."""

    def __init__(self, base: bert.MiniLM, layers: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.body = base
        self.body.layers = base.layers[:layers]
        self.dropout = dropout
        self.head = nn.Linear(bert.WIDTH, 1)

    def forward(
        self, pairs: Sequence[tuple[NDArray[np.uint16], NDArray[np.uint16]]]
    ) -> torch.Tensor:
        texts = [
            np.concatenate([q[:QUERY_PIECES], a[1:ANSWER_PIECES]]).astype(np.uint16)
            for q, a in pairs
        ]
        device = self.head.weight.device
        ids, mask = bert.padded(texts, device.type)
        second = torch.zeros_like(ids)
        for row, (question, _answer) in enumerate(pairs):
            second[row, min(len(question), QUERY_PIECES) :] = 1
        body = self.body
        x = body.words(ids) + body.positions.weight[: ids.shape[1]] + body.types(second)
        x = self.drop(body.norm(x))
        for layer in body.layers:
            x = self.drop(layer(x, mask[:, None, None, :].bool()))
        x = x.float() * mask[:, :, None]
        return self.head(x.sum(dim=1) / mask.sum(dim=1, keepdim=True)).squeeze(-1)

    def drop(self, x: torch.Tensor) -> torch.Tensor:
        return F.dropout(x, self.dropout, self.training)


@dataclass(frozen=True)
class RerankerPlan:
    layers: int = 3
    dropout: float = 0.1
    rate: float = 2e-4
    written_each: int = 2  # One batch in so many is of written pairs.
    parts: int = 4  # Of the packed pairs.


def reranker_plan(changes: dict[str, str]) -> RerankerPlan:
    kinds = {one.name: type(getattr(RerankerPlan(), one.name)) for one in fields(RerankerPlan)}
    return RerankerPlan(**{name: kinds[name](value) for name, value in changes.items()})


def reranker(
    work: Path, minutes: float, device: str, start: Path | None, into: Path, plan: RerankerPlan
) -> str:
    """Train a model that reorders the best ten; return MRR@10 by kind without it, with it, and of both together.

    The weights go to *into*.
    """
    torch.set_num_threads(1)
    packed, test = read_packed(work / "packed", plan.parts), read_packed(work / "packed-dev")
    written = read_packed(work / "packed-written")
    base = work / "packed" / "base"
    finder = bert.load(base, start or base).to(device)
    model = Reranker(bert.load(base, start or base), plan.layers, plan.dropout).to(device)
    model.body.words.requires_grad_(requires_grad=False)
    size = 32 if device == "cpu" else 128
    hard = (
        mine(finder, packed, plan_for(device, minutes, {"negatives": str(MINED)}))
        if device != "cpu"
        else packed.neighbours
    )
    confused = _confused(finder, written, device)
    optimiser = torch.optim.AdamW(
        [p for p in model.parameters() if p.requires_grad], lr=plan.rate, weight_decay=0.01
    )
    model.train()
    seen = 0
    for groups, done in _until(
        minutes, _ahead(_groups(packed, written, hard, confused, size, plan.written_each))
    ):
        _set_rate(optimiser, plan.rate, done)
        with torch.autocast(device, torch.bfloat16):
            scores = model([pair for group in groups for pair in group]).float()
        scores = scores.view(len(groups), 1 + NEGATIVES)
        right = torch.zeros(len(groups), dtype=torch.long, device=scores.device)
        # The right one is above the others, and above zero, which a wrong one is below.
        loss = F.cross_entropy(scores, right)
        signs = torch.ones_like(scores)
        signs[:, 1:] = -1
        loss = loss + ABSOLUTE * F.softplus(-signs * scores).mean()
        _step(optimiser, loss, model)
        seen += len(groups)
        if seen % (200 * size) < size:
            print(f"{seen} pairs, loss {loss.item():.3f}", flush=True)
    bert.write_safetensors(
        {name: value.half().cpu().numpy() for name, value in model.state_dict().items() if "words" not in name},
        into,
    )  # fmt: skip
    return f"{seen} pairs\n" + _reranked(model, finder, test, device)


_Pair = tuple["NDArray[np.uint16]", "NDArray[np.uint16]"]


def _groups(
    packed: Packed,
    written: Packed,
    hard: NDArray[np.int32],
    confused: NDArray[np.int64],
    size: int,
    written_each: int,
) -> Iterator[list[list[_Pair]]]:
    """Batches of questions, each with its answer and with others, of packages and of written texts by turns."""
    chance = np.random.default_rng(1)
    asked = [row for row, query in enumerate(written.queries) if len(query) > NO_QUESTION]
    count = 0
    for epoch in itertools.count():
        for rows in batches(packed, size, 1 + epoch, rows_of_epoch(packed, epoch)):
            count += 1
            yield [
                [(packed.queries[row], packed.positives[one]) for one in _with_negatives(hard[row], row, rows)]
                for row in rows
            ]  # fmt: skip
            if count % (written_each - 1):
                continue
            some = chance.choice(asked, size, replace=False).tolist()
            yield [
                [(written.queries[row], written.positives[one]) for one in _with_negatives(chance.permutation(confused[row])[:MINED + 1], row, some)]
                for row in some
            ]  # fmt: skip


def _ahead(items: Iterator[_T]) -> Iterator[_T]:
    return ahead(items)  # type: ignore[arg-type,return-value]


def _confused(finder: bert.MiniLM, written: Packed, device: str) -> NDArray[np.int64]:
    """Of each written question, the texts that are likest to it and do not answer it."""
    asked, told = (
        bert.encode(finder, texts, device) for texts in (written.queries, written.positives)
    )
    answers: dict[bytes, set[bytes]] = {}
    for query, text in zip(written.queries, written.positives, strict=True):
        answers.setdefault(query.tobytes(), set()).add(text.tobytes())
    found = np.zeros((len(written), CONFUSED), np.int64)
    for row, query in enumerate(written.queries):
        if len(query) <= NO_QUESTION:
            continue
        right = answers[query.tobytes()]
        order = np.argsort(-(told @ asked[row]))[: 2 * CONFUSED].tolist()
        others = [one for one in order if written.positives[one].tobytes() not in right]
        found[row] = others[:CONFUSED]
    return found


def _with_negatives(near: Iterable[int], row: int, rows: Sequence[int]) -> list[int]:
    """The pair, and others: those that are confused with it, then others of the batch."""
    close = [int(one) for one in near if one >= 0 and one != row]
    others = (one for one in rows if one != row and one not in close)
    return [row, *itertools.islice(itertools.chain(close, others), NEGATIVES)]


@torch.inference_mode()
def _reranked(model: Reranker, finder: bert.MiniLM, test: Packed, device: str) -> str:
    model.eval()
    asked, told = (bert.encode(finder, texts, device) for texts in (test.queries, test.positives))
    cosines = asked @ told.T
    best = np.argsort(-cosines, axis=1, kind="stable")[:, :RERANKED]
    own = np.full(cosines.shape, -np.inf, np.float32)
    for row, columns in enumerate(best):
        with torch.autocast(device, torch.bfloat16):
            scores = model([(test.queries[row], test.positives[one]) for one in columns])
        own[row, columns] = scores.float().cpu().numpy()
    lines = [f"best ten by cosine {by_kind(gains(ranks(asked, told)), test.kinds)}"]
    for weight in (0.02, 0.05, 0.1, 1.0):
        mixed = (0 if weight == 1 else 1) * cosines + weight * own
        right = mixed[np.arange(len(mixed)), np.arange(len(mixed))]
        place = (mixed > right[:, None]).sum(axis=1) + 1
        found = np.where((place <= RERANKED) & np.isfinite(right), 1 / place, 0.0)
        lines.append(f"reordered, weight {weight} {by_kind(found, test.kinds)}")
    return "\n".join(lines)


def _until(minutes: float, items: Iterable[_T]) -> Iterator[tuple[_T, float]]:
    """Yield *items* until the time is over, each with the share of it that is over."""
    started = time.time()
    for one in items:
        done = (time.time() - started) / 60 / minutes
        if done >= 1:
            return
        yield one, done


def _set_rate(optimiser: torch.optim.Optimizer, rate: float, done: float) -> None:
    for group in optimiser.param_groups:
        group["lr"] = rate * min(1.0, 20 * done + 0.05) * (1 - done)


def _step(optimiser: torch.optim.Optimizer, loss: torch.Tensor, model: nn.Module) -> None:
    optimiser.zero_grad(set_to_none=True)
    loss.backward()  # type: ignore[no-untyped-call]
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimiser.step()
