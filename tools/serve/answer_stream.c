/* Writes events of a stream to a client (answer_parts.h). */
#include <stdlib.h>
#include <string.h>

#include "tools/serve/dialects/answer_dialect.h"

void fr_answer_send_line(fr_generation_request *request, const char *line) {
    if (request->answered) return;
    if (!request->streaming) {
        fr_http_exchange_set_header(request->exchange, "Cache-Control", "no-cache");
        fr_http_exchange_begin(request->exchange, request->dialect ? request->dialect->type : "text/event-stream");
    }
    request->streaming = true;
    fr_http_exchange_write(request->exchange, line, strlen(line));
}

/* Sends a JSON text as one event. The text of an event must not contain line breaks. JSON text contains none, because
 * JSON escapes line breaks in strings. */
void fr_answer_send(fr_generation_request *request, json_t *event) {
    char *json = fr_json_line(event);
    size_t size = strlen(json) + sizeof "data: \n\n";
    char *line = fr_resize(NULL, size, 1);
    snprintf(line, size, "data: %s\n\n", json);
    fr_answer_send_line(request, line);
    json_decref(event);
    free(line);
    free(json);
}
