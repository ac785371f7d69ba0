"""OpenELM in plain PyTorch, with Hugging Face's tensor names and configuration fields."""

import json
import pathlib

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

IGNORED = -100  # a target that is not learned


def make_divisible(value, divisor):
    """The multiple of divisor nearest to value, one more where that lies below 0.9 * value."""
    n = max(divisor, int(value + divisor / 2) // divisor * divisor)
    return int(n + divisor if n < 0.9 * value else n)


def spread(first, last, layers):
    """Multipliers from the first layer to the last, to two decimals."""
    return [round(float(m), 2) for m in np.linspace(first, last, num=layers)]


def make_config(layers, model_dim, head_dim, gqa_groups, vocab_size, context):
    """All fields of Hugging Face's OpenELMConfig for a model with linear layer-wise scaling."""
    unit = head_dim * gqa_groups
    heads = [make_divisible(model_dim * m, unit) // head_dim for m in spread(0.5, 1.0, layers)]
    return {
        "activation_fn_name": "swish",
        "architectures": ["OpenELMForCausalLM"],
        "auto_map": {
            "AutoConfig": "configuration_openelm.OpenELMConfig",
            "AutoModelForCausalLM": "modeling_openelm.OpenELMForCausalLM",
        },
        "bos_token_id": 1,
        "eos_token_id": 2,
        "ffn_dim_divisor": 64,
        "ffn_multipliers": spread(0.5, 4.0, layers),
        "ffn_with_glu": True,
        "head_dim": head_dim,
        "initializer_range": 0.02,
        "max_context_length": context,
        "model_dim": model_dim,
        "model_type": "openelm",
        "normalization_layer_name": "rms_norm",
        "normalize_qk_projections": True,
        "num_gqa_groups": gqa_groups,
        "num_kv_heads": [h // gqa_groups for h in heads],
        "num_query_heads": heads,
        "num_transformer_layers": layers,
        "qkv_multipliers": [0.5, 1.0],
        "rope_freq_constant": 10000,
        "rope_max_length": 2 * context,
        "share_input_output_layers": True,
        "torch_dtype": "bfloat16",
        "transformers_version": "4.39.3",
        "use_cache": True,
        "vocab_size": vocab_size,
    }


def ffn_dims(config):
    """FFN width of every layer."""
    width, divisor = config["model_dim"], config["ffn_dim_divisor"]
    return [make_divisible(m * width, divisor) for m in config["ffn_multipliers"]]


class RMSNorm(nn.Module):
    def __init__(self, width, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.eps = eps

    def forward(self, x):
        y = x.float()
        y = y * torch.rsqrt(y.square().mean(-1, keepdim=True) + self.eps)
        return (y * self.weight).to(x.dtype)


def rotate(x, cos, sin):
    """RoPE in the split-half form; x is [batch, time, heads, head_dim]."""
    a, b = x.chunk(2, -1)
    return (x * cos + torch.cat((-b, a), -1) * sin).to(x.dtype)


class Attention(nn.Module):
    """Rows of qkv_proj: query heads, key heads, value heads. Heads are normed before RoPE."""

    def __init__(self, config, layer):
        super().__init__()
        self.n_heads = config["num_query_heads"][layer]
        self.n_kv_heads = config["num_kv_heads"][layer]
        self.head_dim = config["head_dim"]
        rows = (self.n_heads + 2 * self.n_kv_heads) * self.head_dim
        self.qkv_proj = nn.Linear(config["model_dim"], rows, bias=False)
        self.q_norm = RMSNorm(self.head_dim)
        self.k_norm = RMSNorm(self.head_dim)
        self.out_proj = nn.Linear(self.n_heads * self.head_dim, config["model_dim"], bias=False)

    def forward(self, x, cos, sin):
        batch, time, _ = x.shape
        qkv = self.qkv_proj(x).view(batch, time, -1, self.head_dim)
        q, k, v = qkv.split([self.n_heads, self.n_kv_heads, self.n_kv_heads], dim=2)
        group = self.n_heads // self.n_kv_heads
        q = rotate(self.q_norm(q), cos, sin).transpose(1, 2)
        k = rotate(self.k_norm(k), cos, sin).transpose(1, 2).repeat_interleave(group, dim=1)
        v = v.transpose(1, 2).repeat_interleave(group, dim=1)
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out_proj(out.transpose(1, 2).reshape(batch, time, -1))


class FeedForward(nn.Module):
    """Rows of proj_1: gate, then up."""

    def __init__(self, config, layer):
        super().__init__()
        width = ffn_dims(config)[layer]
        self.proj_1 = nn.Linear(config["model_dim"], 2 * width, bias=False)
        self.proj_2 = nn.Linear(width, config["model_dim"], bias=False)

    def forward(self, x):
        gate, up = self.proj_1(x).chunk(2, -1)
        return self.proj_2(F.silu(gate) * up)


class Layer(nn.Module):
    def __init__(self, config, layer):
        super().__init__()
        self.attn = Attention(config, layer)
        self.ffn = FeedForward(config, layer)
        self.attn_norm = RMSNorm(config["model_dim"])
        self.ffn_norm = RMSNorm(config["model_dim"])

    def forward(self, x, cos, sin):
        x = x + self.attn(self.attn_norm(x), cos, sin)
        return x + self.ffn(self.ffn_norm(x))


class Transformer(nn.Module):
    def __init__(self, config):
        super().__init__()
        layers = range(config["num_transformer_layers"])
        self.token_embeddings = nn.Embedding(config["vocab_size"], config["model_dim"])
        self.layers = nn.ModuleList(Layer(config, layer) for layer in layers)
        self.norm = RMSNorm(config["model_dim"])


class OpenELM(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.transformer = Transformer(config)
        d = config["head_dim"]
        position = torch.arange(config["rope_max_length"], dtype=torch.float64)
        frequency = config["rope_freq_constant"] ** (
            -torch.arange(0, d, 2, dtype=torch.float64) / d
        )
        angle = torch.outer(position, frequency)
        angle = torch.cat((angle, angle), -1)[:, None, :]  # [time, 1, head_dim]
        self.register_buffer("cos", angle.cos().float(), persistent=False)
        self.register_buffer("sin", angle.sin().float(), persistent=False)

    @torch.no_grad()
    def init_weights(self, seed):
        """Normal with 1/sqrt(fan_in); projections back to the residual stream are smaller by
        sqrt(2 layers), so that its variance does not grow with depth."""
        generator = torch.Generator().manual_seed(seed)
        depth = (2 * self.config["num_transformer_layers"]) ** 0.5
        for name, p in self.named_parameters():
            if p.dim() == 2:
                residual = name.endswith(("out_proj.weight", "proj_2.weight"))
                p.normal_(0.0, p.shape[1] ** -0.5 / (depth if residual else 1), generator=generator)

    def forward(self, ids, targets=None):
        """Logits, or with targets the mean cross-entropy of those that are not IGNORED."""
        time = ids.shape[1]
        x = self.transformer.token_embeddings(ids)
        for layer in self.transformer.layers:
            x = layer(x, self.cos[:time], self.sin[:time])
        x = self.transformer.norm(x)
        logits = F.linear(x, self.transformer.token_embeddings.weight)
        if targets is None:
            return logits
        flat = logits.float().flatten(0, 1)
        return F.cross_entropy(flat, targets.flatten(), ignore_index=IGNORED)


def load(folder):
    """A model from a Hugging Face folder, in float32."""
    from safetensors.torch import load_file

    folder = pathlib.Path(folder)
    model = OpenELM(json.loads((folder / "config.json").read_text(encoding="utf-8")))
    tensors = load_file(folder / "model.safetensors")
    model.load_state_dict({name: t.float() for name, t in tensors.items()})
    return model.eval()
