"""Makes the folder `affine` beside this file: a small OpenELM whose matrices MLX has quantised, each
in another way, and values.json with what MLX's dequantisation gives.

    pip install "mlx[cpu]" numpy
    python3 make_affine.py

Per tensor, values.json holds the FNV-1a hash (64 bits) over all float32 values in order of rows,
little-endian, and the first four of them.
"""

import json
import pathlib

import mlx.core as mx
import numpy as np

FOLDER = pathlib.Path(__file__).parent / "affine"
WIDTH, HEAD, HEADS, KV_HEADS, FFN, VOCABULARY = 128, 8, 4, 1, 32, 3

# Module: shape, bits, group size, type of the weights and so of scales and biases.
MATRICES = {
    "transformer.token_embeddings": ((VOCABULARY, WIDTH), 4, 128, mx.bfloat16),
    "transformer.layers.0.attn.qkv_proj": (
        ((HEADS + 2 * KV_HEADS) * HEAD, WIDTH),
        4,
        64,
        mx.float16,
    ),
    "transformer.layers.0.attn.out_proj": ((WIDTH, HEADS * HEAD), 8, 32, mx.bfloat16),
    "transformer.layers.0.ffn.proj_1": ((FFN, WIDTH), 8, 64, mx.float16),
    "transformer.layers.0.ffn.proj_2": ((WIDTH, FFN), 4, 32, mx.float32),
    "lm_head": ((VOCABULARY, WIDTH), 8, 128, mx.float32),
}
NORMS = {
    "transformer.layers.0.attn.q_norm": HEAD,
    "transformer.layers.0.attn.k_norm": HEAD,
    "transformer.layers.0.attn_norm": WIDTH,
    "transformer.layers.0.ffn_norm": WIDTH,
    "transformer.norm": WIDTH,
}


def fnv1a(data):
    value = 14695981039346656037
    for byte in data:
        value = (value ^ byte) * 1099511628211 % 2**64
    return value


def dequantized(quants, scales, biases, bits, size):
    """float32, rounded once; MLX's own values must be the same but for its second rounding."""
    scales, biases = scales.astype(mx.float32), biases.astype(mx.float32)
    theirs = np.array(mx.dequantize(quants, scales, biases, group_size=size, bits=bits))
    fields = np.array(quants)[..., None] >> np.arange(0, 32, bits, dtype=np.uint32)
    q = (fields & (2**bits - 1)).reshape(theirs.shape).astype(np.float64)
    s = np.repeat(np.array(scales, dtype=np.float64), size, axis=1)
    b = np.repeat(np.array(biases, dtype=np.float64), size, axis=1)
    ours = (q * s + b).astype(np.float32)
    return ours, theirs


def main():
    FOLDER.mkdir(exist_ok=True)
    mx.random.seed(1)
    weights, values = {}, {}
    quantization = {"group_size": 64, "bits": 4, "mode": "affine"}
    for module, (shape, bits, size, dtype) in MATRICES.items():
        weight = (0.05 * mx.random.normal(shape)).astype(dtype)
        parts = mx.quantize(weight, group_size=size, bits=bits)
        for part, array in zip(("weight", "scales", "biases"), parts):
            weights[f"{module}.{part}"] = array
        if (bits, size) != (4, 64):
            quantization[module] = {"group_size": size, "bits": bits}
        ours, theirs = dequantized(*parts, bits, size)
        if dtype == mx.float32:  # the product of quant and scale has too many bits for a float32
            assert np.abs(ours - theirs).max() <= 2**-24
        else:
            assert (ours == theirs).all(), module
        values[f"{module}.weight"] = {
            "fnv1a": f"{fnv1a(ours.tobytes()):016x}",
            "first": [float(v) for v in ours[0, :4]],
        }
    for module, size in NORMS.items():
        weights[f"{module}.weight"] = mx.ones((size,), dtype=mx.float32)
    mx.save_safetensors(str(FOLDER / "model.safetensors"), weights, {"format": "mlx"})
    config = {
        "model_type": "openelm",
        "vocab_size": VOCABULARY,
        "model_dim": WIDTH,
        "head_dim": HEAD,
        "num_transformer_layers": 1,
        "num_query_heads": [HEADS],
        "num_kv_heads": [KV_HEADS],
        "ffn_multipliers": [FFN / WIDTH],
        "ffn_dim_divisor": FFN,
        "ffn_with_glu": False,
        "normalize_qk_projections": True,
        "share_input_output_layers": False,
        "max_context_length": 64,
        "quantization": quantization,
        "quantization_config": quantization,
    }
    (FOLDER / "config.json").write_text(json.dumps(config, indent=4) + "\n")
    (FOLDER / "values.json").write_text(json.dumps(values, indent=1) + "\n")


if __name__ == "__main__":
    main()
