/* Holds a grammar as rules of expressions. A GBNF file, a regular expression or a JSON schema becomes such rules before
 * it is run.
 *
 * In: expressions, made from the inside out. Out: rules with expressions as their bodies, for automaton.h. The calls
 * that make expressions report no failure. If one fails (no memory, too many expressions, or too many steps), the
 * failure is kept, and further expressions are the empty text. fr_grammar_rules_check reports the failure at the end.
 * An expression never changes once it is made, so it may be used in several places. */
#ifndef FR_SRC_LANGUAGE_GRAMMAR_RULES_H
#define FR_SRC_LANGUAGE_GRAMMAR_RULES_H

#include "base/text.h"
#include "forerun.h"

#define FR_CODE_POINT_MAX   0x10FFFFu
#define FR_GRAMMAR_UNBOUND  UINT32_MAX /* no largest count */
#define FR_GRAMMAR_NO_RULE  UINT32_MAX
#define FR_GRAMMAR_WORK_MAX ((size_t)1 << 22) /* limit on the steps that reading one grammar may take */

typedef uint32_t fr_expression; /* index of an expression; 0 is the empty text */

typedef enum fr_expression_kind {
    FR_EXPRESSION_EMPTY,
    FR_EXPRESSION_CHARACTER, /* a character in one of `second` ranges, which begin at index `first` */
    FR_EXPRESSION_SEQUENCE,  /* first, then second */
    FR_EXPRESSION_CHOICE,    /* first or second */
    FR_EXPRESSION_REPEAT,    /* `first`, repeated */
    FR_EXPRESSION_RULE,      /* the body of rule `first` */
    FR_EXPRESSION_TOKEN,     /* the token with id `first`; the token's text does not match it */
    FR_EXPRESSION_COUNT,     /* reads no text, but counts one more repetition: see fr_expression_count */
    FR_EXPRESSION_COUNTED,   /* reads no text, but ends the count of repetitions: see fr_expression_count */
    FR_EXPRESSION_LOOK,      /* reads no text, but tests the text around its place: see fr_expression_look */
} fr_expression_kind;

typedef struct fr_expression_node {
    fr_expression_kind kind;
    uint32_t first, second; /* for a repetition: its body and its least count */
    uint32_t most;          /* for a repetition: its largest count; for a count: see fr_expression_count */
} fr_expression_node;

/* Code points from low to high, both included. */
typedef struct fr_character_range {
    uint32_t low, high;
} fr_character_range;

/* A rule with a key by which it can be found, so that equal parts of a schema use the same rule. */
typedef struct fr_shared_rule {
    char *key;
    uint64_t hash;
    uint32_t rule;
} fr_shared_rule;

typedef struct fr_grammar_rules {
    fr_expression_node *expressions;
    fr_character_range *ranges;
    fr_expression *bodies; /* one for each rule */
    bool *defined;
    fr_shared_rule *shared;
    size_t expression_count, expression_capacity, range_count, range_capacity, rule_count, rule_capacity;
    size_t shared_count, shared_capacity;
    size_t work; /* number of steps that reading the grammar's text has taken */
    uint32_t root;
    fr_status status; /* FR_UNBUILT: too many steps; FR_INPUT: too many expressions */
} fr_grammar_rules;

void fr_grammar_rules_free(fr_grammar_rules *rules);

/* Returns FR_OK if no call has failed. */
fr_status fr_grammar_rules_check(const fr_grammar_rules *rules);

/* Counts steps, each of less than a microsecond, for all work that may grow faster than the length of the text. Returns
 * false if there were too many steps; reading must then stop. */
bool fr_grammar_spend(fr_grammar_rules *rules, size_t steps);

/* fr_expression_characters makes an expression for one character: any character of the ranges, or, if `except` is true,
 * any character outside of them. The ranges may be in any order and may overlap. Without ranges (and without `except`)
 * nothing matches. fr_expression_character makes an expression for one given character. fr_expression_text and
 * fr_expression_string make an expression for a text. */
fr_expression fr_expression_characters(fr_grammar_rules *rules, const fr_character_range *ranges, size_t count,
                                       bool except);
fr_expression fr_expression_character(fr_grammar_rules *rules, uint32_t code);
fr_expression fr_expression_text(fr_grammar_rules *rules, fr_text utf8);
fr_expression fr_expression_string(fr_grammar_rules *rules, const char *utf8);

/* These functions make an expression from other expressions. Long sequences and choices should grow at their end, as in
 * fr_expression_then(fr_expression_then(a, b), c). */
fr_expression fr_expression_then(fr_grammar_rules *rules, fr_expression first, fr_expression second);
fr_expression fr_expression_or(fr_grammar_rules *rules, fr_expression first, fr_expression second);
fr_expression fr_expression_repeat(fr_grammar_rules *rules, fr_expression of, uint32_t least, uint32_t most);
fr_expression fr_expression_rule(fr_grammar_rules *rules, uint32_t rule);
fr_expression fr_expression_token(fr_grammar_rules *rules, int32_t id);

/* Makes an expression that reads nothing but tests the text around its place. If `how` has FR_LOOK_AHEAD, the whole
 * rest of the text must match the given expression; otherwise all of the text before must match it. If `how` has
 * FR_LOOK_NOT, that text must not match it. Such expressions can only become languages (language.h). */
enum { FR_LOOK_AHEAD = 1, FR_LOOK_NOT = 2 };
fr_expression fr_expression_look(fr_grammar_rules *rules, fr_expression of, unsigned how);

/* fr_expression_count counts one more repetition, and fr_expression_counted ends the count. A rule has one counter; a
 * rule that is called at the end of another rule continues that rule's counter. Let n be the count including this
 * repetition. behind: the number of repetitions that must still follow. If n + behind exceeds `most`, the repetition is
 * refused. exactly: no more than `behind` repetitions may follow, so the repetition is also refused if n + behind is
 * below `least`. A rule that counts must end with fr_expression_counted, which requires a count from `least` to
 * `most`. */
#define FR_COUNT_EXACTLY 0x80000000u
fr_expression fr_expression_count(fr_grammar_rules *rules, uint32_t least, uint32_t most, uint32_t behind,
                                  bool exactly);
fr_expression fr_expression_counted(fr_grammar_rules *rules, uint32_t least, uint32_t most);

/* fr_grammar_share makes a rule of a body and stores it under a key. fr_grammar_find_shared finds the rule that has a
 * key. So a part that occurs many times is made only once. */
bool fr_grammar_find_shared(fr_grammar_rules *rules, const char *key, uint32_t *rule);
fr_expression fr_grammar_share(fr_grammar_rules *rules, const char *key, fr_expression body);

/* fr_grammar_rule makes a rule without a body. fr_grammar_define sets a rule's body. */
uint32_t fr_grammar_rule(fr_grammar_rules *rules);
void fr_grammar_define(fr_grammar_rules *rules, uint32_t rule, fr_expression body);

#endif
