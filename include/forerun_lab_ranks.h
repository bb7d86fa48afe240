/* Of ranks what the command asks beside forerun.h: the library's own, no part of the interface. */
#ifndef FORERUN_LAB_RANKS_H
#define FORERUN_LAB_RANKS_H

#include "forerun.h"

/* From here on a rank may be silent for so many seconds. */
void fr_lab_ranks_timeout(int seconds);

/* How much of the weights and of the work each rank has beside the others: count numbers, 1 to 1000, for as many ranks.
 * Before a model is opened, the same on all. */
fr_status fr_lab_ranks_deal(const uint32_t *parts, size_t count);

/* How models that are opened from then on are split: by the output rows of all layers, or by layers, of which each rank
 * runs some, one behind the other; AUTO, which is what is done without it: by which a token comes sooner, where a
 * gather of few bytes takes so many seconds and all ranks together read so many bytes a second, by rows where 0 says
 * that nobody knows. The same on all. */
typedef enum fr_lab_split { FR_LAB_SPLIT_AUTO, FR_LAB_SPLIT_ROWS, FR_LAB_SPLIT_LAYERS } fr_lab_split;
fr_status fr_lab_ranks_split(fr_lab_split split, double latency, double bandwidth);

/* Whether the model that was opened last is split by layers. */
bool fr_lab_ranks_by_layers(void);

/* On how many machines the ranks are. */
size_t fr_lab_ranks_hosts(void);

/* Whatever this rank sends leaves so many seconds late. */
void fr_lab_ranks_delay(double seconds);

typedef struct fr_lab_traffic {
    uint64_t messages, bytes; /* sent */
    double seconds;           /* waited for the others */
} fr_lab_traffic;

/* What this rank has sent the others so far: in a layer of models and drafters that have run, elsewhere (the head,
 * plans of rounds, layers from 256 on), or in all. */
#define FR_LAB_RANKS_ELSEWHERE 256
#define FR_LAB_RANKS_ALL 257
fr_lab_traffic fr_lab_ranks_sent(size_t layer);

/* Each rank's number, [ranks], on all of them; ranks are at most so many. */
#define FR_LAB_MOST_RANKS 256
void fr_lab_ranks_collect(double own, double *all);

/* Rank 0's answer, on all ranks: of what each would decide for itself, by clocks and signals. Without a job `own`. */
bool fr_lab_ranks_decide(bool own);

/* From here on each rank decides for itself: of ranks that follow an engine, rank 0's decisions are in what it does. A
 * signal to it is no word to the others: they end as it closes its engine. */
void fr_lab_ranks_decide_alone(void);

/* The job's first failure, or FR_OK. */
fr_status fr_lab_ranks_check(void);

/* Rank 0's engine from here on tells the other ranks what it and its sessions are asked: to open, close, reset, be
 * given ids, pictures, masks, grammars, settings and stop strings, to be set aside, to pool a text, and rounds, which
 * are cancelled and aborted as ever. What else would run or change a session is FR_UNBUILT. */
fr_status fr_lab_engine_lead(fr_engine *engine);

/* Another rank's engine, of the same model and options, does the same until rank 0's is closed, or the job fails. */
fr_status fr_lab_engine_follow(fr_engine *engine);

/* Calls end(line) where this process hasn't begun to leave so many seconds after the job's first failure. line: what is
 * to be said, NULL where another rank does. */
void fr_lab_ranks_end_late(double seconds, void (*end)(const char *line));

/* Of handlers of signals: whether one ends this process, or only follows a failure of the job, which ends it. */
bool fr_lab_ranks_struck(int signal_number);

#endif
