"""Fine-tune MiniLM on packed pairs.

The loss of a batch is the mean over both directions of the cross entropy of finding the right partner among all of the batch, at 384, 192
and 96 dimensions; plus the distance of the new vectors to those of the base model, so that what it knew stays. The rate of learning falls
with the time that is spent, so a run has the length it is given on any machine. A GPU also gets negatives that the model itself finds.
"""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from tools.train_retriever import bert
from tools.train_retriever.batches import batches
from tools.train_retriever.measure import by_kind, gains, ranks
from tools.train_retriever.packed import read_packed

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray
    from tools.train_retriever.packed import Packed


@dataclass(frozen=True)
class Plan:
    device: str
    minutes: float = 25
    batch: int = 64
    rate: float = 5e-5
    temperature: float = 0.05
    tie: float = 1.0  # The weight of the tie to the base model, and the share of a batch that it is measured on.
    tie_share: float = 0.25
    dimensions: tuple[tuple[int, float], ...] = ((384, 1.0), (192, 0.3), (96, 0.2))
    frozen_layers: int = 2  # Besides the word vectors; 0 on a GPU.
    negatives: int = 0  # Explicit hard negatives a pair; neighbours share a batch in any case.
    pieces_max: int = 160  # Of an answer; 192 on a CPU, 256 on a GPU.
    epochs: int = 1
    check_minutes: float = 10
    patience: int = 2
    seed: int = 1
    threads: int = 1  # Of a CPU; more wait for each other when others use it too.


def plan_for(device: str, minutes: float) -> Plan:
    if device == "cuda":
        return Plan(
            "cuda",
            minutes,
            batch=512,
            rate=1e-4,
            tie_share=1.0,
            frozen_layers=0,
            negatives=1,
            pieces_max=256,
            check_minutes=4,
            epochs=2,
        )
    return Plan(device, minutes, batch=128, rate=7e-5, pieces_max=192)


def train(
    packed_folder: Path, base: Path, tests: Path, into: Path, plan: Plan, parts: int | None = None
) -> None:
    into.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(plan.seed)
    torch.set_num_threads(plan.threads)
    packed, test = read_packed(packed_folder, parts), read_packed(tests)
    first, model = bert.load(base).to(plan.device).eval(), bert.load(base).to(plan.device)
    freeze(model, plan.frozen_layers)
    log = (into / "log.jsonl").open("a", encoding="utf-8")

    def note(**values: object) -> None:
        line = json.dumps({"at": round(time.time() - started, 1), **values})
        print(line, flush=True)
        log.write(line + "\n")
        log.flush()

    started = time.time()
    note(plan=asdict(plan), pairs=len(packed), test=len(test), torch=torch.__version__)
    best = score = measure(model, test, plan.device)
    note(step=0, score=score)
    started = time.time()
    optimiser = torch.optim.AdamW(
        _groups(model), lr=plan.rate, betas=(0.9, 0.98), fused=plan.device == "cuda"
    )
    checked, step, worse = started, 0, 0
    for epoch in range(plan.epochs):
        hard = mine(model, packed, plan) if plan.negatives else None
        for rows in batches(packed, plan.batch, plan.seed + epoch):
            done = (time.time() - started) / 60 / plan.minutes
            for group in optimiser.param_groups:
                group["lr"] = plan.rate * min(1.0, (step + 1) / 20) * max(0.0, 1 - done)
            loss, apart = loss_of(model, first, packed, rows, hard, plan)
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()
            step += 1
            if step % 20 == 0:
                note(
                    step=step,
                    loss=round(loss.item(), 4),
                    apart=round(apart, 4),
                    done=round(done, 3),
                    epoch=epoch,
                )
            last = done >= 1
            if last or time.time() - checked > 60 * plan.check_minutes:
                score = measure(model, test, plan.device)
                model.train()
                note(step=step, score=score)
                worse = 0 if score["all"] > best["all"] else worse + 1
                if score["all"] > best["all"]:
                    best = score
                    bert.save_small(model, into / "best", words=False)
                checked = time.time()
            if last or worse >= plan.patience:
                note(end="time" if last else "worse", step=step, best=best)
                return
    score = measure(model, test, plan.device)
    if score["all"] > best["all"]:
        bert.save_small(model, into / "best", words=False)
    note(end="all pairs seen", step=step, score=score)


def measure(model: bert.MiniLM, test: Packed, device: str) -> dict[str, float]:
    """MRR@10 by kind, and its mean over the kinds."""
    asked, told = (bert.encode(model, texts, device) for texts in (test.queries, test.positives))
    return by_kind(gains(ranks(asked, told)), test.kinds)


def freeze(model: bert.MiniLM, layers: int) -> None:
    """Leave the word vectors as they are (most words have too few pairs), and the first *layers* layers."""
    for part in (model.words, model.positions, model.types):
        part.requires_grad_(requires_grad=False)
    if layers:
        model.norm.requires_grad_(requires_grad=False)
    for layer in model.layers[:layers]:
        layer.requires_grad_(requires_grad=False)


def _groups(model: bert.MiniLM) -> list[dict[str, object]]:
    trained = [p for p in model.parameters() if p.requires_grad]
    return [
        {"params": [p for p in trained if p.dim() > 1], "weight_decay": 0.01},
        {"params": [p for p in trained if p.dim() == 1], "weight_decay": 0.0},
    ]


def loss_of(
    model: bert.MiniLM,
    first: bert.MiniLM,
    packed: Packed,
    rows: list[int],
    hard: NDArray[np.int32] | None,
    plan: Plan,
) -> tuple[torch.Tensor, float]:
    negatives = [
        int(other)
        for row in rows
        for other in (hard[row] if hard is not None else ())
        if other >= 0
    ]
    answers = rows + negatives
    queries = [packed.queries[row] for row in rows]
    texts = [packed.positives[row][: plan.pieces_max] for row in answers]
    with torch.autocast(plan.device, torch.bfloat16):
        asked, told = (bert.embed(model, side, plan.device) for side in (queries, texts))
    total = torch.zeros((), device=plan.device)
    target = torch.arange(len(rows), device=plan.device)
    same = _same(packed, rows, answers).to(plan.device)
    for width, weight in plan.dimensions:
        one, other = F.normalize(asked[:, :width], dim=-1), F.normalize(told[:, :width], dim=-1)
        likeness = (one @ other.T / plan.temperature).masked_fill(same, -1e4)
        back = likeness[:, : len(rows)].T
        total = (
            total + weight * (F.cross_entropy(likeness, target) + F.cross_entropy(back, target)) / 2
        )
    count = max(1, int(len(rows) * plan.tie_share))
    pick = torch.randperm(len(rows))[:count]
    with torch.no_grad(), torch.autocast(plan.device, torch.bfloat16):
        before = bert.embed(first, [*queries, *(texts[row] for row in pick.tolist())], plan.device)
    pick = pick.to(plan.device)
    apart = (1 - (before * torch.cat([asked, told[pick]])).sum(dim=1)).mean()
    return total + plan.tie * apart, apart.item()


def _same(packed: Packed, rows: list[int], answers: list[int]) -> torch.Tensor:
    """Where another answer is the same text as the right one, or another question the same question."""
    told = [packed.positives[row].tobytes() for row in answers]
    asked = [packed.queries[row].tobytes() for row in answers]
    return torch.tensor([
        [place != other and (told[place] == told[other] or asked[place] == asked[other]) for other in range(len(answers))]
        for place in range(len(rows))
    ])  # fmt: skip


def mine(model: bert.MiniLM, packed: Packed, plan: Plan) -> NDArray[np.int32]:
    """For each pair, answers that the model ranks high for its query but below its own answer; words' neighbours where there are none."""
    asked = (
        torch.from_numpy(bert.encode(model, packed.queries, plan.device, 512))
        .to(plan.device)
        .half()
    )
    told = (
        torch.from_numpy(bert.encode(model, packed.positives, plan.device, 512))
        .to(plan.device)
        .half()
    )
    model.train()
    own = (asked * told).sum(dim=1)
    found = np.full((len(packed), plan.negatives), -1, np.int32)
    sample = min(len(packed), 200_000)
    for start in range(0, len(packed), 2_048):
        block = torch.arange(start, min(start + 2_048, len(packed)), device=plan.device)
        among = torch.randint(0, len(packed), (sample,), device=plan.device)
        likeness = asked[block] @ told[among].T
        likeness = likeness.masked_fill(
            likeness > own[block, None] * 0.95, -2
        )  # Too close: it may be right as well.
        best = likeness.topk(20, dim=1)
        chosen = torch.randint(0, 20, (len(block), plan.negatives), device=plan.device)
        found[start : start + len(block)] = among[best.indices.gather(1, chosen)].cpu().numpy()
    # Half of them are those that words found.
    words = packed.neighbours[:, : plan.negatives]
    by_words = (np.random.default_rng(plan.seed).random(found.shape) < 0.5) & (words >= 0)
    return np.where(by_words, words, found)
