"""Writes what transformers computes from pictures: python3 make_cases.py

tower/ has a vision encoder of odd widths with random weights, two pictures, and the results of transformers 5.17.
cases.json has the sizes to which its processor resizes, and the positions of prompts with pictures.
../glm-ocr/reference.safetensors is cut from the published reference, if its folder is given as the argument. Needs
Pillow 12.1 or older (see ../images/make_cases.py).
"""
import json
import os
import sys

import PIL
import numpy as np
import torch
from PIL import Image
from safetensors.torch import load_file, save_file
from transformers.models.glm46v.image_processing_pil_glm46v import Glm46VImageProcessorPil, smart_resize
from transformers.models.glm_ocr.configuration_glm_ocr import GlmOcrConfig, GlmOcrVisionConfig
from transformers.models.glm_ocr.modeling_glm_ocr import GlmOcrModel, GlmOcrVisionModel

HERE = os.path.dirname(os.path.abspath(__file__))
IMAGE = 9
TOWER = {"hidden_size": 60, "depth": 3, "num_heads": 3, "intermediate_size": 84, "patch_size": 6, "in_channels": 3,
         "out_hidden_size": 40, "spatial_merge_size": 2, "temporal_patch_size": 2, "hidden_act": "silu",
         "attention_bias": True, "rms_norm_eps": 1e-5}
PROCESSOR = {"size": {"shortest_edge": 3000, "longest_edge": 45000}, "patch_size": 6, "temporal_patch_size": 2,
             "merge_size": 2, "do_resize": True, "do_rescale": True, "rescale_factor": 1 / 255, "do_normalize": True,
             "image_mean": [0.5, 0.4, 0.3], "image_std": [0.2, 0.25, 0.3], "resample": 3, "do_convert_rgb": True}
assert [int(part) for part in PIL.__version__.split(".")[:2]] <= [12, 1], PIL.__version__


def write_json(name, value):
    with open(os.path.join(HERE, name), "w") as file:
        json.dump(value, file, indent=1)
        file.write("\n")


def draw(name, mode, width, height, seed):
    """Draws smooth shapes with some noise, so that the file is small and no two patches are alike."""
    rnd = np.random.default_rng(seed)
    y, x = np.mgrid[0:height, 0:width]
    bands = [127 + 120 * np.sin(x / rnd.uniform(3, 20) + y / rnd.uniform(3, 20) + i) for i in range(len(mode))]
    data = np.clip(np.stack(bands, -1) // 16 * 16, 0, 255).astype(np.uint8)
    Image.fromarray(data if len(mode) > 1 else data[:, :, 0], mode).save(os.path.join(HERE, name), optimize=True)


def make_tower():
    torch.manual_seed(5)
    model = GlmOcrVisionModel._from_config(GlmOcrVisionConfig(**TOWER), attn_implementation="eager").float().eval()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            scale = 1.0 if weight.dim() == 1 else 1.5 / weight[0].numel() ** 0.5
            weight.copy_(torch.randn(weight.shape) * (0.3 if name.endswith("bias") else scale * 0.8))
            if weight.dim() == 1 and not name.endswith("bias"):
                weight.add_(1.0)
            weight.copy_(weight.bfloat16().float())
    state = {"model.visual." + name: value.bfloat16() for name, value in model.state_dict().items()}
    save_file(state, os.path.join(HERE, "tower/model.safetensors"))
    write_json("tower/config.json", {"architectures": ["GlmOcrForConditionalGeneration"], "vision_config": TOWER})
    write_json("tower/preprocessor_config.json", PROCESSOR)
    return model


def run_tower(model):
    """Runs the encoder on pictures: shrunk.png is larger than longest_edge, grown.png smaller than shortest_edge, and
    stays.png is neither."""
    draw("tower/shrunk.png", "RGB", 331, 182, 1)
    draw("tower/grown.png", "L", 31, 22, 2)
    draw("tower/stays.png", "RGBA", 48, 72, 3)
    processor, tensors = Glm46VImageProcessorPil(**PROCESSOR), {}
    for name in ("shrunk", "grown", "stays"):
        image = Image.open(os.path.join(HERE, f"tower/{name}.png")).convert("RGB")
        made = processor(images=[image], return_tensors="pt")
        pixels, grid = made["pixel_values"].float(), made["image_grid_thw"]
        size = int(grid[0, 2]) * TOWER["patch_size"], int(grid[0, 1]) * TOWER["patch_size"]
        print(name, image.size, "to", size, "patches", len(pixels))
        with torch.no_grad():
            result = model(pixels, grid_thw=grid)
        tensors.update({f"{name}.grid_thw": grid[0], f"{name}.pixel_values": pixels[:5].clone(),
                        f"{name}.resized_rgb": torch.tensor(np.array(image.resize(size, Image.BICUBIC))),
                        f"{name}.vision_before_merger": result.last_hidden_state,
                        f"{name}.vision_embeddings": result.pooler_output})
    save_file(tensors, os.path.join(HERE, "tower/reference.safetensors"))


def make_grids():
    """Returns the published processor's sizes, [width, height, columns, rows]; rows is 0 if it refuses."""
    rnd, grids = np.random.default_rng(3), []
    sizes = [(130, 100), (28, 28), (1, 1), (5, 900), (1000, 5), (1000, 4), (27, 29), (42, 70), (98, 126), (5000, 7000),
             (65535, 400), (3, 3), (14, 2800), (13, 2800)]
    sizes += [(int(2 ** rnd.uniform(0, 14)), int(2 ** rnd.uniform(0, 14))) for _ in range(200)]
    for width, height in sizes:
        try:
            high, wide = smart_resize(2, height, width, 2, 28, 112 * 112, 28 * 28 * 15000)
        except ValueError:
            high = wide = 0
        grids.append([width, height, wide // 28, high // 28])
    return grids


def make_positions():
    config = GlmOcrConfig(vision_config=TOWER)
    with torch.device("meta"):
        model = GlmOcrModel(config)
    cases = []
    for spans in ([3], [(2, 3)], [1, (4, 2), 2], [2, (1, 5), 1, (3, 3), 4], [(1, 1), 1, (1, 1)]):
        ids, grids = [], []
        for span in spans:
            ids += [1] * span if isinstance(span, int) else [IMAGE] * (span[0] * span[1])
            grids += [] if isinstance(span, int) else [span]
        kinds = torch.tensor([[int(i == IMAGE) for i in ids]])
        thw = torch.tensor([[1, 2 * rows, 2 * columns] for rows, columns in grids]) if grids else None
        places, delta = model.get_rope_index(torch.tensor([ids]), kinds, image_grid_thw=thw)
        cases.append({"ids": ids, "grids": grids, "places": places[:, 0].T.tolist(),
                      "next": int(delta) + len(ids)})
    return cases


def cut_reference(folder):
    left_out = ("debug.layers", "image.layers", "image.input_embeddings", "greedy.2.logits", "greedy.4.logits")
    tensors = load_file(os.path.join(folder, "reference.safetensors"))
    kept = {name: value for name, value in tensors.items() if name not in left_out}
    save_file(kept, os.path.join(HERE, "../glm-ocr/reference.safetensors"))


def main():
    os.makedirs(os.path.join(HERE, "tower"), exist_ok=True)
    run_tower(make_tower())
    write_json("cases.json", {"image_id": IMAGE, "grids": make_grids(), "positions": make_positions()})
    if len(sys.argv) > 1:
        cut_reference(sys.argv[1])


main()
