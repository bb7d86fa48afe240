"""make_beside.py: writes beside.json, beside this file: how transformers (5.17.0) reads the files beside a
tokenizer.json.

Each case has the llama3 folder's tokenizer.json with other files. Stored are the ids of texts, and the text of a
template that names special tokens."""
import json, os, shutil, tempfile
from transformers import AutoTokenizer

HERE = os.path.dirname(os.path.abspath(__file__))
TEMPLATE = "|".join("{{ %s_token }}" % n for n in "bos eos unk sep pad cls mask image".split())
TEXTS = ["a<|extra|>b", "a <|extra|> b", "<|x|><|extra|>", "a <|eot_id|> b", "the method of amethods", "a[PAD]b"]
FLAGS = {"lstrip": False, "normalized": False, "rstrip": False, "single_word": False, "special": True}
CONFIG = {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<|begin_of_text|>", "eos_token": "<|end_of_text|>"}


def decoder(*tokens):
    return {"added_tokens_decoder": {str(i): {**FLAGS, "content": t, **more} for i, t, more in tokens}}


def config(**more):
    return {**CONFIG, **more}


def cases(next_id, eot, word):
    extra, x = (next_id, "<|extra|>", {}), (next_id + 1, "<|x|>", {})
    yield "nothing", {"config": config()}
    yield "decoder", {"config": config(**decoder(extra))}
    yield "decoder, two", {"config": config(**decoder(x, extra))}
    yield "decoder, stripping", {"config": config(**decoder((next_id, "<|extra|>", {"lstrip": True, "rstrip": True})))}
    yield "decoder, other flags", {"config": config(**decoder((eot, "<|eot_id|>", {"lstrip": True, "rstrip": True})))}
    yield "decoder, normalized", {"config": config(**decoder((next_id, "<|extra|>", {"normalized": True, "special": False})))}
    yield "decoder, a word of the vocabulary", {"config": config(**decoder((next_id, word, {"single_word": True})))}
    yield "decoder, id of old", {"config": config(**decoder((7, "<|eot_id|>", {})))}
    yield "decoder beside old files", {"config": config(**decoder(extra)), "added": {"<|x|>": next_id + 1}, "map": {"pad_token": "<|eom_id|>"}}
    yield "old added", {"config": config(), "added": {"<|extra|>": next_id, "<|x|>": next_id + 1, "<|eot_id|>": eot}}
    yield "old added, special", {"config": config(), "added": {"<|extra|>": next_id}, "map": {"additional_special_tokens": ["<|extra|>"]}}
    yield "old added, named", {"config": config(), "added": {"[PAD]": next_id}, "map": {"pad_token": "[PAD]"}}
    yield "map over config", {"config": config(), "map": {"bos_token": "<|eot_id|>", "pad_token": {"content": "<|eom_id|>", **FLAGS}}}
    yield "map alone", {"config": {"tokenizer_class": "PreTrainedTokenizerFast"}, "map": {"bos_token": "<|begin_of_text|>", "eos_token": "<|eot_id|>", "unk_token": "<|eom_id|>"}}
    yield "names", {"config": config(pad_token="<|eom_id|>", unk_token="<|eot_id|>", mask_token={"__type": "AddedToken", "content": "<|python_tag|>"}, sep_token=None)}
    yield "names of its own", {"config": config(extra_special_tokens={"image_token": "<|eom_id|>"})}
    yield "a name of its own, beside the others", {"config": config(image_token="<|eom_id|>", add_bos_token=False, image_tokens="x", audio_token=5)}
    yield "a name of its own, as a token", {"config": config(image_token={"__type": "AddedToken", "content": "<|eom_id|>", **FLAGS})}
    yield "names of its own, listed", {"config": config(model_specific_special_tokens={"image_token": "<|eom_id|>"})}
    yield "names of its own, twice", {"config": config(image_token="<|eot_id|>", model_specific_special_tokens={"image_token": "<|eom_id|>"})}
    yield "names of its own, thrice", {"config": config(image_token="<|eot_id|>", extra_special_tokens={"image_token": "<|eom_id|>"})}
    yield "a name of its own in the map", {"config": config(), "map": {"image_token": {"content": "<|eom_id|>", **FLAGS}}}
    yield "names of its own in both", {"config": config(image_token="<|eot_id|>"), "map": {"image_token": "<|eom_id|>"}}
    yield "a word of the vocabulary as a name of its own", {"config": config(image_token=word)}
    yield "a named word of the vocabulary", {"config": config(cls_token=word)}
    yield "a listed word of the vocabulary", {"config": config(additional_special_tokens=[word])}


def main():
    base = json.load(open(os.path.join(HERE, "llama3", "tokenizer.json")))
    next_id = 1 + max(a["id"] for a in base["added_tokens"])
    eot = next(a["id"] for a in base["added_tokens"] if a["content"] == "<|eot_id|>")
    word = "method"
    assert word in base["model"]["vocab"]
    made = []
    for name, files in cases(next_id, eot, word):
        with tempfile.TemporaryDirectory() as folder:
            shutil.copy(os.path.join(HERE, "llama3", "tokenizer.json"), folder)
            for kind, file in (("config", "tokenizer_config"), ("map", "special_tokens_map"), ("added", "added_tokens")):
                if kind in files:
                    json.dump(files[kind], open(os.path.join(folder, file + ".json"), "w"))
            t = AutoTokenizer.from_pretrained(folder)
            prompt = t.apply_chat_template([{"role": "user", "content": "a"}], tokenize=False, chat_template=TEMPLATE)
            made.append({"name": name, **files, "prompt": prompt, "ids": [t(x, add_special_tokens=False)["input_ids"] for x in TEXTS]})
    with open(os.path.join(HERE, "beside.json"), "w") as f:
        json.dump({"template": TEMPLATE, "texts": TEXTS, "cases": made}, f, indent=1)


if __name__ == "__main__":
    main()
