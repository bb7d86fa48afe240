/* Turns tools that are not functions into functions, because models know only these.
 *
 * In: tools as OpenAI's APIs have them. A custom tool, whose input is free text, becomes a function with that text as
 * its only parameter. The tools of a namespace get its name as a prefix. A search for tools that the client runs
 * becomes a function too. Tools that only OpenAI's own service runs, such as a web search, are ignored. Out: the
 * functions for a chat; and, for the answer, an object that maps each function's name to the tool as the client
 * offered it: {"type": "function", "custom" or "tool_search", "name", "namespace"}. */
#ifndef FR_TOOLS_SERVE_TOOL_KINDS_H
#define FR_TOOLS_SERVE_TOOL_KINDS_H

#include <stddef.h>

#include "tools/serve/turns.h"

/* Offers the tool, or all tools of a namespace. A name that was offered before is not offered again. called: the
 * object of offered tools, which gets more members. what: the tool's name in errors, "tools[3]". Returns false if the
 * tool is refused. */
bool fr_tool_offer(fr_turns *turns, json_t *called, const char *what, const json_t *tool);

/* Gives the name of a tool's function, as a new text: the tool's name, with the namespace before it unless that is
 * NULL or not a text. */
json_t *fr_tool_name(const json_t *namespace, const json_t *name);

/* Gives a choice of tools, as a new value. A tool that another service runs can't be forced: the choice of one becomes
 * "auto", and a choice among only such tools becomes "none". */
json_t *fr_tool_choice(const json_t *choice);

/* The first gives the arguments, as a new object, of a call that has this input for a custom tool. The second gives
 * the input, as a new text, from such arguments. */
json_t *fr_tool_arguments(const json_t *input);
json_t *fr_tool_input(const char *arguments, size_t length);

/* The same for a chat, where a custom tool, its calls and tool_choice have a member "custom". The first turns these in
 * a request's body into functions; false: the body is refused, and `error` has the reason. The second turns a call of
 * an answer back into the form in which the client offered the tool. */
bool fr_tools_of_chat(json_t *body, json_t *called, char *error, size_t size);
void fr_tool_call_of_chat(const json_t *called, json_t *call);

/* The same for OpenAI's older form of tools, "functions" and "function_call". The first function turns a request's body
 * into one of tools, of which one is called at most; it returns true if the body had that form. The second turns the
 * calls of an answer's message, or of a piece of it, into the "function_call" of that form. */
bool fr_functions_of_chat(json_t *body);
void fr_function_call_of_chat(json_t *message);

#endif
