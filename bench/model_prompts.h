/* Gives the texts on which speculation is measured. They are divided into classes, because acceptance depends on the
 * kind of text.
 *
 * In: a folder of CLASS.txt and CLASS-NAME.txt files. Without a folder there are five built-in classes with one text
 * each: prose, code, chat, repetitive and hard. Out: the texts, ordered by file name. */
#ifndef FR_BENCH_MODEL_PROMPTS_H
#define FR_BENCH_MODEL_PROMPTS_H

#include "forerun.h"

typedef struct fr_bench_prompt_text {
    char class[32], *bytes;
    size_t length;
} fr_bench_prompt_text;

typedef struct fr_bench_prompts {
    fr_bench_prompt_text *texts;
    size_t count;
} fr_bench_prompts;

/* Opens the texts. If folder is NULL, they are the built-in texts. If a folder has no text file, the call fails with
 * FR_INPUT. */
fr_status fr_bench_prompts_open(const char *folder, fr_bench_prompts *prompts);
void fr_bench_prompts_close(fr_bench_prompts *prompts);

#endif
