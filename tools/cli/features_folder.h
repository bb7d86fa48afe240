/* Writes a folder of features: texts that a model has continued, and for each id of a text the inputs of some of the
 * model's layers.
 *
 * In: texts, rows of floats. Out, in the folder:
 *
 *     features.json   {"format": 1, "type": "BF16", "hidden", "vocab", "model_layers", "layers": [...]}
 *     rows.bf16       [ids of all texts, layers, hidden] bfloat16 (rounded to nearest even), little-endian
 *     index.jsonl     a line for each text, in the order of the prompts: {"line": from 0, "id": the prompt's,
 *                     "prompt": number of its ids that were the prompt, "at": its first row, "stop": why it ended,
 *                     "ids": [...]}; or {"line", "id", "error"} for a text that could not be run and has no rows
 *
 * "layers" lists the layers whose input is stored; the number model_layers means the output of the last layer, before
 * the final norm. A text's line is written after its rows, so a text with a complete line is complete. A run that
 * resumes removes everything after the last complete line. The index is locked while the folder is open. */
#ifndef FR_TOOLS_CLI_FEATURES_FOLDER_H
#define FR_TOOLS_CLI_FEATURES_FOLDER_H

#include <stdio.h>

#include "forerun.h"

/* The properties that all features in a folder share. The features of a run that resumes must have the same
 * properties. */
typedef struct fr_features_kind {
    int64_t hidden, vocab, model_layers;
    size_t layers[FR_ROWS_LAYERS_MAX], layer_count;
} fr_features_kind;

typedef struct fr_features_folder {
    const char *path;
    FILE *rows, *index;
    uint64_t row_count; /* number of rows of the complete texts in the folder */
    size_t texts;       /* number of complete texts in the folder */
    uint16_t *half;     /* [width] the row that is being written, as bfloat16 */
    char line[256];     /* text of the error */
} fr_features_folder;

/* Makes the folder, or opens one that has no features yet. If `resumes` is true, the folder may already have features
 * of the same kind, of at most `most` texts. Gives the exit status. */
int fr_features_open(fr_features_folder *folder, const char *path, const fr_features_kind *kind, bool resumes,
                     size_t most);

/* Writes rows of a text (an fr_rows_fn whose context is the folder). If writing fails, the result is FR_INPUT, and
 * folder->line has the reason. */
fr_status fr_features_take(void *context, const float *values, size_t rows, size_t width);

/* Writes the text's line, which completes the text. A text that could not be run has no rows. Gives the exit
 * status. */
int fr_features_end_text(fr_features_folder *folder, const char *line, size_t rows);
void fr_features_close(fr_features_folder *folder);

#endif
