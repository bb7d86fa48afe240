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

/* Each target has this one. It keeps nothing of an input but what it was opened with. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* To be counted by a target for each input that was read to its end: seeds of which none gets there test nothing. */
extern size_t fuzz_inputs_read;

/* A file in memory, by a path that every function takes. */
typedef struct fuzz_file {
    int fd;
    char path[32];
} fuzz_file;

fuzz_file fuzz_file_new(void);

/* Makes this its whole content; begin and end follow each other. */
void fuzz_file_write(const fuzz_file *file, const void *begin, size_t begin_size, const void *end, size_t end_size);

/* What stands before and behind an input's first divider: a target that reads two files takes both from one input.
 * Without a divider the second is NULL. */
typedef struct fuzz_halves {
    const uint8_t *first, *second;
    size_t first_size, second_size;
} fuzz_halves;

fuzz_halves fuzz_divide(const uint8_t *bytes, size_t size, uint8_t divider);

/* A new folder, removed at exit; its name stays. */
const char *fuzz_folder(void);

/* Puts a file or folder there, under a name, as a link. */
void fuzz_link(const char *folder, const char *name, const char *path);

/* One thread, pinned nowhere, and the kernels of this machine. */
extern const fr_plan fuzz_plan;
const fr_kernels *fuzz_kernels(void);

/* A short context, no end at an end of sequence. */
const fr_options *fuzz_options(void);

/* While something writes its lines to standard error they are dropped; a sanitizer's are not. */
void fuzz_hush(bool hushed);

/* A published folder or a GGUF file that must open. */
void fuzz_open_files(fr_checkpoint *files, const char *path);

/* The data of a GGUF file's tensors, to put behind an input that describes them. */
typedef struct fuzz_data {
    const char *mark; /* an input that holds it is given these data */
    const char *path;
    uint8_t *bytes;
    size_t size;
} fuzz_data;

void fuzz_data_read(fuzz_data *data);

/* The first of them whose mark the input holds; the last one's is "". */
const fuzz_data *fuzz_data_find(const fuzz_data *data, const uint8_t *bytes, size_t size);

/* A model on files that stay the caller's; NULL: refused. Opened, not only bound, it is ready to run. */
fr_model *fuzz_model_bind(const fr_checkpoint *files);
fr_model *fuzz_model_open(const fr_checkpoint *files);
void fuzz_model_close(fr_model *model);

/* A drafter, ready to run; NULL: refused. fr_drafter_unload it. */
fr_drafter *fuzz_drafter_open(const char *path, const fr_model *target);

/* Texts to ids and back. */
void fuzz_use_tokenizer(const fr_tokenizer *tokenizer);

/* A vision tower of a checkpoint, which is a folder's, in files of its own or beside a text model. */
typedef struct fuzz_tower {
    fr_weights weights;
    fr_vision *vision; /* NULL: refused */
} fuzz_tower;

void fuzz_tower_open(fuzz_tower *tower, const fr_checkpoint *files);
void fuzz_tower_close(fuzz_tower *tower);

/* Shows it a picture, unless that becomes more tokens than a fuzzer has time for. */
void fuzz_show(const fuzz_tower *tower, const fr_image *image);

/* A prompt and some steps, with the drafter, or with the model's own if it has one. */
void fuzz_run(const fr_model *model, const fr_drafter *drafter);

#endif
