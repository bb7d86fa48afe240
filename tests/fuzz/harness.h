/* Helps the fuzz_ targets. It keeps inputs as files in memory, makes folders that contain these files, and opens and
 * runs models with them.
 *
 * In: the bytes from libFuzzer or replay.c. Out: a path that opens as a file with these bytes, a folder with such a
 * file, or a model or drafter. The other files of a model or drafter stay open from input to input. An input is never
 * written to disk. */
#ifndef FR_TESTS_FUZZ_HARNESS_H
#define FR_TESTS_FUZZ_HARNESS_H

#include "src/engine/draft/draft.h"
#include "src/engine/embed/embedder.h"
#include "src/engine/vision/vision.h"
#include "tests/fuzz/mutation.h"

/* libFuzzer calls this function, which each target defines. The function must not keep anything of an input. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* Number of inputs that a target has read to their end; each target counts them here. If no seed is read to its end,
 * the seeds test nothing. */
extern size_t fuzz_inputs_read;

/* A file in memory. Every function that opens files accepts its path. */
typedef struct fuzz_file {
    int fd;
    char path[32];
} fuzz_file;

fuzz_file fuzz_file_new(void);

/* Replaces the file's content by the bytes of `begin` followed by the bytes of `end`. */
void fuzz_file_write(const fuzz_file *file, const void *begin, size_t begin_size, const void *end, size_t end_size);

/* The two parts of an input for a target that reads two files: the bytes before and after the first divider. If the
 * input has no divider, the second part is NULL. */
typedef struct fuzz_halves {
    const uint8_t *first, *second;
    size_t first_size, second_size;
} fuzz_halves;

fuzz_halves fuzz_divide(const uint8_t *bytes, size_t size, uint8_t divider);

/* Makes a new folder, which is removed when the program exits. Returns its path, which stays valid until then. */
const char *fuzz_folder(void);

/* Puts a link to a file or folder into `folder`. The link is named `name`. */
void fuzz_link(const char *folder, const char *name, const char *path);

/* A plan with one thread that is not bound to a core. fuzz_kernels returns the best kernels of this machine. */
extern const fr_plan fuzz_plan;
const fr_kernels *fuzz_kernels(void);

/* Returns options with a short context; with them an end of sequence does not end a text. */
const fr_options *fuzz_options(void);

/* If `hushed` is true, the error lines of the tested code are discarded until the next call. Reports of a sanitizer
 * still appear. */
void fuzz_hush(bool hushed);

/* Opens a published folder or a GGUF file. This must succeed. */
void fuzz_open_files(fr_checkpoint *files, const char *path);

/* The tensor data of a GGUF file. A target appends them to an input that describes such tensors. */
typedef struct fuzz_data {
    const char *mark; /* the data are appended to inputs that contain this text */
    const char *path;
    uint8_t *bytes;
    size_t size;
} fuzz_data;

void fuzz_data_read(fuzz_data *data);

/* Returns the first entry whose mark is in the input. The mark of the last entry is "", which is in every input. */
const fuzz_data *fuzz_data_find(const fuzz_data *data, const uint8_t *bytes, size_t size);

/* Both functions return a model, or NULL if the files are refused. The caller keeps the files and closes them.
 * fuzz_model_bind only finds and checks the tensors; a model from fuzz_model_open can also run. */
fr_model *fuzz_model_bind(const fr_checkpoint *files);
fr_model *fuzz_model_open(const fr_checkpoint *files);
void fuzz_model_close(fr_model *model);

/* Opens a drafter that can run. Returns NULL if the drafter is refused. The caller frees it with fr_drafter_unload. */
fr_drafter *fuzz_drafter_open(const char *path, const fr_model *target);

/* Tokenizes some texts and decodes the ids. */
void fuzz_use_tokenizer(const fr_tokenizer *tokenizer);

/* The vision encoder of a checkpoint. The checkpoint may be a folder of a model, a file of the encoder alone, or a file
 * of a whole model. */
typedef struct fuzz_tower {
    fr_weights weights;
    fr_vision *vision; /* NULL: refused */
} fuzz_tower;

void fuzz_tower_open(fuzz_tower *tower, const fr_checkpoint *files);
void fuzz_tower_close(fuzz_tower *tower);

/* Runs a picture through the vision encoder. A picture that would become too many tokens for a fuzzer's time is
 * skipped. */
void fuzz_show(const fuzz_tower *tower, const fr_image *image);

/* Computes embeddings and scores of ids. If the model has a tokenizer, also computes those of texts. Returns false if
 * the files of sentence-transformers are refused. */
bool fuzz_embed(const fr_model *model);

/* Runs a prompt and some steps, with the drafter. If `drafter` is NULL and the model has its own drafter, that one is
 * used. */
void fuzz_run(const fr_model *model, const fr_drafter *drafter);

#endif
