"""make_flags.py: flags.json, beside this file: ids that transformers (4.57.6, the last release whose classes read these
flags beside a tokenizer.json) gives texts under add_bos_token and add_eos_token, by its class for Llama.

The tokenizer.json is the llama3 folder's, whose post-processor puts bos before a text and nothing after it; that class
takes absent flags for the same."""
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
