/* The chat page's files as answers (site.h). */
#include "tools/serve/site.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* The bytes of a file, from `symbol` on, before `symbol`_end: the assembler reads them in. */
#define EMBED(symbol, file)                                                                                            \
    __asm__(".section .rodata\n"                                                                                       \
            ".balign 16\n" #symbol ":\n"                                                                               \
            ".incbin \"tools/serve/page/" file "\"\n" #symbol "_end:\n"                                                \
            ".byte 0\n"                                                                                                \
            ".previous\n");                                                                                            \
    extern const char symbol[] __attribute__((visibility("hidden")));                                                  \
    extern const char symbol##_end[] __attribute__((visibility("hidden")))

EMBED(fr_site_index, "index.html");
EMBED(fr_site_style, "page.css");
EMBED(fr_site_icon, "icon.svg");
EMBED(fr_site_main, "main.js");
EMBED(fr_site_api, "api.js");
EMBED(fr_site_dom, "dom.js");
EMBED(fr_site_markdown, "markdown.js");
EMBED(fr_site_messages, "messages.js");
EMBED(fr_site_pictures, "pictures.js");
EMBED(fr_site_rounds, "rounds.js");
EMBED(fr_site_settings, "settings.js");
EMBED(fr_site_store, "store.js");

#define HTML   "text/html; charset=utf-8"
#define CSS    "text/css; charset=utf-8"
#define SCRIPT "text/javascript; charset=utf-8"
#define SVG    "image/svg+xml"

static const struct file {
    const char *path, *type, *bytes, *end;
} files[] = {
    {"/", HTML, fr_site_index, fr_site_index_end},
    {FR_SITE_FOLDER "page.css", CSS, fr_site_style, fr_site_style_end},
    {FR_SITE_FOLDER "icon.svg", SVG, fr_site_icon, fr_site_icon_end},
    {FR_SITE_FOLDER "main.js", SCRIPT, fr_site_main, fr_site_main_end},
    {FR_SITE_FOLDER "api.js", SCRIPT, fr_site_api, fr_site_api_end},
    {FR_SITE_FOLDER "dom.js", SCRIPT, fr_site_dom, fr_site_dom_end},
    {FR_SITE_FOLDER "markdown.js", SCRIPT, fr_site_markdown, fr_site_markdown_end},
    {FR_SITE_FOLDER "messages.js", SCRIPT, fr_site_messages, fr_site_messages_end},
    {FR_SITE_FOLDER "pictures.js", SCRIPT, fr_site_pictures, fr_site_pictures_end},
    {FR_SITE_FOLDER "rounds.js", SCRIPT, fr_site_rounds, fr_site_rounds_end},
    {FR_SITE_FOLDER "settings.js", SCRIPT, fr_site_settings, fr_site_settings_end},
    {FR_SITE_FOLDER "store.js", SCRIPT, fr_site_store, fr_site_store_end},
};

/* What the model says is shown on the page, so that nothing of it may run, load or lead a frame astray. */
static const struct {
    const char *name, *value;
} headers[] = {
    {"Content-Security-Policy",
     "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data: blob:; "
     "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
     "trusted-types 'none'"},
    {"X-Content-Type-Options", "nosniff"},
    {"Referrer-Policy", "no-referrer"},
    {"Cross-Origin-Opener-Policy", "same-origin"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
    {"Cache-Control", "no-cache"},
};

static const struct file *find(const char *path) {
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (strcmp(files[i].path, path) == 0) return &files[i];
    return NULL;
}

bool fr_site_has(const char *path) {
    return find(path) != NULL;
}

/* FNV-1a of the bytes: another build's page has other tags. */
static void tag_of(const struct file *file, char tag[20]) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (const char *byte = file->bytes; byte < file->end; byte++)
        hash = (hash ^ (unsigned char)*byte) * 0x100000001b3u;
    snprintf(tag, 20, "\"%016llx\"", (unsigned long long)hash);
}

void fr_site_answer(fr_call *call) {
    const struct file *file = find(fr_call_path(call));
    if (!file) {
        fr_call_refuse(call, 404, "there is nothing at %.100s", fr_call_path(call));
        return;
    }
    char tag[20];
    const char *has = fr_call_has(call);
    tag_of(file, tag);
    fr_call_set_header(call, "ETag", tag);
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++)
        fr_call_set_header(call, headers[i].name, headers[i].value);
    bool same = has && (strstr(has, tag) || strcmp(has, "*") == 0);
    fr_call_answer(call, same ? 304 : 200, file->type, file->bytes, same ? 0 : (size_t)(file->end - file->bytes));
}
