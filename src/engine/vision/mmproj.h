/* A vision tower in a file of its own, for a GGUF text model.
 *
 * In: a file that llama.cpp's converter writes with --mmproj: a GGUF file of architecture "clip", whose projector is
 * that of a kind in towers.c. A file with another projector is refused, and the error names the projector. Out: the
 * tower as an fr_vision, bound to the file's tensors. A file with tensors that this kind does not read holds another
 * tower and is refused. */
#ifndef FR_SRC_ENGINE_VISION_MMPROJ_H
#define FR_SRC_ENGINE_VISION_MMPROJ_H

#include "src/engine/vision/vision.h"

typedef struct fr_mmproj {
    fr_checkpoint files;
    fr_weights weights;
    fr_vision *vision;
} fr_mmproj;

/* Returns true if the checkpoint is a file with only a vision tower, whatever its projector. */
bool fr_is_mmproj(const fr_checkpoint *files);

/* Opens the file; weights are placed later. hidden: as in fr_vision_open. *mmproj is NULL after a failure. */
fr_status fr_mmproj_open(const char *path, bool use_mmap, const fr_kernels *kernels, size_t hidden, fr_mmproj **mmproj);
void fr_mmproj_close(fr_mmproj *mmproj);

#endif
