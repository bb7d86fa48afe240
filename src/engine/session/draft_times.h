/* Stores the measured times of forwards and drafts in files. With these the next run of the same model on the same
 * machine drafts from its first token.
 *
 * In: a folder, a model and its drafters, and what the depth controller measured (draft_depth.h). Out: a file for the
 * model and a file for each drafter. The model's file has the seconds of a forward by its number of rows. A drafter's
 * file has the seconds of drafting by the number of drafts. These files are read when the next engine opens. The name
 * of a file is a hash of everything that the times depend on: the tensors' types and shapes, the instruction set, the
 * threads and the processor. Times decide only how many drafts are made, never a token, so a wrong file costs only
 * time.
 *
 * A file is ignored if it is damaged, has another size, or holds a time that is too short or too long for any computer.
 * It is written under a temporary name and renamed, so that other processes never read a part of it; if several
 * processes write, the file of the last one stays. A folder that can't be read or written is not an error. */
#ifndef FR_SRC_ENGINE_SESSION_DRAFT_TIMES_H
#define FR_SRC_ENGINE_SESSION_DRAFT_TIMES_H

#include "src/engine/session/engine.h"

/* Reads the times of the engine's model and drafters. Times that the folder does not have stay unknown. */
void fr_draft_times_load(fr_engine *engine, const char *folder);

/* Writes the times of the engine's model and of its drafters, if any of them were measured. Makes the folder and its
 * parent folder if they don't exist. */
void fr_draft_times_store(const fr_engine *engine, const char *folder);

#endif
