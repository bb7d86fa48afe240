"""Writes the sizes to which the processor of Qwen's vision encoders resizes pictures: python3 make_sizes.py
(transformers 5.24)

sizes.json has [width, height, columns, rows] for the limits of the model in qwen3.5/. If the processor refuses a size,
columns and rows are 0.
"""
import json
import os
import random

from transformers.models.qwen2_vl.image_processing_qwen2_vl import smart_resize

HERE = os.path.dirname(os.path.abspath(__file__))
EDGES = [1, 2, 3, 8, 15, 16, 17, 23, 24, 25, 40, 56, 72, 199, 200, 201, 1000, 30000]

if __name__ == "__main__":
    with open(os.path.join(HERE, "qwen3.5/preprocessor_config.json")) as file:
        processor = json.load(file)
    side = processor["patch_size"] * processor["merge_size"]
    least, most = processor["size"]["shortest_edge"], processor["size"]["longest_edge"]
    rnd = random.Random(3)
    sizes = [(w, h) for w in EDGES for h in EDGES] + [(rnd.randint(1, 90), rnd.randint(1, 90)) for _ in range(200)]
    rows = []
    for width, height in sizes:
        try:
            high, wide = smart_resize(height, width, side, least, most)
            rows.append([width, height, wide // side, high // side])
        except ValueError:
            rows.append([width, height, 0, 0])
    with open(os.path.join(HERE, "sizes.json"), "w") as file:
        json.dump(rows, file)
        file.write("\n")
