/* Makes a file's bytes part of the program.
 *
 * In: a section, the type of the bytes, a symbol, and a path. The path is relative to the top folder or to a folder
 * that the assembler gets by -I. Out: the bytes from `symbol` to `symbol`_end, with a NUL after them. */
#ifndef FR_TOOLS_CLI_EMBED_H
#define FR_TOOLS_CLI_EMBED_H

#define FR_EMBED(section, type, symbol, file)                   \
    __asm__(".section " section "\n"                            \
            ".balign 16\n" #symbol ":\n"                        \
            ".incbin \"" file "\"\n" #symbol "_end:\n"          \
            ".byte 0\n"                                         \
            ".previous\n");                                     \
    extern type symbol[] __attribute__((visibility("hidden"))); \
    extern type symbol##_end[] __attribute__((visibility("hidden")))

#endif
