/* Helps the fuzz_ targets: it keeps inputs as files in memory, makes folders that contain them, and opens and runs
 * models on them.
 *
 * In: the bytes from libFuzzer or replay.c. Out: a path that opens as a file with these bytes; a folder with that
 * file; a model or a drafter, whose other files stay open from input to input. Nothing of an input is written to
 * disk. */
#ifndef FR_TESTS_FUZZ_HARNESS_H
#define FR_TESTS_FUZZ_HARNESS_H

#include "src/engine/draft/draft.h"
#include "src/engine/embed/embedder.h"
#include "src/engine/vision/vision.h"
#include "tests/fuzz/mutation.h"

/* Each target defines this function. It must not keep anything of an input. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* A target counts the inputs that it reads to their end. If no seed gets that far, the seeds test nothing. */
extern size_t fuzz_inputs_read;

/* A file in memory, with a path that every function accepts. */
typedef struct fuzz_file {
    int fd;
    char path[32];
} fuzz_file;

fuzz_file fuzz_file_new(void);

/* Replaces the file's content by `begin` and `end`, one after the other. */
void fuzz_file_write(const fuzz_file *file, const void *begin, size_t begin_size, const void *end, size_t end_size);

/* The parts of an input before and after its first divider, for a target that reads two files. If there is no divider,
 * the second part is NULL. */
typedef struct fuzz_halves {
    const uint8_t *first, *second;
    size_t first_size, second_size;
} fuzz_halves;

fuzz_halves fuzz_divide(const uint8_t *bytes, size_t size, uint8_t divider);

/* Makes a new folder, which is removed at exit. The returned text stays valid. */
const char *fuzz_folder(void);

/* Puts a link to a file or folder into the folder, under this name. */
void fuzz_link(const char *folder, const char *name, const char *path);

/* A plan for one thread that is not pinned, and the best kernels of this machine. */
extern const fr_plan fuzz_plan;
const fr_kernels *fuzz_kernels(void);

/* Options with a short context, which ignore an end of sequence. */
const fr_options *fuzz_options(void);

/* While hushed, code under test writes its error lines to nowhere. A sanitizer's reports still appear. */
void fuzz_hush(bool hushed);

/* Opens a published folder or a GGUF file, which must succeed. */
void fuzz_open_files(fr_checkpoint *files, const char *path);

/* The tensor data of a GGUF file, to be appended to an input that describes such tensors. */
typedef struct fuzz_data {
    const char *mark; /* the data belong to inputs that contain this text */
    const char *path;
    uint8_t *bytes;
    size_t size;
} fuzz_data;

void fuzz_data_read(fuzz_data *data);

/* Returns the first entry whose mark the input contains. The last entry has the mark "", which every input
 * contains. */
const fuzz_data *fuzz_data_find(const fuzz_data *data, const uint8_t *bytes, size_t size);

/* Both functions return a model, or NULL if the files are refused. The files stay the caller's. fuzz_model_bind only
 * binds the tensors; a model from fuzz_model_open can run. */
fr_model *fuzz_model_bind(const fr_checkpoint *files);
fr_model *fuzz_model_open(const fr_checkpoint *files);
void fuzz_model_close(fr_model *model);

/* Opens a drafter that can run. Returns NULL if it is refused. Free it with fr_drafter_unload. */
fr_drafter *fuzz_drafter_open(const char *path, const fr_model *target);

/* Tokenizes some texts and decodes the ids. */
void fuzz_use_tokenizer(const fr_tokenizer *tokenizer);

/* The vision encoder of a checkpoint, which is a folder, a file of its own, or part of a model. */
typedef struct fuzz_tower {
    fr_weights weights;
    fr_vision *vision; /* NULL: refused */
} fuzz_tower;

void fuzz_tower_open(fuzz_tower *tower, const fr_checkpoint *files);
void fuzz_tower_close(fuzz_tower *tower);

/* Runs a picture through the vision encoder, unless it would become more tokens than a fuzzer has time for. */
void fuzz_show(const fuzz_tower *tower, const fr_image *image);

/* Makes rows and scores of ids and, with a tokenizer, of texts. Returns false if the files of sentence-transformers are
 * refused. */
bool fuzz_embed(const fr_model *model);

/* Runs a prompt and some steps, with the drafter, or with the model's own if it has one. */
void fuzz_run(const fr_model *model, const fr_drafter *drafter);

#endif
