/* Makes the grammar of a reply: reasoning, if the format has it, and then either calls or a content with a grammar of
 * its own.
 *
 * In: a format (reply_format.h); the tools, and which of them may or must be called; rules of a content. Out: rules of
 * the whole reply. A mark that is a token of its own can be written only as that token. Arguments follow the tools'
 * schemas, in the spelling of the format. */
#ifndef FR_SRC_LANGUAGE_CHAT_REPLY_GRAMMAR_H
#define FR_SRC_LANGUAGE_CHAT_REPLY_GRAMMAR_H

#include <jansson.h>

#include "src/language/chat/reply_format.h"
#include "src/language/grammar/json_schema.h"
#include "src/language/grammar/json_schema_values.h"

typedef struct fr_reply_plan {
    const fr_reply_format *format;
    bool thinks;         /* the prompt itself has opened the reasoning */
    bool thought;        /* the prompt contains all of the thought, so the reply begins with the content or a call */
    const json_t *tools; /* an array, or NULL: nothing may be called */
    const char *tool;    /* the only tool that may be called; NULL: any of them */
    bool several;        /* one reply may have several calls */
    /* the reply may be a content (rules->root) instead of calls; always true if there are no tools */
    bool has_content;
} fr_reply_plan;

/* Makes the rules of the reply, with a new root. If a content is allowed, its rules must already be in `rules`. */
fr_status fr_reply_rules(const fr_reply_plan *plan, fr_grammar_rules *rules);

/* True for a tool with "strict": true. For other tools, parts of a schema that can't be enforced are ignored. */
bool fr_tool_is_strict(const json_t *tool);

/* Makes the schema of a tool's parameters. A tool without parameters gets the schema of the empty object. A schema
 * that does not describe objects is refused, and so is one with a NUL anywhere. */
fr_status fr_tool_schema(const json_t *tool, fr_grammar_rules *rules, json_t **schema);

/* Makes all arguments of a call, in the forms that write them one by one as text, for example
 * `<parameter=KEY>VALUE`. */
fr_status fr_tagged_arguments(const fr_reply_plan *plan, const json_t *tool, fr_grammar_rules *rules,
                              fr_expression *arguments);

/* Makes an argument's value and the mark that ends it, from the schema at a place in the tool's parameters. The value
 * is plain text if it may be a string, and JSON otherwise. If the tool is not strict, a string whose constraints can't
 * be enforced may be any text. */
fr_status fr_tagged_value(const fr_reply_plan *plan, const json_t *tool, const char *key, const json_t *schema,
                          const fr_schema_path *path, fr_written_parts *parts, fr_expression *value);

/* Makes an expression from a form's text (reply_forms.h). Where the text has a word of the list, the expression has
 * the word's meaning. Where the text has a mark, the expression has the format's mark. The last word of the list is
 * NULL. */
typedef struct fr_form_word {
    const char *word;
    fr_expression meaning;
} fr_form_word;
fr_expression fr_form_text(const fr_reply_plan *plan, fr_grammar_rules *rules, const char *text,
                           const fr_form_word *words);

/* fr_reply_mark makes a mark. fr_reply_until makes any text without the mark, followed by the mark. */
fr_expression fr_reply_mark(const fr_reply_plan *plan, fr_grammar_rules *rules, fr_mark mark);
fr_expression fr_reply_until(const fr_reply_plan *plan, fr_grammar_rules *rules, fr_mark mark);

#endif
