/* The stack of every thread that the library starts, whatever the limit of the process is (ulimit -s). Kernels take up
 * to 250 KB of it; what the process and its libraries keep by thread is cut out of it too (0.8 MB of
 * ThreadSanitizer's). */
#ifndef FR_BASE_THREAD_STACK_H
#define FR_BASE_THREAD_STACK_H

#define FR_THREAD_STACK_BYTES ((size_t)4 << 20)

#endif
