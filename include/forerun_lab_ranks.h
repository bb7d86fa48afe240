/* Declares what the forerun command needs about ranks beyond forerun.h, without a promise of stability. */
#ifndef FORERUN_LAB_RANKS_H
#define FORERUN_LAB_RANKS_H

#include "forerun.h"

/* Sets for how many seconds a rank may send nothing from now on. */
void fr_lab_ranks_timeout(int seconds);

/* Sets each rank's share of the weights and of the work: `count` numbers, 1 to 1000, one for each rank, in proportion
 * to each other. Call it before a model is opened, with the same numbers on all ranks. */
fr_status fr_lab_ranks_deal(const uint32_t *parts, size_t count);

/* Sets how models that are opened from now on are split between the ranks. ROWS: each rank computes a part of the
 * output rows of every layer. LAYERS: each rank has some of the layers, and the ranks run one after the other. AUTO,
 * the default, estimates which of these two ways gives a token sooner. It assumes that a gather of few bytes takes
 * `latency` seconds, and that all ranks together read `bandwidth` bytes a second. If these are not known (0), AUTO
 * splits by rows. Call it with the same arguments on all ranks. */
typedef enum fr_lab_split { FR_LAB_SPLIT_AUTO, FR_LAB_SPLIT_ROWS, FR_LAB_SPLIT_LAYERS } fr_lab_split;
fr_status fr_lab_ranks_split(fr_lab_split split, double latency, double bandwidth);

/* Returns true if the model that was opened last is split by layers. */
bool fr_lab_ranks_by_layers(void);

/* Returns the number of machines that the ranks are on. */
size_t fr_lab_ranks_hosts(void);

/* Delays everything that this rank sends by this many seconds, as a slow network would. */
void fr_lab_ranks_delay(double seconds);

typedef struct fr_lab_traffic {
    uint64_t messages, bytes; /* sent by this rank */
    double seconds;           /* the time that this rank waited for other ranks */
} fr_lab_traffic;

/* Returns how many messages and bytes this rank has sent to other ranks so far. layer: a layer of the models and
 * drafters. FR_LAB_RANKS_ELSEWHERE: all messages that belong to no layer below 256, such as those of the head and of
 * the plans of rounds. FR_LAB_RANKS_ALL: the sum. */
#define FR_LAB_RANKS_ELSEWHERE 256
#define FR_LAB_RANKS_ALL       257
fr_lab_traffic fr_lab_ranks_sent(size_t layer);

/* Collects one number from each rank, and gives all of them to every rank. own: this rank's number. all: the numbers
 * by rank, at most FR_LAB_MOST_RANKS of them. */
#define FR_LAB_MOST_RANKS 256
void fr_lab_ranks_collect(double own, double *all);

/* Returns rank 0's `own` on all ranks. It is for decisions that each rank would otherwise make by its own clock and
 * signals. Without a job it returns the caller's `own`. */
bool fr_lab_ranks_decide(bool own);

/* Makes fr_lab_ranks_decide return each rank's own decision from now on. It is for ranks that follow rank 0's engine:
 * they learn rank 0's decisions from the calls that rank 0 sends. A signal to rank 0 does not reach the other ranks;
 * these end when rank 0 closes its engine. */
void fr_lab_ranks_decide_alone(void);

/* Returns the job's first failure, or FR_OK. */
fr_status fr_lab_ranks_check(void);

/* Makes rank 0's engine send the other ranks every call to it and its sessions from now on. These are the calls that
 * open, close, reset or set aside sessions; that give them ids, pictures, masks, grammars, settings or stop strings;
 * that embed texts; and that run rounds, which can be cancelled and aborted as always. Other calls that would run or
 * change a session are FR_UNBUILT. */
fr_status fr_lab_engine_lead(fr_engine *engine);

/* Makes another rank's engine, of the same model and options, carry out the calls that rank 0 sends. Returns once rank
 * 0 closes its own engine or the job fails. */
fr_status fr_lab_engine_follow(fr_engine *engine);

/* Calls `end` if this process has not begun to leave the job `seconds` after the job's first failure. The argument is
 * the error line to print; NULL if another rank prints it. */
void fr_lab_ranks_end_late(double seconds, void (*end)(const char *line));

/* Returns true if this signal must end this process. Returns false if the signal is only a consequence of the job's
 * failure; that failure ends the process anyway. A signal handler may call this. */
bool fr_lab_ranks_struck(int signal_number);

#endif
