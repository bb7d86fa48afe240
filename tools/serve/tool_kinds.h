/* Tools of other kinds than functions, as functions: models know no others.
 *
 * In: tools as OpenAI's APIs have them. A custom tool, whose input is a free text, becomes a function with that text as
 * its only parameter; the tools of a namespace get its name before theirs; a search for tools that the client runs is
 * one too. What only the maker's own service runs (a search of the web, say) is passed over. Out: functions of a chat;
 * and for answers, what each is called by who offered it, in an object of {"type": "function", "custom" or
 * "tool_search", "name", "namespace"} by the functions' names. */
#ifndef FR_TOOLS_SERVE_TOOL_KINDS_H
#define FR_TOOLS_SERVE_TOOL_KINDS_H

#include <stddef.h>

#include "tools/serve/turns.h"

/* Offers the tool, or all that it has; one whose name has been offered is there already. called: the object, which
 * gets more members. what: as errors call it, "tools[3]". False: refused. */
bool fr_tool_offer(fr_turns *turns, json_t *called, const char *what, const json_t *tool);

/* A function's name, new: of a tool of this name, in a namespace unless that is NULL or no text. */
json_t *fr_tool_name(const json_t *namespace, const json_t *name);

/* Gives a choice of tools, new: a tool that another service runs can't be forced, so the choice of one becomes "auto",
 * and a choice among such tools alone "none". */
json_t *fr_tool_choice(const json_t *choice);

/* The arguments of a call that gives a custom tool this input, a new object; and the input that is in such arguments,
 * a new text. */
json_t *fr_tool_arguments(const json_t *input);
json_t *fr_tool_input(const char *arguments, size_t length);

/* The same in a chat's form, where what a custom tool is stands in a member "custom" of it, of its calls and of
 * tool_choice: changes a request's body to one of functions; false: refused, with a line. And a call of an answer to
 * what who offered its tool knows. */
bool fr_tools_of_chat(json_t *body, json_t *called, char *error, size_t size);
void fr_tool_call_of_chat(const json_t *called, json_t *call);

#endif
