/* A reply's grammar: what may come of reasoning, then calls, or a content of a grammar of its own.
 *
 * In: a format (reply_format.h), tools, which of them may or must be called; rules of a content. Out: rules of the
 * whole reply. Marks that are tokens of their own are these tokens as themselves; arguments are of the tools' schemas,
 * as the format writes them. */
#ifndef FR_SRC_LANGUAGE_CHAT_REPLY_GRAMMAR_H
#define FR_SRC_LANGUAGE_CHAT_REPLY_GRAMMAR_H

#include <jansson.h>

#include "src/language/chat/reply_format.h"
#include "src/language/grammar/json_schema.h"
#include "src/language/grammar/json_schema_values.h"

typedef struct fr_reply_plan {
    const fr_reply_format *format;
    bool thinks;         /* the prompt has opened the reasoning */
    bool thought;        /* the prompt contains the whole thought: the reply begins with the content or a call */
    const json_t *tools; /* an array, or NULL: nothing may be called */
    const char *tool;    /* the only one that may be called, NULL: any */
    bool several;        /* calls in one reply */
    bool has_content;    /* it may be of rules->root instead of calls; there are tools, or this */
} fr_reply_plan;

/* Adds a root to rules that have the content's, if there is one. */
fr_status fr_reply_rules(const fr_reply_plan *plan, fr_grammar_rules *rules);

/* True for a tool with "strict": true. For any other tool, parts of its schema that can't be enforced are ignored. */
bool fr_tool_is_strict(const json_t *tool);

/* A tool's parameters, which conversations may leave out, as a schema of objects; without any, of the empty object.
 * Refused: what is no such schema, and integers beyond 64 bits and NULs anywhere in it. */
fr_status fr_tool_schema(const json_t *tool, fr_grammar_rules *rules, json_t **schema);

/* The calls of each form that has arguments one by one, as text: `<parameter=KEY>VALUE`. *arguments: all of them. */
fr_status fr_tagged_arguments(const fr_reply_plan *plan, const json_t *tool, fr_grammar_rules *rules,
                              fr_expression *arguments);

/* Makes an argument's value, with the mark that ends it, from the schema at a place in the tool's parameters: plain
 * text if it may be a string, JSON otherwise. If the tool is not strict, a string whose constraints can't be enforced
 * may be any text. */
fr_status fr_tagged_value(const fr_reply_plan *plan, const json_t *tool, const char *key, const json_t *schema,
                          const fr_schema_path *path, fr_written_parts *parts, fr_expression *value);

/* Makes an expression from a form's text (reply_forms.h). Words, up to the one that is NULL, are replaced by their
 * meanings, and marks in the text become the marks. */
typedef struct fr_form_word {
    const char *word;
    fr_expression meaning;
} fr_form_word;
fr_expression fr_form_text(const fr_reply_plan *plan, fr_grammar_rules *rules, const char *text,
                           const fr_form_word *words);

/* A mark; any text up to a mark, and that. */
fr_expression fr_reply_mark(const fr_reply_plan *plan, fr_grammar_rules *rules, fr_mark mark);
fr_expression fr_reply_until(const fr_reply_plan *plan, fr_grammar_rules *rules, fr_mark mark);

#endif
