/* Makes the grammar of a reply: reasoning, if the format has it, and then either calls or a content with a grammar of
 * its own.
 *
 * In: a format (reply_format.h), the tools, which of the tools may or must be called, and the rules of the content.
 * Out: rules of the whole reply. A mark that is a token of its own can be written only as that token. Arguments follow
 * the tools' schemas, and are written as the format writes them. */
#ifndef FR_SRC_LANGUAGE_CHAT_REPLY_GRAMMAR_H
#define FR_SRC_LANGUAGE_CHAT_REPLY_GRAMMAR_H

#include <jansson.h>

#include "src/language/chat/reply_format.h"
#include "src/language/grammar/json_schema.h"
#include "src/language/grammar/json_schema_values.h"

typedef struct fr_reply_plan {
    const fr_reply_format *format;
    bool thinks; /* the prompt itself has opened the reasoning */
    /* the prompt contains the whole thought, so the reply begins with the content or a call */
    bool thought;
    const json_t *tools; /* an array, or NULL: nothing may be called */
    const char *tool;    /* the only tool that may be called; NULL: any of them */
    bool several;        /* one reply may have several calls */
    /* the reply may be a content, with rules->root as its rule, instead of calls; always true if there are no tools */
    bool has_content;
} fr_reply_plan;

/* Makes the rules of the reply, with a new root. If a content is allowed, its rules must already be in `rules`. */
fr_status fr_reply_rules(const fr_reply_plan *plan, fr_grammar_rules *rules);

/* Returns true for a tool with "strict": true. For other tools, parts of a schema that can't be enforced are
 * ignored. */
bool fr_tool_is_strict(const json_t *tool);

/* Makes the schema of a tool's parameters. A tool without parameters gets the schema of the empty object. A schema is
 * refused if it does not describe objects, or if a text in it contains a NUL. */
fr_status fr_tool_schema(const json_t *tool, fr_grammar_rules *rules, json_t **schema);

/* Makes all arguments of a call, for forms that write each argument as text, such as `<parameter=KEY>VALUE`. */
fr_status fr_tagged_arguments(const fr_reply_plan *plan, const json_t *tool, fr_grammar_rules *rules,
                              fr_expression *arguments);

/* Makes an argument's value and the mark that ends it. schema, path: the schema of the value, and its place in the
 * tool's parameters. If the value may be a string, it is plain text; otherwise it is JSON. If the tool is not strict,
 * and the constraints on a string can't be enforced, the string may be any text. */
fr_status fr_tagged_value(const fr_reply_plan *plan, const json_t *tool, const char *key, const json_t *schema,
                          const fr_schema_path *path, fr_written_parts *parts, fr_expression *value);

/* Makes an expression from a form's text (reply_forms.h). Each word of `words` in the text becomes the word's meaning,
 * and each mark in the text becomes the format's mark. The last word of the list is NULL. */
typedef struct fr_form_word {
    const char *word;
    fr_expression meaning;
} fr_form_word;
fr_expression fr_form_text(const fr_reply_plan *plan, fr_grammar_rules *rules, const char *text,
                           const fr_form_word *words);

/* fr_reply_mark makes an expression for a mark. fr_reply_until makes one for any text without the mark, followed by the
 * mark. */
fr_expression fr_reply_mark(const fr_reply_plan *plan, fr_grammar_rules *rules, fr_mark mark);
fr_expression fr_reply_until(const fr_reply_plan *plan, fr_grammar_rules *rules, fr_mark mark);

#endif
