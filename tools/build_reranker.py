"""Write the reranker beside the embedder: three layers over a question and a text together, as an int8 ONNX graph.

    python tools/build_reranker.py WEIGHTS

WEIGHTS is what `python -m tools.train_retriever reranker` wrote. The vectors of words are those of the embedder, and stay in its
file; the layers are quantised as its layers are (`tools/README.md`). It also writes the checksums anew.
"""

from __future__ import annotations

import argparse
import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import onnx
from build_embedder import (
    NORM_EPSILON,
    RERANKER,
    TARGET,
    WIDTH,
    Attention,
    Graph,
    Linear,
    add_layer,
    read_safetensors,
    take_out_large_tensors,
    write_checksums,
)
from onnx import TensorProto, helper

if TYPE_CHECKING:
    from build_embedder import Floats, Weights

GRAPH, DATA = RERANKER
WORDS = ("words", "word_scales")
# The names that training has for the parts of a layer, and the published ones.
PARTS = {
    "query": "attention.self.query",
    "key": "attention.self.key",
    "value": "attention.self.value",
    "attended": "attention.output.dense",
    "attended_norm": "attention.output.LayerNorm",
    "wide": "intermediate.dense",
    "narrow": "output.dense",
    "norm": "output.LayerNorm",
}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("weights", type=Path)
    parser.add_argument("--target", type=Path, default=TARGET, help="the folder of the embedder")
    arguments = parser.parse_args()
    target: Path = arguments.target
    model = build(read_safetensors(arguments.weights.read_bytes()), target / "model.onnx")
    data = take_out_large_tensors(model, DATA)
    model.metadata_props.add(key=DATA, value=hashlib.sha256(data).hexdigest())
    (target / DATA).write_bytes(data)
    (target / GRAPH).write_bytes(model.SerializeToString(deterministic=True))
    write_checksums(target)
    return 0


def published(weights: Weights) -> dict[str, Floats]:
    """The layers by their published names."""
    found = {}
    for name, value in weights.items():
        _body, kind, *rest = name.split(".")
        if kind == "layers":
            number, part, end = rest
            found[f"encoder.layer.{number}.{PARTS[part]}.{end}"] = value
    return found


def build(weights: Weights, embedder: Path) -> onnx.ModelProto:
    graph = Graph()
    batch_and_sequence = graph.add("Shape", "input_ids")
    mask = graph.add("Cast", "attention_mask", to=TensorProto.FLOAT)
    rows = embed(graph, weights, batch_and_sequence, embedder)
    attention = Attention.prepare(graph, batch_and_sequence, mask)
    linear = Linear.prepare(graph, batch_and_sequence)
    layers = published(weights)
    for number in range(1 + max(int(name.split(".")[2]) for name in layers)):
        rows = add_layer(graph, layers, f"encoder.layer.{number}.", rows, attention, linear)
    add_score(graph, weights, rows, batch_and_sequence, mask)
    described = helper.make_tensor_value_info
    inputs = [
        described(name, TensorProto.INT64, ["batch", "sequence"])
        for name in ("input_ids", "attention_mask", "is_text")
    ]
    body = helper.make_graph(
        graph.nodes,
        "reranker",
        inputs,
        [described("score", TensorProto.FLOAT, ["batch"])],
        list(graph.constants.values()),
        value_info=graph.shapes,
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(body, opset_imports=opsets, ir_version=8, producer_name="commonplace")


def embed(graph: Graph, weights: Weights, batch_and_sequence: str, embedder: Path) -> str:
    for tensor in onnx.load(str(embedder), load_external_data=False).graph.initializer:
        if tensor.name in WORDS:
            graph.constants[tensor.name] = tensor
    word = graph.add("Cast", graph.add("Gather", "words", "input_ids"), to=TensorProto.FLOAT)
    scaled = graph.add("Mul", word, graph.add("Gather", "word_scales", "input_ids"))
    zero, one, two = graph.integers(0), graph.integers(1), graph.integers(2)
    length = graph.add("Slice", batch_and_sequence, one, two)
    positions = weights["body.positions.weight"].astype(np.float16)
    position = graph.add("Slice", graph.constant("positions", positions), zero, length, zero)
    summed = graph.add("Add", scaled, graph.add("Cast", position, to=TensorProto.FLOAT))
    kinds = graph.constant("kinds", weights["body.types.weight"])
    summed = graph.add("Add", summed, graph.add("Gather", kinds, "is_text"))
    graph.declare_shape(summed, ["batch", "sequence", WIDTH])
    gain, offset = (
        graph.constant(f"norm.{part}", weights[f"body.norm.{part}"]) for part in ("weight", "bias")
    )
    normed = graph.add("LayerNormalization", summed, gain, offset, axis=-1, epsilon=NORM_EPSILON)
    return graph.declare_shape(
        graph.add("Reshape", normed, graph.integers(-1, WIDTH)), ["rows", WIDTH]
    )


def add_score(
    graph: Graph, weights: Weights, rows: str, batch_and_sequence: str, mask: str
) -> None:
    shape = graph.add("Concat", batch_and_sequence, graph.integers(WIDTH), axis=0)
    tokens = graph.declare_shape(graph.add("Reshape", rows, shape), ["batch", "sequence", WIDTH])
    present = graph.add("Mul", tokens, graph.add("Unsqueeze", mask, graph.integers(2)))
    total = graph.add("ReduceSum", present, graph.integers(1), keepdims=0)
    count = graph.add("ReduceSum", mask, graph.integers(1), keepdims=1)
    head = graph.constant("head", weights["head.weight"].T)
    score = graph.add("MatMul", graph.add("Div", total, count), head)
    score = graph.add("Add", score, graph.constant("head.bias", weights["head.bias"]))
    graph.add("Squeeze", score, graph.integers(1), outputs=["score"])


if __name__ == "__main__":
    raise SystemExit(main())
