#!/usr/bin/env python3
"""vision.py FOLDER [NAME...]: tiny models whose pictures are several runs of tokens, and what transformers computes.
vision.py sizes FILE: the parts into which their processors cut pictures of many sizes.

Each FOLDER/NAME is a folder in the published form, with pictures, and with the results of transformers 5.24 and its
processor's Pillow backend, in float32 and without a cache: pixel values and rows of the pictures, and for prompts the
ids, the last rows of logits and greedy text. tests/engine/vision/test_vision_models.c reads tests/data/vision/NAME.
Needs torch, transformers, torchvision, Pillow 12.1 and num2words. GGUF files are llama.cpp's conversions of the
folders (--outtype bf16, and --mmproj).

Gemma 3's processor reads do_pan_and_scan only from its caller, so the script passes it the settings in the file.
"""
import json
import os
import sys

os.environ |= {"TRANSFORMERS_VERBOSITY": "error", "HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "1"}

import numpy as np
import torch
from PIL import Image, ImageDraw
from safetensors.torch import save_file
from transformers import AutoConfig, AutoImageProcessor, AutoModelForImageTextToText, AutoProcessor

HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.path.join(HERE, "..", "data")
ROWS, GREEDY, LEAST_MARGIN = 4, 48, 2e-3
HALF, CLIP = ([0.5] * 3, [0.5] * 3), ([0.48145466, 0.4578275, 0.40821073], [0.26862954, 0.26130258, 0.27577711])
PROMPTS = [[0], [1], [0, 2], [1, 2]]    # the pictures of each prompt; the last one has a picture in each of two turns

TURNS = "{% for m in messages %}OPEN{% if m.content is string %}{{ m.content }}{% else %}{% for p in m.content %}" \
        "{% if p.type == 'image' %}IMAGE{% elif p.type == 'text' %}{{ p.text }}{% endif %}{% endfor %}{% endif %}" \
        "CLOSE" \
        "{% endfor %}{% if add_generation_prompt %}REPLY{% endif %}"


def template(begin, open_, image, close, reply):
    text = TURNS
    for word, value in (("OPEN", open_), ("IMAGE", image), ("CLOSE", close), ("REPLY", reply)):
        text = text.replace(word, value)
    return begin + text


def text_config(vocab, model_type="llama", **more):
    return {"model_type": model_type, "vocab_size": vocab, "hidden_size": 32, "intermediate_size": 48,
            "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 16,
            "max_position_embeddings": 2048, "rms_norm_eps": 1e-5, "rope_theta": 50000.0,
            "tie_word_embeddings": False} | more


def tower_config(model_type, patch, side, **more):
    return {"model_type": model_type, "hidden_size": 24, "intermediate_size": 36, "num_hidden_layers": 2,
            "num_attention_heads": 2, "patch_size": patch, "image_size": side} | more


def processor(kind, mean_std, **more):
    return {"image_processor_type": kind, "do_resize": True, "do_rescale": True, "rescale_factor": 1 / 255,
            "do_normalize": True, "image_mean": mean_std[0], "image_std": mean_std[1]} | more


def idefics(name, ids, vocab, side, tile, longest, scale, patch, **more):
    kind = {"smolvlm": "SmolVLM", "idefics3": "Idefics3"}[name]
    config = {"architectures": [f"{kind}ForConditionalGeneration"], "model_type": name, "scale_factor": scale,
              "image_token_id": ids["<image>"], "tie_word_embeddings": False,
              "text_config": text_config(vocab, architectures=["VLlama3ForCausalLM"]),
              "vision_config": tower_config(f"{name}_vision" if name == "smolvlm" else name, patch, side)}
    image = processor(f"{kind}ImageProcessor", HALF, resample=1, size={"longest_edge": longest},
                      max_image_size={"longest_edge": tile}, do_image_splitting=True, do_pad=True) | more
    video = {"video_processor_type": "SmolVLMVideoProcessor", "size": {"longest_edge": longest}, "num_frames": 64,
             "max_image_size": {"longest_edge": tile}, "image_mean": HALF[0], "image_std": HALF[1], "fps": 1}
    files = {"preprocessor_config.json": image | {"processor_class": f"{kind}Processor"},
             "processor_config.json": {"image_seq_len": (tile // patch // scale) ** 2,
                                       "processor_class": f"{kind}Processor"}}
    return config, files | ({"video_preprocessor_config.json": video} if name == "smolvlm" else {})


def mistral(ids, vocab, text, act, patch, longest, nested=False, **more):
    config = {"architectures": ["Mistral3ForConditionalGeneration"], "model_type": "mistral3",
              "image_token_index": ids["[IMG]"], "spatial_merge_size": 2, "vision_feature_layer": -1,
              "projector_hidden_act": "gelu", "multimodal_projector_bias": False, "text_config": text,
              "tie_word_embeddings": False,
              "vision_config": tower_config("pixtral", patch, longest, hidden_act=act, head_dim=12,
                                            num_hidden_layers=3) | more}
    image = processor("PixtralImageProcessor", CLIP, resample=3, size={"longest_edge": longest},
                      patch_size={"height": patch, "width": patch})
    outer = {"image_token": "[IMG]", "image_break_token": "[IMG_BREAK]", "image_end_token": "[IMG_END]",
             "patch_size": patch, "spatial_merge_size": 2, "processor_class": "PixtralProcessor"}
    if nested: return config, {"processor_config.json": outer | {"image_processor": image}}
    return config, {"preprocessor_config.json": image, "processor_config.json": outer}


def gemma(ids, vocab):
    text = text_config(vocab, "gemma3_text", num_hidden_layers=3, query_pre_attn_scalar=16, sliding_window=7,
                       layer_types=["sliding_attention", "sliding_attention", "full_attention"], rms_norm_eps=1e-6,
                       rope_local_base_freq=10000.0, hidden_activation="gelu_pytorch_tanh")
    text.pop("tie_word_embeddings")
    config = {"architectures": ["Gemma3ForConditionalGeneration"], "model_type": "gemma3", "mm_tokens_per_image": 4,
              "boi_token_index": ids["<start_of_image>"], "eoi_token_index": ids["<end_of_image>"],
              "image_token_index": ids["<image_soft_token>"], "text_config": text,
              "vision_config": tower_config("siglip_vision_model", 6, 24, vision_use_head=False)}
    image = processor("Gemma3ImageProcessor", HALF, resample=2, size={"height": 24, "width": 24}, do_pan_and_scan=True,
                      pan_and_scan_min_crop_size=20, pan_and_scan_max_num_crops=3,
                      pan_and_scan_min_ratio_to_activate=1.3, image_seq_length=4)
    return config, {"preprocessor_config.json": image | {"processor_class": "Gemma3Processor"},
                    "processor_config.json": {"image_seq_length": 4, "processor_class": "Gemma3Processor"}}


IDEFICS_TOKENS = ["<|im_start|>", "<end_of_utterance>", "<fake_token_around_image>", "<image>", "<global-img>"] + [
    f"<row_{r}_col_{c}>" for r in range(1, 4) for c in range(1, 4)]
IDEFICS = dict(base="models/llama", add=IDEFICS_TOKENS, bos="<|im_start|>", eos="<end_of_utterance>",
               template=template("<|im_start|>", "{{ m.role | capitalize }}: ", "<image>", "<end_of_utterance>\n",
                                 "Assistant:"))
MISTRAL = dict(base="models/llama", add=["[INST]", "[/INST]", "[IMG]", "[IMG_BREAK]", "[IMG_END]"],
               bos="<|begin_of_text|>", eos="<|end_of_text|>",
               template=template("{{ bos_token }}", "{{ '[INST]' if m.role == 'user' else '' }}", "[IMG]",
                                 "{{ '[/INST]' if m.role == 'user' else eos_token }}", ""))
GEMMA = dict(base="vision/gemma3", add=[], bos="<bos>", eos="<eos>",
             named={"boi_token": "<start_of_image>", "eoi_token": "<end_of_image>",
                    "image_token": "<image_soft_token>"},
             template=template("{{ bos_token }}", "<start_of_turn>{{ 'model' if m.role == 'assistant' else m.role }}\n",
                               "<start_of_image>", "<end_of_turn>\n", "<start_of_turn>model\n"))
YARN = {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0, "beta_fast": 32.0, "beta_slow": 1.0,
        "original_max_position_embeddings": 64, "mscale": 1.0, "mscale_all_dim": 1.0, "llama_4_scaling_beta": 0.1}

# For each model: seed, tokens, pictures (width, height), config.json and the processor's files.
MODELS = {
    "gemma3-crops": (3, GEMMA, [(70, 30), (26, 71), (30, 33)], gemma),
    "smolvlm": (5, IDEFICS, [(40, 91), (66, 50), (21, 20)],
                lambda ids, v: idefics("smolvlm", ids, v, 24, 24, 48, 2, 6)),
    # The table of positions is longer than a tile, pictures are cut without being resized first, and the filter is
    # bilinear.
    "idefics3": (6, IDEFICS, [(39, 17), (20, 47), (15, 18)],
                 lambda ids, v: idefics("idefics3", ids, v, 25, 18, 36, 3, 1, do_resize=False, resample=2)),
    "mistral3": (10, MISTRAL, [(60, 31), (20, 80), (33, 21)],
                 lambda ids, v: mistral(ids, v, text_config(v, "mistral", sliding_window=None), "silu", 7, 56)),
    "ministral3": (9, MISTRAL, [(31, 71), (50, 20), (24, 24)],
                   lambda ids, v: mistral(ids, v, {k: x for k, x in text_config(
                       v, "ministral3", rope_parameters=YARN).items() if k != "rope_theta"}, "gelu", 6, 40, True,
                       rope_parameters={"rope_theta": 500.0, "rope_type": "axial"})),
}


def write(path, value):
    with open(path, "w", encoding="utf-8") as file:
        json.dump(value, file, ensure_ascii=False)
        file.write("\n")


def put_tokenizer(out, kind):
    """Writes another folder's tokenizer with this family's tokens. Returns the ids of the added tokens and the number
    of all ids."""
    with open(os.path.join(DATA, kind["base"], "tokenizer.json"), encoding="utf-8") as file: spec = json.load(file)
    last = max(list(spec["model"]["vocab"].values()) + [a["id"] for a in spec["added_tokens"]])
    for token in kind["add"]:
        last += 1
        spec["added_tokens"].append({"id": last, "content": token, "single_word": False, "lstrip": False,
                                     "rstrip": False, "normalized": False, "special": True})
    spec["post_processor"] = None    # the templates write the first token
    write(f"{out}/tokenizer.json", spec)
    write(f"{out}/tokenizer_config.json", {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": kind["bos"],
                                           "eos_token": kind["eos"], "pad_token": kind["eos"],
                                           "extra_special_tokens": kind.get("named", {})})
    with open(f"{out}/chat_template.jinja", "w") as file: file.write(kind["template"])
    return {a["content"]: a["id"] for a in spec["added_tokens"]}, last + 1


def draw(path, width, height, rng):
    """Draws a picture with slopes and sharp edges."""
    y, x = np.mgrid[0:height, 0:width].astype(np.float64)
    values = np.stack([127 + 90 * np.sin(x / rng.uniform(3, 9)) * np.cos(y / rng.uniform(3, 9)) + rng.uniform(-30, 30)
                       for _ in range(3)], -1) + rng.normal(0, 12, (height, width, 3))
    image = Image.fromarray(np.clip(values, 0, 255).astype(np.uint8))
    pen = ImageDraw.Draw(image)
    pen.rectangle((width // 5, height // 4, width // 2, height // 2), fill=(220, 40, 30))
    pen.line((0, height - 1, width, height // 3), fill=(20, 60, 200), width=2)
    image.save(path)


def fill(model, seed):
    """Gives each tensor random values, rounded to bfloat16, of a size with which pictures change the logits."""
    generator = torch.Generator().manual_seed(seed)
    gemma = model.config.model_type == "gemma3"
    for name, tensor in sorted(model.state_dict().items()):
        noise = torch.randn(tensor.shape, generator=generator)
        if "norm" in name or "ln_pre" in name:
            around = 0.0 if gemma and (".language_model." in name or "soft_emb" in name) else 1.0
            value = noise * 0.25 + (0.0 if name.endswith("bias") else around)
            if gemma and name == "model.language_model.norm.weight":    # tied, or the text repeats itself
                value = 1.2 * (1 + value) * torch.where(noise > 0, 1.0, -1.0) - 1
        elif name.endswith("bias"):
            value = noise * 0.1
        elif "position_embedding" in name:
            value = noise * 0.6
        elif "embed_tokens" in name or name.startswith("lm_head"):
            value = noise * ((2.0 if gemma else 1.0 if "embed" in name else 3.0) / (
                tensor.shape[1] ** 0.5 if gemma or "lm_head" in name else 1.0))
        else:
            columns = tensor.shape[0] if name.endswith("mm_input_projection_weight") else tensor[0].numel()
            gain = 2.5 if any(w in name for w in ("linear_2", "modality_projection", "mm_input")) else 1.0
            value = noise * gain / columns ** 0.5
        tensor.copy_(value.to(torch.bfloat16).float())
    model.tie_weights()


def published(name, kind):
    """Returns a tensor's name in older checkpoints."""
    if kind not in ("gemma3", "mistral3"): return name
    if name == "lm_head.weight": return "language_model." + name
    if name.startswith("model.language_model."): return "language_model.model." + name[21:]
    if kind == "gemma3" and name.startswith("model.vision_tower."): return "vision_tower.vision_model." + name[19:]
    return name[6:]


def messages(count, turns):
    image, text = {"type": "image"}, lambda words: {"type": "text", "text": words}
    if turns:
        return [{"role": "user", "content": [image, text("Read it.")]},
                {"role": "assistant", "content": [text("A red box.")]},
                {"role": "user", "content": [text("And this? "), image]}]
    return [{"role": "user", "content": [text("Compare: ")] + [image, text(" and then ")] * (count - 1) +
             [image, text("What is this?")]}]


INPUTS = ("pixel_values", "pixel_attention_mask", "image_sizes")


class Seer:
    def __init__(self, folder):
        self.model, report = AutoModelForImageTextToText.from_pretrained(
            folder, dtype=torch.float32, attn_implementation="eager", output_loading_info=True)
        missing = [key for key in report["missing_keys"] if "lm_head" not in key]
        assert not missing and not report["unexpected_keys"], report
        self.model.eval()
        self.processor = AutoProcessor.from_pretrained(folder)
        self.processor.image_processor = AutoImageProcessor.from_pretrained(folder, backend="pil")
        self.kind = self.model.config.model_type
        self.asked = {}
        if self.kind == "gemma3":
            keys = ("do_pan_and_scan", "pan_and_scan_min_crop_size", "pan_and_scan_max_num_crops",
                    "pan_and_scan_min_ratio_to_activate")
            self.asked = {key: getattr(self.processor.image_processor, key) for key in keys}

    def inputs(self, images, turns=False):
        text = self.processor.apply_chat_template(messages(len(images), turns), add_generation_prompt=True,
                                                  tokenize=False)
        nested = images if self.kind == "mistral3" else [images]
        return text, self.processor(text=[text], images=nested, return_tensors="pt", **self.asked)

    @torch.no_grad()
    def tower(self, x):
        """Returns a picture's rows, and the streams before the first layer and after each layer."""
        part = self.model.model
        layers = (part.vision_tower.transformer.layers if self.kind == "mistral3" else
                  (part.vision_tower if self.kind == "gemma3" else part.vision_model).encoder.layers)
        streams = []
        hooks = [layers[0].register_forward_pre_hook(
            lambda module, args, kw: streams.append(args[0] if args else kw["hidden_states"]), with_kwargs=True)]
        hooks += [layer.register_forward_hook(
            lambda module, args, out: streams.append(out[0] if isinstance(out, tuple) else out)) for layer in layers]
        rows = part.get_image_features(**{k: x[k] for k in INPUTS if k in x}, return_dict=True).pooler_output
        for hook in hooks: hook.remove()
        rows = torch.cat([r.reshape(-1, r.shape[-1]) for r in rows])
        return rows, torch.stack([s.squeeze(0) for s in streams])

    @torch.no_grad()
    def logits(self, ids, x):
        given = {k: x[k] for k in INPUTS if x is not None and k in x}
        if self.kind == "gemma3":
            kinds = x["token_type_ids"] if x is not None else torch.zeros(1, len(ids), dtype=torch.long)
            given["token_type_ids"] = torch.nn.functional.pad(kinds, (0, len(ids) - kinds.shape[1]))
        return self.model(input_ids=torch.tensor([ids]), use_cache=False, **given).logits[0]

    def greedy(self, ids, x):
        tokens, margins = list(ids), []
        for _ in range(GREEDY):
            best = self.logits(tokens, x)[-1].topk(2)
            tokens.append(int(best.indices[0]))
            margins.append(float(best.values[0] - best.values[1]))
        return tokens[len(ids):], min(margins)


def make(folder, name):
    seed, kind, sizes, configure = MODELS[name]
    out = os.path.join(folder, name)
    os.makedirs(f"{out}/image", exist_ok=True)
    ids, vocab = put_tokenizer(out, kind)
    config, files = configure(ids, vocab)
    files |= {"config.json": config, "generation_config.json": {"eos_token_id": ids[kind["eos"]]}}
    for file, value in files.items(): write(f"{out}/{file}", value)
    model = AutoModelForImageTextToText.from_config(AutoConfig.from_pretrained(out), dtype=torch.float32)
    with torch.no_grad(): fill(model, seed)
    tied = model.config.tie_word_embeddings
    save_file({published(k, config["model_type"]): v.to(torch.bfloat16).contiguous().clone() for k, v in
               sorted(model.state_dict().items()) if not (tied and k == "lm_head.weight")},
              f"{out}/model.safetensors", metadata={"format": "pt"})
    rng = np.random.default_rng(seed)
    for i, size in enumerate(sizes): draw(f"{out}/image/{i}.png", *size, rng)
    see = Seer(out)
    images = [Image.open(f"{out}/image/{i}.png").convert("RGB") for i in range(len(sizes))]
    tensors, info = {}, {"seed": seed, "prompts": [], "prompt_pictures": [], "prompt_text": [], "greedy": [],
                         "images": [{"file": f"image/{i}.png"} for i in range(len(sizes))]}
    for i, image in enumerate(images):
        _, x = see.inputs([image])
        rows, streams = see.tower(x)
        pixels = x["pixel_values"].float()
        views = pixels.reshape(-1, *pixels.shape[-3:])
        mean, std = [torch.tensor(v)[:, None, None] for v in (see.processor.image_processor.image_mean,
                                                             see.processor.image_processor.image_std)]
        tensors[f"image.{i}.tiles_rgb"] = torch.round((views * std + mean) * 255).permute(0, 2, 3, 1).to(torch.uint8)
        tensors[f"image.{i}.vision_embeddings"] = rows
        if i < 2 and streams.numel() < 60000: tensors[f"image.{i}.vision_layers"] = streams
        if i < 2 and streams.numel() < 60000: tensors[f"image.{i}.pixel_values"] = pixels
    words = see.processor.tokenizer("The quick brown fox jumps", add_special_tokens=False)["input_ids"]
    prompts = [([], None, None, words)]
    for number, which in enumerate(PROMPTS):
        text, x = see.inputs([images[i] for i in which], number == len(PROMPTS) - 1)
        prompts.append((which, text, x, x["input_ids"][0].tolist()))
    for number, (which, text, x, prompt) in enumerate(prompts):
        info["prompts"].append(prompt)
        info["prompt_pictures"].append(which)
        info["prompt_text"].append(text)
        logits = see.logits(prompt, x)
        tensors[f"prompt.{number}.logits"] = logits[-ROWS:]
        if number in (1, 3): continue
        tokens, margin = see.greedy(prompt, x)
        info["greedy"].append({"prompt": number, "tokens": tokens, "min_margin": margin})
        if margin < LEAST_MARGIN: print(f"{name}: prompt {number} has a margin of {margin}: take another seed")
    info["logits_from"] = [len(prompt) - ROWS for prompt in info["prompts"]]
    first, other = [see.inputs([images[i]])[1] for i in (0, 1)]
    moved = see.logits(first["input_ids"][0].tolist(), first)[-1]
    if first["pixel_values"].shape == other["pixel_values"].shape:
        other = see.logits(first["input_ids"][0].tolist(), first | {"pixel_values": other["pixel_values"]})[-1]
    else:
        other = see.logits(first["input_ids"][0].tolist(), first | {"pixel_values": -first["pixel_values"]})[-1]
    save_file({k: v.detach().contiguous().clone() for k, v in tensors.items()}, f"{out}/reference.safetensors")
    write(f"{out}/reference.json", info)
    far = float((moved - other).abs().max() / moved.abs().max())
    print(f"{name}: prompts {[len(p) for p in info['prompts']]}, margins {[g['min_margin'] for g in info['greedy']]}, "
          f"another picture moves a logit by {far:.2f} of the largest")


class Size:
    """Stands for a picture of which only the size is read."""
    ndim = 3

    def __init__(self, width, height): self.shape = (3, height, width)


def cut_sizes():
    """Returns, for each kind, lists with a picture's width and height and its processor's result: for SmolVLM two
    sizes, and rows and columns of tiles; for Gemma 3 the crops' widths and heights; for Mistral rows and columns of
    tokens."""
    from transformers.models.gemma3.image_processing_pil_gemma3 import Gemma3ImageProcessorPil as Gemma
    from transformers.models.pixtral.image_processing_pil_pixtral import get_resize_output_image_size as pixtral
    from transformers.models.smolvlm import image_processing_pil_smolvlm as smolvlm
    rng = np.random.default_rng(1)
    sizes = [[int(v) for v in rng.integers(1, top + 1, 2)] for top in (8, 60, 300, 3000) for _ in range(30)]
    gemma, smol = Gemma.__new__(Gemma), smolvlm.SmolVLMImageProcessorPil.__new__(smolvlm.SmolVLMImageProcessorPil)
    made = []
    smol.resize = lambda image, size, resample=None: made.append((size.width, size.height))
    cuts = {"smolvlm": [], "gemma3-crops": [], "mistral3": []}
    for width, height in sizes:
        high, wide = smolvlm.get_resize_output_image_size(Size(width, height), 48)
        smolvlm.SmolVLMImageProcessorPil.resize_for_vision_encoder(smol, Size(wide, high), 24)
        tiles = [made[-1][1] // 24, made[-1][0] // 24]
        cuts["smolvlm"].append([width, height, wide, high, *made[-1]] + (tiles if max(tiles) > 1 else [0, 0]))
        crops = [c.shape for c in gemma.pan_and_scan(np.broadcast_to(np.uint8(0), (3, height, width)), 20, 3, 1.3)]
        cuts["gemma3-crops"].append([width, height] + [side for c in crops for side in (c[2], c[1])])
        high, wide = pixtral(np.broadcast_to(np.uint8(0), (3, height, width)), (56, 56), (14, 14),
                             input_data_format="channels_first")
        cuts["mistral3"].append([width, height, high // 14, wide // 14])
    return cuts


if __name__ == "__main__":
    torch.set_num_threads(1)
    if sys.argv[1] == "sizes":
        write(sys.argv[2], cut_sizes())
        sys.exit()
    for each in sys.argv[2:] or MODELS: make(sys.argv[1], each)
