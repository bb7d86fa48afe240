/* Reads the post-processor of a tokenizer.json: the ids that it puts before and after a text. */
#include <string.h>

#include "base/error.h"
#include "formats/json_member.h"
#include "formats/tokenizer_json_parts.h"

/* Holds ids that are put on one side of a text, before it or after it. */
typedef struct side {
    int32_t ids[FR_TEMPLATE_IDS_MAX];
    size_t count;
} side;

static fr_status fail_ids(const char *where, fr_text name) {
    return fr_fail(FR_INPUT, "%s: the post-processor's \"%s\" has bad or too many \"ids\"", where, name.bytes);
}

static fr_status add_id(const json_t *value, const char *where, fr_text name, side *to) {
    json_int_t id = json_is_integer(value) ? json_integer_value(value) : -1;
    if (id < 0 || id > FR_TOKEN_ID_MAX || to->count == FR_TEMPLATE_IDS_MAX) return fail_ids(where, name);
    to->ids[to->count++] = (int32_t)id;
    return FR_OK;
}

/* Adds ids before and after the text. A later processor of a sequence gets the result of the earlier ones, so its ids
 * are put farther from the text than ids that were added earlier. */
static fr_status add_around(fr_tokenizer_source *source, const side *before, const side *behind) {
    size_t prefix = source->prefix_count + before->count, suffix = source->suffix_count + behind->count;
    if (prefix > FR_TEMPLATE_IDS_MAX || suffix > FR_TEMPLATE_IDS_MAX)
        return fr_fail(FR_INPUT, "%s: the post-processor adds more than %d ids", source->path, FR_TEMPLATE_IDS_MAX);
    memmove(source->prefix + before->count, source->prefix, source->prefix_count * sizeof *source->prefix);
    memcpy(source->prefix, before->ids, before->count * sizeof *before->ids);
    memcpy(source->suffix + source->suffix_count, behind->ids, behind->count * sizeof *behind->ids);
    source->prefix_count = prefix;
    source->suffix_count = suffix;
    return FR_OK;
}

/* -------------------------------------------------------------------------------------------------------- templates */

static fr_status add_special(const json_t *specials, fr_text name, const char *where, side *to) {
    json_t *special, *list, *item;
    size_t i;
    FR_TRY(fr_json_object(specials, name.bytes, where, &special));
    FR_TRY(fr_member_array(special, "ids", where, &list));
    if (!list) return fr_fail(FR_INPUT, "%s: the post-processor's \"%s\" has no \"ids\"", where, name.bytes);
    json_array_foreach (list, i, item) FR_TRY(add_id(item, where, name, to));
    return FR_OK;
}

/* Reads a template: [special tokens..., the text, special tokens...] */
static fr_status read_template(fr_tokenizer_source *source, const json_t *processor) {
    const char *where = source->path;
    json_t *single, *specials, *item, *special, *sequence;
    side sides[2] = {{.count = 0}, {.count = 0}};
    bool text_seen = false;
    size_t i;
    FR_TRY(fr_member_array(processor, "single", where, &single));
    FR_TRY(fr_json_object(processor, "special_tokens", where, &specials));
    json_array_foreach (single, i, item) {
        fr_text name;
        FR_TRY(fr_json_object(item, "SpecialToken", where, &special));
        FR_TRY(fr_json_object(item, "Sequence", where, &sequence));
        if (!special == !sequence) return fr_fail(FR_INPUT, "%s: \"single\" has a piece of no known kind", where);
        FR_TRY(fr_member_required_text(special ? special : sequence, "id", where, &name));
        if (special)
            FR_TRY(add_special(specials, name, where, &sides[text_seen]));
        else if (text_seen || !fr_text_is(name, "A"))
            return fr_fail(FR_INPUT, "%s: \"single\" is more than one text", where);
        text_seen |= sequence != NULL;
    }
    if (!text_seen) return fr_fail(FR_INPUT, "%s: \"single\" leaves the text out", where);
    return add_around(source, &sides[0], &sides[1]);
}

/* Adds a piece to the template for a pair of texts. */
static fr_status add_piece(fr_tokenizer_source *source, int32_t id, uint8_t type) {
    if (source->pair_count == FR_TEMPLATE_IDS_MAX)
        return fr_fail(FR_INPUT, "%s: the post-processor's pair has more than %d pieces", source->path,
                       FR_TEMPLATE_IDS_MAX);
    source->pair[source->pair_count++] = (fr_pair_piece){id, type};
    return FR_OK;
}

/* Reads the template of a pair of texts. A template in which one of the two texts is missing or occurs twice is
 * ignored. */
static fr_status read_pair_template(fr_tokenizer_source *source, const json_t *processor) {
    const char *where = source->path;
    json_t *pair, *specials, *item;
    size_t i, seen[2] = {0};
    FR_TRY(fr_member_array(processor, "pair", where, &pair));
    FR_TRY(fr_json_object(processor, "special_tokens", where, &specials));
    source->pair_count = 0;
    json_array_foreach (pair, i, item) {
        json_t *special, *sequence;
        fr_text name;
        int64_t type;
        FR_TRY(fr_json_object(item, "SpecialToken", where, &special));
        FR_TRY(fr_json_object(item, "Sequence", where, &sequence));
        if (!special == !sequence) return fr_fail(FR_INPUT, "%s: \"pair\" has a piece of no known kind", where);
        const json_t *piece = special ? special : sequence;
        FR_TRY(fr_member_required_text(piece, "id", where, &name));
        FR_TRY(fr_json_int(piece, "type_id", 0, 1, 0, where, &type));
        if (special) {
            side ids = {.count = 0};
            FR_TRY(add_special(specials, name, where, &ids));
            for (size_t k = 0; k < ids.count; k++) FR_TRY(add_piece(source, ids.ids[k], (uint8_t)type));
            continue;
        }
        bool second = fr_text_is(name, "B");
        seen[second]++;
        FR_TRY(add_piece(source, second ? FR_PAIR_SECOND : FR_PAIR_FIRST, (uint8_t)type));
    }
    if (seen[0] != 1 || seen[1] != 1) source->pair_count = 0;
    return FR_OK;
}

/* Reads a pair ["[CLS]", id]. */
static fr_status read_pair(const json_t *processor, const char *key, const char *where, side *to) {
    json_t *pair;
    FR_TRY(fr_member_array(processor, key, where, &pair));
    return add_id(json_array_get(pair, 1), where, (fr_text){key, strlen(key)}, to);
}

/* Reads a BertProcessing or, if `robust` is true, a RobertaProcessing. RobertaProcessing puts two separators between
 * the texts of a pair and gives both texts the token type 0. */
static fr_status read_around(fr_tokenizer_source *source, const json_t *processor, bool robust) {
    side before = {.count = 0}, behind = {.count = 0};
    FR_TRY(read_pair(processor, "cls", source->path, &before));
    FR_TRY(read_pair(processor, "sep", source->path, &behind));
    source->pair_count = 0;
    FR_TRY(add_piece(source, before.ids[0], 0));
    FR_TRY(add_piece(source, FR_PAIR_FIRST, 0));
    FR_TRY(add_piece(source, behind.ids[0], 0));
    if (robust) FR_TRY(add_piece(source, behind.ids[0], 0));
    FR_TRY(add_piece(source, FR_PAIR_SECOND, !robust));
    FR_TRY(add_piece(source, behind.ids[0], !robust));
    return add_around(source, &before, &behind);
}

/* Reads one processor. A ByteLevel adds no ids; it only changes the offsets of tokens in the text. */
static fr_status read_processor(fr_tokenizer_source *source, const json_t *processor) {
    json_t *sequence, *item;
    fr_text type;
    size_t i;
    FR_TRY(fr_member_required_text(processor, "type", source->path, &type));
    if (fr_text_is(type, "ByteLevel")) return FR_OK;
    if (fr_text_is(type, "TemplateProcessing")) {
        FR_TRY(read_pair_template(source, processor));
        return read_template(source, processor);
    }
    bool robust = fr_text_is(type, "RobertaProcessing");
    if (robust || fr_text_is(type, "BertProcessing")) return read_around(source, processor, robust);
    if (!fr_text_is(type, "Sequence"))
        return fr_fail(FR_UNBUILT, "%s: post_processor \"%s\" is not built yet", source->path, type.bytes);
    FR_TRY(fr_member_array(processor, "processors", source->path, &sequence));
    json_array_foreach (sequence, i, item) FR_TRY(read_processor(source, item));
    return FR_OK;
}

fr_status fr_tokenizer_json_processor(fr_tokenizer_source *source) {
    json_t *processor;
    FR_TRY(fr_json_object(source->root, "post_processor", source->path, &processor));
    return processor ? read_processor(source, processor) : FR_OK;
}
