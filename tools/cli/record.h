/* Reads a trace that generate --trace wrote, checks each of its lines, and gives its contents as plain arrays.
 *
 * In: the bytes of a file, which may hold anything. Out: rounds, pieces of text and totals; or an error line that names
 * the line and the field. Unknown events and keys are ignored, because a later version may write them. An incomplete
 * last line is left out. */
#ifndef FR_TOOLS_CLI_RECORD_H
#define FR_TOOLS_CLI_RECORD_H

#include <stdint.h>

#include "tools/cli/output.h"

typedef struct fr_record_round {
    size_t rows; /* number of rows of the target's forward; 0: the id was predicted by the prompt's forward */
    size_t drafted, accepted, count; /* drafted: number of drafts; accepted: number of accepted drafts; count: number of
                                      * ids that the round gave */
    double draft, verify, accept, seconds; /* seconds of drafting, of verifying and of accepting; `seconds` is the time
                                            * of the whole round */
    double margins[FR_STEP_MAX];           /* the target's margin at each id, NAN if it is unknown */
} fr_record_round;

typedef enum fr_origin {
    FR_ORIGIN_PROMPT,     /* a token of the prompt */
    FR_ORIGIN_DRAFT,      /* an accepted draft */
    FR_ORIGIN_TARGET,     /* the target's own token */
    FR_ORIGIN_CORRECTION, /* the target's own token in place of a rejected draft */
    FR_ORIGIN_COUNT
} fr_origin;

typedef struct fr_record_piece {
    fr_origin origin;
    size_t round, index;  /* number of the round that gave the piece's id, and the index of the id in that round */
    size_t begin, length; /* the piece's range in `text` */
} fr_record_piece;

typedef struct fr_record {
    /* begin: the trace's first line. stats: its last line of statistics; NULL: it has no such line */
    json_t *begin, *stats;
    fr_record_round *rounds;
    size_t round_count, round_capacity;
    fr_record_piece *pieces;
    size_t piece_count, piece_capacity;
    char *text;
    size_t text_length, text_capacity;
    size_t prompt_tokens, prompt_forwards;
    double prompt_seconds;
    bool cut_off;
} fr_record;

/* Sums over the target's calls. Every forward of the target is a call, except the forwards of prompts. */
typedef struct fr_sums {
    double calls, tokens; /* number of calls, and number of tokens that the calls gave */
    double drafting;      /* number of calls that had drafts to verify */
    double drafted, accepted, draft, verify, accept, seconds;
    double at_depth[FR_STEP_MAX - 1][FR_DEPTH_COUNT];
    double given[FR_STEP_MAX + 1]; /* [n] number of calls that gave n tokens */
} fr_sums;

/* Computes the sums over the rounds from `from` up to, but not including, `to`. */
fr_sums fr_record_sums(const fr_record *record, size_t from, size_t to);

/* Reads a trace. path: the file's name for error lines. Gives the exit status. */
int fr_record_read(fr_record *record, const char *path, const char *bytes, size_t length);
void fr_record_free(fr_record *record);

#endif
