/* Makes a state of the scripted method: see draft_scripted.c. The ids are copied; inner (may be NULL) is taken over;
 * free it with its method's close. */
#ifndef FR_SRC_DRAFT_SCRIPTED_H
#define FR_SRC_DRAFT_SCRIPTED_H

#include "forerun_lab.h"
#include "src/draft/draft.h"

fr_status fr_draft_script(const int32_t *ids, size_t count, size_t vocab, fr_lab_accept_fn *accept, void *context,
                          fr_draft *inner, fr_draft **draft);

#endif
