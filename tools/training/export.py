"""Writes a Hugging Face folder (bfloat16) from a run's best.pt."""

import argparse
import json
import pathlib
import shutil

import torch
from safetensors.torch import save_file

CHAT_TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}{% if m['role'] == 'user' %}"
    "{% if not loop.first %}{{ '\\n' }}{% endif %}{{ 'User: ' + m['content'] + '\\nAssistant:' }}"
    "{% elif m['role'] == 'assistant' %}{{ ' ' + m['content'] + eos_token }}{% endif %}{% endfor %}"
)


def tokenizer_config(context, chat):
    config = {
        "tokenizer_class": "LlamaTokenizer",
        "add_bos_token": True,
        "add_eos_token": False,
        "bos_token": "<s>",
        "eos_token": "</s>",
        "unk_token": "<unk>",
        "pad_token": None,
        "clean_up_tokenization_spaces": False,
        "legacy": True,
        "sp_model_kwargs": {},
        "model_max_length": context,
    }
    return config | ({"chat_template": CHAT_TEMPLATE} if chat else {})


GENERATION_CONFIG = {
    "bos_token_id": 1,
    "eos_token_id": 2,
    "do_sample": True,
    "temperature": 0.7,
    "top_p": 0.9,
    "transformers_version": "4.39.3",
}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkpoint", help="best.pt")
    parser.add_argument("tokenizer", help="tokenizer.model")
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--chat", action="store_true", help="add the template of fine-tuned models")
    args = parser.parse_args()

    state = torch.load(args.checkpoint, weights_only=False, map_location="cpu")
    args.out.mkdir(parents=True, exist_ok=True)
    tensors = {name: t.bfloat16().contiguous() for name, t in state["model"].items()}
    save_file(tensors, args.out / "model.safetensors", metadata={"format": "pt"})
    shutil.copy(args.tokenizer, args.out / "tokenizer.model")
    context = state["config"]["max_context_length"]
    for name, content in (
        ("config.json", state["config"]),
        ("tokenizer_config.json", tokenizer_config(context, args.chat)),
        ("generation_config.json", GENERATION_CONFIG),
    ):
        (args.out / name).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    print(args.out, "step", state["step"], "validation loss", round(state["valid_loss"], 4))


if __name__ == "__main__":
    main()
