/* Turns the vision tower of a published folder into an mmproj file, with llama.cpp's names, keys and orders of values.
 *
 * In: a checkpoint. Out: a list of the tower's tensors, and its metadata. */
#ifndef FR_SRC_CONVERT_EXPORT_TOWER_H
#define FR_SRC_CONVERT_EXPORT_TOWER_H

#include "formats/gguf_write.h"
#include "src/convert/outputs.h"
#include "src/engine/vision/vision_parts.h"

typedef struct fr_tower_export {
    const fr_checkpoint *files;
    fr_weights weights;
    fr_vision *vision;
    float **values; /* the values of the tensors that have another order in GGUF */
    size_t value_count;
} fr_tower_export;

/* Sets *found to true if the folder has a vision tower of a supported kind. */
fr_status fr_tower_export_find(const fr_checkpoint *files, bool *found);

/* Opens the folder's tower and lists its tensors. Close it even after a failure. */
fr_status fr_tower_export_open(fr_tower_export *export, const fr_checkpoint *files, fr_outputs *outputs);

/* Gives a float type to the tensors that llama.cpp reads only as floats. It is called after the types have been
 * chosen. type: the type of the matrices. */
void fr_tower_export_types(fr_dtype type, fr_outputs *outputs);

fr_status fr_tower_export_metadata(const fr_tower_export *export, fr_gguf_writer *writer);
void fr_tower_export_close(fr_tower_export *export);

#endif
