"""make_vocabulary.py: vocabulary.json, beside this file: a small vocab.json and merges.txt, and what transformers
(5.24.0) makes of texts with them and without a tokenizer.json, by several tokenizer_config.json."""
import json, os, tempfile
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import AutoTokenizer

HERE = os.path.dirname(os.path.abspath(__file__))
TEXTS = ["Hello world, it's 2026!", "  two  spaces\n\n and\ttabs", "naïve café ﬁ e\u0301 日本", "a<|endoftext|>b", "</s>x", "",
         "We'LL count 1234567 things"]
NAMES = {name: {"__type": "AddedToken", "content": "</s>", "lstrip": False, "rstrip": False, "normalized": True,
                "single_word": False} for name in ("bos_token", "eos_token", "unk_token")}
CONFIGS = {"GPT-2": {"tokenizer_class": "GPT2Tokenizer"},
           "OPT": {"tokenizer_class": "GPT2Tokenizer", "add_bos_token": True, "add_prefix_space": False, **NAMES},
           "a space before": {"tokenizer_class": "GPT2Tokenizer", "add_prefix_space": True},
           "Qwen2": {"tokenizer_class": "Qwen2Tokenizer"}}

with open(os.path.join(HERE, "../../../quant/NUMERICS.md"), encoding="utf-8") as file: text = file.read()
made = Tokenizer(models.BPE())
made.pre_tokenizer, made.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
made.train_from_iterator([text], trainers.BpeTrainer(vocab_size=420, special_tokens=["<|endoftext|>", "</s>"],
                                                     initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
model = json.loads(made.to_str())["model"]
merges = "#version: 0.2\n" + "".join(" ".join(pair) + "\n" for pair in model["merges"])
cases = []
for name, config in CONFIGS.items():
    with tempfile.TemporaryDirectory() as folder:
        for file, content in (("vocab.json", json.dumps(model["vocab"])), ("merges.txt", merges),
                              ("tokenizer_config.json", json.dumps(config))):
            with open(os.path.join(folder, file), "w", encoding="utf-8") as out: out.write(content)
        tokenizer = AutoTokenizer.from_pretrained(folder)
    cases.append({"name": name, "config": config, "ids": [tokenizer(text)["input_ids"] for text in TEXTS]})
with open(os.path.join(HERE, "vocabulary.json"), "w", encoding="utf-8") as out:
    json.dump({"vocab": model["vocab"], "merges": merges, "texts": TEXTS, "cases": cases}, out, ensure_ascii=False)
