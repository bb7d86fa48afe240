/* A reply's grammar: reasoning if the format has any, then calls, or a content with a grammar of its own.
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
    bool thinks;         /* the prompt has opened the reasoning */
    bool thought;        /* the prompt contains the whole thought, so the reply begins with the content or a call */
    const json_t *tools; /* an array, or NULL: nothing may be called */
    const char *tool;    /* the only tool that may be called; NULL: any of them */
    bool several;        /* one reply may have several calls */
    /* the reply may be a content (rules->root) instead of calls; always true if there are no tools */
    bool has_content;
} fr_reply_plan;

/* Makes the rules of the reply, as the new root. If there is a content, its rules must be there already. */
fr_status fr_reply_rules(const fr_reply_plan *plan, fr_grammar_rules *rules);

/* True for a tool with "strict": true. For any other tool, parts of its schema that can't be enforced are ignored. */
bool fr_tool_is_strict(const json_t *tool);

/* Makes the schema of a tool's parameters. If a conversation leaves them out, it is the schema of the empty object.
 * Parameters that are no schema of objects are refused, and so are schemas with NULs anywhere. */
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

/* Makes an expression from a form's text (reply_forms.h). Words, up to the one that is NULL, are replaced by their
 * meanings, and marks in the text become the marks. */
typedef struct fr_form_word {
    const char *word;
    fr_expression meaning;
} fr_form_word;
fr_expression fr_form_text(const fr_reply_plan *plan, fr_grammar_rules *rules, const char *text,
                           const fr_form_word *words);

/* Make a mark; and any text up to a mark, followed by that mark. */
fr_expression fr_reply_mark(const fr_reply_plan *plan, fr_grammar_rules *rules, fr_mark mark);
fr_expression fr_reply_until(const fr_reply_plan *plan, fr_grammar_rules *rules, fr_mark mark);

#endif
