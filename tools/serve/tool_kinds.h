/* Turns tools that are not functions into functions, because models know only functions.
 *
 * In: tools as OpenAI's APIs have them. A custom tool, whose input is free text, becomes a function with that text as
 * its only parameter. The tools of a namespace get the namespace's name as a prefix. A search for tools that the client
 * runs becomes a function too. Tools that only OpenAI's own service runs, such as a web search, are ignored. Out: the
 * functions for a chat. Also an object for the answer, which maps each function's name to the tool as the client
 * offered it: {"type": "function", "custom" or "tool_search", "name", "namespace"}. */
#ifndef FR_TOOLS_SERVE_TOOL_KINDS_H
#define FR_TOOLS_SERVE_TOOL_KINDS_H

#include <stddef.h>

#include "tools/serve/turns.h"

/* Offers the tool, or all tools of a namespace. If a function has the name of an earlier function, it is not offered.
 * called: the object that maps functions to tools, to which members are added. what: the tool's name in error lines,
 * such as "tools[3]". Returns false if the tool is refused. */
bool fr_tool_offer(fr_turns *turns, json_t *called, const char *what, const json_t *tool);

/* Gives the name of a tool's function as a new text. It is the tool's name. If `namespace` is a text, that text comes
 * before the tool's name. */
json_t *fr_tool_name(const json_t *namespace, const json_t *name);

/* Converts a choice of tools to a new value. A tool that another service runs can't be forced. So a choice of such a
 * tool becomes "auto". If a choice allows only such tools, it becomes "none". */
json_t *fr_tool_choice(const json_t *choice);

/* These functions convert between the input of a custom tool and the arguments of its function. fr_tool_arguments makes
 * an object of arguments. fr_tool_input gets the input out of the arguments' text. */
json_t *fr_tool_arguments(const json_t *input);
json_t *fr_tool_input(const char *arguments, size_t length);

/* These functions convert a chat with custom tools. In its body, custom tools, their calls and "tool_choice" have a
 * member "custom". fr_tools_of_chat turns all of these into functions. If it refuses the body, it returns false, and
 * `error` has the reason. fr_tool_call_of_chat turns a call of the reply back into the form in which the client offered
 * the tool. */
bool fr_tools_of_chat(json_t *body, json_t *called, char *error, size_t size);
void fr_tool_call_of_chat(const json_t *called, json_t *call);

/* These functions convert a chat in OpenAI's older form, with "functions" and "function_call". fr_functions_of_chat
 * turns such a body into a body with "tools", of which at most one is called. It returns true if the body had the older
 * form. fr_function_call_of_chat turns the calls in a message, or in a delta of a message, back into
 * "function_call". */
bool fr_functions_of_chat(json_t *body);
void fr_function_call_of_chat(json_t *message);

#endif
