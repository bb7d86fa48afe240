"""The tiny families that make_reference.py makes: their dimensions and their forms of configuration.

The dimensions are such that code written only for the published ones would get them wrong: no powers of two, heads
that together are not as wide as the stream, windows shorter than a prompt, a vocabulary that is a multiple only of its
clusters.
"""

DEFAULT_ROPE = {"sliding": 10000.0, "full": 1000000.0, "partial": 0.25}

FAMILIES = {
    # Per-layer embeddings, shared KV, feed-forwards of double width, grouped heads, a head with centroids; three
    # shards.
    "gemma4-e-odd": dict(
        seed=931, vocab=405, nested=False, spelling="global", stored="bfloat16", shards=3,
        eos={"config": 1, "generation": [1, 6, 5]},
        target=dict(hidden=96, ffn=72, layers="ssfssf", heads=6, kv=2, head_dim=12, global_head_dim=20, window=5,
                    ple=10, shared=3, double=True, softcap=30.0),
        assistant=dict(hidden=40, ffn=56, layers="sfsf", heads=4, centroids=(27, 4), stored="bfloat16")),
    # Per-layer embeddings, no shared KV, two widths of heads; per_layer_config also sets KV heads.
    "gemma4-e-layers": dict(
        seed=1143, vocab=397, nested=False, spelling="per_layer", stored="float16", shards=1,
        eos={"config": [6, 1], "generation": None},
        target=dict(hidden=72, ffn=100, layers="fssfsf", heads=6, kv=3, global_kv=2, head_dim=10, global_head_dim=22,
                    window=3, ple=6, shared=2, double=False, softcap=12.0),
        assistant=dict(hidden=36, ffn=44, layers="fsf", heads=6, centroids=None, stored="float32")),
    # Plain layers in float32, a value projection in every layer, no soft cap, other rotary parameters.
    "gemma4-dense-odd": dict(
        seed=933, vocab=401, nested=True, spelling="per_layer", stored="float32", shards=1,
        eos={"config": [1], "text": 6, "generation": [7]},
        rope={"sliding": 500.0, "full": 30000.0, "partial": 0.5},
        target=dict(hidden=56, ffn=92, layers="sfsf", heads=6, kv=3, head_dim=14, global_head_dim=26, window=7,
                    softcap=None, eps=1e-5),
        assistant=dict(hidden=28, ffn=60, layers="sf", heads=3, centroids=None, stored="float16")),
    # Five experts of which three are chosen, keys that are also values, fewer KV heads in layers with full attention;
    # two shards.
    "gemma4-moe-odd": dict(
        seed=334, vocab=403, nested=True, spelling="global", stored="bfloat16", shards=2,
        eos={"config": 1, "text": 1, "generation": 6},
        target=dict(hidden=80, ffn=52, layers="ssfsf", heads=6, kv=3, global_kv=2, k_eq_v=True, head_dim=16,
                    global_head_dim=18, window=6, softcap=30.0, experts=(5, 3, 24)),
        assistant=dict(hidden=48, ffn=40, layers="ssf", heads=6, centroids=(31, 3), stored="bfloat16")),
}
