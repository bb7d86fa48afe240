/* Opens reference fixtures for suites. A fixture is tests/data/models/NAME, or a folder next to `models`, with the
 * values that transformers computed (tests/references).
 *
 * In: the name of a fixture. Out: its reference.json, its reference tensors, and its opened model and drafter. */
#ifndef FR_TESTS_REFERENCE_H
#define FR_TESTS_REFERENCE_H

#include "formats/checkpoint.h"

#define FR_TEST_MODELS "tests/data/models/"

/* Returns the name of a fixture, or NULL after the last one. */
const char *fr_reference_name(size_t index);

/* Returns the name of a target without a drafter. r->drafter is NULL for it. */
const char *fr_reference_alone(size_t index);

/* Returns the name of a fixture with 1024 positions. The first ones have a drafter, and some more have none. */
const char *fr_reference_long(size_t index);

typedef struct fr_reference {
    char folder[256], assistant[256];
    json_t *info;
    fr_map map;
    fr_tensors tensors;
    fr_model *model;
    fr_drafter *drafter;
} fr_reference;

/* Opens all parts of a fixture with these options. If a part is missing, ends the test. */
void fr_reference_open(fr_reference *reference, const char *name, const fr_options *options);
void fr_reference_close(fr_reference *reference);

/* Returns true if the prompt has a picture. In this case the ids alone are not the whole prompt. */
bool fr_reference_sees(const fr_reference *reference, size_t prompt);

/* Returns the float32 tensor with the name that the printf format gives. */
const float *fr_reference_floats(const fr_reference *reference, size_t *count, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Opens the model of a fixture after some members of its config.json have been replaced. `changes` has the new members
 * as JSON; null removes a member. Afterwards `folder` has the config.json and the model.safetensors. */
fr_status fr_reference_open_changed(const char *name, const char *changes, const char *folder);

/* Returns the integers of a JSON array. The caller frees them. */
int32_t *fr_json_ids_of(const json_t *array, size_t *count);

/* Stores rows of logits one after the other. They come from fr_session_logits or fr_session_draft_logits. */
typedef struct fr_rows {
    float *values;
    size_t count, capacity; /* numbers of floats: the stored ones, and those for which there is room */
} fr_rows;

fr_status fr_rows_collect(void *rows, const float *logits, size_t count, size_t vocab);

/* If the rows are not all the same, bit for bit, ends the test. */
void fr_rows_expect_same(const fr_rows *got, const fr_rows *expected);

/* If a logit differs from the expected logit by more than 5e-5 of the largest logit, ends the test. */
void fr_rows_compare(const float *got, const float *expected, size_t count);

#endif
