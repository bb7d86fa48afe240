/* Recognizes quantized modules by their tensors, and checks that the tensors of a module fit each other: see storage.h.
 *
 * A module that has codes is quantized, so the configuration's lists of exceptions are not needed. The shapes of the
 * tensors show nearly all other facts. The configuration is read only for facts that the shapes do not show. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "formats/checkpoint.h"
#include "formats/storage.h"
#include "formats/storage_config.h"
#include "quant/fp8.h"

enum { NAME_MAX = 320, COLS_MAX = INT32_MAX };

/* Describes the folder that is being read, and the list of tensors that is being made from the folder's tensors. */
typedef struct reading {
    fr_checkpoint *files;
    fr_storage_config config;
    fr_tensors made;
} reading;

/* Describes a module that is being recognized. */
typedef struct module {
    const reading *in;
    const fr_tensor *codes;
    char name[NAME_MAX]; /* the name of the codes' tensor without its ending */
    fr_storage_scheme scheme;
    fr_storage storage;
} module;

/* ----------------------------------------------------------------------------------------------------------- names */

/* Returns the length of the name without the ending `end`; 0 if the name has another ending. */
static size_t before_end(const char *name, const char *end) {
    size_t length = strlen(name), tail = strlen(end);
    return length > tail && strcmp(name + length - tail, end) == 0 ? length - tail : 0;
}

/* Finds the tensor whose name is the first `length` bytes of `name` followed by `end`. Returns NULL if there is
 * none. */
static const fr_tensor *find(const reading *in, const char *name, size_t length, const char *end) {
    char full[NAME_MAX];
    snprintf(full, sizeof full, "%.*s%s", (int)length, name, end);
    return fr_tensors_find(&in->files->tensors, full);
}

static const fr_tensor *part(const module *m, const char *end) {
    return find(m->in, m->name, strlen(m->name), end);
}

/* ---------------------------------------------------------------------------------------------------------- errors */

static fr_status fail(const module *m, const char *what) {
    return fr_fail(FR_INPUT, "%s: tensor %s: %s", m->in->files->path, m->codes->name, what);
}

static fr_status fail_shape(const module *m, const fr_tensor *tensor) {
    return fr_fail(FR_INPUT, "%s: tensor %s has a shape that does not fit %s of %zu rows and %zu columns",
                   m->in->files->path, tensor->name, m->codes->name, m->storage.rows, m->storage.cols);
}

static fr_status need(const module *m, const char *end, const fr_tensor **tensor) {
    *tensor = part(m, end);
    if (*tensor) return FR_OK;
    return fr_fail(FR_INPUT, "%s: tensor %s%s is missing, which %s needs", m->in->files->path, m->name, end,
                   m->codes->name);
}

static fr_status check_type(const module *m, const fr_tensor *tensor, bool fits) {
    if (fits) return FR_OK;
    return fr_fail(FR_INPUT, "%s: tensor %s has type %s, which does not fit %s", m->in->files->path, tensor->name,
                   tensor->type_name, m->codes->name);
}

static fr_status check_shape(const module *m, const fr_tensor *tensor, uint64_t rows, uint64_t cols) {
    bool fits = tensor->dims == 2 && tensor->shape[0] == rows && tensor->shape[1] == cols;
    return fits ? FR_OK : fail_shape(m, tensor);
}

/* --------------------------------------------------------------------------------------------------- common checks */

static uint64_t quotient(uint64_t n, uint64_t by) {
    return n / by + (n % by != 0);
}

/* Sets the number of rows and columns, and refuses sizes out of range. */
static fr_status set_size(module *m, uint64_t rows, uint64_t cols) {
    m->storage.rows = (size_t)rows;
    m->storage.cols = (size_t)cols;
    m->storage.scale_rows = 1;
    if (rows > 0 && cols > 0 && rows <= COLS_MAX && cols <= COLS_MAX) return FR_OK;
    return fail(m, "its shape has no rows or columns, or too many");
}

static bool is_built(size_t bits) {
    return bits >= 2 && bits <= 8;
}

static fr_status set_bits(module *m, size_t bits) {
    if (!is_built(bits))
        return fr_fail(FR_INPUT, "%s: tensor %s: its shape stands for codes of %zu bits, and 2 to 8 are read",
                       m->in->files->path, m->codes->name, bits);
    m->storage.grouping.bits = m->storage.codes.bits = m->storage.zeros.bits = (uint8_t)bits;
    return FR_OK;
}

/* Sets the number of groups in a row and the columns of each group. The configured group size is used if it gives
 * `groups` groups. Otherwise the size is computed, and all groups must have the same size. */
static fr_status set_groups(module *m, const fr_tensor *scales, uint64_t groups) {
    fr_storage *s = &m->storage;
    size_t said = m->scheme.group == FR_GROUP_ROW ? s->cols : m->scheme.group;
    s->groups = (size_t)groups;
    if (groups == 0 || groups > s->cols) return fail_shape(m, scales);
    if (said == 0 || quotient(s->cols, said) != groups) said = s->cols % groups == 0 ? s->cols / (size_t)groups : 0;
    if (said == 0) return fail_shape(m, scales);
    s->grouping.group = (uint32_t)said;
    return FR_OK;
}

static fr_status set_scale_type(module *m, const fr_tensor *scales) {
    m->storage.scales = scales;
    m->storage.grouping.scale_type = (uint8_t)scales->type;
    return check_type(m, scales, scales->type < FR_FLOAT_TYPES);
}

static fr_status fill(const module *m, const fr_tensor *tensor) {
    const fr_map *map = &m->in->files->files[tensor->file];
    size_t at = (size_t)((const uint8_t *)tensor->data - map->bytes);
    return tensor->bytes ? fr_map_fill(map, at, at + tensor->bytes) : FR_OK;
}

/* Reads the group of each column from a tensor. If every n neighbouring columns form one group, in order, then n is
 * stored as the group size, and the tensor is not needed any more. */
static fr_status read_order(module *m, const fr_tensor *order) {
    fr_storage *s = &m->storage;
    int32_t group, first = 0;
    const uint8_t *data = order->data;
    size_t same = 0;
    FR_TRY(check_type(m, order, order->type == FR_I32));
    if (order->dims != 1 || order->shape[0] != s->cols) return fail_shape(m, order);
    FR_TRY(fill(m, order));
    for (size_t c = 0; c < s->cols; c++) {
        memcpy(&group, data + c * sizeof group, sizeof group);
        if (group < 0 || (size_t)group >= s->groups)
            return fr_fail(FR_INPUT, "%s: tensor %s has %d at index %zu, and there are %zu groups", m->in->files->path,
                           order->name, group, c, s->groups);
        if (c == 0) first = group;
        same += c == same && group == first;
    }
    bool plain = first == 0;
    for (size_t c = 0; c < s->cols && plain; c++) {
        memcpy(&group, data + c * sizeof group, sizeof group);
        plain = (size_t)group == c / same;
    }
    s->group_of = plain ? NULL : order;
    if (plain) s->grouping.group = (uint32_t)same;
    return FR_OK;
}

/* ---------------------------------------------------------------------------------------------------- AWQ and GPTQ */

/* Reads AWQ's tensors: codes [cols, rows / 8], zero points [groups, rows / 8], scales [groups, rows]. */
static fr_status read_awq(module *m, const fr_tensor *scales) {
    fr_storage *s = &m->storage;
    const fr_tensor *codes = m->codes, *zeros = part(m, ".qzeros");
    uint64_t rows = codes->shape[1] * 8;
    s->method = "AWQ";
    FR_TRY(set_size(m, rows, codes->shape[0]));
    FR_TRY(set_bits(m, 4));
    FR_TRY(set_groups(m, scales, scales->shape[0]));
    FR_TRY(check_shape(m, scales, s->groups, rows));
    s->codes = (fr_code_lines){codes, 4, rows / 2, FR_PACKED_AWQ, 4};
    s->grouping.offset = FR_OFFSET_ZERO;
    if (!zeros && json_is_false(json_object_get(m->in->config.object, "zero_point")))
        s->grouping.offset = FR_OFFSET_CENTRE;
    if (s->grouping.offset == FR_OFFSET_CENTRE) return FR_OK;
    FR_TRY(need(m, ".qzeros", &zeros));
    FR_TRY(check_type(m, zeros, zeros->type == FR_I32));
    FR_TRY(check_shape(m, zeros, s->groups, codes->shape[1]));
    s->zeros = (fr_code_lines){zeros, 4, rows / 2, FR_PACKED_AWQ, 4};
    return FR_OK;
}

/* Returns true if `count` codes of this many bits take exactly `words` words of 32 bits. */
static bool holds(uint64_t words, uint64_t count, size_t bits) {
    return is_built(bits) && quotient(count * bits, 32) == words;
}

/* Reads GPTQ's tensors: codes [cols * bits / 32, rows], packed along columns; zero points [groups, rows * bits / 32];
 * scales [groups, rows]; and, in .g_idx, the group of each column. */
static fr_status read_gptq(module *m, const fr_tensor *scales) {
    fr_storage *s = &m->storage;
    const fr_tensor *codes = m->codes, *zeros = part(m, ".qzeros"), *order = part(m, ".g_idx");
    uint64_t rows = codes->shape[1], words = codes->shape[0];
    size_t bits = 0;
    s->method = "GPTQ";
    if (order && order->dims != 1) return fail(m, "its .g_idx is no list");
    /* the number of bits may differ from the configuration's, so every number that fits the shapes is tried */
    for (size_t b = 1; b <= 8 && !bits; b++) {
        size_t tried = b == 1 ? m->scheme.bits : b;
        bool fits = (zeros || order || b == 1) && (!order || holds(words, order->shape[0], tried));
        if (fits && (!zeros || (zeros->dims == 2 && holds(zeros->shape[1], rows, tried)))) bits = tried;
    }
    if (!is_built(bits)) return fail(m, "its shape and those beside it fit no number of bits");
    FR_TRY(set_size(m, rows, order ? order->shape[0] : words * 32 / bits));
    FR_TRY(set_bits(m, bits));
    if (order && m->scheme.group == 0 && scales->shape[0] > 0) m->scheme.group = quotient(s->cols, scales->shape[0]);
    FR_TRY(set_groups(m, scales, scales->shape[0]));
    FR_TRY(check_shape(m, scales, s->groups, rows));
    s->codes = (fr_code_lines){codes, 4 * rows, 4, FR_PACKED_STREAM, (uint8_t)bits};
    s->grouping.offset = m->scheme.symmetric ? FR_OFFSET_CENTRE : FR_OFFSET_ZERO;
    s->zeros_less_one = m->in->config.less_one;
    if (!m->scheme.symmetric) FR_TRY(need(m, ".qzeros", &zeros));
    if (zeros) FR_TRY(check_type(m, zeros, zeros->type == FR_I32));
    if (zeros) FR_TRY(check_shape(m, zeros, s->groups, quotient(rows * bits, 32)));
    if (!m->scheme.symmetric)
        s->zeros = (fr_code_lines){zeros, 4, zeros->shape[1] * 4, FR_PACKED_STREAM, (uint8_t)bits};
    return order ? read_order(m, order) : FR_OK;
}

/* Reads a module with .qweight. If the configuration does not name the method, the shapes show it: AWQ packs 8 rows
 * into a word, while GPTQ packs columns. */
static fr_status read_qweight(module *m) {
    const fr_tensor *scales;
    fr_storage_method method = m->in->config.method;
    FR_TRY(need(m, ".scales", &scales));
    FR_TRY(check_type(m, m->codes, m->codes->type == FR_I32));
    FR_TRY(set_scale_type(m, scales));
    m->storage.row_step = 1;
    m->storage.group_step = scales->dims == 2 ? (size_t)scales->shape[1] : 0;
    if (m->codes->dims != 2 || scales->dims != 2) return fail(m, "it and its scales are not matrices");
    bool awq = method == FR_METHOD_AWQ || (method != FR_METHOD_GPTQ && m->codes->shape[1] * 8 == scales->shape[1]);
    return awq ? read_awq(m, scales) : read_gptq(m, scales);
}

/* ---------------------------------------------------------------------------------------------- compressed-tensors */

/* Reads scales. There may be one for each group, one for each row, or one for the whole matrix. If rows or the matrix
 * have the scales, each row counts as a single group. */
static fr_status set_row_scales(module *m, const fr_tensor *scales) {
    fr_storage *s = &m->storage;
    uint64_t count = 1;
    FR_TRY(set_scale_type(m, scales));
    for (uint32_t d = 0; d < scales->dims; d++) count *= scales->shape[d] <= COLS_MAX ? scales->shape[d] : COLS_MAX;
    bool grouped = scales->dims == 2 && scales->shape[0] == s->rows && count > 0;
    if (!grouped && count != 1 && !(scales->dims == 1 && count == s->rows)) return fail_shape(m, scales);
    FR_TRY(set_groups(m, scales, grouped ? scales->shape[1] : 1));
    s->row_step = grouped ? s->groups : count > 1;
    s->group_step = 1;
    return FR_OK;
}

/* Reads compressed-tensors' zero points. In one layout they are packed along rows, and 2^(bits - 1) was added to each
 * before packing. In the other layout they are signed bytes, and code_at adds 2^(bits - 1). Either way the results are
 * the zero points of unsigned codes. */
static fr_status read_signed_zeros(module *m) {
    fr_storage *s = &m->storage;
    const fr_tensor *zeros = part(m, ".weight_zero_point");
    size_t bits = s->grouping.bits;
    s->grouping.offset = zeros ? FR_OFFSET_ZERO : FR_OFFSET_CENTRE;
    if (!zeros) return FR_OK;
    FR_TRY(check_type(m, zeros, zeros->type == FR_I32 || zeros->type == FR_I8));
    if (zeros->type == FR_I32) {
        FR_TRY(check_shape(m, zeros, quotient(s->rows * bits, 32), s->groups));
        s->zeros = (fr_code_lines){zeros, 4 * s->groups, 4, FR_PACKED_STREAM, (uint8_t)bits};
        return FR_OK;
    }
    bool one = zeros->dims <= 1 && zeros->bytes == 1 && s->groups == 1;
    if (!one && !(zeros->dims == 1 && zeros->shape[0] == s->rows && s->groups == 1))
        FR_TRY(check_shape(m, zeros, s->rows, s->groups));
    s->zeros = (fr_code_lines){zeros, one ? 0 : s->groups, 1, FR_PACKED_BYTES, (uint8_t)bits};
    return FR_OK;
}

/* Reads the size of the matrix from a tensor of two integers, rows and columns. */
static fr_status read_shape(module *m) {
    const fr_tensor *shape;
    int64_t sizes[2];
    FR_TRY(need(m, ".weight_shape", &shape));
    FR_TRY(check_type(m, shape, shape->type == FR_I64));
    if (shape->dims != 1 || shape->shape[0] != 2)
        return fr_fail(FR_INPUT, "%s: tensor %s is not two numbers", m->in->files->path, shape->name);
    FR_TRY(fill(m, shape));
    memcpy(sizes, shape->data, sizeof sizes);
    return set_size(m, sizes[0] > 0 ? (uint64_t)sizes[0] : 0, sizes[1] > 0 ? (uint64_t)sizes[1] : 0);
}

/* Finds the number of bits of a code, and the packing, that fit the width of the tensor. The configured number of bits
 * is tried first. Two packings are tried, because compressed-tensors has let codes cross the end of a word only since
 * the middle of 2026. */
static fr_status set_packing(module *m) {
    fr_storage *s = &m->storage;
    uint64_t words = m->codes->shape[1];
    if (m->scheme.bits && !is_built(m->scheme.bits))
        return fr_fail(FR_UNBUILT, "%s: tensor %s has codes of %zu bits, which are not built", m->in->files->path,
                       m->codes->name, m->scheme.bits);
    for (size_t b = 1; b <= 8; b++) {
        size_t bits = b == 1 ? m->scheme.bits : b;
        if (!is_built(bits)) continue;
        bool stream = holds(words, s->cols, bits), whole = quotient(s->cols, 32 / bits) == words;
        if (!stream && !whole) continue;
        s->codes = (fr_code_lines){m->codes, 4, 4 * words, stream ? FR_PACKED_STREAM : FR_PACKED_WORDS, (uint8_t)bits};
        return set_bits(m, bits);
    }
    return fail(m, "its width fits no number of bits");
}

static fr_status read_packed(module *m) {
    fr_storage *s = &m->storage;
    const fr_tensor *scales, *order = part(m, ".weight_g_idx");
    s->method = "compressed-tensors";
    FR_TRY(read_shape(m));
    if (m->codes->dims != 2 || m->codes->shape[0] != s->rows) return fail_shape(m, m->codes);
    FR_TRY(set_packing(m));
    FR_TRY(need(m, ".weight_scale", &scales));
    FR_TRY(set_row_scales(m, scales));
    FR_TRY(read_signed_zeros(m));
    return order ? read_order(m, order) : FR_OK;
}

static fr_status read_bytes(module *m) {
    fr_storage *s = &m->storage;
    const fr_tensor *scales;
    s->method = "compressed-tensors";
    if (m->codes->dims != 2) return fail(m, "it is not a matrix");
    FR_TRY(set_size(m, m->codes->shape[0], m->codes->shape[1]));
    FR_TRY(set_bits(m, 8));
    s->codes = (fr_code_lines){m->codes, 1, s->cols, FR_PACKED_BYTES, 8};
    FR_TRY(need(m, ".weight_scale", &scales));
    FR_TRY(set_row_scales(m, scales));
    return read_signed_zeros(m);
}

/* ----------------------------------------------------------------------------------------------------- FP8 and FP4 */

/* Reads scales of blocks, whose shape is [rows / 128, cols / 128] or [rows / 128, 1, cols / 128, 1]. */
static fr_status set_blocks(module *m, const fr_tensor *scales) {
    fr_storage *s = &m->storage;
    const uint64_t *shape = scales->shape;
    bool four = scales->dims == 4 && shape[1] == 1 && shape[3] == 1;
    if (scales->dims != 2 && !four) return fail_shape(m, scales);
    uint64_t down = shape[0], across = four ? shape[2] : shape[1];
    size_t rows = m->scheme.block[0] ? m->scheme.block[0] : 128, cols = m->scheme.block[1] ? m->scheme.block[1] : 128;
    if (quotient(s->rows, rows) != down || quotient(s->cols, cols) != across) return fail_shape(m, scales);
    s->scale_rows = rows;
    s->grouping.group = (uint32_t)cols;
    s->groups = s->row_step = (size_t)across;
    s->group_step = 1;
    return FR_OK;
}

/* Describes scales that each belong to `group` columns of a row. The scales of a row are side by side. */
static void set_columns_of_scale(fr_storage *s, uint32_t group) {
    s->grouping.group = group;
    s->groups = s->row_step = s->cols / group;
    s->group_step = 1;
}

/* Reads exponents [rows, cols / 32] of MXFP8. */
static fr_status set_exponents(module *m, const fr_tensor *exponents) {
    fr_storage *s = &m->storage;
    s->method = "compressed-tensors MXFP8";
    s->exponents = true;
    s->scales = exponents;
    set_columns_of_scale(s, 32);
    return s->cols % 32 ? fail_shape(m, m->codes) : check_shape(m, exponents, s->rows, s->groups);
}

static fr_status read_fp8(module *m) {
    fr_storage *s = &m->storage;
    const fr_tensor *scales;
    s->method = m->in->config.method == FR_METHOD_COMPRESSED ? "compressed-tensors FP8"
                : m->in->config.method == FR_METHOD_MODELOPT ? "modelopt FP8"
                                                             : "FP8";
    s->form = FR_STORAGE_FP8;
    if (m->codes->dims != 2) return fail(m, "it is not a matrix");
    FR_TRY(set_size(m, m->codes->shape[0], m->codes->shape[1]));
    s->codes = (fr_code_lines){m->codes, 1, s->cols, FR_PACKED_BYTES, 8};
    scales = part(m, ".weight_scale_inv");
    if (!scales || scales->dims > 0) FR_TRY(need(m, ".weight_scale", &scales));
    if (scales->type == FR_U8) return set_exponents(m, scales);
    bool blocks = m->scheme.block[0] && scales->dims == 2;
    bool rows = scales->dims == 2 && scales->shape[0] == s->rows;
    if (!blocks && (scales->dims < 2 || rows || scales->bytes == fr_dtype_row_bytes(scales->type, 1)))
        return set_row_scales(m, scales);
    FR_TRY(set_scale_type(m, scales));
    return set_blocks(m, scales);
}

/* Reads the scale of a whole NVFP4 matrix. */
static fr_status set_matrix_scale(module *m, const char *name) {
    const fr_tensor *one;
    float value;
    FR_TRY(need(m, name, &one));
    FR_TRY(check_type(m, one, one->type == FR_F32));
    if (one->bytes != sizeof value) return fail_shape(m, one);
    FR_TRY(fill(m, one));
    memcpy(&value, one->data, sizeof value);
    m->storage.of_matrix = one;
    if (isfinite(value) && value > 0) return FR_OK;
    return fr_fail(FR_INPUT, "%s: tensor %s is %g, which is no scale", m->in->files->path, one->name, (double)value);
}

/* Describes codes of type E2M1, 8 of them in a word of 32 bits, with a scale for each `group` columns. */
static fr_status set_fp4(module *m, uint64_t rows, uint64_t cols, uint32_t group) {
    fr_storage *s = &m->storage;
    s->form = FR_STORAGE_FP4;
    FR_TRY(set_size(m, rows, cols));
    s->codes = (fr_code_lines){m->codes, 4, cols / 2, FR_PACKED_STREAM, 4};
    s->grouping.bits = 4;
    set_columns_of_scale(s, group);
    return s->cols % group ? fail_shape(m, m->codes) : FR_OK;
}

/* Reads the tensors of NVFP4 or, in compressed-tensors' folders, of MXFP4. Both have codes [rows, cols / 2], two in a
 * byte. NVFP4 has scales [rows, cols / 16] and one scale for the matrix. MXFP4 has exponents [rows, cols / 32]. */
static fr_status read_fp4(module *m, const char *of_matrix, bool divides) {
    fr_storage *s = &m->storage;
    const fr_tensor *scales;
    FR_TRY(need(m, ".weight_scale", &scales));
    s->exponents = divides && scales->type == FR_U8;
    s->method = !divides ? "modelopt NVFP4" : s->exponents ? "compressed-tensors MXFP4" : "compressed-tensors NVFP4";
    s->divides = divides;
    FR_TRY(check_type(m, m->codes, m->codes->type == FR_U8));
    FR_TRY(check_type(m, scales, scales->type == FR_F8_E4M3 || s->exponents));
    if (m->codes->dims != 2) return fail(m, "it is not a matrix");
    FR_TRY(set_fp4(m, m->codes->shape[0], m->codes->shape[1] * 2, s->exponents ? 32 : 16));
    FR_TRY(check_shape(m, scales, s->rows, s->groups));
    s->scales = scales;
    return s->exponents ? FR_OK : set_matrix_scale(m, of_matrix);
}

/* ------------------------------------------------------------------------------------------------------------- MLX */

/* Reads MLX's tensors of small floats: codes [rows, cols * bits / 32] and scales [rows, groups], one byte each, or
 * stacks of such matrices. The widths show the format. MXFP4 has a scale for 32 columns of 4 bits, NVFP4 for 16 columns
 * of 4 bits, and MXFP8 for 32 columns of 8 bits. */
static fr_status read_mlx_floats(module *m, const fr_tensor *scales) {
    fr_storage *s = &m->storage;
    const fr_tensor *codes = m->codes;
    uint32_t last = codes->dims - 1;
    uint64_t words = codes->shape[last], groups = scales->shape[last];
    bool alike = scales->dims == codes->dims && groups > 0 && words <= COLS_MAX && words % groups == 0;
    for (uint32_t d = 0; d < last && alike; d++) alike = scales->shape[d] == codes->shape[d];
    uint64_t each = alike ? words / groups : 0;
    if (each != 2 && each != 4 && each != 8) return fail(m, "its width and that of its scales fit no format of MLX");
    s->method = each == 2 ? "MLX NVFP4" : each == 4 ? "MLX MXFP4" : "MLX MXFP8";
    s->exponents = each > 2;
    s->scales = scales;
    if (each < 8) return set_fp4(m, codes->shape[last - 1], words * 8, each == 2 ? 16 : 32);
    s->form = FR_STORAGE_FP8;
    FR_TRY(set_size(m, codes->shape[last - 1], words * 4));
    s->codes = (fr_code_lines){codes, 1, s->cols, FR_PACKED_BYTES, 8};
    set_columns_of_scale(s, 32);
    return FR_OK;
}

/* Reads MLX's tensors: codes [rows, cols * bits / 32], scales and biases [rows, cols / group], or stacks of such
 * matrices. Several combinations of bits and group size may fit the shapes. The configured combination is tried first,
 * then combinations in which either the bits or the group size is the configured one. */
static fr_status read_mlx(module *m) {
    static const size_t sizes[] = {64, 32, 128, 16, 256};
    fr_storage *s = &m->storage;
    const fr_tensor *codes = m->codes, *scales, *biases;
    uint32_t last = codes->dims - 1;
    s->method = "MLX";
    FR_TRY(check_type(m, codes, codes->type == FR_U32));
    if (codes->dims < 2 || codes->dims > 3) return fail(m, "it is no matrix, and no stack of them");
    FR_TRY(need(m, ".scales", &scales));
    if (scales->type == FR_U8) return read_mlx_floats(m, scales);
    FR_TRY(need(m, ".biases", &biases));
    FR_TRY(set_scale_type(m, scales));
    FR_TRY(check_type(m, biases, biases->type < FR_FLOAT_TYPES));
    bool alike = scales->dims == codes->dims && biases->dims == codes->dims && scales->shape[last] > 0;
    for (uint32_t d = 0; d <= last && alike; d++)
        alike = scales->shape[d] == biases->shape[d] && (d == last || scales->shape[d] == codes->shape[d]);
    if (!alike) return fail(m, "its scales and biases have other shapes");
    uint64_t words = codes->shape[last], groups = scales->shape[last];
    size_t found = 0, group = 0;
    for (size_t i = 0; i <= sizeof sizes / sizeof *sizes && !found; i++)
        for (size_t b = 1; b <= 8 && !found; b++) {
            size_t bits = b == 1 ? m->scheme.bits : b;
            group = i ? sizes[i - 1] : m->scheme.group;
            if (group > COLS_MAX || group == 0 || !is_built(bits) || group * bits % 32) continue;
            if (groups * (group * bits / 32) == words) found = bits;
        }
    if (!found) return fail(m, "its width and that of its scales fit no number of bits");
    FR_TRY(set_size(m, codes->shape[last - 1], groups * group));
    FR_TRY(set_bits(m, found));
    s->grouping.offset = FR_OFFSET_BIAS;
    set_columns_of_scale(s, (uint32_t)group);
    s->biases = biases;
    s->codes = (fr_code_lines){codes, 4, 4 * words, FR_PACKED_STREAM, (uint8_t)found};
    return FR_OK;
}

/* --------------------------------------------------------------------------------------------------------- modules */

/* Lists the kinds of codes. The ending of the tensor's name, its type and the tensors that belong to the same module
 * show the kind. */
typedef enum codes_kind { NO_CODES, QWEIGHT, PACKED, PACKED_FP4, BYTES, FP8, NVFP4, MLX } codes_kind;

static codes_kind kind_of(const reading *in, const fr_tensor *t, size_t *length) {
    *length = before_end(t->name, ".qweight");
    if (*length) return QWEIGHT;
    *length = before_end(t->name, ".weight_packed");
    if (*length) return t->type == FR_U8 ? PACKED_FP4 : PACKED;
    *length = before_end(t->name, ".weight");
    if (!*length) return NO_CODES;
    if (t->type == FR_U32) return MLX;
    if (t->type == FR_I8) return BYTES;
    if (t->type == FR_U8 && find(in, t->name, *length, ".weight_scale")) return NVFP4;
    if (t->type != FR_F8_E4M3) return NO_CODES;
    /* quant/fp8.h reads a .weight_scale_inv that has a scale for each block; in Ministral 3 the tensor is one number */
    const fr_tensor *one = find(in, t->name, *length, ".weight_scale_inv");
    return find(in, t->name, *length, ".weight_scale") || (one && one->dims == 0) ? FP8 : NO_CODES;
}

/* Returns true for a tensor that forerun does not use: a stored scale for quantizing activations, keys or values, or
 * stored rotary frequencies. */
static bool is_ignored(const fr_tensor *t) {
    static const char *const ends[] = {
        ".input_scale", ".input_global_scale", ".input_zero_point",   ".output_scale", ".k_scale", ".v_scale",
        ".q_scale",     ".activation_scale",   ".rotary_emb.inv_freq"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (before_end(t->name, ends[i])) return true;
    return false;
}

/* Returns true for scales, zero points and other tensors that accompany a module's codes. */
static bool is_part(const reading *in, const fr_tensor *t) {
    static const struct {
        const char *end, *codes[3];
    } parts[] = {{".qzeros", {".qweight"}},
                 {".scales", {".qweight", ".weight"}},
                 {".biases", {".weight"}},
                 {".g_idx", {".qweight"}},
                 {".weight_scale", {".weight", ".weight_packed"}},
                 {".weight_scale_inv", {".weight"}},
                 {".weight_scale_2", {".weight"}},
                 {".weight_global_scale", {".weight_packed"}},
                 {".weight_zero_point", {".weight", ".weight_packed"}},
                 {".weight_shape", {".weight_packed"}},
                 {".weight_g_idx", {".weight_packed"}}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        size_t length = before_end(t->name, parts[i].end), of_codes;
        for (size_t c = 0; length && c < 2 && parts[i].codes[c]; c++) {
            const fr_tensor *codes = find(in, t->name, length, parts[i].codes[c]);
            if (codes && kind_of(in, codes, &of_codes) != NO_CODES) return true;
        }
    }
    return false;
}

/* Refuses weights that can be decoded only with other tensors, which forerun does not read. The names of these tensors
 * show the method. */
static fr_status check_foreign(const reading *in, const fr_tensor *t) {
    if (!before_end(t->name, ".pre_quant_scale") && !strstr(t->name, ".svdquant_lora_")) return FR_OK;
    return fr_fail(FR_UNBUILT,
                   "%s: tensor %s: its weights' quantization is not built: take the folder that they were made of, or "
                   "a GGUF file of it",
                   in->files->path, t->name);
}

static fr_status recognize(module *m, codes_kind kind) {
    switch (kind) {
    case QWEIGHT: return read_qweight(m);
    case PACKED: return read_packed(m);
    case PACKED_FP4: return read_fp4(m, ".weight_global_scale", true);
    case BYTES: return read_bytes(m);
    case FP8: return read_fp8(m);
    case NVFP4: return read_fp4(m, ".weight_scale_2", false);
    case MLX: return read_mlx(m);
    case NO_CODES: break;
    }
    return FR_OK;
}

/* Returns true if the FP8 kernels can read the codes. They can if there is one scale for the matrix, one for each row,
 * or one for each block of the size in quant/fp8.h. */
static bool suits_fp8(const fr_storage *s) {
    bool blocks = s->scale_rows == FR_FP8_BLOCK && s->grouping.group == FR_FP8_BLOCK;
    return s->form == FR_STORAGE_FP8 && (blocks || (s->groups == 1 && s->scale_rows == 1));
}

static fr_status add_matrix(reading *in, const module *m, const char *name, fr_storage **next, uint64_t first,
                            uint64_t stacked) {
    const fr_tensor *codes = m->codes;
    fr_storage *s = (*next)++;
    *s = m->storage;
    s->first = (size_t)first;
    fr_tensor made = {.name = name,
                      .type = suits_fp8(s) ? FR_F8_E4M3 : FR_STORED,
                      .type_name = s->method,
                      .storage = s,
                      .dims = 2,
                      .shape = {s->rows, s->cols},
                      .data = (const uint8_t *)codes->data + codes->bytes / stacked * (first / s->rows),
                      .bytes = codes->bytes / stacked,
                      .file = codes->file};
    return fr_tensors_add(&in->made, &made, in->files->path);
}

/* Makes the name that published files give to the matrix of one expert. The name is derived from the name of the stack
 * of matrices in MLX's file. */
static bool spell_expert(const char *stack, uint64_t expert, char *name, size_t size) {
    const char *marker = strstr(stack, ".switch_mlp.") ? ".switch_mlp." : ".experts.";
    static const char *const mixtral[][2] = {{"gate_proj", "w1"}, {"down_proj", "w2"}, {"up_proj", "w3"}};
    const char *at = strstr(stack, marker);
    if (!at) return false;
    const char *matrix = at + strlen(marker);
    size_t before = (size_t)(at - stack);
    bool of_mixtral = before > 17 && strncmp(at - 17, ".block_sparse_moe", 17) == 0;
    for (size_t i = 0; i < 3 && of_mixtral; i++)
        if (strcmp(matrix, mixtral[i][0]) == 0) matrix = mixtral[i][1];
    return (size_t)snprintf(name, size, "%.*s.experts.%llu.%s.weight", (int)before, stack, (unsigned long long)expert,
                            matrix) < size;
}

static fr_status add_module(reading *in, const fr_tensor *t, codes_kind kind, size_t length, fr_storage **next) {
    module m = {.in = in, .codes = t};
    char name[NAME_MAX];
    snprintf(m.name, sizeof m.name, "%.*s", (int)length, t->name);
    FR_TRY(fr_storage_config_module(&in->config, m.name, &m.scheme));
    FR_TRY(recognize(&m, kind));
    uint64_t stacked = t->dims == 3 ? t->shape[0] : 1;
    /* for latent attention, mlx-lm stores a stack of one matrix for each head; here the stack becomes one matrix */
    bool heads = before_end(m.name, ".embed_q") || before_end(m.name, ".unembed_out");
    if (heads && stacked > COLS_MAX / m.storage.rows) return fail(&m, "its shape has too many rows");
    if (heads) m.storage.rows *= (size_t)stacked;
    if (heads || t->dims == 2) {
        snprintf(name, sizeof name, "%s.weight", m.name);
        return add_matrix(in, &m, name, next, 0, 1);
    }
    for (uint64_t e = 0; e < stacked; e++) {
        if (!spell_expert(m.name, e, name, sizeof name))
            return fail(&m, "it is a stack of matrices, but not of experts");
        FR_TRY(add_matrix(in, &m, name, next, e * m.storage.rows, stacked));
    }
    return FR_OK;
}

/* Splits an MLX stack that is not quantized, and adds one tensor for each expert. */
static fr_status add_stack(reading *in, const fr_tensor *t, size_t length) {
    char stack[NAME_MAX], name[NAME_MAX];
    snprintf(stack, sizeof stack, "%.*s", (int)length, t->name);
    for (uint64_t e = 0; e < t->shape[0]; e++) {
        fr_tensor one = *t;
        one.dims = 2;
        one.shape[0] = t->shape[1];
        one.shape[1] = t->shape[2];
        one.bytes = t->bytes / t->shape[0];
        one.data = (const uint8_t *)t->data + e * one.bytes;
        one.name = name;
        if (!spell_expert(stack, e, name, sizeof name))
            return fr_fail(FR_INPUT, "%s: tensor %s: its name is too long", in->files->path, t->name);
        FR_TRY(fr_tensors_add(&in->made, &one, in->files->path));
    }
    return FR_OK;
}

static bool is_stack(const fr_tensor *t, size_t *length) {
    *length = before_end(t->name, ".weight");
    bool stack = *length && t->dims == 3 && t->shape[0] > 0 && t->bytes >= t->shape[0];
    return stack && t->type < FR_FLOAT_TYPES && strstr(t->name, ".switch_mlp.");
}

static fr_status make_directory(reading *in, fr_storage *next) {
    const fr_tensors *tensors = &in->files->tensors;
    for (size_t i = 0; i < tensors->count; i++) {
        const fr_tensor *t = &tensors->items[i];
        size_t length;
        codes_kind kind = kind_of(in, t, &length);
        if (kind != NO_CODES)
            FR_TRY(add_module(in, t, kind, length, &next));
        else if (is_stack(t, &length))
            FR_TRY(add_stack(in, t, length));
        else if (!is_part(in, t) && !is_ignored(t))
            FR_TRY(fr_tensors_add(&in->made, t, in->files->path));
    }
    return FR_OK;
}

bool fr_storage_refit(const fr_checkpoint *files, const fr_tensor *tensor, uint64_t cols) {
    fr_storage *s = files->storages + (tensor->storage - files->storages);
    fr_tensor *made = files->tensors.items + (tensor - files->tensors.items);
    uint64_t words = s->codes.line_step / 4;
    if (s->form != FR_STORAGE_GROUPED || s->grouping.offset != FR_OFFSET_BIAS || cols == 0 || cols > COLS_MAX)
        return false;
    if (cols % s->groups || words * 32 % cols || !is_built(words * 32 / cols)) return false;
    s->cols = (size_t)cols;
    s->grouping.group = (uint32_t)(cols / s->groups);
    s->grouping.bits = s->codes.bits = (uint8_t)(words * 32 / cols);
    made->shape[1] = cols;
    return true;
}

/* Returns true for the kernel of a convolution over positions in mlx-lm's layout. */
static bool has_channels_last(const fr_tensor *t) {
    bool named = before_end(t->name, ".conv1d.weight") || before_end(t->name, ".conv.conv.weight");
    return named && t->dims == 3 && t->shape[1] > 1 && t->shape[2] == 1;
}

static fr_status read_modules(reading *in) {
    fr_checkpoint *files = in->files;
    size_t count = 0, length;
    bool changes = false;
    FR_TRY(fr_storage_config_read(files, &in->config));
    for (size_t i = 0; i < files->tensors.count; i++) {
        const fr_tensor *t = &files->tensors.items[i];
        FR_TRY(check_foreign(in, t));
        files->channels_last |= has_channels_last(t);
        changes |= is_stack(t, &length) || (in->config.method != FR_METHOD_NONE && is_ignored(t));
        if (kind_of(in, t, &length) == NO_CODES) continue;
        uint64_t stacked = t->dims == 3 ? t->shape[0] : 1;
        if (stacked == 0 || stacked > t->bytes)
            return fr_fail(FR_INPUT, "%s: tensor %s is a stack of %llu empty matrices", files->path, t->name,
                           (unsigned long long)stacked);
        count += (size_t)stacked;
    }
    if (count == 0 && !changes) return FR_OK;
    files->storages = calloc(count + 1, sizeof *files->storages);
    if (!files->storages) return fr_fail_memory("the storages of weights", count * sizeof *files->storages);
    FR_TRY(make_directory(in, files->storages));
    files->parts = files->tensors;
    files->tensors = in->made;
    in->made = (fr_tensors){0};
    return FR_OK;
}

fr_status fr_storage_read(fr_checkpoint *files) {
    reading in = {.files = files};
    fr_status status = read_modules(&in);
    fr_tensors_free(&in.made);
    fr_storage_config_close(&in.config);
    return status;
}
