/* Reads a peft adapter's configuration: see adapter.h.
 *
 * Source: peft 0.18, tuners/lora/config.py, and get_pattern_key of utils/other.py. */
#include <jansson.h>
#include <math.h>
#include <regex.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "formats/json.h"
#include "src/engine/model/adapter.h"

enum { CONFIG_BYTES = 1 << 22, PATTERN_MAX = 256, PATTERNS_MAX = 1 << 14 };

/* Members of the configuration that would change what is computed. Each must be missing, null, false or empty. */
static const char *const refused[] = {"use_dora",     "lora_bias",         "modules_to_save",
                                      "use_qalora",   "layer_replication", "trainable_token_indices",
                                      "arrow_config", "target_parameters", "alora_invocation_tokens",
                                      "use_bdlora"};

/* Ways of initializing a and b that also change the model's own weights, so that the adapter alone is not enough. */
static const char *const changing[] = {"pissa", "olora", "corda", "loftq", "lora_ga"};

static bool is_empty(const json_t *value) {
    return !value || json_is_null(value) || json_is_false(value) || (json_is_array(value) && !json_array_size(value)) ||
           (json_is_object(value) && !json_object_size(value)) || (json_is_string(value) && !json_string_length(value));
}

static fr_status refuse_others(const json_t *root, const char *where) {
    const char *type, *bias, *init;
    FR_TRY(fr_json_text(root, "peft_type", where, &type));
    if (type && strcmp(type, "LORA") != 0)
        return fr_fail(FR_UNBUILT, "%s: peft_type \"%s\" is not built, only LORA", where, type);
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (!is_empty(json_object_get(root, refused[i])))
            return fr_fail(FR_UNBUILT, "%s: \"%s\" is not built", where, refused[i]);
    FR_TRY(fr_json_text(root, "bias", where, &bias));
    if (bias && strcmp(bias, "none") != 0)
        return fr_fail(FR_UNBUILT, "%s: \"bias\" \"%s\" is not built, only none", where, bias);
    if (!json_is_string(json_object_get(root, "init_lora_weights"))) return FR_OK;
    FR_TRY(fr_json_text(root, "init_lora_weights", where, &init));
    for (size_t i = 0; i < sizeof changing / sizeof *changing; i++)
        if (strncmp(init, changing[i], strlen(changing[i])) == 0)
            return fr_fail(FR_UNBUILT,
                           "%s: \"init_lora_weights\" \"%s\" also changes the model's own weights, which is not built: "
                           "save it as a plain LoRA",
                           where, init);
    return FR_OK;
}

fr_status fr_adapter_config_read(fr_adapter_config *config, const char *path) {
    *config = (fr_adapter_config){.where = path};
    FR_TRY(fr_json_read(path, CONFIG_BYTES, &config->root));
    if (!json_is_object(config->root)) return fr_fail(FR_INPUT, "%s is no object", path);
    FR_TRY(refuse_others(config->root, path));
    FR_TRY(fr_json_size(config->root, "r", 1, FR_LOW_RANK_MAX, 8, path, &config->rank));
    FR_TRY(fr_json_real(config->root, "lora_alpha", -1e9, 1e9, 8, path, &config->alpha));
    return fr_json_bool(config->root, "use_rslora", false, path, &config->rslora);
}

/* Sets *matches to whether the end of a module's name matches a pattern of peft, which is a Python regular expression.
 * POSIX reads such an expression in the same way if it has no braces and escapes only punctuation. */
static fr_status compare(const char *pattern, const char *module, const char *where, bool *matches) {
    char whole[PATTERN_MAX + 16];
    regex_t regex;
    bool odd = strlen(pattern) > PATTERN_MAX || strpbrk(pattern, "{}") || strstr(pattern, "(?");
    for (const char *at = pattern; !odd && (at = strchr(at, '\\')); at += 2)
        odd = at[1] == '\0' || strspn(at + 1, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") > 0;
    snprintf(whole, sizeof whole, "^(.*\\.)?(%s)$", odd ? "" : pattern);
    if (odd || regcomp(&regex, whole, REG_EXTENDED | REG_NOSUB) != 0)
        return fr_fail(FR_UNBUILT, "%s: the pattern \"%.100s\" is not built", where, pattern);
    *matches = regexec(&regex, module, 0, NULL, 0) == 0;
    regfree(&regex);
    return FR_OK;
}

/* Looks for the first key of the object config[member] that is a pattern and matches the module's name. Sets *of to the
 * object and *found to the key; *found is NULL if no key matches. */
static fr_status find_pattern(const fr_adapter_config *config, const char *member, const char *module, json_t **of,
                              const char **found) {
    const char *key;
    json_t *value;
    bool matches = false;
    *found = NULL;
    FR_TRY(fr_json_object(config->root, member, config->where, of));
    if (*of && json_object_size(*of) > PATTERNS_MAX)
        return fr_fail(FR_INPUT, "%s: \"%s\" has more than %d patterns", config->where, member, PATTERNS_MAX);
    json_object_foreach (*of, key, value) {
        FR_TRY(compare(key, module, config->where, &matches));
        if (matches) *found = key;
        if (matches) break;
    }
    return FR_OK;
}

fr_status fr_adapter_config_module(const fr_adapter_config *config, const char *module, size_t *rank, double *scale) {
    json_t *of;
    const char *key;
    double alpha = config->alpha;
    *rank = config->rank;
    FR_TRY(find_pattern(config, "rank_pattern", module, &of, &key));
    if (key) FR_TRY(fr_json_size(of, key, 1, FR_LOW_RANK_MAX, FR_JSON_REQUIRED, config->where, rank));
    FR_TRY(find_pattern(config, "alpha_pattern", module, &of, &key));
    if (key) FR_TRY(fr_json_real(of, key, -1e9, 1e9, NAN, config->where, &alpha));
    *scale = alpha / (config->rslora ? sqrt((double)*rank) : (double)*rank);
    return FR_OK;
}
