/* Reads GGUF, versions 2 and 3, which keeps metadata and tensors in one little-endian file.
 *
 *     "GGUF"  u32 version  u64 tensor count  u64 key count
 *     keys:     string key, u32 type, value          string: u64 length, bytes, no NUL
 *                                                    array: u32 element type, u64 count, elements one after the other
 *     tensors:  string name, u32 dims, u64 dim[dims] (fastest first), u32 type, u64 offset
 *     padding to a multiple of general.alignment (32 if missing); the data begin there, and offsets count from there
 * Source: the format's description, github.com/ggml-org/ggml docs/gguf.md.
 *
 * In: one mapped file. Out: its metadata, as values that point into the map, and its tensors, added to a list.
 * Checked: everything is inside the file; at most FR_GGUF_KEYS_MAX keys and FR_GGUF_TENSORS_MAX tensors, names of 1 to
 * 256 bytes without NUL, no key or tensor twice; values of known types, booleans 0 or 1, no arrays of arrays; an
 * alignment that is a power of two up to 2^20; at most 4 dimensions of at most 2^48, rows of whole blocks; offsets
 * that are multiples of the alignment; no two tensors overlap (gaps between them are allowed).
 *
 * The first files of ternary Bonsai models have tensors of type Q2_0 whose blocks are those of PQ2_0. They are read as
 * PQ2_0.
 *
 * Tensors of an unsupported type are added to another list, as with safetensors. */
#ifndef FR_FORMATS_GGUF_H
#define FR_FORMATS_GGUF_H

#include "base/text.h"
#include "formats/map.h"
#include "formats/tensors.h"

#define FR_GGUF_KEYS_MAX    ((size_t)1 << 16)
#define FR_GGUF_TENSORS_MAX ((size_t)1 << 18)
#define FR_GGUF_DIMS_MAX    4
#define FR_GGUF_ALIGNMENT   32

/* Marks tensor types of forerun's packed layout (quant/packed.h). If the upper 16 bits of a tensor type are one of
 * these two numbers, the data are packed, and the lower 16 bits are the original type. Q1_0 and Q2_0 use the second
 * number, because their layout changed after version 0.1. Files that have Q1_0 or Q2_0 with the first number are
 * refused. */
#define FR_GGUF_PACKED      ((uint32_t)0x4652 << 16)
#define FR_GGUF_PACKED_ANEW ((uint32_t)0x4653 << 16)

/* The types of metadata values, with the numbers that files use for them. */
typedef enum fr_gguf_type {
    FR_GGUF_U8,
    FR_GGUF_I8,
    FR_GGUF_U16,
    FR_GGUF_I16,
    FR_GGUF_U32,
    FR_GGUF_I32,
    FR_GGUF_F32,
    FR_GGUF_BOOL,
    FR_GGUF_STRING,
    FR_GGUF_ARRAY,
    FR_GGUF_U64,
    FR_GGUF_I64,
    FR_GGUF_F64,
    FR_GGUF_TYPES
} fr_gguf_type;

typedef struct fr_gguf_value {
    fr_text key;
    fr_gguf_type type;
    fr_gguf_type element; /* type of an array's elements; if the value is no array, the value's own type */
    uint64_t count;       /* number of elements of an array; 1 if the value is no array */
    const uint8_t *data;  /* the value's bytes in the file, at any alignment; for a string, without its length */
    size_t bytes;
} fr_gguf_value;

typedef struct fr_gguf {
    const char *path; /* the path of the mapped file; it belongs to the map */
    uint32_t version;
    uint64_t alignment;
    size_t data_begin;     /* the offset in the file at which the tensors' data begin */
    char *architecture;    /* the value of general.architecture; "" if the file has none */
    fr_gguf_value *values; /* in file order */
    size_t count;
    uint32_t *by_key; /* [count] indices of values, sorted by key */
} fr_gguf;

/* Reads the header of a mapped file. `file` becomes the file number of the tensors. Tensors of an unsupported type go
 * to `unread`. The map must outlive gguf and the tensors. A failure leaves gguf closed. */
fr_status fr_gguf_read(fr_gguf *gguf, const fr_map *map, uint32_t file, fr_tensors *tensors, fr_tensors *unread);
void fr_gguf_close(fr_gguf *gguf);

/* --------------------------------------------------------------------------------------------------------- metadata */

/* These functions read metadata by key. If a key begins with a point, the architecture's name is put before it:
 * ".block_count" then means "gemma4.block_count". The error lines of the functions name the file and the key. */

/* Gives the bytes of a value of that type; 0 for strings and arrays. */
size_t fr_gguf_element_bytes(fr_gguf_type type);

/* Finds the value of a key; NULL if there is none. */
const fr_gguf_value *fr_gguf_find(const fr_gguf *gguf, const char *key);

/* Reads an integer (or a boolean, as 0 or 1) in [low, high]. A missing key gives the fallback. If the fallback is
 * FR_GGUF_REQUIRED, a missing key is an error. */
#define FR_GGUF_REQUIRED INT64_MIN
fr_status fr_gguf_int(const fr_gguf *gguf, const char *key, int64_t low, int64_t high, int64_t fallback,
                      int64_t *value);

/* Like fr_gguf_int, but for a size_t: reads an integer in [low, high], with low >= 0. It is for counts and widths. */
fr_status fr_gguf_size(const fr_gguf *gguf, const char *key, int64_t low, int64_t high, int64_t fallback,
                       size_t *value);

/* Reads n integers. The value is an array of n integers, or one integer that is used for all n. */
fr_status fr_gguf_ints(const fr_gguf *gguf, const char *key, int64_t low, int64_t high, int64_t fallback, size_t n,
                       int64_t *values);

/* Reads a finite number in [low, high], integer or real. A missing key gives the fallback. If the fallback is NAN, a
 * missing key is an error. */
fr_status fr_gguf_real(const fr_gguf *gguf, const char *key, double low, double high, double fallback, double *value);

fr_status fr_gguf_bool(const fr_gguf *gguf, const char *key, bool fallback, bool *value);

/* Reads a string, whose bytes stay in the file; a missing key gives bytes NULL. */
fr_status fr_gguf_text(const fr_gguf *gguf, const char *key, fr_text *value);

/* Reads an array whose elements have the type `element`; a missing key gives NULL. */
fr_status fr_gguf_array(const fr_gguf *gguf, const char *key, fr_gguf_type element, const fr_gguf_value **array);

/* Gives the next string of an array of strings, and moves *at to the string after it. *at must be 0 before the first
 * call. The function may be called at most array->count times. */
fr_text fr_gguf_next(const fr_gguf_value *array, size_t *at);

/* Each reads an element of an array: of I32 or of F32. */
int32_t fr_gguf_i32(const fr_gguf_value *array, size_t index);
float fr_gguf_f32(const fr_gguf_value *array, size_t index);

/* ----------------------------------------------------------------------------------------------------- tensor types */

/* fr_gguf_dtype gives the type for a type number of the file, or FR_DTYPE_COUNT if that type is not supported.
 * fr_gguf_type_id gives the number of a type that GGUF has. */
fr_dtype fr_gguf_dtype(uint32_t id, bool *packed);
uint32_t fr_gguf_type_id(fr_dtype type, bool packed);

#endif
