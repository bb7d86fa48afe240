#!/usr/bin/env bash
# transformers 5.24.0: a Gemma 3 folder can't switch on its own crops ("pan and scan"). Gemma3Processor never uses what
# the folder's preprocessor_config.json says about them.
#
# The file has do_pan_and_scan and three numbers beside it. The image processor that is read from the file keeps them,
# and called alone it cuts a wide picture into crops. But Gemma3Processor, which chat pipelines call, has a class
# attribute with defaults of its own for all four, and these replace the file's before every call: no crops. Even a
# caller who passes do_pan_and_scan=True gets the class's smallest crop of 256 pixels, not the file's. Only a caller
# who passes the numbers too sees the crops that the file describes. No line warns of it, and save_pretrained writes
# the settings that are never used. A program that reads the folder and believes its settings, as forerun does, gives
# a wide picture more rows than transformers does.
#
# usage: findings/transformers-gemma3-crops-by-caller-only.sh
# Needs Python 3.10 or later with venv and a package index; installs into a temporary folder (several GB with torch).
# Exit 0: as it was seen with these versions. Exit 1: it has changed, and the lines say how.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

cat >"$folder/crops.py" <<'END'
import sys

import numpy as np
from PIL import Image
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import AutoProcessor, Gemma3ImageProcessor, Gemma3Processor, PreTrainedTokenizerFast

names = ["<pad>", "<bos>", "<eos>", "<begin>", "<image>", "<end>", "look"]
words = Tokenizer(models.WordLevel({name: id for id, name in enumerate(names)}, unk_token="<pad>"))
words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, pad_token="<pad>", bos_token="<bos>", eos_token="<eos>",
                                    extra_special_tokens={"boi_token": "<begin>", "image_token": "<image>",
                                                          "eoi_token": "<end>"})
numbers = dict(pan_and_scan_min_crop_size=16, pan_and_scan_max_num_crops=4, pan_and_scan_min_ratio_to_activate=1.2)
pictures = Gemma3ImageProcessor(do_pan_and_scan=True, size={"height": 32, "width": 32}, **numbers)
Gemma3Processor(pictures, tokenizer, image_seq_length=4).save_pretrained(sys.argv[1])

processor = AutoProcessor.from_pretrained(sys.argv[1])
wide = Image.fromarray((np.arange(64 * 192 * 3) % 251).astype("uint8").reshape(64, 192, 3))


def crops(**settings):
    return len(processor(images=[wide], text="<begin> look", return_tensors="pt", **settings)["pixel_values"])


print("read from the file:", processor.image_processor.do_pan_and_scan, "image processor alone:",
      len(processor.image_processor(wide, return_tensors="pt")["pixel_values"]), "processor:", crops(),
      "asked for crops:", crops(do_pan_and_scan=True), "asked with the numbers:",
      crops(do_pan_and_scan=True, **numbers))
END

python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.15.0 torchvision==0.29.2 numpy==2.4.6 pillow==12.1.1 \
    transformers==5.24.0
said=$("$folder/venv/bin/python" "$folder/crops.py" "$folder/model" 2>/dev/null)
echo "$said"
was="read from the file: True image processor alone: 4 processor: 1 asked for crops: 1 asked with the numbers: 4"
[ "$said" = "$was" ] || { echo "it was: $was"; exit 1; }
