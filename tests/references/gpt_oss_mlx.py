#!/usr/bin/env python3
"""gpt_oss_mlx.py FOLDER OUT        writes the gpt-oss of FOLDER (tests/data/gpt-oss/mx) as mlx-lm saves it

mlx-lm splits the published form's stacks into gate, up and down, and keeps their codes and exponents. With `-q` it
would also quantize the other matrices. Needs mlx with mlx-cpu 0.32.4 and mlx-lm 0.32.2."""
import sys
from pathlib import Path

import mlx.core as mx
from mlx_lm.utils import load_model, save_config, save_model

mx.set_default_device(mx.cpu)
folder, out = map(Path, sys.argv[1:])
model, config = load_model(folder)
save_model(out, model)
(out / "model.safetensors.index.json").unlink(missing_ok=True)
save_config(config, config_path=out / "config.json")
