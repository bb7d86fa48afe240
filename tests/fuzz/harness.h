/* Shared by the fuzz_ targets: inputs as files in memory, folders around them, and models that run with the files that
 * were read.
 *
 * In: the bytes from libFuzzer or replay.c. Out: a path that opens as that file; a folder with it; a model or a
 * drafter whose other files stay open from input to input. Nothing of an input is written to disk. */
#ifndef FR_TESTS_FUZZ_HARNESS_H
#define FR_TESTS_FUZZ_HARNESS_H

#include "src/engine/draft/draft.h"
#include "src/engine/vision/vision.h"
#include "tests/fuzz/mutation.h"

/* Each target defines this function. It keeps nothing of an input. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* A target counts each input that was read to its end, because seeds of which none gets there test nothing. */
extern size_t fuzz_inputs_read;

/* A file in memory, by a path that every function takes. */
typedef struct fuzz_file {
    int fd;
    char path[32];
} fuzz_file;

fuzz_file fuzz_file_new(void);

/* Replaces the file's content by `begin` and `end`, one after the other. */
void fuzz_file_write(const fuzz_file *file, const void *begin, size_t begin_size, const void *end, size_t end_size);

/* The parts of an input before and after its first divider, for a target that reads two files. Without a divider the
 * second is NULL. */
typedef struct fuzz_halves {
    const uint8_t *first, *second;
    size_t first_size, second_size;
} fuzz_halves;

fuzz_halves fuzz_divide(const uint8_t *bytes, size_t size, uint8_t divider);

/* Makes a new folder, which is removed at exit. The text stays valid. */
const char *fuzz_folder(void);

/* Puts a link to a file or folder there, under a name. */
void fuzz_link(const char *folder, const char *name, const char *path);

/* One thread, not pinned, and the kernels of this machine. */
extern const fr_plan fuzz_plan;
const fr_kernels *fuzz_kernels(void);

/* Options with a short context, which ignore an end of sequence. */
const fr_options *fuzz_options(void);

/* Drops what is written to standard error while code under test prints its lines; a sanitizer's reports still
 * appear. */
void fuzz_hush(bool hushed);

/* Opens a published folder or a GGUF file, which must succeed. */
void fuzz_open_files(fr_checkpoint *files, const char *path);

/* The data of a GGUF file's tensors, to be put after an input that describes them. */
typedef struct fuzz_data {
    const char *mark; /* an input that contains it gets these data */
    const char *path;
    uint8_t *bytes;
    size_t size;
} fuzz_data;

void fuzz_data_read(fuzz_data *data);

/* Returns the first of them whose mark the input contains; the last one's mark is "". */
const fuzz_data *fuzz_data_find(const fuzz_data *data, const uint8_t *bytes, size_t size);

/* Binds a model to files that stay the caller's; NULL: refused. A model that is opened, not only bound, can run. */
fr_model *fuzz_model_bind(const fr_checkpoint *files);
fr_model *fuzz_model_open(const fr_checkpoint *files);
void fuzz_model_close(fr_model *model);

/* Opens a drafter that can run; NULL: refused. Free it with fr_drafter_unload. */
fr_drafter *fuzz_drafter_open(const char *path, const fr_model *target);

/* Turns texts to ids and back. */
void fuzz_use_tokenizer(const fr_tokenizer *tokenizer);

/* A vision tower of a checkpoint: of a folder, in files of its own, or beside a text model. */
typedef struct fuzz_tower {
    fr_weights weights;
    fr_vision *vision; /* NULL: refused */
} fuzz_tower;

void fuzz_tower_open(fuzz_tower *tower, const fr_checkpoint *files);
void fuzz_tower_close(fuzz_tower *tower);

/* Shows a picture to the tower, unless it would become more tokens than a fuzzer has time for. */
void fuzz_show(const fuzz_tower *tower, const fr_image *image);

/* Runs a prompt and some steps, with the drafter, or with the model's own if it has one. */
void fuzz_run(const fr_model *model, const fr_drafter *drafter);

#endif
