/* Keeps what chat templates do with small test conversations (chat_probe.h). A question is what such a test finds out
 * about a template, and the answer is its result. Each test is then made once for all conversations.
 *
 * In: the variables with which a template was rendered, and its answers. Out: the same answers for the same
 * variables. */
#ifndef FR_SRC_LANGUAGE_CHAT_CHAT_ANSWERS_H
#define FR_SRC_LANGUAGE_CHAT_CHAT_ANSWERS_H

#include <jansson.h>
#include <pthread.h>

#include "forerun.h"

enum {
    /* the most answers kept for one set of variables; the tests for further questions are repeated each time */
    FR_ANSWERS_MAX = 48,
    /* limit on the bytes of a question: its name and the role that it is about, including the NUL */
    FR_QUESTION_MAX = 32,
    FR_KEPT_MAX = 8, /* sets of variables whose answers are kept; a new set replaces the oldest */
};

typedef struct fr_chat_answers {
    size_t count;
    struct {
        char question[FR_QUESTION_MAX];
        int answer;
    } items[FR_ANSWERS_MAX];
} fr_chat_answers;

/* Returns false if no answer to the question is kept. An answer is not kept if the question is too long. */
bool fr_chat_answers_find(const fr_chat_answers *answers, const char *question, int *answer);
void fr_chat_answers_add(fr_chat_answers *answers, const char *question, int answer);

/* Answers for a few sets of variables, shared by all threads that render with one tokenizer. */
typedef struct fr_kept_answers {
    pthread_mutex_t mutex;
    size_t next; /* index of the entry that the next new set of variables replaces */
    struct {
        char *variables; /* JSON text; NULL: the entry is empty */
        fr_chat_answers answers;
    } places[FR_KEPT_MAX];
} fr_kept_answers;

void fr_kept_answers_open(fr_kept_answers *kept);
void fr_kept_answers_close(fr_kept_answers *kept);

/* fr_kept_answers_put keeps the answers for these variables, and fr_kept_answers_get copies the answers that are kept.
 * If the variables are too long, or if memory ran out, no answers are kept, and the caller tests the template again. */
void fr_kept_answers_get(fr_kept_answers *kept, const json_t *variables, fr_chat_answers *answers);
void fr_kept_answers_put(fr_kept_answers *kept, const json_t *variables, const fr_chat_answers *answers);

#endif
