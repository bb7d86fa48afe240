"""Makes small text encoders with random weights, and what sentence-transformers computes with them.

In: a folder to write to, and the names of models (default: all). Out: for each model a folder in the form in which
sentence-transformers saves it, and in it cases.json with texts and their vectors or scores. Needs torch, transformers
5.24, tokenizers and sentence-transformers 6.2.

    encoders.py make tests/data/encoders [NAME ...]
"""
import json
import os
import shutil
import sys

import torch
from safetensors.torch import save_file
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from transformers import (BertConfig, BertForSequenceClassification, BertModel, DistilBertConfig, DistilBertModel,
                          Gemma3TextConfig, Gemma3TextModel, GteConfig, GteModel, JinaEmbeddingsV3Config,
                          JinaEmbeddingsV3Model, ModernBertConfig,
                          ModernBertForSequenceClassification, ModernBertModel, MPNetConfig, MPNetModel,
                          NomicBertConfig, NomicBertModel, PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM,
                          Qwen3Model, RobertaConfig, RobertaModel, XLMRobertaConfig,
                          XLMRobertaForSequenceClassification, XLMRobertaModel)
from sentence_transformers import CrossEncoder, SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Dense, Normalize, Pooling, Transformer

TEXTS = ["a house by the sea", "The Sea, the SEA!", "", "who wrote the book of the house",
         "café Été naïve", "东京 sea 日本",
         "[MASK] house [SEP] sea", "\t tabs\nand  lines\u00a0 and\u200b zero\x07 ", "unaffable houses", "x" * 130,
         "the sea " * 40, "no. 42, (3.5) - it's $9 & more?", "a </s> b <mask> c"]
PAIRS = [("who wrote the book", "the book of the sea"), ("", "a house"), ("the sea", ""),
         ("house " * 30, "sea the " * 40), ("a house by the sea", "house " * 90), ("sea " * 90, "a")]

WORDS = ("the a of by who wrote book house sea and it is in to was for on with as at un ##aff ##able ##s ##e ##ing "
         "cafe "
         "ete naive 东 京 日 本 42 3 5 9 no more tabs lines zero s it x ##x . , ( ) - ' $ & ? ! ; : [ ] < > / mask").split()


def word_pieces(lower=True):
    """Returns BERT's kind of tokenizer: 5 special tokens, then whole words, letters and endings."""
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    for word in WORDS + [chr(c) for c in range(97, 123)] + ["##" + chr(c) for c in range(97, 123)]:
        if word not in words:
            words.append(word)
    vocab = {w: i for i, w in enumerate(words)}
    tokenizer = Tokenizer(models.WordPiece(vocab, unk_token="[UNK]", max_input_chars_per_word=100))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lower)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS]:0 $A:0 [SEP]:0", pair="[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]",
                                   sep_token="[SEP]", mask_token="[MASK]")
    fast.model_input_names = ["input_ids", "token_type_ids", "attention_mask"]
    return fast, len(words)


def merge_list(vocab):
    merges = []
    for pair in ("t h", "th e", "Ġ the", "s e", "se a", "Ġ sea", "h o", "ho u", "Ġ hou", "Ġ a", "o f", "Ġ of", "Ġa n"):
        left, right = pair.split(" ")
        if left in vocab and right in vocab:
            merges.append((left, right))
            vocab.setdefault(left + right, len(vocab))
    return merges


def byte_level(special, processor, prefix_space=False):
    vocab = {t: i for i, t in enumerate(special)}
    for letter in sorted(pre_tokenizers.ByteLevel.alphabet()):
        vocab.setdefault(letter, len(vocab))
    merges = merge_list(vocab)
    tokenizer = Tokenizer(models.BPE(vocab, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=prefix_space)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in special])
    tokenizer.post_processor = processor
    return tokenizer, len(vocab)


def roberta_tokenizer():
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    tokenizer, size = byte_level(special, processors.RobertaProcessing(("</s>", 2), ("<s>", 0)))
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", cls_token="<s>",
                                   sep_token="</s>", pad_token="<pad>", unk_token="<unk>", mask_token="<mask>",
                                   model_input_names=["input_ids", "attention_mask"]), size


def modern_tokenizer():
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    template = processors.TemplateProcessing(single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B [SEP]",
                                             special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    tokenizer, size = byte_level(special, template)
    tokenizer.normalizer = normalizers.NFC()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, cls_token="[CLS]", sep_token="[SEP]", pad_token="[PAD]",
                                   unk_token="[UNK]", mask_token="[MASK]",
                                   model_input_names=["input_ids", "attention_mask"]), size


def qwen_tokenizer(suffix=True):
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<think>", "</think>"]
    template = processors.TemplateProcessing(single="$A <|endoftext|>", pair="$A $B <|endoftext|>",
                                             special_tokens=[("<|endoftext|>", 0)])
    tokenizer, size = byte_level(special, template if suffix else processors.ByteLevel(trim_offsets=False))
    for word in ("yes", "no"):
        tokenizer.add_tokens([word])
        size += 1
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|endoftext|>", pad_token="<|endoftext|>",
                                   model_input_names=["input_ids", "attention_mask"]), size


def unigram_tokenizer(gemma=False):
    """Returns XLM-R's or Gemma's kind of tokenizer: pieces with scores, and U+2581 for a blank."""
    special = ["<pad>", "<eos>", "<bos>", "<unk>", "<mask>"] if gemma else ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    pieces = [(t, 0.0) for t in special]
    words = "the sea house of by who wrote book cafe a it is query task search result".split()
    pieces += [("\u2581" + w, -3.0 - i / 10) for i, w in enumerate(words)]
    pieces += [("\u2581", -4.0)] + [(chr(c), -6.0 - c / 1000) for c in range(33, 127)]
    pieces += [("é", -7.0), ("东", -7.1), ("京", -7.2), ("日本", -7.3)]
    seen, kept = set(), []
    for piece, score in pieces:
        if piece not in seen:
            seen.add(piece)
            kept.append((piece, score))
    tokenizer = Tokenizer(models.Unigram(kept, unk_id=3))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC(),
                                                 normalizers.Replace(" ", " ")])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement="\u2581", prepend_scheme="always")
    tokenizer.decoder = decoders.Metaspace(replacement="\u2581", prepend_scheme="always")
    tokenizer.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in special])
    if gemma:
        tokenizer.post_processor = processors.TemplateProcessing(
            single="<bos> $A <eos>", pair="<bos> $A <eos> $B <eos>", special_tokens=[("<bos>", 2), ("<eos>", 1)])
        return PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<bos>", eos_token="<eos>",
                                       pad_token="<pad>", unk_token="<unk>", mask_token="<mask>",
                                       model_input_names=["input_ids", "attention_mask"]), len(kept)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 2)])
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", cls_token="<s>",
                                   sep_token="</s>", pad_token="<pad>", unk_token="<unk>", mask_token="<mask>",
                                   model_input_names=["input_ids", "attention_mask"]), len(kept)


SMALL = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48)


def randomize(model, seed):
    """Gives weights a size at which errors show, and biases and norms values other than 0 and 1."""
    generator = torch.Generator().manual_seed(seed)
    for name, weight in model.named_parameters():
        noise = torch.randn(weight.shape, generator=generator)
        if weight.dim() > 1:
            scale = 1.0 if "embed" in name.lower() or "relative" in name else 1.6 * weight.shape[1] ** -0.5
        else:
            scale = 0.1
        base = 1.0 if weight.dim() == 1 and "norm" in name.lower() and name.endswith("weight") else 0.0
        if "Gemma3" in type(model).__name__ and base:
            base = 0.0
        weight.data = (base + scale * noise).half().float()
    return model.eval()


def build(name, seed=7):
    """Returns a model, its tokenizer and the modules after it."""
    bert, roberta = word_pieces, roberta_tokenizer
    if name in ("bert-mean", "bert-cls", "bert-modes"):
        tokenizer, vocab = bert(lower=name != "bert-cls")
        model = BertModel(BertConfig(vocab_size=vocab, max_position_embeddings=64, **SMALL))
        modules = {"bert-mean": ["mean", Normalize()], "bert-cls": ["cls"],
                   "bert-modes": [("max", "mean_sqrt_len_tokens", "weightedmean", "lasttoken"),
                                  Dense(128, 24, activation_function=torch.nn.GELU()),
                                  Dense(24, 24, bias=False, use_residual=True,
                                        activation_function=torch.nn.Identity())]}[name]
    elif name == "roberta":
        tokenizer, vocab = roberta()
        model = RobertaModel(RobertaConfig(vocab_size=vocab, max_position_embeddings=66, type_vocab_size=1,
                                           layer_norm_eps=1e-5, **SMALL), add_pooling_layer=False)
        modules = ["mean"]
    elif name == "xlm-roberta":
        tokenizer, vocab = unigram_tokenizer()
        model = XLMRobertaModel(XLMRobertaConfig(vocab_size=vocab, max_position_embeddings=130, type_vocab_size=1,
                                                 layer_norm_eps=1e-5, **SMALL), add_pooling_layer=False)
        modules = ["cls", Normalize()]
    elif name == "mpnet":
        tokenizer, vocab = bert()
        model = MPNetModel(MPNetConfig(vocab_size=vocab, max_position_embeddings=514, **SMALL), add_pooling_layer=False)
        modules = ["mean", Normalize()]
    elif name == "distilbert":
        tokenizer, vocab = bert()
        model = DistilBertModel(DistilBertConfig(vocab_size=vocab, max_position_embeddings=64, dim=32, n_layers=2,
                                                 n_heads=4, hidden_dim=48))
        modules = ["mean"]
    elif name == "nomic":
        tokenizer, vocab = bert()
        model = NomicBertModel(NomicBertConfig(vocab_size=vocab, max_position_embeddings=256, **SMALL))
        modules = ["mean"]
    elif name == "gte":
        tokenizer, vocab = unigram_tokenizer()
        model = GteModel(GteConfig(vocab_size=vocab, max_position_embeddings=256, **SMALL), add_pooling_layer=False)
        modules = ["cls", Normalize()]
    elif name == "jina-v3":
        tokenizer, vocab = unigram_tokenizer()
        rope = {"rope_type": "linear", "rope_theta": 3000.0, "factor": 0.5}
        model = JinaEmbeddingsV3Model(JinaEmbeddingsV3Config(vocab_size=vocab, max_position_embeddings=256,
                                                             rope_parameters=rope, **SMALL), add_pooling_layer=False)
        modules = ["mean", Normalize()]
    elif name == "modernbert":
        tokenizer, vocab = modern_tokenizer()
        size = dict(SMALL, num_hidden_layers=4)
        model = ModernBertModel(ModernBertConfig(vocab_size=vocab, max_position_embeddings=256, local_attention=16,
                                                 pad_token_id=0, cls_token_id=2, sep_token_id=3, bos_token_id=2,
                                                 eos_token_id=3, **size))
        modules = ["mean"]
    elif name == "gemma":
        tokenizer, vocab = unigram_tokenizer(gemma=True)
        size = dict(SMALL, num_hidden_layers=3)
        model = Gemma3TextModel(Gemma3TextConfig(vocab_size=vocab, num_key_value_heads=2, head_dim=16,
                                                 query_pre_attn_scalar=20, sliding_window=12,
                                                 layer_types=["sliding_attention", "full_attention",
                                                              "sliding_attention"],
                                                 max_position_embeddings=256, use_bidirectional_attention=True, **size))
        modules = ["mean", Dense(32, 64, bias=False, activation_function=torch.nn.Identity()),
                   Dense(64, 32, bias=False, activation_function=torch.nn.Identity()), Normalize()]
    elif name in ("qwen3", "qwen3-dense"):
        tokenizer, vocab = qwen_tokenizer()
        model = Qwen3Model(Qwen3Config(vocab_size=vocab, num_key_value_heads=2, head_dim=16, tie_word_embeddings=True,
                                       max_position_embeddings=256, **SMALL))
        modules = ["mean", Dense(32, 24), Normalize()] if name == "qwen3-dense" else ["lasttoken", Normalize()]
    else:
        raise SystemExit(f"no model {name}")
    return randomize(model, seed), tokenizer, modules


PROMPTS = {"gemma": {"query": "task: search result | query: ", "document": "title: none | text: "},
           "qwen3": {"query": "Instruct: find the sea\nQuery:"},
           "qwen3-dense": {"query": "find the sea: ", "document": "the book of "},
           "bert-cls": {"query": "who: ", "passage": "a "}}
DEFAULT_PROMPTS = {"qwen3-dense": "document"}
WITHOUT_PROMPTS = ("bert-cls", "qwen3-dense")  # rows of prompts are not pooled
LIMITS = {"bert-modes": 24, "gte": 100, "jina-v3": 40}


def save_transformer(name, folder, seed=7):
    model, tokenizer, modules = build(name, seed)
    model.half().save_pretrained(folder)
    tokenizer.model_max_length = {"roberta": 64, "xlm-roberta": 128}.get(name, 10 ** 30)
    tokenizer.save_pretrained(folder)
    return modules


def make_embedder(name, folder):
    work = folder + ".work"
    modules = save_transformer(name, work)
    transformer = Transformer(work, max_seq_length=LIMITS.get(name), model_kwargs={"dtype": torch.float32})
    list_of = [transformer, Pooling(transformer.get_embedding_dimension(), modules[0],
                                    include_prompt=name not in WITHOUT_PROMPTS)]
    torch.manual_seed(3)
    for module in modules[1:]:
        list_of.append(module)
        for weight in module.parameters():
            weight.data = (torch.randn(weight.shape) * (weight.shape[-1] ** -0.5)).half().float()
    st = SentenceTransformer(modules=list_of, prompts=PROMPTS.get(name),
                             default_prompt_name=DEFAULT_PROMPTS.get(name), device="cpu")
    st.save(folder, create_model_card=False)
    for name_of in os.listdir(work):
        if name_of.endswith(".safetensors"):
            shutil.copy(os.path.join(work, name_of), os.path.join(folder, name_of))
    shutil.rmtree(work)
    if name == "jina-v3":
        config = json.load(open(os.path.join(folder, "tokenizer_config.json")))
        config["truncation_side"] = "left"
        json.dump(config, open(os.path.join(folder, "tokenizer_config.json"), "w"), indent=1)
    st = SentenceTransformer(folder, device="cpu",
                             model_kwargs={"dtype": torch.float32, "attn_implementation": "eager"})
    cases = []
    for prompt in [None] + sorted(PROMPTS.get(name, {})):
        rows = [st.encode(t, prompt_name=prompt, batch_size=1, convert_to_numpy=True) for t in TEXTS]
        cases.append({"prompt": prompt, "rows": [[float(f"{v:.9g}") for v in row] for row in rows]})
    return {"texts": TEXTS, "cases": cases}


def make_cross(name, folder):
    work = folder + ".work"
    kind = name[len("cross-"):]
    if kind == "bert":
        tokenizer, vocab = word_pieces()
        model = BertForSequenceClassification(BertConfig(vocab_size=vocab, max_position_embeddings=64, num_labels=1,
                                                         **SMALL))
    elif kind == "xlm-roberta":
        tokenizer, vocab = unigram_tokenizer()
        model = XLMRobertaForSequenceClassification(
            XLMRobertaConfig(vocab_size=vocab, max_position_embeddings=130, type_vocab_size=1, layer_norm_eps=1e-5,
                             num_labels=1, **SMALL))
    elif kind == "modernbert":
        tokenizer, vocab = modern_tokenizer()
        model = ModernBertForSequenceClassification(
            ModernBertConfig(vocab_size=vocab, max_position_embeddings=128, local_attention=16, num_labels=1,
                             classifier_pooling="mean", pad_token_id=0, cls_token_id=2, sep_token_id=3, bos_token_id=2,
                             eos_token_id=3, **SMALL))
    elif kind == "qwen3":
        tokenizer, vocab = qwen_tokenizer(suffix=False)
        model = Qwen3ForCausalLM(Qwen3Config(vocab_size=vocab, num_key_value_heads=2, head_dim=16,
                                             max_position_embeddings=1024, tie_word_embeddings=True, **SMALL))
    randomize(model, 11).half().save_pretrained(folder)
    if kind == "xlm-roberta":
        tokenizer.model_max_length = 128
    tokenizer.save_pretrained(folder)
    if kind == "bert":
        config = json.load(open(os.path.join(folder, "tokenizer_config.json")))
        config["model_input_names"] = ["input_ids", "token_type_ids", "attention_mask"]
        json.dump(config, open(os.path.join(folder, "tokenizer_config.json"), "w"), indent=1)
    if kind == "qwen3":
        products = make_adapter(os.path.join(folder, "adapter"), model)
        adapted = [{"scale": scale, "scores": judge(folder, products, scale)} for scale in (1.0, -0.5)]
        return {"pairs": PAIRS, "scores": judge(folder), "raw": None, "adapted": adapted}
    if kind == "xlm-roberta":
        config = json.load(open(os.path.join(folder, "config.json")))
        config["sbert_ce_default_activation_function"] = "torch.nn.modules.linear.Identity"
        json.dump(config, open(os.path.join(folder, "config.json"), "w"), indent=1)
    ce = CrossEncoder(folder, device="cpu", model_kwargs={"dtype": torch.float32, "attn_implementation": "eager"})
    scores = [float(ce.predict([p])[0]) for p in PAIRS]
    raw = [float(ce.predict([p], activation_fn=torch.nn.Identity())[0]) for p in PAIRS]
    return {"pairs": PAIRS, "scores": scores, "raw": raw}


def make_adapter(folder, model):
    """Writes an adapter (LoRA) in peft's form. Returns what it adds to each weight, by the weight's name."""
    generator = torch.Generator().manual_seed(5)
    rank, alpha, tensors, products = 2, 6, {}, {}
    for name, weight in model.named_parameters():
        if not name.endswith(("q_proj.weight", "v_proj.weight", "down_proj.weight")):
            continue
        a = (torch.randn(rank, weight.shape[1], generator=generator) / weight.shape[1] ** 0.5).bfloat16()
        b = torch.randn(weight.shape[0], rank, generator=generator).bfloat16()
        tensors |= {"base_model.model." + name.replace("weight", "lora_A.weight"): a,
                    "base_model.model." + name.replace("weight", "lora_B.weight"): b}
        products[name] = alpha / rank * (b.float() @ a.float())
    os.makedirs(folder)
    save_file(tensors, os.path.join(folder, "adapter_model.safetensors"), metadata={"format": "pt"})
    with open(os.path.join(folder, "adapter_config.json"), "w") as file:
        json.dump({"peft_type": "LORA", "task_type": "CAUSAL_LM", "r": rank, "lora_alpha": alpha,
                   "target_modules": ["q_proj", "v_proj", "down_proj"]}, file, indent=1)
        file.write("\n")
    return products


def judge(folder, products=None, scale=1.0):
    """Returns Qwen3-Reranker's scores, computed by the code of its model card. products: what an adapter adds to the
    weights, times `scale`."""
    from transformers import AutoModelForCausalLM, AutoTokenizer
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    with torch.no_grad():
        for name, product in (products or {}).items():
            model.get_parameter(name).add_(scale * product)
    before = ("<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the "
              "Instruct provided. Note that the answer can only be \"yes\" or \"no\".<|im_end|>\n<|im_start|>user\n")
    after = "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"
    task = "Given a web search query, retrieve relevant passages that answer the query"
    no, yes = tokenizer.convert_tokens_to_ids("no"), tokenizer.convert_tokens_to_ids("yes")
    scores = []
    for query, document in PAIRS:
        text = f"<Instruct>: {task}\n<Query>: {query}\n<Document>: {document}"
        ids = sum((tokenizer(part, add_special_tokens=False)["input_ids"] for part in (before, text, after)), [])
        with torch.no_grad():
            logits = model(torch.tensor([ids])).logits[0, -1]
        scores.append(float(torch.softmax(torch.stack([logits[no], logits[yes]]), 0)[1]))
    return scores


EMBEDDERS = ["bert-mean", "bert-cls", "bert-modes", "roberta", "xlm-roberta", "mpnet", "distilbert", "nomic", "gte",
             "jina-v3", "modernbert", "gemma", "qwen3", "qwen3-dense"]
CROSS = ["cross-bert", "cross-xlm-roberta", "cross-modernbert", "cross-qwen3"]


def main():
    if len(sys.argv) < 3 or sys.argv[1] != "make":
        raise SystemExit(__doc__)
    out = sys.argv[2]
    for name in sys.argv[3:] or EMBEDDERS + CROSS:
        folder = os.path.join(out, name)
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        cases = (make_cross if name in CROSS else make_embedder)(name, folder)
        for stray in ("README.md", ".gitattributes"):
            if os.path.exists(os.path.join(folder, stray)):
                os.remove(os.path.join(folder, stray))
        with open(os.path.join(folder, "cases.json"), "w") as file:
            json.dump(cases, file, ensure_ascii=True)
            file.write("\n")
        print(name, sum(os.path.getsize(os.path.join(d, f)) for d, _, fs in os.walk(folder) for f in fs))


if __name__ == "__main__":
    main()
