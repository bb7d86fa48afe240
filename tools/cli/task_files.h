/* Reads files of multiple-choice tasks, in the forms that llama-perplexity reads.
 *
 * In: a file's bytes. Out: the tasks one by one, with the parts of each choice's text. */
#ifndef FR_TOOLS_CLI_TASK_FILES_H
#define FR_TOOLS_CLI_TASK_FILES_H

#include <stdbool.h>
#include <stddef.h>

enum { FR_TASK_CHOICES = 100 };

/* A range of bytes in the file's memory. */
typedef struct fr_task_text {
    char *bytes;
    size_t length;
} fr_task_text;

/* A task. The text of a choice is `before`, `joint`, `word` and `after`, joined in this order. */
typedef struct fr_task {
    const char *joint; /* the text between `before` and `word`, which is a blank or "" */
    fr_task_text before, word[FR_TASK_CHOICES], after;
    bool right[FR_TASK_CHOICES];
    size_t count; /* number of choices, at least 1 */
} fr_task;

/* Reads the next task of the file. The result is NULL if this succeeds. At the end of the file the result is NULL too,
 * and the task's count is 0. If the task is malformed, the result is the text of the error. */
typedef const char *fr_task_take(fr_task_text *file, fr_task *task);

/* Reads a HellaSwag task. It has six lines: the context, the index of the right ending, and four endings. */
fr_task_take fr_task_take_hellaswag;

/* Reads a Winogrande task, which is one line of CSV with five fields. They are an index, a sentence that contains a _,
 * two words that may replace the _, and the number of the right word, 1 or 2. Quotes of fields are removed in place. */
fr_task_take fr_task_take_winogrande;

/* These functions read a binary file of questions. Numbers have 32 bits, and each text has its length before it.
 * fr_task_take_head reads the head, which has the number of tasks and the position of each task. fr_task_take_answers
 * reads a task. A task has a question, its answers with labels that mark the right ones, and a second list of answers,
 * which is skipped. */
const char *fr_task_take_head(fr_task_text *file, size_t *count);
fr_task_take fr_task_take_answers;

#endif
