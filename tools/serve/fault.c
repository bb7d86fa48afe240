/* Makes JSON errors in the form that a server's clients expect (fault.h). */
#include "tools/serve/fault.h"

#include <string.h>

#include "tools/cli/output.h"

const char *fr_fault_type(unsigned http) {
    switch (http) {
    case 401: return "authentication_error";
    case 403: return "permission_error";
    case 404: return "not_found_error";
    case 501: return "not_supported_error";
    case 503: return "unavailable_error";
    default: return http >= 400 && http < 500 ? "invalid_request_error" : "server_error";
    }
}

unsigned fr_fault_http(fr_status status) {
    switch (status) {
    case FR_INPUT:
    case FR_USAGE:
    case FR_UNBUILT: return 400;
    case FR_MEMORY: return 503;
    default: return 500;
    }
}

json_t *fr_fault_json(unsigned http, const char *message) {
    json_t *error = json_object();
    json_t *whole = json_object();
    fr_json_put(error, "code", json_integer(http));
    fr_json_put(error, "message", fr_json_bytes(message, strlen(message)));
    fr_json_put(error, "type", json_string(fr_fault_type(http)));
    fr_json_put(whole, "error", error);
    return whole;
}

/* Gives the message for Anthropic's form. If the prompt is too long, the message begins with a fixed phrase.
 * Anthropic's clients shorten the conversation when they find this phrase. */
static json_t *anthropic_message_of(const json_t *error) {
    const json_t *tokens = json_object_get(error, "n_prompt_tokens"), *context = json_object_get(error, "n_ctx");
    if (!tokens) return json_incref(json_object_get(error, "message"));
    return json_sprintf("prompt is too long: %lld tokens > %lld maximum", (long long)json_integer_value(tokens),
                        (long long)json_integer_value(context));
}

json_t *fr_fault_of_anthropic(json_t *fault) {
    const json_t *error = json_object_get(fault, "error"), *code = json_object_get(error, "code");
    json_int_t http = json_is_integer(code) ? json_integer_value(code) : 400;
    const char *type = http == 413   ? "request_too_large"
                       : http == 503 ? "overloaded_error"
                       : http >= 500 ? "api_error"
                                     : fr_fault_type((unsigned)http);
    json_t *own = json_object(), *whole = json_object();
    fr_json_put(own, "type", json_string(type));
    fr_json_put(own, "message", anthropic_message_of(error));
    fr_json_put(whole, "type", json_string("error"));
    fr_json_put(whole, "error", own);
    json_decref(fault);
    return whole;
}

json_t *fr_fault_of_ollama(json_t *fault) {
    json_t *whole = json_object();
    fr_json_put(whole, "error", json_incref(json_object_get(json_object_get(fault, "error"), "message")));
    json_decref(fault);
    return whole;
}

json_t *fr_fault_at(const char *path, unsigned http, const char *message) {
    json_t *fault = fr_fault_json(http, message);
    if (path && strncmp(path, "/v1/messages", 12) == 0) return fr_fault_of_anthropic(fault);
    return path && strncmp(path, "/api/", 5) == 0 ? fr_fault_of_ollama(fault) : fault;
}
