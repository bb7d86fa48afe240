/* Which type each tensor of a quantized model gets: a function of names and shapes.
 *
 * In: the type that was asked for, overrides, the list of tensors. Out: their types. The mixture is llama-quantize's,
 * so that files of a name are of a size; but for what it does to models of exactly 8 experts, whose attn_k, attn_v and
 * attn_output it gives more bits.
 *
 *     vectors, norms, the router, kernels of short convolutions        F32
 *     token ids                         I32 (token_ordering), I64 (d2t)
 *     per_layer_model_proj, centroids   the source's own float type; small
 *     token_embd that is also the head, output, per_layer_token_embd    Q6_K for types below 8 bits
 *     attn_v, attn_qkv, ffn_down        Q6_K in half of the layers for Q4_K and Q5_K (their "M" mixture);
 *                                       Q5_K for IQ4_NL: attn_v where heads share it, ffn_down in the first layers;
 *                                       and in the first layers for Q4_K_S
 *     all but experts for MXFP4         Q8_0
 *     other matrices                    the type asked for
 *
 * pure: every matrix but the router gets the type asked for. */
#include "src/convert/quantize_types.h"

#include <regex.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "base/word_list.h"
#include "quant/encode.h"

/* ---------------------------------------------------------------------------------------------------------- reading */

fr_status fr_type_read(const char *word, fr_dtype *type) {
    *type = fr_written_from_word(word);
    if (*type < FR_DTYPE_COUNT) return FR_OK;
    return fr_fail(FR_USAGE, "type %.40s is none of a tensor that is written: %s are", word,
                   fr_list_words(fr_written_word).text);
}

/* llama-quantize's names of mixtures. */
static const struct {
    const char *word;
    fr_dtype type;
    bool small;
} mixtures[] = {
    {"q4_k_m", FR_Q4_K, false}, {"q4_k_s", FR_Q4_K, true}, {"q5_k_m", FR_Q5_K, false}, {"q5_k_s", FR_Q5_K, true}};
#define MIXTURES (sizeof mixtures / sizeof *mixtures)

const char *fr_mixture_word(size_t index) {
    return index < MIXTURES ? mixtures[index].word : NULL;
}

/* The name of a mixture, or of a type. */
static fr_status read_mixture(const char *word, fr_type_choice *choice) {
    for (size_t i = 0; i < MIXTURES; i++) {
        if (strcasecmp(word, mixtures[i].word) != 0) continue;
        choice->type = mixtures[i].type;
        choice->small = mixtures[i].small;
        return FR_OK;
    }
    return fr_type_read(word, &choice->type);
}

static fr_status compile(const fr_type_rule *rule, regex_t *compiled) {
    char *pattern = strndup(rule->pattern, rule->length), reason[128];
    if (!pattern) return fr_fail_memory("a pattern", rule->length);
    int code = regcomp(compiled, pattern, REG_EXTENDED | REG_NOSUB);
    free(pattern);
    if (code == 0) return FR_OK;
    regerror(code, compiled, reason, sizeof reason);
    return fr_fail(FR_USAGE, "pattern %.*s: %s", (int)rule->length, rule->pattern, reason);
}

static fr_status read_rule(const char *text, fr_type_rule *rule) {
    const char *equals = strrchr(text, '=');
    if (!equals || equals == text || equals - text > 256)
        return fr_fail(FR_USAGE, "%.40s is not PATTERN=TYPE, as in attn_v=q8_0", text);
    *rule = (fr_type_rule){.pattern = text, .length = (size_t)(equals - text)};
    FR_TRY(fr_type_read(equals + 1, &rule->type));
    regex_t compiled;
    FR_TRY(compile(rule, &compiled));
    regfree(&compiled);
    return FR_OK;
}

fr_status fr_type_choice_read(fr_type_choice *choice, const fr_lab_quantization *how) {
    *choice = (fr_type_choice){.pure = how->pure, .rule_count = how->override_count};
    if (choice->rule_count > FR_MAX_TYPE_RULES)
        return fr_fail(FR_USAGE, "%zu overrides, and at most %d are read", choice->rule_count, FR_MAX_TYPE_RULES);
    for (size_t i = 0; i < choice->rule_count; i++) FR_TRY(read_rule(how->overrides[i], &choice->rules[i]));
    return read_mixture(how->type, choice);
}

uint32_t fr_file_type(const fr_type_choice *choice) {
    static const uint32_t numbers[FR_KERNEL_TYPES] = {
        [FR_F32] = 0,  [FR_F16] = 1,  [FR_BF16] = 32,   [FR_Q8_0] = 7,  [FR_Q4_0] = 2,  [FR_Q4_1] = 3,
        [FR_Q5_0] = 8, [FR_Q5_1] = 9, [FR_IQ4_NL] = 25, [FR_Q4_K] = 15, [FR_Q5_K] = 17, [FR_Q6_K] = 18,
        [FR_MXFP4] = 38,
    };
    bool mixed = choice->type == FR_Q4_K || choice->type == FR_Q5_K; /* pure is nearer to their "S" mixture */
    return numbers[choice->type] - (mixed && (choice->pure || choice->small));
}

/* --------------------------------------------------------------------------------------------------------- choosing */

static bool ends_with(const char *name, const char *end) {
    size_t length = strlen(name), tail = strlen(end);
    return length >= tail && strcmp(name + length - tail, end) == 0;
}

static bool is(const char *name, const char *other) {
    return strcmp(name, other) == 0;
}

/* The number in "blk.N.", 0 in other names. */
static size_t layer_of(const char *name) {
    return strncmp(name, "blk.", 4) == 0 ? strtoul(name + 4, NULL, 10) : 0;
}

/* The first and the last eighth of the layers, and every third between. */
static bool gets_more_bits(size_t layer, size_t layers) {
    size_t eighth = layers / 8;
    return layer < eighth || layer >= 7 * layers / 8 || (layer - eighth) % 3 == 2;
}

/* What keeps its precision whatever is asked for. */
static bool is_matrix(const fr_output *output) {
    const char *name = output->name;
    return output->dims >= 2 && ends_with(name, "weight") && !ends_with(name, "_norm.weight") &&
           !strstr(name, "ffn_gate_inp") && !strstr(name, "ssm_conv1d");
}

static bool is_table(const char *name, bool tied) {
    if (is(name, "output.weight")) return true;
    return tied && (is(name, "token_embd.weight") || is(name, "per_layer_token_embd.weight"));
}

/* Small, and read by everything after it. */
static bool stays(const char *name) {
    return strstr(name, "per_layer_model_proj") || strstr(name, "centroids");
}

/* Values, or what holds them beside queries and keys. */
static bool is_v(const char *name) {
    return strstr(name, "attn_v.weight") || strstr(name, "attn_qkv.weight");
}

/* What the choice for one tensor depends on beyond it. */
typedef struct layout {
    bool tied;               /* token_embd is the head */
    size_t v_index, v_count; /* how many attn_v came before, and are there */
    bool used[FR_MAX_TYPE_RULES];
} layout;

static fr_dtype mixed_type(const fr_type_choice *choice, const fr_outputs *outputs, const char *name,
                           const layout *l) {
    fr_dtype type = choice->type;
    size_t layer = layer_of(name), layers = outputs->layers;
    bool v = is_v(name), down = strstr(name, "ffn_down") != NULL;
    if (choice->small) {
        bool more = type == FR_Q4_K && ((v && l->v_index < 4) || (down && layer < layers / 8));
        return more ? FR_Q5_K : type;
    }
    if (type == FR_Q4_K || type == FR_Q5_K) {
        bool more = (v && gets_more_bits(l->v_index, l->v_count)) || (down && gets_more_bits(layer, layers));
        return more ? FR_Q6_K : type;
    }
    if (type == FR_IQ4_NL && ((v && outputs->gqa >= 4) || (down && layer < layers / 8))) return FR_Q5_K;
    return type;
}

/* A type whose blocks fill rows of cols values: this one, or what llama-quantize takes in its place. */
static fr_dtype fitting(fr_dtype type, uint64_t cols) {
    static const fr_dtype fallback[FR_KERNEL_TYPES] = {[FR_Q4_K] = FR_Q5_0, [FR_Q5_K] = FR_Q5_1, [FR_Q6_K] = FR_Q8_0};
    if (cols % fr_dtype_block(type) == 0) return type;
    fr_dtype smaller = fr_dtype_block(type) > 32 ? fallback[type] : type;
    return cols % fr_dtype_block(smaller) == 0 ? smaller : FR_F16;
}

static fr_status find_rule(const fr_type_choice *choice, const char *name, const fr_type_rule **found) {
    *found = NULL;
    for (size_t i = 0; i < choice->rule_count && !*found; i++) {
        regex_t compiled;
        FR_TRY(compile(&choice->rules[i], &compiled));
        if (regexec(&compiled, name, 0, NULL, 0) == 0) *found = &choice->rules[i];
        regfree(&compiled);
    }
    return FR_OK;
}

/* The type of a matrix that no override names. */
static fr_dtype matrix_type(const fr_type_choice *choice, const fr_outputs *outputs, const fr_output *output,
                            const layout *l) {
    fr_dtype own = output->source ? output->source->type : FR_F32, type = choice->type;
    if (choice->pure || type < FR_FLOAT_TYPES) return type;
    if (stays(output->name) && own < FR_FLOAT_TYPES) return own;
    if (type == FR_MXFP4) return strstr(output->name, "_exps.") ? type : FR_Q8_0;
    if (!is_table(output->name, l->tied)) return mixed_type(choice, outputs, output->name, l);
    return type == FR_Q8_0 || output->shape[output->dims - 1] % fr_dtype_block(type) ? FR_Q8_0 : FR_Q6_K;
}

static fr_status choose(const fr_type_choice *choice, const fr_outputs *outputs, fr_output *output, layout *l) {
    if (output->source && output->source->type >= FR_I32) {
        output->type = is(output->name, "d2t") ? FR_I64 : FR_I32;
        return FR_OK;
    }
    if (!is_matrix(output)) {
        output->type = FR_F32;
        return FR_OK;
    }
    const fr_type_rule *rule;
    FR_TRY(find_rule(choice, output->name, &rule));
    if (rule) l->used[rule - choice->rules] = true;
    fr_dtype type = rule ? rule->type : matrix_type(choice, outputs, output, l);
    output->type = fitting(type, output->shape[output->dims - 1]);
    return FR_OK;
}

fr_status fr_choose_types(const fr_type_choice *choice, fr_outputs *outputs) {
    layout l = {.tied = true};
    for (size_t i = 0; i < outputs->count; i++) {
        l.tied &= !is(outputs->items[i].name, "output.weight");
        l.v_count += is_v(outputs->items[i].name);
    }
    for (size_t i = 0; i < outputs->count; i++) {
        FR_TRY(choose(choice, outputs, &outputs->items[i], &l));
        l.v_index += is_v(outputs->items[i].name);
    }
    for (size_t i = 0; i < choice->rule_count; i++)
        if (!l.used[i])
            return fr_fail(FR_USAGE, "pattern %.*s decides no matrix's type: no name fits, or others come first",
                           (int)choice->rules[i].length, choice->rules[i].pattern);
    return FR_OK;
}

void fr_choose_plain_types(fr_dtype type, fr_outputs *outputs) {
    for (size_t i = 0; i < outputs->count; i++) {
        fr_output *output = &outputs->items[i];
        if (output->values) continue;
        if (!is_matrix(output)) output->type = FR_F32;
        else output->type = stays(output->name) ? FR_F16 : fitting(type, output->shape[output->dims - 1]);
    }
}
