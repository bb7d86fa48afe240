/* Reads names of models (model_name.h). By Hugging Face's rule, no part of a name begins or ends with a dot or hyphen,
 * or has two of them in a row. So "--" can replace the slash in names of folders. */
#include "src/named/model_name.h"

#include <stdio.h>
#include <string.h>

#define OLLAMA "ollama:"

static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static bool is_sign(char c) {
    return c == '.' || c == '-';
}

bool fr_model_name_part(const char *text, size_t length) {
    if (length == 0 || length >= FR_NAME_PART || is_sign(text[0]) || is_sign(text[length - 1])) return false;
    for (size_t i = 0; i < length; i++)
        if (!is_letter(text[i]) && !(is_sign(text[i]) && !is_sign(text[i - 1]))) return false;
    return true;
}

static bool take(const char *text, size_t length, char part[FR_NAME_PART]) {
    if (!fr_model_name_part(text, length)) return false;
    memcpy(part, text, length);
    part[length] = '\0';
    return true;
}

/* Takes a type or a file's name. In names of files, dots and hyphens may be anywhere. */
static bool take_which(const char *text, fr_model_name *name) {
    size_t length = strlen(text);
    if (length == 0 || length >= sizeof name->which || text[0] == '/' || strstr(text, "..")) return false;
    for (size_t i = 0; i < length; i++)
        if (!is_letter(text[i]) && !is_sign(text[i]) && text[i] != '/') return false;
    memcpy(name->which, text, length + 1);
    return true;
}

static bool read_repository(const char *text, fr_model_name *name) {
    const char *slash = strchr(text, '/'), *colon = strchr(text, ':');
    size_t length = colon ? (size_t)(colon - text) : strlen(text);
    if (!slash || (size_t)(slash - text) >= length) return false;
    if (!take(text, (size_t)(slash - text), name->org)) return false;
    if (!take(slash + 1, length - (size_t)(slash + 1 - text), name->model)) return false;
    return !colon || take_which(colon + 1, name);
}

/* Reads [[HOST/]NAMESPACE/]NAME[:TAG]. A host may have a port, which is also part of its folder's name. */
static bool read_ollama(const char *text, fr_model_name *name) {
    const char *last = strrchr(text, '/'), *model = last ? last + 1 : text, *colon = strchr(model, ':');
    const char *first = last ? strchr(text, '/') : NULL, *org = first && first != last ? first + 1 : text;
    size_t length = colon ? (size_t)(colon - model) : strlen(model);
    name->ollama = true;
    snprintf(name->host, sizeof name->host, "registry.ollama.ai");
    snprintf(name->org, sizeof name->org, "library");
    snprintf(name->which, sizeof name->which, "latest");
    if (last && !take(org, (size_t)(last - org), name->org)) return false;
    if (first && first != last && !take(text, (size_t)(first - text), name->host)) return false;
    if (colon && (!fr_model_name_part(colon + 1, strlen(colon + 1)) || !take_which(colon + 1, name))) return false;
    return take(model, length, name->model);
}

bool fr_model_name_read(const char *text, fr_model_name *name) {
    *name = (fr_model_name){0};
    if (strncmp(text, OLLAMA, sizeof OLLAMA - 1) == 0) return read_ollama(text + sizeof OLLAMA - 1, name);
    return read_repository(text, name);
}
