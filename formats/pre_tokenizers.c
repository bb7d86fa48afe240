/* Holds the table of pre-tokenizers (pre_tokenizers.h).
 *
 * Names are llama.cpp's. Texts are cut as in llama.cpp, except where the tokenizer.json of the models cuts them in
 * another way. There tokenizer.json is followed:
 *
 *     gpt-4o, tekken, kimi-k2, superbpe, deepseek-coder ...    expressions that llama.cpp only approximates
 *     qwen2, qwen35, olmo, mpt, modern-bert, command-r         texts are normalized to NFC first, not so in llama.cpp
 *     tiny_aya, cohere2moe     digits directly before a word stay together: \d{1,3}(?=(?:\d{3})*\b) needs a word's end
 *     deepseek-llm             digits are cut one by one; llama.cpp's \p{N}+ gives the same tokens with its vocabulary
 *     t5                       SentencePiece's map of characters, by graphemes
 *     bert                     words of at most 100 characters
 *
 * The table also has some more names that people use: gpt2, o200k, deepseek-r1, poro, minerva. */
#include "formats/pre_tokenizers.h"

#include <stdio.h>
#include <string.h>

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

static fr_text text_of(const char *string) {
    return (fr_text){string, strlen(string)};
}

/* ------------------------------------------------------------------------------------------------------ expressions */

/* SUFFIXES matches English contractions such as "'s". BLANKS matches a run of blanks without its last blank, which
 * belongs to the next word. */
#define SUFFIXES "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define BLANKS   "\\s+(?!\\S)|\\s+"
#define LINES    "\\s*[\\r\\n]+|" BLANKS

#define GPT2 "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|" BLANKS

/* GPT-4's expression: a piece is a word, with at most one character before it that is neither a letter nor a digit.
 * Models differ in how they cut digits. */
#define PIECES(digits) SUFFIXES "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|" digits "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|" LINES

/* GPT-4o's expression: a capital letter may begin a new piece. `behind` is a pattern for what belongs to the piece
 * after its letters, such as a contraction's ending. */
#define UPPER "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define CASED(behind, digits)                                                                                \
    "[^\\r\\n\\p{L}\\p{N}]?" UPPER "*" LOWER "+" behind "|[^\\r\\n\\p{L}\\p{N}]?" UPPER "+" LOWER "*" behind \
    "|" digits "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|" LINES

/* DeepSeek's expressions: runs of Chinese and Japanese characters are pieces of their own, and a punctuation character
 * is joined to the word after it. */
#define CHINESE  "[\xe4\xb8\x80-\xe9\xbe\xa5\xe3\x81\x80-\xe3\x82\x9f\xe3\x82\xa0-\xe3\x83\xbf]+"
#define MARKED   "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+|"
#define DEEPSEEK MARKED " ?[\\p{P}\\p{S}]+[\\r\\n]*|" LINES

/* Expressions of DeepSeek's first models, which use an old list of cased letters. */
#define CASED_LETTERS                                                                                 \
    "A-Za-z\\x{B5}\\x{C0}-\\x{D6}\\x{D8}-\\x{F6}\\x{F8}-\\x{1BA}\\x{1BC}-\\x{1BF}\\x{1C4}-\\x{293}"   \
    "\\x{295}-\\x{2AF}\\x{370}-\\x{373}\\x{376}\\x{377}\\x{37B}-\\x{37D}\\x{37F}\\x{386}"             \
    "\\x{388}-\\x{38A}\\x{38C}\\x{38E}-\\x{3A1}\\x{3A3}-\\x{3F5}\\x{3F7}-\\x{481}\\x{48A}-\\x{52F}"   \
    "\\x{531}-\\x{556}\\x{10A0}-\\x{10C5}\\x{13A0}-\\x{13F5}\\x{13F8}-\\x{13FD}\\x{1C90}-\\x{1CBA}"   \
    "\\x{1CBD}-\\x{1CBF}\\x{1D00}-\\x{1D2B}\\x{1D6B}-\\x{1D77}\\x{1D79}-\\x{1D9A}\\x{1E00}-\\x{1F15}" \
    "\\x{1F18}-\\x{1F1D}\\x{1F20}-\\x{1F45}\\x{1F48}-\\x{1F4D}\\x{1F50}-\\x{1F57}\\x{1F59}\\x{1F5B}"  \
    "\\x{1F5D}\\x{1F5F}-\\x{1F7D}\\x{1F80}-\\x{1FB4}\\x{1FB6}-\\x{1FBC}\\x{1FBE}\\x{1FC2}-\\x{1FC4}"  \
    "\\x{1FC6}-\\x{1FCC}\\x{1FD0}-\\x{1FD3}\\x{1FD6}-\\x{1FDB}\\x{1FE0}-\\x{1FEC}\\x{1FF2}-\\x{1FF4}" \
    "\\x{1FF6}-\\x{1FFC}\\x{2102}\\x{2107}\\x{210A}-\\x{2113}\\x{2115}\\x{2119}-\\x{211D}\\x{2124}"   \
    "\\x{2126}\\x{2128}\\x{212A}-\\x{212D}\\x{212F}-\\x{2134}\\x{2139}\\x{213C}-\\x{213F}"            \
    "\\x{2145}-\\x{2149}\\x{214E}\\x{2183}\\x{2184}\\x{2C00}-\\x{2C7B}\\x{2C7E}-\\x{2CE4}"            \
    "\\x{2CEB}-\\x{2CEE}\\x{2CF2}\\x{2CF3}\\x{A640}-\\x{A66D}\\x{A680}-\\x{A69B}\\x{A722}-\\x{A76F}"  \
    "\\x{A771}-\\x{A787}\\x{A78B}-\\x{A78E}\\x{AB70}-\\x{ABBF}\\x{FB00}-\\x{FB06}\\x{FB13}-\\x{FB17}" \
    "\\x{FF21}-\\x{FF3A}\\x{FF41}-\\x{FF5A}\\x{10400}-\\x{1044F}\\x{104B0}-\\x{104D3}"                \
    "\\x{104D8}-\\x{104FB}\\x{10C80}-\\x{10CB2}\\x{10CC0}-\\x{10CF2}\\x{118A0}-\\x{118DF}"            \
    "\\x{1E900}-\\x{1E943}"
#define WIDE_SIGNS "!-/:-~\\x{FF01}-\\x{FF0F}\\x{FF1A}-\\x{FF5E}\\x{2018}-\\x{201F}\\x{3000}-\\x{3002}"
#define EASTERN    "[\xe4\xb8\x80-\xe9\xbe\xa5\xe0\xa0\x80-\xe4\xb8\x80\xea\xb0\x80-\xed\x9f\xbf]+"

/* Expressions of Youtu's and Trinity's models for scripts without spaces, by Unicode blocks. They contain U+8C48, as
 * in llama.cpp, although U+F900 was probably meant. */
#define YOUTU_SCRIPTS                                                                                                \
    "[\\x{AC00}-\\x{D7A3}\\x{3131}-\\x{318E}]+|"                                                                     \
    "[\\x{FF01}\\x{2026}\\x{201C}\\x{201D}\\x{2018}\\x{2019}\\x{2014}\\x{FF1A}\\x{FF1B}\\x{FF0C}\\x{3001}-\\x{303F}" \
    "\\x{FE30}-\\x{FE4F}]+|[\\x{3105}-\\x{312F}]+|" CHINESE
#define TRINITY_SCRIPTS                                                                                \
    "[\\x{4E00}-\\x{9FFF}\\x{3400}-\\x{4DBF}\\x{8C48}-\\x{FAFF}\\x{3040}-\\x{30FF}\\x{FF65}-\\x{FF9F}" \
    "\\x{2F00}-\\x{2FDF}\\x{0E40}-\\x{0EFF}\\x{1780}-\\x{17FF}\\x{1000}-\\x{109F}\\x{AA60}-\\x{AA7F}"  \
    "\\x{A9E0}-\\x{A9FF}\\x{AC00}-\\x{D7AF}\\x{1100}-\\x{11FF}]+"

/* Bloom's expression: a piece also ends at Arabic, Chinese and Indian punctuation. */
#define BLOOM " ?[^(\\s|.,!?\xe2\x80\xa6\xe3\x80\x82\xef\xbc\x8c\xe3\x80\x81\xe0\xa5\xa4\xdb\x94\xd8\x8c)]+"

/* THREES cuts digits into groups of three, counted from the right. BOUND_THREES, which is Cohere's, does not cut digits
 * that are directly before a word. Both scan each run of digits once, while the published \d{1,3}(?=(?:\d{3})*\b) would
 * scan the run again at every digit. WORD lists the characters that continue a word after a digit: Oniguruma, the
 * reference implementation, sees no \b before them. */
#define WORD                                                                                                         \
    "[\\p{L}\\p{M}\\p{Nd}\\p{Nl}\\p{Pc}\\x{B2}\\x{B3}\\x{B9}\\x{BC}-\\x{BE}\\x{24B6}-\\x{24E9}\\x{1F130}-\\x{1F149}" \
    "\\x{1F150}-\\x{1F169}\\x{1F170}-\\x{1F189}]"
#define THREES(digit) "(?<!" digit ")" digit "{1,2}(?=(?:" digit "{3})*+(?!" digit "))|" digit "{3}"
#define BOUND_THREES  "(?<!\\d)\\d++(?=" WORD ")(*SKIP)(*FAIL)|" THREES("\\d")

/* THREES_ON replaces the published pattern (?=(\d{3})+(?!\d)). The published pattern matches the empty text before each
 * group of three digits, and so only marks where to cut. Here a match reaches from one cut to the next, so it may
 * contain characters other than digits. */
#define HEAD      "\\d{1,2}(?=(?:\\d{3})*+(?!\\d))"
#define THREES_ON "(?<!\\d)" HEAD "(*SKIP)(*FAIL)|\\d{3}(?:\\D++(?:" HEAD ")?)*+"

/* Kimi K2's expression. It is GPT-4o's, except that runs of Chinese characters are pieces of their own. HAN lists the
 * characters of that script, because older versions of PCRE2 have no name for it. */
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

static void space_rules(fr_tokenizer_source *source) {
    const fr_text space = text_of(" "), lower_block = text_of(FR_LOWER_BLOCK);
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

/* The next two functions set up the rules of SentencePiece's unigram models and of BERT's words. tokenizer_gguf.c adds
 * the settings in the file. */
static void unigram_rules(fr_tokenizer_source *source) {
    const fr_text lower_block = text_of(FR_LOWER_BLOCK);
    source->byte_fallback = true;
    source->pre_tokenizer = (fr_text_rules){
        .items = {{.kind = FR_RULE_REPLACE, .pattern = text_of(" "), .content = lower_block}},
        .count = 1,
    };
    source->decoder = (fr_text_rules){
        .items = {{.kind = FR_RULE_METASPACE, .pattern = lower_block, .first = true}},
        .count = 1,
    };
}

static void word_rules(fr_tokenizer_source *source) {
    source->inside_prefix = text_of(FR_INSIDE_WORD);
    source->max_word_characters = 100;
    source->normalizer = (fr_text_rules){
        .items = {{.kind = FR_RULE_CLEAN}, {.kind = FR_RULE_SPACE_CHINESE}},
        .count = 2,
    };
    source->pre_tokenizer = (fr_text_rules){
        .items = {{.kind = FR_RULE_SPLIT, .characters = FR_CHARACTERS_SPACE, .behavior = FR_SPLIT_REMOVED},
                  {.kind = FR_RULE_SPLIT, .characters = FR_CHARACTERS_PUNCTUATION, .behavior = FR_SPLIT_ISOLATED}},
        .count = 2,
    };
    source->decoder = (fr_text_rules){
        .items = {{.kind = FR_RULE_WORD_PIECE, .content = source->inside_prefix}},
        .count = 1,
    };
}

/* Sets up the rules of a kind that cuts texts at blanks into words and drops the blanks. Merging then works inside each
 * word. */
static void blank_rules(fr_tokenizer_source *source) {
    source->byte_fallback = source->loose_merges = true;
    source->pre_tokenizer = (fr_text_rules){
        .items = {{.kind = FR_RULE_SPLIT, .characters = FR_CHARACTERS_SPACE, .behavior = FR_SPLIT_REMOVED}},
        .count = 1,
    };
    source->decoder = (fr_text_rules){.items = {{.kind = FR_RULE_JOIN}}, .count = 1};
}

/* Sets up the patterns by which texts are cut into pieces. Merging then starts with the single bytes of each piece. */
static void byte_rules(const fr_pre_tokenizer *kind, fr_tokenizer_source *source) {
    source->byte_level = source->loose_merges = true;
    source->ignore_merges = kind->ignore_merges;
    source->unknown = (fr_text){0};
    source->normalizer = (fr_text_rules){.items = {{.kind = FR_RULE_NFC}}, .count = kind->composed};
    source->pre_tokenizer = (fr_text_rules){.count = 0};
    for (size_t i = 0; i < FR_PRE_PATTERNS_MAX && kind->patterns[i]; i++)
        source->pre_tokenizer.items[source->pre_tokenizer.count++] =
            (fr_text_rule){.kind = FR_RULE_SPLIT,
                           .pattern = text_of(kind->patterns[i]),
                           .regex = true,
                           .own = true,
                           .behavior = FR_SPLIT_ISOLATED};
    source->decoder = (fr_text_rules){.items = {{.kind = FR_RULE_BYTE_LEVEL}}, .count = 1};
}

void fr_pre_tokenizer_apply(const fr_pre_tokenizer *kind, fr_tokenizer_source *source) {
    source->model = kind->pieces;
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
     .pieces = FR_MODEL_SCORED_BPE,
     .ids = {.unknown = 0, .begin = 1, .end = 2, .part = -1, .some = true}},
    {.model = "t5",
     .names = {"default"},
     .rules = unigram_rules,
     .ends_unless_told = true,
     .pieces = FR_MODEL_UNIGRAM,
     .ids = {.unknown = 2, .begin = -1, .end = 1, .part = -1, .some = true}},
    {.model = "bert",
     .names = {"default", "jina-v2-en"},
     .rules = word_rules,
     .begins = true,
     .parts = true,
     .pieces = FR_MODEL_WORD_PIECE,
     .ids = {.unknown = 100, .begin = 101, .end = -1, .part = 102, .some = true}},
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
     .names = {"smollm", "starcoder", "refact", "codeshell", "exaone", "minerva-7b", "minerva", "mellum2"},
     .patterns = {"\\p{N}", GPT2}},
    {.model = "gpt2",
     .names = {"gpt-2", "gpt2", "jina-es", "jina-de", "jina-v2-es", "jina-v2-de", "jina-v1-en", "jina-v2-code",
               "roberta-bpe", "phi-2", "gigachat", "a.x-4.0", "mellum", "jais", "trillion", "granite-docling",
               "exaone4"},
     .patterns = {GPT2}},
    {.model = "gpt2", .names = {"olmo", "mpt", "modern-bert"}, .patterns = {GPT2}, .composed = true},
    {.model = "gpt2", .names = {"command-r"}, .patterns = {"\\p{N}", GPT2}, .composed = true},
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
     .names = {"deepseek-v3", "deepseek-r1", "hunyuan-dense", "joyai-llm", "hy_v4"},
     .patterns = {"\\p{N}{1,3}", CHINESE, DEEPSEEK},
     .architectures = {"deepseek2"},
     .ends = deepseek_ends},
    {.model = "gpt2", .names = {"stablelm2", "hunyuan", "solar-open", "grok-2"}, .patterns = {PIECES("\\p{N}")}},
    {.model = "gpt2", .names = {"dbrx", "smaug-bpe"}, .patterns = {PIECES("\\p{N}{1,3}")}},
    {.model = "gpt2",
     .names = {"gpt-4o", "o200k", "llama4", "kanana2", "talkie", "minimax-m2"},
     .patterns = {CASED(SUFFIXES "?", "\\p{N}{1,3}")}},
    {.model = "gpt2",
     .names = {"tekken"},
     .patterns = {CASED("", "\\p{N}")},
     .ignore_merges = true,
     .begins_unless_told = true},
    {.model = "gpt2",
     .names = {"tiny_aya", "cohere2moe"},
     .patterns = {BOUND_THREES, CASED(SUFFIXES "?", "\\p{N}{1,3}")}},
    {.model = "gpt2",
     .names = {"granite-embed-multi-97m"},
     .patterns = {CASED(SUFFIXES "?", "\\p{N}{1,3}")},
     .ignore_merges = true},
    {.model = "gpt2",
     .names = {"youtu"},
     .patterns = {YOUTU_SCRIPTS, CASED(SUFFIXES "?", "\\p{N}")},
     .ignore_merges = true},
    {.model = "gpt2", .names = {"afmoe"}, .patterns = {THREES("\\p{N}"), TRINITY_SCRIPTS, DEEPSEEK}},
    {.model = "gpt2", .names = {"kimi-k2"}, .patterns = {KIMI}},
    {.model = "gpt2",
     .names = {"spark2_5"},
     .patterns = {"\\p{N}{1,3}", CHINESE, MARKED " ?[\\p{P}\\p{S}]+|[\\r\\n]|" BLANKS, "\\p{N}"}},
    {.model = "gpt2",
     .names = {"deepseek-llm"},
     .patterns = {"[\\r\\n]", "\\s?[" CASED_LETTERS "]+", "\\s?[" WIDE_SIGNS "]+", "(?<!\\s)\\s++$", EASTERN,
                  "\\p{N}"}},
    {.model = "gpt2",
     .names = {"deepseek-coder"},
     .patterns = {"[\\r\\n]", "\\s?\\p{L}+", "\\s?\\p{P}+", EASTERN, "\\p{N}"}},
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
    {.model = "gpt2", .names = {"superbpe"}, .patterns = {"\\p{N}+", THREES_ON}},
    {.model = "gpt2", .names = {"viking"}, .patterns = {BLOOM, "\\p{N}"}},
    {.model = "gpt2", .names = {"bloom", "poro-chat", "poro", "gpt3-finnish"}, .patterns = {BLOOM}},
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
    {.model = "gpt2", .names = {"gemma4", "granite-embed-multi-311m"}, .rules = gemma4_rules, .begins = true},
    {.model = "gpt2", .names = {"sarvam-moe"}, .rules = space_rules},
    {.model = "whitespace", .names = {"whitespace"}, .rules = blank_rules},
    {.model = "gpt2", .names = {"default"}, .patterns = {"[\\p{P}$+<=>^~|]+", GPT2, "\\p{N}+", "[0-9][0-9][0-9]"}},
};

const fr_pre_tokenizer *fr_pre_tokenizer_at(size_t index) {
    return index < COUNT_OF(kinds) ? &kinds[index] : NULL;
}

static bool has_name(const fr_pre_tokenizer *kind, fr_text name) {
    for (size_t i = 0; i < FR_PRE_NAMES_MAX && kind->names[i]; i++)
        if (fr_text_is(name, kind->names[i])) return true;
    return false;
}

bool fr_pre_tokenizer_has_model(fr_text model) {
    for (size_t i = 0; i < COUNT_OF(kinds); i++)
        if (fr_text_is(model, kinds[i].model)) return true;
    return false;
}

const fr_pre_tokenizer *fr_pre_tokenizer_named(fr_text model, fr_text name) {
    for (size_t i = 0; i < COUNT_OF(kinds); i++)
        if (fr_text_is(model, kinds[i].model) && has_name(&kinds[i], name)) return &kinds[i];
    return NULL;
}

const fr_pre_tokenizer *fr_pre_tokenizer_find(fr_text model, fr_text name) {
    const fr_pre_tokenizer *named = fr_pre_tokenizer_named(model, name), *only = NULL;
    size_t of_model = 0;
    if (named) return named;
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        if (!fr_text_is(model, kinds[i].model)) continue;
        only = &kinds[i];
        of_model++;
    }
    return of_model == 1 ? only : NULL;
}

/* Returns true if an earlier kind of the table, for another model, has the same name. */
static bool is_repeated(size_t kind, const char *name) {
    for (size_t i = 0; i < kind; i++)
        if (has_name(&kinds[i], text_of(name))) return true;
    return false;
}

const char *fr_pre_tokenizer_word(size_t index) {
    for (size_t i = 0; i < COUNT_OF(kinds); i++)
        for (size_t n = 0; n < FR_PRE_NAMES_MAX && kinds[i].names[n]; n++)
            if (!is_repeated(i, kinds[i].names[n]) && index-- == 0) return kinds[i].names[n];
    return NULL;
}

void fr_pre_tokenizer_list(fr_text model, char *line, size_t size) {
    size_t length = 0;
    line[0] = '\0';
    for (size_t i = 0; i < COUNT_OF(kinds) && length < size; i++)
        if (fr_text_is(model, kinds[i].model))
            length += (size_t)snprintf(line + length, size - length, "%s%s", length ? ", " : "", kinds[i].names[0]);
}
