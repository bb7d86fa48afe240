/* Sets the stack size of every thread that the library starts, independent of the process's limit (ulimit -s). Kernels
 * use up to 250 KB of it. Thread-local memory of the process and its libraries is also part of it (0.8 MB for
 * ThreadSanitizer). */
#ifndef FR_BASE_THREAD_STACK_H
#define FR_BASE_THREAD_STACK_H

#define FR_THREAD_STACK_BYTES ((size_t)4 << 20)

#endif
