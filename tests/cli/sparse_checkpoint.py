"""Checkpoints of zeros, as large as one likes: files with holes that take no room on a disk."""

import json
import math
import os
import struct

# Of the four published sizes: layers, model width, head width, and what they are called.
PUBLISHED = {
    "270M": (16, 1280, 64, "271.5M"),
    "450M": (20, 1536, 64, "457.2M"),
    "1.1B": (28, 2048, 64, "1.08B"),
    "3B": (36, 3072, 128, "3.04B"),
}
GROUP = 4  # query heads that share a key/value head
FFN_DIVISOR = 256


def divisible(value, divisor):
    """The nearest multiple that is not much smaller, as OpenELM's authors round widths."""
    rounded = max(divisor, int(value + divisor / 2) // divisor * divisor)
    return rounded + divisor if rounded < 0.9 * value else rounded


def spread(first, last, n):
    return [round(first + i * (last - first) / (n - 1), 2) for i in range(n)]


def published_layers(size):
    """(query heads, feed-forward width) of each layer."""
    n, width, head, _ = PUBLISHED[size]
    heads = [divisible(width * m, head * GROUP) // head for m in spread(0.5, 1.0, n)]
    return list(zip(heads, [divisible(width * m, FFN_DIVISOR) for m in spread(0.5, 4.0, n)]))


def shapes(layers, width, head, vocabulary, tied):
    yield "transformer.token_embeddings.weight", (vocabulary, width)
    for i, (heads, ffn) in enumerate(layers):
        layer = f"transformer.layers.{i}."
        yield layer + "attn.qkv_proj.weight", ((heads + 2 * heads // GROUP) * head, width)
        yield layer + "attn.out_proj.weight", (width, heads * head)
        yield layer + "attn.q_norm.weight", (head,)
        yield layer + "attn.k_norm.weight", (head,)
        yield layer + "attn_norm.weight", (width,)
        yield layer + "ffn_norm.weight", (width,)
        yield layer + "ffn.proj_1.weight", (2 * ffn, width)
        yield layer + "ffn.proj_2.weight", (width, ffn)
    yield "transformer.norm.weight", (width,)
    if not tied:
        yield "lm_head.weight", (vocabulary, width)


def write_checkpoint(folder, layers, width, head, vocabulary, tied=True):
    """Writes config.json and model.safetensors (bf16); returns the latter's path."""
    folder.mkdir()
    config = {
        "model_type": "openelm",
        "activation_fn_name": "swish",
        "normalization_layer_name": "rms_norm",
        "normalize_qk_projections": True,
        "share_input_output_layers": tied,
        "ffn_with_glu": True,
        "num_transformer_layers": len(layers),
        "model_dim": width,
        "head_dim": head,
        "vocab_size": vocabulary,
        "num_gqa_groups": GROUP,
        "num_query_heads": [heads for heads, _ in layers],
        "num_kv_heads": [heads // GROUP for heads, _ in layers],
        "ffn_dim_divisor": FFN_DIVISOR,
        "ffn_multipliers": [ffn / width for _, ffn in layers],
        "max_context_length": 2048,
        "rope_freq_constant": 10000,
        "rope_max_length": 4096,
        "bos_token_id": 1,
        "eos_token_id": 2,
    }
    (folder / "config.json").write_text(json.dumps(config))
    header, end = {}, 0
    for name, shape in shapes(layers, width, head, vocabulary, tied):
        begin, end = end, end + 2 * math.prod(shape)
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    weights = folder / "model.safetensors"
    weights.write_bytes(struct.pack("<Q", len(text)) + text)
    os.truncate(weights, 8 + len(text) + end)
    return weights
