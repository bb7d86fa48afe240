"""Mistral and Ministral 3: see dense.py. Windows are shorter than the prompts whose greedy text is stored."""
from dense import Kind

SHARED = dict(hidden_act="silu", max_position_embeddings=640, rms_norm_eps=2e-5, attention_dropout=0.0, use_cache=True,
              bos_token_id=1, eos_token_id=2, torch_dtype="bfloat16")
TOWER = dict(model_type="pixtral", hidden_size=16, image_size=28, intermediate_size=20, num_attention_heads=2,
             num_hidden_layers=1, patch_size=7, head_dim=8)
SPREAD = {"type": "yarn", "rope_type": "yarn", "rope_theta": 3000.0, "factor": 8.0,
          "original_max_position_embeddings": 16, "max_position_embeddings": 640, "beta_fast": 0.8, "beta_slow": 0.1,
          "mscale_all_dim": 1.0, "mscale": 1.0, "llama_4_scaling_beta": 0.5}


def of_mistral(c):
    features = {"rope_theta": {"rope_theta": 1e6}}
    if c.get("sliding_window"):
        features |= {"window": {"sliding_window": None},
                     "window, of one more": {"sliding_window": c["sliding_window"] + 1}}
    return features


def of_ministral3(c):
    told = lambda **other: {"rope_parameters": c["rope_parameters"] | other}
    return {"scaling": told(rope_type="default", type="default"), "scaling's factor": told(factor=2.0),
            "growth of queries": told(llama_4_scaling_beta=0.0), "beta_fast": told(beta_fast=32.0),
            "attention factor": told(mscale=None, mscale_all_dim=None), "rope_theta": told(rope_theta=1e6),
            "length before": told(original_max_position_embeddings=64)}


MISTRAL = Kind("MistralConfig", "MistralForCausalLM", of_mistral, first=(1,),
               whole=("Mistral3Config", "Mistral3ForConditionalGeneration"))
MINISTRAL3 = Kind("Ministral3Config", "Ministral3ForCausalLM", of_ministral3, first=(1,))

MODELS = {
    # 7B v0.1's form: all layers have a window.
    "mistral-window": dict(seed=4102, kind=MISTRAL, config=SHARED | dict(
        architectures=["MistralForCausalLM"], model_type="mistral", vocab_size=211, hidden_size=60,
        intermediate_size=44, num_hidden_layers=3, num_attention_heads=6, num_key_value_heads=2, rope_theta=4000.0,
        sliding_window=11, tie_word_embeddings=False)),
    # Nemo's form: heads that together are narrower than the stream, and no window.
    "mistral-nemo": dict(seed=4201, gguf=True, kind=MISTRAL, config=SHARED | dict(
        architectures=["MistralForCausalLM"], model_type="mistral", vocab_size=203, hidden_size=56,
        intermediate_size=68, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=4, head_dim=18,
        rope_theta=9000.0, sliding_window=None, tie_word_embeddings=True)),
    # Small 3.1's form: with a vision encoder.
    "mistral3-tower": dict(seed=4300, gguf=True, kind=MISTRAL, config=dict(
        architectures=["Mistral3ForConditionalGeneration"], model_type="mistral3", image_token_index=10,
        multimodal_projector_bias=False, projector_hidden_act="gelu", spatial_merge_size=2, vision_feature_layer=-1,
        torch_dtype="bfloat16", eos_token_id=2, tie_word_embeddings=False,
        text_config=SHARED | dict(
            model_type="mistral", vocab_size=199, hidden_size=52, intermediate_size=60, num_hidden_layers=3,
            num_attention_heads=4, num_key_value_heads=2, head_dim=14, rope_theta=7000.0, sliding_window=None,
            tie_word_embeddings=False),
        vision_config=TOWER)),
    # Ministral 3's form: queries are scaled by a factor that grows four times within a prompt.
    "ministral3-odd": dict(seed=4405, gguf=True, kind=MINISTRAL3, config=SHARED | dict(
        architectures=["Ministral3ForCausalLM"], model_type="ministral3", vocab_size=197, hidden_size=64,
        intermediate_size=52, num_hidden_layers=3, num_attention_heads=6, num_key_value_heads=3, head_dim=16,
        sliding_window=None, tie_word_embeddings=False, rope_parameters=SPREAD)),
}
