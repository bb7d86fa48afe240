/* The table of pre-tokenizers: see pre_tokenizers.h.
 *
 * Names are llama.cpp's, and texts are cut as it cuts them; expressions are those of the models' tokenizer.json, where
 * it had to approximate one. */
#include "formats/pre_tokenizers.h"

#include <stdio.h>
#include <string.h>

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

static fr_text text_of(const char *string) {
    return (fr_text){string, strlen(string)};
}

/* ------------------------------------------------------------------------------------------------------ expressions */

/* What the English "'s" and its like are, and how blanks behind words go together. */
#define SUFFIXES "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define BLANKS   "\\s+(?!\\S)|\\s+"
#define LINES    "\\s*[\\r\\n]+|" BLANKS

#define GPT2 "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|" BLANKS

/* GPT-4's: words with what stands in front of them; kinds differ in how digits go together. */
#define PIECES(digits) SUFFIXES "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|" digits "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|" LINES

/* GPT-4o's: a word may begin anew at a capital. `behind`: what a word takes along. */
#define UPPER "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define CASED(behind, digits)                                                                                \
    "[^\\r\\n\\p{L}\\p{N}]?" UPPER "*" LOWER "+" behind "|[^\\r\\n\\p{L}\\p{N}]?" UPPER "+" LOWER "*" behind \
    "|" digits "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|" LINES

/* DeepSeek's: Chinese and Japanese by themselves, and punctuation that takes a word along. */
#define CHINESE  "[\xe4\xb8\x80-\xe9\xbe\xa5\xe3\x81\x80-\xe3\x82\x9f\xe3\x82\xa0-\xe3\x83\xbf]+"
#define MARKED   "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+|"
#define DEEPSEEK MARKED " ?[\\p{P}\\p{S}]+[\\r\\n]*|" LINES

/* Bloom's: up to punctuation, Arabic, Chinese and Indian too. */
#define BLOOM " ?[^(\\s|.,!?\xe2\x80\xa6\xe3\x80\x82\xef\xbc\x8c\xe3\x80\x81\xe0\xa5\xa4\xdb\x94\xd8\x8c)]+"

/* Kimi K2's: GPT-4o's with Chinese by itself: the script, for which PCRE2 has no name that all its versions know. */
#define HAN                                                                                           \
    "[\\x{2E80}-\\x{2E99}\\x{2E9B}-\\x{2EF3}\\x{2F00}-\\x{2FD5}\\x{3005}\\x{3007}\\x{3021}-\\x{3029}" \
    "\\x{3038}-\\x{303B}\\x{3400}-\\x{4DBF}\\x{4E00}-\\x{9FFF}\\x{F900}-\\x{FA6D}\\x{FA70}-\\x{FAD9}" \
    "\\x{16FE2}\\x{16FE3}\\x{16FF0}\\x{16FF1}\\x{20000}-\\x{2EBE0}\\x{2F800}-\\x{2FA1D}\\x{30000}-\\x{323AF}]"
#define NO_HAN(set) "(?:(?!" HAN ")" set ")"
#define KIMI                                                                                                       \
    HAN "+|[^\\r\\n\\p{L}\\p{N}]?" NO_HAN(UPPER) "*" NO_HAN(LOWER) "+" SUFFIXES "?|[^\\r\\n\\p{L}\\p{N}]?" NO_HAN( \
        UPPER) "+" NO_HAN(LOWER) "*" SUFFIXES "?|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|" LINES

const char *const fr_gpt2_pieces = GPT2;

/* ------------------------------------------------------------------------------------------------------------ rules */

/* SentencePiece's way with spaces: a space is U+2581 inside. */
static void space_rules(fr_tokenizer_source *source) {
    const fr_text space = text_of(" "), lower_block = text_of("\xe2\x96\x81");
    source->byte_fallback = source->fuse_unknown = source->loose_merges = true;
    source->normalizer = (fr_text_rules){
        .items = {{.kind = FR_RULE_REPLACE, .pattern = space, .content = lower_block}},
        .count = 1,
    };
    source->decoder = (fr_text_rules){
        .items = {{.kind = FR_RULE_REPLACE, .pattern = lower_block, .content = space},
                  {.kind = FR_RULE_BYTE_FALLBACK},
                  {.kind = FR_RULE_FUSE}},
        .count = 3,
    };
}

static void gemma4_rules(fr_tokenizer_source *source) {
    space_rules(source);
    source->pre_tokenizer = (fr_text_rules){
        .items = {{.kind = FR_RULE_SPLIT, .pattern = text_of(" "), .behavior = FR_SPLIT_MERGED_WITH_PREVIOUS}},
        .count = 1,
    };
}

/* Pieces by patterns; inside them, bytes. */
static void byte_rules(const fr_pre_tokenizer *kind, fr_tokenizer_source *source) {
    source->byte_level = source->loose_merges = true;
    source->ignore_merges = kind->ignore_merges;
    source->unknown = (fr_text){0};
    source->normalizer = (fr_text_rules){.items = {{.kind = FR_RULE_NFC}}, .count = kind->composed};
    source->pre_tokenizer = (fr_text_rules){.count = 0};
    for (size_t i = 0; i < FR_MAX_PRE_PATTERNS && kind->patterns[i]; i++)
        source->pre_tokenizer.items[source->pre_tokenizer.count++] = (fr_text_rule){
            .kind = FR_RULE_SPLIT, .pattern = text_of(kind->patterns[i]), .regex = true, .behavior = FR_SPLIT_ISOLATED};
    source->decoder = (fr_text_rules){.items = {{.kind = FR_RULE_BYTE_LEVEL}}, .count = 1};
}

void fr_pre_tokenizer_apply(const fr_pre_tokenizer *kind, fr_tokenizer_source *source) {
    if (kind->rules)
        kind->rules(source);
    else
        byte_rules(kind, source);
}

/* ------------------------------------------------------------------------------------------------------------ table */

static const char *const gemma4_ends[] = {"<turn|>", "<|tool_response>", NULL};
static const char *const gemma4_shown[] = {"<|channel>",       "<channel|>",       "<|tool_call>", "<tool_call|>",
                                           "<|tool_response>", "<tool_response|>", "<|\"|>",       NULL};
static const char *const glm_ends[] = {"<|user|>", "<|observation|>", NULL};
static const char *const chatml_ends[] = {"<|im_end|>", "<|endoftext|>", NULL};
static const char *const deepseek_ends[] = {"<\xef\xbd\x9c"
                                            "end\xe2\x96\x81of\xe2\x96\x81sentence\xef\xbd\x9c>",
                                            NULL};
static const char *const llama_ends[] = {"<|eot_id|>", "<|eom_id|>", "<|end_of_text|>", NULL};

/* What kinds that many makers use end turns with. */
static const char *const fallback_ends[] = {
    "<|im_end|>", "<|endoftext|>", "<|eot_id|>",         "<|eom_id|>", "<|end_of_text|>",
    "<|end|>",    "<|return|>",    "<|call|>",           "<EOT>",      "[EOT]",
    "[EOS]",      "<end_of_turn>", "<end_of_utterance>", "[e~[",       NULL};

static const fr_pre_tokenizer kinds[] = {
    {.model = "gemma4",
     .names = {"gemma4"},
     .rules = gemma4_rules,
     .ends = gemma4_ends,
     .shown = gemma4_shown,
     .begins = true},
    {.model = "llama",
     .names = {"default"},
     .rules = space_rules,
     .begins_unless_told = true,
     .scored = true,
     .fallback_ids = true},
    {.model = "gpt2",
     .names = {"llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2",
               "jina-v5-nano"},
     .patterns = {PIECES("\\p{N}{1,3}")},
     .architectures = {"llama"},
     .ends = llama_ends,
     .ignore_merges = true,
     .begins_unless_told = true},
    {.model = "gpt2",
     .names = {"qwen2", "deepseek-r1-qwen", "megrez", "kormo", "f2llmv2"},
     .patterns = {PIECES("\\p{N}")},
     .architectures = {"qwen2", "qwen3", "qwen3moe"},
     .ends = chatml_ends,
     .composed = true},
    {.model = "gpt2",
     .names = {"smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b", "mellum2"},
     .patterns = {"\\p{N}", GPT2}},
    {.model = "gpt2",
     .names = {"gpt-2", "phi-2", "gigachat", "a.x-4.0", "mellum", "modern-bert", "mpt", "olmo", "jais", "trillion",
               "granite-docling", "exaone4"},
     .patterns = {GPT2}},
    {.model = "gpt2",
     .names = {"glm4", "chatglm-bpe", "glm5"},
     .patterns = {PIECES("\\p{N}{1,3}")},
     .architectures = {"glm4", "glm4moe", "deepseek2"},
     .ends = glm_ends,
     .ignore_merges = true,
     .end_for_all = true},
    {.model = "gpt2",
     .names = {"qwen35"},
     .patterns = {SUFFIXES "|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|" LINES},
     .architectures = {"qwen35", "qwen35moe"},
     .ends = chatml_ends,
     .composed = true},
    {.model = "gpt2",
     .names = {"deepseek-v3", "hunyuan-dense", "joyai-llm", "hy_v4"},
     .patterns = {"\\p{N}{1,3}", CHINESE, DEEPSEEK},
     .architectures = {"deepseek2"},
     .ends = deepseek_ends},
    {.model = "gpt2", .names = {"stablelm2", "hunyuan", "solar-open", "grok-2"}, .patterns = {PIECES("\\p{N}")}},
    {.model = "gpt2", .names = {"dbrx", "smaug-bpe"}, .patterns = {PIECES("\\p{N}{1,3}")}},
    {.model = "gpt2",
     .names = {"gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2"},
     .patterns = {CASED(SUFFIXES "?", "\\p{N}{1,3}")}},
    {.model = "gpt2",
     .names = {"tekken"},
     .patterns = {CASED("", "\\p{N}")},
     .ignore_merges = true,
     .begins_unless_told = true},
    {.model = "gpt2",
     .names = {"tiny_aya", "cohere2moe"},
     .patterns = {"\\p{N}{1,3}(?=(?:\\p{N}{3})*(?!\\p{N}))", CASED(SUFFIXES "?", "\\p{N}{1,3}")}},
    {.model = "gpt2", .names = {"kimi-k2"}, .patterns = {KIMI}},
    {.model = "gpt2",
     .names = {"deepseek-coder"},
     .patterns = {"[\\r\\n]", "\\s?\\p{L}+", "\\s?\\p{P}+",
                  "[\xe4\xb8\x80-\xe9\xbe\xa5\xe0\xa0\x80-\xe4\xb8\x80\xea\xb0\x80-\xed\x9f\xbf]+", "\\p{N}"}},
    {.model = "gpt2",
     .names = {"bailingmoe", "bailingmoe2", "llada-moe"},
     .patterns = {"'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|"
                  "\\s*[\\r\\n]|" BLANKS}},
    {.model = "gpt2",
     .names = {"seed-coder"},
     .patterns = {SUFFIXES "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}\\r\\n]+|" LINES}},
    {.model = "gpt2",
     .names = {"ufakzeka"},
     .patterns = {"[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|" LINES}},
    {.model = "gpt2", .names = {"laguna"}, .patterns = {"[^\\n]+|\\n+", PIECES("\\p{N}")}},
    {.model = "gpt2", .names = {"minicpm5"}, .patterns = {"\\p{N}{1,3}", PIECES("\\p{N}+")}, .ignore_merges = true},
    {.model = "gpt2",
     .names = {"exaone-moe"},
     .patterns = {SUFFIXES "|[^\\r\\n\\p{L}\\p{N}]?(?:\\p{L}\\p{M}*(?: \\p{L}\\p{M}*)*)+|\\p{N}|"
                           " ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]?|\\s*[\\r\\n]|" BLANKS}},
    {.model = "gpt2", .names = {"superbpe"}, .patterns = {"\\p{N}+", "(?=(\\d{3})+(?!\\d))"}},
    {.model = "gpt2", .names = {"viking"}, .patterns = {BLOOM, "\\p{N}"}},
    {.model = "gpt2", .names = {"bloom", "poro-chat", "gpt3-finnish"}, .patterns = {BLOOM}},
    {.model = "gpt2", .names = {"falcon"}, .patterns = {"[\\p{P}$+<=>^~|`]+", GPT2, "[0-9][0-9][0-9]"}},
    {.model = "gpt2",
     .names = {"jais-2"},
     .patterns = {SUFFIXES
                  "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|"
                  "\\s{512}(?!\\S)|\\s{256}(?!\\S)|\\s{128}(?!\\S)|\\s{64}(?!\\S)|\\s{32}(?!\\S)|\\s{16}(?!\\S)|"
                  "\\s{8}(?!\\S)|\\s{4}(?!\\S)|\\s{1,2}(?!\\S)|\\s"}},
    {.model = "gpt2",
     .names = {"chameleon"},
     .patterns = {"<sentinel:[0-9]+>", "IMGIMG[A-I]{1,4}Z", "[\\t\\n]|    |  ", "\\p{N}", "[\\p{P}!-/:-@\\[-`{-~]",
                  GPT2},
     .begins_unless_told = true},
    {.model = "gpt2", .names = {"default"}, .patterns = {"[\\p{P}$+<=>^~|]+", GPT2, "\\p{N}+", "[0-9][0-9][0-9]"}},
};

const fr_pre_tokenizer *fr_pre_tokenizer_at(size_t index) {
    return index < COUNT_OF(kinds) ? &kinds[index] : NULL;
}

static bool has_name(const fr_pre_tokenizer *kind, fr_text name) {
    for (size_t i = 0; i < FR_MAX_PRE_NAMES && kind->names[i]; i++)
        if (fr_text_is(name, kind->names[i])) return true;
    return false;
}

const fr_pre_tokenizer *fr_pre_tokenizer_find(fr_text model, fr_text name) {
    const fr_pre_tokenizer *last = NULL;
    size_t of_model = 0;
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        if (!fr_text_is(model, kinds[i].model)) continue;
        if (has_name(&kinds[i], name)) return &kinds[i];
        last = &kinds[i];
        of_model++;
    }
    return of_model == 1 ? last : NULL;
}

const char *const *fr_pre_tokenizer_ends(const fr_pre_tokenizer *kind) {
    return kind->ends ? kind->ends : fallback_ends;
}

void fr_pre_tokenizer_list(fr_text model, char *line, size_t size) {
    size_t length = 0;
    line[0] = '\0';
    for (size_t i = 0; i < COUNT_OF(kinds) && length < size; i++)
        if (fr_text_is(model, kinds[i].model))
            length += (size_t)snprintf(line + length, size - length, "%s%s", length ? ", " : "", kinds[i].names[0]);
}
