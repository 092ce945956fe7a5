"""Fine-tune MiniLM on packed pairs.

The loss of a batch is the mean over both directions of the cross entropy of finding the right partner among all of the batch, at 384, 192
and 96 dimensions; the same for finding an answer by word pieces (docs/decisions/0040); and the distance of the new vectors to those of
the base model, so that what it knew stays. The rate of learning falls with the time that is spent, so a run has the length it is
given on any machine. A GPU also gets negatives that the model itself finds.
"""

from __future__ import annotations

import json
import queue
import threading
import time
from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING

import numpy as np
import torch
from tools.train_retriever import bert
from tools.train_retriever.batches import batches, group_batches, of_groups, of_pairs, rows_of_epoch
from tools.train_retriever.losses import loss_of
from tools.train_retriever.measure import by_kind, gains, ranks
from tools.train_retriever.packed import read_packed
from tools.train_retriever.sets import measure_sets, read_sets

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray
    from tools.train_retriever.batches import Batch
    from tools.train_retriever.packed import Packed


AHEAD = 8  # Batches that are made before they are needed.


@dataclass(frozen=True)
class Plan:
    device: str
    minutes: float = 25.0
    batch: int = 64
    rate: float = 5e-5
    temperature: float = 0.05
    pieces: float = 0.5  # The weight of finding an answer by its word pieces.
    pieces_temperature: float = 0.05
    tie: float = 0.5  # The weight of the tie to the base model, and the share of a batch's answers that it is measured on.
    tie_share: float = 0.25
    dimensions: tuple[tuple[int, float], ...] = ((384, 1.0), (192, 0.3), (96, 0.2))
    frozen_layers: int = 2  # Besides the word vectors; 0 on a GPU.
    negatives: int = 0  # Explicit hard negatives a pair; neighbours share a batch in any case.
    written_each: int = 2  # One batch in so many is of written pairs; 0: none.
    pieces_max: int = 160  # Of an answer; 192 on a CPU, 256 on a GPU.
    epochs: int = 1
    check_minutes: float = 10.0
    warm_steps: int = 20
    seed: int = 1
    threads: int = 1  # Of a CPU; more wait for each other when others use it too.


def plan_for(device: str, minutes: float, changes: dict[str, str]) -> Plan:
    if device == "cuda":
        plan = Plan(
            "cuda",
            minutes,
            batch=512,
            rate=1e-4,
            frozen_layers=0,
            negatives=1,
            pieces_max=256,
            check_minutes=2.0,
            epochs=4,
            warm_steps=100,
        )
    else:
        plan = Plan(device, minutes, batch=128, rate=7e-5, pieces_max=192)
    kinds = {one.name: type(getattr(plan, one.name)) for one in fields(plan)}
    return replace(plan, **{name: kinds[name](value) for name, value in changes.items()})


def train(
    work: Path, into: Path, plan: Plan, parts: int | None = None, start: Path | None = None
) -> None:
    """Train on what `pack` wrote below *work*, from the weights in *start*; write the weights to *into* at each check."""
    into.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(plan.seed)
    torch.set_num_threads(plan.threads)
    packed, written = read_packed(work / "packed", parts), read_packed(work / "packed-written")
    test = read_packed(work / "packed-dev")
    sets = read_sets(work / "packed-sets")
    base = work / "packed" / "base"
    first = bert.load(base).to(plan.device).eval()
    model = bert.load(base, start or base).to(plan.device)
    freeze(model, plan.frozen_layers)
    log = (into / "log.jsonl").open("a", encoding="utf-8")

    def note(**values: object) -> None:
        line = json.dumps({"at": round(time.time() - started, 1), **values})
        print(line, flush=True)
        log.write(line + "\n")
        log.flush()

    def check(step: int) -> None:
        note(
            step=step,
            score=measure(model, test, plan.device),
            sets=measure_sets(model, sets, plan.device),
        )
        bert.save_small(model, into, words=False)
        model.train()

    started = time.time()
    note(plan=asdict(plan), pairs=len(packed), written=len(written), torch=torch.__version__)
    check(0)
    started = checked = time.time()
    optimiser = torch.optim.AdamW(
        _groups(model), lr=plan.rate, betas=(0.9, 0.98), fused=plan.device == "cuda"
    )
    step = 0
    for batch in ahead(all_batches(model, packed, written, plan)):
        done = (time.time() - started) / 60 / plan.minutes
        if done >= 1:
            break
        for group in optimiser.param_groups:
            group["lr"] = plan.rate * min(1.0, (step + 1) / plan.warm_steps) * (1 - done)
        loss, what = loss_of(model, first, batch, plan)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        step += 1
        if step % 50 == 0:  # To ask for a number makes a GPU wait.
            parts_now = {name: round(value.item(), 4) for name, value in what.items()}
            note(step=step, done=round(done, 3), **parts_now)
        if time.time() - checked > 60 * plan.check_minutes:
            check(step)
            checked = time.time()
    check(step)


def all_batches(model: bert.MiniLM, packed: Packed, written: Packed, plan: Plan) -> Iterator[Batch]:
    """Pairs of packages, with written ones in between; for each epoch with negatives that the model of that moment confuses."""
    groups = group_batches(written, plan.batch, plan.seed)
    count = 0
    for epoch in range(plan.epochs):
        hard = mine(model, packed, plan) if plan.negatives else None
        for rows in batches(packed, plan.batch, plan.seed + epoch, rows_of_epoch(packed, epoch)):
            yield of_pairs(packed, rows, hard, plan.pieces_max)
            count += 1
            if plan.written_each and len(written) and count % (plan.written_each - 1) == 0:
                yield of_groups(written, next(groups), plan.pieces_max)


def ahead(items: Iterator[Batch]) -> Iterator[Batch]:
    """The same, of which the next few are made in a thread meanwhile."""
    made: queue.Queue[Batch | BaseException | None] = queue.Queue(AHEAD)

    def make() -> None:
        try:
            for one in items:
                made.put(one)
            made.put(None)
        except BaseException as error:  # noqa: BLE001 (it is raised below)
            made.put(error)

    threading.Thread(target=make, daemon=True).start()
    while (one := made.get()) is not None:
        if isinstance(one, BaseException):
            raise one
        yield one


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


def mine(model: bert.MiniLM, packed: Packed, plan: Plan) -> NDArray[np.int32]:
    """For each pair, answers that the model ranks high for its query but below its own answer; words' neighbours where there are none."""
    asked, told = (
        bert.encode_there(model, texts, plan.device, 1024, torch.float16)
        for texts in (packed.queries, packed.positives)
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
