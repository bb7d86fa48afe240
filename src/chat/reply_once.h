/* Arguments in which each key stands once.
 *
 * In: the arguments of a call, an object as JSON text that a reader has checked (reply_call.h). Out: the same text
 * without members whose key comes again behind them in the same object: the last value counts, as Python's json and
 * JavaScript have it. Readers of JSON differ there, so no call that is told as a whole leaves them the choice. */
#ifndef FR_SRC_REPLY_ONCE_H
#define FR_SRC_REPLY_ONCE_H

#include "base/text_buffer.h"

/* A failure is kept in the buffer's status. */
void fr_arguments_once(fr_text_buffer *arguments);

#endif
