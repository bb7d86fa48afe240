/* Serves the chat page's files (web_page.h). */
#include "tools/serve/web_page.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "tools/cli/embed.h"

/* Embeds a file as read-only data. make copies the files of other projects' libraries into the build folder. If the
 * system does not have a library, its file in the build folder is empty. */
#define EMBED(symbol, file) FR_EMBED(".rodata", const char, symbol, file)

#define OWN(symbol, file) EMBED(fr_web_page_##symbol, "tools/serve/page/" file)

OWN(index, "index.html");
OWN(style, "page.css");
OWN(icon, "icon.svg");
OWN(main, "main.js");
OWN(api, "api.js");
OWN(branches, "branches.js");
OWN(colours, "colours.js");
OWN(dom, "dom.js");
OWN(files, "files.js");
OWN(formulas, "formulas.js");
OWN(markdown, "markdown.js");
OWN(messages, "messages.js");
OWN(pictures, "pictures.js");
OWN(rounds, "rounds.js");
OWN(settings, "settings.js");
OWN(store, "store.js");

EMBED(fr_web_page_katex, "page/katex.mjs");
EMBED(fr_web_page_katex_style, "page/katex.css");
EMBED(fr_web_page_highlight, "page/highlight.js");
EMBED(fr_web_page_licences, "page/licences.txt");

/* KaTeX's fonts. Each is named like its file, but without "KaTeX_". */
#define FONTS(USE)                            \
    USE(ams, "AMS-Regular")                   \
    USE(caligraphic_bold, "Caligraphic-Bold") \
    USE(caligraphic, "Caligraphic-Regular")   \
    USE(fraktur_bold, "Fraktur-Bold")         \
    USE(fraktur, "Fraktur-Regular")           \
    USE(main_bold, "Main-Bold")               \
    USE(main_bold_italic, "Main-BoldItalic")  \
    USE(main_italic, "Main-Italic")           \
    USE(main_regular, "Main-Regular")         \
    USE(math_bold_italic, "Math-BoldItalic")  \
    USE(math_italic, "Math-Italic")           \
    USE(sans_bold, "SansSerif-Bold")          \
    USE(sans_italic, "SansSerif-Italic")      \
    USE(sans, "SansSerif-Regular")            \
    USE(script, "Script-Regular")             \
    USE(size1, "Size1-Regular")               \
    USE(size2, "Size2-Regular")               \
    USE(size3, "Size3-Regular")               \
    USE(size4, "Size4-Regular")               \
    USE(typewriter, "Typewriter-Regular")

#define EMBED_FONT(symbol, name) EMBED(fr_web_page_font_##symbol, "page/fonts/KaTeX_" name ".woff2");
FONTS(EMBED_FONT)

#define HTML   "text/html; charset=utf-8"
#define CSS    "text/css; charset=utf-8"
#define SCRIPT "text/javascript; charset=utf-8"
#define SVG    "image/svg+xml"
#define PLAIN  "text/plain; charset=utf-8"

#define IN_FOLDER(name, type, symbol) \
    { FR_WEB_PAGE_FOLDER name, type, fr_web_page_##symbol, fr_web_page_##symbol##_end }
#define FONT(symbol, name) IN_FOLDER("fonts/KaTeX_" name ".woff2", "font/woff2", font_##symbol),

static const struct file {
    const char *path, *type, *bytes, *end;
} files[] = {{"/", HTML, fr_web_page_index, fr_web_page_index_end},
             IN_FOLDER("page.css", CSS, style),
             IN_FOLDER("icon.svg", SVG, icon),
             IN_FOLDER("main.js", SCRIPT, main),
             IN_FOLDER("api.js", SCRIPT, api),
             IN_FOLDER("branches.js", SCRIPT, branches),
             IN_FOLDER("colours.js", SCRIPT, colours),
             IN_FOLDER("dom.js", SCRIPT, dom),
             IN_FOLDER("files.js", SCRIPT, files),
             IN_FOLDER("formulas.js", SCRIPT, formulas),
             IN_FOLDER("markdown.js", SCRIPT, markdown),
             IN_FOLDER("messages.js", SCRIPT, messages),
             IN_FOLDER("pictures.js", SCRIPT, pictures),
             IN_FOLDER("rounds.js", SCRIPT, rounds),
             IN_FOLDER("settings.js", SCRIPT, settings),
             IN_FOLDER("store.js", SCRIPT, store),
             IN_FOLDER("katex.mjs", SCRIPT, katex),
             IN_FOLDER("katex.css", CSS, katex_style),
             IN_FOLDER("highlight.js", SCRIPT, highlight),
             IN_FOLDER("licences.txt", PLAIN, licences),
             FONTS(FONT)};

/* Headers that make browsers allow only the page's own files. This is needed because the page shows text of the model,
 * which must not run scripts or load anything. The headers also forbid other pages to show this page in a frame. */
static const struct {
    const char *name, *value;
} headers[] = {
    {"Content-Security-Policy",
     "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; font-src 'self'; "
     "img-src 'self' data: blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
     "require-trusted-types-for 'script'; trusted-types 'none'"},
    {"X-Content-Type-Options", "nosniff"},
    {"Referrer-Policy", "no-referrer"},
    {"Cross-Origin-Opener-Policy", "same-origin"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
    {"Cache-Control", "no-cache"},
};

static const struct file *find(const char *path) {
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (strcmp(files[i].path, path) == 0 && files[i].end > files[i].bytes) return &files[i];
    return NULL;
}

bool fr_web_page_has(const char *path) {
    return find(path) != NULL;
}

/* Gives a file's tag, which is the FNV-1a hash of its bytes. If the file has other bytes in another build, it has
 * another tag. */
static void tag_of(const struct file *file, char tag[20]) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (const char *byte = file->bytes; byte < file->end; byte++)
        hash = (hash ^ (unsigned char)*byte) * 0x100000001b3u;
    snprintf(tag, 20, "\"%016llx\"", (unsigned long long)hash);
}

void fr_web_page_answer(fr_http_exchange *exchange) {
    const struct file *file = find(fr_http_exchange_path(exchange));
    if (!file) {
        fr_http_exchange_refuse(exchange, 404, "there is nothing at %.100s", fr_http_exchange_path(exchange));
        return;
    }
    char tag[20];
    const char *has = fr_http_exchange_has(exchange);
    tag_of(file, tag);
    fr_http_exchange_set_header(exchange, "ETag", tag);
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++)
        fr_http_exchange_set_header(exchange, headers[i].name, headers[i].value);
    bool same = has && (strstr(has, tag) || strcmp(has, "*") == 0);
    fr_http_exchange_answer(exchange, same ? 304 : 200, file->type, file->bytes,
                            same ? 0 : (size_t)(file->end - file->bytes));
}
