/* Opens reference fixtures for suites: tests/data/models/NAME (or a folder beside models), with the values that
 * transformers computed (tests/references).
 *
 * In: a fixture's name. Out: its reference.json, its reference tensors, its model and drafter opened. */
#ifndef FR_TESTS_REFERENCE_H
#define FR_TESTS_REFERENCE_H

#include "formats/checkpoint.h"

#define FR_TEST_MODELS "tests/data/models/"

/* Returns a fixture's name; NULL past the end. */
const char *fr_reference_name(size_t index);

/* Returns the name of a target without a drafter, whose r->drafter is NULL. */
const char *fr_reference_alone(size_t index);

/* Returns the names of fixtures with a drafter, then of some without; all have 1024 positions. */
const char *fr_reference_long(size_t index);

typedef struct fr_reference {
    char folder[256], assistant[256];
    json_t *info;
    fr_map map;
    fr_tensors tensors;
    fr_model *model;
    fr_drafter *drafter;
} fr_reference;

/* Opens everything with these options; ends the test if anything is missing. */
void fr_reference_open(fr_reference *reference, const char *name, const fr_options *options);
void fr_reference_close(fr_reference *reference);

/* True if a prompt has an image, so that its ids are not everything. */
bool fr_reference_sees(const fr_reference *reference, size_t prompt);

/* Returns a float32 tensor by a printf name. */
const float *fr_reference_floats(const fr_reference *reference, size_t *count, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Opens a fixture's model with members of its config.json replaced, which are written as JSON; null removes one.
 * `folder` then has its config.json and model.safetensors. */
fr_status fr_reference_open_changed(const char *name, const char *changes, const char *folder);

/* Returns a JSON array of integers, malloc'd. */
int32_t *fr_json_ids_of(const json_t *array, size_t *count);

/* Keeps the rows of logits of fr_session_logits and fr_session_draft_logits, one after the other. */
typedef struct fr_rows {
    float *values;
    size_t count, capacity; /* floats */
} fr_rows;

fr_status fr_rows_collect(void *rows, const float *logits, size_t count, size_t vocab);

/* Ends the test unless both are the same, bit for bit. */
void fr_rows_expect_same(const fr_rows *got, const fr_rows *expected);

/* Ends the test if a logit is further from the expected one than 5e-5 of the largest. */
void fr_rows_compare(const float *got, const float *expected, size_t count);

#endif
