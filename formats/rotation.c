/* Reads the rotation by which a file's weights were multiplied: see rotation.h. */
#include "formats/rotation.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

#define PREFIX "prism.hadamard."

enum {
    WIDTHS_MAX = 64,           /* largest number of different widths of rows in one file */
    BLOCK_MAX = 1 << 20,       /* largest number of columns of a block */
    COLS_MAX = 1 << 24,        /* largest number of columns of a row */
    ROTATIONS = 2 * WIDTHS_MAX /* number of rotations: each width has one that keeps heads in their order and one that
                                * reorders them */
};

struct fr_rotation_set {
    fr_rotation all[ROTATIONS];
    size_t count;
    float *signs;           /* signs of all widths, one width after the other */
    const char **names;     /* [name_count] names of rotated tensors, sorted */
    const fr_rotation **of; /* [name_count] of[i] is the rotation of the tensor names[i] */
    size_t name_count;
};

/* Kinds of a layer's tensors that may be rotated. Before every product with such a tensor, the engine rotates the input
 * rows. */
static const char *const kinds[] = {
    "attn_q",           "attn_k",         "attn_v",       "attn_qkv",       "attn_gate",   "attn_output",
    "ffn_gate",         "ffn_up",         "ffn_down",     "ffn_gate_exps",  "ffn_up_exps", "ffn_down_exps",
    "ffn_gate_up_exps", "ffn_gate_shexp", "ffn_up_shexp", "ffn_down_shexp", "ssm_out"};

/* Architectures in which the engine uses the tensors above only in products, and rotates the rows before each of
 * them. */
static const char *const architectures[] = {"llama", "qwen3", "qwen3moe", "qwen35", "qwen35moe", "qwen3next"};

static bool is_text(fr_text text, const char *word) {
    return text.length == strlen(word) && memcmp(text.bytes, word, text.length) == 0;
}

static fr_status fail_key(const char *path, const char *key, const char *why) {
    return fr_fail(FR_INPUT, "%s: key " PREFIX "%s %s", path, key, why);
}

/* Checks that a key has the only value that is supported. */
static fr_status check_word(const fr_gguf *gguf, const char *key, const char *full, const char *word) {
    fr_text value;
    FR_TRY(fr_gguf_text(gguf, full, &value));
    if (!value.bytes) return fail_key(gguf->path, key, "is missing");
    if (is_text(value, word)) return FR_OK;
    return fr_fail(FR_UNBUILT, "%s: key %s is %.*s: only %s is built", gguf->path, full,
                   value.length < 60 ? (int)value.length : 60, value.bytes, word);
}

static fr_status check_head(const fr_gguf *gguf, const fr_tensors *tensors, size_t *block) {
    int64_t version;
    bool tied = false;
    FR_TRY(fr_gguf_int(gguf, PREFIX "version", 0, UINT32_MAX, FR_GGUF_REQUIRED, &version));
    if (version != 1 && version != 2)
        return fr_fail(FR_UNBUILT, "%s: key " PREFIX "version is %lld: only versions 1 and 2 are built", gguf->path,
                       (long long)version);
    FR_TRY(fr_gguf_bool(gguf, PREFIX "tied_output", false, &tied));
    if (version == 2 && (!tied || fr_tensors_find(tensors, "output.weight")))
        return fail_key(gguf->path, "version", "is 2, and the file's head is not its embedding table");
    FR_TRY(check_word(gguf, "transform", PREFIX "transform", "normalized-sylvester-walsh-hadamard"));
    FR_TRY(check_word(gguf, "axis", PREFIX "axis", "input-last-dimension"));
    FR_TRY(fr_gguf_size(gguf, PREFIX "block_size", 1, BLOCK_MAX, FR_GGUF_REQUIRED, block));
    if (*block & (*block - 1)) return fail_key(gguf->path, "block_size", "is no power of two");
    for (size_t i = 0; i < sizeof architectures / sizeof *architectures; i++)
        if (strcmp(gguf->architecture, architectures[i]) == 0) return FR_OK;
    return fr_fail(FR_UNBUILT, "%s: rotated weights (keys " PREFIX "*) of architecture \"%s\" are not built",
                   gguf->path, gguf->architecture);
}

/* Finds an array of 4-byte integers. Fails if the key is missing or has a value of another type. */
static fr_status find_integers(const fr_gguf *gguf, const char *full, const fr_gguf_value **array) {
    *array = fr_gguf_find(gguf, full);
    if (!*array) return fr_fail(FR_INPUT, "%s: key %s is missing", gguf->path, full);
    if ((*array)->type == FR_GGUF_ARRAY && ((*array)->element == FR_GGUF_I32 || (*array)->element == FR_GGUF_U32))
        return FR_OK;
    return fr_fail(FR_INPUT, "%s: key %s is no array of i32", gguf->path, full);
}

/* Adds the rotation of a width. Its signs begin at index *at. The call then moves *at to the signs of the next
 * width. */
static fr_status add_width(const char *path, fr_rotation_set *r, int64_t width, size_t values, size_t block,
                           size_t *at) {
    if (width <= 0 || width > COLS_MAX || (size_t)width % block)
        return fail_key(path, "sign_widths", "has a width that is no multiple of the block");
    if ((size_t)width > values - *at) return fail_key(path, "sign_values", "is shorter than the widths");
    if (fr_rotation_of_width(r, (size_t)width)) return fail_key(path, "sign_widths", "has a width twice");
    r->all[r->count++] = (fr_rotation){.cols = (size_t)width, .block = block, .signs = r->signs + *at};
    *at += (size_t)width;
    return FR_OK;
}

/* Reads the signs of all widths. For each width, adds the rotation that keeps heads in their order. */
static fr_status read_signs(const fr_gguf *gguf, fr_rotation_set *r, size_t block) {
    const fr_gguf_value *widths, *values;
    FR_TRY(find_integers(gguf, PREFIX "sign_widths", &widths));
    FR_TRY(find_integers(gguf, PREFIX "sign_values", &values));
    if (widths->count == 0 || widths->count > WIDTHS_MAX)
        return fail_key(gguf->path, "sign_widths", "has 0 or too many values");
    r->signs = malloc((size_t)values->count * sizeof *r->signs + 1);
    if (!r->signs) return fr_fail_memory("signs", (size_t)values->count * sizeof *r->signs);
    for (size_t i = 0; i < values->count; i++) {
        int32_t value = fr_gguf_i32(values, i);
        if (value != 1 && value != -1)
            return fail_key(gguf->path, "sign_values", "has a value that is neither 1 nor -1");
        r->signs[i] = (float)value;
    }
    size_t at = 0;
    for (size_t i = 0; i < widths->count; i++)
        FR_TRY(add_width(gguf->path, r, fr_gguf_i32(widths, i), (size_t)values->count, block, &at));
    return at == values->count ? FR_OK : fail_key(gguf->path, "sign_values", "is longer than the widths");
}

/* Finds the rotation for this width and this grouping of heads. If it does not exist yet, it is added, with the signs
 * of the width. */
static fr_status find_rotation(const char *path, fr_rotation_set *r, const char *tensor, size_t cols, size_t block,
                               size_t groups, size_t heads, const fr_rotation **found) {
    const fr_rotation *plain = fr_rotation_of_width(r, cols);
    for (size_t i = 0; i < r->count; i++)
        if (r->all[i].cols == cols && r->all[i].groups == groups) {
            *found = &r->all[i];
            return FR_OK;
        }
    if (cols % block || cols > COLS_MAX)
        return fr_fail(FR_INPUT, "%s: tensor %s has %zu columns, no multiple of the %zu that are rotated together",
                       path, tensor, cols, block);
    if (!plain && r->signs)
        return fr_fail(FR_INPUT, "%s: tensor %s has %zu columns, and key " PREFIX "sign_widths has no such width", path,
                       tensor, cols);
    if (r->count == ROTATIONS) return fail_key(path, "weight_names", "names tensors of too many widths");
    r->all[r->count] = (fr_rotation){
        .cols = cols, .block = block, .signs = plain ? plain->signs : NULL, .groups = groups, .heads = heads};
    *found = &r->all[r->count++];
    return FR_OK;
}

/* Returns KIND if the tensor's name is blk.N.KIND.weight and KIND may be rotated, otherwise "". */
static const char *kind_of(const char *tensor) {
    const char *at = tensor + strlen("blk.");
    if (strncmp(tensor, "blk.", strlen("blk.")) != 0) return "";
    size_t digits = strspn(at, "0123456789");
    if (digits == 0 || at[digits] != '.') return "";
    at += digits + 1;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        size_t length = strlen(kinds[i]);
        if (strncmp(at, kinds[i], length) == 0 && strcmp(at + length, ".weight") == 0) return kinds[i];
    }
    return "";
}

/* Reads the number of key heads by which the columns of ssm_out are grouped, and the number of value heads. If the
 * columns are not grouped, both numbers are 0. */
static fr_status read_groups(const fr_gguf *gguf, size_t *groups, size_t *heads) {
    bool grouped;
    *groups = *heads = 0;
    FR_TRY(fr_gguf_bool(gguf, PREFIX "gdn_v_grouped", false, &grouped));
    if (!grouped || !fr_gguf_find(gguf, ".ssm.group_count")) return FR_OK;
    if (strncmp(gguf->architecture, "qwen35", strlen("qwen35")) != 0)
        return fr_fail(FR_UNBUILT, "%s: key " PREFIX "gdn_v_grouped of architecture \"%s\" is not built", gguf->path,
                       gguf->architecture);
    FR_TRY(fr_gguf_size(gguf, ".ssm.group_count", 1, COLS_MAX, FR_GGUF_REQUIRED, groups));
    FR_TRY(fr_gguf_size(gguf, ".ssm.time_step_rank", 1, COLS_MAX, FR_GGUF_REQUIRED, heads));
    if (*heads % *groups) return fail_key(gguf->path, "gdn_v_grouped", "needs whole groups of value heads");
    if (*heads == *groups) *groups = *heads = 0;
    return FR_OK;
}

static int compare_names(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Adds the tensors that an array names to r->names. tables: the tensors are embedding tables, whose rows are looked up
 * and not multiplied. */
static fr_status add_names(const fr_gguf *gguf, const fr_tensors *tensors, const fr_gguf_value *array, bool tables,
                           fr_rotation_set *r) {
    size_t at = 0;
    for (size_t i = 0; i < array->count; i++) {
        fr_text text = fr_gguf_next(array, &at);
        char name[257];
        if (text.length >= sizeof name || memchr(text.bytes, 0, text.length))
            return fail_key(gguf->path, tables ? "inverse_weight_names" : "weight_names",
                            "has a name that no tensor can have");
        memcpy(name, text.bytes, text.length);
        name[text.length] = 0;
        bool known =
            tables ? strcmp(name, "token_embd.weight") == 0 : strcmp(name, "output.weight") == 0 || *kind_of(name);
        if (!known)
            return fr_fail(FR_UNBUILT, "%s: tensor %s is rotated (key " PREFIX "%s): not built", gguf->path, name,
                           tables ? "inverse_weight_names" : "weight_names");
        const fr_tensor *tensor = fr_tensors_find(tensors, name);
        if (!tensor || tensor->dims < 2)
            return fr_fail(FR_INPUT, "%s: key " PREFIX "%s names the tensor %s, which the file %s", gguf->path,
                           tables ? "inverse_weight_names" : "weight_names", name,
                           tensor ? "has as no matrix" : "doesn't have");
        r->names[r->name_count++] = tensor->name;
    }
    return FR_OK;
}

/* Sets the rotation of each named tensor. */
static fr_status bind_names(const char *path, const fr_tensors *tensors, fr_rotation_set *r, size_t block,
                            size_t groups, size_t heads) {
    qsort(r->names, r->name_count, sizeof *r->names, compare_names);
    for (size_t i = 0; i < r->name_count; i++) {
        const char *name = r->names[i];
        if (i > 0 && strcmp(name, r->names[i - 1]) == 0)
            return fr_fail(FR_INPUT, "%s: keys " PREFIX "* name tensor %s twice", path, name);
        const fr_tensor *tensor = fr_tensors_find(tensors, name);
        size_t cols = (size_t)tensor->shape[tensor->dims - 1];
        bool moved = groups && strcmp(kind_of(name), "ssm_out") == 0;
        if (moved && cols % heads)
            return fr_fail(FR_INPUT, "%s: tensor %s has %zu columns, no multiple of %zu heads", path, name, cols,
                           heads);
        FR_TRY(find_rotation(path, r, name, cols, block, 0, 0, &r->of[i]));
        if (moved) FR_TRY(find_rotation(path, r, name, cols, block, groups, heads, &r->of[i]));
    }
    return FR_OK;
}

static fr_status read(const fr_gguf *gguf, const fr_tensors *tensors, fr_rotation_set *r) {
    const fr_gguf_value *names, *tables;
    fr_text mode;
    size_t block, groups, heads;
    FR_TRY(check_head(gguf, tensors, &block));
    FR_TRY(fr_gguf_text(gguf, PREFIX "sign_mode", &mode));
    if (!mode.bytes) return fail_key(gguf->path, "sign_mode", "is missing");
    if (is_text(mode, "explicit"))
        FR_TRY(read_signs(gguf, r, block));
    else if (!is_text(mode, "identity"))
        FR_TRY(check_word(gguf, "sign_mode", PREFIX "sign_mode", "explicit"));
    FR_TRY(fr_gguf_array(gguf, PREFIX "weight_names", FR_GGUF_STRING, &names));
    FR_TRY(fr_gguf_array(gguf, PREFIX "inverse_weight_names", FR_GGUF_STRING, &tables));
    if (!names || names->count == 0) return fail_key(gguf->path, "weight_names", "names no tensor");
    size_t count = (size_t)names->count + (tables ? (size_t)tables->count : 0);
    r->names = calloc(count, sizeof *r->names);
    r->of = calloc(count, sizeof *r->of);
    if (!r->names || !r->of) return fr_fail_memory("names of rotated tensors", count * sizeof *r->of);
    FR_TRY(add_names(gguf, tensors, names, false, r));
    if (tables) FR_TRY(add_names(gguf, tensors, tables, true, r));
    FR_TRY(read_groups(gguf, &groups, &heads));
    return bind_names(gguf->path, tensors, r, block, groups, heads);
}

/* ---------------------------------------------------------------------------------------------------- hadamard.json */

/* Endings of the published names of weights that may be rotated. The name of the embedding table is checked by other
 * code. */
static const char *const published[] = {".q_proj.weight",    ".k_proj.weight",      ".v_proj.weight",
                                        ".o_proj.weight",    ".in_proj_qkv.weight", ".in_proj_z.weight",
                                        ".out_proj.weight",  ".gate_proj.weight",   ".up_proj.weight",
                                        ".down_proj.weight", "lm_head.weight"};

static bool ends_with(const char *name, const char *end) {
    size_t length = strlen(name), tail = strlen(end);
    return length >= tail && strcmp(name + length - tail, end) == 0;
}

static fr_status check_text(const json_t *keys, const char *path, const char *key, const char *word) {
    const char *value = json_string_value(json_object_get(keys, key));
    if (value && strcmp(value, word) == 0) return FR_OK;
    return fr_fail(FR_UNBUILT, "%s: key %s is %.60s: only %s is built", path, key, value ? value : "no text", word);
}

static fr_status read_published_signs(const json_t *keys, const char *path, size_t block, fr_rotation_set *r) {
    const json_t *widths = json_object_get(keys, PREFIX "sign_widths"), *value;
    const json_t *values = json_object_get(keys, PREFIX "sign_values");
    size_t count = json_array_size(values), i, at = 0;
    if (json_array_size(widths) == 0 || json_array_size(widths) > WIDTHS_MAX)
        return fail_key(path, "sign_widths", "has 0 or too many values");
    r->signs = malloc(count * sizeof *r->signs + 1);
    if (!r->signs) return fr_fail_memory("signs", count * sizeof *r->signs);
    json_array_foreach ((json_t *)(uintptr_t)values, i, value) {
        double sign = json_number_value(value);
        if (!(sign >= 1 && sign <= 1) && !(sign >= -1 && sign <= -1))
            return fail_key(path, "sign_values", "has a value that is neither 1 nor -1");
        r->signs[i] = (float)sign;
    }
    json_array_foreach ((json_t *)(uintptr_t)widths, i, value)
        FR_TRY(add_width(path, r, json_integer_value(value), count, block, &at));
    return at == count ? FR_OK : fail_key(path, "sign_values", "is longer than the widths");
}

static fr_status add_published(const json_t *names, const char *path, const fr_tensors *tensors, bool tables,
                               fr_rotation_set *r) {
    const json_t *value;
    size_t i;
    json_array_foreach ((json_t *)(uintptr_t)names, i, value) {
        const char *name = json_string_value(value);
        bool known = name && tables && ends_with(name, "embed_tokens.weight");
        for (size_t k = 0; name && !tables && k < sizeof published / sizeof *published; k++)
            known |= ends_with(name, published[k]);
        if (!known)
            return fr_fail(FR_UNBUILT, "%s: rotated tensor %.200s: not built", path, name ? name : "without name");
        const fr_tensor *tensor = fr_tensors_find(tensors, name);
        if (!tensor || tensor->dims != 2)
            return fr_fail(FR_INPUT, "%s: it names the tensor %.200s, which the folder %s", path, name,
                           tensor ? "has as no matrix" : "doesn't have");
        r->names[r->name_count++] = tensor->name;
    }
    return FR_OK;
}

static fr_status read_published(const json_t *keys, const char *path, const fr_tensors *tensors, fr_rotation_set *r) {
    const json_t *names = json_object_get(keys, PREFIX "weight_names");
    const json_t *tables = json_object_get(keys, PREFIX "inverse_weight_names");
    int64_t version, block;
    FR_TRY(fr_json_int(keys, PREFIX "version", 1, 1, FR_JSON_REQUIRED, path, &version));
    FR_TRY(fr_json_int(keys, PREFIX "block_size", 1, BLOCK_MAX, FR_JSON_REQUIRED, path, &block));
    if (block & (block - 1)) return fail_key(path, "block_size", "is no power of two");
    FR_TRY(check_text(keys, path, PREFIX "transform", "normalized-sylvester-walsh-hadamard"));
    FR_TRY(check_text(keys, path, PREFIX "axis", "input-last-dimension"));
    FR_TRY(check_text(keys, path, PREFIX "sign_mode", "explicit"));
    if (json_is_false(json_object_get(keys, PREFIX "gdn_v_grouped")))
        return fr_fail(FR_UNBUILT, "%s: key " PREFIX "gdn_v_grouped is false: only true is built", path);
    FR_TRY(read_published_signs(keys, path, (size_t)block, r));
    size_t count = json_array_size(names) + json_array_size(tables);
    if (json_array_size(names) == 0) return fail_key(path, "weight_names", "names no tensor");
    r->names = calloc(count, sizeof *r->names);
    r->of = calloc(count, sizeof *r->of);
    if (!r->names || !r->of) return fr_fail_memory("names of rotated tensors", count * sizeof *r->of);
    FR_TRY(add_published(names, path, tensors, false, r));
    FR_TRY(add_published(tables, path, tensors, true, r));
    return bind_names(path, tensors, r, (size_t)block, 0, 0);
}

fr_status fr_rotation_set_read_published(const json_t *keys, const char *path, const fr_tensors *tensors,
                                         fr_rotation_set **rotations) {
    fr_rotation_set *r = calloc(1, sizeof *r);
    *rotations = NULL;
    if (!r) return fr_fail_memory("rotations", sizeof *r);
    fr_status status = read_published(keys, path, tensors, r);
    if (status == FR_OK)
        *rotations = r;
    else
        fr_rotation_set_free(r);
    return status;
}

/* ------------------------------------------------------------------------------------------------------------- file */

/* Returns true if the file has a key of any rotation setting. */
static bool declares(const fr_gguf *gguf) {
    for (size_t i = 0; i < gguf->count; i++) {
        fr_text key = gguf->values[i].key;
        if (key.length >= strlen(PREFIX) && memcmp(key.bytes, PREFIX, strlen(PREFIX)) == 0) return true;
    }
    return false;
}

fr_status fr_rotation_set_read(const fr_gguf *gguf, const fr_tensors *tensors, fr_rotation_set **rotations) {
    *rotations = NULL;
    if (!declares(gguf)) return FR_OK;
    fr_rotation_set *r = calloc(1, sizeof *r);
    if (!r) return fr_fail_memory("rotations", sizeof *r);
    fr_status status = read(gguf, tensors, r);
    if (status == FR_OK)
        *rotations = r;
    else
        fr_rotation_set_free(r);
    return status;
}

void fr_rotation_set_free(fr_rotation_set *rotations) {
    if (!rotations) return;
    free(rotations->signs);
    free(rotations->names);
    free(rotations->of);
    free(rotations);
}

const fr_rotation *fr_rotation_of(const fr_rotation_set *rotations, const char *tensor, size_t cols) {
    if (!rotations) return NULL;
    const char **found =
        bsearch(&tensor, rotations->names, rotations->name_count, sizeof *rotations->names, compare_names);
    const fr_rotation *of = found ? rotations->of[found - rotations->names] : NULL;
    return of && of->cols == cols ? of : NULL;
}

const fr_rotation *fr_rotation_of_width(const fr_rotation_set *rotations, size_t cols) {
    for (size_t i = 0; rotations && i < rotations->count; i++)
        if (rotations->all[i].cols == cols && rotations->all[i].groups == 0) return &rotations->all[i];
    return NULL;
}
