/* Opens reference fixtures for suites: tests/data/models/NAME (or a folder beside `models`), with the values that
 * transformers computed (tests/references).
 *
 * In: the name of a fixture. Out: its reference.json, its reference tensors, and its model and drafter, opened. */
#ifndef FR_TESTS_REFERENCE_H
#define FR_TESTS_REFERENCE_H

#include "formats/checkpoint.h"

#define FR_TEST_MODELS "tests/data/models/"

/* Returns the name of a fixture, or NULL after the last one. */
const char *fr_reference_name(size_t index);

/* Returns the name of a target without a drafter. Its r->drafter is NULL. */
const char *fr_reference_alone(size_t index);

/* Returns the name of a fixture: first those with a drafter, then some without. All of them have 1024 positions. */
const char *fr_reference_long(size_t index);

typedef struct fr_reference {
    char folder[256], assistant[256];
    json_t *info;
    fr_map map;
    fr_tensors tensors;
    fr_model *model;
    fr_drafter *drafter;
} fr_reference;

/* Opens everything with these options. Ends the test if anything is missing. */
void fr_reference_open(fr_reference *reference, const char *name, const fr_options *options);
void fr_reference_close(fr_reference *reference);

/* Returns true if the prompt has a picture. Its ids alone are then not the whole prompt. */
bool fr_reference_sees(const fr_reference *reference, size_t prompt);

/* Returns the float32 tensor whose name results from the printf format. */
const float *fr_reference_floats(const fr_reference *reference, size_t *count, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Opens the model of a fixture with some members of its config.json replaced. The replacements are written as JSON, in
 * which null removes a member. Afterwards `folder` has the config.json and the model.safetensors. */
fr_status fr_reference_open_changed(const char *name, const char *changes, const char *folder);

/* Returns the integers of a JSON array; the caller frees them. */
int32_t *fr_json_ids_of(const json_t *array, size_t *count);

/* Stores the rows of logits of fr_session_logits and fr_session_draft_logits, one after the other. */
typedef struct fr_rows {
    float *values;
    size_t count, capacity; /* numbers of floats: those that are stored, and those for which there is room */
} fr_rows;

fr_status fr_rows_collect(void *rows, const float *logits, size_t count, size_t vocab);

/* Ends the test unless all rows are the same, bit for bit. */
void fr_rows_expect_same(const fr_rows *got, const fr_rows *expected);

/* Ends the test if a logit differs from the expected one by more than 5e-5 of the largest logit. */
void fr_rows_compare(const float *got, const float *expected, size_t count);

#endif
