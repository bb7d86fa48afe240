#!/usr/bin/env bash
# Builds llama.cpp for comparisons on this machine, from the source package that llama-cpp-python publishes; or
# installs the other peers, PyTorch and OpenBLAS.
#
# usage: bench/peers/build.sh FOLDER [amx|rpc|python]
#
# In: a folder for everything that is downloaded and built (1 GB); Python, CMake and a C++ compiler. JOBS= is the
# number of files that are compiled at a time. Out: without a word, FOLDER/bin/llama-bench, llama-perplexity,
# llama-quantize, llama-completion, llama-batched-bench, llama-server and peer-logits, peer-rows, peer-tokens
# (peer_*.c, with its library), for this processor but without AMX. "amx" gives FOLDER/amx/llama-bench and peer-rows
# with AMX. "rpc" gives FOLDER/rpc/llama-bench and ggml-rpc-server. Each takes about 20 minutes on 2 cores. "python"
# gives FOLDER/venv, an environment with the packages of requirements.txt, 8 GB.
set -euo pipefail
shopt -s lastpipe
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

package=llama-cpp-python
version=0.3.36
sha256=832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e
programs=(llama-bench llama-perplexity llama-quantize llama-completion llama-batched-bench llama-server)
own=(logits rows tokens)

kind=${2:-bin}
case $kind in
bin | amx | rpc | python) ;;
*) set -- ;;
esac
[ $# -ge 1 ] || { sed -n 's/^# usage: /usage: /p' "$0" >&2; exit 2; }
mkdir -p "$1"
folder=$(cd "$1" && pwd)
archive=$folder/llama_cpp_python-$version.tar.gz
source=$folder/llama_cpp_python-$version/vendor/llama.cpp

[ -x "$folder/venv/bin/pip" ] || python3 -m venv "$folder/venv"
if [ "$kind" = python ]; then
    "$folder/venv/bin/pip" install -q -r "$here/requirements.txt"
    echo "$folder/venv"
    exit
fi
if [ ! -f "$archive" ]; then
    "$folder/venv/bin/pip" download -q --no-deps --no-binary "$package" -d "$folder" "$package==$version"
fi
echo "$sha256  $archive" | sha256sum --quiet -c
[ -d "$source" ] || tar -xzf "$archive" -C "$folder"

# -march=native includes AMX if the processor has it.
flags=()
case $kind in
amx) programs=(llama-bench) own=(rows) ;;
*) without="-mno-amx-tile -mno-amx-int8 -mno-amx-bf16"
    [ "$(uname -m)" != x86_64 ] || flags=(-DCMAKE_C_FLAGS="$without" -DCMAKE_CXX_FLAGS="$without") ;;
esac
[ "$kind" != rpc ] || { flags+=(-DGGML_RPC=ON) programs=(llama-bench ggml-rpc-server) own=(); }
cmake -S "$source" -B "$folder/build-$kind" -DCMAKE_BUILD_TYPE=Release -DGGML_NATIVE=ON -DBUILD_SHARED_LIBS=OFF \
    -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_SERVER=ON -DLLAMA_BUILD_APP=OFF \
    -DLLAMA_USE_PREBUILT_UI=OFF -DLLAMA_OPENSSL=OFF "${flags[@]}" >"$folder/build-$kind.log" 2>&1
cmake --build "$folder/build-$kind" -j "${JOBS:-$(nproc)}" --target "${programs[@]}" >>"$folder/build-$kind.log" 2>&1 ||
    { tail -n 20 "$folder/build-$kind.log" >&2; exit 1; }
mkdir -p "$folder/$kind"
for program in "${programs[@]}"; do
    ln -sf "../build-$kind/bin/$program" "$folder/$kind/$program"
done
"$folder/$kind/llama-bench" --help >/dev/null
find "$folder/build-$kind/src" "$folder/build-$kind/ggml" -name '*.a' -print0 | mapfile -d '' -t archives
for name in "${own[@]}"; do
    "${CC:-cc}" -std=c11 -O2 -D_GNU_SOURCE -I"$source/include" -I"$source/ggml/include" "$here/peer_$name.c" \
        -Wl,--start-group "${archives[@]}" -Wl,--end-group -lstdc++ -lgomp -lpthread -ldl -lm \
        -o "$folder/$kind/peer-$name"
done
echo "$folder/$kind"
