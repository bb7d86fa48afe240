/* Writes a folder of features: texts of a model, and the inputs of some of its layers for each of their ids.
 *
 * In: texts, rows of floats. Out, in the folder:
 *
 *     features.json   {"format": 1, "type": "BF16", "hidden", "vocab", "model_layers", "layers": [...]}
 *     rows.bf16       [ids of all texts, layers, hidden] bfloat16 (rounded to nearest even), little-endian
 *     index.jsonl     a line a text, in the order of the prompts: {"line": from 0, "id": the prompt's, "prompt": of
 *                     its ids the first so many were given, "at": its first row, "stop": why it ended, "ids": [...]};
 *                     or {"line", "id", "error"} of one that could not be run, which has no rows
 *
 * Layer l stands for the input of layer l, and model_layers for the output of the last layer, before the final norm. A
 * text counts once its line is complete, which is written after its rows. A run that resumes cuts off everything after
 * the last complete line. */
#ifndef FR_TOOLS_CLI_FEATURES_FOLDER_H
#define FR_TOOLS_CLI_FEATURES_FOLDER_H

#include <stdio.h>

#include "forerun.h"

/* The kind of a folder, which must be the same in a run and in the run that it continues. */
typedef struct fr_features_kind {
    int64_t hidden, vocab, model_layers;
    size_t layers[FR_ROWS_LAYERS_MAX], layer_count;
} fr_features_kind;

typedef struct fr_features_folder {
    const char *path;
    FILE *rows, *index;
    uint64_t row_count; /* complete rows in the folder */
    size_t texts;
    uint16_t *half; /* [width] the row that is being written */
    char line[256]; /* text of an error */
} fr_features_folder;

/* Makes the folder, or opens one that has no features. A run that resumes may also open one of the same kind with at
 * most `most` texts. Gives the exit status. */
int fr_features_open(fr_features_folder *folder, const char *path, const fr_features_kind *kind, bool resumes,
                     size_t most);

/* Takes rows of a text; an fr_rows_fn whose context is the folder. If a write fails it gives FR_INPUT, and
 * folder->line has the reason. */
fr_status fr_features_take(void *context, const float *values, size_t rows, size_t width);

/* Writes the text's line, after which its rows count. A text with an error has no rows. Gives the exit status. */
int fr_features_end_text(fr_features_folder *folder, const char *line, size_t rows);
void fr_features_close(fr_features_folder *folder);

#endif
