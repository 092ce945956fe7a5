"""MiniLM in PyTorch: the forward pass of BERT as published, and its weights as a file."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812  (as everyone calls it)
from torch import nn

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

WIDTH, WIDE, HEADS, LAYERS, WORDS, POSITIONS = 384, 1536, 12, 6, 30_522, 512
EPSILON = 1e-12
# Texts that are embedded at once: fewer need less padding, more keep a GPU busy.
CHUNK_CPU, CHUNK_GPU = 16, 256
WORDS_NAME = "embeddings.word_embeddings.weight"
SCALES_NAME = "embeddings.word_embeddings.scale"


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value, self.attended = (
            nn.Linear(WIDTH, WIDTH) for _ in range(4)
        )
        self.attended_norm = nn.LayerNorm(WIDTH, EPSILON)
        self.wide, self.narrow = nn.Linear(WIDTH, WIDE), nn.Linear(WIDE, WIDTH)
        self.norm = nn.LayerNorm(WIDTH, EPSILON)

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        batch, length, _width = x.shape
        query, key, value = (
            part(x).view(batch, length, HEADS, WIDTH // HEADS).transpose(1, 2)
            for part in (self.query, self.key, self.value)
        )
        mixed = attend(query, key, value, mask)
        x = self.attended_norm(
            x + self.attended(mixed.transpose(1, 2).reshape(batch, length, WIDTH))
        )
        return self.norm(x + self.narrow(F.gelu(self.wide(x))))


def attend(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: torch.Tensor
) -> torch.Tensor:
    if query.device.type != "cpu":
        return F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
    # In bf16 on a CPU, PyTorch's fused attention takes three times as long as two plain products.
    likeness = (query * query.shape[-1] ** -0.5) @ key.transpose(-1, -2)
    return likeness.masked_fill(~mask, -1e4).softmax(-1) @ value


class MiniLM(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        self.positions = nn.Embedding(POSITIONS, WIDTH)
        self.types = nn.Embedding(2, WIDTH)
        self.norm = nn.LayerNorm(WIDTH, EPSILON)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """The mean of the last hidden states of each text, of length 1."""
        return self.mean(self.tokens(ids, mask), mask)

    def tokens(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """The last hidden states: one vector a word piece."""
        x = self.words(ids) + self.positions.weight[: ids.shape[1]] + self.types.weight[0]
        x = self.norm(x)
        seen = mask[:, None, None, :].bool()
        for layer in self.layers:
            x = layer(x, seen)
        return x

    @staticmethod
    def mean(tokens: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        summed = (tokens.float() * mask[:, :, None]).sum(dim=1)
        return F.normalize(summed, dim=-1)


# The published names of the weights, and ours.
_PARTS = {
    "attention.self.query": "query",
    "attention.self.key": "key",
    "attention.self.value": "value",
    "attention.output.dense": "attended",
    "attention.output.LayerNorm": "attended_norm",
    "intermediate.dense": "wide",
    "output.dense": "narrow",
    "output.LayerNorm": "norm",
}
_NAMES = {
    "embeddings.word_embeddings.weight": "words.weight",
    "embeddings.position_embeddings.weight": "positions.weight",
    "embeddings.token_type_embeddings.weight": "types.weight",
    "embeddings.LayerNorm.weight": "norm.weight",
    "embeddings.LayerNorm.bias": "norm.bias",
    **{
        f"encoder.layer.{number}.{theirs}.{end}": f"layers.{number}.{ours}.{end}"
        for number in range(LAYERS)
        for theirs, ours in _PARTS.items()
        for end in ("weight", "bias")
    },
}


def load(*places: Path) -> MiniLM:
    """The model in safetensors files with the published names; *places* are files or folders of them, later ones count."""
    model = MiniLM()
    model.load_state_dict(
        {
            _NAMES[name]: torch.from_numpy(value)
            for name, value in read_weights(*places).items()
            if name in _NAMES
        }
    )
    return model


def read_weights(*places: Path) -> dict[str, NDArray[np.float32]]:
    raw: dict[str, NDArray[np.generic]] = {}
    for place in places:
        for path in sorted(place.glob("*.safetensors")) if place.is_dir() else [place]:
            raw.update(read_safetensors(path.read_bytes()))
    words = raw.get(WORDS_NAME)
    if words is not None and words.dtype == np.int8:
        raw[WORDS_NAME] = words.astype(np.float32) * raw.pop(SCALES_NAME).astype(np.float32)
    return {name: value.astype(np.float32) for name, value in raw.items()}


def save(model: MiniLM, path: Path) -> None:
    write_safetensors(_published(model), path)


def save_small(model: MiniLM, folder: Path, *, words: bool = True) -> None:
    """In files of at most 15 MB: layers in fp16, word vectors in int8 with a scale a word, as the embedder has them anyway."""
    folder.mkdir(parents=True, exist_ok=True)
    weights = _published(model)
    vectors = weights.pop(WORDS_NAME)
    if words:
        scales = np.abs(vectors).max(axis=1, keepdims=True) / 127
        write_safetensors(
            {WORDS_NAME: np.rint(vectors / scales).astype(np.int8), SCALES_NAME: scales},
            folder / "words.safetensors",
        )
    halves = {name: value.astype(np.float16) for name, value in weights.items()}
    late = {
        name
        for name in halves
        if name.startswith(
            tuple(f"encoder.layer.{number}." for number in range(LAYERS // 2, LAYERS))
        )
    }
    write_safetensors(
        {name: value for name, value in halves.items() if name not in late},
        folder / "layers-0.safetensors",
    )
    write_safetensors(
        {name: halves[name] for name in sorted(late)}, folder / "layers-1.safetensors"
    )


def _published(model: MiniLM) -> dict[str, NDArray[np.generic]]:
    state = model.state_dict()
    return {theirs: state[ours].float().cpu().numpy() for theirs, ours in _NAMES.items()}


_KINDS = {"F32": "<f4", "F16": "<f2", "I8": "i1"}


def read_safetensors(content: bytes) -> dict[str, NDArray[np.generic]]:
    """The tensors of a safetensors file: a length, a JSON header, the numbers."""
    start = 8 + int.from_bytes(content[:8], "little")
    found = {}
    for name, entry in json.loads(content[8:start]).items():
        if entry.get("dtype") in _KINDS:
            first, last = entry["data_offsets"]
            found[name] = np.frombuffer(
                content[start + first : start + last], _KINDS[entry["dtype"]]
            ).reshape(entry["shape"])
    return found


def write_safetensors(weights: Mapping[str, NDArray[np.generic]], path: Path) -> None:
    header: dict[str, object] = {}
    names = {np.dtype(kind): name for name, kind in _KINDS.items()}
    offset = 0
    for name, value in weights.items():
        header[name] = {
            "dtype": names[value.dtype],
            "shape": list(value.shape),
            "data_offsets": [offset, offset + value.nbytes],
        }
        offset += value.nbytes
    head = json.dumps(header).encode()
    with path.open("wb") as file:
        file.write(len(head).to_bytes(8, "little") + head)
        for value in weights.values():
            file.write(np.ascontiguousarray(value).tobytes())


def padded(texts: Sequence[NDArray[np.uint16]], device: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Ids and mask of a batch of texts in pieces."""
    lengths = np.array([len(pieces) for pieces in texts])
    held = np.arange(lengths.max()) < lengths[:, None]
    ids = np.zeros(held.shape, np.int64)
    ids[held] = np.concatenate(texts)
    return torch.from_numpy(ids).to(device), torch.from_numpy(held).to(device, torch.float32)


class Read(NamedTuple):
    """What the model makes of some texts, in their order."""

    vectors: torch.Tensor
    # One vector a word piece, which word piece it is, and 0 behind the end of a text.
    tokens: torch.Tensor
    ids: torch.Tensor


def read(model: MiniLM, texts: Sequence[NDArray[np.uint16]], device: str) -> Read:
    """Embed a batch, padded a few texts of similar length at a time."""
    chunk = CHUNK_CPU if device == "cpu" else CHUNK_GPU
    order = sorted(range(len(texts)), key=lambda row: len(texts[row]))
    longest = len(texts[order[-1]])
    vectors, all_tokens, all_ids = [], [], []
    for start in range(0, len(order), chunk):
        ids, mask = padded([texts[row] for row in order[start : start + chunk]], device)
        tokens = model.tokens(ids, mask)
        vectors.append(model.mean(tokens, mask))
        behind = longest - ids.shape[1]
        all_tokens.append(F.pad(tokens, (0, 0, 0, behind)))
        all_ids.append(F.pad(ids, (0, behind)))
    back = torch.from_numpy(np.argsort(order)).to(device)
    return Read(*(torch.cat(parts)[back] for parts in (vectors, all_tokens, all_ids)))


def encode(
    model: MiniLM, texts: Sequence[NDArray[np.uint16]], device: str, batch: int = 64
) -> NDArray[np.float32]:
    found: NDArray[np.float32] = encode_there(model, texts, device, batch).float().cpu().numpy()
    return found


@torch.inference_mode()
def encode_there(
    model: MiniLM,
    texts: Sequence[NDArray[np.uint16]],
    device: str,
    batch: int = 64,
    kind: torch.dtype = torch.float32,
) -> torch.Tensor:
    """The vectors of *texts*, where the model is."""
    model.eval()
    order = np.argsort([-len(text) for text in texts], kind="stable")
    vectors = torch.zeros((len(texts), WIDTH), dtype=kind, device=device)
    for start in range(0, len(order), batch):
        rows = order[start : start + batch]
        with torch.autocast(device, torch.bfloat16):
            some = model(*padded([texts[row] for row in rows], device))
        vectors[torch.from_numpy(rows).to(device)] = some.to(kind)
    return vectors
