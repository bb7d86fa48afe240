/* Prints the figures of ranks (figures_ranks.h). */
#include "tools/cli/figures_ranks.h"

#include "forerun_lab_ranks.h"
#include "tools/cli/output.h"

/* Counts the layers up to the last layer for which ranks have sent messages. */
static size_t layers_told(void) {
    size_t layers = FR_LAB_RANKS_ELSEWHERE;
    while (layers > 0 && fr_lab_ranks_sent(layers - 1).messages == 0) layers--;
    return layers;
}

static json_t *sent_json(fr_lab_traffic sent) {
    json_t *object = json_object();
    fr_json_put(object, "messages", json_integer((json_int_t)sent.messages));
    fr_json_put(object, "bytes", json_integer((json_int_t)sent.bytes));
    fr_json_put(object, "waited_seconds", json_real(sent.seconds));
    return object;
}

json_t *fr_ranks_json(double peak) {
    json_t *ranks = sent_json(fr_lab_ranks_sent(FR_LAB_RANKS_ALL)), *peaks = json_array(), *layers = json_array();
    double all[FR_LAB_MOST_RANKS];
    fr_lab_ranks_collect(peak, all);
    for (size_t r = 0; r < fr_rank_count(); r++) json_array_append_new(peaks, json_integer((json_int_t)all[r]));
    for (size_t i = 0, count = layers_told(); i < count; i++)
        json_array_append_new(layers, sent_json(fr_lab_ranks_sent(i)));
    fr_json_put(ranks, "count", json_integer((json_int_t)fr_rank_count()));
    fr_json_put(ranks, "split", json_string(fr_lab_ranks_by_layers() ? "layers" : "rows"));
    fr_json_put(ranks, "peaks", peaks);
    fr_json_put(ranks, "layers", layers);
    return ranks;
}

/* Prints a single number, "12", or a range, "8 to 12". */
static void print_span(FILE *out, double least, double most, int digits) {
    fprintf(out, "%.*f", digits, least);
    if (most > least) fprintf(out, " to %.*f", digits, most);
}

/* Prints the range of the number of messages per layer, and the range of the bytes per layer. Each range goes from the
 * smallest to the largest value. */
static void print_layers(FILE *out) {
    fr_lab_traffic least = {UINT64_MAX, UINT64_MAX, 0}, most = {0};
    size_t layers = layers_told();
    if (layers == 0) return;
    for (size_t i = 0; i < layers; i++) {
        fr_lab_traffic sent = fr_lab_ranks_sent(i);
        if (sent.messages < least.messages) least.messages = sent.messages;
        if (sent.messages > most.messages) most.messages = sent.messages;
        if (sent.bytes < least.bytes) least.bytes = sent.bytes;
        if (sent.bytes > most.bytes) most.bytes = sent.bytes;
    }
    fprintf(out, "a layer       ");
    print_span(out, (double)least.messages, (double)most.messages, 0);
    fprintf(out, " messages, ");
    print_span(out, (double)least.bytes / 1e6, (double)most.bytes / 1e6, 3);
    fprintf(out, " MB, of %zu layers\n", layers);
}

void fr_ranks_print(double peak, FILE *out) {
    fr_lab_traffic sent = fr_lab_ranks_sent(FR_LAB_RANKS_ALL);
    double all[FR_LAB_MOST_RANKS];
    fr_lab_ranks_collect(peak, all);
    fprintf(out, "ranks       %8zu           %9.3f s waited; by %s rank 0 sent %.3f MB in %.0f messages; peaks, MB",
            fr_rank_count(), sent.seconds, fr_lab_ranks_by_layers() ? "layers" : "rows", (double)sent.bytes / 1e6,
            (double)sent.messages);
    for (size_t r = 0; r < fr_rank_count(); r++) fprintf(out, "%s%.1f", r ? " + " : " ", all[r] / 1e6);
    fputc('\n', out);
    print_layers(out);
}
