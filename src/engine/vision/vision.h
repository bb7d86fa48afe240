/* A vision tower turns a picture into the rows that stand for its image tokens in a prompt.
 *
 * In: a tower, and a picture as formats/image.h gives it. The tower comes from a checkpoint's tensors, vision_config of
 * its config.json and the settings of its picture processor, or from llama.cpp's mmproj file (mmproj.h). Out: a row for
 * every token of the picture, as wide as the text model. No row depends on the number of threads or the instruction
 * set. The kinds of towers are in tower.h. */
#ifndef FR_SRC_ENGINE_VISION_VISION_H
#define FR_SRC_ENGINE_VISION_VISION_H

#include <stdio.h>

#include "base/options.h"
#include "base/text_buffer.h"
#include "formats/gguf_write.h"
#include "formats/image.h"
#include "src/engine/vision/mrope.h"
#include "src/engine/weights/weights.h"

typedef struct fr_vision fr_vision;

/* Returns true if the checkpoint of a text model also has a vision tower of a supported kind. */
bool fr_vision_exists(const fr_weights *weights);

/* Reads the configuration and binds the weights; fr_weights_place must follow. hidden: the text model's width, which
 * the tower's rows must have; 0: there is no text model. */
fr_status fr_vision_open(fr_weights *weights, const fr_kernels *kernels, size_t hidden, fr_vision **vision);
void fr_vision_close(fr_vision *vision);

/* Writes the tower's keys to a GGUF file of architecture "clip". Fails with FR_UNBUILT if GGUF has no key for a setting
 * of the tower. */
fr_status fr_vision_put(const fr_vision *vision, fr_gguf_writer *writer);

/* Gives the token that ends each row of a picture in a prompt; NULL: there is none. llama.cpp reads the token's
 * embedding from the tower's file. */
const char *fr_vision_row_end(const fr_vision *vision);

/* Applies the options' limits of a picture's pixels or tokens, in place of the limits that the model's makers have set.
 * If an option's lower limit is above the makers' upper limit, or an option's upper limit is below the makers' lower
 * limit, both limits become the option's. Fails with FR_INPUT if the tower has one size for all pictures. */
fr_status fr_vision_limit(fr_vision *vision, const fr_options *options);

/* Returns true if the tower is of the kind that models of one of these architectures (NULL-terminated) have. */
bool fr_vision_is_of(const fr_vision *vision, const char *const *architectures);

/* Prints the tower's layers and widths in words, and the sizes of pictures that it accepts. */
void fr_vision_describe(const fr_vision *vision, FILE *out);

/* Gives the grid of tokens for a picture of this size: a prompt needs rows * columns image tokens for it, in as many
 * runs as the grid says. Fails with FR_INPUT if the tower can't make tokens of the picture, for instance because its
 * longer side is more than 200 times the shorter one. */
fr_status fr_vision_grid(const fr_vision *vision, size_t width, size_t height, fr_image_grid *grid);

/* For a tower in a file of its own, gives the text of the image token; NULL: the text model's family gives it. */
const char *fr_vision_token_text(const fr_vision *vision);

/* Counts the multiply-adds for a picture: those of the tower's layers and of the embedding of patches. */
typedef struct fr_vision_work {
    double products, attention; /* products: multiply-adds of products with weights; attention: multiply-adds of scores
                                 * and of weighted sums of values */
    fr_dtype type;              /* the type of the layers' matrices; FR_DTYPE_COUNT: there are no layers */
} fr_vision_work;

/* Counts the multiply-adds for a picture of this size. Fails like fr_vision_grid. */
fr_status fr_vision_count(const fr_vision *vision, size_t width, size_t height, fr_vision_work *work);

/* Gives the text by which chat templates mark a picture's place; NULL: they write one image token. */
const char *fr_vision_mark(const fr_vision *vision);

/* Appends the text that stands for a picture of this size in a prompt, in place of the mark. token: the image token's
 * text. The size must be one that fr_vision_grid accepts. */
void fr_vision_spell(const fr_vision *vision, size_t width, size_t height, const char *token, fr_text_buffer *text);

/* Gives the largest number of tokens that a run of a picture may have. */
size_t fr_vision_run_max(const fr_vision *vision);

/* Gives the number of floats in a row. A row has the token's embedding. Layers of the text model may add a further row
 * to their outputs (Qwen3-VL's deepstack); for each such layer the row has as many floats again. */
size_t fr_vision_row_width(const fr_vision *vision);

/* The rows that the tower has computed for a picture. */
typedef struct fr_vision_rows {
    float *rows; /* [grid.rows * grid.columns, hidden]; hidden is fr_vision_row_width */
    size_t count, hidden;
    fr_image_grid grid;
    fr_arena memory; /* contains `rows` */
} fr_vision_rows;

/* A function that is called between the slices of a tower's run. (A slice is a part of a layer.) If the function fails,
 * the run ends with that error. The function may use the pool for other work, such as forwards of other sessions. */
typedef struct fr_vision_ask {
    fr_status (*goes_on)(void *context);
    void *context;
} fr_vision_ask;

/* Resizes and normalises a picture and runs it on the pool, which has `threads` threads. Each call takes working memory
 * from the system and gives it back. So the function is meant for prompts and not for the steps of generation. ask:
 * NULL, or the function that is called between slices. */
fr_status fr_vision_run_slices(const fr_vision *vision, fr_pool *pool, size_t threads, const fr_image *image,
                               const fr_vision_ask *ask, fr_vision_rows *rows);

static inline fr_status fr_vision_run(const fr_vision *vision, fr_pool *pool, size_t threads, const fr_image *image,
                                      fr_vision_rows *rows) {
    return fr_vision_run_slices(vision, pool, threads, image, NULL, rows);
}

/* Takes memory for `count` rows of `hidden` floats, which fr_vision_run fills, or into which another rank's rows are
 * copied. */
fr_status fr_vision_rows_open(fr_vision_rows *rows);
void fr_vision_rows_close(fr_vision_rows *rows);

#endif
