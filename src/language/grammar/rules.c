/* Makes rules of expressions (rules.h). */
#include "src/language/grammar/rules.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/hash.h"
#include "src/language/grammar/cursor.h"

#define REPLACEMENT 0xFFFDu
#define ITEMS_MAX   ((size_t)1 << 20) /* limit on the number of expressions, on that of ranges and on that of rules */

void fr_grammar_rules_free(fr_grammar_rules *rules) {
    free(rules->expressions);
    free(rules->ranges);
    free(rules->bodies);
    free(rules->defined);
    for (size_t i = 0; i < rules->shared_count; i++) free(rules->shared[i].key);
    free(rules->shared);
    *rules = (fr_grammar_rules){0};
}

fr_status fr_grammar_rules_check(const fr_grammar_rules *rules) {
    if (rules->status == FR_MEMORY) return fr_fail_memory("a grammar", ITEMS_MAX);
    if (rules->status == FR_UNBUILT)
        return fr_fail(FR_UNBUILT, "the grammar takes more than %zu steps to read: not built", FR_GRAMMAR_WORK_MAX);
    if (rules->status != FR_OK)
        return fr_fail(rules->status, "the grammar is too large: more than %zu expressions", ITEMS_MAX);
    return FR_OK;
}

bool fr_grammar_spend(fr_grammar_rules *rules, size_t steps) {
    rules->work += steps;
    if (rules->status == FR_OK && rules->work > FR_GRAMMAR_WORK_MAX) rules->status = FR_UNBUILT;
    return rules->status == FR_OK;
}

/* Makes room for `more` items. If there is no room, stores the failure in `rules` and returns false. */
static bool grow(fr_grammar_rules *rules, void *items, size_t size, size_t count, size_t more, size_t *capacity) {
    void **at = items;
    if (rules->status != FR_OK) return false;
    if (more > ITEMS_MAX - count) {
        rules->status = FR_INPUT;
        return false;
    }
    if (count + more <= *capacity) return true;
    size_t wanted = 2 * (count + more);
    void *grown = realloc(*at, wanted * size);
    if (!grown) {
        rules->status = FR_MEMORY;
        return false;
    }
    *at = grown;
    *capacity = wanted;
    return true;
}

/* Makes the empty text the first expression. If there is no room for it, returns false. */
static bool begin(fr_grammar_rules *rules) {
    if (rules->expression_count > 0) return true;
    if (!grow(rules, &rules->expressions, sizeof *rules->expressions, 0, 1, &rules->expression_capacity)) return false;
    rules->expressions[rules->expression_count++] = (fr_expression_node){.kind = FR_EXPRESSION_EMPTY};
    return true;
}

static fr_expression add(fr_grammar_rules *rules, fr_expression_node node) {
    if (!begin(rules)) return 0;
    if (!grow(rules, &rules->expressions, sizeof node, rules->expression_count, 1, &rules->expression_capacity))
        return 0;
    rules->expressions[rules->expression_count] = node;
    return (fr_expression)rules->expression_count++;
}

/* ------------------------------------------------------------------------------------------------------- characters */

static int by_low(const void *a, const void *b) {
    const fr_character_range *one = a, *other = b;
    return (one->low > other->low) - (one->low < other->low);
}

/* Sorts ranges and joins those that touch. Returns the number of ranges that are left. */
static size_t join_ranges(fr_character_range *ranges, size_t count) {
    size_t kept = 0;
    qsort(ranges, count, sizeof *ranges, by_low);
    for (size_t i = 0; i < count; i++) {
        if (kept && ranges[i].low <= ranges[kept - 1].high + 1) {
            if (ranges[i].high > ranges[kept - 1].high) ranges[kept - 1].high = ranges[i].high;
        } else {
            ranges[kept++] = ranges[i];
        }
    }
    return kept;
}

/* Replaces sorted ranges that do not overlap by the gaps before, between and after them, in place. There may be one
 * more gap than there were ranges. */
static size_t complement(fr_character_range *ranges, size_t count) {
    size_t kept = 0;
    uint32_t low = 0;
    for (size_t i = 0; i < count; i++) {
        fr_character_range range = ranges[i];
        if (range.low > low) ranges[kept++] = (fr_character_range){low, range.low - 1};
        low = range.high + 1;
    }
    if (low <= FR_CODE_POINT_MAX) ranges[kept++] = (fr_character_range){low, FR_CODE_POINT_MAX};
    return kept;
}

fr_expression fr_expression_characters(fr_grammar_rules *rules, const fr_character_range *ranges, size_t count,
                                       bool except) {
    if (!grow(rules, &rules->ranges, sizeof *rules->ranges, rules->range_count, count + 1, &rules->range_capacity))
        return 0;
    fr_character_range *own = rules->ranges + rules->range_count;
    for (size_t i = 0; i < count; i++) own[i] = ranges[i];
    size_t kept = join_ranges(own, count);
    if (except) kept = complement(own, kept);
    fr_expression_node node = {FR_EXPRESSION_CHARACTER, (uint32_t)rules->range_count, (uint32_t)kept, 0};
    rules->range_count += kept;
    return add(rules, node);
}

fr_expression fr_expression_character(fr_grammar_rules *rules, uint32_t code) {
    return fr_expression_characters(rules, &(fr_character_range){code, code}, 1, false);
}

fr_expression fr_expression_text(fr_grammar_rules *rules, fr_text utf8) {
    fr_expression all = 0;
    for (fr_cursor c = {utf8, 0}; c.at < utf8.length;) {
        uint32_t code = REPLACEMENT; /* used only for bytes that are not UTF-8; readers of grammars refuse such bytes
                                      * later */
        if (!fr_cursor_take_character(&c, &code)) c.at++;
        all = fr_expression_then(rules, all, fr_expression_character(rules, code));
    }
    return all;
}

fr_expression fr_expression_string(fr_grammar_rules *rules, const char *utf8) {
    return fr_expression_text(rules, (fr_text){utf8, strlen(utf8)});
}

/* --------------------------------------------------------------------------------------------- composed expressions */

fr_expression fr_expression_then(fr_grammar_rules *rules, fr_expression first, fr_expression second) {
    if (!first || !second) return first ? first : second;
    return add(rules, (fr_expression_node){FR_EXPRESSION_SEQUENCE, first, second, 0});
}

fr_expression fr_expression_or(fr_grammar_rules *rules, fr_expression first, fr_expression second) {
    return add(rules, (fr_expression_node){FR_EXPRESSION_CHOICE, first, second, 0});
}

fr_expression fr_expression_repeat(fr_grammar_rules *rules, fr_expression of, uint32_t least, uint32_t most) {
    if (!of || most == 0) return 0;
    if (least == 1 && most == 1) return of;
    return add(rules, (fr_expression_node){FR_EXPRESSION_REPEAT, of, least, most});
}

fr_expression fr_expression_rule(fr_grammar_rules *rules, uint32_t rule) {
    return add(rules, (fr_expression_node){FR_EXPRESSION_RULE, rule, 0, 0});
}

fr_expression fr_expression_token(fr_grammar_rules *rules, int32_t id) {
    return add(rules, (fr_expression_node){FR_EXPRESSION_TOKEN, (uint32_t)id, 0, 0});
}

fr_expression fr_expression_look(fr_grammar_rules *rules, fr_expression of, unsigned how) {
    return add(rules, (fr_expression_node){FR_EXPRESSION_LOOK, of, how, 0});
}

fr_expression fr_expression_count(fr_grammar_rules *rules, uint32_t least, uint32_t most, uint32_t behind,
                                  bool exactly) {
    return add(rules,
               (fr_expression_node){FR_EXPRESSION_COUNT, least, most, behind | (exactly ? FR_COUNT_EXACTLY : 0)});
}

fr_expression fr_expression_counted(fr_grammar_rules *rules, uint32_t least, uint32_t most) {
    return add(rules, (fr_expression_node){FR_EXPRESSION_COUNTED, least, most, 0});
}

uint32_t fr_grammar_rule(fr_grammar_rules *rules) {
    size_t capacity = rules->rule_capacity;
    if (!begin(rules)) return 0;
    if (!grow(rules, &rules->bodies, sizeof *rules->bodies, rules->rule_count, 1, &rules->rule_capacity) ||
        !grow(rules, &rules->defined, sizeof *rules->defined, rules->rule_count, 1, &capacity))
        return 0;
    rules->bodies[rules->rule_count] = 0;
    rules->defined[rules->rule_count] = false;
    return (uint32_t)rules->rule_count++;
}

bool fr_grammar_find_shared(fr_grammar_rules *rules, const char *key, uint32_t *rule) {
    uint64_t hash = fr_hash(0, key, strlen(key));
    if (!fr_grammar_spend(rules, 1 + rules->shared_count / 64)) return false;
    for (size_t i = 0; i < rules->shared_count; i++) {
        *rule = rules->shared[i].rule;
        if (rules->shared[i].hash == hash && strcmp(rules->shared[i].key, key) == 0) return true;
    }
    return false;
}

void fr_grammar_define(fr_grammar_rules *rules, uint32_t rule, fr_expression body) {
    if (rules->status != FR_OK) return;
    rules->bodies[rule] = body;
    rules->defined[rule] = true;
}

fr_expression fr_grammar_share(fr_grammar_rules *rules, const char *key, fr_expression body) {
    uint32_t rule = fr_grammar_rule(rules);
    fr_grammar_define(rules, rule, body);
    if (!grow(rules, &rules->shared, sizeof *rules->shared, rules->shared_count, 1, &rules->shared_capacity)) return 0;
    char *own = strdup(key);
    if (!own) rules->status = FR_MEMORY;
    if (own) rules->shared[rules->shared_count++] = (fr_shared_rule){own, fr_hash(0, key, strlen(key)), rule};
    return fr_expression_rule(rules, rule);
}
