/* A folder of features: texts of a model, and what some of its layers were given for each of their ids.
 *
 * In: texts, rows of floats. Out, in the folder:
 *
 *     features.json   {"format": 1, "type": "BF16", "hidden", "vocab", "model_layers", "layers": [...]}
 *     rows.bf16       [ids of all texts, layers, hidden] bfloat16 (rounded to nearest even), little-endian
 *     index.jsonl     a line a text, in the order of the prompts: {"line": from 0, "id": the prompt's, "prompt": of
 *                     its ids the first so many were given, "at": its first row, "stop": why it ended, "ids": [...]};
 *                     or {"line", "id", "error"} of one that could not be run, which has no rows
 *
 * Layer l stands for the input of layer l, model_layers for what the last one gives, before the final norm. A text
 * counts once its line is whole, which is written behind its rows: what lies behind the last whole line is cut off by
 * who goes on. */
#ifndef FR_TOOLS_CLI_FEATURES_FOLDER_H
#define FR_TOOLS_CLI_FEATURES_FOLDER_H

#include <stdio.h>

#include "forerun.h"

/* What it is of: what two runs must have in common. */
typedef struct fr_features_kind {
    int64_t hidden, vocab, model_layers;
    size_t layers[FR_ROWS_LAYERS_MAX], layer_count;
} fr_features_kind;

typedef struct fr_features_folder {
    const char *path;
    FILE *rows, *index;
    uint64_t row_count; /* that are in the folder, whole */
    size_t texts;
    uint16_t *half; /* [width] of the row that is written */
    char line[256]; /* of errors */
} fr_features_folder;

/* Makes the folder, or opens one, which must be empty of features; or, if it resumes, may have some of the same kind,
 * of `most` texts at most. Gives the exit status. */
int fr_features_open(fr_features_folder *folder, const char *path, const fr_features_kind *kind, bool resumes,
                     size_t most);

/* Rows of a text, an fr_rows_fn whose context is the folder; a write that fails is FR_INPUT, and folder->line says
 * why. */
fr_status fr_features_take(void *context, const float *values, size_t rows, size_t width);

/* The text's line, which makes its rows count; without them if it has an error. Gives the exit status. */
int fr_features_end_text(fr_features_folder *folder, const char *line, size_t rows);
void fr_features_close(fr_features_folder *folder);

#endif
