/* Pauses once in a spin loop: tells the core that its other hardware thread may use the pipeline. */
#ifndef FR_BASE_PAUSE_H
#define FR_BASE_PAUSE_H

#if defined(__x86_64__)
static inline void fr_pause(void) {
    __builtin_ia32_pause();
}
#elif defined(__aarch64__)
static inline void fr_pause(void) {
    __asm__ volatile("yield");
}
#endif

#endif
