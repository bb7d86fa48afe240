/* Answers multiple-choice tasks by log-probabilities (tasks.h).
 *
 * Each choice is run as a text of its own. Its score is the mean log-probability of its tokens, without the tokens with
 * which all choices begin. The choice with the best score is the model's answer.
 *
 * The scores equal those of llama-perplexity, with one exception. If a Winogrande task ends soon after the replaced
 * word, llama-perplexity takes the probability of the second choice's first token from a wrong row, namely the row
 * after the first choice's last row. */
#include "tools/cli/tasks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/loaded.h"
#include "tools/cli/output.h"
#include "tools/cli/task_files.h"
#include "tools/cli/terminal/progress.h"

typedef struct choice {
    int32_t *ids;
    size_t count, from, to; /* ids [from, to) are scored */
    bool right;
} choice;

typedef struct task {
    choice *choices;
    size_t count;
} task;

typedef struct tasks {
    task *at;
    size_t count, capacity, longest; /* longest: number of ids of the longest choice */
    const fr_tokenizer *tokenizer;
    const char *path;
} tasks;

/* ----------------------------------------------------------------------------------------------- texts of the tasks */

/* Tokenizes the text of a choice. If `whole` is false, only the text up to the end of the choice's word is
 * tokenized. */
static int tokenize(const tasks *all, const fr_task *read, size_t i, bool whole, int32_t **ids, size_t *count) {
    const fr_task_text parts[] = {read->before,
                                  {(char *)read->joint, strlen(read->joint)},
                                  read->word[i],
                                  whole ? read->after : (fr_task_text){0}};
    enum { PARTS = sizeof parts / sizeof *parts };
    size_t length = 0;
    for (size_t p = 0; p < PARTS; p++) length += parts[p].length;
    char *text = fr_resize(NULL, length + 1, 1), *end = text;
    for (size_t p = 0; p < PARTS; end += parts[p++].length)
        if (parts[p].length) memcpy(end, parts[p].bytes, parts[p].length);
    int code = fr_exit_status(fr_tokenize(all->tokenizer, text, length, true, false, ids, count));
    free(text);
    return code;
}

/* Counts the ids with which all choices begin. These ids are not scored. The first id is always counted, because no
 * row predicts it. The last id of a choice is never counted, so that each choice has an id to score. */
static size_t shared_ids(const task *t) {
    for (size_t i = 0;; i++)
        for (size_t c = 0; c < t->count; c++)
            if (i + 1 >= t->choices[c].count || t->choices[c].ids[i] != t->choices[0].ids[i]) return i ? i : 1;
}

/* Chooses the ids of a Winogrande task that are scored. These are the ids after the choice's word. If few ids follow
 * the word, the ids of the word are scored too. The last id of a choice is usually a full stop, so it is left out if
 * another id is scored. */
static int choose_scored(const tasks *all, const fr_task *read, task *t, size_t shared) {
    enum { SHORT = 3 };
    int code = 0;
    bool after = t->choices[0].count > shared + SHORT && t->choices[1].count > shared + SHORT;
    for (size_t i = 0; i < t->count && !code; i++) {
        choice *c = &t->choices[i];
        int32_t *ids = NULL;
        size_t before = 0;
        if (after) code = tokenize(all, read, i, false, &ids, &before);
        fr_free(ids);
        if (before > c->from) c->from = before < c->count ? before : c->count - 1;
        if (c->count > c->from + 1) c->to--;
    }
    return code;
}

/* Tokenizes the choices of a task, and chooses the ids that are scored. */
static int prepare(const tasks *all, const fr_task *read, task *t, bool winogrande) {
    int code = 0;
    t->choices = fr_resize(NULL, read->count, sizeof *t->choices);
    while (t->count < read->count && !code) {
        choice *c = &t->choices[t->count];
        *c = (choice){.right = read->right[t->count]};
        code = tokenize(all, read, t->count++, true, &c->ids, &c->count);
        if (!code && c->count < 2)
            code = fr_bad_input("%s: task %zu: a choice of one token has none to score", all->path, all->count + 1);
    }
    if (code) return code;
    size_t shared = shared_ids(t);
    for (size_t i = 0; i < t->count; i++) {
        t->choices[i].from = shared;
        t->choices[i].to = t->choices[i].count;
    }
    return winogrande ? choose_scored(all, read, t, shared) : 0;
}

static int read_tasks(tasks *all, fr_task_text file, fr_task_take *take, size_t most) {
    int code = 0;
    const char *fault = NULL;
    if (take == fr_task_take_answers) {
        size_t count = 0;
        fault = fr_task_take_head(&file, &count);
        if (fault) return fr_bad_input("%s: %s", all->path, fault);
        if (count < most) most = count;
    }
    while (all->count < most) {
        fr_task read;
        fault = take(&file, &read);
        if (fault) return fr_bad_input("%s: task %zu: %s", all->path, all->count + 1, fault);
        if (read.count == 0) break;
        if (all->count == all->capacity) {
            all->capacity = 2 * all->capacity + 64;
            all->at = fr_resize(all->at, all->capacity, sizeof *all->at);
        }
        task *t = &all->at[all->count];
        *t = (task){0};
        code = prepare(all, &read, t, take == fr_task_take_winogrande);
        all->count++;
        if (code) return code;
        for (size_t i = 0; i < t->count; i++)
            if (t->choices[i].count > all->longest) all->longest = t->choices[i].count;
    }
    return all->count ? 0 : fr_bad_input("%s has no task", all->path);
}

/* ---------------------------------------------------------------------------------------------------------- scoring */

typedef struct scoring {
    const choice *choice;
    size_t row; /* index of the id whose row comes next; the row of an id predicts the id after it */
    double sum;
} scoring;

/* Each row predicts the id after its own id. This function adds up the log-probabilities of the predicted ids (an
 * fr_logits_fn). */
static fr_status add_rows(void *context, const float *logits, size_t rows, size_t vocab) {
    scoring *s = context;
    for (size_t r = 0; r < rows; r++, s->row++, logits += vocab) {
        double largest = logits[0], sum = 0;
        for (size_t i = 1; i < vocab; i++) largest = fmax(largest, logits[i]);
        for (size_t i = 0; i < vocab; i++) sum += exp(logits[i] - largest);
        s->sum += logits[s->choice->ids[s->row + 1]] - largest - log(sum);
    }
    return FR_OK;
}

/* Scores the choices of a task, and chooses the best one as the model's answer. *right: the answer is right. */
static fr_status answer(fr_session *session, const task *t, bool *right) {
    double best = -INFINITY;
    fr_status status = FR_OK;
    *right = false;
    for (size_t i = 0; i < t->count && status == FR_OK; i++) {
        const choice *c = &t->choices[i];
        scoring s = {.choice = c, .row = c->from - 1};
        status = fr_session_logits(session, c->ids, c->to - 1, c->from - 1, add_rows, &s);
        double score = s.sum / (double)(c->to - c->from);
        if (status != FR_OK || !(score > best)) continue;
        best = score;
        *right = c->right;
    }
    return status;
}

static int score(const tasks *all, const fr_loaded *loaded, const fr_arguments *args, const char *name) {
    fr_progress progress = fr_progress_begin("scoring", args->given[FR_ARG_QUIET]);
    fr_status status = FR_OK;
    size_t right = 0;
    for (size_t i = 0; i < all->count && status == FR_OK; i++) {
        bool is_right;
        fr_progress_count(&progress, i, all->count, "tasks", "");
        status = answer(loaded->session, &all->at[i], &is_right);
        right += status == FR_OK && is_right;
    }
    fr_progress_end(&progress);
    if (status != FR_OK) return fr_exit_status(status);
    double share = (double)right / (double)all->count;
    printf("%s %.4f%% right, %zu of %zu tasks", name, 100 * share, right, all->count);
    if (all->count > 1) printf(", +- %.4f", 100 * sqrt(share * (1 - share) / (double)(all->count - 1)));
    putchar('\n');
    return 0;
}

/* --------------------------------------------------------------------------------------------------------- the verb */

static const struct {
    fr_arg arg;
    fr_task_take *take;
    const char *name;
} kinds[] = {{FR_ARG_HELLASWAG, fr_task_take_hellaswag, "hellaswag"},
             {FR_ARG_WINOGRANDE, fr_task_take_winogrande, "winogrande"},
             {FR_ARG_MULTIPLE_CHOICE, fr_task_take_answers, "multiple-choice"}};
enum { KINDS = sizeof kinds / sizeof *kinds };

bool fr_tasks_asked(const fr_arguments *args) {
    bool asked = args->given[FR_ARG_TASKS];
    for (size_t i = 0; i < KINDS; i++) asked = asked || args->given[kinds[i].arg];
    return asked;
}

/* Finds the kind of test that the options ask for, and checks that they ask for only one kind. */
static int check(const fr_arguments *args, size_t *kind) {
    static const fr_arg others[] = {FR_ARG_KL, FR_ARG_BASE, FR_ARG_STRIDE, FR_ARG_CHUNKS};
    size_t asked = 0;
    for (size_t i = 0; i < KINDS; i++)
        if (args->given[kinds[i].arg]) *kind = i, asked++;
    if (asked != 1) return fr_wrong_usage("choose one of --hellaswag, --winogrande and --multiple-choice");
    const char *name = kinds[*kind].name;
    if (args->given[FR_ARG_TASKS] && strncmp(args->name[FR_ARG_TASKS] + 2, name, strlen(name)) != 0)
        return fr_wrong_usage("%s does not go with --%s", args->name[FR_ARG_TASKS], name);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (args->given[others[i]]) return fr_wrong_usage("%s does not go with --%s", args->name[others[i]], name);
    return args->given[FR_ARG_FILE] ? 0 : fr_wrong_usage("--%s needs its tasks: -f FILE", name);
}

static int run(tasks *all, fr_loaded *loaded, const fr_arguments *args, fr_prompt *text, size_t kind) {
    size_t most = args->given[FR_ARG_TASKS] ? (size_t)args->number[FR_ARG_TASKS] : SIZE_MAX;
    int code = fr_prompt_read(text, args);
    if (!code) code = fr_loaded_open(loaded, args);
    if (!code) code = fr_loaded_tokenizer(loaded, args, &all->tokenizer);
    if (!code) code = read_tasks(all, (fr_task_text){text->bytes, text->length}, kinds[kind].take, most);
    if (!code) code = fr_loaded_start(loaded, args, all->longest, 0);
    return code ? code : score(all, loaded, args, kinds[kind].name);
}

int fr_tasks_run(const fr_arguments *args) {
    size_t kind = 0;
    int code = check(args, &kind);
    if (code) return code;
    tasks all = {.path = args->text[FR_ARG_FILE]};
    fr_loaded loaded = {0};
    fr_prompt text = {0};
    code = run(&all, &loaded, args, &text, kind);
    for (size_t i = 0; i < all.count; i++) {
        for (size_t c = 0; c < all.at[i].count; c++) fr_free(all.at[i].choices[c].ids);
        free(all.at[i].choices);
    }
    free(all.at);
    fr_loaded_close(&loaded);
    fr_prompt_free(&text);
    return code;
}
