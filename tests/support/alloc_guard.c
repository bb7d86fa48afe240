/* Implements alloc_guard.h, which counts allocations. The memory comes from the C library's own allocator, which is
 * called under its other names, such as __libc_malloc. */
#include "tests/support/alloc_guard.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif

#ifdef SANITIZED

bool fr_alloc_counted(void) {
    return false;
}

size_t fr_alloc_count(void) {
    return 0;
}

size_t fr_alloc_live(void) {
    return 0;
}

void fr_alloc_fail(size_t after) {
    (void)after;
}

bool fr_alloc_failed(void) {
    return false;
}

#else

/* Every library of the process must see these functions, although all other symbols of this program are hidden. */
#pragma GCC visibility push(default)

static atomic_size_t count, live, failing = SIZE_MAX;

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t items, size_t size);
void *__libc_realloc(void *memory, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *memory);

/* Counts an allocation. Returns false if this allocation must fail. */
static bool counted(void) {
    size_t number = atomic_fetch_add_explicit(&count, 1, memory_order_relaxed);
    if (number != atomic_load_explicit(&failing, memory_order_relaxed)) return true;
    errno = ENOMEM;
    return false;
}

/* Counts new memory as live and returns it. If the memory replaces other memory (`before`), it has been counted
 * already. */
static void *kept(void *memory, const void *before) {
    if (memory && !before) atomic_fetch_add_explicit(&live, 1, memory_order_relaxed);
    return memory;
}

void *malloc(size_t size) {
    return counted() ? kept(__libc_malloc(size), NULL) : NULL;
}

void *calloc(size_t items, size_t size) {
    return counted() ? kept(__libc_calloc(items, size), NULL) : NULL;
}

void *realloc(void *memory, size_t size) {
    return counted() ? kept(__libc_realloc(memory, size), memory) : NULL;
}

void free(void *memory) {
    if (memory) atomic_fetch_sub_explicit(&live, 1, memory_order_relaxed);
    __libc_free(memory);
}

void *aligned_alloc(size_t alignment, size_t size) {
    return counted() ? kept(__libc_memalign(alignment, size), NULL) : NULL;
}

#pragma GCC visibility pop

bool fr_alloc_counted(void) {
    return true;
}

size_t fr_alloc_count(void) {
    return atomic_load(&count);
}

size_t fr_alloc_live(void) {
    return atomic_load(&live);
}

void fr_alloc_fail(size_t after) {
    atomic_store(&failing, after == SIZE_MAX ? SIZE_MAX : atomic_load(&count) + after);
}

bool fr_alloc_failed(void) {
    size_t at = atomic_load(&failing);
    return at != SIZE_MAX && atomic_load(&count) > at;
}

#endif
