#!/usr/bin/env bash
# Writes the models that bench_quant and compare.py measure: random weights of real shapes, as GGUF.
#
# usage: bench/peers/models.sh FORERUN FOLDER
# In: the command. Out: FOLDER/SHAPE-TYPE.gguf, 17 GB for all; files that are there already stay.
set -euo pipefail

[ $# -eq 2 ] || { sed -n 's/^# usage: /usage: /p' "$0" >&2; exit 2; }
mkdir -p "$2"
for shape in gemma4-1b gemma4-e2b; do
    for type in q4_0 q8_0 q4_k q6_k; do
        file=$2/$shape-$type.gguf
        [ -f "$file" ] || "$1" synth --shape $shape --type $type "$file"
    done
done
