"""What training makes small: how badly questions find their answers, by vectors and by word pieces, and the distance to the base model."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F  # noqa: N812
from tools.train_retriever import bert

from commonplace.embed.minilm import FREQUENT_END, LETTERS_AND_DIGITS
from commonplace.index.embedded.piece_codes import PIECES_MAX, QUESTION_PIECES_MAX, STEP

if TYPE_CHECKING:
    from tools.train_retriever.batches import Batch
    from tools.train_retriever.train import Plan

AT_ONCE = 64  # Questions that are compared piece by piece at the same time; more need more memory.


def loss_of(
    model: bert.MiniLM, first: bert.MiniLM, batch: Batch, plan: Plan
) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    """The loss of a batch, and its parts to look at."""
    with torch.autocast(plan.device, torch.bfloat16):
        questions = bert.read(model, batch.queries, plan.device)
        answers = bert.read(model, batch.answers, plan.device)
    same = torch.from_numpy(batch.same()).to(plan.device)
    target = torch.arange(len(batch.queries), device=plan.device)
    total = torch.zeros((), device=plan.device)
    for width, weight in plan.dimensions:
        total = total + weight * _by_vectors(questions, answers, same, target, width, plan)
    parts = {"vectors": total.detach()}
    if plan.pieces:
        with torch.autocast(plan.device, torch.bfloat16):
            likeness = piece_likeness(questions, answers)
        likeness = (likeness.float() / plan.pieces_temperature).masked_fill(same, -1e4)
        by_pieces = F.cross_entropy(likeness, target)
        total = total + plan.pieces * by_pieces
        parts["pieces"] = by_pieces.detach()
    if plan.tie:
        apart = _apart(first, batch, questions, answers, plan)
        total = total + plan.tie * apart
        parts["apart"] = apart.detach()
    return total, parts


def _by_vectors(
    questions: bert.Read,
    answers: bert.Read,
    same: torch.Tensor,
    target: torch.Tensor,
    width: int,
    plan: Plan,
) -> torch.Tensor:
    """Each question finds its answer among all, and each answer its question, with the first *width* numbers of a vector."""
    one = F.normalize(questions.vectors[:, :width], dim=-1)
    other = F.normalize(answers.vectors[:, :width], dim=-1)
    likeness = (one @ other.T / plan.temperature).masked_fill(same, -1e4)
    back = likeness[:, : len(target)].T
    return (F.cross_entropy(likeness, target) + F.cross_entropy(back, target)) / 2


def _apart(
    first: bert.MiniLM, batch: Batch, questions: bert.Read, answers: bert.Read, plan: Plan
) -> torch.Tensor:
    """How far the vectors are from those of the base model: of the questions, and of a share of the answers."""
    pick = torch.randperm(len(batch.answers))[: max(1, int(len(batch.answers) * plan.tie_share))]
    texts = [*batch.queries, *(batch.answers[row] for row in pick.tolist())]
    with torch.no_grad(), torch.autocast(plan.device, torch.bfloat16):
        before = bert.read(first, texts, plan.device).vectors
    now = torch.cat([questions.vectors, answers.vectors[pick.to(plan.device)]])
    return (1 - (before * now).sum(dim=1)).mean()


def piece_likeness(questions: bert.Read, answers: bert.Read) -> torch.Tensor:
    """How well each answer says each question piece by piece, as `piece_codes.similarities` computes it.

    An answer has signs only. The gradient passes through them as if they were the numbers themselves.
    """
    asking, is_asking = _kept(questions, QUESTION_PIECES_MAX)
    saying, is_saying = _kept(answers, PIECES_MAX)
    signs = torch.sign(saying) * saying.shape[-1] ** -0.5
    # A piece that is not there is like no other; the best of an answer is hardly ever below that.
    codes = (saying + (signs - saying).detach()) * is_saying[:, :, None]
    counts = is_asking.sum(dim=1).clamp(min=1)
    rows = []
    for start in range(0, len(asking), AT_ONCE):
        some = slice(start, start + AT_ONCE)
        best = torch.einsum("qad,nbd->qnab", asking[some], codes).amax(dim=3)
        rows.append((best * is_asking[some, None, :]).sum(dim=2) / counts[some, None])
    return torch.cat(rows)


def _kept(read: bert.Read, pieces_max: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The vectors of the pieces that say something, of length 1, and which of them there are."""
    says = read.ids >= FREQUENT_END
    for span in _spans(sorted(LETTERS_AND_DIGITS)):
        says |= (read.ids >= span[0]) & (read.ids <= span[1])
    most = max(1, min(pieces_max, int(says.sum(dim=1).max())))
    # Those that say something first, in their order.
    order = torch.argsort(says.int(), dim=1, descending=True, stable=True)[:, :most]
    tokens = read.tokens[:, :, ::STEP].gather(
        1, order[:, :, None].expand(-1, -1, read.tokens.shape[2] // STEP)
    )
    return F.normalize(tokens, dim=-1), says.gather(1, order)


def _spans(numbers: list[int]) -> list[tuple[int, int]]:
    """Runs of whole numbers, each by its first and last."""
    found: list[tuple[int, int]] = []
    for number in numbers:
        if found and found[-1][1] == number - 1:
            found[-1] = (found[-1][0], number)
        else:
            found.append((number, number))
    return found
