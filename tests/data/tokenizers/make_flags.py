"""make_flags.py: writes flags.json, beside this file: the ids of texts with add_bos_token and add_eos_token, by the
class for Llama of transformers 4.57.6, the last release whose classes read these flags beside a tokenizer.json.

The tokenizer.json is that of the llama3 folder, whose post-processor puts bos before a text and nothing after it. The
class assumes the same for absent flags."""
import json, os, shutil, tempfile
from transformers import LlamaTokenizerFast

HERE = os.path.dirname(os.path.abspath(__file__))
TEXTS = ["", "the method", "<|begin_of_text|>a<|end_of_text|>"]


def main():
    cases = []
    for bos in (None, False, True):
        for eos in (None, False, True):
            flags = {k: v for k, v in (("add_bos_token", bos), ("add_eos_token", eos)) if v is not None}
            config = {"tokenizer_class": "LlamaTokenizerFast", "bos_token": "<|begin_of_text|>", "eos_token": "<|end_of_text|>", **flags}
            with tempfile.TemporaryDirectory() as folder:
                shutil.copy(os.path.join(HERE, "llama3", "tokenizer.json"), folder)
                json.dump(config, open(os.path.join(folder, "tokenizer_config.json"), "w"))
                t = LlamaTokenizerFast.from_pretrained(folder)
                cases.append({"config": config, "ids": [t(x)["input_ids"] for x in TEXTS]})
    with open(os.path.join(HERE, "flags.json"), "w") as f:
        json.dump({"texts": TEXTS, "cases": cases}, f, indent=1)
        f.write("\n")


if __name__ == "__main__":
    main()
