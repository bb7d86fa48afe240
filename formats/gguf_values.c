/* Reads GGUF's metadata by key and checks type and range (gguf.h).
 *
 * In: values that gguf.c has found to be inside the file. Out: numbers and texts, or a line that names the file and
 * the key. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "formats/gguf.h"

static const struct {
    const char *name;
    size_t bytes; /* 0: the size is not fixed */
} value_types[FR_GGUF_TYPES] = {
    [FR_GGUF_U8] = {"u8", 1},       [FR_GGUF_I8] = {"i8", 1},        [FR_GGUF_U16] = {"u16", 2},
    [FR_GGUF_I16] = {"i16", 2},     [FR_GGUF_U32] = {"u32", 4},      [FR_GGUF_I32] = {"i32", 4},
    [FR_GGUF_F32] = {"f32", 4},     [FR_GGUF_BOOL] = {"boolean", 1}, [FR_GGUF_STRING] = {"string", 0},
    [FR_GGUF_ARRAY] = {"array", 0}, [FR_GGUF_U64] = {"u64", 8},      [FR_GGUF_I64] = {"i64", 8},
    [FR_GGUF_F64] = {"f64", 8},
};

size_t fr_gguf_element_bytes(fr_gguf_type type) {
    return value_types[type].bytes;
}

/* Gives the text that comes before a key in the file: the architecture if the key begins with a point, otherwise
 * nothing. */
static const char *below(const fr_gguf *gguf, const char *key) {
    return *key == '.' ? gguf->architecture : "";
}

const fr_gguf_value *fr_gguf_find(const fr_gguf *gguf, const char *key) {
    char full[256];
    int length = snprintf(full, sizeof full, "%s%s", below(gguf, key), key);
    if (length < 0 || (size_t)length >= sizeof full) return NULL;
    fr_text wanted = {full, (size_t)length};
    size_t low = 0, high = gguf->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const fr_gguf_value *value = &gguf->values[gguf->by_key[middle]];
        int order = fr_text_compare(wanted, value->key);
        if (order == 0) return value;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

static fr_status fail_missing(const fr_gguf *gguf, const char *key) {
    return fr_fail(FR_INPUT, "%s: key %s%s is missing", gguf->path, below(gguf, key), key);
}

static fr_status fail_type(const fr_gguf *gguf, const fr_gguf_value *value, const char *wanted) {
    bool array = value->type == FR_GGUF_ARRAY;
    return fr_fail(FR_INPUT, "%s: key %.*s is %s %s, expected %s", gguf->path, FR_SHOW(value->key),
                   array ? "an array of" : "of type", value_types[value->element].name, wanted);
}

static bool is_integer(fr_gguf_type type) {
    return type != FR_GGUF_F32 && type != FR_GGUF_F64 && type != FR_GGUF_STRING && type != FR_GGUF_ARRAY;
}

/* Reads element `index` of an array of integers. A value that does not fit becomes INT64_MAX, which no range
 * allows. */
static int64_t integer(const fr_gguf_value *value, size_t index) {
    size_t size = value_types[value->element].bytes;
    uint64_t bits = fr_little_endian(value->data + index * size, size);
    switch (value->element) {
    case FR_GGUF_I8: return (int8_t)bits;
    case FR_GGUF_I16: return (int16_t)bits;
    case FR_GGUF_I32: return (int32_t)bits;
    case FR_GGUF_I64: return (int64_t)bits;
    default: return bits > INT64_MAX ? INT64_MAX : (int64_t)bits;
    }
}

static fr_status integer_in(const fr_gguf *gguf, const fr_gguf_value *value, size_t index, int64_t low, int64_t high,
                            int64_t *result) {
    *result = integer(value, index);
    if (*result >= low && *result <= high) return FR_OK;
    return fr_fail(FR_INPUT, "%s: key %.*s is %lld, not in %lld to %lld", gguf->path, FR_SHOW(value->key),
                   (long long)*result, (long long)low, (long long)high);
}

fr_status fr_gguf_int(const fr_gguf *gguf, const char *key, int64_t low, int64_t high, int64_t fallback,
                      int64_t *value) {
    const fr_gguf_value *found = fr_gguf_find(gguf, key);
    *value = fallback;
    if (!found) return fallback == FR_GGUF_REQUIRED ? fail_missing(gguf, key) : FR_OK;
    if (!is_integer(found->type)) return fail_type(gguf, found, "an integer");
    return integer_in(gguf, found, 0, low, high, value);
}

fr_status fr_gguf_size(const fr_gguf *gguf, const char *key, int64_t low, int64_t high, int64_t fallback,
                       size_t *value) {
    int64_t number;
    FR_TRY(fr_gguf_int(gguf, key, low, high, fallback, &number));
    *value = (size_t)number;
    return FR_OK;
}

fr_status fr_gguf_ints(const fr_gguf *gguf, const char *key, int64_t low, int64_t high, int64_t fallback, size_t n,
                       int64_t *values) {
    const fr_gguf_value *found = fr_gguf_find(gguf, key);
    for (size_t i = 0; i < n; i++) values[i] = fallback;
    if (!found) return fallback == FR_GGUF_REQUIRED ? fail_missing(gguf, key) : FR_OK;
    if (!is_integer(found->element)) return fail_type(gguf, found, "integers");
    bool array = found->type == FR_GGUF_ARRAY;
    if (array && found->count != n)
        return fr_fail(FR_INPUT, "%s: key %.*s has %llu elements, expected %zu", gguf->path, FR_SHOW(found->key),
                       (unsigned long long)found->count, n);
    for (size_t i = 0; i < n; i++) FR_TRY(integer_in(gguf, found, array ? i : 0, low, high, &values[i]));
    return FR_OK;
}

static double real(const fr_gguf_value *value) {
    double wide;
    switch (value->type) {
    case FR_GGUF_F32: return (double)fr_gguf_f32(value, 0);
    case FR_GGUF_F64: memcpy(&wide, value->data, sizeof wide); return wide;
    default: return (double)integer(value, 0);
    }
}

fr_status fr_gguf_real(const fr_gguf *gguf, const char *key, double low, double high, double fallback, double *value) {
    const fr_gguf_value *found = fr_gguf_find(gguf, key);
    *value = fallback;
    if (!found) return isnan(fallback) ? fail_missing(gguf, key) : FR_OK;
    if (found->type == FR_GGUF_STRING || found->type == FR_GGUF_ARRAY) return fail_type(gguf, found, "a number");
    *value = real(found);
    if (*value >= low && *value <= high) return FR_OK;
    return fr_fail(FR_INPUT, "%s: key %.*s is %g, not in %g to %g", gguf->path, FR_SHOW(found->key), *value, low, high);
}

fr_status fr_gguf_bool(const fr_gguf *gguf, const char *key, bool fallback, bool *value) {
    int64_t number;
    fr_status status = fr_gguf_int(gguf, key, 0, 1, fallback, &number);
    *value = number == 1;
    return status;
}

fr_status fr_gguf_text(const fr_gguf *gguf, const char *key, fr_text *value) {
    const fr_gguf_value *found = fr_gguf_find(gguf, key);
    *value = (fr_text){0};
    if (!found) return FR_OK;
    if (found->type != FR_GGUF_STRING) return fail_type(gguf, found, "a string");
    *value = (fr_text){(const char *)found->data, found->bytes};
    return FR_OK;
}

fr_status fr_gguf_array(const fr_gguf *gguf, const char *key, fr_gguf_type element, const fr_gguf_value **array) {
    *array = fr_gguf_find(gguf, key);
    if (!*array || ((*array)->type == FR_GGUF_ARRAY && (*array)->element == element)) return FR_OK;
    char wanted[32];
    snprintf(wanted, sizeof wanted, "an array of %s", value_types[element].name);
    return fail_type(gguf, *array, wanted);
}

fr_text fr_gguf_next(const fr_gguf_value *array, size_t *at) {
    size_t length = (size_t)fr_little_endian(array->data + *at, 8);
    fr_text text = {(const char *)array->data + *at + 8, length};
    *at += 8 + length;
    return text;
}

int32_t fr_gguf_i32(const fr_gguf_value *array, size_t index) {
    return (int32_t)fr_little_endian(array->data + 4 * index, 4);
}

float fr_gguf_f32(const fr_gguf_value *array, size_t index) {
    float value;
    memcpy(&value, array->data + 4 * index, sizeof value);
    return value;
}
