/* Chooses the type of each tensor of a quantized model, as a function of names and shapes.
 *
 * In: the requested type, overrides, and the list of tensors. Out: the tensors' types. The mixture is llama-quantize's,
 * so a file whose name has a type, such as Q4_K_M, is as large as llama-quantize's file of that name.
 *
 *     vectors, norms, the router, kernels of short convolutions        F32
 *     an encoder's positions, token types, dense layers                 F32
 *     token ids                         I32 (token_ordering), I64 (d2t)
 *     per_layer_model_proj, centroids   the source's own float type; small
 *     token_embd that is also the head, output, per_layer_token_embd    Q6_K for types below 8 bits
 *     attn_v, attn_qkv, attn_kv_b, ffn_down, attn_output                more bits, in all layers or some: see below
 *         if MXFP4 is requested: all but experts   Q8_0
 *         other matrices                    the requested type
 *
 * pure: every matrix except the router gets the requested type. */
#include "src/convert/quantize_types.h"

#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "base/word_list.h"
#include "quant/encode.h"

/* --------------------------------------------------------------------------------------------------- words of types */

fr_status fr_type_read(const char *word, fr_dtype *type) {
    *type = fr_written_from_word(word);
    if (*type < FR_DTYPE_COUNT) return FR_OK;
    return fr_fail(FR_USAGE, "type %.40s can't be written: %s can", word, fr_list_words(fr_written_word).text);
}

/* The names of llama-quantize's mixtures, and their numbers in general.file_type. If a type has several mixtures, its
 * name alone stands for its mixture M. */
static const struct {
    const char *word;
    fr_dtype type;
    fr_mixture mixture;
    uint32_t number;
} mixtures[] = {
    {"q2_k_s", FR_Q2_K, FR_MIXTURE_S, 21},     {"q3_k_s", FR_Q3_K, FR_MIXTURE_S, 11},
    {"q3_k_m", FR_Q3_K, FR_MIXTURE_M, 12},     {"q3_k_l", FR_Q3_K, FR_MIXTURE_L, 13},
    {"q4_k_s", FR_Q4_K, FR_MIXTURE_S, 14},     {"q4_k_m", FR_Q4_K, FR_MIXTURE_M, 15},
    {"q5_k_s", FR_Q5_K, FR_MIXTURE_S, 16},     {"q5_k_m", FR_Q5_K, FR_MIXTURE_M, 17},
    {"mxfp4_moe", FR_MXFP4, FR_MIXTURE_M, 38},
};
#define MIXTURES (sizeof mixtures / sizeof *mixtures)

const char *fr_mixture_word(size_t index) {
    return index < MIXTURES ? mixtures[index].word : NULL;
}

/* Reads the name of a mixture, or of a type. */
static fr_status read_mixture(const char *word, fr_type_choice *choice) {
    for (size_t i = 0; i < MIXTURES; i++) {
        if (strcasecmp(word, mixtures[i].word) != 0) continue;
        choice->type = mixtures[i].type;
        choice->mixture = mixtures[i].mixture;
        return FR_OK;
    }
    return fr_type_read(word, &choice->type);
}

/* Reads the type of the embeddings or of the head. word NULL: the mixture decides the type. */
static fr_status read_optional(const char *word, fr_dtype *type) {
    *type = FR_DTYPE_COUNT;
    return word ? fr_type_read(word, type) : FR_OK;
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
    if (choice->rule_count > FR_TYPE_RULES_MAX)
        return fr_fail(FR_USAGE, "%zu overrides, and at most %d are read", choice->rule_count, FR_TYPE_RULES_MAX);
    for (size_t i = 0; i < choice->rule_count; i++) FR_TRY(read_rule(how->overrides[i], &choice->rules[i]));
    FR_TRY(read_optional(how->output_type, &choice->output));
    FR_TRY(read_optional(how->embedding_type, &choice->embedding));
    return read_mixture(how->type, choice);
}

uint32_t fr_file_type(const fr_type_choice *choice) {
    static const uint32_t numbers[FR_KERNEL_TYPES] = {
        [FR_F32] = 0,     [FR_F16] = 1,   [FR_BF16] = 32,   [FR_Q8_0] = 7,     [FR_Q4_0] = 2,
        [FR_Q4_1] = 3,    [FR_Q5_0] = 8,  [FR_Q5_1] = 9,    [FR_IQ4_NL] = 25,  [FR_Q2_K] = 10,
        [FR_IQ4_XS] = 30, [FR_Q6_K] = 18, [FR_MXFP4] = 38,  [FR_TQ1_0] = 36,   [FR_TQ2_0] = 37,
        [FR_Q1_0] = 40,   [FR_Q2_0] = 41, [FR_PQ2_0] = 141, [FR_PTQ1_0] = 143,
    };
    fr_mixture mixture = choice->pure ? FR_MIXTURE_S : choice->mixture; /* a pure type is closest to mixture S */
    for (size_t i = 0; i < MIXTURES; i++)
        if (mixtures[i].type == choice->type && mixtures[i].mixture == mixture) return mixtures[i].number;
    return numbers[choice->type];
}

/* --------------------------------------------------------------------------------------------------------- choosing */

static bool ends_with(const char *name, const char *end) {
    size_t length = strlen(name), tail = strlen(end);
    return length >= tail && strcmp(name + length - tail, end) == 0;
}

static bool is(const char *name, const char *other) {
    return strcmp(name, other) == 0;
}

/* Gives the number in "blk.N.", 0 for other names. */
static size_t layer_of(const char *name) {
    return strncmp(name, "blk.", 4) == 0 ? strtoul(name + 4, NULL, 10) : 0;
}

/* Returns true for the first and the last eighth of the layers, and for every third layer between them. */
static bool gets_more_bits(size_t layer, size_t layers) {
    size_t eighth = layers / 8;
    return layer < eighth || layer >= 7 * layers / 8 || (layer - eighth) % 3 == 2;
}

/* Returns true for a matrix that may be quantized; vectors, norms and routers keep their precision. */
static bool is_matrix(const fr_output *output) {
    const char *name = output->name;
    return output->dims >= 2 && ends_with(name, "weight") && !ends_with(name, "_norm.weight") &&
           !strstr(name, "ffn_gate_inp") && !strstr(name, "ssm_conv1d") && !is(name, "conf_proj.weight") &&
           !is(name, "position_embd.weight") && !is(name, "token_types.weight") && strncmp(name, "dense_", 6) != 0;
}

static bool is_embedding(const char *name) {
    return is(name, "token_embd.weight") || is(name, "per_layer_token_embd.weight");
}

static bool is_table(const char *name, bool tied) {
    if (is(name, "output.weight")) return true;
    return tied && is_embedding(name);
}

/* Returns true for small tensors that keep their type, because the values of all later layers depend on them. */
static bool stays(const char *name) {
    return strstr(name, "per_layer_model_proj") || strstr(name, "centroids");
}

/* Returns true for matrices of values, and for joined matrices of queries, keys and values. */
static bool is_v(const char *name) {
    return strstr(name, "attn_v.weight") || strstr(name, "attn_qkv.weight") || strstr(name, "attn_kv_b.weight");
}

/* Facts about the model that decide a tensor's type. */
typedef struct layout {
    bool tied; /* token_embd is also the head */
    /* counts of attn_v matrices. v_index: the earlier ones that no rule names; v_count: all of them */
    size_t v_index, v_count;
    size_t down_index; /* number of the earlier ffn_down matrices that no rule names */
    size_t experts;    /* number of experts of a mixture; 0: the model is no mixture */
    bool used[FR_TYPE_RULES_MAX];
} layout;

/* Returns true for mixtures of 8 experts. In these models attention is small compared with the experts, so attention
 * may have more bits. */
static bool few_experts(const layout *l) {
    return l->experts == 8;
}

static bool is_iq4(fr_dtype type) {
    return type == FR_IQ4_NL || type == FR_IQ4_XS;
}

static fr_dtype v_type(const fr_type_choice *choice, const fr_outputs *outputs, const layout *l) {
    fr_dtype type = choice->type;
    bool shared = outputs->gqa >= 4, small = choice->mixture == FR_MIXTURE_S, large = choice->mixture == FR_MIXTURE_L;
    bool more = gets_more_bits(l->v_index, l->v_count);
    if (few_experts(l)) return FR_Q8_0;
    if (type == FR_Q2_K)
        type = shared ? FR_Q4_K : small ? type : FR_Q3_K;
    else if (type == FR_Q3_K)
        type = small ? type : large || l->v_index < 2 ? FR_Q5_K : FR_Q4_K;
    else if (type == FR_Q4_K && small)
        type = l->v_index < 4 ? FR_Q5_K : type;
    else if ((type == FR_Q4_K || type == FR_Q5_K) && !small)
        type = more ? FR_Q6_K : type;
    else if (is_iq4(type) && shared)
        type = FR_Q5_K;
    /* true for a 70B model, which is known by its number of layers */
    bool wide = outputs->layers == 80 && l->experts == 0 && outputs->gqa > 1;
    return wide && (type == FR_Q3_K || type == FR_Q4_K) ? FR_Q5_K : type;
}

static fr_dtype down_type(const fr_type_choice *choice, size_t layer, size_t layers) {
    fr_dtype type = choice->type;
    bool small = choice->mixture == FR_MIXTURE_S, large = choice->mixture == FR_MIXTURE_L, early = layer < layers / 8;
    switch (type) {
    case FR_Q2_K: return !small ? FR_Q3_K : early ? FR_Q4_K : type;
    case FR_Q3_K: return small ? type : large || layer < layers / 16 ? FR_Q5_K : FR_Q4_K;
    case FR_Q4_K:
        if (small) return early ? FR_Q5_K : type;
        return gets_more_bits(layer, layers) ? FR_Q6_K : type;
    case FR_Q5_K: return !small && gets_more_bits(layer, layers) ? FR_Q6_K : type;
    case FR_IQ4_NL:
    case FR_IQ4_XS: return early && !choice->weighted ? FR_Q5_K : type;
    case FR_Q4_0: return early && choice->weighted ? FR_Q4_1 : type;
    case FR_Q5_0: return early && choice->weighted ? FR_Q5_1 : type;
    default: return type;
    }
}

static fr_dtype attention_output_type(const fr_type_choice *choice, const layout *l) {
    fr_dtype type = choice->type;
    bool small = choice->mixture == FR_MIXTURE_S, large = choice->mixture == FR_MIXTURE_L;
    if (few_experts(l)) {
        bool more = (type == FR_Q2_K && !small) || (type == FR_Q3_K && !large) || type == FR_Q4_K || is_iq4(type);
        return more ? FR_Q5_K : type;
    }
    if (type == FR_Q2_K && !small) return FR_Q3_K;
    if (type == FR_Q3_K && !small) return large ? FR_Q5_K : FR_Q4_K;
    return type;
}

static fr_dtype mixed_type(const fr_type_choice *choice, const fr_outputs *outputs, const char *name, layout *l) {
    if (is_embedding(name)) return choice->type;
    if (is_v(name)) {
        fr_dtype type = v_type(choice, outputs, l);
        l->v_index++;
        return type;
    }
    if (strstr(name, "attn_k.weight")) return few_experts(l) ? FR_Q8_0 : choice->type;
    if (strstr(name, "attn_q.weight")) return choice->type;
    if (strstr(name, "attn_output.weight")) return attention_output_type(choice, l);
    if (strstr(name, "ffn_down"))
        return down_type(choice, l->experts > 0 ? layer_of(name) : l->down_index++, outputs->layers);
    return choice->type;
}

/* Gives a matrix the type `type`. If the type's blocks do not fill the matrix's rows, the matrix gets the type that
 * llama-quantize uses instead. */
static void fit(fr_output *output, fr_dtype type) {
    static const fr_dtype fallback[FR_KERNEL_TYPES] = {
        [FR_Q2_K] = FR_Q4_0,  [FR_Q3_K] = FR_Q4_0,     [FR_Q4_K] = FR_Q5_0,   [FR_Q5_K] = FR_Q5_1,
        [FR_Q6_K] = FR_Q8_0,  [FR_IQ4_XS] = FR_IQ4_NL, [FR_Q1_0] = FR_Q4_0,   [FR_Q2_0] = FR_Q4_0,
        [FR_PQ2_0] = FR_Q4_0, [FR_TQ1_0] = FR_Q4_0,    [FR_PTQ1_0] = FR_Q4_0, [FR_TQ2_0] = FR_Q4_0,
    };
    uint64_t cols = output->shape[output->dims - 1];
    output->type = output->wanted = type;
    if (cols % fr_dtype_block(type) == 0) return;
    if (fr_dtype_block(type) > 32) output->type = fallback[type];
    if (cols % fr_dtype_block(output->type) != 0) output->type = FR_F16;
}

static uint64_t bytes_of(const fr_output *output) {
    return fr_output_rows(output) * fr_dtype_row_bytes(output->type, (size_t)output->shape[output->dims - 1]);
}

void fr_note_fallbacks(const fr_outputs *outputs, void (*note)(const char *line)) {
    size_t counts[FR_KERNEL_TYPES][FR_KERNEL_TYPES] = {0}, count = 0, length = 0;
    uint64_t bytes = 0, all = 0;
    char pairs[256] = "", line[480];
    for (size_t i = 0; i < outputs->count; i++) {
        const fr_output *output = &outputs->items[i];
        all += bytes_of(output);
        if (output->type >= FR_KERNEL_TYPES || output->type == output->wanted) continue;
        counts[output->wanted][output->type]++;
        bytes += bytes_of(output);
        count++;
    }
    if (count == 0) return;
    for (size_t from = 0; from < FR_KERNEL_TYPES; from++)
        for (size_t to = 0; to < FR_KERNEL_TYPES && length < sizeof pairs; to++)
            if (counts[from][to])
                length += (size_t)snprintf(pairs + length, sizeof pairs - length, "%s%zu %s instead of %s",
                                           length ? ", " : "", counts[from][to], fr_dtype_name((fr_dtype)to),
                                           fr_dtype_name((fr_dtype)from));
    snprintf(line, sizeof line,
             "%zu matrices have rows that are no multiple of their type's block, and are of a larger type: %s; they "
             "take %llu of the file's %llu bytes of tensors",
             count, pairs, (unsigned long long)bytes, (unsigned long long)all);
    note(line);
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

/* Gives the type of a matrix that no rule names. */
static fr_dtype matrix_type(const fr_type_choice *choice, const fr_outputs *outputs, const fr_output *output,
                            layout *l) {
    fr_dtype own = output->source ? output->source->type : FR_F32, type = choice->type;
    if (choice->pure || type < FR_FLOAT_TYPES) return type;
    if (stays(output->name) && own < FR_FLOAT_TYPES) return own;
    if (type == FR_MXFP4 && !is_table(output->name, l->tied)) return strstr(output->name, "_exps.") ? type : FR_Q8_0;
    if (!is_table(output->name, l->tied)) return mixed_type(choice, outputs, output->name, l);
    if (choice->output < FR_DTYPE_COUNT) return choice->output;
    bool eight = type == FR_Q8_0 || type == FR_MXFP4 || output->shape[output->dims - 1] % fr_dtype_block(type);
    return eight ? FR_Q8_0 : FR_Q6_K;
}

/* Returns the type that the user requested for the embeddings or the head; FR_DTYPE_COUNT if none was requested. For
 * the per-layer embeddings a rule takes precedence. */
static fr_dtype table_type(const fr_type_choice *choice, const char *name, const fr_type_rule *rule) {
    if (is(name, "token_embd.weight") || (is_embedding(name) && !rule)) return choice->embedding;
    return is(name, "output.weight") ? choice->output : FR_DTYPE_COUNT;
}

static fr_status choose(const fr_type_choice *choice, const fr_outputs *outputs, fr_output *output, layout *l) {
    if (output->source && output->source->type >= FR_I32) {
        output->type = output->wanted = is(output->name, "d2t") ? FR_I64 : FR_I32;
        return FR_OK;
    }
    if (!is_matrix(output)) {
        output->type = output->wanted = FR_F32;
        return FR_OK;
    }
    const fr_type_rule *rule;
    FR_TRY(find_rule(choice, output->name, &rule));
    fr_dtype type = table_type(choice, output->name, rule);
    if (type == FR_DTYPE_COUNT) {
        if (rule) l->used[rule - choice->rules] = true;
        type = rule ? rule->type : matrix_type(choice, outputs, output, l);
    }
    fit(output, type);
    return FR_OK;
}

/* Counts the matrices in a stack of experts; 0 if there is no stack. */
static size_t count_experts(const fr_outputs *outputs) {
    for (size_t i = 0; i < outputs->count; i++)
        if (strstr(outputs->items[i].name, "ffn_down_exps.weight")) return (size_t)outputs->items[i].shape[0];
    return 0;
}

fr_status fr_choose_types(const fr_type_choice *choice, fr_outputs *outputs) {
    layout l = {.tied = true, .experts = count_experts(outputs)};
    for (size_t i = 0; i < outputs->count; i++) {
        l.tied &= !is(outputs->items[i].name, "output.weight");
        l.v_count += is_v(outputs->items[i].name);
    }
    for (size_t i = 0; i < outputs->count; i++) FR_TRY(choose(choice, outputs, &outputs->items[i], &l));
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
        output->type = output->wanted = FR_F32;
        if (is_matrix(output)) fit(output, stays(output->name) ? FR_F16 : type);
    }
}
