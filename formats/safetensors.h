/* Reads safetensors: a length n, n bytes of JSON, then the data.
 *
 * 8 bytes n (little-endian), n bytes of JSON {"name": {"dtype","shape","data_offsets":[b,e]}, ..., "__metadata__":
 * {...}}, then the data; offsets count from the first byte after the JSON. Source: the format's description,
 * huggingface.co/docs/safetensors.
 *
 * In: one mapped file. Out: its tensors, added to a list. Checked: n is within the file and below 100 MB; names have at
 * most 256 bytes; shapes have at most FR_DIMS_MAX dimensions of at most 2^48, and their product times the element size
 * equals the span; spans are inside the file, in any order, without overlaps, gaps or bytes left over; no name occurs
 * twice.
 *
 * Tensors of an unsupported type (such as a vision tower's F8) are added to another list. They cause an error only when
 * they are looked up by name. */
#ifndef FR_FORMATS_SAFETENSORS_H
#define FR_FORMATS_SAFETENSORS_H

#include "formats/map.h"
#include "formats/tensors.h"

/* Reads the header. `file` becomes the file number of the tensors. Tensors of an unsupported type (FR_DTYPE_COUNT) go
 * to `unread`. */
fr_status fr_safetensors_read(const fr_map *map, uint32_t file, fr_tensors *tensors, fr_tensors *unread);

#endif
