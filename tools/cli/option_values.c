/* Reads the values of options, which are numbers, words or lists, and checks them by the table (options.h).
 *
 * In: an option and its text. Out: its value in fr_arguments; or an error line and exit status 2. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "forerun_lab.h"
#include "tools/cli/option_table.h"
#include "tools/cli/output.h"
#include "tools/cli/words.h"

#define WORDS_LENGTH 4096 /* the most bytes that a list of an option's words may have */

static bool whole_number(const char *text, int64_t *value) {
    const char *digits = text + (*text == '-');
    if (!*digits || strspn(digits, "0123456789") != strlen(digits)) return false;
    errno = 0;
    *value = strtoll(text, NULL, 10);
    return errno == 0;
}

fr_lab_range fr_option_row_range(const fr_option_row *row) {
    if (row->to == FR_SET_GIVEN && row->low == row->high) return fr_lab_option_range(row->sets);
    return (fr_lab_range){row->low, row->high, (double)row->low, (double)row->high};
}

static int take_number(fr_arguments *args, fr_arg arg, const char *name, const char *text) {
    const fr_option_row *row = &fr_option_table[arg];
    if (row->special && strcmp(text, row->special) == 0) {
        args->number[arg] = -1;
        return 0;
    }
    if (!whole_number(text, &args->number[arg])) return fr_wrong_usage("%s %s: not a whole number", name, text);
    fr_lab_range range = fr_option_row_range(row);
    if (args->number[arg] < range.low || args->number[arg] > range.high)
        return fr_wrong_usage("%s %s is out of range: %lld to %lld", name, text, (long long)range.low,
                              (long long)range.high);
    bool built = !row->unbuilt_from || args->number[arg] < row->unbuilt_from;
    return built ? 0 : fr_wrong_usage("%s %s is not built yet", name, text);
}

static int take_real(fr_arguments *args, fr_arg arg, const char *name, const char *text) {
    fr_lab_range range = fr_option_row_range(&fr_option_table[arg]);
    char *end;
    if (fr_option_table[arg].special && strcmp(text, fr_option_table[arg].special) == 0) {
        args->real[arg] = -1;
        return 0;
    }
    double value = strtod(text, &end);
    if (isspace((unsigned char)*text) || end == text || *end) return fr_wrong_usage("%s %s: not a number", name, text);
    args->real[arg] = value;
    if (value >= range.least && value <= range.most) return 0;
    return fr_wrong_usage("%s %s is out of range: %.10g to %.10g", name, text, range.least, range.most);
}

void fr_add_words(fr_lab_words of, char *list, size_t size) {
    const char *word;
    for (size_t i = 0, length = strlen(list); (word = fr_lab_word(of, i)) && length < size; i++)
        length += (size_t)snprintf(list + length, size - length, "%s%s", length ? " " : "", word);
}

void fr_option_row_words(const fr_option_row *row, char *words, size_t size) {
    snprintf(words, size, "%s", row->words ? row->words : "");
    fr_add_words(row->of, words, size);
    fr_add_words(row->also, words, size);
}

/* Checks one word of a WORD or LIST option. */
static int take_word(fr_arg arg, const char *name, const char *word, size_t length) {
    const fr_option_row *row = &fr_option_table[arg];
    char words[WORDS_LENGTH];
    fr_option_row_words(row, words, sizeof(words));
    bool (*has)(const char *, const char *, size_t) = row->any_case ? fr_has_word_in_any_case : fr_has_word;
    if (has(words, word, length)) return 0;
    int shown = (int)fr_least(length, 40);
    if (has(row->unbuilt, word, length)) return fr_wrong_usage("%s %.*s is not built yet", name, shown, word);
    return fr_wrong_usage("%s %.*s is unknown; known: %s%s%s", name, shown, word, words,
                          row->unbuilt ? "; not built yet: " : "", row->unbuilt ? row->unbuilt : "");
}

static int take_list(fr_arg arg, const char *name, const char *text) {
    size_t length;
    for (const char *word; (word = fr_next_word(&text, ',', &length));) {
        int code = take_word(arg, name, word, length);
        if (code) return code;
    }
    return 0;
}

/* Reads a range of numbers, such as "1..8". A single number, such as "8", is a range too. */
static bool take_stretch(const fr_option_row *row, const char *item, size_t length, int64_t *first, int64_t *last) {
    char text[64];
    snprintf(text, sizeof(text), "%.*s", (int)fr_least(length, sizeof(text) - 1), item);
    char *dots = strstr(text, "..");
    if (dots) *dots = 0;
    return whole_number(text, first) && whole_number(dots ? dots + 2 : text, last) && *first <= *last &&
           *first >= row->low && *last <= row->high;
}

static bool is_special(const fr_option_row *row, const char *item, size_t length) {
    return row->special && strlen(row->special) == length && memcmp(row->special, item, length) == 0;
}

static int take_numbers(fr_arg arg, const char *name, const char *text) {
    const fr_option_row *row = &fr_option_table[arg];
    int64_t first, last;
    size_t length;
    for (const char *item; (item = fr_next_word(&text, ',', &length));) {
        if (is_special(row, item, length)) continue;
        if (!take_stretch(row, item, length, &first, &last))
            return fr_wrong_usage("%s %.*s: numbers such as 1..8,16 from %lld to %lld%s%s", name,
                                  (int)fr_least(length, 40), item, (long long)row->low, (long long)row->high,
                                  row->special ? ", or " : "", row->special ? row->special : "");
    }
    return 0;
}

size_t fr_arguments_numbers(const fr_arguments *args, fr_arg arg, int64_t *numbers, size_t most) {
    const char *list = args->given[arg] ? args->text[arg] : NULL;
    int64_t first, last;
    size_t length, count = 0;
    for (const char *item; (item = fr_next_word(&list, ',', &length));) {
        first = last = -1;
        if (!is_special(&fr_option_table[arg], item, length))
            take_stretch(&fr_option_table[arg], item, length, &first, &last);
        for (; first <= last && count < most; first++) numbers[count++] = first;
    }
    return count;
}

/* Reads a list of ids. If the text is not a list of numbers, that is wrong usage (exit status 2). If a number is too
 * large for any vocabulary, that is bad input (exit status 1). A number beyond the model's own vocabulary is bad input
 * too, which is found later. */
static int take_ids(fr_arguments *args, const char *name, const char *text) {
    const char *list = text;
    size_t length, capacity = strlen(text) / 2 + 1;
    free(args->ids);
    args->ids = fr_resize(NULL, capacity, sizeof(*args->ids));
    args->id_count = 0;
    for (const char *item; (item = fr_next_word(&list, ',', &length));) {
        size_t sign = length > 1 && *item == '-';
        if (length == 0 || strspn(item + sign, "0123456789") != length - sign) {
            return fr_wrong_usage("%s %.40s: not a list of ids such as 1,2,3", name, text);
        }
        errno = 0;
        long long id = strtoll(item, NULL, 10);
        if (errno || id < 0 || id > INT32_MAX) {
            return fr_bad_input("%s: id %.*s is outside every vocabulary", name, (int)fr_least(length, 40), item);
        }
        args->ids[args->id_count++] = (int32_t)id;
    }
    return 0;
}

/* Reads the value of -pg, which is two numbers with a comma between them: the number of prompt tokens and the number of
 * generated tokens. Each must be within the row's limits. */
static int take_pair(fr_arguments *args, fr_arg arg, const char *name, const char *text) {
    const char *list = text, *item;
    int64_t pair[2], last;
    size_t length, count = 0;
    if (args->pair_count == FR_PAIRS_MAX) return fr_wrong_usage("%s can be given %d times", name, FR_PAIRS_MAX);
    for (; (item = fr_next_word(&list, ',', &length)); count++) {
        bool known = count < 2 && take_stretch(&fr_option_table[arg], item, length, &pair[count], &last);
        if (!known || pair[count] != last) break;
    }
    if (item || count != 2)
        return fr_wrong_usage("%s %.40s: two numbers such as 512,128, from %lld to %lld", name, text,
                              (long long)fr_option_table[arg].low, (long long)fr_option_table[arg].high);
    memcpy(args->pairs[args->pair_count++], pair, sizeof pair);
    return 0;
}

static int take_text(fr_arguments *args, fr_arg arg, const char *name, const char *text) {
    if (arg == FR_ARG_BENCH_BOTH) return take_pair(args, arg, name, text);
    if (arg == FR_ARG_TENSOR_TYPE) {
        if (args->tensor_type_count == FR_TENSOR_TYPES_MAX)
            return fr_wrong_usage("%s can be given %d times", name, FR_TENSOR_TYPES_MAX);
        args->tensor_types[args->tensor_type_count++] = text;
    }
    if (arg == FR_ARG_LORA || arg == FR_ARG_LORA_SCALED || arg == FR_ARG_VECTOR || arg == FR_ARG_VECTOR_SCALED) {
        if (args->adapter_count == FR_ADAPTER_OPTIONS_MAX)
            return fr_wrong_usage("%s can be given %d times", name, FR_ADAPTER_OPTIONS_MAX);
        args->adapters[args->adapter_count].text = text;
        args->adapters[args->adapter_count++].option = arg;
    }
    if (arg == FR_ARG_IMAGE) {
        if (args->image_count == FR_IMAGES_MAX) return fr_wrong_usage("%s can be given %d times", name, FR_IMAGES_MAX);
        args->images[args->image_count++] = text;
    }
    if (arg == FR_ARG_LOGIT_BIAS) {
        if (args->bias_count == FR_BIASES_MAX) return fr_wrong_usage("%s can be given %d times", name, FR_BIASES_MAX);
        args->biases[args->bias_count++] = text;
    }
    if (arg == FR_ARG_DRY_SEQUENCE_BREAKER) {
        if (args->breaker_count == FR_BREAKERS_MAX)
            return fr_wrong_usage("%s can be given %d times", name, FR_BREAKERS_MAX);
        args->breakers[args->breaker_count++] = text;
    }
    if (arg != FR_ARG_STOP) return 0;
    if (!*text) return fr_wrong_usage("%s needs a text that is not empty", name);
    if (args->stop_count == FR_STOPS_MAX) return fr_wrong_usage("%s can be given %d times", name, FR_STOPS_MAX);
    args->stops[args->stop_count++] = text;
    return 0;
}

/* Refuses types of llama-quantize that forerun does not write, and names the nearest type that it does write. */
static int check_type(const char *name, const char *text) {
    static const struct {
        const char *types, *instead;
    } others[] = {
        {"IQ3_XXS IQ3_S IQ3_M IQ3_XS", "q3_k"}, {"IQ1_S IQ1_M IQ2_XXS IQ2_XS IQ2_S IQ2_M", "q2_k"}, {"NVFP4", "mxfp4"}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (fr_has_word_in_any_case(others[i].types, text, strlen(text)))
            return fr_wrong_usage("%s %s is not built; the nearest is %s", name, text, others[i].instead);
    if (strcasecmp(text, "COPY") == 0) return fr_wrong_usage("%s %s: cp copies a file as it is", name, text);
    return 0;
}

int fr_option_take(fr_arguments *args, fr_arg arg, const char *name, const char *text) {
    const fr_option_row *row = &fr_option_table[arg];
    int code = arg == FR_ARG_TYPE ? check_type(name, text) : 0;
    if (code) return code;
    args->text[arg] = text;
    if (row->kind != FR_KIND_LIST && fr_has_word(row->unbuilt, text, strlen(text))) {
        return fr_wrong_usage("%s %s is not built yet", name, text);
    }
    switch (row->kind) {
    case FR_KIND_NUMBER: return take_number(args, arg, name, text);
    case FR_KIND_REAL: return take_real(args, arg, name, text);
    case FR_KIND_WORD: return take_word(arg, name, text, strlen(text));
    case FR_KIND_LIST: return take_list(arg, name, text);
    case FR_KIND_NUMBERS: return take_numbers(arg, name, text);
    case FR_KIND_IDS: return take_ids(args, name, text);
    case FR_KIND_TEXT: break;
    }
    return take_text(args, arg, name, text);
}
